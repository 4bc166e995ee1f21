"""Graphs that are built at once are like those to which edges are added one by one."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import datacollect as dc


@pytest.fixture
def problem():
    """Seven hosts with about half of all links, two periods, prices."""
    rng = np.random.default_rng(3)
    rates = rng.integers(0, 9, (2, 7, 7)) * (rng.random((7, 7)) < 0.5)
    problem = dc.Problem.from_matrix(
        [f"h{i}" for i in (5, 3, 1, 0, 2, 6, 4)],
        rates,
        [10, 0, 0, 0, 0, 0, 7],
        "h3",
        periods_s=[0.0, 60.0],
        storage_bytes=[5.0, *[np.inf] * 6],
    )
    return problem.replace(price_per_gb=np.arange(problem.n_links) / 8)


def one_by_one(problem):
    graph = nx.DiGraph()
    for name in problem.names:
        graph.add_node(name)
    for i, (a, b) in enumerate(zip(problem.link_from, problem.link_to, strict=True)):
        graph.add_edge(
            problem.names[a],
            problem.names[b],
            bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s[:, i].tolist(),
            price_per_gb=float(problem.price_per_gb[i]),
        )
    return graph


def test_edges_and_both_kinds_of_neighbours_are_those_of_a_graph_built_by_hand(problem):
    graph, by_hand = problem.to_networkx(), one_by_one(problem)
    assert type(graph) is nx.DiGraph
    assert nx.to_dict_of_dicts(graph) == nx.to_dict_of_dicts(by_hand)
    for name in problem.names:
        assert list(graph.pred[name]) == list(by_hand.pred[name])
        assert list(graph.succ[name]) == list(by_hand.succ[name])
    assert graph.nodes["h5"] == {
        "backlog_bytes": 10,
        "release_s": 0.0,
        "storage_bytes": 5.0,
    }
    assert graph.graph == {"destination": "h3", "periods_s": [0.0, 60.0]}


def test_what_is_said_of_an_edge_is_said_in_both_directions(problem):
    graph = problem.to_networkx()
    tail, head = next(iter(graph.edges))
    graph.edges[tail, head]["bandwidth_bytes_per_s"] = [1.0, 2.0]
    assert graph.pred[head][tail]["bandwidth_bytes_per_s"] == [1.0, 2.0]


def test_the_graph_grows_and_is_copied_as_any_other(problem):
    graph = problem.to_networkx()
    copy, reverse, empty = graph.copy(), graph.reverse(), graph.__class__()
    graph.add_edge("h5", "new", bandwidth_bytes_per_s=1.0)
    assert "new" not in copy
    assert len(empty) == 0
    assert graph.has_edge("h5", "new")
    assert not copy.has_edge("h5", "new")
    assert set(reverse.edges) == {(b, a) for a, b in copy.edges}
    graph.remove_node("h5")
    assert all("h5" not in edge for edge in graph.edges)


def test_a_graph_without_links_is_read_back():
    problem = dc.Problem.from_hosts([dc.Host("D")], [], "D")
    assert dc.Problem.from_networkx(problem.to_networkx()) == problem


@pytest.mark.parametrize("amount", [6e9, 6 * 10**9, np.int64(6 * 10**9), "6 GB"])
def test_one_backlog_is_that_of_every_host_but_the_destination(amount):
    graph = nx.complete_graph(3, nx.DiGraph)
    nx.set_edge_attributes(graph, 5.0, "bandwidth_bytes_per_s")
    problem = dc.Problem.from_networkx(nx.relabel_nodes(graph, str), "1", backlog=amount)
    assert dict(zip(problem.names, problem.backlog_bytes.tolist(), strict=True)) == {
        "0": 6 * 10**9,
        "1": 0,
        "2": 6 * 10**9,
    }


def test_a_text_that_nodes_have_as_attribute_is_no_amount():
    graph = nx.DiGraph()
    graph.add_node("S", **{"6 GB": 7})
    graph.add_edge("S", "D", bandwidth_bytes_per_s=5.0)
    assert dc.Problem.from_networkx(graph, "D", backlog="6 GB").total_bytes == 7


@pytest.mark.parametrize(
    ("backlog", "message"),
    [
        (6.5, "host 'S': backlog_bytes must be whole, got 6.5; round it"),
        (-1, "host 'S': backlog_bytes must be >= 0 and finite, got -1"),
        (float("inf"), "host 'S': backlog_bytes must be >= 0 and finite, got inf"),
        (float("nan"), "host 'S': backlog_bytes must be a number, got nan"),
        (True, "backlog must be a number, got True"),
        ("6 parsecs", "backlog must be a whole number of bytes"),
        ("size", "backlog: no node has an attribute 'size'; .* such as '6 GB'"),
        ([6e9], "backlog must be a mapping or a Series by name, got list"),
    ],
)
def test_what_is_no_backlog_is_refused(backlog, message):
    graph = nx.DiGraph()
    graph.add_edge("S", "D", bandwidth_bytes_per_s=5.0)
    with pytest.raises(dc.ProblemError, match=message):
        dc.Problem.from_networkx(graph, "D", backlog=backlog)
