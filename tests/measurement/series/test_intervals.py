"""Intervals of bandwidths hold the truth as often as they say, also where samples are alike."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from datacollect.errors import ProblemError
from datacollect.measurement.series.intervals import bandwidth_interval


def autocorrelated(seed, n, rho):
    """Standard normal samples, neighbours correlated by rho."""
    noise = np.random.default_rng(seed).standard_normal(n)
    noise[1:] *= np.sqrt(1 - rho**2)
    return lfilter([1], [1, -rho], noise)


def coverage(n, rho, **options):
    """How often the interval of 300 pairs holds the mean of 10."""
    held = 0
    for seed in range(1000, 1300):
        low, high = bandwidth_interval(10 + autocorrelated(seed, n, rho), range(n), **options)
        held += low <= 10 <= high
    return held / 300


@pytest.mark.parametrize("rho", [0.0, 0.3])
def test_intervals_hold_the_truth_in_nine_of_ten(rho):
    """Three standard deviations of the count are 5 %, blocks of ten leave a little unseen."""
    assert 0.83 <= coverage(100, rho) <= 0.97


def test_blocks_are_what_makes_them_honest():
    """Samples that hang together by 0.6, drawn one by one, would promise far too much."""
    assert coverage(100, 0.6, block_s=1.0) < 0.75
    assert coverage(100, 0.6) > 0.8


def test_blocks_are_of_time():
    """Two days of a burst of tests each and two with one: four blocks, of which each has its say.

    Draws of four from blocks with means 1, 1, 9, 9, weighted by 10, 1, 10, 1 samples: the extremes
    are all 1 and all 9.
    """
    time_s = [*range(10), 86_400, *range(172_800, 172_810), 259_200]
    y = [1.0] * 11 + [9.0] * 11
    assert bandwidth_interval(y, time_s, block_s=86_400) == (1.0, 9.0)
    assert bandwidth_interval(y, time_s, block_s=200_000) is None


def test_weights_count():
    y = np.array([1.0, 9.0] * 50)
    low, high = bandwidth_interval(y, range(100), weights=np.array([1.0, 3.0] * 50))
    assert low <= 7 <= high
    assert high - low < 1


def test_an_interval_is_the_same_each_time_and_in_any_order():
    random = np.random.default_rng(3)
    y, time_s = random.uniform(1, 9, 50), np.arange(50.0)
    order = random.permutation(50)
    found = bandwidth_interval(y, time_s)
    assert bandwidth_interval(y[order], time_s[order]) == pytest.approx(found)
    assert bandwidth_interval(y, time_s, seed=1) != found


@pytest.mark.parametrize(("n", "is_known"), [(0, False), (1, False), (15, False), (16, True)])
def test_few_samples_have_no_interval(n, is_known):
    """Sixteen make the four blocks of four that there must be."""
    assert (bandwidth_interval(np.ones(n), np.arange(n)) is not None) == is_known


def test_wrong_arguments_are_refused():
    with pytest.raises(ProblemError, match="must be of the same samples, got shapes"):
        bandwidth_interval([1.0], [0.0, 1.0])
    with pytest.raises(ProblemError, match="block_s must be > 0, got 0"):
        bandwidth_interval([1.0], [0.0], block_s=0)
