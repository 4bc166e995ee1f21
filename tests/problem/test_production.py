"""Sources that make their data: the same through every door; nothing changes without them."""

import math

import networkx as nx
import pandas as pd
import pytest

import datacollect as dc

TREE = {
    "destination": "D",
    "hosts": {
        "S": {"backlog_bytes": "10 MB", "produces_bytes_per_s": "8 Mbit/s", "made_bytes": "1 MB"},
        "D": {},
    },
    "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": "80 Mbit/s"}],
}


def test_all_doors_lead_to_the_same_problem():
    problem = dc.Problem.from_dict(TREE)
    assert problem.makers.tolist() == [0]
    hosts = pd.DataFrame(
        {"produces_bytes_per_s": [1e6, None], "made_bytes": [10**6, None]}, index=["S", "D"]
    )
    graph = nx.DiGraph()
    graph.add_node("S", backlog_bytes=10**7, produces_bytes_per_s=1e6, made_bytes=10**6)
    graph.add_edge("S", "D", bandwidth_bytes_per_s=1e7)
    for other in (
        dc.Problem.from_dict(problem.to_dict()),
        dc.Problem.from_networkx(problem.to_networkx()),
        dc.Problem.from_networkx(graph, "D"),
        dc.Problem.from_dataframe(problem.to_dataframe(), {"S": 10**7}, "D", hosts=hosts),
        dc.Problem.from_matrix(
            ["S", "D"],
            [[0, 1e7], [0, 0]],
            [10**7, 0],
            "D",
            produces_bytes_per_s=["8 Mbit/s", math.inf],
            made_bytes=["1 MB", 0],
        ),
        dc.Problem.from_hosts(
            [dc.Host("S", "10 MB", produces_bytes_per_s="1 MB/s", made_bytes="1 MB"), dc.Host("D")],
            [dc.Link("S", "D", 1e7)],
            "D",
        ),
    ):
        assert other == problem


def test_the_hash_of_a_problem_without_the_key_is_what_it_was():
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    assert problem.sha256.startswith("1f8c3e72f0d2dcdf")
    assert problem == problem.replace(produces_bytes_per_s=math.inf)
    assert problem != problem.replace(produces_bytes_per_s=1.0)


def test_a_source_without_data_makes_none():
    problem = dc.Problem.from_dict(TREE).replace(backlog_bytes=[0, 0])
    assert problem.produces_bytes_per_s is None
    assert problem.makers.tolist() == []


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ({"backlog_bytes": 10, "produces_bytes_per_s": 0}, "produces_bytes_per_s must be .* > 0"),
        ({"backlog_bytes": 10, "produces_bytes_per_s": 1, "made_bytes": 11}, "at most the backlog"),
        ({"produces_bytes_per_s": 1}, "produces_bytes_per_s needs backlog_bytes"),
        ({"backlog_bytes": 10, "made_bytes": 1}, "made_bytes needs produces_bytes_per_s"),
    ],
)
def test_what_makes_no_sense_is_refused(host, message):
    with pytest.raises(dc.ProblemError, match=message):
        dc.Problem.from_dict({"destination": "D", "hosts": {"S": host, "D": {}}})


def test_nothing_lies_elsewhere_that_is_yet_to_be_made():
    tree = TREE | {"held": [{"host": "D", "source": "S", "offset_bytes": 0, "bytes": 10**6 + 1}]}
    with pytest.raises(dc.ProblemError, match="set made_bytes to at least the end of the range"):
        dc.Problem.from_dict(tree)
    tree["held"][0]["bytes"] = 10**6
    assert dc.Problem.from_dict(tree).total_bytes == 9 * 10**6
