"""Hours of the day at which bandwidths change are found, where they do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import datacollect as dc
from datacollect.errors import ProblemError
from datacollect.measurement.series.day_and_night import day_and_night

HOUR_S = 3600.0
MONDAY_S = 1_767_571_200.0  # 5 January 2026, 0 h UTC


def a_week(factor, seed=1, noise=0.15, start=9, end=18):
    """Two pairs, one ten times as fast, tested each hour; by day times a factor."""
    hours = np.arange(24 * 7)
    random = np.random.default_rng(seed)
    by_day = np.where((hours % 24 >= start) & (hours % 24 < end), factor, 1.0)

    def of(head, level):
        rate = level * by_day * np.exp(random.normal(0, noise, len(hours)))
        table = {"from": "a", "to": head, "time_s": MONDAY_S + hours * HOUR_S}
        return pd.DataFrame(table).assign(bandwidth_bytes_per_s=rate)

    return pd.concat([of("b", 1e6), of("c", 1e7)])


@pytest.mark.parametrize("factor", [0.5, 0.7, 2.0])
def test_hours_of_known_days_are_found(factor):
    for seed in range(1000, 1010):
        assert day_and_night(a_week(factor, seed), "UTC") == ["09:00", "18:00"]


def test_clocks_of_the_zone_count():
    """9 h of UTC is 10 h in winter in Zurich."""
    assert day_and_night(a_week(0.5), "Europe/Zurich") == ["10:00", "19:00"]


def test_a_night_across_midnight_is_the_same_split():
    found = day_and_night(a_week(3.0, start=6, end=22), "UTC")
    assert found == ["06:00", "22:00"]


def test_chance_makes_no_day():
    assert all(day_and_night(a_week(1.0, seed), "UTC") == [] for seed in range(1000, 1050))


def test_a_part_of_a_day_or_two_days_tell_nothing():
    week = a_week(0.5)
    assert day_and_night(week[week["time_s"] < MONDAY_S + 48 * HOUR_S], "UTC") == []
    assert day_and_night(week[week["time_s"] % (24 * HOUR_S) < 20 * HOUR_S], "UTC") == []
    assert day_and_night(week[week["time_s"] < MONDAY_S + 72 * HOUR_S], "UTC") == ["09:00", "18:00"]


def test_estimates_take_the_hours():
    week = a_week(0.5, noise=0.01)
    hours = day_and_night(week, "UTC")
    found = dc.estimate(week, "median", daily=hours, timezone="UTC")
    by_day, by_night = found["bandwidth_bytes_per_s"].to_numpy()[:2]
    assert by_day == pytest.approx(by_night / 2, rel=0.05)


def test_failed_tests_are_refused():
    week = a_week(0.5).reset_index(drop=True)
    week.loc[5, "bandwidth_bytes_per_s"] = 0
    with pytest.raises(
        ProblemError, match="row 5: bandwidth_bytes_per_s must be > 0, got 0; leave"
    ):
        day_and_night(week, "UTC")
