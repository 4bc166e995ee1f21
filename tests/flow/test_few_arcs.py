"""Flows over few arcs: as large and as cheap as on all arcs, whichever come first."""

from __future__ import annotations

import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from instances.strategies import FEATURES, problems
from judges.oracle import fluid_makespan_s, least_cost
from judges.plan_values import cost_of

import datacollect as dc
from datacollect.flow.network import few_arcs
from datacollect.flow.network.few_arcs import (
    UNREACHED,
    SupplyNetwork,
    cheapest_flow,
    distance_to,
    largest_flow,
)
from datacollect.flow.quickest import quickest
from datacollect.solvers.choice import load_flow_solver
from datacollect.solvers.networks import FlowNetwork

SOLVER = load_flow_solver("auto")


def arrays(*rows):
    return tuple(np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))


def test_arcs_across_the_cut_are_found(solver):
    """0 -> 1 -> 2 -> 3 carries 9, 4, 9; of 9 units 4 get through, whatever is known at first."""
    tail, head, capacity = arrays((0, 1, 9), (1, 2, 4), (2, 3, 9))
    network = SupplyNetwork(4, 3, tail, head, capacity, np.array([9, 0, 0, 0]))
    active = np.zeros(3, dtype=bool)
    flow, cut = largest_flow(network, load_flow_solver(solver), active)
    assert flow.tolist() == [4, 4, 4]
    assert cut.tolist() == [True, True, False, False]
    assert active.all()


def test_arcs_that_cannot_help_stay_out(solver):
    """2 units over the cheap path; the dear one, and one from where nothing comes, stay unknown."""
    tail, head, capacity, cost = arrays((0, 1, 5, 1), (1, 3, 5, 1), (0, 3, 5, 7), (2, 3, 5, 0))
    network = SupplyNetwork(4, 3, tail, head, capacity, np.array([2, 0, 0, 0]))
    active = np.array([True, True, False, False])
    flow = cheapest_flow(network, cost, load_flow_solver(solver), active)
    assert flow.tolist() == [2, 2, 0, 0]
    assert not active[2]


def test_a_way_of_unknown_arcs_only_is_found(solver):
    """3 units for 9 each directly, or over 1 and 2 for 3 each, of which nothing is known."""
    tail, head, capacity, cost = arrays((0, 3, 9, 9), (0, 1, 9, 1), (1, 2, 9, 1), (2, 3, 9, 1))
    network = SupplyNetwork(4, 3, tail, head, capacity, np.array([3, 0, 0, 0]))
    active = np.array([True, False, False, False])
    flow = cheapest_flow(network, cost, load_flow_solver(solver), active)
    assert flow.tolist() == [0, 3, 3, 3]


def test_too_much_supply_is_infeasible_although_some_arcs_are_unknown(solver):
    tail, head, capacity, cost = arrays((0, 1, 4, 1), (0, 1, 4, 1))
    network = SupplyNetwork(2, 1, tail, head, capacity, np.array([9, 0]))
    with pytest.raises(dc.InfeasibleError):
        cheapest_flow(network, cost, load_flow_solver(solver), np.array([True, False]))


def test_distances_use_what_flow_leaves_and_take_back_what_it_uses():
    """0 -> 1 -> 2 is full: from 0 the path is 14 directly, from 1 it is that less 5, back to 0."""
    tail, head, capacity, cost = arrays((0, 1, 2, 5), (1, 2, 2, 8), (0, 2, 9, 14))
    network = FlowNetwork(4, tail, head, capacity, cost)
    distance = distance_to(2, network, np.array([2, 2, 1]))
    assert distance.tolist() == [14, 9, 0, UNREACHED]


@st.composite
def networks(draw):
    """Up to 7 nodes, node 0 the sink, and arcs of which some are known at first."""
    n = draw(st.integers(2, 7))
    arcs = draw(
        st.lists(
            st.tuples(
                st.integers(0, n - 1), st.integers(0, n - 1), st.integers(0, 9), st.integers(0, 9)
            ).filter(lambda arc: arc[0] != arc[1]),
            min_size=1,
            max_size=25,
        )
    )
    tail, head, capacity, cost = arrays(*arcs)
    supply = np.array([0] + [draw(st.integers(0, 4)) for _ in range(n - 1)], dtype=np.int64)
    known = np.array([draw(st.booleans()) for _ in arcs])
    return SupplyNetwork(n, 0, tail, head, capacity, supply), cost, known


def as_graph(network, cost):
    """The network as networkx reads it, parallel arcs and all."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(network.n_nodes), demand=0)
    for node, units in enumerate(network.supply.tolist()):
        graph.nodes[node]["demand"] = -units
    graph.nodes[network.sink]["demand"] += int(network.supply.sum())
    columns = (network.tail, network.head, network.capacity, cost)
    for tail, head, capacity, weight in zip(*(c.tolist() for c in columns), strict=True):
        graph.add_edge(tail, head, capacity=capacity, weight=weight)
    return graph


def largest_by_networkx(network, cost):
    graph = nx.DiGraph()
    for tail, head, data in as_graph(network, cost).edges(data=True):
        known = graph.get_edge_data(tail, head, {"capacity": 0})["capacity"]
        graph.add_edge(tail, head, capacity=known + data["capacity"])
    for node, units in enumerate(network.supply.tolist()):
        graph.add_edge("all", node, capacity=units)
    return nx.maximum_flow_value(graph, "all", network.sink)


@pytest.mark.parametrize("per_node", [1, 4])
@given(drawn=networks())
def test_any_first_arcs_lead_to_the_largest_and_the_cheapest_flow(per_node, drawn):
    network, cost, known = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_arcs, "FIRST_PER_NODE", per_node)
        active = known.copy()
        flow, cut = largest_flow(network, SOLVER, active)
        arrived = flow[network.head == 0].sum() - flow[network.tail == 0].sum()
        assert arrived == largest_by_networkx(network, cost)
        assert ((flow >= 0) & (flow <= network.capacity)).all()
        assert (active >= known).all()
        if cut is not None:
            through = cut[network.tail] & ~cut[network.head]
            beyond = network.supply[~cut].sum()
            assert arrived == network.capacity[through].sum() + beyond
            with pytest.raises(dc.InfeasibleError):
                cheapest_flow(network, cost, SOLVER, known.copy())
            return
        flow = cheapest_flow(network, cost, SOLVER, known.copy())
    assert int(flow @ cost) == nx.network_simplex(as_graph(network, cost))[0]
    assert ((flow >= 0) & (flow <= network.capacity)).all()
    net = np.bincount(network.tail, flow, network.n_nodes)
    net -= np.bincount(network.head, flow, network.n_nodes)
    assert (net[1:] == network.supply[1:]).all()


@pytest.fixture(scope="module")
def nearly_nothing_at_first():
    """Small problems, too, begin with a single relay per host, and add arc by arc."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quickest, "FEW_PER_NODE", 0)
        patch.setattr(quickest, "FIRST_RELAYS", 1)
        patch.setattr(few_arcs, "FIRST_PER_NODE", 1)
        yield


@given(problem=problems(FEATURES - {"shared"}), wish=st.sampled_from(["relay-bytes", "storage"]))
def test_plans_from_few_arcs_agree_with_linear_programs(nearly_nothing_at_first, problem, wish):
    expected = fluid_makespan_s(problem)
    try:
        plan = dc.coordinated(problem, prefer=wish, chunk_s=0.0)
    except dc.InfeasibleError:
        assert expected is None
        return
    plan.check(problem)
    assert plan.lower_bound_s == pytest.approx(expected, rel=1e-6, abs=1e-9)
    if problem.total_bytes < 10**6 or (wish == "storage" and problem.held):
        return  # see test_preferences
    least = least_cost(problem, wish, plan.lower_bound_s * (1 + 1e-9))
    noise = 1e-6 * problem.total_bytes * max(plan.lower_bound_s, 1.0)
    assert cost_of(problem, plan, wish) == pytest.approx(least, rel=1e-6, abs=noise)


@pytest.mark.parametrize("seed", range(3))
def test_meshes_with_limits_need_few_arcs_for_the_same_plan(seed):
    """60 hosts: with and without all arcs the same end and the same bytes times links."""
    rng = np.random.default_rng(seed)
    n = 60
    bandwidth = rng.lognormal(0, 1, (n, n)) * 1e6
    backlog = np.where(rng.random(n) < 0.3, rng.integers(1e8, 1e9, n), 0)
    backlog[1] = backlog.sum() // 2  # one host needs many relays
    backlog[0] = 0
    problem = dc.Problem.from_matrix(
        [f"h{i}" for i in range(n)],
        bandwidth,
        backlog,
        "h0",
        uplink_bytes_per_s=rng.uniform(5e6, 6e7, n),
        downlink_bytes_per_s=rng.uniform(5e6, 6e7, n),
    )
    plan = dc.coordinated(problem, chunk_s=0.0)
    plan.check(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quickest, "FEW_PER_NODE", n)
        whole = dc.coordinated(problem.replace(), chunk_s=0.0)
    assert plan.lower_bound_s == pytest.approx(whole.lower_bound_s, rel=1e-12)
    assert plan.columns.n_bytes.sum() == pytest.approx(whole.columns.n_bytes.sum(), rel=1e-9)
