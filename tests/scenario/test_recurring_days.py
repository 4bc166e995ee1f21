"""Simulations of problems whose bandwidths recur every day, for as long as they take."""

from __future__ import annotations

import json

import numpy as np
import pytest

import datacollect as dc
from datacollect.problem.problem import Problem
from datacollect.simulation.fluid.problem_network import ProblemNetwork

HOUR = 3600.0


def tree(backlog_bytes, start="2026-10-24T12:00", zone="Europe/Zurich", hours=("08:00", "20:00")):
    """A byte a second by day, ten by night, from noon on."""
    return {
        "destination": "D",
        "start": start,
        "timezone": zone,
        "daily_periods": list(hours),
        "hosts": {"S": {"backlog_bytes": backlog_bytes}, "D": {}},
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": [1.0, 10.0]}],
    }


def run_of(tmp_path, problem_tree, **options):
    (tmp_path / "problem.json").write_text(json.dumps(problem_tree))
    scenario = dc.Scenario.from_dict(
        {"problem": "problem.json", "run": {"time_limit_s": 1e9}}, tmp_path
    )
    return dc.simulate(scenario, engine="fluid", **options)


def days(n, bytes_per_day=43_200 + 432_000):
    """Bytes of n whole days of 12 hours at 1 and 12 at 10."""
    return n * bytes_per_day


@pytest.mark.parametrize("method", ["direct", "coordinated"])
def test_a_run_over_many_days_meets_every_one_of_them(tmp_path, method):
    """Forty days from noon, clocks go back in the first night: an hour more at 10 a second."""
    backlog = days(40) + 36_000
    run = run_of(tmp_path, tree(backlog), method=method)
    assert run.complete
    assert run.makespan_s == pytest.approx((40 * 24 + 1) * HOUR, rel=2e-3)


def test_the_network_lists_days_as_time_goes_on():
    """More than the first rule lists: two days; each night ten bytes a second."""
    network = ProblemNetwork(Problem.from_dict(tree(1000)))
    for day in range(60):
        noon_s = (day + (day > 0) / 24) * 24 * HOUR  # from the second day on an hour later
        assert network.capacity_bytes_per_s(noon_s).tolist() == [1.0]
        assert network.capacity_bytes_per_s(noon_s + 9.5 * HOUR).tolist() == [10.0]
        assert network.next_change_s(noon_s) == noon_s + 8 * HOUR


def test_a_schedule_that_is_given_may_take_longer_than_days_are_listed(tmp_path):
    problem = Problem.from_dict(tree(days(30)))
    plan = dc.direct(problem.until(40 * 24 * HOUR))
    run = run_of(tmp_path, tree(days(30)), schedule=plan)
    assert run.makespan_s == pytest.approx(plan.makespan_s, rel=1e-6)


def test_what_remains_after_a_week_still_recurs():
    """The problem a week later is the same as one that starts then."""
    problem = Problem.from_dict(tree(days(30)))
    at_s = 7 * 24 * HOUR + HOUR  # noon by the clock, which has gone back
    rest = dc.remaining_problem(problem, dc.Progress(at_s))
    fresh = Problem.from_dict(tree(days(30), start="2026-10-31T12:00"))
    long_s = 100 * 24 * HOUR
    rest, fresh = rest.until(long_s), fresh.until(long_s)
    n = min(rest.n_periods, fresh.n_periods)
    assert n > 200
    np.testing.assert_allclose(rest.periods_s[:n], fresh.periods_s[:n])
    assert (rest.bandwidth_bytes_per_s[:n] == fresh.bandwidth_bytes_per_s[:n]).all()


@pytest.mark.parametrize("at_s", [8 * HOUR, 8 * HOUR - 1e-7, 8 * HOUR + 1e-7, 20 * HOUR, 1.0])
def test_what_remains_has_the_rates_of_the_instant(at_s):
    problem = Problem.from_dict(tree(days(10)))
    rest = dc.remaining_problem(problem, dc.Progress(at_s)).until(30 * 24 * HOUR)
    listed = problem.until(60 * 24 * HOUR)
    for later_s in np.arange(0.5, 20 * 24, 1.0) * HOUR:
        row = np.searchsorted(listed.periods_s, at_s + later_s, side="right") - 1
        mine = np.searchsorted(rest.periods_s, later_s, side="right") - 1
        expected = listed.bandwidth_bytes_per_s[row, 0]
        if rest.daily is not None or later_s < rest.periods_s[-1]:
            assert rest.bandwidth_bytes_per_s[mine, 0] == expected
