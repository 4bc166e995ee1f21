"""Estimates from samples: by hand, and against their definitions sample by sample."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollect.errors import ProblemError
from datacollect.measurement.estimates import estimate
from datacollect.problem.problem import Problem


def table(rows: list[tuple[str, str, float, float]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["from", "to", "time_s", "bandwidth_bytes_per_s"])


def value(samples: pd.DataFrame, how: str | None = None, **options: float) -> float:
    estimated = estimate(samples, how, **options)
    assert len(estimated) == 1
    return float(estimated["bandwidth_bytes_per_s"].iloc[0])


def test_ewma_weighs_the_past_with_a_and_starts_at_the_first_sample():
    """10, then 0.1·20 + 0.9·10 = 11, then 0.1·31 + 0.9·11 = 13."""
    samples = table([("S", "D", 0, 10), ("S", "D", 1, 20), ("S", "D", 2, 31)])
    assert value(samples.iloc[:1], "ewma") == 10
    assert value(samples.iloc[:2], "ewma") == pytest.approx(11)
    assert value(samples, "ewma") == value(samples, a=0.9) == pytest.approx(13)
    assert value(samples, a=0.0) == 31


def test_by_default_samples_weigh_half_for_each_day_that_they_are_older():
    """Weights 1/4, 1/2, 1 over 7/4: (8/4 + 16/2 + 32) / (7/4) = 24. The first has 1/7 of all."""
    days = table([("S", "D", 86_400 * day, y) for day, y in enumerate([8, 16, 32])])
    assert value(days) == pytest.approx(24)
    hours = days.assign(time_s=days["time_s"] / 24)
    assert value(hours, half_life_s=3600.0) == pytest.approx(24)


def test_the_first_of_six_weekly_samples_is_forgotten_by_the_default():
    """By ewma with 0.9 it has 0.9⁵ = 59 % of all weight; by age 2⁻³⁵ of 1."""
    samples = table([("S", "D", 7 * 86_400 * i, 100 if i == 0 else 0) for i in range(6)])
    assert value(samples, "ewma") == pytest.approx(59.049)
    assert value(samples) < 1e-8


def test_samples_equally_old_have_their_mean_whatever_came_first():
    samples = table([("S", "D", 5, 10), ("S", "D", 5, 20), ("S", "D", 5, 60)])
    assert value(samples) == pytest.approx(30)
    assert value(samples.iloc[::-1]) == pytest.approx(30)


def test_means_of_the_largest_numbers_are_numbers():
    samples = table([("S", "D", 0, 1.5e308), ("S", "D", 0, 1.7e308)])
    assert value(samples) == pytest.approx(1.6e308)
    assert estimate(samples)["mean_bytes_per_s"].tolist() == [pytest.approx(1.6e308)]


@pytest.mark.parametrize("half_life_s", [1e-300, 1.0, 1e300])
def test_ages_of_all_sizes_have_weights(half_life_s):
    samples = table([("S", "D", -1e300, 10), ("S", "D", 1e9, 30), ("S", "D", 1e9, 50)])
    # The oldest is one half-life of 1e300 s older: (10/2 + 30 + 50) / 2.5.
    expected = 34 if half_life_s == 1e300 else 40
    assert value(samples, half_life_s=half_life_s) == pytest.approx(expected)


def test_the_mean_and_the_last_sample_stand_beside_each_estimate():
    rows = [("S", "D", 60, 40.0), ("S", "D", 0, 10.0), ("K", "D", 9, 7.0), ("S", "D", 30, 10.0)]
    for how in ("recent", "ewma", "last", "median", "quantile"):
        found = estimate(table(rows), how)
        assert found["mean_bytes_per_s"].tolist() == [7.0, 20.0]
        assert found["last_bytes_per_s"].tolist() == [7.0, 40.0]


def test_order_is_that_of_time_not_of_rows():
    """In order of time 10, 20: avg = 0.1·20 + 0.9·10 = 11; the newest is 20."""
    samples = table([("S", "D", 7, 20), ("S", "D", 3, 10)])
    assert value(samples, "ewma") == pytest.approx(11)
    assert value(samples, "last") == 20


def test_samples_of_the_same_time_count_in_the_order_of_rows():
    assert value(table([("S", "D", 7, 20), ("S", "D", 7, 10)]), "last") == 10


def test_median_and_quantile_interpolate_between_neighbours():
    """Of 1, 2, 4, 8 the median is 3 and the lower quartile 1 + 0.75·1 = 1.75."""
    samples = table([("S", "D", i, y) for i, y in enumerate([8, 1, 4, 2])])
    assert value(samples, "median") == 3
    assert value(samples, "quantile") == 1.75
    assert value(samples, "quantile", quantile=0.0) == 1
    assert value(samples, "quantile", quantile=1.0) == 8


def test_mean_is_all_bytes_over_all_seconds():
    """5 MB in 1 s and 5 MB in 4 s: 10 MB in 5 s, 2 MB/s; the mean of the rates would be 3.125."""
    samples = table([("S", "D", 0, 5e6), ("S", "D", 1, 1.25e6), ("D", "S", 0, 7.0)])
    samples["bytes"], samples["duration_s"] = [5_000_000, 5_000_000, 14], [1.0, 4.0, 2.0]
    assert estimate(samples, "mean")["bandwidth_bytes_per_s"].tolist() == [7.0, 2e6]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bytes": None}, 'column bytes is missing, which how = "mean" needs'),
        ({"duration_s": 0.0}, "row 0: duration_s must be > 0 and finite, got 0; remove the row"),
        ({"bytes": -1}, "row 0: bytes must be >= 0 and finite, got -1"),
    ],
)
def test_a_mean_of_what_no_bytes_or_seconds_are_known_of_is_refused(change, message):
    samples = table([("S", "D", 0, 5e6)]).assign(**{"bytes": 5, "duration_s": 1.0, **change})
    samples = samples.dropna(axis="columns")
    with pytest.raises(ProblemError, match=message):
        estimate(samples, "mean")


def test_pairs_are_ordered_and_apart():
    """B -> A and A -> B are two pairs; ages count from the newest sample of all, at 9."""
    samples = table([("B", "A", 4, 1), ("A", "B", 9, 5), ("B", "A", 2, 3)])
    estimated = estimate(samples, "last")
    assert estimated.to_dict("records") == [
        {
            "from": "A",
            "to": "B",
            "bandwidth_bytes_per_s": 5,
            "newest_s": 9,
            "age_s": 0,
            "n_samples": 1,
            "mean_bytes_per_s": 5,
            "last_bytes_per_s": 5,
            "kind": "",
        },
        {
            "from": "B",
            "to": "A",
            "bandwidth_bytes_per_s": 1,
            "newest_s": 4,
            "age_s": 5,
            "n_samples": 2,
            "mean_bytes_per_s": 2,
            "last_bytes_per_s": 1,
            "kind": "",
        },
    ]
    assert estimate(samples, now_s=10.0)["age_s"].tolist() == [1, 6]


def test_no_samples_give_no_estimates():
    for how in ("recent", "ewma", "mean", "last", "median", "quantile"):
        assert estimate(table([]).assign(bytes=[], duration_s=[]), how).empty


@given(
    st.lists(
        st.tuples(
            st.sampled_from("AB"),
            st.sampled_from("CD"),
            st.integers(0, 5),
            st.floats(0, 1e9, allow_subnormal=False),
        ),
        min_size=1,
        max_size=40,
    ),
    st.floats(0, 0.99),
)
def test_estimates_equal_the_definitions_sample_by_sample(rows, a):
    """The oracle follows the definitions one sample at a time; equal rows of an instant are one."""
    rows = [row for i, row in enumerate(rows) if row[2] == 0 or row not in rows[:i]]
    estimated = {how: estimate(table(rows), how, a=a) for how in ("ewma", "last", "median")}
    low = estimate(table(rows), "quantile", quantile=0.3)
    pairs = sorted({row[:2] for row in rows})
    for i, pair in enumerate(pairs):
        ordered = [y for *_, y in sorted((r for r in rows if r[:2] == pair), key=lambda r: r[2])]
        average = ordered[0]
        for y in ordered[1:]:
            average = (1 - a) * y + a * average
        got = {how: table_["bandwidth_bytes_per_s"][i] for how, table_ in estimated.items()}
        assert got["ewma"] == pytest.approx(average, rel=1e-9)
        assert got["last"] == pytest.approx(ordered[-1], rel=1e-12)
        assert got["median"] == pytest.approx(float(np.median(ordered)), rel=1e-12)
        expected = float(np.quantile(ordered, 0.3))
        assert low["bandwidth_bytes_per_s"][i] == pytest.approx(expected, rel=1e-9)
    for table_ in estimated.values():
        assert list(zip(table_["from"], table_["to"], strict=True)) == pairs
        assert table_["n_samples"].sum() == len(rows)


def test_estimates_make_a_problem():
    samples = table([("S", "D", 0, 10), ("S", "K", 1, 20), ("K", "D", 2, 30)])
    problem = Problem.from_dataframe(estimate(samples), {"S": 100}, "D")
    assert problem.names == ("D", "K", "S")
    assert problem.bandwidth_bytes_per_s.tolist() == [[30, 10, 20]]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("S", "D", 0, float("nan")), "row 1: bandwidth_bytes_per_s must be >= 0 and finite"),
        (("S", "D", 0, -1), "got -1"),
        (("S", "D", 0, float("inf")), "got inf"),
        (("S", "D", float("nan"), 1), "row 1: time_s must be finite, got nan"),
        (("S", "S", 0, 1), "row 1: from and to must differ, got 'S' twice"),
        ((None, "D", 0, 1), "row 1: from must be a host's name"),
        (("S", "D", 0, "fast"), "bandwidth_bytes_per_s, row 1 must be a finite number"),
    ],
)
def test_bad_samples_are_refused(row, message):
    with pytest.raises(ProblemError, match=message):
        estimate(table([("S", "D", 0, 1), row]))


def test_bad_options_are_refused():
    samples = table([("S", "D", 5, 1)])
    with pytest.raises(ProblemError, match=r"got 'emwa'; did you mean 'ewma'\?"):
        estimate(samples, "emwa")
    with pytest.raises(ProblemError, match=r"a must be >= 0 and < 1, got 1\.0"):
        estimate(samples, a=1.0)
    with pytest.raises(ProblemError, match=r"half_life_s must be > 0 and finite, got 0\.0"):
        estimate(samples, half_life_s=0.0)
    with pytest.raises(ProblemError, match=r"quantile must be between 0 and 1, got 25"):
        estimate(samples, "quantile", quantile=25)
    with pytest.raises(ProblemError, match=r"now_s must not lie before the newest sample, 5"):
        estimate(samples, now_s=4.0)
    with pytest.raises(ProblemError, match=r"column time_s is missing.*did you mean 'time'"):
        estimate(samples.rename(columns={"time_s": "time"}))
