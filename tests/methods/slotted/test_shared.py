"""Slotted plans with shared bottlenecks: prices, deadlines, and amounts far apart."""

from __future__ import annotations

import pytest
from instances.hand_made import links
from instances.slotted_plans import overlay, plan_slots, slots_of
from instances.small_problems import figure_1
from judges.slotted_costs import paid

import datacollect as dc
from datacollect.flow.network.preference import PREFERENCES
from datacollect.flow.optimum import fluid_optimum
from datacollect.methods.slotted.plan import slotted_schedule
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


@pytest.mark.parametrize("prefer", PREFERENCES)
def test_a_wide_shared_bottleneck_changes_no_cost(few_arcs, prefer):
    """The linear program and the flow find plans that cost the same, where nothing is shared."""
    problem = overlay(10, 3, 3)
    names = [(problem.names[a], problem.names[b]) for a, b in
             zip(problem.link_from, problem.link_to, strict=True)]  # fmt: skip
    wide = problem.replace(shared=(dc.SharedBottleneck("wide", 1e6, names),))
    flow, program = plan_slots(problem, prefer), plan_slots(wide, prefer)
    assert slots_of(flow) == slots_of(program)
    cost = [float(paid(problem, plan, prefer, slots_of(plan))) for plan in (flow, program)]
    assert cost[0] == pytest.approx(cost[1], rel=1e-6)


def test_a_shared_bottleneck_is_priced_by_hand(few_arcs):
    """Two sources, 4 bytes each, direct links of 4 but 4 together; each has a relay of its own.

    In 3 slots the wire brings 8 in two: nobody needs a relay. In 2 slots it brings 8 as well.
    With the wire at 3: 2 slots bring 6 directly and 2 over relays, which arrive in slot 1.
    """
    problem = Problem.from_hosts(
        [Host("S", 4), Host("T", 4), Host("K"), Host("D")],
        links("S -> D 4, T -> D 4, S -> K 4, T -> K 4, K -> D 4"),
        "D",
    )
    for wire, relayed in ((4.0, 0), (3.0, 2)):
        shared = (dc.SharedBottleneck("wire", wire, [("S", "D"), ("T", "D")]),)
        plan = plan_slots(problem.replace(shared=shared))
        assert slots_of(plan) == 2
        assert plan.columns.n_bytes[plan.columns.hop > 0].sum() == relayed


def test_a_deadline_at_the_fewest_slots_is_met_with_shared_bottlenecks(few_arcs):
    problem = figure_1()
    budget = Budget()
    optimum = fluid_optimum(problem, budget)
    plan = slotted_schedule(problem, optimum, 0.5, budget, deadline_s=1.5)
    plan.check(problem)
    assert plan.makespan_s == 1.5
    with pytest.raises(dc.InfeasibleError, match=r"after 3 slots, 1\.5 s"):
        slotted_schedule(problem, optimum, 0.5, budget, deadline_s=1.4)


def a_byte_beside(n_bytes: int, *, over_a_relay: bool) -> Problem:
    """S sends at 1e9 bytes/s and B a byte at 1 byte/s; both share the 1e9 bytes/s of a wire."""
    last = "K" if over_a_relay else "B"
    relays = [Host("K")] if over_a_relay else []
    bandwidths = [("S", "D", 1e9), (last, "D", 1.0)] + ([("B", "K", 1.0)] if over_a_relay else [])
    return Problem.from_hosts(
        [Host("S", n_bytes), Host("B", 1), *relays, Host("D")],
        [dc.Link(*link) for link in bandwidths],
        "D",
        shared=[dc.SharedBottleneck("wire", 1e9, [("S", "D"), (last, "D")])],
    )


@pytest.mark.parametrize("slot_s", [1e3, 1e4])
@pytest.mark.parametrize(("n_bytes", "over_a_relay"), [(10**13, False), (10**15, True)])
def test_a_byte_beside_many_terabytes_is_planned(n_bytes, over_a_relay, slot_s):
    """The wire takes n_bytes / 1e9 seconds, a whole number of slots, and 1 ns for the byte.

    A shared bottleneck may be exceeded by less than a byte per arc, so the byte need not cost a
    slot of its own, but may.
    """
    problem = a_byte_beside(n_bytes, over_a_relay=over_a_relay)
    plan = dc.coordinated(problem, slot_s=slot_s, solver="ortools")
    plan.check(problem)
    assert n_bytes / 1e9 <= plan.makespan_s <= n_bytes / 1e9 + slot_s


@pytest.mark.parametrize("fails", ["cheapest", "least_cost_flow"])
def test_what_is_known_to_be_possible_is_never_called_infeasible(monkeypatch, fails):
    """The number of slots was proved enough: a solver that says otherwise has failed."""

    def impossible(*_arguments):
        raise dc.InfeasibleError("no point satisfies the rows")

    monkeypatch.setattr(f"datacollect.methods.slotted.shared.{fails}", impossible)
    with pytest.raises(dc.SolverError, match="a source holds 1; use a slot longer than 1000 s"):
        dc.coordinated(a_byte_beside(10**13, over_a_relay=False), slot_s=1e3)
