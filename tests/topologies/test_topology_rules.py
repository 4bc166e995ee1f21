"""The topology as data: what is valid, how it is stored, how it grows, networkx."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from instances.random_topologies import topologies

from datacollect.errors import ProblemError
from datacollect.topologies import Node, Topology, Wire, line

S_R_D = [Wire("S", "R", 1e6, 0.01), Wire("R", "D", 2e6, 0.02)]


def test_wires_are_stored_turned_and_sorted():
    """Nodes S, R, D are 0, 1, 2. The wire D -> R is turned, with its rates and queues."""
    topology = Topology.from_wires(
        [Wire("D", "R", (3.0, 4.0), 0.02, (5, 6), name="out"), Wire("S", "R", 1.0, 0.01)],
        [Node("S"), Node("R"), Node("D")],
    )
    assert topology.wire_from.tolist() == [0, 1]
    assert topology.wire_to.tolist() == [1, 2]
    assert topology.wire_names == ("S-R", "out")
    assert topology.rate_bytes_per_s.tolist() == [[1.0, 1.0], [4.0, 3.0]]
    assert topology.queue_packets.tolist() == [[50, 50], [6, 5]]
    assert topology.delay_s.tolist() == [0.01, 0.02]


@given(topologies())
def test_order_and_direction_of_wires_given_make_no_difference(topology):
    wires = [
        Wire(
            topology.names[b],
            topology.names[a],
            tuple(topology.rate_bytes_per_s[i, ::-1].tolist()),
            topology.delay_s[i],
            tuple(topology.queue_packets[i, ::-1].tolist()),
            name=topology.wire_names[i],
        )
        for i, (a, b) in enumerate(zip(topology.wire_from, topology.wire_to, strict=True))
    ]
    nodes = [Node(name) for name in topology.names]
    assert Topology.from_wires(reversed(wires), nodes).sha256 == topology.sha256


def test_every_difference_changes_the_hash():
    nodes = [Node("S"), Node("R"), Node("D")]
    others = [
        Topology.from_wires([Wire("S", "R", 1e6, 0.01), wire], nodes)
        for wire in (
            Wire("R", "D", 2e6, 0.02),
            Wire("R", "D", (2e6, 1e6), 0.02),
            Wire("R", "D", (1e6, 2e6), 0.02),
            Wire("R", "D", 2e6, 0.03),
            Wire("R", "D", 2e6, 0.02, 51),
            Wire("R", "D", 2e6, 0.02, kind="peering"),
            Wire("R", "D", 2e6, 0.02, name="R to D"),
            Wire("S", "D", 2e6, 0.02),
        )
    ]
    others.append(Topology.from_wires(S_R_D, [Node("S"), Node("R"), Node("D", "host")]))
    others.append(Topology.from_wires(S_R_D, [Node("S"), Node("R"), Node("D", domain="A")]))
    assert len({topology.sha256 for topology in others}) == len(others)


def test_arrays_cannot_be_changed():
    topology = Topology.from_wires(S_R_D)
    with pytest.raises(ValueError, match="read-only"):
        topology.rate_bytes_per_s[0] = 5.0


def test_one_number_stands_for_both_directions_or_all_wires():
    topology = Topology(
        names=("A", "B", "C"),
        kinds=("router",) * 3,
        domains=("",) * 3,
        wire_from=np.array([0, 1]),
        wire_to=np.array([1, 2]),
        rate_bytes_per_s=np.array([1.0, 2.0]),
        delay_s=0.5,
        queue_packets=7,
        wire_kinds=("backbone",) * 2,
        wire_names=("one", "two"),
    )
    assert topology.rate_bytes_per_s.tolist() == [[1.0, 1.0], [2.0, 2.0]]
    assert topology.delay_s.tolist() == [0.5, 0.5]
    assert topology.queue_packets.tolist() == [[7, 7], [7, 7]]


def test_questions():
    topology = Topology.from_wires([*S_R_D, Wire("S", "D", 1.0, 0.0, kind="peering")])
    assert topology.neighbours("S") == ("R", "D")
    assert [topology.wire_names[i] for i in topology.wires_at("D")] == ["S-D", "R-D"]
    assert topology.wires_of_kind("peering").tolist() == [topology.wire_index("S-D")]
    assert repr(topology) == "<Topology: 3 nodes, 3 wires, 0 hosts>"


@pytest.mark.parametrize(
    ("wires", "nodes", "message"),
    [
        ([], [], "at least one node"),
        ([Wire("A", "B", 1.0, 0.0)], [Node("C")], r"connected.*2 parts: 'A', 'B' / 'C'"),
        ([Wire("A", "A", 1.0, 0.0)], [], "'A' - 'A': joins a node to itself"),
        (
            [Wire("A", "B", 1.0, 0.0), Wire("B", "A", 1.0, 0.0)],
            [],
            "wire 'A' - 'B': given 2 times; keep one",
        ),
        ([Wire("A", "B", 0.0, 0.0)], [], "wire 'A-B': rate_bytes_per_s must be > 0, got 0; remove"),
        ([Wire("A", "B", (1.0, -2.0), 0.0)], [], "rate_bytes_per_s must be > 0, got -2"),
        ([Wire("A", "B", float("inf"), 0.0)], [], "must be > 0 and finite, got inf"),
        ([Wire("A", "B", (1.0, 2.0, 3.0), 0.0)], [], "one value for both directions"),
        ([Wire("A", "B", 1.0, -1.0)], [], "wire 'A-B': delay_s must be >= 0, got -1"),
        ([Wire("A", "B", 1.0, float("nan"))], [], "delay_s must be >= 0 and finite, got nan"),
        ([Wire("A", "B", 1.0, 0.0, 0)], [], "queue_packets must be a whole number >= 1, got 0"),
        ([Wire("A", "B", 1.0, 0.0, 2.5)], [], "queue_packets must be a whole number >= 1, got 2.5"),
        (
            [Wire("A", "B", 1.0, 0.0, kind="peer")],
            [],
            "wire 'A-B': kind must be one of .* got 'peer'; did you mean 'peering'",
        ),
        (
            [Wire("A", "B", 1.0, 0.0)],
            [Node("A", "hosts")],
            "node 'A': kind must be one of .*; did you mean 'host'",
        ),
        ([Wire("A", "B", 1.0, 0.0)], [Node("A", domain=1)], "node 'A': domain must be text, got 1"),
        ([Wire("A", "", 1.0, 0.0)], [], "a node's name must be text and not empty, got ''"),
        ([Wire("A", "B", 1.0, 0.0)], [Node("A"), Node("A")], "node 'A': name given twice"),
        (
            [Wire("A", "B", 1.0, 0.0, name="w"), Wire("B", "C", 1.0, 0.0, name="w")],
            [],
            "wire 'w': name given twice",
        ),
        (S_R_D, [Node("R", "host")], "node 'R': a host hangs on one wire, got 2"),
    ],
)
def test_what_is_not_valid_is_refused(wires, nodes, message):
    with pytest.raises(ProblemError, match=message):
        Topology.from_wires(wires, nodes)


def test_parts_of_what_is_not_connected_are_named_the_largest_first():
    wires = [Wire("A", "B", 1.0, 0.0), *(Wire("C", f"D{i}", 1.0, 0.0) for i in range(5))]
    wires += [Wire(f"E{i}", f"F{i}", 1.0, 0.0) for i in range(4)]
    with pytest.raises(ProblemError) as caught:
        Topology.from_wires(wires)
    assert "6 parts: 'C', 'D0', 'D1' and 3 more / 'A', 'B' / 'E0', 'F0' / 'E1', 'F1' / " in str(
        caught.value
    )
    assert "and 2 parts more" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kinds": ("router",)}, r"node kinds: one per node is needed \(3\), got 1"),
        ({"wire_names": ("x",)}, r"wire_names: one per wire is needed \(2\), got 1"),
        ({"wire_to": np.array([1, 5])}, r"must join nodes 0 \.\.\. 2, got index 5"),
        ({"wire_to": np.array([1, -2])}, "got index -2"),
        ({"wire_to": np.array([1.0, 2.0])}, "indices of nodes, got float64"),
        ({"wire_to": np.array([1])}, r"got shapes \(2,\) and \(1,\)"),
        ({"rate_bytes_per_s": np.ones((2, 3))}, r"got shape \(2, 3\)"),
        ({"delay_s": np.ones((2, 2))}, r"one number per wire \(2\), got shape \(2, 2\)"),
        ({"positions": np.ones((2, 2))}, r"positions must have shape \(3, 2\)"),
        ({"positions": np.full((3, 2), np.inf)}, "use NaN for an unknown place"),
    ],
)
def test_arrays_of_wrong_shape_are_refused(change, message):
    topology = Topology.from_wires(S_R_D)
    columns = {name: getattr(topology, name) for name in topology.__dataclass_fields__}
    with pytest.raises(ProblemError, match=message):
        Topology(**(columns | change))


def test_unknown_names_are_refused_with_a_hint():
    topology = line(3, rate_bytes_per_s=1.0, delay_s=0.0)
    with pytest.raises(ProblemError, match="no node 'N10' in the topology; did you mean 'N1'"):
        topology.neighbours("N10")
    with pytest.raises(ProblemError, match="no wire 'N1-N0' in the topology; did you mean"):
        topology.wire_index("N1-N0")


# Hosts --------------------------------------------------------------------------------------


def test_a_host_gets_a_wire_of_its_own_and_all_else_stays():
    """The host sends at 1, receives at 2: its wire runs from its node (0) to it (3)."""
    before = Topology.from_wires(S_R_D, [Node("S", "stub", "A0.1")])
    after = before.attach("H", "S", (1.0, 2.0), 0.003, (7, 8))
    assert (before.n_nodes, after.n_nodes, after.n_wires) == (3, 4, 3)
    assert (after.kinds[3], after.domains[3], after.hosts) == ("host", "A0.1", ("H",))
    assert (after.wire_names[-1], after.wire_kinds[-1]) == ("H-S", "access")
    assert after.rate_bytes_per_s[-1].tolist() == [2.0, 1.0]
    assert after.queue_packets[-1].tolist() == [8, 7]
    assert after.delay_s[-1] == 0.003
    assert after.neighbours("H") == ("S",)
    assert after.wire_names[:-1] == before.wire_names
    assert np.array_equal(after.rate_bytes_per_s[:-1], before.rate_bytes_per_s)


@given(topologies())
def test_indices_stay_when_hosts_are_attached(topology):
    grown = topology
    for i, name in enumerate(topology.names):
        grown = grown.attach(f"H{i}", name, 1.0, 0.0)
    assert grown.names[: topology.n_nodes] == topology.names
    assert grown.wire_names[: topology.n_wires] == topology.wire_names
    for i, name in enumerate(topology.names):
        assert grown.neighbours(f"H{i}") == (name,)


def test_wrong_attachments_are_refused():
    topology = line(2, rate_bytes_per_s=1.0, delay_s=0.0).attach("H", "N0", 1.0, 0.0)
    with pytest.raises(ProblemError, match="cannot attach to 'H', which is a host"):
        topology.attach("I", "H", 1.0, 0.0)
    with pytest.raises(ProblemError, match="host 'N1': the topology has a node of this name"):
        topology.attach("N1", "N0", 1.0, 0.0)
    with pytest.raises(ProblemError, match="no node 'N7'"):
        topology.attach("I", "N7", 1.0, 0.0)
    with pytest.raises(ProblemError, match="wire 'I-N0': rate_bytes_per_s must be > 0"):
        topology.attach("I", "N0", 0.0, 0.0)


# networkx -----------------------------------------------------------------------------------


@given(topologies())
def test_networkx_there_and_back_gives_the_same_topology(topology):
    grown = topology.attach("H", "N0", (1.0, 2.0), 0.25)
    assert Topology.from_networkx(grown.to_networkx()).sha256 == grown.sha256


def test_positions_go_to_networkx_and_back():
    topology = Topology.from_wires(S_R_D, positions=np.array([[0, 1], [2, 3], [np.nan, np.nan]]))
    graph = topology.to_networkx()
    assert (graph.nodes["R"]["x"], graph.nodes["R"]["y"]) == (2.0, 3.0)
    assert "x" not in graph.nodes["D"]
    back = Topology.from_networkx(graph).positions
    assert np.array_equal(back, topology.positions, equal_nan=True)


def test_a_pair_of_rates_runs_from_the_node_that_the_graph_lists_first():
    graph = nx.Graph()
    graph.add_nodes_from(["B", "A"])
    graph.add_edge("A", "B", rate_bytes_per_s=(1.0, 2.0), delay_s=0.0)
    topology = Topology.from_networkx(graph)
    assert topology.names == ("B", "A")
    assert topology.rate_bytes_per_s.tolist() == [[1.0, 2.0]]


def _graph(**edge):
    graph = nx.Graph()
    graph.add_edge("A", "B", **edge)
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.DiGraph(), "must be a networkx.Graph, got DiGraph"),
        (nx.MultiGraph(), "got MultiGraph"),
        (nx.Graph(), "at least one node"),
        (nx.path_graph(2), "edge 0 - 1: rate_bytes_per_s is missing"),
        (_graph(rate=1.0, delay_s=0.0), r"edge 'A' - 'B': rate_bytes_per_s is missing.*\['rate'"),
        (_graph(rate_bytes_per_s=1.0), "delay_s is missing"),
        (_graph(rate_bytes_per_s="1", delay_s=0.0), "rate_bytes_per_s must be a number, got '1'"),
        (_graph(rate_bytes_per_s=1.0, delay_s=None), "delay_s must be a number, got None"),
    ],
)
def test_graphs_that_are_no_topology_are_refused(graph, message):
    with pytest.raises(ProblemError, match=message):
        Topology.from_networkx(graph)


def test_a_node_that_is_no_text_is_refused():
    graph = nx.Graph()
    graph.add_edge(1, 2, rate_bytes_per_s=1.0, delay_s=0.0)
    with pytest.raises(ProblemError, match=r"node 1: a node's name must be text; .*relabel_nodes"):
        Topology.from_networkx(graph)


@pytest.mark.slow
def test_a_thousand_hosts_attach_in_seconds():
    topology = line(10, rate_bytes_per_s=1.0, delay_s=0.0)
    for i, node in zip(range(1000), itertools.cycle(topology.names), strict=False):
        topology = topology.attach(f"H{i}", node, 1.0, 0.0)
    assert len(topology.hosts) == 1000
