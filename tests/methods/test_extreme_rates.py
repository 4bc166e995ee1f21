"""Rates at the ends of what floats hold are planned without a word of numpy."""

from __future__ import annotations

from typing import Any

import pytest

import datacollect as dc


@pytest.mark.parametrize("options", [{}, {"slot_s": 10.0}, {"deadline_s": 1e6}])
@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e18])
def test_a_rate_beside_usual_ones(rate: float, options: dict[str, Any]) -> None:
    """1000 bytes over K at 5 B/s take 200 s, and no time where the straight link is that fast."""
    links = [("S", "D", rate), ("S", "K", 5.0), ("K", "D", 5.0)]
    problem = dc.Problem.from_dict(
        {
            "destination": "D",
            "hosts": {"S": {"backlog_bytes": 1000}, "K": {}, "D": {}},
            "links": [{"from": a, "to": b, "bandwidth_bytes_per_s": r} for a, b, r in links],
        }
    )
    plan = dc.coordinated(problem, **options)
    plan.check(problem)
    longest_s = options.get("deadline_s", 210.0) if rate < 1 else options.get("slot_s", 1e-14)
    assert plan.makespan_s <= longest_s


def _fast(rate: float, of: str) -> dict[str, Any]:
    """2000 bytes of S and A, with one rate of a kind; the rest is usual."""
    tree: dict[str, Any] = {
        "destination": "D",
        "hosts": {"S": {"backlog_bytes": 1000}, "A": {"backlog_bytes": 1000}, "K": {}, "D": {}},
        "links": [
            {"from": a, "to": b, "bandwidth_bytes_per_s": 5.0}
            for a, b in ("SD", "SK", "AD", "AK", "KD")
        ],
        "shared": [{"name": "w", "bandwidth_bytes_per_s": 9.0, "links": [["S", "D"], ["A", "D"]]}],
    }
    if of == "link":
        tree["links"][0]["bandwidth_bytes_per_s"] = rate
    elif of == "shared":
        tree["shared"][0]["bandwidth_bytes_per_s"] = rate
    elif of == "capacity":
        tree["links"][0]["capacity_bytes_per_s"] = rate
    else:
        tree["hosts"]["D" if of == "downlink" else "S"][f"{of}_bytes_per_s"] = rate
    return tree


KINDS = ["link", "shared", "uplink", "downlink", "capacity"]


@pytest.mark.parametrize("of", KINDS)
def test_the_fastest_rates_are_planned_compared_and_explained(of: str) -> None:
    """At 1e300 the solvers' own words came out, and at 1.7e308 widening got to infinity."""
    problem = dc.Problem.from_dict(_fast(1e18, of))
    for plan in (dc.direct(problem), dc.best_path(problem), dc.coordinated(problem)):
        plan.check(problem)
    dc.coordinated(problem, connections=8).check(problem)
    found = dc.explain(problem, dc.coordinated(problem))
    assert 0 < found.lower_bound_s <= 400.0


@pytest.mark.parametrize("of", KINDS)
@pytest.mark.parametrize("rate", [1.001e18, 1e300, 1.7e308])
def test_rates_that_no_network_has_are_refused_where_they_stand(rate: float, of: str) -> None:
    rule = r"must be at most 1e\+18, an exabyte per second, got 1\.?\d*e\+\d+; (leave|correct)"
    with pytest.raises(dc.ProblemError, match=rule):
        dc.Problem.from_dict(_fast(rate, of))
    if of == "uplink":
        host = dc.Host("S", 1, uplink_bytes_per_s=rate)
        with pytest.raises(dc.ProblemError, match=rf"host 'S': uplink_bytes_per_s {rule}"):
            dc.Problem.from_hosts([host, dc.Host("D")], [dc.Link("S", "D", 1.0)], "D")


def test_new_estimates_are_refused_as_well() -> None:
    problem = dc.Problem.from_dict(_fast(5.0, "link"))
    links = [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 1e300}]
    tree = {"format": "datacollect-progress/1", "at_s": 1.0, "links": links}
    progress = dc.Progress.from_dict(tree, problem)
    with pytest.raises(dc.ProblemError, match=r"link 'S' -> 'D': .* at most 1e\+18"):
        dc.replan(problem, dc.coordinated(problem), progress)
