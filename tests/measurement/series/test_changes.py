"""Changes are seen by the second sample, and seldom where there are none.

The window and the deviations were chosen with other seeds than those here.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from datacollect.measurement.series.changes import confirm_changes, flag_changes, route_changes

DAY = 1440  # samples, one a minute


def rates(seed, n, rho=0.0):
    """Lognormal rates around 1, standard deviation of the logarithm 0.15."""
    noise = 0.15 * np.random.default_rng(seed).standard_normal(n)
    noise[1:] *= np.sqrt(1 - rho**2)
    return np.exp(lfilter([1], [1, -rho], noise))


@pytest.mark.parametrize("rho", [0.0, 0.15, 0.3])
def test_at_most_one_false_alarm_a_day(rho):
    assert sum(len(flag_changes(rates(seed, DAY, rho))) for seed in range(1000, 1040)) <= 40


@pytest.mark.parametrize("rho", [0.0, 0.3])
def test_a_halved_rate_is_flagged_by_the_second_sample(rho):
    seen = 0
    for seed in range(2000, 2200):
        y = rates(seed, 122, rho)
        y[100:] /= 2
        seen += 101 in flag_changes(y)
    assert seen >= 0.8 * 200


def test_one_sample_is_no_change_nor_are_two_to_different_sides():
    usual = [9.0, 10.0, 11.0] * 10
    assert flag_changes([*usual, 2.0, 10.0, 10.0]) == []
    assert flag_changes([*usual, 2.0, 50.0, 10.0]) == []
    assert flag_changes([*usual, 2.0, 2.0, 2.0, 2.0]) == [31]
    assert flag_changes([*usual, 50.0, 50.0]) == [31]


def test_a_host_that_vanishes_and_comes_back_is_a_change_each_time():
    usual = [9.0, 10.0, 11.0] * 10
    assert flag_changes(usual + [0.0] * 3 + usual) == [31]
    gone = usual + [0.0] * 80 + usual
    assert flag_changes(gone) == [31, 111]


def test_minutes_without_a_test_do_not_count():
    usual = [9.0, 10.0, 11.0] * 10
    assert flag_changes([*usual, np.nan, 5.0, np.nan, 5.0]) == [33]


def test_rates_in_few_digits_may_differ_by_a_hundredth():
    assert flag_changes([10.0] * 30 + [10.1, 10.1]) == []
    assert flag_changes([10.0] * 30 + [12.0, 12.0]) == [31]


def test_few_samples_tell_nothing():
    assert flag_changes([]) == []
    assert flag_changes([10.0] * 19 + [1.0, 1.0]) == []
    assert flag_changes([10.0] * 20 + [1.0, 1.0]) == [21]


def test_a_new_route_is_one_seen_twice():
    assert list(route_changes([])) == []
    assert list(route_changes(["a", "b", "a", "b"])) == []
    assert list(route_changes(["a", "b", "b", "a", "a"])) == [2, 4]
    # Two that differ from the route and from each other are none.
    assert list(route_changes(["a", "b", "c", "a"])) == []


def test_a_silent_router_makes_no_route_different():
    assert list(route_changes([("r1", None), ("r1", "r2"), ("r1", None)])) == []
    # What was learnt where the first trace was silent counts.
    assert list(route_changes([("r1", None), ("r1", "r2"), ("r1", "r3"), ("r1", "r3")])) == [3]
    # Two traces that were cut early say nothing of what comes after.
    assert list(route_changes([("r1", "r2"), ("r1", None), ("r1", None)])) == []
    assert list(route_changes([("r1", "r2", "r3"), (None,), (None,)])) == []
    assert list(route_changes([("r1", "r2", "r3"), ("r1", "r2"), ("r1", "r2")])) == [2]


def test_a_halved_rate_is_confirmed_by_five_samples_and_noise_is_not():
    """In 40 days without a change no alarm is confirmed, at an autocorrelation of 0.3."""
    confirmed = 0
    for seed in range(2000, 2040):
        y = rates(seed, 105, 0.3)
        y[100:] /= 2
        confirmed += confirm_changes(y, [101]) == [True]
        assert confirm_changes(y[:104], [101]) == [False]
    assert confirmed >= 0.8 * 40
    for seed in range(1000, 1040):
        y = rates(seed, DAY, 0.3)
        confirmed = confirm_changes(y, flag_changes(y))
        assert not any(confirmed)
