"""One number as Python's callers give it: a number, a text, a duration or a date."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files import quantities
from datacollect.files.clock import Clock
from datacollect.files.kinds import Number, Whole, shown

Kind: TypeAlias = Number | Whole

# The clock of instants in seconds since 1970; dates without an offset are in UTC.
SINCE_1970 = Clock(datetime(1970, 1, 1, tzinfo=UTC), UTC)

ONE_S = np.timedelta64(1, "s")


def one_number(value: Any, kind: Kind, place: str, clock: Clock | None) -> Any:
    """Return what is neither a container nor a plain number as a number."""
    if type(value) is int or type(value) is float:
        return value
    if value is None or _is_missing(value):
        return None if value is None else np.nan
    if isinstance(value, bool):
        raise _no_number(place, str(value), "write 1 or 0 where a number is meant")
    if isinstance(value, str):
        return kind.read(value, place)
    if isinstance(value, complex):
        raise _no_number(place, str(value), "take its real part")
    if isinstance(value, Decimal):
        is_whole = value.is_finite() and value == value.to_integral_value()
        return int(value) if is_whole else float(value)
    if isinstance(value, timedelta | np.timedelta64):  # numpy's is a whole number besides
        return _duration(value, kind, place)
    if isinstance(value, Real):  # numpy's long floats, and fractions
        return _as_python_has_it(value)
    if isinstance(value, date | np.datetime64):
        return _date(value, kind, place, clock)
    raise _no_number(place, shown(value), "write a number")


def _as_python_has_it(number: Any) -> int | float:
    """Return a real number of any type as a whole one, where it is whole, or as a float."""
    is_whole = isinstance(number, Integral) or (abs(number) < math.inf and number == number // 1)
    return int(number) if is_whole else float(number)


def _is_missing(value: Any) -> bool:
    """Return whether it is pandas' or numpy's way to say that there is no value."""
    if isinstance(value, np.timedelta64 | np.datetime64):
        return bool(np.isnat(value))
    return type(value).__name__ in ("NAType", "NaTType")


def _duration(value: timedelta | np.timedelta64, kind: Kind, place: str) -> float:
    seconds = None
    if kind.of == quantities.SECONDS:
        seconds = value.total_seconds() if isinstance(value, timedelta) else seconds_of(value)
    if seconds is None:
        remedy = "write a number"
        if kind.of == quantities.SECONDS:
            remedy = "months and years differ in length; write days, hours or seconds"
        raise _no_number(place, f"the duration {shown(value)}", remedy)
    return float(seconds)


def _date(value: date | np.datetime64, kind: Kind, place: str, clock: Clock | None) -> float:
    said = f"the date {shown(value)}"
    if kind.of != quantities.SECONDS:
        raise _no_number(place, said, "write a number")
    if clock is None:
        remedy = "count seconds from the start: dates need one, and none is known here"
        raise _no_number(place, said, remedy)
    instant: Any = value.astype("M8[us]").item() if isinstance(value, np.datetime64) else value
    if hasattr(instant, "to_pydatetime"):
        instant = instant.floor("us").to_pydatetime()
    if not isinstance(instant, datetime):
        instant = datetime(instant.year, instant.month, instant.day)  # noqa: DTZ001 - the clock's
    return clock.seconds(instant, place)


def _no_number(place: str, got: str, remedy: str) -> ProblemError:
    return ProblemError(f"{place} must be a number, got {got}; {remedy}")


def seconds_of(durations: Any) -> Any:
    """Return durations in seconds, NaN where there is none; None where their unit is no time."""
    try:
        return durations / ONE_S
    except TypeError:  # months and years, of which no two are alike
        return None
