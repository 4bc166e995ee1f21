"""Hours of the day at which bandwidths change: the periods that a problem should have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.clock import zone_of
from datacollect.problem.numbers import numbers_of

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray

# Day and night that differ by less than a tenth are not worth two numbers for each link.
LEAST_RATIO = 1.1
# In so many of the days that show both, day and night must differ to the same side.
LEAST_PART_OF_DAYS = 0.75
FEWEST_DAYS = 3

HOURS = 24


def day_and_night(samples: pd.DataFrame, timezone: str) -> list[str]:
    """Return the two hours at which bandwidths change every day; none where they do not.

    Of all splits of the day in two, the one that leaves the least variance of the logarithms within
    its parts, those of each pair counted from the pair's median; parts have at least three hours.
    It counts where the parts differ by a tenth or more, and on three of four days to the same side.
    ``estimate(samples, daily=..., timezone=...)`` then has a number for each.

    Parameters
    ----------
    samples : DataFrame
        Columns from, to, time_s (seconds since 1970) and bandwidth_bytes_per_s, > 0.
    timezone : str
        IANA name of the zone whose clocks count.

    Raises
    ------
    ProblemError
        Samples have nothing to take the logarithm of, or there is no such zone.

    Examples
    --------
    >>> import pandas as pd
    >>> hours = np.arange(24 * 7)
    >>> rate = np.where((hours % 24 >= 8) & (hours % 24 < 20), 1e6, 3e6)
    >>> samples = pd.DataFrame({"from": "S", "to": "D", "time_s": hours * 3600.0})
    >>> day_and_night(samples.assign(bandwidth_bytes_per_s=rate), "UTC")
    ['08:00', '20:00']
    """
    import pandas as pd

    rate = numbers_of(samples["bandwidth_bytes_per_s"], "samples: bandwidth_bytes_per_s")
    if not (rate > 0).all():
        raise ProblemError(
            f"samples, row {int(np.argmin(rate > 0))}: bandwidth_bytes_per_s must be > 0, got "
            f"{rate.min():g}; leave out tests that failed"
        )
    time_s = numbers_of(samples["time_s"], "samples: time_s")
    shown = pd.DatetimeIndex(pd.to_datetime(time_s, unit="s", utc=True)).tz_convert(
        zone_of(timezone)
    )
    log = pd.Series(np.log(rate), index=samples.index)
    pairs = log.groupby([samples["from"], samples["to"]])
    level = (log - pairs.transform("median")).to_numpy()
    hour = np.asarray(shown.hour)
    split = _best_split(level, hour)
    if split is None or not _holds(level, _is_day(hour, *split), np.asarray(shown.date)):
        return []
    return [f"{at:02d}:00" for at in sorted(split)]


def _is_day(hour: IntArray, start: int, end: int) -> BoolArray:
    return np.asarray((hour >= start) & (hour < end))


def _best_split(level: FloatArray, hour: IntArray) -> tuple[int, int] | None:
    """Return the hours from which, and up to which, the level differs most from that of others."""
    count = np.bincount(hour, minlength=HOURS)
    if (count == 0).any():
        return None
    sums = np.bincount(hour, level, HOURS)
    n, total = np.append(0, count.cumsum()), np.append(0, sums.cumsum())

    def between(split: tuple[int, int]) -> float:
        n_in = n[split[1]] - n[split[0]]
        sum_in = total[split[1]] - total[split[0]]
        return float(sum_in**2 / n_in + (total[-1] - sum_in) ** 2 / (n[-1] - n_in))

    splits = [(a, b) for a in range(HOURS) for b in range(a + 3, HOURS) if b - a <= HOURS - 3]
    return max(splits, key=between)


def _holds(level: FloatArray, is_day: BoolArray, date: npt.NDArray[Any]) -> bool:
    """Return whether day and night differ enough, and on most of the days to the same side."""
    differences = np.array(
        [
            level[today & is_day].mean() - level[today & ~is_day].mean()
            for today in (date == one for one in np.unique(date))
            if (today & is_day).any() and (today & ~is_day).any()
        ]
    )
    if len(differences) < FEWEST_DAYS:
        return False
    overall = level[is_day].mean() - level[~is_day].mean()
    same_side = (np.sign(differences) == np.sign(overall)).mean()
    return bool(abs(overall) >= np.log(LEAST_RATIO) and same_side >= LEAST_PART_OF_DAYS)
