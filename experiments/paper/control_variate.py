"""Control variates: a mean known better, with the help of a quantity that is cheap to have.

The fluid engine carries out the same scenario, seed for seed, in a thousandth of the time, and its
makespan goes with that of ns-3. Where ns-3's seeds happen to be slow ones, the fluid engine's mean
over them lies above its mean over other seeds, and by so much, times a coefficient, ns-3's mean
can be corrected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.files.kinds import shown_text
from datacollect.numbers.intervals import CONFIDENCE, Interval, mean_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.numbers.arrays import FloatArray

# Worth the trouble from here on: the part of the variance that it takes away.
LEAST_CUT = 1 / 3

FOLDS = 5


@dataclass(frozen=True)
class Controlled:
    """A mean with a control, beside the same without.

    Attributes
    ----------
    plain, controlled : Interval
    cut : float
        Part of the variance of the mean that the control takes away; below 0 where it adds some.
    """

    plain: Interval
    controlled: Interval
    cut: float

    @property
    def is_kept(self) -> bool:
        """Whether the control is worth it; the interval to show is then `controlled`."""
        return self.cut >= LEAST_CUT


def controlled_mean(
    values: Sequence[float],
    control: Sequence[float],
    more_control: Sequence[float],
    confidence: float = CONFIDENCE,
) -> Controlled:
    """Return a mean that is corrected by a control whose mean is known from more runs.

    The coefficient of each fold of the runs is estimated from the other folds (cross-fitting), so
    that the corrected values are not fitted to themselves and their mean has no bias. The control's
    own mean is uncertain too: its variance counts.

    Parameters
    ----------
    values : sequence of float
        Of the runs, in ns-3 say.
    control : sequence of float
        The control of the same runs, as many.
    more_control : sequence of float
        The control of further, independent runs.
    confidence : float

    Raises
    ------
    ValueError
        Lengths differ, or there are fewer runs than two for each fold.

    References
    ----------
    S. S. Lavenberg, P. D. Welch, "A Perspective on the Use of Control Variables to Increase the
    Efficiency of Monte Carlo Simulations", Management Science 27(3), 1981; cross-fitting as in
    V. Chernozhukov et al., "Double/debiased machine learning for treatment and structural
    parameters", The Econometrics Journal 21(1), 2018.

    Examples
    --------
    The control is the value itself: what is left is the uncertainty of the control's mean.

    >>> runs = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    >>> found = controlled_mean(runs, runs, [5.0, 6.0] * 500)
    >>> round(found.plain.mean, 2), round(found.controlled.mean, 2), found.is_kept
    (5.5, 5.5, True)
    """
    y, c = np.asarray(values, dtype=float), np.asarray(control, dtype=float)
    more = np.asarray(more_control, dtype=float)
    n = len(y)
    if len(c) != n or n < 2 * FOLDS or len(more) < 2:
        raise ValueError(
            f"needs {2 * FOLDS} runs and as many controls at least, and 2 further controls; got "
            f"{shown_text(str((n, len(c), len(more))))}"
        )
    expected = float(more.mean())
    coefficients = _cross_fitted(y, c)
    corrected = y - coefficients * (c - expected)
    plain, student = mean_interval(y, confidence), mean_interval(corrected, confidence)
    # The further controls are independent of the runs: variances add up.
    half = (student.high - student.low) / 2
    quantile = half / (float(np.std(corrected, ddof=1)) / math.sqrt(n)) if half else 0.0
    spread = float(np.std(np.concatenate([c, more]), ddof=1))
    own = float(np.mean(coefficients)) * spread / math.sqrt(len(more))
    half = math.hypot(half, quantile * own)
    controlled = Interval(student.mean, student.mean - half, student.mean + half, n)
    width = plain.high - plain.low
    cut = 1 - (2 * half / width) ** 2 if width else 0.0
    return Controlled(plain, controlled, cut)


def _cross_fitted(y: FloatArray, c: FloatArray) -> FloatArray:
    """The coefficient of each run, by least squares of the runs in the other folds."""
    found = np.zeros(len(y))
    fold = np.arange(len(y)) % FOLDS
    for number in range(FOLDS):
        others = fold != number
        spread = float(np.var(c[others], ddof=1))
        if spread > 0:
            found[~others] = float(np.cov(y[others], c[others])[0, 1]) / spread
    return found
