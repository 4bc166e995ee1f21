"""All numbers of connections of small problems: which routes there are, and how many on each hop.

They are counted before they are listed: a product of polynomials whose k-th coefficient is the
number of ways to open k connections. What cannot gain by a second connection has one: a hop whose
link has a constant bandwidth, on no wire that gives to each connection.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from datacollect.methods.whole_connections import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from datacollect.arrays import BoolArray, IntArray
    from datacollect.flow.pools import Pool
    from datacollect.methods.whole_connections import Hops
    from datacollect.problem.problem import Problem


def simple_routes(
    problem: Problem, pools: Sequence[Pool], usable: BoolArray, most: int, longest: int
) -> list[Candidate] | None:
    """Return all ways over usable links that visit no host twice, None if more than `most`.

    Parameters
    ----------
    problem : Problem
    pools : sequence of Pool
    usable : ndarray of bool, shape (n_links,)
    most, longest : int
        Ways, and hops of each.
    """
    after: dict[int, list[int]] = {}
    for link in np.flatnonzero(usable).tolist():
        after.setdefault(int(problem.link_from[link]), []).append(int(problem.link_to[link]))
    end = problem.destination_index
    found: list[Candidate] = []
    for number, pool in enumerate(pools):
        for hosts in _ways(after, (pool.host,), end, longest):
            found.append(Candidate(number, hosts))
            if len(found) > most:
                return None
    return found


def _ways(
    after: dict[int, list[int]], hosts: tuple[int, ...], end: int, longest: int
) -> Iterator[tuple[int, ...]]:
    for host in after.get(hosts[-1], ()):
        if host == end:
            yield (*hosts, end)
        elif host not in hosts and len(hosts) < longest:
            yield from _ways(after, (*hosts, host), end, longest)


def n_allocations(hops: Hops) -> list[int]:
    """Return how many numbers of connections there are for each budget up to the one of `hops`.

    Examples
    --------
    One source with two congested links, to the destination and over a relay:

    >>> import datacollect as dc
    >>> from datacollect.flow.pools import pools_by_owner
    >>> from datacollect.methods.whole_connections import Hops
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
    """Return all numbers that fit into hosts' budgets and so many in all, the fewest first.

    Returns
    -------
    ndarray of int, shape (n_rows, n_hops)
    """
    enough = _one_is_enough(hops)
    order = np.argsort(hops.pool, kind="stable")
    # What pools that follow need at least.
    shortest = [int(hops.length[hops.pool == p].min()) for p in range(len(hops.size))]
    rows = np.zeros((1, len(hops.route)), dtype=np.int64)
    for position, route in enumerate(order.tolist()):
        pool = int(hops.pool[route])
        own = np.flatnonzero(hops.route == route)
        most = connections - sum(shortest[pool + 1 :])
        rows = _with_route(rows, own, enough[own], most)
        if position + 1 == len(order) or hops.pool[order[position + 1]] != pool:
            rows = rows[rows[:, hops.pool[hops.route] == pool].any(axis=1)]
        rows = rows[hops.fit(rows)]
    return rows[np.argsort(rows.sum(axis=1), kind="stable")]


def _with_route(rows: IntArray, own: IntArray, enough: BoolArray, most: int) -> IntArray:
    """Return each row with the route closed, and with all numbers of its hops."""
    parts, total = [rows], rows.sum(axis=1)
    for opened in _numbers(enough.tolist(), most - int(total.min(initial=most))):
        fitting = rows[total + sum(opened) <= most]
        more = fitting.copy()
        more[:, own] = opened
        parts.append(more)
    return np.concatenate(parts)


def _numbers(enough: Sequence[bool], most: int) -> Iterator[tuple[int, ...]]:
    """Yield numbers from one on for each hop, together at most so many."""
    if not enough:
        yield ()
        return
    here = 1 if enough[0] else most - len(enough) + 1
    for first in range(1, min(here, most - len(enough) + 1) + 1):
        for rest in _numbers(enough[1:], most - first):
            yield (first, *rest)
