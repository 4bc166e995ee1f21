"""Control variates: less variance where the control goes along, and intervals that still cover."""

from __future__ import annotations

import numpy as np
import pytest

from paper.control_variate import FOLDS, controlled_mean


def samples(n_samples, n, correlation, seed=1, n_more=1000):
    """Makespans of mean 100 and spread 20, a control of mean 40 and spread 8, as many of it."""
    random = np.random.default_rng(seed)
    for _ in range(n_samples):
        a, b = random.standard_normal((2, n))
        y = 100 + 20 * (correlation * a + (1 - correlation**2) ** 0.5 * b)
        yield y, 40 + 8 * a, 40 + 8 * random.standard_normal(n_more)


@pytest.mark.parametrize(("n", "correlation"), [(10, 0.0), (10, 0.9), (30, 0.6)])
def test_intervals_hold_the_truth_as_often_as_they_say(n, correlation):
    intervals_hold_the_truth(n, correlation)


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("n", [10, 20, 30])
def test_many_intervals_hold_the_truth_as_often_as_they_say(n, correlation):
    intervals_hold_the_truth(n, correlation)


def intervals_hold_the_truth(n, correlation):
    found = [controlled_mean(*sample) for sample in samples(1500, n, correlation)]
    held = np.mean([each.controlled.holds(100) for each in found])
    assert 0.93 <= held <= 0.975
    means = [each.controlled.mean for each in found]
    assert np.mean(means) == pytest.approx(100, abs=0.6)  # no bias


def test_the_variance_that_it_says_it_cuts_it_cuts():
    """A correlation of 0.9 leaves 1 - 0.81 of the variance, and a little for the coefficient."""
    found = [controlled_mean(*sample) for sample in samples(1500, 30, 0.9)]
    plain, controlled = (
        np.var([getattr(each, name).mean for each in found]) for name in ("plain", "controlled")
    )
    assert 1 - controlled / plain == pytest.approx(0.78, abs=0.05)
    assert np.mean([each.cut for each in found]) == pytest.approx(0.78, abs=0.05)
    assert np.mean([each.is_kept for each in found]) > 0.99


def test_a_control_that_has_nothing_to_do_with_it_is_not_kept():
    found = [controlled_mean(*sample) for sample in samples(500, 30, 0.0)]
    assert np.mean([each.is_kept for each in found]) < 0.02


def test_a_control_whose_mean_is_hardly_known_gains_nothing():
    """Two further controls: their mean is less well known than that of the 30 runs."""
    found = [controlled_mean(*sample) for sample in samples(500, 30, 0.9, n_more=2)]
    assert np.mean([each.is_kept for each in found]) < 0.1


def test_too_few_runs_for_the_folds_are_refused():
    with pytest.raises(ValueError, match=f"needs {2 * FOLDS} runs"):
        controlled_mean([1.0] * 9, [1.0] * 9, [1.0, 2.0])
