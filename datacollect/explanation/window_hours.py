"""Time windows as constraints: whose they are, how long they are open, and longer ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from datacollect.files.units import counted
from datacollect.problem.calendar import listed, unrolled
from datacollect.problem.open_links import OpenLinks, open_links
from datacollect.problem.windows import DAYS, EVERY_DAY, MIDNIGHT, Window, spans_s

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.numbers.arrays import BoolArray, FloatArray
    from datacollect.problem.problem import Problem

_DAY_S = 86_400

# Which end of a window moves when it is longer, and by how much each time.
WindowEnd: TypeAlias = Literal["closes", "opens"]
ENDS: tuple[WindowEnd, ...] = ("closes", "opens")
STEP_S = 3600.0
ALL_DAY = ("00:00", MIDNIGHT)


@dataclass(frozen=True)
class Hours:
    """The windows of one host or link, or of all those that are open in the same hours.

    Attributes
    ----------
    name : str
    limits : tuple of OpenLinks
        All of them, alike: also those out of a host, and those into it.
    """

    name: str
    limits: tuple[OpenLinks, ...]


def hours_of(problem: Problem) -> tuple[Hours, ...]:
    """Return the windows that may be tried longer, those alike together, in the problem's order."""
    found: dict[tuple[Window, ...], list[OpenLinks]] = {}
    for limit in () if problem.daily is None else problem.daily.windows:
        found.setdefault(limit.windows, []).append(limit)
    return tuple(
        Hours(_name(limits), tuple(limits))
        for limits in found.values()
        if _rates_are_known(problem, limits)
    )


def _rates_are_known(problem: Problem, limits: list[OpenLinks]) -> bool:
    """Whether it is known what their links carry at all hours.

    A problem keeps what links carry while they are open. Where rates follow hours of the day, one
    that is never open in some of these hours has none there, and opening it would gain nothing.
    """
    daily, clock = problem.daily, problem.clock
    assert daily is not None
    assert clock is not None
    if len(daily.hours) < 2:
        return True
    starts_s, which = listed(daily, clock)
    is_theirs = ~open_links(limits, problem, clock, starts_s, daily.until_s).all(axis=0)
    rates = problem.bandwidth_bytes_per_s[:, is_theirs]
    of_hours = np.array([rates[which == i].max(axis=0) for i in range(len(daily.hours))])
    return bool(((of_hours > 0) | (of_hours.max(axis=0) == 0)).all())


def _name(limits: list[OpenLinks]) -> str:
    """Name a host or a link; of several say how many, and their hours."""
    owners = dict.fromkeys(
        tuple(host for host in (limit.from_host, limit.to_host) if host is not None)
        for limit in limits
    )
    if len(owners) == 1:
        (ends,) = owners
        return f"{'link ' * (len(ends) == 2)}{' -> '.join(map(repr, ends))}"
    n_links = sum(len(ends) == 2 for ends in owners)
    parts = ((n_links, "link"), (len(owners) - n_links, "host"))
    what = " and ".join(counted(number, noun) for number, noun in parts if number)
    return f"all {what} open {', '.join(map(_text, limits[0].windows))}"


def _text(window: Window) -> str:
    """Write a window as files do."""
    days = " ".join(DAYS[day].title() for day in sorted(window.days))
    parts = ("" if window.days == EVERY_DAY else days, f"{window.opens}-{window.closes}")
    return " ".join(part for part in (*parts, window.zone) if part)


def open_s(problem: Problem, number: int, from_s: float, to_s: float) -> float:
    """Return for how long windows are open between two instants."""
    assert problem.clock is not None
    windows = hours_of(problem)[number].limits[0].windows
    return sum(
        max(0.0, min(end, to_s) - max(begin, from_s))
        for begin, end in spans_s(windows, problem.clock, to_s)
    )


def closed_links(problem: Problem, number: int, starts_s: FloatArray, until_s: float) -> BoolArray:
    """Mark the links that windows close, in periods that start at `starts_s`."""
    assert problem.clock is not None
    limits = hours_of(problem)[number].limits
    return ~open_links(limits, problem, problem.clock, starts_s, until_s)


def with_longer(problem: Problem, number: int, step_s: float, end: WindowEnd) -> Problem:
    """Return the problem with windows that close later, or open earlier, by this time each."""
    return _with_windows(problem, number, lambda window: longer(window, step_s, end))


def without(problem: Problem, number: int) -> Problem:
    """Return the problem with windows open all day, every day."""
    return _with_windows(problem, number, lambda _: Window(*ALL_DAY))


def longer(window: Window, step_s: float, end: WindowEnd) -> Window:
    """Return a window that closes later, or opens earlier, at most all of its days.

    Examples
    --------
    >>> longer(Window("20:00", "23:30"), 3600.0, "closes").closes
    '00:30:00'
    >>> longer(Window("00:30", "06:00", frozenset({0})), 3600.0, "opens")  # Sunday at 23:30
    Window(opens='23:30:00', closes='06:00', days=frozenset({6}), zone=None)
    >>> longer(Window("00:10", "23:50"), 3600.0, "closes")
    Window(opens='00:00', closes='24:00', days=frozenset({0, 1, 2, 3, 4, 5, 6}), zone=None)
    """
    opens_s, closes_s = _second(window.opens), _second(window.closes)
    lasts_s = (closes_s - opens_s - 1) % _DAY_S + 1
    if lasts_s + step_s >= _DAY_S:
        return replace(window, opens=ALL_DAY[0], closes=ALL_DAY[1])
    if end == "closes":
        return replace(window, closes=_hour(closes_s + step_s))
    days_before = int(step_s > opens_s)  # its day is that on which it opens
    days = frozenset((day - days_before) % 7 for day in window.days)
    return replace(window, opens=_hour(opens_s - step_s), days=days)


def _with_windows(problem: Problem, number: int, changed: Callable[[Window], Window]) -> Problem:
    daily, clock = problem.daily, problem.clock
    assert daily is not None
    assert clock is not None
    own = hours_of(problem)[number].limits
    windows = tuple(
        replace(limit, windows=tuple(map(changed, limit.windows))) if limit in own else limit
        for limit in daily.windows
    )
    daily = replace(daily, windows=windows)
    return problem.replace(**unrolled(problem, daily, clock, daily.until_s))


def _hour(second: float) -> str:
    minutes, seconds = divmod(round(second) % _DAY_S, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"


def _second(hour: str) -> int:
    parts = [int(part) for part in hour.split(":")]
    return sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
