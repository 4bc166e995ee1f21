"""Calibration of cheap probes to rates of connections: a line through the origin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError


@dataclass(frozen=True)
class Calibration:
    """The line y = slope x.

    Attributes
    ----------
    slope : float
        What turns a probe's x into the y of a test with connections.
    r_squared : float
        1 − Σ(y − slope x)² / Σ(y − ȳ)²: 1 where all lie on the line, below 0 where their mean alone
        says more than the line. Above 0.6 the paper takes probes for tests.
    n : int
    """

    slope: float
    r_squared: float
    n: int


def calibrate(x: npt.ArrayLike, y: npt.ArrayLike) -> Calibration:
    """Fit the line through the origin with the least squares: slope Σxy / Σx².

    Parameters
    ----------
    x, y : array_like of float, shape (n,)
        Of each pair of hosts a mean of probes, and one of tests with connections, in the same unit.

    Raises
    ------
    ProblemError
        They are not of the same pairs, fewer than two, not finite, or all alike.

    Examples
    --------
    >>> calibrate([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    Calibration(slope=2.0, r_squared=1.0, n=3)
    """
    probes, tests = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if probes.shape != tests.shape or probes.ndim != 1 or len(probes) < 2:
        raise ProblemError(
            f"x and y must be of the same pairs, at least two, got shapes {probes.shape} and "
            f"{tests.shape}"
        )
    if not (np.isfinite(probes).all() and np.isfinite(tests).all()):
        raise ProblemError("x and y must be finite; leave out pairs without either")
    total = float(((tests - tests.mean()) ** 2).sum())
    if not probes.any() or total == 0:
        raise ProblemError(
            f"x must not be 0 everywhere, nor y the same, got {probes.tolist()} and "
            f"{tests.tolist()}; measure pairs that differ"
        )
    slope = float(probes @ tests / (probes @ probes))
    unexplained = float(((tests - slope * probes) ** 2).sum())
    return Calibration(slope, 1 - unexplained / total, len(probes))
