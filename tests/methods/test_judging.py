"""Judging of schedules, once; where rounding makes one invalid, less is planned on."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from instances.hand_made import links
from judges.contract_check import judge

import datacollect as dc
from datacollect import Host, Problem, Schedule, SharedBottleneck
from datacollect.methods.choice import candidate, options_like
from datacollect.methods.finishing.judging import (
    NEARLY_ALL,
    PARTS_FOR_ROUNDING,
    ROOM_FOR_ROUNDING,
    judged,
)


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

    assert judged(problem, plan).makespan_s == pytest.approx(100.0)
    assert asked == [problem]


def test_what_is_too_fast_is_planned_on_less(problem):
    """A planner 10 % too fast is valid on 0.9 of the wire, not on 0.99: 100 s / 0.99."""
    plan = judged(problem, lambda less: faster(less, 1.1))
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(100.0 / 0.99)
    assert plan.status == "heuristic"
    assert plan.lower_bound_s == faster(problem, 1.1).lower_bound_s


def test_whole_bytes_are_planned_before_less_is(problem):
    """Where storage is limited: what is whole is as good as what was planned, and ends no later."""
    limited = problem.replace(storage_bytes=np.array([np.inf, 500.0, np.inf]))
    plan = judged(
        limited, lambda less: faster(less, 1.1), whole=lambda p: dc.coordinated(p, chunk_s=0.0)
    )
    assert (plan.makespan_s, plan.status) == (pytest.approx(100.0), "optimal")


def test_where_no_part_helps_that_is_said(problem):
    parts = []

    def plan(less):
        parts.append(less.shared[0].bandwidth_bytes_per_s / 20.0)
        return faster(problem, 2.0)

    with pytest.raises(dc.SolverError, match=r"no plan is valid in whole bytes: .*'wire'"):
        judged(problem, plan)
    assert parts == pytest.approx([1.0, *NEARLY_ALL, *ROOM_FOR_ROUNDING, *PARTS_FOR_ROUNDING])


# The fluid optimum takes parts of two bytes over `wire1`, which whole ones do not pass at once.
TWO_BYTES = {
    "format": "datacollect-problem/1",
    "destination": "D",
    "periods_s": [0.0, 1.0, 1.5],
    "hosts": {
        "D": {"release_s": 1.25},
        "H1": {"backlog_bytes": 2, "release_s": 0.3},
        "H2": {"release_s": 1.0},
        "H3": {"release_s": 2.0},
    },
    "links": [
        {"from": tail, "to": head, "bandwidth_bytes_per_s": rates}
        for tail, head, rates in (
            ("H1", "D", [1.0, 7.0, 1.0]),
            ("H1", "H2", [0.0, 5.0, 3.0]),
            ("H2", "H1", [7.0, 7.0, 7.0]),
            ("H2", "H3", [0.0, 3.0, 4.0]),
            ("H3", "D", [7.0, 5.0, 8.0]),
            ("H3", "H1", [4.0, 7.0, 6.0]),
        )
    ],
    "shared": [
        {"name": name, "bandwidth_bytes_per_s": rate, "links": links}
        for name, rate, links in (
            ("wire0", 6.0, [["H1", "H2"], ["H2", "H1"]]),
            ("wire1", 4.0, [["H3", "D"], ["H2", "H1"], ["H2", "H3"]]),
            ("wire2", 7.0, [["H3", "H1"], ["H2", "H3"], ["H2", "H1"]]),
        )
    ],
    "held": [{"host": "H2", "source": "H1", "offset_bytes": 0, "bytes": 1}],
}


@pytest.mark.slow
def test_bytes_too_few_for_any_pipeline_are_planned_in_slots():
    problem = dc.Problem.from_dict(TWO_BYTES)
    plan = dc.coordinated(problem, chunk_s=0.0)
    plan.check(problem)
    assert (plan.slot_s, plan.chunk_s, plan.status) == (None, 0.0, "heuristic")
    # A way by hand: both bytes cross H1 -> D at 7 bytes/s, from 1 s on and one after the other.
    assert plan.lower_bound_s == pytest.approx(10 / 9)
    assert plan.makespan_s < 1 + 2 / 7 + 1 / 7


def test_where_less_is_not_enough_the_first_refusal_is_said(problem):
    def plan(less):
        if less is not problem:
            raise dc.InfeasibleError("deadline_s cannot be met", ["S"])
        return faster(problem, 2.0)

    with pytest.raises(dc.SolverError, match=r"no plan is valid in whole bytes: .*'wire'"):
        judged(problem, plan)


@pytest.mark.parametrize(
    "plan",
    [
        dc.direct,
        dc.best_path,
        dc.coordinated,
        lambda p: dc.coordinated(p, slot_s=1.0),
        lambda p: dc.coordinated(p, derate=0.5),
        lambda p: dc.coordinated(p, most_transfers=2),
        lambda p: dc.coordinated(p, connections=3),
    ],
)
def test_each_schedule_is_judged_once_before_it_is_given_out(plan, monkeypatch):
    problem = Problem.from_hosts(
        [Host("S", 1000), Host("K"), Host("D")], links("S -> K 50, K -> D 50, S -> D 10"), "D"
    )
    given, judge = [], Schedule.check

    def check(schedule, problem):
        given.append(schedule)
        judge(schedule, problem)

    monkeypatch.setattr(Schedule, "check", check)
    found = plan(problem)
    assert given == [found]


def test_what_is_only_compared_is_not_judged(problem, monkeypatch):
    plan = dc.coordinated(problem)
    monkeypatch.setattr(Schedule, "check", lambda *_: pytest.fail("judged"))
    assert candidate(problem, options_like(plan)) == plan


# Stores that are full to the last byte ----------------------------------------------------------


def full_store(seed: int) -> Problem:
    """Two sources meet in the 1000 bytes that h4 has room for, at rates that change once."""
    part = random.Random(seed).uniform
    rates = {
        "h2 -> h3": (0.051, 0.161),
        "h2 -> h4": (0.014, 0.18),
        "h3 -> h0": (0.138, 0.041),
        "h3 -> h4": (0.227, 0.258),
        "h4 -> h0": (0.097, 0.596),
    }
    changed = (
        f"{link} {' '.join(str(round(rate * part(0.5, 2), 3)) for rate in each)}"
        for link, each in rates.items()
    )
    hosts = [
        Host("h0"),
        Host("h2", round(10123 * part(0.5, 2))),
        Host("h3", round(19353 * part(0.5, 2))),
        Host("h4", storage_bytes=1000),
    ]
    return Problem.from_hosts(hosts, links(", ".join(changed)), "h0", periods_s=[0.0, 47418.1])


# Of these the first six stored a byte too many when each route was rounded for itself.
FULL_STORES = (0, 29, 85, 101, 173, 179, *range(1, 15))


@pytest.mark.parametrize("seed", FULL_STORES)
def test_routes_that_meet_in_a_full_store_are_rounded_together(seed):
    problem = full_store(seed)
    plan = dc.coordinated(problem, chunk_s=0.0)
    assert judge(problem.to_dict(), plan.to_dict()) is None
    # Nothing had to be planned on less room.
    assert plan.status == "optimal"
