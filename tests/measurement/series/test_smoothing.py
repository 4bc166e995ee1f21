"""The moving average of the paper, beside the samples."""

from __future__ import annotations

import numpy as np
import pytest

import datacollect as dc
from datacollect.errors import ProblemError
from datacollect.measurement.series.smoothing import smoothed


def test_each_average_follows_from_the_one_before():
    """With a = 0.9 from 10: 0.1 x 20 + 0.9 x 10 = 11, then 0.1 x 0 + 0.9 x 11 = 9.9."""
    assert smoothed([10, 20, 0]) == pytest.approx([10, 11, 9.9])


def test_a_halved_rate_takes_seven_samples_to_be_half_seen():
    """0.9^6 is 0.53 and 0.9^7 is 0.48; the samples show it at once."""
    found = smoothed([1.0] * 5 + [0.0] * 7)
    assert found[10] > 0.5 > found[11]


def test_the_last_average_is_what_estimates_have():
    import pandas as pd

    y = np.random.default_rng(1).uniform(1, 9, 30)
    samples = pd.DataFrame({"from": "a", "to": "b", "time_s": range(30)})
    found = dc.estimate(samples.assign(bandwidth_bytes_per_s=y), "ewma", a=0.8)
    assert smoothed(y, 0.8)[-1] == pytest.approx(found["bandwidth_bytes_per_s"].iloc[0])


def test_without_a_past_averages_are_the_samples():
    assert smoothed([3, 1, 2], 0.0).tolist() == [3, 1, 2]
    assert smoothed([]).tolist() == []


@pytest.mark.parametrize("a", [1.0, -0.1, float("nan")])
def test_a_weight_that_is_none_is_refused(a):
    with pytest.raises(ProblemError, match="a must be >= 0 and < 1, got"):
        smoothed([1.0], a)
