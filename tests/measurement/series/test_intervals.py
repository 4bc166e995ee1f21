"""Intervals of bandwidths hold what comes as often as they say, also where samples are alike."""

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


def coverage(n, rho):
    """How often the interval of 300 pairs holds the mean of the samples of the block that comes."""
    held, n_next = 0, int(np.sqrt(n))
    for seed in range(1000, 1300):
        y = 10 + autocorrelated(seed, n + n_next, rho)
        low, high = bandwidth_interval(y[:n], range(n))
        held += low <= y[n:].mean() <= high
    return held / 300


@pytest.mark.parametrize("rho", [0.0, 0.3])
@pytest.mark.parametrize("n", [25, 100, 400])
def test_intervals_hold_what_comes_in_nine_of_ten(n, rho):
    """Three standard deviations of the count are 5 %, few blocks leave a little unseen."""
    assert 0.83 <= coverage(n, rho) <= 0.95


def test_blocks_are_what_makes_them_honest():
    """Neighbours that hang together by 0.6 say the less of the mean of ten, the more they do."""
    assert coverage(100, 0.6) >= 0.83
    alone = np.random.default_rng(0)
    mixed = []
    for seed in range(1000, 1300):
        y = 10 + autocorrelated(seed, 110, 0.6)
        low, high = bandwidth_interval(alone.permutation(y[:100]), range(100))
        mixed.append(low <= y[100:].mean() <= high)
    assert np.mean(mixed) < 0.75


def test_what_always_was_the_same_will_be():
    assert bandwidth_interval([7.0] * 16, range(16)) == (7.0, 7.0)
    assert bandwidth_interval([0.0] * 16, range(16)) == (0.0, 0.0)


def test_what_comes_is_one_time_not_the_mean_of_all():
    """Halves of 1 and of 9 MB/s: whoever sends next may well find either."""
    low, high = bandwidth_interval([1e6] * 50 + [9e6] * 50, range(100))
    assert low < 1.5e6
    assert high > 8e6


def test_rates_are_never_below_none():
    low, high = bandwidth_interval([0.0, 0.0, 0.0, 1e9] * 4, range(16))
    assert 0 <= low <= high


def test_drift_promises_nothing_that_was_never_measured():
    """The newest count most, and were the highest: times what they were beside all is too much."""
    y = np.array([1e6] * 32 + [9e6] * 32)
    low, high = bandwidth_interval(y, range(64), weights=2.0 ** (np.arange(64) / 4))
    assert 1e6 <= low <= high <= 9e6


def test_an_interval_is_one_whatever_is_drawn():
    """Rates that fell by a thousand, the old ones forgotten: draws may lie below all samples."""
    random = np.random.default_rng(1)
    y = np.concatenate([np.full(5, 1e9), random.normal(1e6, 5e4, 195)])
    low, high = bandwidth_interval(y, range(200), weights=2.0 ** np.linspace(-50, 0, 200))
    assert y.min() <= low <= high <= y.max()


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
