"""Growth of planning time: the fit, and that every series can be measured."""

from __future__ import annotations

import numpy as np
import pytest


def test_exponent_of_the_largest_sizes(scripts):
    """0.02 s times the square of the size, after a first point that is all overhead."""
    slope, factor = scripts("growth").exponent(
        np.array([1.0, 10.0, 100.0, 1000.0]), np.array([5.0, 2.0, 200.0, 20000.0])
    )
    assert (slope, factor) == (pytest.approx(2.0), pytest.approx(0.02))


@pytest.mark.parametrize("series", ["hosts", "links", "slots", "periods"])
def test_every_series_is_measured(scripts, series):
    growth = scripts("growth")
    size = growth.SERIES[series].sizes[1]
    row = growth.point(series, size, 1)
    assert row["median_s"] > 0
    assert (
        size
        == {
            "hosts": row["hosts"],
            "links": row["links"],
            "slots": 30,
            "periods": 3,
        }[series]
    )
