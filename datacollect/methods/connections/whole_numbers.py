"""The best whole numbers of connections that are found, and whether all were tried.

In small problems all numbers on all routes are tried. Else search begins from the best numbers of
direct routes, from the fewest that reach all data, from what a linear program has, and from the
best of all numbers under the largest budget for which these are few enough. What it finds, and then
all numbers around the best of these, are judged by the best rates that they allow. All limits are
counts of work, not of time: the same input gives the same plan on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.methods.connections.direct_split import best_direct
from datacollect.methods.connections.divided_rates import best_rates
from datacollect.methods.connections.every_allocation import (
    all_routes,
    every_allocation,
    n_allocations,
)
from datacollect.methods.connections.routes import as_flow, worthwhile_routes
from datacollect.methods.connections.soonest import soonest
from datacollect.methods.connections.steps import Search, neighbours
from datacollect.methods.connections.whole_connections import Candidate, Hops

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from datacollect.flow.connection_flow import ConnectionFlow
    from datacollect.flow.network.pools import Pool
    from datacollect.methods.connections.divided_rates import BestRates
    from datacollect.methods.connections.soonest import Found
    from datacollect.numbers.arrays import BoolArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget

# So many numbers at most are tried one and all, a few microseconds each.
MOST_ALLOCATIONS = 10_000
# Linear programs, half a millisecond each, for all numbers; for neighbours in all, and at a time.
MOST_PROGRAMS = 400
MOST_NEARBY_PROGRAMS = 200
MOST_AT_A_TIME = 20
# Steps to a neighbour that ends sooner.
MOST_MOVES = 50
# With at most this many routes search begins again from each of them, and looks at neighbours.
FEW_ROUTES = 60
# Relayed data wait for a chunk at each relay: this part of the lower bound, or of what is shorter.
CHUNK_PART = 1e-3


@dataclass(frozen=True, eq=False)
class Numbers:
    """Connections of each hop, and the best rates with them.

    Attributes
    ----------
    hops : Hops
    n : ndarray of int, shape (n_hops,)
    best : BestRates
    tried_all : bool
        No other numbers end sooner.
    """

    hops: Hops
    n: IntArray
    best: BestRates
    tried_all: bool


@dataclass(frozen=True, eq=False)
class Task:
    """Task of finding numbers of connections.

    Attributes
    ----------
    problem : Problem
    pools : sequence of Pool
    usable : ndarray of bool, shape (n_links,)
    connections : int
    chunk_s : float or None
        None: a part of the lower bound.
    bound_s : float
    budget : Budget
    """

    problem: Problem
    pools: Sequence[Pool]
    usable: BoolArray
    connections: int
    chunk_s: float | None
    bound_s: float
    budget: Budget

    def hops(self, candidates: Iterable[Candidate], default_s: float | None = None) -> Hops:
        """Return the hops of some routes; chunks are shorter where some are long."""
        routes = sorted(set(candidates))
        relays = max(len(route.hosts) - 2 for route in routes)
        if default_s is None:
            default_s = self.bound_s * CHUNK_PART * min(1.0, 2 / max(1, relays))
        chunk_s = default_s if self.chunk_s is None else self.chunk_s
        return Hops(self.problem, self.pools, routes, self.connections, chunk_s)


def best_numbers(task: Task, fewest: Sequence[Candidate], flow: ConnectionFlow) -> Numbers | None:
    """Return the best numbers of connections that are found; None where nothing moves in time.

    Parameters
    ----------
    task : Task
    fewest : sequence of Candidate
        A route for each pool, with no more hops together than there are connections.
    flow : ConnectionFlow
        With parts of connections.
    """
    listed = all_routes(task.problem, task.pools, task.usable, task.connections)
    tried = None if listed is None else _every(task, *listed)
    if tried is not None and tried.tried_all:
        return tried
    routes = [*fewest, *worthwhile_routes(task.problem, task.pools, task.usable, flow)]
    if listed is not None and len(listed[0]) <= FEW_ROUTES:
        routes += listed[0]
    if tried is not None:
        is_open = tried.n[tried.hops.first] > 0
        routes += [c for c, used in zip(tried.hops.candidates, is_open, strict=True) if used]
    hops = task.hops(routes, None if tried is None else tried.hops.chunk_s)
    least = _numbers_of(hops, {way: [1] * (len(way.hosts) - 1) for way in fewest})
    direct = best_direct(hops)
    starts = [least if direct is None else direct, as_flow(hops, flow, least)]
    if tried is not None:
        starts.append(_numbers_of(hops, _by_route(tried)))
    fitting = [n for n in starts if hops.fits(n)]
    finalists = [*fitting, *(Search(hops).improved(n) for n in fitting)]
    is_small = len(hops.candidates) <= FEW_ROUTES
    if is_small:
        finalists.append(Search(hops).shaken(min(finalists, key=lambda n: hops.brought(n).key)))
    found = soonest(hops, np.stack(finalists), task.budget, len(finalists))
    if found is None:
        return None
    if is_small:
        found = _nearby(hops, found, task.budget)
    return Numbers(hops, found.n, found.best, tried_all=False)


def direct_numbers(numbers: Numbers, budget: Budget) -> Numbers | None:
    """Return the best numbers of direct routes alone, if every pool has one."""
    n = best_direct(numbers.hops)
    return (
        None if n is None else Numbers(numbers.hops, n, best_rates(numbers.hops, n, budget), False)
    )


def _every(task: Task, routes: Sequence[Candidate], longest: int) -> Numbers | None:
    """Try all numbers, under a smaller budget where there are too many; None if it is too small.

    The smaller budget is the same for all larger ones. Routes are all that have up to a number of
    hops.
    """
    hops = task.hops(routes)
    counts = n_allocations(hops)[: longest + len(task.pools)]
    budget = max(k for k, count in enumerate(counts) if count <= MOST_ALLOCATIONS)
    if counts[budget] == 0:
        return None
    best = soonest(hops, every_allocation(hops, budget), task.budget, MOST_PROGRAMS)
    if best is None:
        return None
    return Numbers(hops, best.n, best.best, best.proved and budget == task.connections)


def _nearby(hops: Hops, found: Found, budget: Budget) -> Found:
    """Go on to the best of all numbers around, as long as one ends sooner."""
    left = MOST_NEARBY_PROGRAMS
    for _ in range(MOST_MOVES):
        around = neighbours(hops, found.n)
        most = min(left, MOST_AT_A_TIME)
        better = soonest(hops, around, budget, most, found.best.makespan_s)
        if better is None:
            break
        found = better
        left -= better.programs
    return found


def _numbers_of(hops: Hops, connections: dict[Candidate, list[int]]) -> IntArray:
    """Return the numbers of some routes' hops; others have none."""
    none = (0,)
    per_route = [connections.get(c, none * (len(c.hosts) - 1)) for c in hops.candidates]
    return np.array([n for row in per_route for n in row], dtype=np.int64)


def _by_route(numbers: Numbers) -> dict[Candidate, list[int]]:
    hops = numbers.hops
    return {
        route: numbers.n[first : first + length].tolist()
        for route, first, length in zip(
            hops.candidates, hops.first.tolist(), hops.length.tolist(), strict=True
        )
    }
