"""Problems from and to pandas tables and networkx graphs."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollect.errors import ProblemError
from datacollect.problem.hosts import Held, Host, Link, SharedBottleneck
from datacollect.problem.problem import Problem
from datacollect.problem.tables import links_frame

LONG = pd.DataFrame(
    {"from": ["S", "S", "K"], "to": ["D", "K", "D"], "bandwidth_bytes_per_s": [1.0, 4.0, 2.0]}
)


def small(**host_options) -> Problem:
    """Hosts D, K, S; links K->D 2, S->D 1, S->K 4; 10 bytes at S."""
    return Problem.from_hosts(
        [Host("D"), Host("K"), Host("S", 10, **host_options)],
        [Link("S", "D", 1.0), Link("S", "K", 4.0), Link("K", "D", 2.0)],
        "D",
    )


# Long tables


def test_long_table_gives_the_same_problem_as_objects():
    assert Problem.from_dataframe(LONG, {"S": 10}, "D").sha256 == small().sha256


def test_order_of_rows_does_not_matter():
    shuffled = LONG.iloc[[2, 0, 1]]
    assert Problem.from_dataframe(shuffled, {"S": 10}, "D").sha256 == small().sha256


@pytest.mark.parametrize(
    ("column", "factor"),
    [("bandwidth_bit_per_s", 8), ("bandwidth_mbit_per_s", 8e-6)],
)
def test_units_of_bandwidth_are_converted(column, factor):
    """1 byte/s is 8 bit/s is 0.000008 Mbit/s."""
    links = LONG.rename(columns={"bandwidth_bytes_per_s": column})
    links[column] *= factor
    problem = Problem.from_dataframe(links, {"S": 10}, "D")
    assert problem.bandwidth_bytes_per_s[0].tolist() == pytest.approx([2, 1, 4], rel=1e-15)


@pytest.mark.parametrize("kind", ["str", "object", "category"])
def test_names_may_be_of_any_kind_of_text(kind):
    links = LONG.astype({"from": kind, "to": kind})
    problem = Problem.from_dataframe(links, pd.Series({"S": 10}), "D")
    assert problem.sha256 == small().sha256


def test_numpys_texts_give_the_same_problem():
    links = LONG.assign(**{"from": np.array(LONG["from"].tolist()).astype(object)})
    backlog = {np.str_("S"): np.int64(10)}
    assert Problem.from_dataframe(links, backlog, np.str_("D")).sha256 == small().sha256


def test_whole_numbers_do_for_bandwidths():
    links = LONG.astype({"bandwidth_bytes_per_s": "Int64"})
    assert Problem.from_dataframe(links, {"S": 10}, "D").sha256 == small().sha256


def test_a_host_with_a_backlog_needs_no_link():
    problem = Problem.from_dataframe(LONG, {"S": 10, "A": 3}, "D")
    assert problem.names == ("A", "D", "K", "S")
    assert problem.backlog_bytes.tolist() == [3, 0, 0, 10]


def test_prices_are_kept_and_all_zero_is_none():
    priced = LONG.assign(price_per_gb=[0.1, 0.2, 0.3])
    assert Problem.from_dataframe(priced, {}, "D").price_per_gb.tolist() == [0.3, 0.1, 0.2]
    free = LONG.assign(price_per_gb=0.0)
    assert Problem.from_dataframe(free, {"S": 10}, "D").sha256 == small().sha256


def test_estimates_columns_are_ignored():
    links = LONG.assign(age_s=1.0, newest_s=2.0, n_samples=3)
    assert Problem.from_dataframe(links, {"S": 10}, "D").sha256 == small().sha256


def test_forecast_by_rows_with_a_period():
    """Rows in any order; period 1 halves what period 0 has."""
    links = pd.concat(
        [
            LONG.assign(period=1, bandwidth_bytes_per_s=LONG["bandwidth_bytes_per_s"] / 2),
            LONG.assign(period=0),
        ]
    ).assign(price_per_gb=[0.1, 0.2, 0.3] * 2)
    problem = Problem.from_dataframe(links, {"S": 10}, "D", periods_s=[0, 60])
    assert problem.bandwidth_bytes_per_s.tolist() == [[2, 1, 4], [1, 0.5, 2]]
    assert problem.price_per_gb.tolist() == [0.3, 0.1, 0.2]


def test_rows_without_a_period_hold_in_all():
    """S's first row has none; the others are given for one period each."""
    links = pd.DataFrame(
        {
            "from": ["S", "K", "K"],
            "to": ["D", "D", "D"],
            "period": [None, 1, 0],
            "bandwidth_bytes_per_s": [4.0, 2.0, 3.0],
        }
    )
    problem = Problem.from_dataframe(links, {"S": 10}, "D", periods_s=[0, 60])
    assert problem.bandwidth_bytes_per_s.tolist() == [[3.0, 4.0], [2.0, 4.0]]


def test_bandwidths_without_period_hold_in_all_periods():
    problem = Problem.from_dataframe(LONG, {"S": 10}, "D", periods_s=[0, 60])
    assert problem.bandwidth_bytes_per_s.tolist() == [[2, 1, 4]] * 2


def test_hosts_table_gives_order_and_limits_and_nan_is_the_default():
    hosts = pd.DataFrame(
        {
            "release_s": [5, np.nan, 0],
            "storage_bytes": [np.nan, 7, np.nan],
            "uplink_bytes_per_s": [3.0, np.nan, np.nan],
            "downlink_bytes_per_s": [np.nan, np.nan, 9.0],
        },
        index=["S", "K", "D"],
    )
    problem = Problem.from_dataframe(LONG, {"S": 10}, "D", hosts=hosts)
    assert problem.names == ("S", "K", "D")
    assert problem.release_s.tolist() == [5, 0, 0]
    assert problem.storage_bytes.tolist() == [math.inf, 7, math.inf]
    assert problem.uplink_bytes_per_s.tolist() == [[3, math.inf, math.inf]]
    assert problem.downlink_bytes_per_s.tolist() == [[math.inf, math.inf, 9]]


def test_shared_bottlenecks_and_held_data_pass_through():
    shared = [SharedBottleneck("wire", 3.0, [("S", "D"), ("K", "D")])]
    held = [Held("K", "S", 0, 4)]
    problem = Problem.from_dataframe(LONG, {"S": 10}, "D", shared=shared, held=held)
    assert problem.shared == tuple(shared)
    assert problem.held == tuple(held)


def without(column: str) -> pd.DataFrame:
    return LONG.drop(columns=column)


HOSTS = pd.DataFrame(index=["S", "K", "D"])


@pytest.mark.parametrize(
    ("links", "options", "message"),
    [
        (LONG.assign(bandwith=1), {}, r"unknown column 'bandwith'.*known are from, to, bandw"),
        (without("bandwidth_bytes_per_s"), {}, r"exactly one of the columns .*, got none"),
        (LONG.assign(bandwidth_bit_per_s=1), {}, r"got bandwidth_bytes_per_s and bandwidth_bit_"),
        (without("to"), {}, r"links must be long, with columns from, to .* or square"),
        (pd.concat([LONG, LONG["to"]], axis=1), {}, r"column to given twice"),
        (LONG.assign(to=[1, 2, 3]), {}, r"row 0: to must be a host's name as text, got 1; astype"),
        (LONG.assign(to=["D", None, "D"]), {}, r"row 1: to must be a host's name as text"),
        (LONG.assign(to=["D", "S", "D"]), {}, r"link 'S' -> 'S': a link must join two different"),
        (LONG.assign(to=["D", "D", "D"]), {}, r"link 'S' -> 'D': given twice"),
        (LONG.assign(bandwidth_bytes_per_s="x"), {}, r"row 0 must be a finite number .*, got 'x'"),
        (
            LONG.assign(bandwidth_bytes_per_s=True),
            {},
            r"bandwidth_bytes_per_s, row 0 must be a number, got True",
        ),
        (LONG.assign(bandwidth_bytes_per_s=[1, np.nan, 2]), {}, r"'S' -> 'K'.*finite, got nan"),
        (LONG.assign(bandwidth_bytes_per_s=-1.0), {}, r"must be >= 0 and finite, got -1"),
        (LONG.assign(price_per_gb=[0.1, np.nan, 0.1]), {}, r"price_per_gb must be .* got nan"),
        (LONG.assign(period=0), {"periods_s": [0, 9]}, r"one row per period, got 0 rows for peri"),
        (
            pd.concat([LONG.assign(period=0)] * 2),
            {},
            r"links, 'K' -> 'D': must have one row per period, got 2 rows for period 0",
        ),
        (LONG.assign(period=1), {}, r"row 0: period must be a whole number from 0 to 0, got 1"),
        (LONG.assign(period=0.5), {"periods_s": [0, 9]}, r"whole number from 0 to 1, got 0.5"),
        (
            pd.concat([LONG.assign(period=i, price_per_gb=[i, 1, 1]) for i in range(2)]),
            {"periods_s": [0, 9]},
            r"links, 'S' -> 'D': price_per_gb must be the same in all periods, got 1 in period 1",
        ),
        (LONG, {"hosts": HOSTS.drop("K")}, r"links: unknown host 'K'; add it to hosts"),
        (LONG, {"hosts": HOSTS.assign(storage=1)}, r"hosts: unknown column 'storage'.*did you me"),
        (
            LONG,
            {"hosts": HOSTS.assign(release_s="x")},
            r"hosts: release_s, row 'S' must be a finite number of seconds >= 0, got 'x'",
        ),
        (LONG, {"hosts": pd.DataFrame(index=["S", "K", "D", "D"])}, r"host 'D': name given twice"),
        (LONG, {"destination": "d"}, r"destination must be one of the hosts, got 'd'"),
        (LONG, {"backlog": {"S": 1.5}}, r"host 'S': backlog_bytes must be whole, got 1.5"),
        (LONG, {"backlog": {"S": "10", "K": 3}}, r"host 'S': backlog_bytes must be a whole"),
        (LONG, {"backlog": pd.Series({"S": np.nan})}, r"host 'S': backlog_bytes must be a numbe"),
        (LONG, {"backlog": pd.Series([1, 2], index=["S", "S"])}, r"host 'S' given twice"),
        (LONG, {"backlog": {1: 10}}, r"backlog_bytes: a host's name must be text, got 1"),
        (LONG, {"backlog": {"s": 1}, "hosts": HOSTS}, r"backlog_bytes: unknown host 's'"),
    ],
)
def test_bad_long_tables_are_refused(links, options, message):
    options = dict(options)
    backlog = options.pop("backlog", {"S": 10})
    destination = options.pop("destination", "D")
    with pytest.raises(ProblemError, match=message):
        Problem.from_dataframe(links, backlog, destination, **options)


# Square tables


SQUARE = pd.DataFrame(
    [[9.0, 0, 0], [2, np.nan, np.nan], [1, 4, 0]],
    index=["D", "K", "S"],
    columns=["D", "K", "S"],
)


def test_square_table_has_rows_from_and_ignores_diagonal_zero_and_nan():
    assert Problem.from_dataframe(SQUARE, {"S": 10}, "D").sha256 == small().sha256


def test_square_table_goes_by_names_not_positions():
    turned = SQUARE[["S", "D", "K"]]
    assert Problem.from_dataframe(turned, {"S": 10}, "D").sha256 == small().sha256
    reordered = Problem.from_dataframe(SQUARE.loc[["S", "K", "D"]], {"S": 10}, "D")
    assert reordered.names == ("S", "K", "D")
    assert reordered.bandwidth_bytes_per_s.tolist() == [[4, 1, 2]]  # S->K, S->D, K->D


def test_square_table_with_a_list_of_more_hosts_in_another_order():
    """Hosts X, S, D, K: links S->D 1, S->K 4, K->D 2."""
    hosts = pd.DataFrame(index=["X", "S", "D", "K"])
    problem = Problem.from_dataframe(SQUARE, {"S": 10}, "D", hosts=hosts)
    assert problem.names == ("X", "S", "D", "K")
    assert problem.link_from.tolist() == [1, 1, 3]
    assert problem.link_to.tolist() == [2, 3, 2]
    assert problem.bandwidth_bytes_per_s.tolist() == [[1, 4, 2]]


def test_square_table_and_a_backlog_elsewhere():
    problem = Problem.from_dataframe(SQUARE, {"X": 1}, "D")
    assert problem.names == ("D", "K", "S", "X")


@pytest.mark.parametrize(
    ("links", "options", "message"),
    [
        (SQUARE[["D", "K"]], {}, r"or square, with the same names once each"),
        (SQUARE.rename(columns={"D": "E"}), {}, r"got columns 'E', 'K', 'S'"),
        (SQUARE.astype(object).replace(4.0, "4"), {}, r"column 'K', row 'S' must be .*'4'"),
        (SQUARE.replace(4.0, -4.0), {}, r"link 'S' -> 'K': bandwidth_bytes_per_s must be >= 0"),
        (SQUARE.replace(4.0, np.inf), {}, r"link 'S' -> 'K': .* finite, got inf"),
        (SQUARE, {"hosts": HOSTS.drop("K")}, r"links: unknown host 'K'; add it to hosts"),
    ],
)
def test_bad_square_tables_are_refused(links, options, message):
    with pytest.raises(ProblemError, match=message):
        Problem.from_dataframe(links, {"S": 10}, "D", **options)


# And back


@st.composite
def problems(draw) -> Problem:
    """Problems with any of what a problem can have."""
    n = draw(st.integers(1, 5))
    names = draw(st.permutations("ABCDE"))[:n]
    periods = [0.0, 1.5, 4.0][: draw(st.integers(1, 3))]
    pairs = [(a, b) for a in names for b in names if a != b]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    rate = st.floats(0, 1e9, allow_subnormal=False)
    limit = st.one_of(st.just(math.inf), rate)
    amount = st.integers(0, 2**55)
    storage = st.one_of(st.just(math.inf), st.integers(0, 2**53))
    hosts = [
        Host(name, draw(amount), draw(rate), draw(storage), draw(limit), draw(limit))
        for name in names
    ]
    priced = draw(st.booleans())
    links = [
        Link(a, b, [draw(rate) for _ in periods], draw(rate) if priced else 0.0) for a, b in chosen
    ]
    shared = [SharedBottleneck("wire", draw(rate), chosen[:2])] if chosen else []
    held = []
    source = hosts[0]
    if source.backlog_bytes and draw(st.booleans()):
        held = [Held(source.name, source.name, 0, draw(st.integers(0, source.backlog_bytes)))]
    return Problem.from_hosts(hosts, links, names[-1], shared=shared, held=held, periods_s=periods)


@given(problems())
def test_graph_and_back_is_the_same_problem(problem):
    graph = problem.to_networkx()
    assert Problem.from_networkx(graph).sha256 == problem.sha256
    assert list(graph) == list(problem.names)
    assert graph.number_of_edges() == problem.n_links


@given(problems())
def test_table_and_back_is_the_same_problem(problem):
    hosts = pd.DataFrame(
        {
            "release_s": problem.release_s,
            "storage_bytes": problem.storage_bytes,
            "uplink_bytes_per_s": problem.uplink_bytes_per_s[0],
            "downlink_bytes_per_s": problem.downlink_bytes_per_s[0],
        },
        index=list(problem.names),
    )
    again = Problem.from_dataframe(
        links_frame(problem),
        dict(zip(problem.names, problem.backlog_bytes, strict=True)),
        problem.destination,
        hosts=hosts,
        periods_s=problem.periods_s,
        shared=problem.shared,
        held=problem.held,
    )
    assert again.sha256 == problem.sha256


def test_table_of_links_shows_periods_and_prices_only_where_there_are_any():
    assert links_frame(small()).to_dict("list") == {
        "from": ["K", "S", "S"],
        "to": ["D", "D", "K"],
        "bandwidth_bytes_per_s": [2, 1, 4],
    }
    priced = LONG.assign(price_per_gb=[0.1, 0.2, 0.3])
    problem = Problem.from_dataframe(priced, {"S": 10}, "D", periods_s=[0, 60])
    assert links_frame(problem).to_dict("list") == {
        "from": ["K", "S", "S"] * 2,
        "to": ["D", "D", "K"] * 2,
        "period": [0, 0, 0, 1, 1, 1],
        "bandwidth_bytes_per_s": [2, 1, 4] * 2,
        "price_per_gb": [0.3, 0.1, 0.2] * 2,
    }


# Graphs


@pytest.fixture
def graph() -> nx.DiGraph:
    graph = nx.DiGraph(destination="D", title="of no interest")
    graph.add_node("D", label="the lab")
    graph.add_node("K", storage_bytes=np.float64(7))
    graph.add_node("S", backlog_bytes=np.int64(10), release_s=5)
    graph.add_edge("S", "D", bandwidth_bytes_per_s=1.0, weight=3)
    graph.add_edge("S", "K", bandwidth_bytes_per_s=4, price_per_gb=0.5)
    graph.add_edge("K", "D", bandwidth_bytes_per_s=2.0)
    return graph


def test_graph_gives_hosts_links_and_prices(graph):
    problem = Problem.from_networkx(graph)
    assert problem.names == ("D", "K", "S")
    assert problem.storage_bytes.tolist() == [math.inf, 7, math.inf]
    assert problem.release_s.tolist() == [0, 0, 5]
    assert problem.bandwidth_bytes_per_s.tolist() == [[2, 1, 4]]
    assert problem.price_per_gb.tolist() == [0, 0, 0.5]


def test_destination_given_overrides_the_graphs(graph):
    assert Problem.from_networkx(graph, "K").destination == "K"


def test_graph_with_a_forecast(graph):
    graph.graph["periods_s"] = [0, 60]
    graph.edges["S", "D"]["bandwidth_bytes_per_s"] = [1.0, 0.5]
    problem = Problem.from_networkx(graph)
    assert problem.bandwidth_bytes_per_s.tolist() == [[2, 1, 4], [2, 0.5, 4]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g.graph.pop("destination"), r"destination is missing: give it as argument or"),
        (lambda g: g.add_node(7), r"node 7: a host's name must be text; networkx\.relabel_nodes"),
        (lambda g: g.add_edge("D", "S"), r"edge 'D' -> 'S': bandwidth_bytes_per_s is missing, go"),
        (lambda g: g.add_edge("D", "S", bandwidth=2), r"did you mean 'bandwidth_bytes_per_s'"),
        (lambda g: g.add_edge("D", "S", bandwidth_mbit_per_s=2), r"unknown attribute 'bandwidth_m"),
        (lambda g: g.add_edge("D", "S", capacity=2), r"is missing, got attributes \['capacity'\]"),
        (lambda g: g.add_edge("D", "S", bandwidth_bytes_per_s="2"), r"per second >= 0, got '2'; "),
        (lambda g: g.add_edge("D", "S", bandwidth_bytes_per_s=True), r"must be a number, got True"),
        (lambda g: g.add_edge("D", "S", bandwidth_bytes_per_s=[1, "x"]), r"second >= 0, got 'x'"),
        (lambda g: g.add_edge("D", "S", bandwidth_bytes_per_s=[1, 2]), r"one number per period"),
        (lambda g: g.add_edge("S", "S", bandwidth_bytes_per_s=1), r"two different hosts"),
        (lambda g: g.add_edge("S", "D", price_per_gb="x"), r"price_per_gb must be a finite"),
        (lambda g: g.add_node("K", backlog=3), r"node 'K': unknown attribute 'backlog'; did you"),
        (lambda g: g.add_node("S", uplink_gbit=3), r"did you mean 'uplink_bytes_per_s'"),
        (lambda g: g.add_node("S", release_s="noon"), r"node 'S': release_s must be a finite"),
        (lambda g: g.add_node("S", backlog_bytes=1.5), r"backlog_bytes must be whole"),
        (lambda g: g.graph.update(periods=[0, 1]), r"the graph: unknown attribute 'periods'"),
        (lambda g: g.graph.update(shared=[("S", "D")]), r"shared must hold SharedBottleneck obj"),
        (lambda g: g.graph.update(held=[{"host": "K"}]), r"held must hold Held objects"),
    ],
)
def test_bad_graphs_are_refused(graph, change, message):
    change(graph)
    with pytest.raises(ProblemError, match=message):
        Problem.from_networkx(graph)


@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiDiGraph])
def test_undirected_and_multigraphs_are_refused(graph, kind):
    with pytest.raises(ProblemError, match=rf"must be a networkx.DiGraph, got {kind.__name__}"):
        Problem.from_networkx(kind(graph))


def test_known_names_beside_similar_ones_are_no_near_miss(graph):
    graph.nodes["S"]["backlog"] = "2 weeks"
    assert Problem.from_networkx(graph).total_bytes == 10
