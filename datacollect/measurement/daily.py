"""Estimates for periods of the day: bandwidths by night and by day, from samples with times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.clock import zone_of
from datacollect.files.kinds import HourOfDay, ListOf
from datacollect.problem.calendar import daily_hours
from datacollect.problem.link_table import LAST_SINCE_1970_S, SINCE_1970_S
from datacollect.problem.numbers import numbers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from datacollect.numbers.arrays import IntArray

DAILY = ListOf(HourOfDay(), 1, None, "must be a list of hours of the day, at least one")


def daily_estimates(
    samples: pd.DataFrame,
    daily: Sequence[str],
    timezone: str,
    estimate: Callable[[pd.DataFrame], pd.DataFrame],
) -> pd.DataFrame:
    """Estimate each pair of hosts in each period of the day.

    Parameters
    ----------
    samples : DataFrame
        Valid samples; times in seconds since 1970.
    daily : sequence of str
        Hours at which periods start, in the order of a day: a problem's ``daily_periods``.
    timezone : str
        IANA name of the zone whose clocks show them.
    estimate : callable
        From samples of one period to a row per pair.

    Returns
    -------
    DataFrame
        Rows of `estimate` with a column period, counted from 0, sorted by from, to and period.

    Raises
    ------
    ProblemError
        There are no such hours or zone, times are no clock times, or a pair has no samples in some
        period: nothing is known of it then.
    """
    import pandas as pd

    hours = daily_hours({"daily_periods": DAILY.read(list(daily), "daily"), "periods_s": None})
    assert hours is not None
    period = periods_of_day(samples, hours, timezone)
    found = [estimate(samples[period == i]).assign(period=i) for i in np.unique(period).tolist()]
    table = pd.concat(found) if found else estimate(samples).assign(period=0)
    _reject_gaps(table, hours)
    first = ["from", "to", "period"]
    table = table.sort_values(first, ignore_index=True)
    return table[[*first, *(column for column in table.columns if column not in first)]]


def periods_of_day(samples: pd.DataFrame, hours: Sequence[str], timezone: str) -> IntArray:
    """Return in which period of the day each sample was taken, by what clocks showed."""
    import pandas as pd

    time_s = numbers_of(samples["time_s"], "samples: time_s")
    for extreme in (time_s.min(initial=SINCE_1970_S), time_s.max(initial=SINCE_1970_S)):
        if not SINCE_1970_S <= extreme <= LAST_SINCE_1970_S:
            raise ProblemError(
                "daily needs samples whose times are seconds since 1970, or dates, got "
                f"{extreme:.15g}; leave it out"
            )
    shown = pd.DatetimeIndex(pd.to_datetime(time_s, unit="s", utc=True)).tz_convert(
        zone_of(timezone)
    )
    second = np.asarray(shown.hour * 3600 + shown.minute * 60 + shown.second)
    starts = [_second(hour) for hour in hours]
    # Before the first hour of a day it is still the last period of the day before.
    found: IntArray = (np.searchsorted(starts, second, side="right") - 1) % len(starts)
    return found


def _second(hour: str) -> int:
    parts = [int(part) for part in hour.split(":")]
    return sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))


def _reject_gaps(table: pd.DataFrame, hours: Sequence[str]) -> None:
    for (tail, head), rows in table.groupby(["from", "to"], sort=True):
        missing = sorted(set(range(len(hours))) - set(rows["period"]))
        if missing:
            hour = hours[missing[0]]
            raise ProblemError(
                f"samples: {tail!r} -> {head!r} was never measured in the period from {hour} on; "
                "measure it then, drop the pair, or leave the hour out"
            )
