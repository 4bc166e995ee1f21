"""Routes: shortest as networkx says, ties as promised, hot-potato by hand and from its rule."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from instances.random_topologies import topologies

from datacollect.errors import ProblemError
from datacollect.topologies import Node, Topology, Wire, line, paper_152, two_domains
from datacollect.topologies.routing import regions


def _costs_in_networkx(topology: Topology, weight: str) -> nx.Graph:
    """The topology with an integer cost per edge: 1, or whole milliseconds and then hops."""
    graph = topology.to_networkx()
    for _, _, data in graph.edges(data=True):
        data["cost"] = 1 if weight == "hops" else round(data["delay_s"] * 1000) * 1000 + 1
    return graph


def _cost_of(graph: nx.Graph, path: tuple[str, ...]) -> int:
    return nx.path_weight(graph, list(path), "cost")


@pytest.mark.parametrize("weight", ["hops", "delay"])
@given(topology=topologies())
def test_routes_are_as_short_as_those_of_networkx(topology, weight):
    graph = _costs_in_networkx(topology, weight)
    shortest = dict(nx.all_pairs_dijkstra_path_length(graph, weight="cost"))
    routes = topology.shortest_routes(weight=weight)
    for a in topology.names:
        for b in topology.names:
            path = routes.path(a, b)
            assert (path[0], path[-1]) == (a, b)
            assert _cost_of(graph, path) == shortest[a][b]


@pytest.mark.parametrize("weight", ["hops", "delay"])
@given(topology=topologies())
def test_ties_go_to_the_wire_with_the_lowest_index(topology, weight):
    graph = _costs_in_networkx(topology, weight)
    far = dict(nx.all_pairs_dijkstra_path_length(graph, weight="cost"))
    routes = topology.shortest_routes(weight=weight)
    for row, there in enumerate(topology.names):
        for node, here in enumerate(topology.names):
            candidates = [
                topology.wire_index(graph.edges[here, beyond]["name"])
                for beyond in graph[here]
                if graph.edges[here, beyond]["cost"] + far[beyond][there] == far[here][there]
            ]
            assert routes.next_wire[row, node] == min(candidates, default=-1)


@given(topologies())
def test_fewer_destinations_have_the_same_routes(topology):
    some = topology.names[::2]
    all_routes, few = topology.shortest_routes(), topology.shortest_routes(some)
    assert few.destinations == some
    for name in some:
        for other in topology.names:
            assert few.path(other, name) == all_routes.path(other, name)


def test_delay_and_hops_disagree():
    """A-B-C takes 2 ms, A-C 5 ms; rates and delays add up along the way."""
    topology = Topology.from_wires(
        [
            Wire("A", "B", (4.0, 1.0), 0.001),
            Wire("B", "C", (3.0, 2.0), 0.001),
            Wire("A", "C", 9.0, 0.005),
        ]
    )
    by_hops, by_delay = topology.shortest_routes(), topology.shortest_routes(weight="delay")
    assert by_hops.path("A", "C") == ("A", "C")
    assert by_delay.path("A", "C") == ("A", "B", "C")
    assert by_delay.delay_s("A", "C") == pytest.approx(0.002)
    assert by_delay.rate_bytes_per_s("A", "C") == 3.0
    assert by_delay.rate_bytes_per_s("C", "A") == 1.0
    there, back = topology.wire_index("A-B"), topology.wire_index("B-C")
    assert by_delay.directed_wires("A", "C") == ((there, 0), (back, 0))
    assert by_delay.directed_wires("C", "A") == ((back, 1), (there, 1))
    assert by_delay.wires("C", "A") == (back, there)


def test_a_nanosecond_decides_and_hops_only_where_delays_tie():
    """Over B it takes 2 ns; straight on 3 ns, or 2 ns, when fewer hops win."""
    for straight_s, expected in ((3e-9, ("A", "B", "C")), (2e-9, ("A", "C"))):
        topology = Topology.from_wires(
            [Wire("A", "B", 1.0, 1e-9), Wire("B", "C", 1.0, 1e-9), Wire("A", "C", 1.0, straight_s)]
        )
        assert topology.shortest_routes(weight="delay").path("A", "C") == expected


def test_nobody_travels_to_where_he_is():
    routes = line(2, rate_bytes_per_s=1.0, delay_s=1.0).shortest_routes()
    assert routes.path("N0", "N0") == ("N0",)
    assert routes.delay_s("N0", "N0") == 0.0
    assert routes.rate_bytes_per_s("N0", "N0") == np.inf
    assert routes.next_wire.tolist() == [[-1, 0], [0, -1]]


def test_one_node_alone_has_routes():
    assert line(1, rate_bytes_per_s=1.0, delay_s=1.0).shortest_routes().next_wire.tolist() == [[-1]]


def test_wires_without_delay_make_no_circles():
    ring = [Wire(f"N{i}", f"N{(i + 1) % 5}", 1.0, 0.0) for i in range(5)]
    routes = Topology.from_wires(ring).shortest_routes(weight="delay")
    assert routes.path("N0", "N3") == ("N0", "N4", "N3")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": "hop"}, "weight must be 'hops' or 'delay', got 'hop'; did you mean 'hops'"),
        ({"destinations": ["N5"]}, "no node 'N5'"),
        ({"destinations": ["N1", "N1"]}, "destinations must differ"),
        ({"hot_potato": True}, "hot-potato routing needs peering wires, got none"),
    ],
)
def test_wrong_questions_are_refused(options, message):
    with pytest.raises(ProblemError, match=message):
        line(3, rate_bytes_per_s=1.0, delay_s=0.0).shortest_routes(**options)


def test_routes_to_other_destinations_are_refused():
    routes = line(3, rate_bytes_per_s=1.0, delay_s=0.0).shortest_routes(["N0"])
    with pytest.raises(ProblemError, match="no routes to 'N2' were computed"):
        routes.path("N0", "N2")
    with pytest.raises(ProblemError, match="no node 'M0'"):
        routes.path("N1", "M0")


def test_delays_too_long_to_compare_are_refused():
    with pytest.raises(ProblemError, match="wire 'N0-N1': delay_s is too long to compare"):
        line(2, rate_bytes_per_s=1.0, delay_s=1e8).shortest_routes(weight="delay")


# Hot potato ---------------------------------------------------------------------------------


def _two_regions() -> Topology:
    """Region A is the line A0 - A1 - A2 - A3, region B the pair B0 - B3; two peering wires.

    ::

        S - B3 ======= A3
            |          A2
            |          A1
            B0 ======= A0 - D
    """
    backbone = [("A0", "A1"), ("A1", "A2"), ("A2", "A3"), ("B0", "B3"), ("S", "B3"), ("D", "A0")]
    return Topology.from_wires(
        [
            *(Wire(a, b, 1.0, 0.001) for a, b in backbone),
            Wire("B0", "A0", 1.0, 0.001, kind="peering"),
            Wire("B3", "A3", 1.0, 0.001, kind="peering"),
        ],
        [Node("S", "host"), Node("D", "host")],
    )


def test_hot_potatoes_leave_at_the_nearest_exit():
    """S's packets are handed over at B3 at once; D's at A0: there and back differ."""
    topology = _two_regions()
    shortest = topology.shortest_routes()
    assert shortest.path("S", "D") == ("S", "B3", "B0", "A0", "D")
    routes = topology.shortest_routes(hot_potato=True)
    assert routes.path("S", "D") == ("S", "B3", "A3", "A2", "A1", "A0", "D")
    assert routes.path("D", "S") == ("D", "A0", "B0", "B3", "S")
    assert routes.path("A2", "S") == ("A2", "A3", "B3", "S")
    assert routes.path("A1", "S") == ("A1", "A0", "B0", "B3", "S")


def test_routes_within_a_region_stay_there():
    """From A0 to A3 it is 3 wires inside, and as many over B; longer inside, still inside."""
    routes = _two_regions().shortest_routes(hot_potato=True)
    assert routes.path("A0", "A3") == ("A0", "A1", "A2", "A3")
    longer = Topology.from_wires(
        [
            *(Wire(f"A{i}", f"A{i + 1}", 1.0, 0.001) for i in range(5)),
            Wire("A0", "B", 1.0, 0.001, kind="peering"),
            Wire("A5", "B", 1.0, 0.001, kind="peering"),
        ]
    )
    assert longer.shortest_routes().path("A0", "A5") == ("A0", "B", "A5")
    inside = longer.shortest_routes(hot_potato=True).path("A0", "A5")
    assert inside == ("A0", "A1", "A2", "A3", "A4", "A5")


def test_the_nearest_exit_is_nearest_by_the_weight():
    """B lies between exits: one hop of 9 ms to the left, two hops of 1 ms each to the right."""
    topology = Topology.from_wires(
        [
            Wire("B", "L", 1.0, 0.009),
            Wire("B", "M", 1.0, 0.001),
            Wire("M", "R", 1.0, 0.001),
            Wire("L", "A", 1.0, 0.001, kind="peering"),
            Wire("R", "A", 1.0, 0.001, kind="peering"),
        ]
    )
    by_hops = topology.shortest_routes(hot_potato=True)
    assert by_hops.path("B", "A") == ("B", "L", "A")
    by_delay = topology.shortest_routes(hot_potato=True, weight="delay")
    assert by_delay.path("B", "A") == ("B", "M", "R", "A")


def test_equally_near_exits_go_to_the_wire_with_the_lowest_index():
    wires = [
        Wire("B", "L", 1.0, 0.0),
        Wire("B", "R", 1.0, 0.0),
        Wire("A", "R", 1.0, 0.0, kind="peering"),
        Wire("A", "L", 1.0, 0.0, kind="peering"),
    ]
    for names, expected in (("ABLR", ("B", "L", "A")), ("ABRL", ("B", "R", "A"))):
        topology = Topology.from_wires(wires, [Node(name) for name in names])
        assert topology.shortest_routes(hot_potato=True).path("B", "A") == expected


def test_as_few_regions_as_possible_are_crossed():
    """C peers with B next door and, three wires away, with A: its packets for A take that wire."""
    topology = Topology.from_wires(
        [
            Wire("C0", "B", 1.0, 0.0, kind="peering"),
            Wire("B", "A", 1.0, 0.0, kind="peering"),
            *(Wire(f"C{i}", f"C{i + 1}", 1.0, 0.0) for i in range(3)),
            Wire("C3", "A", 1.0, 0.0, kind="peering"),
        ]
    )
    assert topology.shortest_routes().path("C0", "A") == ("C0", "B", "A")
    routes = topology.shortest_routes(hot_potato=True)
    assert routes.path("C0", "A") == ("C0", "C1", "C2", "C3", "A")


def test_peering_wires_with_a_way_around_are_refused():
    topology = Topology.from_wires(
        [
            Wire("A", "B", 1.0, 0.0, kind="peering"),
            Wire("A", "X", 1.0, 0.0),
            Wire("X", "B", 1.0, 0.0),
        ]
    )
    with pytest.raises(ProblemError, match=r"wire 'A-B': .* connected without any peering wire"):
        topology.shortest_routes(hot_potato=True)


@pytest.mark.slow
@given(topologies(peering=True))
def test_hot_potatoes_follow_their_rule(topology):
    """From the definition: inside to the nearest fit exit, over it, and again; at last shortest."""
    graph = topology.to_networkx()
    inner = graph.copy()
    peering = [(a, b) for a, b, kind in graph.edges(data="kind") if kind == "peering"]
    inner.remove_edges_from(peering)
    part = {n: i for i, nodes in enumerate(nx.connected_components(inner)) for n in nodes}
    assume(peering)
    regions_graph = nx.Graph([(part[a], part[b]) for a, b in peering])
    crossings = dict(nx.all_pairs_shortest_path_length(regions_graph))
    far = dict(nx.all_pairs_shortest_path_length(inner))
    routes = topology.shortest_routes(hot_potato=True)
    for a in topology.names:
        for b in topology.names:
            here, length = a, 0
            while part[here] != part[b]:
                exits = [
                    (
                        far[here][gate],
                        topology.wire_index(graph.edges[gate, beyond]["name"]),
                        beyond,
                    )
                    for pair in peering
                    for gate, beyond in (pair, pair[::-1])
                    if part[gate] == part[here]
                    and crossings[part[beyond]][part[b]] + 1 == crossings[part[here]][part[b]]
                ]
                hops, wire, here = min(exits)
                length += hops + 1
                assert wire in routes.wires(a, b)
            assert len(routes.wires(a, b)) == length + far[here][b]


def test_the_picture_of_two_domains():
    """With hosts in turn at X0 and X1, each region's traffic leaves at its own router."""
    topology = two_domains(hosts_a=("D", "K"), hosts_b=("S0", "S1"))
    routes = topology.shortest_routes(hot_potato=True)
    assert routes.path("S0", "D") == ("S0", "B0", "A0", "D")
    assert routes.path("S1", "D") == ("S1", "B1", "A1", "A0", "D")
    assert routes.path("D", "S1") == ("D", "A0", "B0", "B1", "S1")
    assert regions(topology).tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


def test_both_peering_wires_of_the_large_network_carry_routes():
    topology = paper_152(seed=1)
    routes = topology.shortest_routes(["A2"], hot_potato=True)
    used = {
        wire for name in topology.names if name.startswith("B") for wire in routes.wires(name, "A2")
    }
    assert set(topology.wires_of_kind("peering").tolist()) <= used
