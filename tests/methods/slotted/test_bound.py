"""The lower bound on the number of slots: never above the fewest, and near it where room binds."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from instances.hand_made import links
from instances.how_many import many
from instances.slotted_plans import owners_with_limits, plan_slots, slots_of
from instances.strategies import problems
from judges.oracle import slotted_makespan_slots
from judges.slotted_oracle import least_slotted_cost

import datacollect as dc
from datacollect.methods.slotted import plan as slotted_plan
from datacollect.methods.slotted.bound import slots_at_least
from datacollect.methods.slotted.graph import TimeExpansion
from datacollect.methods.slotted.search import may_suffice
from datacollect.problem.hosts import Host, SharedBottleneck
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


def over_relay(n_bytes, room_bytes, rate=1000):
    """S -> K -> D, fast; K has little room."""
    return Problem.from_hosts(
        [Host("S", n_bytes), Host("K", storage_bytes=room_bytes), Host("D")],
        links(f"S -> K {rate}, K -> D {rate}"),
        "D",
    )


@pytest.fixture
def tried(monkeypatch):
    """The numbers of slots for which a flow was looked for."""
    numbers = []

    def noting(problem, slot_s, n_slots, *others):
        numbers.append(n_slots)
        return found_in(problem, slot_s, n_slots, *others)

    found_in = slotted_plan.flow_in_slots
    monkeypatch.setattr(slotted_plan, "flow_in_slots", noting)
    return numbers


def test_a_relay_with_room_for_one_byte_takes_a_slot_for_each(tried):
    """600 bytes enter K one a slot, and the last leaves in the next: 601. The fluid takes 1 s."""
    plan = plan_slots(over_relay(600, 1))
    assert slots_of(plan) == 601
    assert plan.status == "optimal"
    assert tried == [1, 600, 601]


def test_links_of_less_than_two_bytes_a_slot_carry_one(tried):
    """1.9 bytes per second, slots of 1 s: 400 bytes take 400 slots, not 211."""
    problem = Problem.from_hosts([Host("S", 400), Host("D")], links("S -> D 1.9"), "D")
    assert slots_of(plan_slots(problem)) == 400
    assert tried == [211, 400]


def test_whole_bytes_of_host_limits_and_shared_bottlenecks_count():
    """20 bytes: by an uplink of 1.5 20 slots, through a wire of 2.9 10."""
    sender, wire = Host("S", 20, uplink_bytes_per_s=1.5), SharedBottleneck("w", 2.9, [("S", "D")])
    limited = Problem.from_hosts([sender, Host("D")], links("S -> D 9"), "D")
    shared = Problem.from_hosts([Host("S", 20), Host("D")], links("S -> D 9"), "D", shared=[wire])
    assert [slots_at_least(p, 1.0, Budget()) for p in (limited, shared)] == [20, 10]
    assert [slots_of(plan_slots(p)) for p in (limited, shared)] == [20, 10]


def test_a_deadline_that_is_too_early_is_answered_as_soon(tried):
    with pytest.raises(dc.InfeasibleError, match="after 601 slots"):
        plan_slots(over_relay(600, 1), n_slots=100)
    assert tried == [100, 600, 601]


@pytest.mark.slow
def test_eighteen_thousand_slots_are_planned_in_a_second(tried):
    """Without the bound 29 numbers were tried, most of them of ten thousand slots and more."""
    plan = plan_slots(over_relay(18_000, 1))
    assert slots_of(plan) == 18_001
    assert len(tried) == 3


def _compare(problem):
    """Against linear programs with one commodity per source."""
    assume(problem.total_bytes > 0 and not owners_with_limits(problem))
    try:
        dc.lower_bound(problem)
    except dc.InfeasibleError:
        assume(False)
    fewest = slotted_makespan_slots(problem, 1.0, 16)
    assume(fewest is not None)
    assert least_slotted_cost(problem, 1.0, fewest, "relay-bytes") is not None
    assert slots_at_least(problem, 1.0, Budget()) <= fewest
    assert may_suffice(TimeExpansion(problem, 1.0, fewest))
    assert slots_of(plan_slots(problem)) == fewest


@given(problems(most_hosts=3))
def test_the_bound_is_never_above_the_fewest_slots(problem):
    _compare(problem)


@pytest.mark.slow
@given(problems())
@settings(max_examples=many(300), deadline=None)
def test_the_bound_is_never_above_the_fewest_slots_of_many_problems(problem):
    _compare(problem)
