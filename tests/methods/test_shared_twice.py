"""Routes that cross one shared bottleneck twice, where rounding makes plans invalid."""

from __future__ import annotations

from dataclasses import replace

import pytest
from instances.hand_made import links

import datacollect as dc
from datacollect import Host, Problem, SharedBottleneck
from datacollect.methods.shared_twice import ROOM_FOR_ROUNDING, planned_despite_rounding


@pytest.fixture
def problem():
    """S sends 1000 bytes over K; both hops share 20 bytes/s, so they take 100 s."""
    hosts = [Host("S", 1000), Host("K"), Host("D")]
    wire = SharedBottleneck("wire", 20.0, [("S", "K"), ("K", "D")])
    return Problem.from_hosts(hosts, links("S -> K 50, K -> D 50"), "D", shared=[wire])


def faster(problem, factor):
    wider = [
        replace(each, bandwidth_bytes_per_s=each.bandwidth_bytes_per_s * factor)
        for each in problem.shared
    ]
    return dc.coordinated(problem.replace(shared=wider), chunk_s=0.0)


def test_a_valid_plan_is_made_once(problem):
    asked = []

    def plan(less):
        asked.append(less)
        return dc.coordinated(less, chunk_s=0.0)

    assert planned_despite_rounding(problem, plan).makespan_s == pytest.approx(100.0)
    assert asked == [problem]


def test_what_is_too_fast_is_planned_on_less(problem):
    """A planner 10 % too fast is valid on 0.9 of the wire, not on 0.99: 100 s / 0.99."""
    plan = planned_despite_rounding(problem, lambda less: faster(less, 1.1))
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(100.0 / 0.99)
    assert plan.status == "heuristic"
    assert plan.lower_bound_s == faster(problem, 1.1).lower_bound_s


def test_where_no_part_helps_that_is_said(problem):
    parts = []

    def plan(less):
        parts.append(less.shared[0].bandwidth_bytes_per_s / 20.0)
        return faster(problem, 2.0)

    with pytest.raises(dc.SolverError, match=r"no plan is valid in whole bytes: .*'wire'"):
        planned_despite_rounding(problem, plan)
    assert parts == pytest.approx([1.0, *ROOM_FOR_ROUNDING])


def test_where_less_is_not_enough_the_first_refusal_is_said(problem):
    def plan(less):
        if less is not problem:
            raise dc.InfeasibleError("deadline_s cannot be met", ["S"])
        return faster(problem, 2.0)

    with pytest.raises(dc.SolverError, match=r"no plan is valid in whole bytes: .*'wire'"):
        planned_despite_rounding(problem, plan)


def test_other_routes_are_not_judged_again(problem, monkeypatch):
    alone = problem.replace(shared=[SharedBottleneck("wire", 20.0, [("S", "K")])])
    plan = dc.coordinated(alone)
    monkeypatch.setattr(dc.Schedule, "check", lambda *_: pytest.fail("judged"))
    assert planned_despite_rounding(alone, lambda _: plan) is plan
