"""Time windows as constraints: whose they are, how long they are open, and longer ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from datacollect.problem.calendar import unrolled
from datacollect.problem.windows import MIDNIGHT, OpenLinks, Window, open_links, spans_s

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.numbers.arrays import BoolArray, FloatArray
    from datacollect.problem.problem import Problem

_DAY_S = 86_400
ALL_DAY = ("00:00", MIDNIGHT)


@dataclass(frozen=True)
class Hours:
    """The windows of one host, or of one link.

    Attributes
    ----------
    name : str
    limits : tuple of OpenLinks
        All of them, alike: those out of the host, and those into it.
    """

    name: str
    limits: tuple[OpenLinks, ...]


def hours_of(problem: Problem) -> tuple[Hours, ...]:
    """Return all windows, a host's together, in the problem's order."""
    found: dict[str, list[OpenLinks]] = {}
    for limit in () if problem.daily is None else problem.daily.windows:
        ends = [host for host in (limit.from_host, limit.to_host) if host is not None]
        name = " -> ".join(map(repr, ends))
        found.setdefault(f"link {name}" if len(ends) == 2 else name, []).append(limit)
    return tuple(Hours(name, tuple(limits)) for name, limits in found.items())


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


def with_longer(problem: Problem, number: int, step_s: float) -> Problem:
    """Return the problem with windows that close so much later, each time."""
    return _with_windows(problem, number, lambda window: longer(window, step_s))


def without(problem: Problem, number: int) -> Problem:
    """Return the problem with windows open all day, every day."""
    return _with_windows(problem, number, lambda _: Window(*ALL_DAY))


def longer(window: Window, step_s: float) -> Window:
    """Return a window that closes later, at most all of its days.

    Examples
    --------
    >>> longer(Window("20:00", "23:30"), 3600.0).closes
    '00:30:00'
    >>> longer(Window("00:10", "23:50"), 3600.0)
    Window(opens='00:00', closes='24:00', days=frozenset({0, 1, 2, 3, 4, 5, 6}), zone=None)
    """
    opens_s, closes_s = _second(window.opens), _second(window.closes)
    lasts_s = (closes_s - opens_s - 1) % _DAY_S + 1
    if lasts_s + step_s >= _DAY_S:
        return replace(window, opens=ALL_DAY[0], closes=ALL_DAY[1])
    minutes, seconds = divmod(round(closes_s + step_s) % _DAY_S, 60)
    return replace(window, closes=f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}")


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


def _second(hour: str) -> int:
    parts = [int(part) for part in hour.split(":")]
    return sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
