"""Intervals of bandwidths in problem files: kept, never planned with."""

from __future__ import annotations

import pytest

import datacollect as dc
from datacollect.errors import ProblemError

LOW, HIGH = "bandwidth_low_bytes_per_s", "bandwidth_high_bytes_per_s"


def tree(**more):
    link = {"from": "S", "to": "D", "bandwidth_bytes_per_s": 5.0, **more}
    other = {"from": "K", "to": "D", "bandwidth_bytes_per_s": 5.0}
    hosts = {"S": {"backlog_bytes": 10}, "K": {}, "D": {}}
    return {"destination": "D", "hosts": hosts, "links": [link, other]}


def test_intervals_are_kept_and_written_again():
    problem = dc.Problem.from_dict(tree(**{LOW: 4, HIGH: "48 bit/s"}))
    assert problem.bandwidth_intervals == {("S", "D"): {LOW: 4.0, HIGH: 6.0}}
    again = dc.Problem.from_dict(problem.to_dict())
    assert again.bandwidth_intervals == problem.bandwidth_intervals
    assert dc.Problem.from_dict(tree()).bandwidth_intervals is None


def test_plans_do_not_depend_on_them():
    problem, plain = dc.Problem.from_dict(tree(**{LOW: 1.0})), dc.Problem.from_dict(tree())
    assert problem == plain
    assert problem.sha256 == plain.sha256
    assert dc.coordinated(problem) == dc.coordinated(plain)
    dc.coordinated(plain).check(problem)


def test_they_vanish_with_the_bandwidths_and_names_they_are_of():
    problem = dc.Problem.from_dict(tree(**{LOW: 1.0}))
    assert problem.replace(backlog_bytes=[20, 0, 0]).bandwidth_intervals is not None
    assert problem.replace(bandwidth_bytes_per_s=[[1.0, 2.0]]).bandwidth_intervals is None
    assert problem.replace(names=["A", "B", "D"]).bandwidth_intervals is None


@pytest.mark.parametrize("more", [{LOW: 5.1}, {HIGH: 4.9}, {LOW: 6, HIGH: 7}])
def test_a_bandwidth_outside_of_its_interval_is_refused(more):
    with pytest.raises(ProblemError, match=r"links\[0\]: bandwidth_bytes_per_s must lie from"):
        dc.Problem.from_dict(tree(**more))


def test_the_interval_is_of_all_periods_together():
    def of(**more):
        forecast = {"periods_s": [0, 60], **tree(bandwidth_bytes_per_s=[5.0, 9.0], **more)}
        return dc.Problem.from_dict(forecast)

    assert of(**{LOW: 5.0, HIGH: 9.0}).bandwidth_intervals is not None
    with pytest.raises(ProblemError, match="must lie from"):
        of(**{HIGH: 8.0})


def test_ends_are_rates():
    with pytest.raises(
        ProblemError, match=rf"links\[0\].{LOW} must be a finite number of bytes per"
    ):
        dc.Problem.from_dict(tree(**{LOW: -1}))
