"""A case for the judge: a problem and a schedule, and what several rules need to know of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from datacollect.files.kinds import shown
from datacollect.schedule.data.tolerances import LOST_IN_COMPARING, WRITTEN
from datacollect.schedule.data.use import Legs, legs

if TYPE_CHECKING:
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.contents import ScheduleContents
    from datacollect.schedule.data.transfers import Route

# Bytes per step: faster is as good as infinite.
FASTEST = 1e200

# More slots have no number of their own among doubles.
MOST_SLOTS = 2.0**53

# Of a route, in a message.
MOST_HOSTS_SHOWN = 20


@dataclass(frozen=True, eq=False)
class Handovers:
    """Byte ranges that arrive at a relay in one transfer and leave it in another.

    Arrays of shape (n_ranges,): rows of both transfers, first byte and size of the range.
    """

    arrives: IntArray
    leaves: IntArray
    first_byte: IntArray
    n_bytes: IntArray


@dataclass(frozen=True, eq=False)
class Case:
    """Case to be judged. All but the two fields takes well-formed transfers for granted."""

    problem: Problem
    schedule: ScheduleContents

    @cached_property
    def legs(self) -> Legs:
        """The transfers' hosts, by index in the problem."""
        return legs(self.schedule, self.problem.names)

    @property
    def step_s(self) -> float:
        """Return what the judge measures time in: slots, else seconds."""
        return 1.0 if self.schedule.slot_s is None else self.schedule.slot_s

    @cached_property
    def times(self) -> tuple[FloatArray, FloatArray]:
        """Starts and finishes in steps; on a grid whole numbers, and equal ones where it is one."""
        columns = self.schedule.columns
        if self.schedule.slot_s is None:
            # Next to time 0 instants lie closer than rates can resolve.
            lasting_s = columns.start_s + columns.n_bytes / FASTEST
            return columns.start_s, np.maximum(columns.finish_s, lasting_s)
        return np.rint(columns.start_s / self.step_s), np.rint(columns.finish_s / self.step_s)

    @cached_property
    def slot(self) -> tuple[IntArray, IntArray]:
        """Slots in which transfers start, and slots before which they finish."""
        start, finish = self.times
        return start.astype(np.int64), finish.astype(np.int64)

    def slots_around(self, instant_s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the last slot's boundary at or before instants, and the first at or after them.

        An instant is at a boundary if both can be the same decimal: the instant and the slot's
        length were rounded to a double each.
        """
        slot_s, instant = np.longdouble(self.step_s), np.asarray(instant_s, np.longdouble)
        with np.errstate(over="ignore"):
            number = np.minimum(instant / slot_s, MOST_SLOTS)
        nearest = np.rint(number)
        off, written = np.abs(instant - nearest * slot_s), instant * WRITTEN
        is_it = off <= written
        for row in np.flatnonzero(np.abs(off - written) <= instant * LOST_IN_COMPARING):
            at, point = Fraction(instant_s[row]), int(nearest[row]) * Fraction(self.step_s)
            is_it[row] = abs(at - point) <= at * Fraction(WRITTEN)
        # Behind the last slot that floats can represent, nothing is scheduled.
        low, high = (np.where(is_it, nearest, at) for at in (np.floor(number), np.ceil(number)))
        return low.astype(np.float64), high.astype(np.float64)

    @cached_property
    def handovers(self) -> Handovers:
        """Cut what arrives at relays, and what leaves them, into common ranges.

        Both sides are the same bytes. Sorted by route and offset they are one sequence of bytes,
        cut twice; the common ranges lie between all cuts. Hop by hop, since the bytes of
        all hops together may be too many for 64 bits.
        """
        columns, where = self.schedule.columns, self.legs
        order = np.lexsort((columns.offset_bytes, where.route))
        parts = [np.zeros((4, 0), dtype=np.int64)]
        for hop in range(1, int(where.n_hops.max(initial=0))):
            arriving = order[(where.hop[order] == hop - 1) & ~where.is_last[order]]
            leaving = order[where.hop[order] == hop]
            cuts_in, cuts_out = (np.cumsum(columns.n_bytes[row]) for row in (arriving, leaving))
            ends = np.union1d(cuts_in, cuts_out)
            begins = np.concatenate([[0], ends[:-1]])
            at = np.searchsorted(cuts_in, begins, side="right")
            arrives = arriving[at]
            leaves = leaving[np.searchsorted(cuts_out, begins, side="right")]
            within = begins - (cuts_in[at] - columns.n_bytes[arrives])
            first_byte = columns.offset_bytes[arrives] + within
            parts.append(np.stack([arrives, leaves, first_byte, ends - begins]))
        return Handovers(*np.concatenate(parts, axis=1))

    def describe(self, row: int) -> str:
        """Name a transfer by its bytes, hop, route and time."""
        columns = self.schedule.columns
        route = self.schedule.routes[columns.route[row]]
        return (
            f"{byte_range(columns.offset_bytes[row], columns.n_bytes[row])} of {route.source!r}, "
            f"hop {columns.hop[row]} of route {describe_route(route)}, from "
            f"{seconds(columns.start_s[row])} to {seconds(columns.finish_s[row])}"
        )


def first_true(bad: BoolArray) -> int | None:
    """Return the index of the first true element, or None."""
    return int(np.argmax(bad)) if bad.any() else None


def describe_route(route: Route) -> str:
    """Write a route as its hosts, from the first to the destination; the ends of a long one."""
    names = [shown(name) for name in route.hosts]
    left_out = len(names) - MOST_HOSTS_SHOWN
    if left_out > 0:
        half = MOST_HOSTS_SHOWN // 2
        names[half:-half] = [f"({left_out} more)"]
    return " -> ".join(names)


def byte_range(first: int, n_bytes: int) -> str:
    """Write a range of bytes by its first and last."""
    if n_bytes == 0:
        return f"no bytes from {first} on"
    # Not in numpy's integers: what is described may be too large for them.
    return f"byte {first}" if n_bytes == 1 else f"bytes {first} to {int(first) + int(n_bytes) - 1}"


def counted(number: float, what: str) -> str:
    """Write a number of things."""
    return f"{number:.15g} {what}" if number == 1 else f"{number:.15g} {what}s"


def seconds(instant_s: float) -> str:
    """Write an instant or a duration with all digits that matter."""
    return f"{instant_s:.10g} s"
