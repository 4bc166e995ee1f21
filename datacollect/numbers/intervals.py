"""Means and ratios with confidence intervals; no order where an interval does not settle it.

A ratio compares two methods that met the same networks, run for run. Its mean is geometric: the
mean of A over B is then one over that of B over A, whichever is written above, and 2 and 1/2
cancel; an arithmetic mean of ratios makes both A and B look slower than the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.numbers.arrays import FloatArray

CONFIDENCE = 0.95
RESAMPLES = 4999
SEED = 20020805

# Of four values or fewer a resample often repeats one alone, which says nothing of their spread.
LEAST_FOR_BOOTSTRAP = 5

# So many half-widths of Student's interval the bootstrap may reach. Beside one value far off,
# resamples without it show next to no spread, and their ends would be infinite. Costs no coverage.
FURTHEST = 3.0


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval.

    Attributes
    ----------
    mean : float
        NaN without values.
    low, high : float
        NaN with fewer than two values.
    n : int
        Values, or pairs.
    """

    mean: float
    low: float
    high: float
    n: int

    @property
    def is_known(self) -> bool:
        """Return whether there are values enough for an interval."""
        return self.n >= 2

    @property
    def relative_half_width(self) -> float:
        """Half of the interval's width over the mean; infinite where it is not known."""
        if not self.is_known:
            return math.inf
        half = (self.high - self.low) / 2
        return half / abs(self.mean) if self.mean else (math.inf if half else 0.0)

    def holds(self, value: float) -> bool:
        """Return whether a value lies in the interval."""
        return self.low <= value <= self.high

    def from_zero(self) -> Interval:
        """Return the part that is possible for what is never below 0, such as times and bytes.

        Of two values Student's t reaches 12.7 standard errors to either side, often below 0. The
        truth does not lie there: without that part the interval holds it as often as before.

        >>> mean_interval([1.0, 2.0]).from_zero().low
        0.0
        """
        return replace(self, low=max(self.low, 0.0))  # NaN stays


def mean_interval(values: Iterable[float], confidence: float = CONFIDENCE) -> Interval:
    """Return the mean and its confidence interval by Student's t.

    Parameters
    ----------
    values : iterable of float
        Independent; NaN counts as absent.
    confidence : float
        Below 1.

    Returns
    -------
    Interval

    References
    ----------
    Student, "The probable error of a mean", Biometrika 6(1), 1908.

    Examples
    --------
    Two values, 1 apart: t = 12.71, standard error 0.5.

    >>> found = mean_interval([1.0, 2.0])
    >>> found.mean, round(found.low, 2), round(found.high, 2)
    (1.5, -4.85, 7.85)
    """
    known = _known(values)
    n = len(known)
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0)
    mean = float(known.mean())
    half = _student_half_width(known, confidence)
    return Interval(mean, mean - half, mean + half, n)


def ratio_interval(
    above: Iterable[float], below: Iterable[float], confidence: float = CONFIDENCE
) -> Interval:
    """Return the geometric mean of paired ratios and its confidence interval.

    Student's t of the logarithms, and from 5 pairs on at each end the further of this and the
    studentised bootstrap (Hall 1988), three times as far at most. Student's alone holds the truth
    too rarely where logarithms are skewed: 89 times in a hundred for eight exponential ones, and
    nearly always misses it at the same end. Together they hold it 94 times in a hundred there, 96
    or 97 times where logarithms are normal. The random numbers are the same at every call.

    Parameters
    ----------
    above, below : iterable of float, of equal length
        Positive, paired by place. Pairs in which one is NaN, or not positive, do not count.
    confidence : float
        Below 1.

    Returns
    -------
    Interval

    References
    ----------
    P. Hall, "Theoretical Comparison of Bootstrap Confidence Intervals", Annals of Statistics 16(3),
    1988.

    Examples
    --------
    >>> found = ratio_interval([2.0, 8.0], [1.0, 2.0])  # 2 and 4
    >>> round(found.mean, 4), found.n
    (2.8284, 2)
    >>> ratio_interval([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    Interval(mean=2.0, low=2.0, high=2.0, n=3)
    """
    pairs = np.array(list(zip(above, below, strict=True)), dtype=float).reshape(-1, 2)
    pairs = pairs[(np.isfinite(pairs) & (pairs > 0)).all(axis=1)]
    ratios = pairs[:, 0] / pairs[:, 1]
    n = len(ratios)
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0)
    if np.ptp(ratios) == 0:
        only = float(ratios[0])
        return Interval(only, *((only, only) if n > 1 else (math.nan, math.nan)), n)
    logs = np.log(ratios)
    mean = float(logs.mean())
    half = below_mean = above_mean = _student_half_width(logs, confidence)
    if n >= LEAST_FOR_BOOTSTRAP:
        least, most = _resampled_student(logs - mean, confidence)
        error = float(np.std(logs, ddof=1)) / math.sqrt(n)
        # Where means of resamples lie far above, in terms of their own error, the true one may lie
        # as far below.
        below_mean = min(max(half, error * most), FURTHEST * half)
        above_mean = min(max(half, -error * least), FURTHEST * half)
    return Interval(math.exp(mean), math.exp(mean - below_mean), math.exp(mean + above_mean), n)


def ordered(above: Iterable[float], below: Iterable[float]) -> int:
    """Return which of two paired samples is larger, if that is settled.

    Returns
    -------
    int
        1: `above` is larger; -1: it is smaller; 0: the interval of the ratio holds 1, or there
        are too few pairs.

    Examples
    --------
    >>> ordered([2.0, 2.1, 2.2], [1.0, 1.1, 1.0]), ordered([1.0, 2.0, 1.5], [1.1, 1.8, 1.5])
    (1, 0)
    """
    return side_of_one(ratio_interval(above, below))


def side_of_one(ratio: Interval) -> int:
    """Return 1 where an interval lies above 1, -1 where it lies below, else 0.

    >>> side_of_one(Interval(1.2, 1.1, 1.3, 5)), side_of_one(Interval(1.2, 0.9, 1.6, 5))
    (1, 0)
    """
    if not ratio.is_known:
        return 0
    return int(ratio.low > 1) - int(ratio.high < 1)


def _known(values: Iterable[float]) -> FloatArray:
    return np.array([value for value in values if not math.isnan(value)], dtype=np.float64)


def _student_half_width(values: FloatArray, confidence: float) -> float:
    from scipy.special import stdtrit

    n = len(values)
    if n < 2:
        return math.nan
    quantile = float(stdtrit(n - 1, 0.5 + confidence / 2))
    return quantile * float(np.std(values, ddof=1)) / math.sqrt(n)


def _resampled_student(deviations: FloatArray, confidence: float) -> tuple[float, float]:
    """Return low and high quantiles of Student's ratio, mean over its error, over resamples.

    Infinite where many resamples repeat one value.

    Parameters
    ----------
    deviations : ndarray, shape (n,)
        From the mean.
    confidence : float
    """
    weights = _resample_weights(len(deviations))
    means = weights @ deviations
    variances = weights @ deviations**2 - means**2
    varies = variances > 0
    errors = np.sqrt(np.where(varies, variances, 1.0) / (len(deviations) - 1))
    ratios = np.sort(np.where(varies, means / errors, np.copysign(np.inf, means)))
    rank = max(1, int((RESAMPLES + 1) * (1 - confidence) / 2))
    return float(ratios[rank - 1]), float(ratios[-rank])


@lru_cache(maxsize=64)
def _resample_weights(n: int) -> FloatArray:
    """Return how often each of n values is in each resample, over n; shape (`RESAMPLES`, n)."""
    random = np.random.default_rng(SEED + n)
    times = random.multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    return times / n
