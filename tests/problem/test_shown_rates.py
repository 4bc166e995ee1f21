"""What hosts were seen to do, and that they have no limit: the same however a problem is built."""

from __future__ import annotations

import math

import networkx as nx
import pandas as pd
import pytest
from instances.hand_made import links

import datacollect as dc
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem

TREE = {
    "destination": "D",
    "hosts": {
        "S": {"backlog_bytes": 10, "shown_uplink_bytes_per_s": "16 Mbit/s"},
        "K": {"uplink_bytes_per_s": "none", "downlink_bytes_per_s": "none"},
        "D": {},
    },
    "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 5.0}],
}


def _hosts() -> Problem:
    hosts = [
        Host("S", 10, shown_uplink_bytes_per_s="16 Mbit/s"),
        Host("K", uplink_bytes_per_s="none", downlink_bytes_per_s="none"),
        Host("D"),
    ]
    return Problem.from_hosts(hosts, links("S -> D 5.0"), "D")


def _table() -> Problem:
    hosts = pd.DataFrame(
        {
            "uplink_bytes_per_s": [None, "none", None],
            "downlink_bytes_per_s": [None, "none", None],
            "shown_uplink_bytes_per_s": ["16 Mbit/s", None, None],
        },
        index=["S", "K", "D"],
    )
    rows = pd.DataFrame({"from": ["S"], "to": ["D"], "bandwidth_bytes_per_s": [5.0]})
    return Problem.from_dataframe(rows, {"S": 10}, "D", hosts=hosts)


def _graph() -> Problem:
    graph = nx.DiGraph(destination="D")
    graph.add_node("S", backlog_bytes=10, shown_uplink_bytes_per_s="16 Mbit/s")
    graph.add_node("K", uplink_bytes_per_s="none", downlink_bytes_per_s="none")
    graph.add_edge("S", "D", bandwidth_bytes_per_s=5.0)
    return Problem.from_networkx(graph)


@pytest.mark.parametrize("build", [lambda: Problem.from_dict(TREE), _hosts, _table, _graph])
def test_all_ways_lead_to_the_same(build):
    problem = build()
    assert problem.shown_uplink_bytes_per_s.tolist() == [2e6, math.inf, 0.0]
    assert problem.shown_downlink_bytes_per_s.tolist() == [0.0, math.inf, 0.0]
    assert problem.uplink_bytes_per_s.tolist() == [[math.inf] * 3]
    hosts = problem.to_dict()["hosts"]
    assert hosts["S"] == {"backlog_bytes": 10, "shown_uplink_bytes_per_s": 2e6}
    assert hosts["K"] == {"uplink_bytes_per_s": "none", "downlink_bytes_per_s": "none"}
    for again in (
        Problem.from_dict(problem.to_dict()),
        Problem.from_networkx(problem.to_networkx()),
    ):
        assert again.shown_uplink_bytes_per_s.tolist() == [2e6, math.inf, 0.0]


def test_a_schedule_stays_that_of_a_problem_of_which_more_was_seen():
    """Plans do not depend on it, and so the hash does not."""
    plain = Problem.from_dict(TREE | {"hosts": {"S": {"backlog_bytes": 10}, "K": {}, "D": {}}})
    assert plain.sha256 == Problem.from_dict(TREE).sha256
    assert plain.shown_uplink_bytes_per_s is None
    nothing = plain.replace(shown_uplink_bytes_per_s=[0, 0, 0])
    assert nothing.shown_uplink_bytes_per_s is None
    seen = plain.replace(shown_uplink_bytes_per_s={"D": 0, "S": "8 Mbit/s", "K": 0})
    assert seen.shown_uplink_bytes_per_s.tolist() == [1e6, 0.0, 0.0]
    assert not seen.shown_uplink_bytes_per_s.flags.writeable


def test_a_limit_that_is_given_later_counts():
    problem = _hosts().replace(uplink_bytes_per_s=[math.inf, 7.0, math.inf])
    assert problem.to_dict()["hosts"]["K"]["uplink_bytes_per_s"] == 7.0
    assert "shown_uplink_bytes_per_s" not in problem.to_dict()["hosts"]["K"]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"shown_uplink_bytes_per_s": 0}, r"hosts\.S\.shown_uplink_bytes_per_s must be a finite"),
        ({"shown_uplink_bytes_per_s": -1}, r"> 0, got -1; leave it out where nothing was seen"),
        ({"shown_uplink_bytes_per_s": "none"}, r"shown_uplink_bytes_per_s must be a finite number"),
        ({"shown_downlink_bytes_per_s": [1, 2]}, r"shown_downlink_bytes_per_s must be a finite"),
        ({"shown_downlink_bytes_per_s": "5 GB"}, r"shown_downlink_bytes_per_s"),
        ({"uplink_bytes_per_s": "None"}, r"hosts\.S\.uplink_bytes_per_s must be"),
        ({"uplink_bytes_per_s": ["none"]}, r"uplink_bytes_per_s"),
        ({"shown_uplink": 5}, r"shown_uplink: unknown key; did you mean 'shown_uplink_bytes"),
    ],
)
def test_what_is_none_of_it_is_refused(said, message):
    tree = {"destination": "D", "hosts": {"S": said, "D": {}}}
    with pytest.raises(dc.ProblemError, match=message):
        Problem.from_dict(tree)


def test_python_refuses_what_files_do():
    problem = _hosts()
    with pytest.raises(dc.ProblemError, match=r"host 'S': shown_uplink_bytes_per_s must be >= 0"):
        problem.replace(shown_uplink_bytes_per_s=[-1.0, 0.0, 0.0])
    with pytest.raises(dc.ProblemError, match=r"shown_uplink_bytes_per_s"):
        problem.replace(shown_uplink_bytes_per_s=[1.0])
    with pytest.raises(dc.ProblemError, match=r"'S': shown_uplink_bytes_per_s .*got nan"):
        problem.replace(shown_uplink_bytes_per_s=[math.nan, 0.0, 0.0])
