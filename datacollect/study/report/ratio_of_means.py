"""The ratio of two means over paired runs, with an interval: totals count, not single ratios.

The core paper divides means, as of storage: the most that source hosts store, averaged, over the
same by direct. A mean of ratios, as everywhere else in a report, asks another question.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from datacollect.numbers.intervals import CONFIDENCE, Interval

if TYPE_CHECKING:
    from collections.abc import Iterable


def ratio_of_means(above: Iterable[float], below: Iterable[float]) -> Interval:
    """Return the mean of one over the mean of the other, and its confidence interval.

    Student's t of the residuals above - ratio * below, n - 1 degrees of freedom, as for a ratio
    estimated from a sample, as far as that is not below 0. Where all of `below` are alike this is
    Student's t of the mean.

    Parameters
    ----------
    above, below : iterable of float, of equal length
        Paired by place. Pairs in which one is NaN do not count; none of `above` is negative,
        `below` is positive.

    Returns
    -------
    Interval
        Nothing is known of the bounds with fewer than two pairs.

    References
    ----------
    W. G. Cochran, *Sampling Techniques*, 3rd edition, Wiley 1977, section 6.4.

    Examples
    --------
    10 over 8; the mean of the ratios 2 and 1 would be 1.5.

    >>> found = ratio_of_means([4.0, 6.0], [2.0, 6.0])
    >>> found.mean, found.n
    (1.25, 2)
    >>> ratio_of_means([3.0, 3.0], [2.0, 2.0])
    Interval(mean=1.5, low=1.5, high=1.5, n=2)
    """
    from scipy.special import stdtrit

    pairs = np.array(list(zip(above, below, strict=True)), dtype=float).reshape(-1, 2)
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    n = len(pairs)
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0)
    mean_above, mean_below = pairs.mean(axis=0).tolist()
    ratio = mean_above / mean_below
    if n < 2:
        return Interval(ratio, math.nan, math.nan, n)
    residual = pairs[:, 0] - ratio * pairs[:, 1]
    # They add up to 0 by the choice of the ratio.
    error = math.sqrt(float(residual @ residual) / (n - 1) / n) / mean_below
    half = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2)) * error
    return Interval(ratio, ratio - half, ratio + half, n).from_zero()
