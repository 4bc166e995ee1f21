"""The cheapest flow on few arcs of the time-expanded graph: it costs what it costs on all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from instances.hand_made import links
from instances.how_many import many
from instances.slotted_plans import WITHOUT_SHARED, overlay, plan_slots, slots_of
from instances.small_problems import MB, relay
from instances.strategies import problems
from judges.slotted_costs import least_cost, paid

import datacollect as dc
from datacollect.flow.network.preference import PREFERENCES, path_costs
from datacollect.methods.slotted.graph import slot_costs
from datacollect.methods.slotted.pricing import attractive, cheapest, node_prices
from datacollect.methods.slotted.search import partial_graph
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


@pytest.mark.parametrize("prefer", PREFERENCES)
@pytest.mark.parametrize("seed", range(5))
def test_few_arcs_cost_no_more_than_all(few_arcs, prefer, seed):
    rng = np.random.default_rng(100 + seed)
    problem = overlay(12, 3, seed)
    if seed % 2:
        limit = np.where(rng.random(12) < 0.5, rng.integers(20, 200, 12), np.inf)
        room = np.where(rng.random(12) < 0.5, rng.integers(5, 80, 12), np.inf)
        problem = problem.replace(uplink_bytes_per_s=limit, storage_bytes=room)
    plan = plan_slots(problem, prefer)
    n_slots = slots_of(plan)
    assert paid(problem, plan, prefer, n_slots) == least_cost(problem, 1.0, prefer, n_slots)
    longer = plan_slots(problem, prefer, n_slots=n_slots + 3)
    cost = paid(problem, longer, prefer, n_slots + 3)
    assert cost == least_cost(problem, 1.0, prefer, n_slots + 3)


@given(problems(features=WITHOUT_SHARED, most_hosts=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_plans_cost_what_networkx_pays(few_arcs, problem):
    _compare_costs(problem)


@pytest.mark.slow
@given(problems(features=WITHOUT_SHARED))
@settings(max_examples=many(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_many_random_plans_cost_what_networkx_pays(few_arcs, problem):
    _compare_costs(problem)


def _compare_costs(problem):
    try:
        n_slots = slots_of(plan_slots(problem))
    except dc.InfeasibleError:
        assume(False)
    assume(0 < n_slots <= 20)
    for prefer in PREFERENCES:
        plan = plan_slots(problem, prefer)
        assert slots_of(plan) == n_slots
        assert paid(problem, plan, prefer, n_slots) == least_cost(problem, 1.0, prefer, n_slots)


def test_no_absent_arc_is_attractive_in_the_end():
    """Prices by hand: S -> D 1 is full, so a byte at S costs a way over K: 2 hops."""
    problem = Problem.from_hosts(
        [Host("S", 3), Host("K"), Host("D")], links("S -> D 1, S -> K 6, K -> D 6"), "D"
    )
    all_links = np.arange(3)
    part = partial_graph(problem, 1.0, 2, all_links)
    costs = path_costs(problem, "relay-bytes", np.ones(2), part.graph.n_nodes)
    part, flow = cheapest(part, costs, Budget())
    price = node_prices(part.graph, slot_costs(costs, part.graph), flow)
    source = part.graph.pools[0].node
    assert price[source] == 2 * costs.link[0] + costs.stored[0] + costs.arrival[1]
    assert len(attractive(part, costs, price)[0]) == 0
    fewer = partial_graph(problem, 1.0, 2, all_links[:2])
    assert len(attractive(fewer, costs, price)[0]) == 0


def test_more_time_saves_relay_bytes(few_arcs):
    """relay() in slots of 0.5 s: 6 MB, 0.5 a slot directly. 5 slots need 3.5 MB over K, 8 two."""
    fastest = plan_slots(relay(), slot_s=0.5)
    assert slots_of(fastest) == 5
    assert fastest.columns.n_bytes[fastest.columns.hop == 1].sum() == 3.5 * MB
    relaxed = plan_slots(relay(), slot_s=0.5, n_slots=8)
    assert relaxed.columns.n_bytes[relaxed.columns.hop == 1].sum() == 2 * MB
    direct = plan_slots(relay(), slot_s=0.5, n_slots=12)
    assert {route.hosts for route in direct.routes} == {("S", "D")}
    assert direct.makespan_s == 6.0


def test_earliest_arrival_uses_relays_although_there_is_time(few_arcs):
    plan = plan_slots(relay(), "earliest-arrival", slot_s=0.5, n_slots=12)
    assert plan.makespan_s == 2.5


def test_money_prefers_the_cheap_way_when_there_is_time(few_arcs):
    """S -> D costs 5, S -> K -> D 1 + 1 and carries 2 a slot: 6 bytes over K take 4 slots."""
    problem = Problem.from_hosts(
        [Host("S", 6), Host("K"), Host("D")], links("S -> D 6, S -> K 2, K -> D 2"), "D"
    ).replace(price_per_gb=np.array([1.0, 5.0, 1.0]))
    assert [problem.names[i] for i in problem.link_to[:2]] == ["K", "D"]
    plan = plan_slots(problem, "money", n_slots=4)
    assert {route.hosts for route in plan.routes} == {("S", "K", "D")}
    assert {r.hosts for r in plan_slots(problem, "money").routes} == {("S", "D")}
    assert plan_slots(problem, "money", n_slots=3).columns.n_bytes.sum() == 2 + 4 * 2
