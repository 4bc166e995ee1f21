"""The line through the origin, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from datacollect.errors import ProblemError
from datacollect.measurement.series.calibration import calibrate


def test_slope_and_r_squared_by_hand():
    """x 1, 2, 3; y 1, 3, 2: slope 13/14; residuals 1/14, 16/14, -11/14; squares 378/196 of 2."""
    found = calibrate([1, 2, 3], [1, 3, 2])
    assert found.slope == pytest.approx(13 / 14)
    assert found.r_squared == pytest.approx(1 - (378 / 196) / 2)


def test_a_line_that_says_less_than_the_mean_is_below_zero():
    """x 1, 2; y 2, 1: slope 4/5, residuals 6/5 and -3/5, squares 9/5 of 1/2: 1 - 18/5."""
    assert calibrate([1, 2], [2, 1]).r_squared == pytest.approx(-2.6)


def test_probes_of_twelve_paths_within_a_tenth_explain_tests():
    random = np.random.default_rng(1000)
    x = random.uniform(1e6, 10e6, 12)
    found = calibrate(x, 0.9 * x * np.exp(random.normal(0, 0.1, 12)))
    assert found.slope == pytest.approx(0.9, rel=0.1)
    assert found.r_squared >= 0.6


def test_units_cancel_in_r_squared():
    one, other = calibrate([1, 2, 3], [1, 3, 2]), calibrate([8, 16, 24], [1, 3, 2])
    assert other.r_squared == pytest.approx(one.r_squared)
    assert other.slope == pytest.approx(one.slope / 8)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1], [1], "of the same pairs, at least two"),
        ([1, 2], [1], "of the same pairs, at least two"),
        ([1, np.nan], [1, 2], "must be finite; leave out pairs without either"),
        ([0, 0], [1, 2], "x must not be 0 everywhere"),
        ([1, 2], [3, 3], "nor y the same"),
    ],
)
def test_points_without_a_line_are_refused(x, y, message):
    with pytest.raises(ProblemError, match=message):
        calibrate(x, y)
