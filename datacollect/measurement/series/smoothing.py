"""Averages that follow a pair's bandwidth, beside the samples themselves."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray


def smoothed(y: npt.ArrayLike, a: float = 0.9) -> FloatArray:
    """Return the moving average avg_i = (1 − a) y_i + a avg_(i−1) after each sample, avg_1 = y_1.

    Show it beside the samples: it is steadier, and sees a change later (Cottrell, Antony, Logg and
    Navratil, iGrid2002 Demonstration: Bandwidth from the Low Lands, 2003, section IV.C).

    Parameters
    ----------
    y : array_like of float, shape (n,)
        In order of time.
    a : float
        Weight of the past, 0 <= a < 1; 0.9 is the paper's.

    Raises
    ------
    ProblemError
        `a` is out of range.

    Examples
    --------
    >>> smoothed([10.0, 20.0, 20.0], a=0.5).tolist()
    [10.0, 15.0, 17.5]
    """
    if not 0 <= a < 1:
        raise ProblemError(f"a must be >= 0 and < 1, got {a!r}; the usual value is 0.9")
    averages = accumulate(
        np.asarray(y, dtype=float), lambda average, new: (1 - a) * new + a * average
    )
    return np.array(list(averages), dtype=float)
