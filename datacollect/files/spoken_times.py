"""Times as people say them: ``tomorrow 18:00``, ``Sun 18:00``.

They are said at some instant, so files do not have them: command lines read them.
"""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta

from datacollect.files.clock_times import HOUR

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_AHEAD = {"today": 0, "tomorrow": 1}
_SPOKEN = re.compile(rf"\s*([A-Za-z]+)\.?(?:\s*,\s*|\s+at\s+|\s+){HOUR}\s*", re.ASCII)

# What messages list: each is understood.
UNDERSTOOD = '18:00, "tomorrow 18:00", "Sun 18:00" or 2026-11-23T18:00'


def is_spoken_time(text: str) -> bool:
    """Return whether a text is a day and an hour as people say them.

    >>> [is_spoken_time(text) for text in ("tomorrow 18:00", "Sun 18:00", "18:00", "Sum 18:00")]
    [True, True, False, False]
    """
    found = _SPOKEN.fullmatch(text)
    return found is not None and (found[1].lower() in _AHEAD or _day(found[1]) is not None)


def counts_from_today(text: str) -> bool:
    """Return whether a time is said by ``today`` or ``tomorrow``.

    >>> [counts_from_today(text) for text in ("tomorrow 18:00", "Sun 18:00", "18:00")]
    [True, False, False]
    """
    found = _SPOKEN.fullmatch(text)
    return found is not None and found[1].lower() in _AHEAD


def spoken_time(text: str, now: datetime, after: datetime) -> datetime:
    """Return what clocks will show then.

    Parameters
    ----------
    text : str
        What `is_spoken_time` knows.
    now : datetime
        The present: ``today`` and ``tomorrow`` are counted from it.
    after : datetime
        Of days of the week the first such instant after this one is meant.

    Returns
    -------
    datetime
        Without an offset, as clocks show it where `now` and `after` are read.

    Examples
    --------
    >>> sunday = datetime(2026, 11, 29, 20, 0)
    >>> print(spoken_time("tomorrow 18:00", sunday, sunday))
    2026-11-30 18:00:00
    >>> print(spoken_time("Sun 18:00", sunday, sunday))
    2026-12-06 18:00:00
    """
    found = _SPOKEN.fullmatch(text)
    assert found, text
    hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
    hour = time(hours, minutes, seconds)
    ahead = _AHEAD.get(found[1].lower())
    if ahead is not None:
        return datetime.combine(now.date() + timedelta(days=ahead), hour)
    day = _day(found[1])
    assert day is not None, text
    first = datetime.combine(after.date() + timedelta(days=(day - after.weekday()) % 7), hour)
    return first if first > after.replace(tzinfo=None) else first + timedelta(days=7)


def _day(word: str) -> int | None:
    """Return the number of a day of the week, Monday 0, by two letters of its name or more.

    >>> _day("Sun"), _day("th"), _day("thursday"), _day("S"), _day("sunny")
    (6, 3, 3, None, None)
    """
    lower = word.lower()
    named = [i for i, day in enumerate(DAYS) if len(lower) > 1 and day.startswith(lower)]
    return named[0] if named else None
