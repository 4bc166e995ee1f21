"""Routes that are worth a connection where not all can be tried, and the flow's own numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from datacollect.methods.connections.whole_connections import Candidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.flow.connection_flow import ConnectionFlow
    from datacollect.flow.network.pools import Pool
    from datacollect.methods.connections.whole_connections import Hops
    from datacollect.numbers.arrays import BoolArray, IntArray
    from datacollect.problem.problem import Problem

# Less than this part of a pool's data makes no route of its own.
TINY_PART = 1e-3
# In problems with at most this many links all routes over one relay are looked at.
FEW_LINKS = 60


def worthwhile_routes(
    problem: Problem, pools: Sequence[Pool], usable: BoolArray, flow: ConnectionFlow
) -> list[Candidate]:
    """Return the routes that data may take: direct, as the flow does, or over one relay."""
    found = direct_routes(problem, pools, usable)
    found += [Candidate(i, hosts) for i, hosts in _paths(problem, pools, flow)]
    if problem.n_links <= FEW_LINKS:
        found += _over_one_relay(problem, pools, usable)
    return found


def direct_routes(problem: Problem, pools: Sequence[Pool], usable: BoolArray) -> list[Candidate]:
    """Return the direct route of each pool that has one."""
    end = problem.destination_index
    links = problem.link_indices([p.host for p in pools], [end] * len(pools))
    return [
        Candidate(i, (pool.host, end))
        for i, (pool, link) in enumerate(zip(pools, links.tolist(), strict=True))
        if link >= 0 and usable[link]
    ]


def _over_one_relay(problem: Problem, pools: Sequence[Pool], usable: BoolArray) -> list[Candidate]:
    end = problem.destination_index
    tails, heads = problem.link_from[usable].tolist(), problem.link_to[usable].tolist()
    links = set(zip(tails, heads, strict=True))
    return [
        Candidate(i, (pool.host, relay, end))
        for i, pool in enumerate(pools)
        for relay in range(problem.n_hosts)
        if relay not in (pool.host, end) and {(pool.host, relay), (relay, end)} <= links
    ]


def _paths(
    problem: Problem, pools: Sequence[Pool], flow: ConnectionFlow
) -> list[tuple[int, tuple[int, ...]]]:
    """Return the paths of a flow, the widest first; circles are left out."""
    end, rates = problem.destination_index, flow.rate_bytes_per_s
    out: dict[int, dict[int, float]] = {}
    for link in np.flatnonzero(rates > 0).tolist():
        tail, head = int(problem.link_from[link]), int(problem.link_to[link])
        out.setdefault(tail, {})[head] = float(rates[link])
    found = []
    for number, pool in enumerate(pools):
        left = pool.n_bytes / flow.makespan_s
        least = TINY_PART * left
        while left > least:
            path = _widest_first(out, pool.host, end)
            if path is None:
                break
            width = min(left, *(out[a][b] for a, b in pairwise(path)))
            for a, b in pairwise(path):
                out[a][b] -= width
                if out[a][b] <= least / len(pools):
                    del out[a][b]
            left -= width
            found.append((number, path))
    return found


def _widest_first(out: dict[int, dict[int, float]], start: int, end: int) -> tuple[int, ...] | None:
    """Follow the widest arc from each host; turn back where none leads on."""
    path, dead = [start], set[int]()
    while path[-1] != end:
        onward = {h: w for h, w in out.get(path[-1], {}).items() if h not in path and h not in dead}
        if onward:
            path.append(max(onward, key=lambda h: (h == end, onward[h])))
            continue
        dead.add(path.pop())
        if not path:
            return None
    return tuple(path)


def as_flow(hops: Hops, flow: ConnectionFlow, otherwise: IntArray) -> IntArray:
    """Round down what the flow has, one at least; routes with least are left out until it fits.

    A pool that has no route then takes that of `otherwise`.
    """
    rates = flow.rate_bytes_per_s
    width = np.minimum.reduceat(rates[hops.link], hops.first)
    width = np.where(width > 0, width, 0.0)
    of_link = np.bincount(hops.link, width[hops.route], len(rates))[hops.link]
    with np.errstate(divide="ignore", invalid="ignore"):
        part = flow.connections[hops.link] * width[hops.route] / of_link
    n = np.where(width[hops.route] > 0, np.maximum(1, np.floor(np.nan_to_num(part) + 1e-6)), 0)
    n = n.astype(np.int64)
    for route in np.argsort(width, kind="stable").tolist():
        if hops.fits(n):
            break
        others = (hops.pool == hops.pool[route]) & (n[hops.first] > 0)
        if n[hops.first[route]] > 0 and others.sum() > 1:
            n[hops.route == route] = 0
    missing = np.bincount(hops.pool, n[hops.first] > 0, len(hops.size)) == 0
    return np.where(missing[hops.pool[hops.route]], otherwise, n)
