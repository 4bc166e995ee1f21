"""A case for the judge: a problem and a schedule, and what several rules need to know of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from datacollect.schedule.tolerances import TIME_TOLERANCE
from datacollect.schedule.use import Legs, legs

if TYPE_CHECKING:
    from datacollect.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.contents import ScheduleContents
    from datacollect.schedule.transfers import Route


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
    """What is to be judged. All but the two fields takes well-formed transfers for granted."""

    problem: Problem
    schedule: ScheduleContents

    @cached_property
    def legs(self) -> Legs:
        """The transfers' hosts, by index in the problem."""
        return legs(self.schedule, self.problem.names)

    @cached_property
    def slot(self) -> tuple[IntArray, IntArray]:
        """Slots in which transfers start, and slots before which they finish."""
        slot_s, columns = self.schedule.slot_s or 1.0, self.schedule.columns
        start, finish = np.rint(columns.start_s / slot_s), np.rint(columns.finish_s / slot_s)
        return start.astype(np.int64), finish.astype(np.int64)

    @cached_property
    def times_s(self) -> tuple[FloatArray, FloatArray]:
        """Starts and finishes; on a grid, equal instants are equal numbers."""
        slot_s, columns = self.schedule.slot_s, self.schedule.columns
        if slot_s is None:
            return columns.start_s, columns.finish_s
        start, finish = (slot.astype(np.float64) * slot_s for slot in self.slot)
        return start, finish

    @cached_property
    def rate_bytes_per_s(self) -> FloatArray:
        """Rate of each transfer."""
        start_s, finish_s = self.times_s
        return self.schedule.columns.n_bytes / (finish_s - start_s)

    @cached_property
    def noise_s(self) -> float:
        """How far instants may be apart that are meant to be the same."""
        return TIME_TOLERANCE * float(self.schedule.columns.finish_s.max(initial=0.0))

    @cached_property
    def handovers(self) -> Handovers:
        """Cut what arrives at relays, and what leaves them, into common ranges.

        Both sides are the same bytes. Sorted by route and offset they are one sequence of bytes,
        cut in two ways; the common ranges lie between all cuts. Hop by hop, since the bytes of
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
    """Write a route as its hosts, from the first to the destination."""
    return " -> ".join(repr(name) for name in route.hosts)


def byte_range(first: int, n_bytes: int) -> str:
    """Write a range of bytes by its first and last."""
    # Not in numpy's integers: what is described may be too large for them.
    return f"byte {first}" if n_bytes == 1 else f"bytes {first} to {int(first) + int(n_bytes) - 1}"


def counted(number: float, what: str) -> str:
    """Write a number of things."""
    return f"{number:.15g} {what}" if number == 1 else f"{number:.15g} {what}s"


def seconds(instant_s: float) -> str:
    """Write an instant or a duration with all digits that matter."""
    return f"{instant_s:.10g} s"
