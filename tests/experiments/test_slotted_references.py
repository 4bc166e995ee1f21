"""Flows through the whole time-expanded graph: what plans in slots are compared with."""

from __future__ import annotations

import numpy as np
import pytest

import datacollect as dc


@pytest.fixture
def slotted(scripts):
    return scripts("slotted_references")


def test_cost_of_a_plan_in_slots(slotted, relay_problem):
    """4 MB directly, 8 MB by K, in slots of 1 s and as early as possible: 5 slots.

    Directly 1 MB arrives in each of slots 0 to 3; by K 2 MB in each of slots 1 to 4, and each
    leaves K in the slot after it arrived there.
    """
    from datacollect.flow.network.preference import Costs

    plan = dc.coordinated(relay_problem, slot_s=1.0, prefer="earliest-arrival")
    assert slotted.slots_of(plan) == 5

    def cost(link, stored, arrival):
        slots = np.arange(5)
        return slotted.cost_of(
            plan, Costs(np.full(3, link), np.full(5, stored), np.asarray(arrival * slots))
        )

    table = plan.transfers
    relayed = int(table.query("to == 'K'")["bytes"].sum())
    assert cost(1, 0, 0) == 12_000_000 + relayed
    assert cost(0, 1, 0) == relayed
    # Most that can have arrived: 1 MB by the end of slot 0, then 3 MB more per slot.
    assert cost(0, 0, 1) == 10**6 * (3 * 1 + 3 * 2 + 3 * 3 + 2 * 4)


def test_a_plan_with_a_slot_too_many_is_found_out(slotted, relay_problem):
    plan = dc.coordinated(relay_problem, slot_s=1.0)
    late = plan.replace(makespan_s=plan.makespan_s + 1.0)
    for _, prepare in list(slotted.SLOTTED_REFERENCES.values())[1:]:
        prepare(relay_problem, plan, "relay-bytes")()
        with pytest.raises(AssertionError):
            prepare(relay_problem, late, "relay-bytes")


def test_a_plan_that_is_not_the_cheapest_is_found_out(slotted):
    """T takes 5 slots whatever S does, who needs no relay but arrives sooner with one."""
    rates = np.zeros((4, 4))
    rates[[0, 0, 1, 2], [3, 1, 3, 3]] = 1e6, 2e6, 2e6, 1e6
    problem = dc.Problem.from_matrix(["S", "K", "T", "D"], rates, [5 * 10**6, 0, 5 * 10**6, 0], "D")
    plan = dc.coordinated(problem, slot_s=1.0, prefer="earliest-arrival")
    for name in ("networkx", "OR-Tools"):
        _, prepare = slotted.SLOTTED_REFERENCES[name]
        prepare(problem, plan, "earliest-arrival")()
        with pytest.raises(AssertionError):
            prepare(problem, plan, "relay-bytes")()
