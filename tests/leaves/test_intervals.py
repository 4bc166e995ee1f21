"""Intervals of means and of paired ratios, by hand and by how often they hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, ttest_1samp

from datacollect.intervals import (
    LEAST_FOR_BOOTSTRAP,
    Interval,
    mean_interval,
    ordered,
    ratio_interval,
)

REPETITIONS = 1000
# How often 95 % intervals may hold the truth in 1000 repetitions: but for one case in 10 000.
WITHIN = binom.interval(0.9999, REPETITIONS, 0.95)


def test_student_interval_of_three_values_by_hand():
    """1, 2, 3: mean 2, deviation 1, standard error 1/√3, t(0.975, 2) = 4.3027."""
    found = mean_interval([1.0, 2.0, 3.0])
    half = 4.302653 / math.sqrt(3)
    assert (found.mean, found.n) == (2.0, 3)
    assert (found.low, found.high) == pytest.approx((2 - half, 2 + half), rel=1e-6)
    assert found.relative_half_width == pytest.approx(half / 2)


def test_student_interval_is_that_of_scipy():
    values = np.random.default_rng(1).normal(5, 2, 12)
    theirs = ttest_1samp(values, 0).confidence_interval(0.9)
    found = mean_interval(values, 0.9)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))


@pytest.mark.parametrize(("values", "n"), [([], 0), ([3.0], 1), ([3.0, math.nan], 1)])
def test_fewer_than_two_values_have_no_interval(values, n):
    found = mean_interval(values)
    assert found.n == n
    assert not found.is_known
    assert math.isnan(found.low)
    assert found.relative_half_width == math.inf


@pytest.mark.parametrize("n", [3, 10])
def test_mean_intervals_hold_the_truth_as_often_as_they_say(n):
    random = np.random.default_rng(n)
    hits = sum(mean_interval(random.normal(7, 2, n)).holds(7) for _ in range(REPETITIONS))
    assert WITHIN[0] <= hits <= WITHIN[1]


@pytest.mark.parametrize("n", [5, LEAST_FOR_BOOTSTRAP, 20])
@pytest.mark.parametrize("spread", [0.05, 0.6])
def test_ratio_intervals_hold_the_truth_as_often_as_they_say(n, spread):
    """Both of a pair share a large factor, as runs of one seed do; it must not matter."""
    random = np.random.default_rng(n)
    hits = 0
    for _ in range(REPETITIONS):
        below = random.lognormal(0, 1, n)
        above = 1.5 * below * random.lognormal(0, spread, n)
        hits += ratio_interval(above, below).holds(1.5)
    # A bootstrap is exact in the limit only: two more in a hundred may miss.
    assert WITHIN[0] - 20 <= hits <= WITHIN[1]


def test_an_interval_without_expansion_would_hold_it_too_rarely():
    """What the coverage test can tell: plain percentiles of 8 values miss in one case of ten."""
    random = np.random.default_rng(8)
    hits = 0
    for _ in range(REPETITIONS):
        logs = random.normal(0, 0.6, 8)
        means = random.choice(logs, (400, 8)).mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975])
        hits += low <= 0 <= high
    assert hits < WITHIN[0] - 20


def test_ratios_that_are_all_the_same_leave_nothing_open():
    """Exact: every resample has the same mean."""
    below = np.arange(1.0, 13.0)
    assert ratio_interval(3 * below, below) == Interval(3.0, 3.0, 3.0, 12)


def test_the_bootstrap_of_two_values_of_ratio_by_hand():
    """Nine ratios 1 and one ratio e: resamples hold e k times, k binomial (10, 0.1).

    Tails: t(0.975, 9) = 2.2622, times √(10/9), gives 0.85 %. P(k = 0) = 35 %, so the low end is
    at k = 0; P(k <= 3) = 98.7 %, P(k <= 4) = 99.8 %, so the high end is at k = 4: e^0.4.
    """
    found = ratio_interval([1.0] * 9 + [math.e], [1.0] * 10)
    assert (found.mean, found.low, found.high) == pytest.approx((math.exp(0.1), 1.0, math.exp(0.4)))


def test_exchanging_both_inverts_the_ratio():
    random = np.random.default_rng(2)
    for n in (5, 15):
        a, b = random.lognormal(0, 1, n), random.lognormal(1, 1, n)
        there, back = ratio_interval(a, b), ratio_interval(b, a)
        assert there.mean == pytest.approx(1 / back.mean)
        # The bootstrap's own randomness is not symmetric to the last digit.
        assert there.low == pytest.approx(1 / back.high, rel=0.1)
        assert ordered(a, b) == -ordered(b, a)


def test_the_same_data_give_the_same_interval_and_units_cancel():
    random = np.random.default_rng(3)
    a, b = random.lognormal(0, 1, 20), random.lognormal(0, 1, 20)
    first = ratio_interval(a, b)
    assert ratio_interval(a, b) == first
    scaled = ratio_interval(1000 * a, 1000 * b)
    assert (scaled.low, scaled.high) == pytest.approx((first.low, first.high))


def test_pairs_with_a_run_that_did_not_end_do_not_count():
    found = ratio_interval([2.0, math.nan, 4.0, 8.0], [1.0, 1.0, 2.0, math.nan])
    assert (found.mean, found.n) == (2.0, 2)


def test_pairing_settles_what_separate_intervals_do_not():
    """Seeds differ tenfold, methods by 10 %."""
    base = np.array([1.0, 10.0, 2.0, 8.0, 4.0])
    slow = base * np.array([1.1, 1.12, 1.09, 1.11, 1.1])
    assert mean_interval(base).high > mean_interval(slow).low
    assert ordered(slow, base) == 1


def test_no_order_without_two_pairs():
    assert ordered([2.0], [1.0]) == 0
    assert ordered([], []) == 0


def test_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        ratio_interval([1.0, 2.0], [1.0])
