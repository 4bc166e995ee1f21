"""Instants that options name: seconds, clock times, days and hours as people say them."""

from __future__ import annotations

import os
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.commands.console import note_text
from datacollect.commands.conversion import number_in
from datacollect.errors import ProblemError
from datacollect.files.clock_times import is_clock_time, is_hour
from datacollect.files.spoken_times import counts_from_today, is_spoken_time, spoken_time
from datacollect.files.units import counted

if TYPE_CHECKING:
    from datacollect.problem.problem import Problem

LOCAL_TIME = Path("/etc/localtime")


def now() -> datetime:
    """Return the present, to the second; tests put another in its place."""
    from datacollect.files.clock import present

    return present()


def is_instant(text: str) -> bool:
    """Return whether a text names an instant by a clock, in a file's way or in people's."""
    return is_clock_time(text) or is_spoken_time(text)


def seconds_until(text: str, problem: Problem, option: str) -> float | None:
    """Return when an instant is, in seconds from a problem's start.

    A problem that says no start begins now: then clock times are those of this machine's zone,
    which is said.

    Parameters
    ----------
    text : str
        Seconds, a time with its unit, or an instant.
    problem : Problem
    option : str
        What names it, for messages.

    Raises
    ------
    ProblemError
        It lies before the start, or clocks skip it, or show it twice.
    """
    from datacollect.files.clock import Clock
    from datacollect.methods.options.arguments import clock_deadline_s, deadline_in_seconds

    if not is_instant(text):
        return deadline_in_seconds(number_in(text), problem, option)
    clock = problem.clock
    if clock is None:
        begin = now()
        clock = Clock(begin, local_zone())
        note_text(
            f"note: {option} counts from now, {clock.text(0)}: the problem says no start, the "
            "clock time of 0 s"
        )
    written = in_clocks_words(text, clock.start, clock.zone)
    begins, today = clock.start.astimezone(clock.zone).date(), now().astimezone(clock.zone).date()
    if counts_from_today(text) and today > begins:
        note_text(
            f"note: {option} {text!r} counts from today, and the problem starts on {begins}, "
            f"{counted((today - begins).days, 'day')} ago; change its start, or say a day of the "
            "week, which counts from the start"
        )
    if clock.is_before_start(written, option):
        # What was typed: nobody knows again what a day was turned into.
        raise ProblemError(
            f"{option} must not lie before the start, {clock.text(0)}, got {text!r}; give a later "
            "instant"
        )
    return clock_deadline_s(written, clock, option)


def in_clocks_words(text: str, after: datetime, zone: tzinfo) -> str:
    """Return an instant as files write it; what is written so already stays."""
    if not is_spoken_time(text):
        return text
    return spoken_time(text, now().astimezone(zone), after.astimezone(zone)).isoformat()


def start_text(given: str | None, timezone: str | tzinfo) -> str:
    """Return what clocks of a zone show at 0 s; by default at the last whole minute.

    Parameters
    ----------
    given : str or None
        A clock time, an hour of the day, or as people say it.
    timezone : str or tzinfo
        By its name, or as it is.
    """
    from datacollect.files.clock import Clock, local_instant, parsed, zone_of

    zone = zone_of(timezone) if isinstance(timezone, str) else timezone
    present = now().astimezone(zone)
    if given is None:
        return present.replace(second=0).isoformat()
    given = in_clocks_words(given, present, zone)
    if is_hour(given):
        clock = Clock(present, zone)
        return clock.iso(clock.seconds(given, "--start"))
    instant = parsed(given, "--start")
    if instant.tzinfo is None:
        instant = local_instant(instant, zone, "--start")
    return Clock.of(instant, None, "--start").start.astimezone(zone).isoformat()


def local_zone() -> tzinfo:
    """Return the time zone in which this machine shows times; UTC where it does not say."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        if name := os.environ.get("TZ", "").removeprefix(":"):
            return ZoneInfo(name)
        with LOCAL_TIME.open("rb") as file:
            return ZoneInfo.from_file(file, _name_of_local_zone())
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def _name_of_local_zone() -> str | None:
    _, _, name = str(LOCAL_TIME.resolve()).partition("/zoneinfo/")
    return name or None
