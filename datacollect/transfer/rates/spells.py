"""Rate limits by the hours of the day or week: which counts at an instant, and until when."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from datacollect.problem.hourly_rates import HourlyRate
from datacollect.problem.recurring_hours import starts_of

if TYPE_CHECKING:
    from datetime import tzinfo

# In bytes per second; what files say of a limit.
Rate: TypeAlias = "float | HourlyRate"

# In so many days every hour of a week comes, though clocks change meanwhile.
RECURS_WITHIN_S = 9 * 86_400.0


class Spell(NamedTuple):
    """A rate, and the instant from which another may count, in seconds since 1970."""

    bytes_per_s: float
    until_s: float


def spell_of(rate: Rate, zone: tzinfo, unix_s: float) -> Spell:
    """Return which rate counts at an instant, given in seconds since 1970.

    Examples
    --------
    >>> from zoneinfo import ZoneInfo
    >>> rate = HourlyRate(("08:00", "20:00"), (1e6, 1e8))
    >>> evening_s = datetime(2026, 11, 22, 19, 30, tzinfo=ZoneInfo("Europe/Zurich")).timestamp()
    >>> spell = spell_of(rate, ZoneInfo("Europe/Zurich"), evening_s)
    >>> spell.bytes_per_s, spell.until_s - evening_s
    (1000000.0, 1800.0)
    """
    if not isinstance(rate, HourlyRate):
        return Spell(rate, math.inf)
    from datacollect.files.clock import Clock

    clock = Clock(datetime.fromtimestamp(unix_s, UTC), zone)
    starts, which = starts_of(rate.hours, clock, RECURS_WITHIN_S)
    return Spell(rate.bytes_per_s[which[0]], unix_s + starts[1] if len(starts) > 1 else math.inf)
