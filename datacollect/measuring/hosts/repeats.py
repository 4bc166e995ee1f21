"""Many repeats: the middle one, and between which they lie; a line through two sizes."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from datacollect.errors import TransferError
from datacollect.machine.parts import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Interval(NamedTuple):
    """The middle of some repeats, the least and the most."""

    value: float
    low: float
    high: float


class Line(NamedTuple):
    """Cost of each unit, and of each byte besides, in seconds."""

    s_per_unit: float
    s_per_byte: float

    def at(self, unit_bytes: float) -> float:
        """Return the seconds that a unit of so many bytes takes."""
        return self.s_per_unit + unit_bytes * self.s_per_byte


def interval_of(values: Sequence[float]) -> Interval:
    """Return the interval of some repeats, of which there must be one at least.

    >>> interval_of([3.0, 1.0, 2.0])
    Interval(value=2.0, low=1.0, high=3.0)
    """
    if not values:
        raise TransferError("nothing was measured in the given time; give more --seconds")
    return Interval(median(values), min(values), max(values))


def line_through(seconds: Mapping[int, float]) -> Line:
    """Return the line through what units of two sizes take; neither part of it is below 0.

    A larger unit that takes less, by chance, takes as much: no byte gives time back.

    >>> line_through({64: 2.0, 8192: 10.128})
    Line(s_per_unit=1.936, s_per_byte=0.001)
    >>> line_through({100: 1.0, 1000: 20.0})
    Line(s_per_unit=0.0, s_per_byte=0.02)
    """
    (small, few_s), (large, many_s) = sorted(seconds.items())
    per_byte = max((many_s - few_s) / (large - small), 0.0)
    per_unit = few_s - small * per_byte
    if per_unit < 0:
        return Line(0.0, many_s / large)
    return Line(per_unit, per_byte or many_s / large)


def per_gib(values: Sequence[float]) -> Interval:
    """Return an interval of seconds per 2**30 bytes, of seconds per byte."""
    return interval_of([value * GIB for value in values])
