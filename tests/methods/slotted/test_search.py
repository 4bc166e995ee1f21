"""The fewest slots, on few arcs of the time-expanded graph: as few as on all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from instances.hand_made import links
from instances.how_many import many
from instances.slotted_plans import (
    WITHOUT_SHARED,
    overlay,
    owners_with_limits,
    plan_slots,
    slots_of,
)
from instances.strategies import problems
from judges.oracle import slotted_makespan_slots
from judges.slotted_costs import least_cost

import datacollect as dc
from datacollect.flow.network.preference import path_costs
from datacollect.flow.optimum import fluid_optimum
from datacollect.methods.slotted.graph import TimeExpansion, slot_costs, time_expanded_graph
from datacollect.methods.slotted.pricing import cheapest
from datacollect.methods.slotted.search import (
    all_at_once,
    first_links,
    may_suffice,
    partial_graph,
    saturating,
)
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


@given(problems(features=WITHOUT_SHARED, most_hosts=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_few_arcs_need_no_more_slots_than_all(few_arcs, problem):
    _compare_slots(problem)


@given(problems(most_hosts=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_few_arcs_need_no_more_slots_with_shared_bottlenecks(few_arcs, problem):
    _compare_slots(problem)


@pytest.mark.slow
@given(problems())
@settings(max_examples=many(400), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_few_arcs_need_no_more_slots_on_many_problems(few_arcs, problem):
    _compare_slots(problem)


def _compare_slots(problem):
    try:
        dc.lower_bound(problem)
    except dc.InfeasibleError:
        assume(False)
    try:
        plan = plan_slots(problem)
    except dc.InfeasibleError:
        assume(not owners_with_limits(problem))
        assert slotted_makespan_slots(problem, 1.0, 12) is None
        return
    if slots_of(plan) <= 20:
        expected = slotted_makespan_slots(problem, 1.0, 20) if problem.total_bytes else 0
        if plan.status == "optimal":
            assert slots_of(plan) == expected
        else:
            assert owners_with_limits(problem)
            assert slots_of(plan) >= expected


def test_links_across_a_cut_are_added_until_everything_arrives():
    """S -> K -> D carries 6 a slot, S -> D 1: the plan's links alone are not enough for 6 + 1.

    Begin with S -> D only: in 3 slots it brings 3 of 15 bytes; S -> K and K -> D are missing.
    """
    problem = Problem.from_hosts(
        [Host("S", 15), Host("K"), Host("D")], links("S -> D 1, S -> K 6, K -> D 6"), "D"
    )
    direct = problem.link_indices(np.array([0]), np.array([2]))
    begun = partial_graph(problem, 1.0, 3, direct)
    assert (begun.graph.link >= 0).sum() == 3
    part, flow = saturating(begun, Budget())
    arriving = flow[part.graph.head == part.graph.sink].sum()
    assert arriving == 15
    assert set(part.graph.link[part.graph.link >= 0].tolist()) == {0, 1, 2}
    assert saturating(partial_graph(problem, 1.0, 2, direct), Budget()) is None


def test_nothing_comes_from_a_relay_before_data_have_got_there():
    """S's 5 bytes leave from slot 2 on; S -> D and K -> D carry 1 a slot, S -> K 9.

    Slots 2, 3 and 4 bring 1 + 0, 1 + 1 and 1 + 1: 5 slots, not 4.
    """
    problem = Problem.from_hosts(
        [Host("S", 5, release_s=2.0), Host("K"), Host("D")],
        links("S -> D 1, S -> K 9, K -> D 1"),
        "D",
    )
    found = [may_suffice(TimeExpansion(problem, 1.0, n_slots)) for n_slots in (2, 3, 4, 5, 6)]
    assert found == [False, False, False, True, True]
    assert slots_of(plan_slots(problem)) == 5


@given(problems(features=WITHOUT_SHARED, most_hosts=4))
def test_the_fewest_slots_in_which_a_flow_empties_all_pools_may_suffice(problem):
    for n_slots in range(1, 12):
        part = partial_graph(problem, 1.0, n_slots, np.arange(problem.n_links))
        if saturating(part, Budget()) is not None:
            assert may_suffice(part.expansion)
            return


@pytest.mark.parametrize("seed", range(6))
def test_the_fewest_slots_of_a_chain_of_relays_may_suffice(seed):
    """All that leaves the source crosses every relay: each adds a slot."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    bandwidth = np.diag(rng.integers(5, 9, n - 1), 1).astype(float)
    names = [f"h{i}" for i in range(n)]
    problem = Problem.from_matrix(names, bandwidth, [5, *[0] * (n - 1)], names[-1])
    found = [may_suffice(TimeExpansion(problem, 1.0, n_slots)) for n_slots in range(1, n + 1)]
    assert found == [False] * (n - 2) + [True] * 2
    assert slots_of(plan_slots(problem)) == n - 1


@pytest.mark.parametrize("seed", range(4))
def test_few_arcs_suffice_on_an_overlay(few_arcs, seed):
    """Far fewer are built than there are."""
    problem = overlay(40, 4, seed)
    budget = Budget()
    optimum = fluid_optimum(problem, budget)
    slot_s = optimum.makespan_s / 12
    plan = plan_slots(problem, slot_s=slot_s)
    n_slots = slots_of(plan)
    part, flow = saturating(
        partial_graph(problem, slot_s, n_slots, first_links(problem, optimum, n_slots, budget)),
        budget,
    )
    costs = path_costs(problem, "relay-bytes", np.full(n_slots, slot_s), part.graph.n_nodes)
    part, flow = cheapest(part, costs, budget)
    assert len(part.keys) < 0.8 * problem.n_links * n_slots
    everything = time_expanded_graph(problem, slot_s, n_slots)
    assert everything.n_nodes == part.graph.n_nodes
    assert int(slot_costs(costs, part.graph) @ flow) == least_cost(
        problem, slot_s, "relay-bytes", n_slots
    )
    assert (
        saturating(partial_graph(problem, slot_s, n_slots - 1, np.arange(problem.n_links)), budget)
        is None
    )


def test_large_full_meshes_begin_with_few_links_and_sparse_ones_with_all():
    """20 slots: of 200 hosts with 8 links each all, of 40 in a full mesh few; of 10 all again."""
    pytest.importorskip("pylmcf")
    rng = np.random.default_rng(1)

    def full_mesh(n):
        names = [f"H{i}" for i in range(n)]
        return Problem.from_matrix(names, rng.random((n, n)), np.arange(n), "H0")

    sparse, large, small = overlay(200, 8, 1), full_mesh(40), full_mesh(10)
    assert [all_at_once(each, 20, Budget()) for each in (sparse, large, small)] == [1, 0, 1]


def test_where_a_fluid_plan_is_known_its_few_links_begin():
    pytest.importorskip("pylmcf")
    problem = Problem.from_matrix(
        [f"H{i}" for i in range(25)], np.ones((25, 25)), [0] + [9] * 24, "H0"
    )
    assert all_at_once(problem, 15, Budget())
    assert not all_at_once(problem, 15, Budget(), is_planned=True)
    assert fluid_optimum(problem, Budget()).plan is not None
    links = first_links(problem, fluid_optimum(problem, Budget()), 15, Budget())
    assert len(links) < problem.n_links
