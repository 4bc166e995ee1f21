"""Rates by connections: bandwidth, capacity, competitors and rate per connection together."""

import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import datacollect as dc
from datacollect.errors import ProblemError
from datacollect.problem.connection_rates import link_rates, rates_of, wire_rates


def one_link(bandwidth=4.0, **rates):
    hosts = [dc.Host("S", 60), dc.Host("D")]
    return dc.Problem.from_hosts(hosts, [dc.Link("S", "D", bandwidth, **rates)], "D")


IDLE = {"per_connection_bytes_per_s": 4.0, "capacity_bytes_per_s": 30.0, "competitors": 0}


@pytest.mark.parametrize(
    ("given", "n", "rate"),
    [
        # A constant, whatever the number.
        ({}, 5, 4.0),
        # m = 12/4 - 1 = 2 others: five of seven parts of 12.
        ({"capacity_bytes_per_s": 12.0}, 5, 60 / 7),
        # C = 4 (1 + 2) = 12, the same.
        ({"competitors": 2}, 5, 60 / 7),
        # Each alone gets 4, and nothing else limits.
        ({"per_connection_bytes_per_s": 4.0}, 5, 20.0),
        # The connection is the limit, the wire is idle: 3 x 4 of 30; ten want 40.
        (
            {"per_connection_bytes_per_s": 4.0, "capacity_bytes_per_s": 30.0, "competitors": 0},
            3,
            12.0,
        ),
        (
            {"per_connection_bytes_per_s": 4.0, "capacity_bytes_per_s": 30.0, "competitors": 0},
            10,
            30.0,
        ),
        # C and m would give one 30/3 = 10; it gets 4, so that is what a connection gets: three get
        # 12, ten get 30 x 10/12 = 25.
        ({"capacity_bytes_per_s": 30.0, "competitors": 2}, 3, 12.0),
        ({"capacity_bytes_per_s": 30.0, "competitors": 2}, 10, 25.0),
        # One gets 4 of 12; three would get 12 x 3/5 = 7.2.
        (
            {
                "per_connection_bytes_per_s": 5.0,
                "capacity_bytes_per_s": 12.0,
                "competitors": 2,
            },
            3,
            7.2,
        ),
    ],
)
def test_what_is_left_out_follows_from_the_bandwidth(given, n, rate):
    rates = link_rates(one_link(**given))
    assert rates.rate(n) == pytest.approx([rate])
    assert rates.rate(1).tolist() == [4.0]
    assert rates.rate(0).tolist() == [0.0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"per_connection_bytes_per_s": 3.0}, r"per_connection_bytes_per_s must be at least .* 4"),
        ({"per_connection_bytes_per_s": 5.0}, r"say what limits it: capacity_bytes_per_s or comp"),
        ({"capacity_bytes_per_s": 3.0}, r"capacity_bytes_per_s must be at least the bandwidth"),
        (
            {"capacity_bytes_per_s": 12.0, "competitors": 3},
            r"beside competitors = 3 of others gets 3 of capacity_bytes_per_s = 12, but the band",
        ),
        (
            {
                "per_connection_bytes_per_s": 9.0,
                "capacity_bytes_per_s": 24.0,
                "competitors": 2,
            },
            r"one connection would get 8 by .*, but the bandwidth is 4",
        ),
        ({"competitors": -1}, r"link 'S' -> 'D': competitors must be >= 0 and finite, got -1"),
        ({"competitors": math.inf}, r"competitors must be >= 0 and finite, got inf"),
        ({"capacity_bytes_per_s": 0.0}, r"capacity_bytes_per_s must be > 0 and finite, got 0"),
    ],
)
def test_contradictions_are_refused(given, message):
    with pytest.raises(ProblemError, match=message):
        one_link(**given)


def test_a_percent_is_measuring_not_contradicting():
    rates = link_rates(one_link(4.0, capacity_bytes_per_s=12.0, competitors=2.02))
    assert rates.rate(1).tolist() == [4.0]
    with pytest.raises(ProblemError, match="but the bandwidth is 4"):
        one_link(4.0, capacity_bytes_per_s=12.0, competitors=2.1)


def test_a_link_without_capacity_has_none_for_any_number():
    problem = one_link(0.0, competitors=3)
    assert link_rates(problem).rate(5).tolist() == [0.0]


def test_problems_without_them_hash_as_before():
    """Recorded before there were any."""
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    assert problem.sha256 == "1f8c3e72f0d2dcdfb054d7ae3a2dff84344d9d4e77e1a6b0d96076ba191e258a"


def every_kind():
    links = [
        dc.Link("A", "D", 4.0, capacity_bytes_per_s=12.0),
        dc.Link("A", "B", 2.0, per_connection_bytes_per_s=2.0),
        dc.Link("B", "D", 3.0),
    ]
    hosts = [dc.Host("A", 60, most_connections=4), dc.Host("B"), dc.Host("D")]
    wire = dc.SharedBottleneck("w", 4.0, [("A", "D")], competitors=2)
    return dc.Problem.from_hosts(hosts, links, "D", shared=[wire])


def test_files_tables_and_graphs_hold_them(tmp_path):
    problem = every_kind()
    assert dc.Problem.from_dict(problem.to_dict()).sha256 == problem.sha256
    assert dc.Problem.from_networkx(problem.to_networkx()).sha256 == problem.sha256
    from datacollect.problem.tables import links_frame

    table = links_frame(problem)
    hosts = pd.DataFrame({"most_connections": [4, math.nan, math.nan]}, index=["A", "B", "D"])
    again = dc.Problem.from_dataframe(table, {"A": 60}, "D", hosts=hosts, shared=problem.shared)
    assert again.sha256 == problem.sha256
    table.to_csv(tmp_path / "grid.csv", index=False)
    tree = {key: value for key, value in problem.to_dict().items() if key != "links"}
    import json

    (tmp_path / "p.json").write_text(json.dumps(tree | {"bandwidth_csv": "grid.csv"}))
    assert dc.Problem.from_file(tmp_path / "p.json").sha256 == problem.sha256


def test_a_matrix_holds_them():
    nan = math.nan
    problem = dc.Problem.from_matrix(
        ["A", "B", "D"],
        [[0, 2.0, 4.0], [0, 0, 3.0], [0, 0, 0]],
        [60, 0, 0],
        "D",
        most_connections=[4, math.inf, math.inf],
        per_connection_bytes_per_s=[[nan, 2.0, nan], [nan] * 3, [nan] * 3],
        capacity_bytes_per_s=[[nan, nan, 12.0], [nan] * 3, [nan] * 3],
    )
    assert problem.replace(shared=every_kind().shared).sha256 == every_kind().sha256
    with pytest.raises(ProblemError, match=r"competitors must be a number or have shape \(2, 2\)"):
        dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D", competitors=[1.0])


def test_each_of_them_changes_the_hash():
    problem = every_kind()
    others = [
        problem.replace(most_connections=[5, math.inf, math.inf]),
        problem.replace(competitors=None, capacity_bytes_per_s=None),
        problem.replace(shared=[dc.SharedBottleneck("w", 4.0, [("A", "D")])]),
        problem.replace(shared=[dc.SharedBottleneck("w", 4.0, [("A", "D")], competitors=3)]),
    ]
    assert len({problem.sha256, *(other.sha256 for other in others)}) == 5


def test_other_bandwidths_keep_the_shape_and_other_links_forget_it():
    problem = one_link(capacity_bytes_per_s=12.0)
    twice = problem.replace(bandwidth_bytes_per_s=[[8.0]])
    assert link_rates(twice).rate(5) == pytest.approx([120 / 7])
    assert rates_of(twice, 0) == {"capacity_bytes_per_s": 24.0, "competitors": 2.0}
    none = problem.replace(bandwidth_bytes_per_s=[[0.0]])
    assert link_rates(none).rate(5).tolist() == [0.0]
    back = problem.replace(link_from=[1], link_to=[0])
    assert back.competitors is None
    few = every_kind().with_links(np.array([1]))
    assert few.capacity_bytes_per_s.tolist() == [12.0]


def test_wires_give_to_each_connection_too():
    wire = dc.SharedBottleneck("w", 4.0, [("S", "D")], capacity_bytes_per_s=12.0)
    assert wire_rates(one_link().replace(shared=[wire])).rate(4) == pytest.approx([8.0])
    with pytest.raises(ProblemError, match="beside competitors = 5 of others gets 2"):
        one_link().replace(shared=[dc.SharedBottleneck("w", 4.0, [("S", "D")], 12.0, 5)])


def test_a_forecast_and_numbers_of_connections_exclude_each_other():
    hosts = [dc.Host("S", 60), dc.Host("D")]
    link = dc.Link("S", "D", [4.0, 5.0], competitors=2)
    with pytest.raises(ProblemError, match="must be the same in all periods"):
        dc.Problem.from_hosts(hosts, [link], "D", periods_s=[0, 10])
    same = dc.Link("S", "D", 4.0, competitors=2)
    assert dc.Problem.from_hosts(hosts, [same], "D", periods_s=[0, 10]).n_periods == 2


def test_hosts_count_connections_in_whole_numbers():
    with pytest.raises(ProblemError, match="most_connections must be a whole number >= 0"):
        one_link().replace(most_connections=[1.5, 2])
    assert one_link().replace(most_connections=[math.inf, math.inf]).most_connections is None


def test_graphs_may_have_capacities_of_their_own():
    graph = nx.DiGraph()
    graph.add_node("S", backlog_bytes=10)
    graph.add_edge("S", "D", bandwidth_bytes_per_s=4.0, capacity=7)
    assert dc.Problem.from_networkx(graph, "D").competitors is None


def test_who_else_shares_a_capacity_must_be_told_where_one_connection_tells_nothing():
    """One connection gets all it can by itself: 12 bytes/s may be shared with none, or with two."""
    given = {"per_connection_bytes_per_s": 4.0, "capacity_bytes_per_s": 12.0}
    hosts = [dc.Host("S", 60), dc.Host("D")]
    with pytest.raises(dc.ProblemError, match=r"competitors must be given .* 0 if nobody else"):
        dc.Problem.from_hosts(hosts, [dc.Link("S", "D", 4.0, **given)], "D")
    for competitors, four in ((0, 12.0), (2, 8.0)):
        link = dc.Link("S", "D", 4.0, **given, competitors=competitors)
        assert link_rates(dc.Problem.from_hosts(hosts, [link], "D")).rate(4) == four
    alone = dc.Link("S", "D", 4.0, per_connection_bytes_per_s=4.0)
    assert link_rates(dc.Problem.from_hosts(hosts, [alone], "D")).rate(4) == 16.0
