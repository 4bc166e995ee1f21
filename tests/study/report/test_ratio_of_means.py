"""Ratios of means: by hand, and how often their intervals hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from datacollect.numbers.intervals import mean_interval
from datacollect.study.report.ratio_of_means import ratio_of_means


def test_totals_count_and_not_single_ratios():
    """10 over 8, not the mean of 2 and 1; residuals 1.5 and -1.5, standard error 1.5 / 4."""
    found = ratio_of_means([4.0, 6.0], [2.0, 6.0])
    assert found.mean == 1.25
    assert found.high - found.mean == pytest.approx(12.7062 * 1.5 / 4, rel=1e-5)


def test_over_what_is_always_alike_it_is_students_interval():
    values = [1.0, 1.4, 1.1, 1.9]
    found, students = ratio_of_means(values, [2.0] * 4), mean_interval(values)
    assert (found.mean, found.low, found.high) == pytest.approx(
        (students.mean / 2, students.low / 2, students.high / 2)
    )


def test_what_is_stored_is_not_less_than_nothing():
    """Two pairs far apart: 12.7 standard errors of 0.4 below 1.25 would be -3.5."""
    found = ratio_of_means([4.0, 6.0], [2.0, 6.0])
    assert found.low == 0
    assert found.high > 2 * found.mean


def test_what_is_not_there_does_not_count():
    assert ratio_of_means([1.0, math.nan], [2.0, 3.0]).n == 1
    assert not ratio_of_means([1.0], [2.0]).is_known
    assert ratio_of_means([], []).n == 0


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Storage over a backlog: both vary by a fifth, together; 2000 samples of 8 pairs."""
    random = np.random.default_rng(3)
    below = random.lognormal(0, 0.2, (2000, 8))
    above = 1.2 * below * random.lognormal(-(0.1**2) / 2, 0.1, (2000, 8))
    held = [ratio_of_means(a, b).holds(1.2) for a, b in zip(above, below, strict=True)]
    assert 0.93 <= np.mean(held) <= 0.97
