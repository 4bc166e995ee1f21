"""The best numbers of connections where all data go directly to the destination: exact.

To end by some instant each pool needs some rate, and with that a least number of connections: more
where more of ours share its wires. So the least numbers for all are the least fixed point of a
monotone step (Tarski, Pacific J. Mathematics 5, 1955), and no others that end by then have fewer
connections anywhere. From one connection each on, the end is moved until they do not fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.numbers.tolerances import SAME_INSTANT, SAME_RATE

if TYPE_CHECKING:
    from datacollect.methods.connections.whole_connections import Hops
    from datacollect.numbers.arrays import IntArray

# The end is halved towards what cannot be until so near; then moved from one end to the next.
NEAR = 1.01


def best_direct(hops: Hops) -> IntArray | None:
    """Return the numbers with which all have arrived soonest on direct routes alone.

    None where some pool has no direct route, or one connection each is too many.

    Examples
    --------
    Beside 30 others on 31 bytes/s four connections of A get 3.6; B gets 1 with any number:

    >>> import datacollect as dc
    >>> from datacollect.flow.network.pools import pools_by_owner
    >>> from datacollect.methods.connections.whole_connections import Candidate, Hops
    >>> links = [dc.Link("A", "D", 1.0, competitors=30), dc.Link("B", "D", 1.0)]
    >>> hosts = [dc.Host("A", 40), dc.Host("B", 10), dc.Host("D")]
    >>> problem = dc.Problem.from_hosts(hosts, links, "D")
    >>> hops = Hops(problem, pools_by_owner(problem), [Candidate(i, (i, 2)) for i in (0, 1)], 6)
    >>> best_direct(hops)
    array([5, 1])
    """
    direct = np.flatnonzero(hops.length == 1)
    if len(np.unique(hops.pool[direct])) < len(hops.size):
        return None
    own = hops.first[direct]
    n = np.zeros(len(hops.route), dtype=np.int64)
    n[own] = 1
    if not hops.fits(n):
        return None
    low_s = 0.0
    while True:
        end_s = hops.brought(n).makespan_s
        if not np.isfinite(end_s):
            return None  # no number tells when it ends, nor whether more end sooner
        is_far = end_s > low_s * NEAR
        until_s = (low_s + end_s) / 2 if is_far else end_s * (1 - SAME_INSTANT)
        more = _least_until(hops, n, own, until_s)
        if more is not None and hops.brought(more).makespan_s <= until_s:
            n = more
        elif is_far:
            low_s = until_s
        else:
            return n


def _least_until(hops: Hops, n: IntArray, own: IntArray, until_s: float) -> IntArray | None:
    """Return the least numbers, `n` at least, with which connections bring all by some instant."""
    pool = hops.pool[hops.route[own]]
    if until_s <= float(hops.release_s.max()):
        return None
    wanted = hops.size[pool] / (until_s - hops.release_s[pool])
    while True:
        carried = hops.carried(n)[1][hops.route[own]]
        short = carried < wanted * (1 - SAME_RATE)
        if not short.any():
            return n
        short_hops = own[short]
        with np.errstate(divide="ignore", invalid="ignore"):
            more = np.ceil(n[short_hops] * (wanted / carried)[short] * (1 - SAME_RATE))
        if not np.isfinite(more).all() or more.max(initial=0.0) > hops.connections:
            return None
        less = n
        n = n.copy()
        n[short_hops] = np.maximum(more.astype(np.int64), less[short_hops] + 1)
        if not hops.fits(n):
            return None
