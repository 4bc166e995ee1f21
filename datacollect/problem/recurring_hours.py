"""Hours at which what recurs changes, as texts: ``"08:00"`` of every day, ``"Mo 08:00"`` of one.

Hours that belong together are all of every day, in a day's order, or all of days of the week, in a
week's order from Monday on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING

from datacollect.problem.windows import DAYS, EVERY_DAY, padded

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from datacollect.files.clock import Clock


_WEEK = tuple(day.capitalize() for day in DAYS)


def of_one_form(hour: str) -> str:
    """Return ``08:00`` for ``8:00`` and ``08:00:00``: texts of one instant are equal.

    In the order of texts they come in a day's order.
    """
    hour = padded(hour)
    return hour[:5] if hour[5:] == ":00" else hour


def day_and_hour(text: str) -> tuple[int | None, str]:
    """Return the day of the week, Monday 0, None for every day, and the hour.

    >>> day_and_hour("Tu 08:00"), day_and_hour("08:00")
    ((1, '08:00'), (None, '08:00'))
    """
    day, _, hour = text.rpartition(" ")
    return (_WEEK.index(day) if day else None), hour


def on_days(hour: str, days: Collection[int] = EVERY_DAY) -> list[str]:
    """Return an hour on each of some days of the week.

    >>> on_days("08:00", {5, 6})
    ['Sa 08:00', 'Su 08:00']
    """
    return [f"{_WEEK[day]} {hour}" for day in sorted(days)]


def are_of_days(hours: Iterable[str]) -> bool:
    """Return whether hours name days of the week."""
    return any(day_and_hour(hour)[0] is not None for hour in hours)


def in_order(hours: Iterable[str]) -> tuple[str, ...]:
    """Return hours that belong together: each once, on each day where any names its day.

    >>> in_order(["20:00", "08:00", "20:00"])
    ('08:00', '20:00')
    >>> in_order(["Sa 08:00", "20:00"])[-4:]
    ('Fr 20:00', 'Sa 08:00', 'Sa 20:00', 'Su 20:00')
    """
    every = set(hours)
    if are_of_days(every):
        of_each = {hour for hour in every if day_and_hour(hour)[0] is None}
        every = (every - of_each).union(*map(on_days, of_each))
    return tuple(sorted(every, key=_key))


def last_rows(hours: Sequence[str], every: Sequence[str]) -> list[int]:
    """Return which of `hours` is the last at each of `every`; before the first, the last.

    >>> last_rows(["08:00", "20:00"], ["Mo 00:00", "Mo 08:00", "Tu 21:00"])
    [1, 0, 1]
    """
    known = [_key(hour) for hour in hours]
    at = [_key(hour) if are_of_days(hours) else _key(day_and_hour(hour)[1]) for hour in every]
    return [(bisect_right(known, key) - 1) % len(known) for key in at]


def most_a_day(hours: Iterable[str]) -> int:
    """Return how many hours the day has that has most of them.

    >>> most_a_day(["08:00", "20:00"]), most_a_day(["Mo 08:00", "Mo 20:00", "Sa 00:00"])
    (2, 2)
    """
    return max(Counter(day_and_hour(hour)[0] for hour in hours).values(), default=0)


def starts_of(hours: Sequence[str], clock: Clock, until_s: float) -> tuple[list[float], list[int]]:
    """Return from when on which of the hours is the last, from 0 s until an instant.

    Of the week, where hours are those of days.

    Examples
    --------
    >>> from datacollect.files.clock import Clock
    >>> clock = Clock.of("2026-11-22T20:00", "Europe/Zurich")
    >>> starts_of(["08:00", "18:00"], clock, 86_400.0)
    ([0.0, 43200.0, 79200.0], [1, 0, 1])
    """
    of_days = [day_and_hour(hour) for hour in hours]
    each_day = {hour: clock.each_day(hour, until_s) for _, hour in of_days}
    # In the order of clocks: where these skip hours, or a day, all of them begin at one instant,
    # and the last is on from there.
    shown = sorted(
        (day, i, start)
        for i, (weekday, hour) in enumerate(of_days)
        for day, start in each_day[hour]
        if weekday is None or day.weekday() == weekday
    )
    at = {start: i for _, i, start in shown}
    starts = sorted(at)
    which = [at[start] for start in starts]
    if not starts or starts[0] > 0:
        first = (which[0] - 1) % len(hours) if which else len(hours) - 1
        starts, which = [0.0, *starts], [first, *which]
    return starts, which


def _key(hour: str) -> tuple[int, str]:
    day, hour = day_and_hour(hour)
    return (-1 if day is None else day), hour
