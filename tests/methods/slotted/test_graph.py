"""The time-expanded graph: its arcs counted by hand, and networkx's maximum flow through it."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from instances.hand_made import links
from instances.slotted_plans import overlay
from instances.small_problems import MB, figure_1, relay
from instances.strategies import problems

import datacollect as dc
from datacollect.flow.network.preference import path_costs
from datacollect.methods.slotted import graph as timegraph
from datacollect.methods.slotted.graph import TimeExpansion, slot_costs, time_expanded_graph
from datacollect.problem.hosts import Held, Host
from datacollect.problem.problem import Problem
from datacollect.solvers.choice import load_flow_solver
from datacollect.solvers.networks import FlowNetwork


def line(rates="5", backlog_bytes=10, periods_s=None, **source):
    """S -> D."""
    return Problem.from_hosts(
        [Host("S", backlog_bytes, **source), Host("D")],
        links(f"S -> D {rates}"),
        "D",
        periods_s=periods_s,
    )


def arcs(graph, problem):
    """Arcs as (tail, head, capacity), a node written as host, kind's first letter, boundary."""

    def name(node):
        if node == graph.sink:
            return "sink"
        kind = "" if graph.node_kind[node] == "host" else f".{graph.node_kind[node]}"
        return f"{problem.names[graph.node_host[node]]}{kind}@{graph.node_boundary[node]}"

    columns = zip(
        graph.tail.tolist(), graph.head.tolist(), graph.capacity_bytes.tolist(), strict=True
    )
    return {(name(tail), name(head), capacity) for tail, head, capacity in columns}


def largest_flow(graph, problem) -> int:
    """Bytes that networkx brings to the sink."""
    network = graph.to_networkx(problem)
    network.add_node("all")
    for node, demand in list(network.nodes(data="demand")):
        if demand is not None and demand < 0:
            network.add_edge("all", node, capacity=-demand)
    return int(nx.maximum_flow_value(network, "all", network.graph["sink"]))


# Arcs ------------------------------------------------------------------------------------------


def test_one_link_in_two_slots():
    """Own data wait at a node of their own and enter the host at any boundary before the last.

    2 arcs of the link, 2 for own data, 2 for what waits at S.
    """
    problem = line()
    graph = time_expanded_graph(problem, slot_s=1.0, n_slots=2)
    assert arcs(graph, problem) == {
        ("S@0", "sink", 5),
        ("S@1", "sink", 5),
        ("S.own@0", "S@0", 10),
        ("S.own@0", "S@1", 10),
        ("S@0", "S@1", 10),
        ("S@1", "S@2", 10),
    }
    assert graph.n_arcs == 6
    assert [(pool.n_bytes, pool.release_s) for pool in graph.pools] == [(10, 0.0)]
    assert graph.node_kind[graph.pools[0].node] == "own"


def test_limited_storage_splits_a_relay():
    """What arrives at K passes an arc of 7 bytes before it can leave or wait."""
    problem = Problem.from_hosts(
        [Host("S", 10), Host("K", storage_bytes=7), Host("D")], links("S -> K 5, K -> D 4"), "D"
    )
    graph = time_expanded_graph(problem, slot_s=1.0, n_slots=2)
    found = arcs(graph, problem)
    assert {arc for arc in found if "K" in arc[0] + arc[1]} == {
        ("S@0", "K.arrivals@1", 5),
        ("S@1", "K.arrivals@2", 5),
        ("K.arrivals@0", "K@0", 7),
        ("K.arrivals@1", "K@1", 7),
        ("K.arrivals@2", "K@2", 7),
        ("K@0", "sink", 4),
        ("K@1", "sink", 4),
        ("K@0", "K.arrivals@1", 10),
        ("K@1", "K.arrivals@2", 10),
    }
    assert not {arc for arc in found if "S.arrivals" in arc[0]}


def test_host_limits_are_gates_in_every_slot():
    """S's uplink of 6 bytes/s in slots of half a second: 3 bytes for both links together."""
    problem = Problem.from_hosts(
        [Host("S", 10, uplink_bytes_per_s=6), Host("K"), Host("D", downlink_bytes_per_s=8)],
        links("S -> K 4, S -> D 4, K -> D 4"),
        "D",
    )
    graph = time_expanded_graph(problem, slot_s=0.5, n_slots=1)
    assert {arc for arc in arcs(graph, problem) if "link" in arc[0] + arc[1]} == {
        ("S@0", "S.uplink@0", 3),
        ("S.uplink@0", "K@1", 2),
        ("S.uplink@0", "D.downlink@0", 2),
        ("K@0", "D.downlink@0", 2),
        ("D.downlink@0", "sink", 4),
    }


def test_a_slot_that_straddles_two_periods_has_the_lower_bandwidth():
    """4 bytes/s until 1.5 s, then 1, from 3 s on 6: slots of 1 s carry 4, 1, 1, 6."""
    problem = line("4 1 6", periods_s=[0.0, 1.5, 3.0])
    graph = time_expanded_graph(problem, slot_s=1.0, n_slots=4)
    assert graph.capacity_bytes[graph.link >= 0].tolist() == [4, 1, 1, 6]
    assert graph.slot[graph.link >= 0].tolist() == [0, 1, 2, 3]


def test_a_link_has_no_arc_where_it_carries_less_than_a_byte():
    """0.75 and 2 bytes/s: nothing fits into a slot of 1 s of the first period."""
    problem = line("0.75 2", periods_s=[0.0, 1.0])
    graph = time_expanded_graph(problem, slot_s=1.0, n_slots=2)
    assert graph.slot[graph.link >= 0].tolist() == [1]
    assert graph.capacity_bytes[graph.link >= 0].tolist() == [2]


def test_links_out_of_the_destination_have_no_arcs():
    problem = Problem.from_hosts([Host("S", 1), Host("D")], links("S -> D 1, D -> S 1"), "D")
    graph = time_expanded_graph(problem, slot_s=1.0, n_slots=3)
    assert (graph.link >= 0).sum() == 3
    assert graph.sink not in graph.tail


def test_data_released_inside_a_slot_enter_at_its_end():
    """Released at 0.25 s: boundary 1. At 2 s: boundary 2. After all slots: the last one."""
    for release_s, first in ((0.25, 1), (2.0, 2), (99.0, 3)):
        graph = time_expanded_graph(line(release_s=release_s), slot_s=1.0, n_slots=3)
        (pool,) = graph.pools
        assert graph.node_boundary[pool.node] == first


def test_held_data_enter_at_their_holder_from_the_start():
    problem = Problem.from_hosts(
        [Host("S", 10, release_s=1.0), Host("K", storage_bytes=8), Host("D")],
        links("S -> K 1, K -> D 4"),
        "D",
        held=[Held("K", "S", 0, 8)],
    )
    graph = time_expanded_graph(problem, slot_s=1.0, n_slots=2)
    where = {
        (str(graph.node_kind[p.node]), problem.names[p.host], int(graph.node_boundary[p.node]))
        for p in graph.pools
    }
    assert where == {("own", "S", 1), ("arrivals", "K", 0)}
    # K sends 4 + 4; S's 2 bytes reach K at 2 s at the earliest.
    assert largest_flow(graph, problem) == 8


def test_shared_bottlenecks_leave_out_links_that_carry_nothing():
    """A wire of 0.9 bytes/s carries no byte in a slot of 1 s, one in a slot of 2 s."""
    problem = figure_1(unit_bytes=10)
    wires = tuple(
        dc.SharedBottleneck(s.name, 0.9 if s.name == "N1-D" else 9.0, s.links)
        for s in problem.shared
    )
    problem = problem.replace(shared=wires)
    n_links = [
        int((time_expanded_graph(problem, slot_s, 1).link >= 0).sum()) for slot_s in (1.0, 2.0)
    ]
    assert n_links == [3, 5]


def test_capacities_never_exceed_what_there_is():
    """1e300 bytes/s: more than all 10 bytes is never needed, and would overflow."""
    problem = line().replace(bandwidth_bytes_per_s=[[1e300]])
    graph = time_expanded_graph(problem, slot_s=1.0, n_slots=1)
    assert graph.capacity_bytes.max() == 10
    assert graph.capacity_bytes.dtype == np.int64


def test_columns_have_one_entry_per_arc_or_node():
    graph = time_expanded_graph(relay(K={"storage_bytes": 1}), slot_s=0.5, n_slots=3)
    for name in ("tail", "head", "capacity_bytes", "slot", "link", "stored"):
        assert len(getattr(graph, name)) == graph.n_arcs
    for name in ("node_host", "node_boundary", "node_kind"):
        assert len(getattr(graph, name)) == graph.n_nodes
    # 3 hosts at 4 boundaries; K's arrivals at 4; S's own data.
    kinds = Counter(graph.node_kind.tolist())
    assert kinds == {"host": 12, "arrivals": 4, "own": 1}
    # S and K wait over 3 slots each.
    assert int(graph.stored.sum()) == 6


def test_nodes_have_the_same_numbers_whichever_links_are_built():
    problem = relay(K={"storage_bytes": 1_000_000, "uplink_bytes_per_s": 2e6})
    expansion = TimeExpansion(problem, slot_s=0.5, n_slots=3)
    whole = time_expanded_graph(problem, slot_s=0.5, n_slots=3)
    few = expansion.graph(link=np.array([1, 0]), slot=np.array([0, 2]))
    everything = arcs(whole, problem)
    assert arcs(few, problem) <= everything
    assert few.n_nodes == whole.n_nodes
    assert few.n_arcs == whole.n_arcs - (3 * 3 - 2)
    assert few.slot[few.link >= 0].tolist() == [0, 2]
    by_link = {(link, slot): whole.tail[i] for i, (link, slot) in
               enumerate(zip(whole.link.tolist(), whole.slot.tolist(), strict=True))}  # fmt: skip
    assert few.tail[:2].tolist() == [by_link[1, 0], by_link[0, 2]]


def test_exits_take_what_is_at_a_host_after_the_last_slot():
    """S -> K carries 5 a slot, K -> D nothing in time; what is at K after 2 slots counts: 10."""
    problem = Problem.from_hosts(
        [Host("S", 12), Host("K"), Host("D")],
        links("S -> K 5 5, K -> D 0 9"),
        "D",
        periods_s=[0.0, 9.0],
    )
    expansion = TimeExpansion(problem, slot_s=1.0, n_slots=2)
    assert largest_flow(expansion.graph(*expansion.all_arcs()), problem) == 0
    expansion.add_exits(np.array([1]))
    assert largest_flow(expansion.graph(*expansion.all_arcs()), problem) == 10


# Flows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_slots", "megabytes"), [(1, 0.5), (2, 2.0), (3, 3.5), (4, 5), (5, 6)])
def test_networkx_finds_what_arrives_by_hand(n_slots, megabytes):
    """Slots of 0.5 s: n times 0.5 MB directly, n - 1 times 1 MB through K, at most all 6 MB."""
    graph = time_expanded_graph(relay(), slot_s=0.5, n_slots=n_slots)
    assert largest_flow(graph, relay()) == megabytes * MB


@pytest.mark.parametrize(("n_slots", "megabytes"), [(1, 0.5), (2, 1.5), (6, 5.5), (7, 6)])
def test_networkx_respects_limited_storage(n_slots, megabytes):
    """Room for 0.5 MB at K: n times 0.5 MB directly, n - 1 times 0.5 MB through K."""
    problem = relay(K={"storage_bytes": 500_000})
    graph = time_expanded_graph(problem, slot_s=0.5, n_slots=n_slots)
    assert largest_flow(graph, problem) == megabytes * MB


def test_networkx_respects_releases_and_forecasts():
    """Released at 0.5 s, 4 bytes/s until 2 s, then 1: slots of 1 s carry 0, 4, 1, 1."""
    problem = line("4 1", periods_s=[0.0, 2.0], release_s=0.5)
    flows = [largest_flow(time_expanded_graph(problem, 1.0, n), problem) for n in (1, 2, 3, 4)]
    assert flows == [0, 4, 5, 6]


def test_the_graph_for_networkx_carries_slots_and_demands():
    problem = relay()
    graph = time_expanded_graph(problem, slot_s=0.5, n_slots=2).to_networkx(problem)
    assert graph.graph["slot_s"] == 0.5
    assert graph.nodes["S", 0, "own"]["demand"] == -6 * MB
    assert graph.nodes[graph.graph["sink"]]["demand"] == 6 * MB
    assert sum(demand for _, demand in graph.nodes(data="demand")) == 0
    assert graph.edges[("S", 1, "host"), ("K", 2, "host")] == {"capacity": MB, "slot": 1}
    with pytest.raises(nx.NetworkXUnfeasible):
        nx.network_simplex(graph)  # 2 of 6 MB arrive in two slots
    enough = time_expanded_graph(problem, slot_s=0.5, n_slots=5).to_networkx(problem)
    assert nx.network_simplex(enough)[0] == 0


@given(problems(features=frozenset({"limits", "forecast", "release", "storage", "held"})))
def test_networkx_and_our_solver_bring_the_same_amount(problem):
    graph = time_expanded_graph(problem, slot_s=1.0, n_slots=3)
    if not graph.pools:
        return
    nodes = np.array([pool.node for pool in graph.pools])
    supply = np.array([pool.n_bytes for pool in graph.pools])
    network = FlowNetwork(
        graph.n_nodes + 1,
        np.append(graph.tail, np.full(len(nodes), graph.n_nodes)),
        np.append(graph.head, nodes),
        np.append(graph.capacity_bytes, supply),
    )
    flow = load_flow_solver("ortools").max_flow(network, graph.n_nodes, graph.sink)
    assert int(flow[graph.n_arcs :].sum()) == largest_flow(graph, problem)


# Costs -----------------------------------------------------------------------------------------


def two_relays():
    """S -> K -> L -> D, and shortcuts K -> D and S -> D."""
    return Problem.from_hosts(
        [Host("S", 1), Host("K"), Host("L"), Host("D")],
        links("S -> K 1, K -> L 1, L -> D 1, K -> D 1, S -> D 1"),
        "D",
    )


def ways(prefer):
    """Cost of a byte's way, given as (host, slot in which it leaves it), in 4 slots."""
    problem = two_relays()
    graph = time_expanded_graph(problem, slot_s=1.0, n_slots=4)
    cost = slot_costs(path_costs(problem, prefer, np.ones(4), graph.n_nodes), graph).tolist()
    names = [*problem.names]
    columns = (graph.node_host[graph.tail], graph.node_host[graph.head], graph.slot, graph.link)
    crossing, waiting = {}, {}
    for (tail, head, slot, link), price in zip(
        np.stack(columns, axis=1).tolist(), cost, strict=True
    ):
        if link >= 0:
            crossing[names[tail], names[head], slot] = price
        elif graph.stored[len(crossing) + len(waiting)]:
            waiting[names[tail], slot] = price

    def way(*stops):
        total, arrived = 0, 0
        for i, (host, slot) in enumerate(stops):
            if i:  # at a relay from slot `arrived` on; at its source data wait for free
                total += sum(waiting[host, k] for k in range(arrived, slot))
            to = stops[i + 1][0] if i + 1 < len(stops) else "D"
            total += crossing[host, to, slot]
            arrived = slot + 1
        return total

    return way


def test_fewest_relay_bytes_outweigh_storage_and_storage_outweighs_arrival():
    way = ways("relay-bytes")
    assert way(("S", 3)) < way(("S", 0), ("K", 1)) < way(("S", 0), ("K", 1), ("L", 2))
    assert way(("S", 2), ("K", 3)) < way(("S", 0), ("K", 2))
    assert way(("S", 0)) < way(("S", 1)) < way(("S", 3))


def test_earliest_arrival_outweighs_hops_and_hops_outweigh_storage():
    way = ways("earliest-arrival")
    assert way(("S", 1)) < way(("S", 0), ("K", 1)) < way(("S", 2))
    assert way(("S", 0), ("K", 1), ("L", 2)) < way(("S", 3))
    # At the same arrival, one hop less is worth any waiting.
    assert way(("S", 0), ("K", 2)) < way(("S", 0), ("K", 1), ("L", 2))
    assert way(("S", 1), ("K", 2)) < way(("S", 0), ("K", 2))


def test_least_storage_counts_boundaries_at_relays():
    """At K at one boundary, at K at two, at K and L at one each: hops break the tie."""
    way = ways("storage")
    assert way(("S", 3)) < way(("S", 2), ("K", 3)) < way(("S", 1), ("K", 3))
    assert way(("S", 0), ("K", 2)) < way(("S", 0), ("K", 1), ("L", 2))
    assert way(("S", 0), ("K", 1), ("L", 2)) < way(("S", 0), ("K", 3))


# What is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slot_s", "n_slots", "message"),
    [
        (0.0, 1, "slot_s must be > 0 and n_slots >= 1, got 0.0 and 1"),
        (float("nan"), 1, "slot_s must be > 0"),
        (float("inf"), 1, "slot_s must be > 0"),
        (1.0, 0, "got 1.0 and 0"),
        (1.0, 10**6, "slot_s is too short"),
    ],
)
def test_slots_out_of_range_are_refused(slot_s, n_slots, message):
    with pytest.raises(dc.ProblemError, match=message):
        time_expanded_graph(line(), slot_s, n_slots)


def test_a_graph_that_would_not_fit_in_memory_is_refused_before_it_is_built():
    n = 100
    problem = Problem.from_matrix([f"h{i}" for i in range(n)], np.ones((n, n)), [1] * n, "h0")
    with pytest.raises(dc.ProblemError, match=r"9900 links and 4000 slots .* use a longer slot"):
        time_expanded_graph(problem, 1.0, 4000)


@pytest.mark.parametrize("looked_up", [0, 20, 10**9])
def test_links_between_hosts_however_they_are_found(monkeypatch, looked_up):
    """Looked up by their ends, or all passed by: those that carry a byte, in order."""
    monkeypatch.setattr(timegraph, "LOOKED_UP", looked_up)
    rng = np.random.default_rng(7)
    problem = overlay(12, 3, 7)
    expansion = TimeExpansion(problem, 0.02, 1)
    for _ in range(20):
        senders, receivers = rng.random((2, 12)) < rng.random((2, 1))
        expected = [
            link
            for link in range(problem.n_links)
            if senders[problem.link_from[link]]
            and receivers[problem.link_to[link]]
            and problem.link_from[link] != problem.destination_index
            and problem.bandwidth_bytes_per_s[0, link] * 0.02 >= 1
        ]
        assert expansion.links_between(0, senders, receivers).tolist() == expected


def test_more_slots_than_fit_in_memory_are_refused():
    n = 300
    problem = Problem.from_matrix([f"h{i}" for i in range(n)], np.ones((n, n)), [1] * n, "h0")
    with pytest.raises(dc.ProblemError, match=r"300 hosts, 89700 links and 90000 slots"):
        TimeExpansion(problem, 1.0, 90_000)
