"""Clock times in problem files: they become seconds, and periods of the day are unrolled.

Bandwidths that follow the hours of the day recur for ever; a problem has a list of periods. They
are unrolled over days enough, by a rule that depends on the file alone, and further where a plan
takes longer: `unrolled`.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.clock import Clock
from datacollect.errors import ProblemError
from datacollect.kinds import in_order, join, wrong
from datacollect.problem.hosts import DailyPeriods

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacollect.arrays import FloatArray, IntArray
    from datacollect.problem.contents import ProblemContents

DAY_S = 86_400.0

# More than anybody plans for; more periods than solvers like to see.
MOST_PERIODS = 20_000


def clock_of(values: Mapping[str, Any]) -> Clock | None:
    """Return the clock that ``start`` and ``timezone`` of a file set; None without a start."""
    if values["start"] is None:
        for key in ("timezone", "daily_periods"):
            if values[key] is not None:
                raise ProblemError(
                    f"{key} needs start, the clock time of 0 s; add start = 2026-11-22T20:00:00"
                )
        return None
    return Clock.of(values["start"], values["timezone"])


def seconds(value: float | str, clock: Clock | None, place: str) -> float:
    """Return an instant that a file gives in seconds or as clock time."""
    if not isinstance(value, str):
        return value
    if clock is None:
        raise ProblemError(
            f"{place}: a clock time needs start, the clock time of 0 s, got '{value}'; add "
            "start = 2026-11-22T20:00:00+01:00, or write seconds"
        )
    return clock.seconds(value, place)


def releases(hosts: Mapping[str, Mapping[str, Any]], clock: Clock | None) -> FloatArray:
    """Return every host's release in seconds."""
    return np.array(
        [
            seconds(host["release_s"], clock, join(join("hosts", name), "release_s"))
            for name, host in hosts.items()
        ],
        dtype=float,
    )


def period_starts(values: Mapping[str, Any], clock: Clock | None) -> list[float] | None:
    """Return the starts of periods in seconds; None where there is one period only."""
    given = values["periods_s"]
    if given is None:
        return None
    starts = [seconds(start, clock, f"periods_s[{i}]") for i, start in enumerate(given)]
    return in_order(starts, "periods_s")


def daily_hours(values: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the hours at which periods of the day start, in order."""
    hours = values["daily_periods"]
    if hours is None:
        return None
    if values["periods_s"] is not None:
        raise ProblemError("periods_s and daily_periods exclude each other; give one of them")
    padded = [hour.zfill(len(hour) + (hour.index(":") < 2)) for hour in hours]
    for i, (one, two) in enumerate(pairwise(padded)):
        if two <= one:
            rule = f"must be later than {hours[i]}, the one before it"
            raise wrong(f"daily_periods[{i + 1}]", rule, hours[i + 1], "list them in a day's order")
    return tuple(hours)


def unroll(hours: Sequence[str], clock: Clock, until_s: float) -> tuple[list[float], IntArray]:
    """Return the starts of periods until an instant, and which period of the day each is.

    Examples
    --------
    >>> clock = Clock.of("2026-11-22T20:00", "Europe/Zurich")
    >>> starts, which = unroll(["08:00", "18:00"], clock, 86_400.0)
    >>> [start / 3600 for start in starts], which.tolist()
    ([0.0, 12.0, 22.0], [1, 0, 1])
    """
    # In the order of clocks: where these skip hours, or a day, all of them begin at one instant,
    # and the last is on from there.
    shown = sorted(
        (day, i, start)
        for i, hour in enumerate(hours)
        for day, start in clock.each_day(hour, until_s)
    )
    at = {start: i for _, i, start in shown}
    starts = sorted(at)
    which = [at[start] for start in starts]
    if not starts or starts[0] > 0:
        first = (which[0] - 1) % len(hours) if which else len(hours) - 1
        starts, which = [0.0, *starts], [first, *which]
    return starts, np.array(which, dtype=np.int64)


def unrolled(
    contents: ProblemContents, hours: Sequence[str], clock: Clock, until_s: float
) -> dict[str, Any]:
    """Return periods and bandwidths, unrolled so far, of what has a row for each daily period.

    What is unrolled already may be unrolled again: every row of a day is in it.
    """
    until_s = min(until_s, MOST_PERIODS // len(hours) * DAY_S)
    rows = np.arange(len(hours))
    if contents.daily is not None:
        _, which = unroll(hours, clock, contents.daily.until_s)
        rows = np.array([int(np.argmax(which == i)) for i in rows])
    starts, which = unroll(hours, clock, until_s)
    return {
        "periods_s": np.array(starts),
        "bandwidth_bytes_per_s": contents.bandwidth_bytes_per_s[rows[which]],
        "daily": DailyPeriods(tuple(hours), until_s),
    }


def listed_until(contents: ProblemContents, at_s: float) -> dict[str, Any]:
    """Return what changes where daily periods are listed until an instant; nothing, where they are.

    Days are doubled until they are enough, so that all who ask for about the same get the same.
    """
    daily, clock = contents.daily, contents.clock
    if daily is None or clock is None or at_s <= daily.until_s:
        return {}
    until_s = daily.until_s
    while until_s < at_s:
        until_s *= 2
    changes = unrolled(contents, daily.hours, clock, until_s)
    return {} if changes["daily"] == daily else changes


def enough_s(contents: ProblemContents) -> float:
    """Return a time by which plans end, most likely: all data of a source over its way alone.

    Twice the longest of what one source's direct link, or the links into the destination together,
    need at the mean of the day's rates; whole days, at least two. It depends on the problem alone.
    """
    rate = contents.bandwidth_bytes_per_s.mean(axis=0)
    destination = contents.names.index(contents.destination)
    into = contents.link_to == destination
    total = float(rate[into].sum())
    down = contents.downlink_bytes_per_s[destination]
    needed = (
        [float(contents.backlog_bytes.sum()) / min(total, down)] if min(total, down) > 0 else []
    )
    for link in np.flatnonzero(into).tolist():
        backlog = float(contents.backlog_bytes[contents.link_from[link]])
        if rate[link] > 0 and backlog:
            needed.append(min(backlog / float(rate[link]), 14 * DAY_S))
    longest = 2 * max(needed, default=0.0) + float(contents.release_s.max(initial=0.0))
    return max(2.0, math.ceil(longest / DAY_S)) * DAY_S
