"""Rates by the hours of the day, or of the week, in files.

``"08:00 10 Mbit/s, 20:00 1 Gbit/s"`` is 10 Mbit/s from 08:00 on and 1 Gbit/s from 20:00 on, every
day; ``"Mo-Fr 08:00 10 Mbit/s, Mo-Fr 20:00 1 Gbit/s, Sa Su 1 Gbit/s"`` on days of the week, from
midnight where no hour is said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.files.clock_times import HOUR
from datacollect.files.kinds import Forecast, Number, wrong
from datacollect.problem.recurring_hours import in_order, of_one_form, on_days
from datacollect.problem.windows import EVERY_DAY, SAID_DAYS, days_of

if TYPE_CHECKING:
    from datacollect.files.kinds import Kind, Schema

# What a host says that has no limit, as opposed to one of which nobody knows.
NO_LIMIT = "none"

LIKE = (
    'write it like "08:00 10 Mbit/s, 20:00 1 Gbit/s" or '
    '"Mo-Fr 08:00 10 Mbit/s, Mo-Fr 20:00 1 Gbit/s, Sa Su 1 Gbit/s"'
)
_RULE = "must be rates from hours of the day on"
_PART = re.compile(
    rf"(?:(?P<days>{SAID_DAYS})\s+)?(?:(?P<hour>{HOUR})\s+)?(?P<rate>\S.*)",
    re.ASCII | re.IGNORECASE,
)
_HOUR_OR_DAY = re.compile(
    r"\d:\d|(?:^|[,;])\s*(?:mo|tu|we|th|fr|sa|su)[a-z]*\b", re.ASCII | re.IGNORECASE
)
# Patterns of JSON Schemas know no case-insensitive letters.
_SCHEMA_PATTERN = rf"^\s*([MTWFSmtwfs][A-Za-z]{{1,2}}[\s-]+)+\S|^\s*{HOUR}\s+\S"
_DAY_BEGINS = "00:00"


@dataclass(frozen=True)
class HourlyRate:
    """A rate that follows the hours of the day, or of the week.

    Attributes
    ----------
    hours : tuple of str
        As `datacollect.problem.recurring_hours` has them: ``"08:00"``, ``"08:00:30"``, in a day's
        order, or ``"Mo 08:00"`` in a week's.
    bytes_per_s : tuple of float
        From each of them on, until the next; from the last one to the first one of the next day,
        or week.
    """

    hours: tuple[str, ...]
    bytes_per_s: tuple[float, ...]


@dataclass(frozen=True)
class HostRate:
    """The kind of a host's limit: a rate, rates by hours, or a list of one per period.

    Attributes
    ----------
    number : Number
    has_periods : bool
        Whether the file has periods, and lists therefore mean something.
    may_be_none : bool
        Whether it can be said that there is no limit: `NO_LIMIT`.
    """

    number: Number
    has_periods: bool = True
    may_be_none: bool = False

    def read(self, value: Any, place: str) -> float | list[float] | HourlyRate | str:
        """Return what it says, or what it has said; how long a list is to be the caller knows."""
        if isinstance(value, HourlyRate):
            return value
        if self.may_be_none and is_no_limit(value):
            return NO_LIMIT
        if isinstance(value, str) and has_hours(value):
            return hourly_rate(value, place, self.number)
        if not self.has_periods and isinstance(value, list | tuple):
            rule = "must be a rate, or rates from hours of the day on, as there are no periods here"
            raise wrong(place, rule, value, LIKE)
        return Forecast(self.number).read(value, place)

    def schema(self) -> Schema:
        """Return the JSON Schema of a number, a text or a list."""
        one = self.number.schema()
        no_limit = f"|^{NO_LIMIT}$" if self.may_be_none else ""
        rates = {**one, "pattern": f"{one['pattern']}|{_SCHEMA_PATTERN}{no_limit}"}
        if not self.has_periods:
            return rates
        return {**rates, "type": [*one["type"], "array"], "items": one, "minItems": 1}


def is_no_limit(value: object) -> bool:
    """Return whether a limit says that there is none.

    >>> is_no_limit("none"), is_no_limit(None)
    (True, False)
    """
    return isinstance(value, str) and value == NO_LIMIT


def has_hours(text: str) -> bool:
    """Return whether a text speaks of hours of the day or of days of the week, rightly or not.

    >>> has_hours("08:00 10 Mbit/s"), has_hours("Sa Su 1 Gbit/s"), has_hours("10 Mbit/s")
    (True, True, False)
    """
    return _HOUR_OR_DAY.search(text) is not None


def hourly_rate(text: str, place: str, number: Kind) -> HourlyRate:
    """Read rates by hours of the day or of the week: commas or semicolons separate them.

    Raises
    ------
    ProblemError
        Something is no hour with a rate, or an hour comes twice.

    Examples
    --------
    >>> from datacollect.files.kinds import Number
    >>> said = hourly_rate("20:00 1 GB/s, 8:00 5 MB/s", "uplink", Number("bytes per second"))
    >>> said.hours, said.bytes_per_s
    (('08:00', '20:00'), (5000000.0, 1000000000.0))
    >>> hourly_rate("Mo 8:00 5 MB/s, Sa 1 GB/s", "uplink", Number("bytes per second")).hours
    ('Mo 08:00', 'Sa 00:00')
    """
    parts = [_part(part.strip(), place, number) for part in re.split("[,;]", text)]
    of_days = any(days is not None for days, *_ in parts)
    found: dict[str, float] = {}
    for days, hour, rate, part in parts:
        for one in on_days(hour, EVERY_DAY if days is None else days) if of_days else [hour]:
            if one in found:
                remedy = f"keep one of the rates of {one}" if of_days else "keep one of its rates"
                raise wrong(place, "must name each hour once", part, remedy)
            found[one] = rate
    hours = in_order(found)
    return HourlyRate(hours, tuple(found[hour] for hour in hours))


def _part(part: str, place: str, number: Kind) -> tuple[frozenset[int] | None, str, float, str]:
    """Return the days that a part names, None for every day, its hour, its rate, and itself."""
    said = _PART.fullmatch(part)
    if said is None or not (said["days"] or said["hour"]) or has_hours(said["rate"]):
        raise wrong(place, _RULE, part, LIKE)
    days = None if said["days"] is None else days_of(said["days"])
    hour = of_one_form(said["hour"] or _DAY_BEGINS)
    return days, hour, number.read(said["rate"], place), part
