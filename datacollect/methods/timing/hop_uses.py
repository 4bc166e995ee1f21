"""Resources of hops: links, finite limits of hosts, shared bottlenecks, under one count.

All capacities of a problem have numbers: links first, then hosts' uplinks, their downlinks, and
shared bottlenecks. In a fluid plan each carries in each piece of time what it can.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from datacollect.numbers.arrays import FloatArray, IntArray, ranges

if TYPE_CHECKING:
    from datacollect.flow.routes.fluid_plan import FluidPlan
    from datacollect.flow.routes.path_table import PathTable
    from datacollect.numbers.arrays import BoolArray
    from datacollect.problem.problem import Problem


def hop_uses(problem: Problem, tail: IntArray, head: IntArray) -> tuple[IntArray, IntArray]:
    """Return pairs: a hop, and the number of a finite capacity that it uses.

    Parameters
    ----------
    problem : Problem
    tail, head : ndarray of int64, shape (n_hops,)
        Hosts at which each hop begins and ends; a link joins them.
    """
    hop, link = np.arange(len(tail)), problem.link_indices(tail, head)
    pairs = [(hop, link)]
    first = problem.n_links
    for limit, ends in ((problem.uplink_bytes_per_s, tail), (problem.downlink_bytes_per_s, head)):
        limited = np.flatnonzero(np.isfinite(limit[0, ends]))
        pairs.append((limited, first + ends[limited]))
        first += problem.n_hosts
    users, shared = _shared_uses(problem, link)
    pairs.append((users, first + shared))
    return np.concatenate([p for p, _ in pairs]), np.concatenate([p for _, p in pairs])


def _shared_uses(problem: Problem, link: IntArray) -> tuple[IntArray, IntArray]:
    """Return pairs: a hop, and a shared bottleneck that its link is part of."""
    members = np.concatenate([np.zeros(0, dtype=np.int64), *problem.shared_links])
    sizes = [len(part) for part in problem.shared_links]
    shared = np.repeat(np.arange(len(sizes)), sizes)
    order = np.argsort(members, kind="stable")
    members, shared = members[order], shared[order]
    first = np.searchsorted(members, link, side="left")
    counts = np.searchsorted(members, link, side="right") - first
    return np.repeat(np.arange(len(link)), counts), shared[ranges(first, counts)]


def crosses_twice(
    problem: Problem, owner: IntArray, tail: IntArray, head: IntArray, n_owners: int
) -> BoolArray:
    """Mark those of which several hops use one shared bottleneck.

    Parameters
    ----------
    problem : Problem
    owner, tail, head : ndarray of int64, shape (n_hops,)
        Whose each hop is, 0 ... `n_owners` - 1, and the hosts at which it begins and ends.
    n_owners : int
    """
    twice = np.zeros(n_owners, dtype=bool)
    if problem.shared:
        hop, shared = _shared_uses(problem, problem.link_indices(tail, head))
        crossing, times = np.unique([owner[hop], shared], axis=1, return_counts=True)
        twice[crossing[0, times > 1]] = True
    return twice


def capacity_bytes_per_s(problem: Problem, number: IntArray, period: IntArray) -> FloatArray:
    """Return capacities by their numbers, in periods of the forecast; both are broadcast."""
    number, period = np.broadcast_arrays(number, period)
    found = np.empty(number.shape)
    shared = np.array([[s.bandwidth_bytes_per_s for s in problem.shared]], dtype=float)
    first = 0
    for capacity in (
        problem.bandwidth_bytes_per_s,
        problem.uplink_bytes_per_s,
        problem.downlink_bytes_per_s,
        np.broadcast_to(shared, (problem.n_periods, len(problem.shared))),
    ):
        its = (number >= first) & (number < first + capacity.shape[1])
        found[its] = capacity[period[its], number[its] - first]
        first += capacity.shape[1]
    return found


@dataclass(frozen=True, eq=False)
class FluidHops:
    """Hops of a fluid plan's paths, path after path, and the capacities that they use.

    Attributes
    ----------
    problem : Problem
    plan : FluidPlan
    paths : PathTable
        The plan's, in any order.
    """

    problem: Problem
    plan: FluidPlan
    paths: PathTable

    @cached_property
    def path(self) -> IntArray:
        """The path of each hop."""
        return np.repeat(np.arange(len(self.paths)), self.paths.n_hops)

    @cached_property
    def tail(self) -> IntArray:
        """Return where each hop begins."""
        return np.delete(self.paths.hosts, np.cumsum(self.paths.n_hops + 1) - 1)

    @cached_property
    def head(self) -> IntArray:
        """Return where each hop ends."""
        n_hops = self.paths.n_hops
        return np.delete(self.paths.hosts, np.cumsum(n_hops + 1) - n_hops - 1)

    @cached_property
    def begins(self) -> BoolArray:
        """Mark the first of consecutive hops of one path in one piece of time."""
        return _begins(self.paths)

    @cached_property
    def position(self) -> IntArray:
        """Place of each hop among consecutive hops of one piece of time, from 0."""
        return positions(self.paths)

    @cached_property
    def use(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Pairs of a hop and what it uses: a capacity in a piece of time, or storage after it.

        The third array has the bytes that there is room for.
        """
        problem, plan = self.problem, self.plan
        hop, number = hop_uses(problem, self.tail, self.head)
        key = self.paths.pieces[hop] * (int(number.max(initial=0)) + 1) + number
        _, first, resource = np.unique(key, return_index=True, return_inverse=True)
        piece = self.paths.pieces[hop[first]]
        period = np.searchsorted(problem.periods_s, plan.starts_s, side="right") - 1
        room_bytes = capacity_bytes_per_s(problem, number[first], period[piece])
        room_bytes *= plan.lengths_s[piece]
        at, host, since, until = self._waits
        row, store, store_bytes = _stores(problem, host, since, until)
        return (
            np.append(hop, at[row]),
            np.append(resource.ravel(), len(room_bytes) + store),
            np.append(room_bytes, store_bytes),
        )

    @property
    def _waits(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Hops whose data wait where storage is limited: at which host, from which piece to which.

        What arrives there in the first leaves in the second.
        """
        piece, limits = self.paths.pieces, self.problem.storage_bytes
        until = np.append(piece[1:], 0)[: len(piece)]
        goes_on = np.append(self.path[1:] == self.path[:-1], False)[: len(piece)]
        (at,) = (goes_on & (until > piece) & np.isfinite(limits[self.head])).nonzero()
        return at, self.head[at], piece[at], until[at]

    @cached_property
    def stored(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Pairs of a path and limited storage after a piece of time, where its data are others'.

        Those that lie there from the beginning count, too. The third array has the bytes that there
        is room for.
        """
        at, host, since, until = self._waits
        first = np.cumsum(self.paths.n_hops) - self.paths.n_hops
        is_own = np.array([pool.is_own for pool in self.plan.pools], dtype=bool)
        lies = np.isfinite(self.problem.storage_bytes[self.tail[first]])
        (others,) = (lies & ~is_own[self.paths.pool]).nonzero()
        first = first[others]
        row, store, room_bytes = _stores(
            self.problem,
            np.append(host, self.tail[first]),
            np.append(since, np.zeros_like(first)),
            np.append(until, self.paths.pieces[first]),
        )
        return np.append(self.path[at], others)[row], store, room_bytes


def _stores(
    problem: Problem, host: IntArray, since: IntArray, until: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return pairs of a row and a store, storage of a host after a piece of time, and their room.

    A row lies at a host after each piece from `since` on, up to the one before `until`.
    """
    counts = until - since
    key = ranges(since, counts) * problem.n_hosts + np.repeat(host, counts)
    keys, store = np.unique(key, return_inverse=True)
    row = np.repeat(np.arange(len(host)), counts)
    return row, store.ravel(), problem.storage_bytes[keys % problem.n_hosts]


def positions(paths: PathTable) -> IntArray:
    """Position of each hop, path after path, among consecutive hops of its piece of time."""
    begins = _begins(paths)
    hop = np.arange(len(begins))
    place: IntArray = hop - np.maximum.accumulate(np.where(begins, hop, 0))
    return place


def _begins(paths: PathTable) -> BoolArray:
    piece, path = paths.pieces, np.repeat(np.arange(len(paths)), paths.n_hops)
    new = np.ones(len(piece), dtype=bool)
    new[1:] = (piece[1:] != piece[:-1]) | (path[1:] != path[:-1])
    return new
