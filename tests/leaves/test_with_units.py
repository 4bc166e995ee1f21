"""Numbers with units in Python: what files take as text, constructors take, too."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import datacollect as dc

# 6 TB over 10 Gbit/s, of which the uplink lets 8 Gbit/s pass, from half an hour on.
PLAIN = dc.Problem.from_hosts(
    [
        dc.Host("S", 6 * 10**12, release_s=1800, storage_bytes=2**40, uplink_bytes_per_s=1e9),
        dc.Host("D"),
    ],
    [dc.Link("S", "D", 1.25e9, price_per_gb=0.02)],
    "D",
)


@pytest.mark.parametrize("kind", [list, np.array], ids=["lists", "array of texts"])
def test_matrices_take_texts(kind):
    rates = kind([["0 B/s", "10 Gbit/s"], ["0 B/s", "0 B/s"]])
    made = dc.Problem.from_matrix(["S", "D"], rates, ["6 TB", 0], "D", release_s=["30 min", 0])
    assert made.backlog_bytes.tolist() == [6 * 10**12, 0]
    assert made.bandwidth_bytes_per_s.tolist() == [[1.25e9]]
    assert made.release_s.tolist() == [1800, 0]


def test_tables_take_backlogs_as_texts():
    links = pd.DataFrame({"from": ["S"], "to": ["D"], "bandwidth_gbit_per_s": [10]})
    for backlog in ({"S": "6 TB"}, pd.Series({"S": "6 TB"})):
        assert dc.Problem.from_dataframe(links, backlog, "D").total_bytes == 6 * 10**12


def test_tables_take_texts_in_their_cells():
    names = {"from": ["S", "T"], "to": ["D", "D"]}
    columns = {
        "bandwidth_bytes_per_s": ["10 Gbit/s", 5.0],
        "price_per_gb": ["20 per TB", 0],
        "capacity_bytes_per_s": ["20 Gbit/s", None],
    }
    hosts = pd.DataFrame(
        {
            "release_s": ["30 min", None, 5.0],
            "storage_bytes": ["1 TiB", None, None],
            "uplink_bytes_per_s": [["8 Gbit/s"], "1 GB/s", None],
        },
        index=["S", "T", "D"],
    )
    made = dc.Problem.from_dataframe(pd.DataFrame(names | columns), {}, "D", hosts=hosts)
    assert made.bandwidth_bytes_per_s.tolist() == [[1.25e9, 5.0]]
    assert made.price_per_gb.tolist() == [0.02, 0.0]
    assert made.capacity_bytes_per_s[0] == 2.5e9
    assert made.release_s.tolist() == [1800.0, 0.0, 5.0]
    assert made.storage_bytes.tolist() == [2.0**40, np.inf, np.inf]
    assert made.uplink_bytes_per_s.tolist() == [[1e9, 1e9, np.inf]]


def test_square_tables_take_texts_in_their_cells():
    square = pd.DataFrame({"S": [None, None], "D": ["10 Gbit/s", None]}, index=["S", "D"])
    made = dc.Problem.from_dataframe(square, {"S": "6 TB"}, "D")
    assert made.bandwidth_bytes_per_s.tolist() == [[1.25e9]]


@pytest.mark.parametrize(
    ("links", "hosts", "message"),
    [
        (
            {"bandwidth_bytes_per_s": ["10 Gb/s"]},
            {},
            "links: bandwidth_bytes_per_s, row 0 must be .* >= 0, got '10 Gb/s'; .* bits or bytes",
        ),
        ({"bandwidth_bytes_per_s": ["10"]}, {}, "row 0 must .* leave out the quotes, or give"),
        # What another unit's column says is a number of that.
        ({"bandwidth_mbit_per_s": ["10 Gbit/s"]}, {}, "bandwidth_mbit_per_s, row 0 must be a"),
        (
            {"bandwidth_bytes_per_s": [1.0]},
            {"release_s": ["1 GB", 0.0]},
            "hosts: release_s, row 'S' must be a finite number of seconds >= 0, got '1 GB'",
        ),
    ],
    ids=["bits or bytes", "no unit", "in another unit", "of hosts"],
)
def test_texts_in_tables_that_are_none_are_refused_in_place(links, hosts, message):
    table = pd.DataFrame({"from": ["S"], "to": ["D"]} | links)
    hosts = pd.DataFrame(hosts, index=["S", "D"])
    with pytest.raises(dc.ProblemError, match=message):
        dc.Problem.from_dataframe(table, {}, "D", hosts=hosts)


def test_files_and_python_refuse_a_text_in_the_same_words():
    tree = {"destination": "D", "hosts": {"S": {"backlog_bytes": "6 Tb"}, "D": {}}}
    with pytest.raises(dc.ProblemError) as of_file:
        dc.Problem.from_dict(tree)
    with pytest.raises(dc.ProblemError) as of_python:
        dc.Problem.from_hosts([dc.Host("S", "6 Tb"), dc.Host("D")], [], "D")
    words = str(of_file.value).removeprefix("hosts.S.")
    assert str(of_python.value) == f"host 'S': {words}"
    assert words.startswith("backlog_bytes must be")


def test_graphs_take_backlogs_by_name_and_any_attribute_as_capacity():
    graph = nx.DiGraph()
    graph.add_node("S", release_s="30 min", storage_bytes="1 TiB", uplink_bytes_per_s="8 Gbit/s")
    graph.add_edge("S", "D", capacity="10 Gbit/s", price_per_gb=0.02)
    made = dc.Problem.from_networkx(graph, "D", backlog={"S": "6 TB"}, capacity="capacity")
    assert made == PLAIN


def test_graphs_take_another_attribute_as_backlog():
    graph = nx.DiGraph([("S", "D", {"bandwidth_bytes_per_s": 5.0})])
    graph.nodes["S"]["backlog"] = 10
    assert dc.Problem.from_networkx(graph, "D", backlog="backlog").backlog_bytes.tolist() == [10, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backlog": {"T": 1}}, "the graph has no node 'T'"),
        ({"backlog": "volume"}, "no node has an attribute 'volume'"),
        ({"capacity": "width"}, "edge 'S' -> 'D': width is missing"),
    ],
    ids=["name", "attribute of nodes", "attribute of edges"],
)
def test_what_a_graph_does_not_have_is_named(options, message):
    graph = nx.DiGraph([("S", "D", {"bandwidth_bytes_per_s": 5.0})])
    with pytest.raises(dc.ProblemError, match=message):
        dc.Problem.from_networkx(graph, "D", **options)


def test_the_place_in_a_matrix_is_told():
    with pytest.raises(dc.ProblemError, match=r"bandwidth_bytes_per_s\[0\]\[1\] must be a finite"):
        dc.Problem.from_matrix(["S", "D"], [[0, "10 Gb/s"], [0, 0]], [0, 0], "D")
