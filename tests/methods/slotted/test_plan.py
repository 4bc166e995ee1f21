"""Slotted plans: deadlines, storage limits of owners, and large numbers."""

from __future__ import annotations

import numpy as np
import pytest
from instances.hand_made import links
from instances.slotted_plans import overlay, plan_slots, slots_of
from instances.small_problems import relay, shared_relay
from judges.slotted_oracle import least_slotted_cost

import datacollect as dc
from datacollect.flow.optimum import fluid_optimum
from datacollect.methods.slotted.plan import slotted_schedule
from datacollect.problem.hosts import Held, Host
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


def test_data_that_return_to_their_owner_need_room_and_the_status_says_so():
    """H holds K's byte and one of its own; both need K, which has room for one byte of others.

    Both could cross to K in slot 0, as K's own byte needs no room: 2 slots. The graph takes it for
    another's: 3 slots, and no claim to be fastest. With room for two the claim holds.
    """

    def plan_with_room(storage_bytes):
        return plan_slots(
            Problem.from_hosts(
                [Host("K", 1, storage_bytes=storage_bytes), Host("H", 1), Host("D")],
                links("H -> K 2, K -> D 2"),
                "D",
                held=[Held("H", "K", 0, 1)],
            )
        )

    found = [(slots_of(plan), plan.status) for plan in map(plan_with_room, (1, 2))]
    assert found == [(3, "heuristic"), (2, "optimal")]


@pytest.mark.parametrize("deadline_s", [0.1, 2.0, 2.49])
def test_a_deadline_that_is_too_early_says_by_how_much_and_why(deadline_s):
    budget = Budget()
    optimum = fluid_optimum(relay(), budget)
    with pytest.raises(dc.InfeasibleError) as caught:
        slotted_schedule(relay(), optimum, 0.5, budget, deadline_s=deadline_s)
    text = str(caught.value)
    assert f"deadline_s = {deadline_s:g} is too early" in text
    assert "after 5 slots, 2.5 s" in text
    assert optimum.bottleneck.text in text


@pytest.mark.parametrize("deadline_s", [1e9, float("inf")])
def test_a_deadline_of_too_many_slots_is_refused(deadline_s):
    budget = Budget()
    optimum = fluid_optimum(relay(), budget)
    with pytest.raises(dc.ProblemError, match=r"allows .* slots of 0\.5 s.*an earlier deadline"):
        slotted_schedule(relay(), optimum, 0.5, budget, deadline_s=deadline_s)


def test_nothing_to_move_meets_every_deadline():
    problem = Problem.from_hosts([Host("D", 7)], [], "D")
    budget = Budget()
    plan = slotted_schedule(problem, fluid_optimum(problem, budget), 1.0, budget, deadline_s=0.5)
    assert (plan.makespan_s, plan.n_transfers) == (0.0, 0)


def test_a_petabyte_in_few_slots(few_arcs):
    """relay() with 1e15 bytes: slots of 2.5e8 s carry a quarter of a petabyte directly."""
    problem = relay().replace(backlog_bytes=np.array([10**15, 0, 0]))
    plan = plan_slots(problem, slot_s=5e7)
    assert slots_of(plan) == 8  # 0.5 n + (n - 1) >= 10 in tenths of a petabyte
    large = shared_relay().replace(backlog_bytes=np.array([10**15, 10**15, 0, 0]))
    plan_slots(large, slot_s=1e8)


def test_units_scale(few_arcs):
    """A thousand billion times as many bytes and bandwidth: the same slots, the same routes."""
    small = overlay(14, 3, 8)
    large = small.replace(
        backlog_bytes=small.backlog_bytes * 10**12,
        bandwidth_bytes_per_s=small.bandwidth_bytes_per_s * 1e12,
    )
    one, other = plan_slots(small), plan_slots(large)
    assert slots_of(one) == slots_of(other)
    relayed = [int(plan.columns.n_bytes.sum()) for plan in (one, other)]
    # A slot may carry 1e-9 more than its bandwidth allows, for rounding.
    assert relayed[1] == pytest.approx(relayed[0] * 1e12, rel=1e-8)


def test_data_that_may_return_to_their_owner_make_least_storage_a_heuristic():
    """A holds 3 bytes of C. One sent home, where it is nobody else's, and two to D store nothing.

    The graph takes it for another's there: 2 to D, and one waits at A.
    """

    def problem_with(overlay):
        held = [Held("A", "C", 0, 3)]
        return Problem.from_hosts(
            [Host("A"), Host("C", 3), Host("D")], links(overlay), "D", held=held
        )

    problem = problem_with("A -> D 2, A -> C 1, C -> D 5")
    for wish, status in (("storage", "heuristic"), ("relay-bytes", "optimal")):
        plan = dc.coordinated(problem, slot_s=1.0, prefer=wish)
        assert (slots_of(plan), plan.status) == (2, status)
    assert least_slotted_cost(problem, 1.0, 2, "storage") == 0
    no_way_home = problem_with("A -> D 2, C -> D 5")
    assert dc.coordinated(no_way_home, slot_s=1.0, prefer="storage").status == "optimal"
