"""How far to trust the bandwidth of a pair: an interval from its own samples.

Samples that were taken soon after each other are alike, so they are no independent witnesses.
Whole blocks of time are drawn, with replacement, as many as there are, and averaged anew (Künsch,
"The jackknife and the bootstrap for general stationary observations", Annals of Statistics 17,
1989). Of few blocks such draws are too much alike: quantiles further out make up for that
(Hesterberg, "What teachers should know about the bootstrap", The American Statistician 69, 2015).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, t

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray

DRAWS = 1000
CONFIDENCE = 0.9

# Fewer blocks of time say nothing of how much they differ.
FEWEST_BLOCKS = 4


def bandwidth_interval(
    bandwidth_bytes_per_s: npt.ArrayLike,
    time_s: npt.ArrayLike,
    *,
    block_s: float | None = None,
    weights: npt.ArrayLike | None = None,
    seed: int = 0,
) -> tuple[float, float] | None:
    """Return between which bandwidths a pair's mean lies with 90 % certainty.

    Parameters
    ----------
    bandwidth_bytes_per_s, time_s : array_like of float, shape (n,)
        The pair's samples.
    block_s : float, optional
        Length of a block; by default so that there are as many blocks as the root of n, and samples
        in each as many.
    weights : array_like of float, shape (n,), optional
        Of a weighted mean, such as by age; > 0.
    seed : int
        The same seed gives the same interval.

    Returns
    -------
    tuple of (float, float), or None
        None where there are fewer than four blocks.

    Raises
    ------
    ProblemError
        The arrays differ in length, or `block_s` is no length.

    Examples
    --------
    >>> low, high = bandwidth_interval([9.0, 11.0] * 50, range(100))
    >>> 9.0 < low <= 10.0 <= high < 11.0
    True
    >>> bandwidth_interval([9.0, 11.0], [0, 1]) is None
    True
    """
    y, at = np.asarray(bandwidth_bytes_per_s, dtype=float), np.asarray(time_s, dtype=float)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    if not y.shape == at.shape == w.shape:
        raise ProblemError(
            f"bandwidths, times and weights must be of the same samples, got shapes {y.shape}, "
            f"{at.shape} and {w.shape}"
        )
    if block_s is not None and not block_s > 0:
        raise ProblemError(f"block_s must be > 0, got {block_s!r}")
    block = _blocks(at, block_s)
    n_blocks = int(block.max(initial=-1)) + 1
    if n_blocks < FEWEST_BLOCKS:
        return None
    sums = np.bincount(block, w * y, n_blocks)
    totals = np.bincount(block, w, n_blocks)
    drawn = np.random.default_rng(seed).integers(0, n_blocks, (DRAWS, n_blocks))
    means = sums[drawn].sum(axis=1) / totals[drawn].sum(axis=1)
    low, high = np.quantile(means, _quantiles(n_blocks))
    return float(low), float(high)


def _blocks(time_s: FloatArray, block_s: float | None) -> npt.NDArray[np.intp]:
    """Return the number of the block in which each sample was taken, from 0, none empty."""
    if block_s is None:
        place = np.argsort(np.argsort(time_s, kind="stable"))
        n_blocks = max(int(np.sqrt(len(time_s))), 1)
        return np.asarray(place * n_blocks // max(len(time_s), 1), dtype=np.intp)
    return np.unique(np.floor(time_s / block_s), return_inverse=True)[1]


def _quantiles(n_blocks: int) -> tuple[float, float]:
    """Return the quantiles of the draws, as much further out as so few blocks need."""
    wider = t.ppf((1 + CONFIDENCE) / 2, n_blocks - 1) * np.sqrt(n_blocks / (n_blocks - 1))
    return float(norm.cdf(-wider)), float(norm.cdf(wider))
