"""Rates by connections: m from rates whose curve is known; what one gets; the loss' limit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from datacollect.errors import ProblemError
from datacollect.measuring.probes.connection_curve import (
    competitors,
    mathis_bytes_per_s,
    per_connection_bytes_per_s,
)

N = np.array([1, 2, 4])


@pytest.mark.parametrize("m", [0.0, 0.3, 2.0, 4.0, 8.0, 100.0])
def test_rates_on_the_curve_give_its_m(m):
    assert competitors(19.1e6, N, 19.1e6 * N / (N + m)) == pytest.approx(m, rel=1e-6, abs=1e-9)


def test_the_best_m_has_the_least_sum_of_squares():
    """Compared with a fine grid: rates of m = 3 and m = 7 have their best between the two."""
    rate = 10 * N / (N + np.array([3, 7, 5]))
    grid = np.linspace(3, 7, 400_001)
    errors = ((rate / (10 * N / (N + grid[:, None])) - 1) ** 2).sum(axis=1)
    assert competitors(10.0, N, rate) == pytest.approx(grid[errors.argmin()], abs=1e-4)


@pytest.mark.parametrize("m", [2, 4, 8])
def test_m_of_many_noisy_curves_is_right_on_average(m):
    """30 % on each test: the median over many curves is off by an eighth at most."""
    noise = np.random.default_rng(m).normal(1, 0.3, (2000, 3)).clip(0.1)
    found = [competitors(20.0, N, 20.0 * N / (N + m) * each) for each in noise]
    assert np.median(found) == pytest.approx(m, rel=0.125)


@pytest.mark.parametrize("m", [2, 4, 8])
def test_noisy_rates_give_m_within_thirty_per_cent_in_four_of_five(m):
    """15 % on each test, and C 2 % off, as pairs give it."""
    random = np.random.default_rng(1000 + m)
    noise = np.exp(random.normal(0, 0.15, (1000, 3)))
    c = 20.0 * (1 + random.uniform(-0.02, 0.02, 1000))
    found = [competitors(c[i], N, 20.0 * N / (N + m) * noise[i]) for i in range(1000)]
    assert (np.abs(np.array(found) / m - 1) <= 0.3).mean() >= 0.8


def test_who_gets_more_than_the_capacity_has_no_competitors():
    assert competitors(10.0, [1, 2], [10.5, 11.0]) == 0.0


def test_one_connection_gets_what_tests_with_one_say():
    assert per_connection_bytes_per_s([1, 1, 8], [4.0, 6.0, 9.0]) == 5.0
    assert per_connection_bytes_per_s([4, 2], [20.0, 12.0]) == 6.0


def test_mathis_by_hand():
    """1.22 x 1000 bytes in 0.1 s by the root of 0.0001: 1.22 MB/s."""
    assert mathis_bytes_per_s(0.1, 1e-4, 1000) == pytest.approx(1.22e6)
    assert mathis_bytes_per_s(0.1, 0.0) == math.inf


@pytest.mark.parametrize(("rtt_s", "loss"), [(0.0, 0.1), (0.1, -0.1), (0.1, 1.1), (0.1, math.nan)])
def test_mathis_refuses_what_is_no_path(rtt_s, loss):
    with pytest.raises(ProblemError, match="must be"):
        mathis_bytes_per_s(rtt_s, loss)


@pytest.mark.parametrize(
    ("n", "rate", "message"),
    [
        ([1, 2], [1.0], "lists of the same tests, at least one"),
        ([], [], "lists of the same tests, at least one"),
        ([0, 2], [1.0, 1.0], "at least one connection and a rate > 0"),
        ([1, 2], [0.0, 1.0], r"a rate > 0, got \[1.0, 2.0\] and \[0.0, 1.0\]; leave out"),
    ],
)
def test_tests_that_are_none_are_refused(n, rate, message):
    with pytest.raises(ProblemError, match=message):
        competitors(10.0, n, rate)
    with pytest.raises(ProblemError, match=message):
        per_connection_bytes_per_s(n, rate)


def test_a_capacity_must_be_one():
    with pytest.raises(ProblemError, match="capacity_bytes_per_s must be > 0, got 0"):
        competitors(0, [1], [1.0])
