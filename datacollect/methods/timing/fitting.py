"""Rounding of a fluid plan's paths to whole bytes that capacities carry.

Flows are counted in whole units. Of 2**62 bytes a unit is some bytes, so a slow link may get a few
more than it can carry in a short piece of time: they go where the other data of their pool go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.routes.path_table import whole_bytes_of_paths
from datacollect.methods.timing.hop_uses import crosses_twice
from datacollect.methods.timing.tolerances import SAME_LOAD, TOLERATED

if TYPE_CHECKING:
    from datacollect.methods.timing.hop_uses import FluidHops
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray


def fluid_bytes(hops: FluidHops) -> FloatArray:
    """Return how much each path carries, in proportion to its amount; shape (n_paths,)."""
    if hops.plan.is_whole:
        return hops.paths.amount.astype(float)
    sizes = np.array([pool.n_bytes for pool in hops.plan.pools], dtype=float)
    pool = hops.paths.pool
    amount = hops.paths.amount.astype(float)
    amount *= (sizes / np.bincount(pool, amount, minlength=len(sizes)))[pool]
    amount = _within_capacities(hops, amount)
    return _rounded_where_crossed_twice(hops, amount)


def _within_capacities(hops: FluidHops, amount: FloatArray) -> FloatArray:
    """Take from paths what capacities cannot carry; their pools' largest paths take it over.

    A part of a unit too many in each of many periods adds up to bytes: it goes too, where the
    largest path does not notice. So does what makes room for those that did.
    """
    for slack_bytes, most in ((0.0, TOLERATED), (0.5, np.inf), (0.0, TOLERATED)):
        hop, resource, room_bytes = hops.use
        path = hops.path[hop]
        load = np.bincount(resource, amount[path], minlength=len(room_bytes))
        over = load > np.maximum(room_bytes * (1 + SAME_LOAD), room_bytes + slack_bytes)
        if over.any():
            part = np.ones(len(amount))
            crosses = over[resource]
            np.minimum.at(part, path[crosses], (room_bytes / load)[resource[crosses]])
            amount = _given_to_the_largest(hops, amount, amount * part, most)
    return amount


def _rounded_where_crossed_twice(hops: FluidHops, amount: FloatArray) -> FloatArray:
    """Round down what crosses some shared bottleneck more than once, where others take it over.

    Rounding may put a route a byte ahead of its share, which is a byte at each crossing; a
    bottleneck has one byte of tolerance for each route.
    """
    twice = crosses_twice(hops.problem, hops.path, hops.tail, hops.head, len(hops.paths))
    if not twice.any():
        return amount
    whole = np.where(twice, np.floor(amount), amount)
    return _given_to_the_largest(hops, amount, whole, TOLERATED, preferred=~twice)


def _given_to_the_largest(
    hops: FluidHops,
    amount: FloatArray,
    left: FloatArray,
    most: float,
    preferred: BoolArray | None = None,
) -> FloatArray:
    """Let the largest path of each pool take over what its paths do not carry any more.

    The largest preferred one, where there is one. Pools stay as they are where that is more than
    the part `most` of what it carries.
    """
    pool = hops.paths.pool
    order = np.lexsort((left, pool) if preferred is None else (left, preferred, pool))
    largest = order[np.flatnonzero(np.diff(pool[order], append=-1))]
    missing = np.bincount(pool, amount - left, minlength=len(hops.plan.pools))[pool[largest]]
    takes = missing <= most * left[largest]
    taken = left.copy()
    taken[largest] += missing
    of_pool = np.zeros(len(hops.plan.pools), dtype=bool)
    of_pool[pool[largest[takes]]] = True
    return np.where(of_pool[pool], taken, amount)


def whole_bytes(hops: FluidHops, amount: FloatArray, lengths_s: FloatArray) -> IntArray:
    """Round what paths carry, pool by pool.

    Of each pool the path that arrives last carries a byte at least: no pool's data arrive sooner
    than planned by rounding. If several do at once, one that carries most.

    Parameters
    ----------
    hops : FluidHops
        Paths sorted by pool; those along the same hosts are neighbours, in the order of time.
    amount : ndarray of float, shape (n_paths,)
    lengths_s : ndarray of float, shape (n_hops,)
        How long each hop takes.
    """
    paths, plan = hops.paths, hops.plan
    if plan.is_whole:
        return paths.amount.astype(np.int64)
    last_hop = np.cumsum(paths.n_hops) - 1
    arrival_s = plan.starts_s[paths.pieces[last_hop]] + lengths_s[last_hop]
    order = np.lexsort((amount, arrival_s, paths.pool))
    last = order[np.flatnonzero(np.diff(paths.pool[order], append=-1))]
    sizes = [pool.n_bytes for pool in plan.pools]
    n_bytes = whole_bytes_of_paths(sizes, replace(paths, amount=amount), last)
    if np.isinf(hops.problem.storage_bytes).all():
        return n_bytes
    return _within_stores(hops, amount, n_bytes, last)


def _within_stores(
    hops: FluidHops, amount: FloatArray, n_bytes: IntArray, last: IntArray
) -> IntArray:
    """Move single bytes from paths that meet in a full store to others of their pools.

    Each path remains within a byte of its amount. What is in a store fits before rounding, so where
    it does not afterwards, some pool has too much there and too little elsewhere. Which of its
    paths takes over matters to other stores and to links: one that no full store holds, if there
    is one, and of these one whose route gets least ahead of what it should carry.
    """
    path, store, room_bytes = hops.stored
    most = np.floor(room_bytes)
    # The last path of each pool keeps a byte, see `whole_bytes`.
    least = np.zeros(len(n_bytes))
    least[last] = 1
    way, n_bytes = hops.paths.routes(hops.problem.n_hosts)[1], n_bytes.copy()
    for _ in range(len(n_bytes)):
        load = np.bincount(store, n_bytes[path], len(most))
        if (load <= most).all():
            break
        inside = np.zeros(len(n_bytes), dtype=bool)
        inside[path[store == int((load - most).argmax())]] = True
        crowded = np.zeros(len(n_bytes), dtype=bool)
        crowded[path[(load >= most)[store]]] = True
        giver, taker = _pairs(
            hops.paths.pool,
            inside & (n_bytes > np.maximum(amount, least)),
            ~inside & (n_bytes < amount),
        )
        if len(giver) == 0:
            break
        ahead = np.bincount(way, n_bytes - amount)[way]
        then = ahead[taker] + (way[giver] != way[taker])
        best = np.lexsort((-ahead[giver], then, crowded[taker]))[0]
        n_bytes[giver[best]] -= 1
        n_bytes[taker[best]] += 1
    return n_bytes


def _pairs(pool: IntArray, gives: BoolArray, takes: BoolArray) -> tuple[IntArray, IntArray]:
    """Return all pairs of paths of one pool, one that gives and one that takes."""
    givers, takers = np.flatnonzero(gives), np.flatnonzero(takes)
    row, column = np.nonzero(pool[givers][:, np.newaxis] == pool[takers])
    return givers[row], takers[column]
