"""All numbers of connections of small problems: which routes there are, and how many on each hop.

They are counted before they are listed: a product of polynomials whose k-th coefficient is the
number of ways to open k connections. What cannot gain by a second connection has one: a hop whose
link has a constant bandwidth, on no wire that gives to each connection.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.methods.connections.whole_connections import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from datacollect.flow.network.pools import Pool
    from datacollect.methods.connections.whole_connections import Hops
    from datacollect.numbers.arrays import BoolArray, IntArray
    from datacollect.problem.problem import Problem

# More routes than this are not listed, nor followed where that many have begun.
MOST_ROUTES, MOST_BEGUN = 200, 5000


def all_routes(
    problem: Problem, pools: Sequence[Pool], usable: BoolArray, connections: int
) -> tuple[list[Candidate], int] | None:
    """Return all routes that visit no host twice, up to a length at which they are few enough.

    Parameters
    ----------
    problem : Problem
    pools : sequence of Pool
    usable : ndarray of bool, shape (n_links,)
        Links that carry something.
    connections : int
        Every other pool needs one.

    Returns
    -------
    tuple of (list of Candidate, int) or None
        With the most hops that a route may have; None where some pool has no route then.
    """
    after: dict[int, list[int]] = {}
    for link in np.flatnonzero(usable).tolist():
        after.setdefault(int(problem.link_from[link]), []).append(int(problem.link_to[link]))
    after.pop(problem.destination_index, None)
    begun = [Candidate(number, (pool.host,)) for number, pool in enumerate(pools)]
    found: list[Candidate] = []
    longest = 0
    while begun and longest <= connections - len(pools):
        if sum(len(after.get(way.hosts[-1], ())) for way in begun) > MOST_BEGUN:
            break
        onward = [
            Candidate(way.pool, (*way.hosts, host))
            for way in begun
            for host in after.get(way.hosts[-1], ())
            if host not in way.hosts
        ]
        ended = [way for way in onward if way.hosts[-1] == problem.destination_index]
        if len(found) + len(ended) > MOST_ROUTES:
            break
        found += ended
        begun = [way for way in onward if way.hosts[-1] != problem.destination_index]
        longest += 1
    if {way.pool for way in found} != set(range(len(pools))):
        return None
    return found, longest if begun else connections


def n_allocations(hops: Hops) -> list[int]:
    """Return how many numbers of connections there are for each budget up to the one of `hops`.

    Examples
    --------
    One source with two congested links, to the destination and over a relay:

    >>> import datacollect as dc
    >>> from datacollect.flow.network.pools import pools_by_owner
    >>> from datacollect.methods.connections.whole_connections import Hops
    >>> links = [dc.Link(*pair, 1.0, competitors=9) for pair in ("SD", "SK", "KD")]
    >>> problem = dc.Problem.from_hosts([dc.Host("S", 40), dc.Host("K"), dc.Host("D")], links, "D")
    >>> pools = pools_by_owner(problem)
    >>> hops = Hops(problem, pools, [Candidate(0, (0, 2)), Candidate(0, (0, 1, 2))], 3)
    >>> n_allocations(hops)
    [0, 1, 3, 7]
    """
    most = hops.connections
    all_pools = _polynomial(most, 1)
    for pool in range(len(hops.size)):
        of_pool = _polynomial(most, 1)
        for route in np.flatnonzero(hops.pool == pool).tolist():
            own = _polynomial(most, 1)
            for is_one in _one_is_enough(hops)[hops.route == route].tolist():
                step = [0, *([1] * (most if not is_one else min(most, 1)))]
                own = _product(own, step, most)
            own[0] += 1  # not opened
            of_pool = _product(of_pool, own, most)
        of_pool[0] -= 1  # some route is
        all_pools = _product(all_pools, of_pool, most)
    return list(accumulate(all_pools))


def _polynomial(degree: int, constant: int) -> list[int]:
    return [constant, *([0] * degree)]


def _product(one: list[int], other: list[int], degree: int) -> list[int]:
    found = [0] * (degree + 1)
    for i, a in enumerate(one):
        if a:
            for j, b in enumerate(other[: degree + 1 - i]):
                found[i + j] += a * b
    return found


def _one_is_enough(hops: Hops) -> BoolArray:
    enough = ~hops.grows
    for crossing, _ in hops.wires:
        enough[crossing] = False
    return enough


def every_allocation(hops: Hops, connections: int) -> IntArray:
    """Return all numbers that fit into hosts' budgets and at most `most` in all, the fewest first.

    Returns
    -------
    ndarray of int, shape (n_rows, n_hops)
    """
    enough = _one_is_enough(hops).tolist()
    n_pools = len(hops.size)
    # What other pools need at least.
    shortest = [int(hops.length[hops.pool == pool].min()) for pool in range(n_pools)]
    found: list[_Opened] = [_Opened(0, ())]
    for pool in range(n_pools):
        routes = np.flatnonzero(hops.pool == pool).tolist()
        most = connections - sum(shortest) + shortest[pool]
        own = [opened for opened in _of_routes(hops, routes, enough, most) if opened.total]
        own.sort(key=lambda opened: opened.total)
        totals = [opened.total for opened in own]
        most = connections - sum(shortest[pool + 1 :])
        found = [
            _Opened(before.total + more.total, before.numbers + more.numbers)
            for before in found
            for more in own[: bisect_right(totals, most - before.total)]
        ]
    found.sort(key=lambda opened: opened.total)
    row = np.repeat(np.arange(len(found)), [len(opened.numbers) for opened in found])
    at = np.array([pair for opened in found for pair in opened.numbers], dtype=np.int64)
    numbers = np.zeros((len(found), len(hops.route)), dtype=np.int64)
    numbers[row, at[:, 0]] = at[:, 1]
    return numbers[hops.fit(numbers)]


class _Opened(NamedTuple):
    """Number of connections in all, and the hops that have some, each with its number."""

    total: int
    numbers: tuple[tuple[int, int], ...]


def _of_routes(
    hops: Hops, routes: Sequence[int], enough: Sequence[bool], most: int
) -> Iterator[_Opened]:
    """Yield all numbers on some routes, together at most `most`; none at all, too."""
    yield _Opened(0, ())
    for position, route in enumerate(routes):
        first, length = int(hops.first[route]), int(hops.length[route])
        for opened in _numbers(enough[first : first + length], most):
            total, own = sum(opened), tuple(enumerate(opened, first))
            for further in _of_routes(hops, routes[position + 1 :], enough, most - total):
                yield _Opened(total + further.total, own + further.numbers)


def _numbers(enough: Sequence[bool], most: int) -> Iterator[tuple[int, ...]]:
    """Yield numbers from one on for each hop, together at most `most`."""
    if not enough:
        yield ()
        return
    here = 1 if enough[0] else most - len(enough) + 1
    for first in range(1, min(here, most - len(enough) + 1) + 1):
        for further in _numbers(enough[1:], most - first):
            yield (first, *further)
