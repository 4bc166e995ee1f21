"""Prediction intervals of a pair's bandwidth: what the next collection may find, by its samples.

Samples that were taken soon after each other are alike, so they are no independent witnesses.
Whole blocks of time are drawn, with replacement, as many as there are, and averaged again: that is
how well the mean is known (Künsch, "The jackknife and the bootstrap for general stationary
observations", Annals of Statistics 17, 1989). What is sent next finds no mean but a time of its
own, so that each such mean is taken times what one block more, drawn from all that there are, was
beside them. Of few blocks such draws are too much alike: quantiles further out make up for that
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
    weights: npt.ArrayLike | None = None,
    seed: int = 0,
) -> tuple[float, float] | None:
    """Return between which rates what is sent next will find a pair, with 90 % certainty.

    Blocks are as many as the root of n, and so are samples in each. What is sent next is taken to
    be spread over as much time as a block; what is over sooner may find any of the samples.

    Parameters
    ----------
    bandwidth_bytes_per_s, time_s : array_like of float, shape (n,)
        The pair's samples; bandwidths >= 0.
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
        The arrays differ in length.

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
    n_blocks = int(np.sqrt(len(y)))
    if n_blocks < FEWEST_BLOCKS:
        return None
    if not y.any():
        return 0.0, 0.0
    in_time = np.argsort(at, kind="stable")
    y, w = y[in_time], w[in_time]
    random = np.random.default_rng(seed)
    low, high = np.quantile(
        _means(y, w, n_blocks, random) * _of_a_block(y, n_blocks, random), _quantiles(n_blocks)
    )
    # Where rates drift, the draws of both go beyond all that was ever measured.
    low, high = np.clip((low, high), y.min(), y.max())
    return float(low), float(high)


def _means(y: FloatArray, w: FloatArray, n_blocks: int, random: np.random.Generator) -> FloatArray:
    """Return the weighted means of draws of as many blocks as there are."""
    block = np.arange(len(y)) * n_blocks // len(y)
    sums = np.bincount(block, w * y, n_blocks)
    totals = np.bincount(block, w, n_blocks)
    drawn = random.integers(0, n_blocks, (DRAWS, n_blocks))
    means: FloatArray = sums[drawn].sum(axis=1) / totals[drawn].sum(axis=1)
    return means


def _of_a_block(y: FloatArray, n_blocks: int, random: np.random.Generator) -> FloatArray:
    """Return what draws of a block, which may begin at any sample, are beside the mean of all."""
    length = len(y) // n_blocks
    blocks = np.convolve(y, np.full(length, 1 / length), mode="valid")
    drawn: FloatArray = blocks[random.integers(0, len(blocks), DRAWS)] / blocks.mean()
    return drawn


def _quantiles(n_blocks: int) -> tuple[float, float]:
    """Return the quantiles of the draws, as much further out as so few blocks need."""
    wider = t.ppf((1 + CONFIDENCE) / 2, n_blocks - 1) * np.sqrt(n_blocks / (n_blocks - 1))
    return float(norm.cdf(-wider)), float(norm.cdf(wider))
