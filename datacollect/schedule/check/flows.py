"""Flows: what the transfers that use a limit carry together, from instant to instant.

Instants count in steps, rates and capacities in bytes per step: slots, where a schedule has them,
so that instants on the grid are whole numbers, however late; else seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from datacollect.numbers.arrays import ranges, running_totals
from datacollect.schedule.data.tolerances import LIMIT_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray

# Rates of this multiple of the capacity, and more, are summed up apart.
BURST = 4.0
BURST_EXPONENTS = 20

# Rates that are above the capacity by the very tolerance are rounded by far less than this.
LIMIT_ROUNDED = LIMIT_TOLERANCE * (1 + 1e-9)

# Bytes per step: a slower capacity is as good as none.
SLOWEST = 1e-100


@dataclass(frozen=True, eq=False)
class CapacityKind:
    """Capacities of one kind: all links, say, or all uplinks.

    Attributes
    ----------
    name : callable
        Describes chain `i` in period `k`: ``name(i, k)``.
    edges : ndarray of float, shape (n_periods,)
        When capacities change; the first is 0.
    bytes_per_step : ndarray of float, shape (n_periods, n_chains)
    enough_bytes : float
        Larger capacities of a period count as this much.
    """

    name: Callable[[int, int], str]
    edges: FloatArray
    bytes_per_step: FloatArray
    enough_bytes: float

    @cached_property
    def _bytes_until_edge(self) -> FloatArray:
        carried = self.bytes_per_step[:-1] * np.diff(self.edges)[:, np.newaxis]
        # Lest one of many bytes takes digits from all that follow.
        carried = np.minimum(carried, self.enough_bytes)
        total: FloatArray = np.concatenate([np.zeros((1, carried.shape[1])), carried]).cumsum(
            axis=0
        )
        return total

    def only(self, chain: int) -> CapacityKind:
        """Return the same of one chain, which is chain 0 there."""
        name = self.name
        return replace(
            self,
            name=lambda _, period: name(chain, period),
            bytes_per_step=self.bytes_per_step[:, [chain]],
        )

    def room_bytes(self, chain: IntArray, start: FloatArray, finish: FloatArray) -> FloatArray:
        """Return what chains could carry between two instants; shape (n,)."""
        if len(self.edges) == 1:
            return np.asarray(self.bytes_per_step[0, chain] * (finish - start))
        first = np.searchsorted(self.edges, start, side="right") - 1
        last = np.maximum(np.searchsorted(self.edges, finish, side="left") - 1, first)
        # Apart what changes inside, so that an early bandwidth leaves no rounding behind.
        within = first == last
        behind = np.minimum(first + 1, len(self.edges) - 1)
        ends = np.where(within, finish, self.edges[behind])
        room = self.bytes_per_step[first, chain] * (ends - start)
        between = self._bytes_until_edge[last, chain] - self._bytes_until_edge[behind, chain]
        after = self.bytes_per_step[last, chain] * (finish - self.edges[last])
        return np.asarray(room + np.where(within, 0.0, between + after))


@dataclass(frozen=True, eq=False)
class Uses:
    """Transfers, cut where capacities change, and the capacity that each part uses.

    Arrays of shape (n_parts,), those of one transfer and one chain after each other.

    Attributes
    ----------
    of : ndarray of int64
        The use, that is transfer and chain, that it is a part of.
    chain, period : ndarray of int64
        What is used.
    start, finish : ndarray of float
    rate, capacity : ndarray of float
    """

    of: IntArray
    chain: IntArray
    period: IntArray
    start: FloatArray
    finish: FloatArray
    rate: FloatArray
    capacity: FloatArray

    @property
    def n_bytes(self) -> FloatArray:
        """Bytes of each part."""
        return self.rate * (self.finish - self.start)

    @property
    def excess_bytes(self) -> FloatArray:
        """Bytes of each part above what fits, it alone; below 0 where more would fit."""
        return _above(
            self.rate,
            self.capacity,
            self.finish - self.start,
            self.capacity * (self.finish - self.start),
        )


def cut(
    limit: CapacityKind, chain: IntArray, start: FloatArray, finish: FloatArray, rate: FloatArray
) -> Uses:
    """Cut transfers where capacities of their chains change."""
    edges = limit.edges
    if len(edges) == 1:
        every = np.arange(len(chain))
        capacity = limit.bytes_per_step[0, chain]
        return Uses(every, chain, np.zeros_like(every), start, finish, rate, capacity)
    first = np.searchsorted(edges, start, side="right") - 1
    last = np.searchsorted(edges, finish, side="left") - 1
    parts = last - first + 1
    of = np.repeat(np.arange(len(chain)), parts)
    period = ranges(first, parts)
    return Uses(
        of,
        chain[of],
        period,
        np.maximum(start[of], edges[period]),
        np.minimum(finish[of], np.append(edges[1:], np.inf)[period]),
        rate[of],
        limit.bytes_per_step[period, chain[of]],
    )


@dataclass(frozen=True, eq=False)
class Pieces:
    """Time, for each chain apart, in pieces in which nothing changes; arrays of shape (n_pieces,).

    Sorted by chain, then time. The last piece of each chain lasts no time.

    Attributes
    ----------
    chain, period : ndarray of int64
    is_first : ndarray of bool
        Where chains begin.
    start, finish : ndarray of float
    rate : ndarray of float
        All transfers together.
    n_active : ndarray of int64
        Transfers under way.
    excess_bytes : ndarray of float
        Bytes above what fits, below 0 where more would fit. Rates above the capacity by no more
        than the relative tolerance count as at the capacity.
    """

    chain: IntArray
    period: IntArray
    is_first: BoolArray
    start: FloatArray
    finish: FloatArray
    rate: FloatArray
    n_active: IntArray
    excess_bytes: FloatArray


def pieces(limit: CapacityKind, uses: Uses) -> Pieces:
    """Sum up the rates of all uses, from instant to instant."""
    # Rates relative to the capacity, each capacity apart: rounding at a fast link must not hide a
    # slow one.
    unit = np.where(uses.capacity > 0, np.maximum(uses.capacity, SLOWEST), 1.0)
    load = uses.rate / unit
    # Nor may a burst leave rounding behind: rates of different orders of magnitude are summed up
    # apart, and end when the last of them ends.
    _, exponent = np.frexp(load / BURST)
    order = np.maximum(exponent + BURST_EXPONENTS - 1, 0) // BURST_EXPONENTS
    n_periods = len(limit.edges)
    resource = uses.chain * n_periods + uses.period
    one = np.ones(len(load), dtype=np.int64)
    deltas: list[npt.NDArray[Any]] = []
    for magnitude in np.unique(order).tolist():
        part, count = load, one
        if (order != magnitude).any():
            part, count = (np.where(order == magnitude, values, 0) for values in (load, one))
        deltas += [np.concatenate([part, -part]), np.concatenate([count, -count])]
    resource_at, start, totals = running_totals(
        np.tile(resource, 2), np.concatenate([uses.start, uses.finish]), *deltas
    )
    total, n_active = np.zeros(len(start)), np.zeros(len(start), dtype=np.int64)
    for together, running in zip(totals[::2], totals[1::2], strict=True):
        total += np.where(running > 0, together, 0.0)
        n_active += running
    chain, period = np.divmod(resource_at, n_periods)
    is_first = np.ones(len(chain), dtype=bool)
    is_first[1:] = chain[1:] != chain[:-1]
    finish = start.copy()
    finish[:-1] = np.where(is_first[1:], start[:-1], start[1:])
    unit_at = np.ones(int(resource_at.max(initial=-1)) + 1)
    unit_at[resource] = unit
    capacity = limit.bytes_per_step[period, chain]
    rate = total * unit_at[resource_at]
    room = limit.room_bytes(chain, start, finish)
    excess = _above(rate, capacity, finish - start, room)
    return Pieces(chain, period, is_first, start, finish, rate, n_active, excess)


def _above(
    rate: FloatArray, capacity: FloatArray, lasts: FloatArray, room: FloatArray
) -> FloatArray:
    """Bytes above what fits; none where rates are above the capacity by the tolerance only."""
    over = rate - capacity > capacity * LIMIT_ROUNDED
    excess: FloatArray = np.where(
        over, (rate - capacity) * lasts, np.minimum(rate * lasts - room, 0.0)
    )
    return excess
