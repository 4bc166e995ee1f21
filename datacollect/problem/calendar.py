"""Clock times in problem files: they become seconds, and periods of the day are unrolled.

Bandwidths that follow the hours of the day recur for ever; a problem has a list of periods. They
are unrolled over days enough, by a rule that depends on the file alone, and further where a plan
takes longer: `unrolled`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.clock import Clock
from datacollect.files.kinds import in_order, join, wrong
from datacollect.problem.host_limits import LIMITS, by_period, is_constant
from datacollect.problem.hosts import DailyPeriods
from datacollect.problem.nominal_rates import NominalRates
from datacollect.problem.open_links import OpenLinks, edges_s, open_links
from datacollect.problem.recurring_hours import are_of_days, most_a_day, starts_of
from datacollect.problem.windows import DAY_S, RECURRING_DAYS, padded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.contents import ProblemContents

# Whole weeks, and every day of a year.
YEAR_S = 53 * 7 * DAY_S

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
        raise ProblemError("periods_s and daily_periods cannot be combined; give one of them")
    padded_hours = [padded(hour) for hour in hours]
    for i, (one, two) in enumerate(pairwise(padded_hours)):
        if two <= one:
            rule = f"must be later than {hours[i]}, the one before it"
            raise wrong(f"daily_periods[{i + 1}]", rule, hours[i + 1], "list them in a day's order")
    return tuple(hours)


def windows_of_contents(
    hosts: Mapping[str, Any], links: Iterable[tuple[str, str, Any]]
) -> tuple[OpenLinks, ...]:
    """Return the windows of links, from those of hosts by name, and of links by their ends."""
    found = []
    for name, windows in hosts.items():
        if windows:
            found += [OpenLinks(name, None, windows), OpenLinks(None, name, windows)]
    found += [OpenLinks(tail, head, windows) for tail, head, windows in links if windows]
    return tuple(found)


def recurring(
    contents: ProblemContents, hours: Sequence[str] | None, windows: tuple[OpenLinks, ...]
) -> ProblemContents:
    """Return contents, which have a row for each daily period, with what recurs listed.

    `hours` are those of ``daily_periods`` and those at which limits of hosts change.
    """
    if hours is None and not windows:
        return contents
    clock = contents.clock
    if clock is None:
        raise ProblemError(
            "open needs start, the clock time of 0 s; add start = 2026-11-22T20:00:00+01:00"
        )
    if hours is None and len(contents.periods_s) > 1:
        raise ProblemError(
            "open and periods_s cannot be combined; give daily_periods, or 0 in the periods in "
            "which nothing moves"
        )
    if windows and contents.per_connection_bytes_per_s is not None:
        raise ProblemError(
            "open and rates by connections cannot be combined; leave per_connection_bytes_per_s, "
            "capacity_bytes_per_s and competitors out, or open"
        )
    zones = {window.zone for limit in windows for window in limit.windows} - {None, str(clock.zone)}
    if hours is not None and zones:
        named = ", ".join(sorted(map(str, zones)))
        raise ProblemError(
            "daily_periods, or limits of hosts by hours, and windows of another time zone "
            f"({named}) cannot be combined: clocks change on other days there; write the windows "
            "in the hours of the problem's timezone"
        )
    if not windows:
        daily = DailyPeriods(tuple(hours or ()), 0.0)
        return replace(contents, **unrolled(contents, daily, clock, enough_s(contents)))
    nominal = NominalRates.of(contents, contents.bandwidth_bytes_per_s)
    daily = DailyPeriods(tuple(hours or ()), 0.0, windows, nominal)
    # What is closed for long takes longer; whoever plans lists more where that is not enough.
    first = replace(contents, **unrolled(contents, daily, clock, least_s(daily)))
    return replace(contents, **unrolled(contents, daily, clock, min(enough_s(first), YEAR_S)))


def least_s(daily: DailyPeriods) -> float:
    """Return a time in which each rate that recurs is met while what may be open then is open."""
    by_week = daily.windows or are_of_days(daily.hours)
    return RECURRING_DAYS * DAY_S if by_week else 2 * DAY_S


def most_s(daily: DailyPeriods) -> float:
    """Return for how long periods can be listed.

    Raises
    ------
    ProblemError
        Not even for the least time.
    """
    differing = {window for limit in daily.windows for window in limit.windows}
    n_daily = most_a_day(daily.hours)
    n_a_day = n_daily + 2 * len(differing)
    most_s = MOST_PERIODS // n_a_day * DAY_S
    if most_s < least_s(daily):
        raise ProblemError(
            f"{len(differing)} windows that differ and {n_daily} daily periods make up to "
            f"{n_a_day} periods a day, of which {MOST_PERIODS} can be planned; let more windows "
            "open and close at the same hours"
        )
    return most_s


def listed(daily: DailyPeriods, clock: Clock) -> tuple[FloatArray, IntArray]:
    """Return the starts of all periods, and which period of the day each is.

    Where there are windows, the last begins when the listing ends, is -1, and nothing is open then.
    """
    starts, which = unroll(daily.hours, clock, daily.until_s) if daily.hours else ([0.0], None)
    if not daily.windows:
        return np.array(starts), np.zeros(1, dtype=np.int64) if which is None else which
    every = np.array(sorted({*starts, *edges_s(daily.windows, clock, daily.until_s)}))
    every = every[every < daily.until_s]
    rows = np.searchsorted(starts, every, side="right") - 1
    which = np.zeros(len(every), dtype=np.int64) if which is None else which[rows]
    return np.append(every, daily.until_s), np.append(which, -1)


def unroll(hours: Sequence[str], clock: Clock, until_s: float) -> tuple[list[float], IntArray]:
    """Return the starts of periods until an instant, and which period of the day each is.

    Of the week, where hours are those of days (`datacollect.problem.recurring_hours`).

    Examples
    --------
    >>> clock = Clock.of("2026-11-22T20:00", "Europe/Zurich")
    >>> starts, which = unroll(["08:00", "18:00"], clock, 86_400.0)
    >>> [start / 3600 for start in starts], which.tolist()
    ([0.0, 12.0, 22.0], [1, 0, 1])
    >>> unroll(["Mo 08:00", "Tu 18:00"], clock, 86_400.0)[0]
    [0.0, 43200.0]
    """
    starts, which = starts_of(hours, clock, until_s)
    return starts, np.array(which, dtype=np.int64)


def unrolled(
    contents: ProblemContents, daily: DailyPeriods, clock: Clock, until_s: float
) -> dict[str, Any]:
    """Return periods, bandwidths and limits, unrolled so far, of what has a row per daily period.

    What is unrolled already may be unrolled again: every row of a day is in it.
    """
    until_s = min(max(until_s, least_s(daily)), most_s(daily))
    before = None if contents.daily is None else listed(contents.daily, clock)[1]
    n_a_day = max(len(daily.hours), 1)
    rates = (
        _of_a_day(contents.bandwidth_bytes_per_s, before, n_a_day)
        if daily.nominal is None
        else daily.nominal.of_links(contents)
    )
    daily = replace(daily, until_s=until_s)
    starts, which = listed(daily, clock)
    bandwidth = rates[which]
    changes: dict[str, Any] = {"periods_s": starts, "daily": daily}
    for key in LIMITS:
        limit = by_period(key, getattr(contents, key), len(contents.periods_s), len(contents.names))
        if is_constant(limit):
            changes[key] = np.broadcast_to(limit[0], (len(starts), len(contents.names)))
            continue
        changes[key] = _of_a_day(limit, before, n_a_day)[which]
        if daily.windows:
            changes[key][-1] = changes[key].max(axis=0)
    if daily.windows:
        bandwidth = np.where(
            open_links(daily.windows, contents, clock, starts, until_s), bandwidth, 0.0
        )
        bandwidth[-1] = 0.0
    return changes | {"bandwidth_bytes_per_s": bandwidth}


def by_hours(contents: ProblemContents) -> dict[str, Any]:
    """Return bandwidths and limits of a calendar with a row for each hour at which they change."""
    daily, clock = contents.daily, contents.clock
    assert daily is not None
    assert daily.nominal is not None
    assert clock is not None
    which, n_a_day = listed(daily, clock)[1], max(len(daily.hours), 1)
    columns: dict[str, Any] = {
        "bandwidth_bytes_per_s": daily.nominal.of_links(contents),
        "periods_s": np.arange(n_a_day, dtype=float),
    }
    for key in LIMITS:
        limit = by_period(key, getattr(contents, key), len(contents.periods_s), len(contents.names))
        columns[key] = limit[:1] if is_constant(limit) else _of_a_day(limit, which, n_a_day)
        columns[key] = np.broadcast_to(columns[key], (n_a_day, len(contents.names)))
    return columns


def listed_again(
    contents: ProblemContents, daily: DailyPeriods, clock: Clock, until_s: float
) -> dict[str, Any]:
    """Return what changes where contents with a row for each hour get a calendar's windows."""
    nominal = NominalRates.of(contents, contents.bandwidth_bytes_per_s)
    again = replace(daily, nominal=nominal)
    return {"clock": clock, **unrolled(contents, again, clock, until_s)}


def _of_a_day(rates: FloatArray, which: IntArray | None, n_a_day: int) -> FloatArray:
    """Return rows of the periods of a day, from rows of all periods; `which` of a day each is."""
    if which is None:
        return rates
    return np.array([rates[which == i].max(axis=0) for i in range(n_a_day)])


def listed_until(contents: ProblemContents, at_s: float) -> dict[str, Any]:
    """Return what changes where daily periods are listed until an instant; nothing, where they are.

    Days are doubled until they are enough, so that all who ask for about the same get the same.
    Where there are windows what happens at that instant is listed, too.
    """
    daily, clock = contents.daily, contents.clock
    if daily is None or clock is None:
        return {}
    until_s, longest_s = daily.until_s, most_s(daily)
    while until_s < min(at_s, longest_s) or (daily.windows and until_s == at_s < longest_s):
        until_s *= 2
    if until_s == daily.until_s:
        return {}
    changes = unrolled(contents, daily, clock, until_s)
    return {} if changes["daily"] == daily else changes


def enough_s(contents: ProblemContents) -> float:
    """Return a time by which plans end, most likely: all data of a source over its way alone.

    Twice the longest of what one source's direct link, or the links into the destination together,
    need at the mean of the day's rates; whole days, at least two. It depends on the problem alone.
    """
    n_periods, n_hosts = len(contents.periods_s), len(contents.names)
    up, down = (
        _mean_of_day(by_period(key, getattr(contents, key), n_periods, n_hosts)) for key in LIMITS
    )
    rate = np.minimum(contents.bandwidth_bytes_per_s.mean(axis=0), up[contents.link_from])
    destination = contents.names.index(contents.destination)
    into = contents.link_to == destination
    total = float(rate[into].sum())
    limit = contents.downlink_bytes_per_s
    most = float(min(down[destination], limit[..., destination].max()))
    needed = (
        [float(contents.backlog_bytes.sum()) / min(total, most)] if min(total, most) > 0 else []
    )
    for link in np.flatnonzero(into).tolist():
        backlog = float(contents.backlog_bytes[contents.link_from[link]])
        if rate[link] > 0 and backlog:
            needed.append(min(backlog / float(rate[link]), 14 * DAY_S))
    longest = 2 * max(needed, default=0.0) + float(contents.release_s.max(initial=0.0))
    return max(2.0, math.ceil(longest / DAY_S)) * DAY_S


def _mean_of_day(limit: FloatArray) -> FloatArray:
    """Return the means of hosts' limits that vary, infinite for others."""
    means: FloatArray = np.where((limit != limit[0]).any(axis=0), limit.mean(axis=0), np.inf)
    return means
