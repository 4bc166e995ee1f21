"""The axis of time: a fitting unit, and what clocks show."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.files.clock import Clock

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400
# Of the day, or whole days: what clocks show at ticks is round.
STEPS_S = (
    *(1, 5, 15, 30, _MINUTE_S, 5 * _MINUTE_S, 15 * _MINUTE_S, 30 * _MINUTE_S),
    *(_HOUR_S, 2 * _HOUR_S, 3 * _HOUR_S, 6 * _HOUR_S, 12 * _HOUR_S),
    *(_DAY_S, 2 * _DAY_S, 7 * _DAY_S, 14 * _DAY_S, 28 * _DAY_S, 91 * _DAY_S, 364 * _DAY_S),
)
MOST_TICKS = 9
# Clocks change twice a year at most; of many years not every change is looked for.
_LOOK_EACH_S, _MOST_LOOKS = 7 * _DAY_S, 4000


class Offset(NamedTuple):
    """Offset of clocks: from an instant of a plan on, so many seconds ahead of UTC."""

    at_s: float
    ahead_s: float


class ClockTick(NamedTuple):
    """A tick at an instant of a plan: the time of day, empty for whole days, and the new day."""

    at_s: float
    time: str
    day: str


def time_unit(end_s: float) -> tuple[float, str]:
    """Return the unit in which an axis up to an instant reads best: its seconds, its name.

    >>> time_unit(12_000.0), time_unit(20_000.0)
    ((60.0, 'min'), (3600.0, 'h'))
    """
    for unit_s, unit in ((86_400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s")):
        if end_s >= 5 * unit_s:
            return unit_s, unit
    return (1.0, "s") if end_s >= 0.5 else (1e-3, "ms")


def offsets(clock: Clock, end_s: float) -> tuple[Offset, ...]:
    """Return from when on clocks are how far ahead of UTC, from 0 s to an instant.

    None where no calendar reaches that instant.

    Examples
    --------
    In the night of 29 March 2026 clocks in Zurich skip the hour from 2:00 on, 14 h after 12:00:

    >>> from datacollect.files.clock import Clock
    >>> offsets(Clock.of("2026-03-28T12:00", "Europe/Zurich"), 86_400.0)
    (Offset(at_s=0.0, ahead_s=3600.0), Offset(at_s=50400.0, ahead_s=7200.0))
    """
    try:
        ahead_s = [_ahead_s(clock, 0.0), _ahead_s(clock, end_s)]
    except ProblemError:
        return ()
    found = [Offset(0.0, ahead_s[0])]
    step_s = max(_LOOK_EACH_S, end_s / _MOST_LOOKS)
    before_s = 0.0
    while before_s < end_s:
        after_s = min(before_s + step_s, end_s)
        if _ahead_s(clock, after_s) != found[-1].ahead_s:
            found.append(_change(clock, before_s, after_s))
        before_s = after_s
    return tuple(found)


# Parts of a step between ticks that no picture shows.
ROUNDING = 1e-9


def clock_ticks(
    clock: Clock, end_s: float, begin_s: float = 0.0, most: int = MOST_TICKS
) -> list[ClockTick]:
    """Return at most `most` ticks at round clock times; none where no calendar reaches the end.

    Examples
    --------
    >>> from datacollect.files.clock import Clock
    >>> ticks = clock_ticks(Clock.of("2026-11-22T20:00", "Europe/Zurich"), 36_000.0, most=5)
    >>> [(tick.at_s / 3600, tick.time, tick.day) for tick in ticks[:3]]
    [(1.0, '21:00', 'Sun 22 Nov'), (4.0, '00:00', 'Mon 23 Nov'), (7.0, '03:00', '')]
    """
    known = offsets(clock, end_s)
    if not known:
        return []
    span_s = end_s - begin_s
    step_s = next((step for step in STEPS_S if span_s / step < most), None)
    if step_s is None:
        years = 1 + int(span_s / (STEPS_S[-1] * most))
        step_s = years * STEPS_S[-1]
    ticks, last_day = [], ""
    ends_s = [offset.at_s for offset in known[1:]] + [end_s]
    epoch_s = clock.moment(0.0).timestamp()
    for (from_s, ahead_s), to_s in zip(known, ends_s, strict=True):
        local_s = epoch_s + max(from_s, begin_s) + ahead_s
        first_s = -(-local_s // step_s) * step_s - epoch_s - ahead_s
        # A plan may end a rounding error before its deadline, which is a round time.
        count = math.floor((to_s - first_s) / step_s + ROUNDING) + 1
        for i in range(max(count, 0)):
            at_s = first_s + i * step_s
            if at_s >= to_s and to_s < end_s:
                continue  # it is the first of the next stretch
            shown = clock.moment(at_s)
            day = f"{shown:%a} {shown.day} {shown:%b}" + (
                f" {shown.year}" if step_s > 300 * _DAY_S else ""
            )
            time = (
                ""
                if step_s >= _DAY_S
                else f"{shown:%H:%M:%S}"
                if step_s < _MINUTE_S
                else f"{shown:%H:%M}"
            )
            ticks.append(ClockTick(at_s, time, "" if day == last_day else day))
            last_day = day
    return ticks


def _ahead_s(clock: Clock, at_s: float) -> float:
    return (clock.moment(at_s).utcoffset() or timedelta()).total_seconds()


def _change(clock: Clock, before_s: float, after_s: float) -> Offset:
    """Return the change of clocks between two instants, to the second."""
    old = _ahead_s(clock, before_s)
    while after_s - before_s > 0.5:
        middle_s = (before_s + after_s) / 2
        if _ahead_s(clock, middle_s) == old:
            before_s = middle_s
        else:
            after_s = middle_s
    return Offset(float(round(after_s)), _ahead_s(clock, after_s))
