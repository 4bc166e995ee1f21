"""From samples to problems: bandwidths, intervals, hours, wires."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import datacollect as dc
from datacollect.errors import ProblemError
from datacollect.measuring.results.measured_problem import measured_problem

LOW, HIGH = "bandwidth_low_bytes_per_s", "bandwidth_high_bytes_per_s"
MONDAY_S = 1_767_571_200.0  # 5 January 2026, 0 h UTC
HOUR_S = 3600.0


def a_week(tail, rate, noise=0.2, seed=1):
    """A test each hour, lognormal around a rate; by day, from 8 to 20 h, half as much."""
    hours = np.arange(24 * 7)
    level = np.where((hours % 24 >= 8) & (hours % 24 < 20), rate / 2, rate)
    noise = np.exp(np.random.default_rng(seed).normal(0, noise, len(hours)))
    table = {"from": tail, "to": "D", "time_s": MONDAY_S + hours * HOUR_S}
    return pd.DataFrame(table).assign(bandwidth_bytes_per_s=level * noise)


def test_bandwidths_are_those_of_estimates_and_lie_in_their_intervals():
    samples = pd.concat([a_week("S", 1e6), a_week("K", 2e6, seed=2)])
    problem = dc.Problem.from_dict(measured_problem(samples, "D", {"S": 10**9}))
    expected = dc.estimate(samples).set_index("from")["bandwidth_bytes_per_s"]
    assert problem.names == ("D", "K", "S")
    for pair, interval in problem.bandwidth_intervals.items():
        assert 0 < interval[LOW] < expected[pair[0]] < interval[HIGH] < 2 * interval[LOW]
    found = {tree["from"]: tree["bandwidth_bytes_per_s"] for tree in problem.to_dict()["links"]}
    assert found == pytest.approx(expected.to_dict())
    assert dc.coordinated(problem).makespan_s == pytest.approx(10**9 / expected["S"], rel=1e-3)


def test_nearly_all_of_the_past_counts_where_the_half_life_is_long():
    """Intervals of plain means hold the mean that the samples were drawn around, mostly."""
    held = 0
    for seed in range(1000, 1050):
        rates = 1e6 + 1e5 * np.random.default_rng(seed).standard_normal(100)
        samples = pd.DataFrame({"from": "S", "to": "D", "time_s": np.arange(100.0)})
        samples = samples.assign(bandwidth_bytes_per_s=rates)
        [link] = measured_problem(samples, "D", {}, half_life_s=1e12, seed=seed)["links"]
        held += link[LOW] <= 1e6 <= link[HIGH]
    assert held >= 40


def test_few_samples_have_no_interval():
    samples = a_week("S", 1e6)[:10]
    [link] = measured_problem(samples, "D", {})["links"]
    assert {*link} == {"from", "to", "bandwidth_bytes_per_s"}


def test_hours_become_periods():
    samples = a_week("S", 1e6, noise=0.01)
    tree = measured_problem(
        samples,
        "D",
        {"S": 10**9},
        half_life_s=1e12,
        daily=["08:00", "20:00"],
        timezone="UTC",
        start="2026-01-12T08:00:00+00:00",
    )
    [link] = tree["links"]
    assert link["bandwidth_bytes_per_s"] == pytest.approx([0.5e6, 1e6], rel=0.01)
    assert link[LOW] <= link["bandwidth_bytes_per_s"][0]
    assert link[HIGH] >= link["bandwidth_bytes_per_s"][1]
    assert dc.Problem.from_dict(tree).bandwidth_intervals is not None


def test_wires_ages_and_hosts_without_tests_are_in_it():
    wire = {"name": "w", "bandwidth_bytes_per_s": 1e6, "links": [["S", "D"]]}
    tree = measured_problem(a_week("S", 1e6), "D", {"K": 5}, shared=[wire])
    assert tree["hosts"] == {"D": {}, "K": {"backlog_bytes": 5}, "S": {}}
    assert tree["measured_at"] == "2026-01-11T23:00:00+00:00"
    assert dc.Problem.from_dict(tree).shared[0].name == "w"


def test_tests_of_other_kinds_change_neither_mean_nor_interval():
    one = a_week("S", 1e6).assign(streams=1)
    more = pd.concat([one, a_week("S", 9e6)[:5].assign(streams=8)])
    expected = measured_problem(one, "D", {})["links"]
    assert measured_problem(more, "D", {}, streams=1)["links"] == expected


def test_what_makes_no_problem_is_refused():
    with pytest.raises(ProblemError, match="destination must be a host that samples name, got 'd'"):
        measured_problem(a_week("S", 1e6), "d", {})
    with pytest.raises(ProblemError, match="daily needs start, the clock time of 0 s"):
        measured_problem(a_week("S", 1e6), "D", {}, daily=["08:00"], timezone="UTC")
