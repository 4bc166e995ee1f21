"""Quantiles of times, some of which never come."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray


def quantile(values: FloatArray, part: float) -> float:
    """Return a quantile, linear between neighbours; infinite where one of these is.

    >>> quantile(np.array([1.0, 2.0, np.inf]), 0.5), quantile(np.array([1.0, np.inf]), 0.5)
    (2.0, inf)
    """
    ordered = np.sort(values)
    place = part * (len(ordered) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    if below == above or np.isinf(above):
        return float(above)
    return float(below + (place - math.floor(place)) * (above - below))
