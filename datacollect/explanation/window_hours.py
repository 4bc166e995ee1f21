"""Time windows as constraints: whose they are, how long they are open, and longer ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal, TypeAlias

from datacollect.files.units import counted
from datacollect.problem.calendar import unrolled
from datacollect.problem.open_links import OpenLinks, alike, open_links
from datacollect.problem.windows import MIDNIGHT, Window, spans_s, window_text

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
class WindowHours:
    """The windows of one host or link, or of all those that are open in the same hours.

    Attributes
    ----------
    name : str
    limits : tuple of OpenLinks
        All of them, alike: also those out of a host, and those into it.
    """

    name: str
    limits: tuple[OpenLinks, ...]


def hours_of(problem: Problem) -> tuple[WindowHours, ...]:
    """Return the windows that may be tried longer, those alike together, in the problem's order."""
    found = alike(() if problem.daily is None else problem.daily.windows)
    return tuple(WindowHours(_name(limits), tuple(limits)) for limits in found.values())


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
    return f"all {what} open {', '.join(map(window_text, limits[0].windows))}"


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
    return _with_windows(problem, number, lambda _: (Window(*ALL_DAY),))


def longer(window: Window, step_s: float, end: WindowEnd) -> tuple[Window, ...]:
    """Return windows for one that closes later, or opens earlier.

    A window lasts for less than a day: what it would last longer is another window beside it.

    Examples
    --------
    >>> longer(Window("20:00", "23:30"), 3600.0, "closes")[0].closes
    '00:30:00'
    >>> longer(Window("00:30", "06:00", frozenset({0})), 3600.0, "opens")  # Sunday at 23:30
    (Window(opens='23:30:00', closes='06:00', days=frozenset({6}), zone=None),)
    >>> longer(Window("03:00", "02:30", frozenset({1})), 3600.0, "closes")[1]
    Window(opens='02:30:00', closes='03:30:00', days=frozenset({2}), zone=None)
    """
    opens_s, closes_s = float(_second(window.opens)), float(_second(window.closes))
    lasts_s = (closes_s - opens_s - 1) % _DAY_S + 1
    if end == "closes":
        if lasts_s + step_s < _DAY_S:
            return (replace(window, closes=_hour(closes_s + step_s)),)
        days_on = int(opens_s + lasts_s >= _DAY_S)
        begins, ends = float(closes_s), closes_s + step_s
    else:
        if lasts_s + step_s < _DAY_S:
            days_on = -int(step_s > opens_s)  # its day is that on which it opens
            return (replace(window, opens=_hour(opens_s - step_s), days=_later(window, days_on)),)
        days_on = -int(step_s > opens_s)
        begins, ends = opens_s - step_s, opens_s
    beside = replace(window, opens=_hour(begins), closes=_hour(ends), days=_later(window, days_on))
    return window, beside


def _later(window: Window, days: int) -> frozenset[int]:
    return frozenset((day + days) % 7 for day in window.days)


def _with_windows(
    problem: Problem, number: int, changed: Callable[[Window], tuple[Window, ...]]
) -> Problem:
    daily, clock = problem.daily, problem.clock
    assert daily is not None
    assert clock is not None
    own = hours_of(problem)[number].limits
    windows = tuple(
        replace(limit, windows=tuple(chain.from_iterable(map(changed, limit.windows))))
        if limit in own
        else limit
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
