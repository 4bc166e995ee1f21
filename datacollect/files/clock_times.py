"""Dates, times and hours of the day as files hold them: what they look like, as texts."""

from __future__ import annotations

import re
from datetime import date, time

# As patterns of JSON Schemas (ECMA-262) too.
HOUR = r"(\d|[01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?"
CLOCK_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*"

_HOUR = re.compile(HOUR, re.ASCII)
_EITHER = re.compile(rf"{HOUR}|{CLOCK_TIME}", re.ASCII)


def is_clock_time(value: object) -> bool:
    """Return whether a value of a file is a date and time, or an hour of the day, not a number.

    >>> is_clock_time("06:00"), is_clock_time("2026-11-22T20:00"), is_clock_time("1.5 h")
    (True, True, False)
    """
    if isinstance(value, str):
        return bool(_EITHER.fullmatch(value))
    return isinstance(value, date | time)


def is_hour(text: str) -> bool:
    """Return whether a text is an hour of the day, without a day.

    >>> is_hour("18:00"), is_hour("2026-11-22T20:00")
    (True, False)
    """
    return _HOUR.fullmatch(text) is not None


def as_text(value: object) -> object:
    """Return TOML's own dates and times as the texts that JSON would hold."""
    return value.isoformat() if isinstance(value, date | time) else value
