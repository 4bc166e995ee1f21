"""Dates and times of samples, as texts."""

from __future__ import annotations

import re
from datetime import UTC, datetime

# A year alone, or digits alone, may be a date or a number of seconds.
_DATE = re.compile(r"\d{4}-\d\d(-\d\d)?|\d{4}-?W\d\d|\d{8}T", re.ASCII)
_SECONDS = re.compile(r"\d{10}(\.\d+)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seconds_since_1970(text: str) -> float | None:
    """Return when a date and time in ISO 8601 is, UTC where no offset is given; None: it is none.

    Examples
    --------
    >>> seconds_since_1970("1970-01-02T00:00:00.5"), seconds_since_1970("1200")
    (86400.5, None)
    """
    if not _DATE.match(text):
        return None
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return (found - _EPOCH).total_seconds()


def since_1970(text: str) -> float | None:
    """Return the instant of a date, or of seconds since 1970 as archives of programs have them.

    Ten digits are seconds from 2001 to 2286: milliseconds, and seconds of other clocks, are none.

    >>> since_1970("1714521600"), since_1970("1714521600000")
    (1714521600.0, None)
    """
    return float(text) if _SECONDS.fullmatch(text) else seconds_since_1970(text)
