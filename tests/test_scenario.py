"""Scenario files: what they may say, what is drawn from them, what the planner gets to know."""

from __future__ import annotations

import json
from collections import Counter

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import datacollect as dc
from datacollect import probing
from datacollect.background import crossing_pairs, split_evenly
from datacollect.harness import carry_out
from datacollect.placement import make_topology, scaled_with_total, uniform_with_total
from datacollect.planning import n_connections
from datacollect.probing import measure, planning_problem
from datacollect.setting import build, network_of
from datacollect.simulation import ns3_probe
from datacollect.topologies import paper_152

PAPER = {
    "topology": {"kind": "paper-152", "seed": 1},
    "scale": 0.1,
    "hosts": {
        "destination": {"domain": "A", "among": "transit", "access": {"rate_bytes_per_s": 1.25e7}},
        "sources": [
            {"domain": "A", "among": "transit", "count": 2},
            {"domain": "B", "among": "transit", "count": 5},
        ],
    },
    "backlog": {
        "least_bytes": 25_000_000,
        "most_bytes": 75_000_000,
        "total_bytes": 350_000_000,
    },
    "background": {"flows": 60, "from": "B", "to": "A", "split": [1, 3]},
}


def line_of(**sections):
    """S at one end of a line of two routers, D at the other: 1 MB/s, no delay, no headers."""
    tree = {
        "topology": {"kind": "line", "n_nodes": 2, "rate_bytes_per_s": 1e6, "delay_s": 0.0},
        "hosts": {
            "access": {"rate_bytes_per_s": 1e8, "delay_s": 0.0},
            "destination": {"at": "N1"},
            "sources": [{"name": "S", "at": "N0", "backlog_bytes": 5_000_000}],
        },
        "transport": {"header_bytes": 0},
        "run": {"warm_up_s": 0.0},
    }
    return dc.Scenario.from_dict(tree | sections)


@pytest.fixture(scope="module")
def paper():
    return dc.Scenario.from_dict(PAPER)


@pytest.fixture(scope="module")
def paper_setting(paper):
    return build(paper)


# The file -----------------------------------------------------------------------------------


def changed(place, value):
    tree = json.loads(json.dumps(PAPER))
    *tables, key = place.split(".")
    table = tree
    for name in tables:
        table = table[int(name)] if isinstance(table, list) else table.setdefault(name, {})
    if value is None:
        del table[key]
    else:
        table[int(key) if isinstance(table, list) else key] = value
    return tree


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("format", "datacollect-problem/1", "this is a problem file"),
        ("topolgy", {}, "topolgy: unknown key; did you mean 'topology'?"),
        ("topology", None, "key topology is missing; add [topology]"),
        ("hosts", None, "key hosts is missing"),
        ("problem", "p.toml", "topology: a scenario with a problem has no topology"),
        ("truth_csv", "t.csv", "truth_csv needs a problem"),
        ("scale", 0, "scale must be a finite number > 0, got 0"),
        ("topology.kind", None, "topology: key kind is missing"),
        ("topology.kind", "dumbell", "did you mean 'dumbbell'?"),
        ("topology.seeds", 1, "topology.seeds: unknown key; did you mean 'seed'?"),
        ("topology.peering", {"rate_bytes_per_s": 0}, "peering.rate_bytes_per_s must be a finite"),
        ("hosts.destination.at", "A0", "hosts.destination.domain excludes at, got 'A'"),
        ("hosts.sources", [], "hosts.sources must not be empty"),
        ("hosts.sources.0.count", 0, "hosts.sources[0].count must be a whole number >= 1, got 0"),
        ("hosts.sources.0.backlog_bytes", -5, "hosts.sources[0].backlog_bytes must be"),
        ("backlog.most_bytes", None, "least_bytes and most_bytes belong together"),
        ("backlog.most_bytes", 5, "backlog.least_bytes must be <= most_bytes (5), got 25000000"),
        ("background.tcp_probability", 1.5, "background.tcp_probability must be between 0 and 1"),
        ("background.least_mean_s", 4.0, "must be <= most_mean_s (3), got 4.0"),
        ("background.pairs", [{"from": "A0", "to": "B0", "kind": "udp"}], "is needed there"),
        ("background.flows", -1, "background.flows must be a whole number >= 0, got -1"),
        ("estimates.kind", "given", 'estimates.file is for kind = "given"'),
        ("estimates.how", "mean", "estimates.how must be one of ewma, last, median, quantile"),
        ("estimates.know_access", "yes", "estimates.know_access must be true or false"),
        ("routing.kind", "hotpotato", "did you mean 'hot-potato'?"),
        ("method.name", "coordinate", "did you mean 'coordinated'?"),
        ("method.slot_s", -1, "method.slot_s must be a finite number of seconds > 0, got -1"),
        ("run.time_limit_s", 0, "run.time_limit_s must be a finite number of seconds > 0, got 0"),
        ("run.warm_up_s", -1.0, "run.warm_up_s must be a finite number of seconds >= 0, got -1.0"),
    ],
)
def test_bad_values_are_named_with_place_rule_and_value(place, value, message):
    with pytest.raises(dc.ProblemError) as caught:
        dc.Scenario.from_dict(changed(place, value))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("hosts.destination.domain", "C", "hosts.destination must name a domain"),
        ("hosts.sources.0", {"at": "A9"}, "hosts.sources[0].at must be a node of the topology"),
        ("hosts.sources.1.among", "external", "no node of kind 'external' in domain 'B'"),
        ("hosts.sources.0.name", "D", None),
        ("hosts.sources.0", {"name": "D", "at": "A0"}, "host 'D' is named twice"),
        ("backlog.total_bytes", 9, "between 7 × least_bytes = 175000000 and"),
        ("backlog", None, "source 'S1' has no backlog"),
        ("background.split", [1, 2, 3], "must be one number for each of 2 wires (B0-A0, B1-A1)"),
        ("background.split", [0, 0], "not all 0"),
        ("background.over", ["B0-A1"], "background.over[0] must be a wire of the topology"),
        ("background.pairs", [{"from": "A0", "to": "A0"}], "must join two different nodes"),
        ("background.pairs", [{"from": "A0", "to": "X"}], "background.pairs[0].to must be a node"),
        ("scale", 1e-9, "leaves source 'S1' no byte"),
    ],
)
def test_what_is_not_in_the_topology_is_refused(place, value, message):
    scenario = dc.Scenario.from_dict(changed(place, value))
    if message is None:  # a beginning, numbered: D1, D2
        assert {"D", "D1", "D2"} <= set(build(scenario).hosts)
        return
    with pytest.raises(dc.ProblemError) as caught:
        build(scenario)
    assert message in str(caught.value)


def test_every_default_is_written_out_and_read_back(paper):
    tree = paper.to_dict()
    assert tree["transport"]["variant"] == "NewReno"
    assert tree["topology"]["peering"]["rate_bytes_per_s"] == 625_000
    assert dc.Scenario.from_dict(tree).to_dict() == tree
    json.dumps(tree, allow_nan=False)


def test_a_file_is_read_with_its_name(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text('[topology]\nkind = "star"\n')
    with pytest.raises(dc.ProblemError, match=r"small.toml: topology: keys? n_hosts"):
        dc.Scenario.from_file(file)
    file.write_text(json.dumps(PAPER).replace("'", '"'))
    (tmp_path / "small.json").write_text(json.dumps(PAPER))
    assert dc.Scenario.from_file(tmp_path / "small.json").name == "small"


def test_values_are_changed_by_their_places_and_checked(paper):
    changed = paper.with_values({"background.flows": 3, "hosts.destination.among": None})
    assert changed.section("background")["flows"] == 3
    assert changed.section("hosts")["destination"]["among"] is None
    assert paper.section("background")["flows"] == 60
    with pytest.raises(dc.ProblemError, match="unknown key; did you mean 'flows'"):
        paper.with_values({"background.flow": 3})
    with pytest.raises(dc.ProblemError, match="seed is no table"):
        paper.with_values({"run.seed.x": 3})


# Backlogs -----------------------------------------------------------------------------------


@given(
    n=st.integers(1, 8), least=st.integers(1, 50), width=st.integers(0, 50), seed=st.integers(0, 9)
)
def test_drawn_backlogs_keep_bounds_and_total(n, least, width, seed):
    total = n * least + n * width // 2
    drawn = uniform_with_total(n, least, least + width, total, np.random.default_rng(seed))
    assert drawn.sum() == total
    assert ((drawn >= least) & (drawn <= least + width)).all()


def test_drawn_backlogs_are_uniform_on_condition_of_the_total():
    """Two of 1 ... 3 that make 4: (1, 3), (2, 2) and (3, 1) are equally likely. 3000 draws:
    1000 each, standard deviation 26.
    """
    random = np.random.default_rng(0)
    first = Counter(int(uniform_with_total(2, 1, 3, 4, random)[0]) for _ in range(3000))
    assert set(first) == {1, 2, 3}
    assert all(abs(times - 1000) < 130 for times in first.values())


@given(
    st.lists(st.integers(1, 10**9), min_size=1, max_size=8), st.sampled_from([0.1, 0.37, 1.0, 3.0])
)
def test_scaling_keeps_the_total_and_every_share(amounts, scale):
    scaled = scaled_with_total(np.array(amounts), scale)
    assert scaled.sum() == round(sum(amounts) * scale)
    assert np.abs(scaled - np.array(amounts) * scale).max() <= 1


def test_the_paper_s_sources_hold_what_it_says(paper_setting):
    sizes = list(paper_setting.backlog_bytes.values())
    assert len(sizes) == 7
    assert sum(sizes) == 35_000_000
    assert all(2_500_000 <= size <= 7_500_000 for size in sizes)


# Seeds --------------------------------------------------------------------------------------


def drawn(setting):
    network = setting.network
    return setting.facts["nodes_of_hosts"], dict(setting.backlog_bytes), network.background


def test_same_seed_same_setting_another_seed_another(paper, paper_setting):
    assert drawn(build(paper)) == drawn(paper_setting)
    other = drawn(build(paper.with_values({"run.seed": 2})))
    assert all(a != b for a, b in zip(other, drawn(paper_setting), strict=True))


def test_streams_are_apart(paper, paper_setting):
    """Other backlogs leave places and background; other places or flows leave the backlogs."""
    nodes, backlog, background = drawn(paper_setting)
    for values, same in (
        ({"backlog.seed": 9}, (True, False, True)),
        ({"background.flows": 20}, (True, True, False)),
        ({"hosts.seed": 9}, (False, True, True)),
        ({"method.name": "direct", "estimates.seed": 4}, (True, True, True)),
    ):
        found = drawn(build(paper.with_values(values)))
        equal = tuple(a == b for a, b in zip(found, (nodes, backlog, background), strict=True))
        assert equal == same, values


# Network and background ---------------------------------------------------------------------


def test_routes_are_those_of_the_topology():
    topology = paper_152(seed=1)
    routes = topology.shortest_routes(hot_potato=True)
    network = network_of(topology, {}, routes.next_wire)
    for a, b in (("A0.0.0", "B3.1.2"), ("B1", "A2"), ("B3.1.2", "A0.0.0")):
        wires = [2 * w + back for w, back in routes.directed_wires(a, b)]
        assert network.path(topology.index[a], topology.index[b]) == wires
        ends = [*network.tail[wires], network.head[wires[-1]]]
        assert tuple(topology.names[i] for i in ends) == routes.path(a, b)
    rates = topology.rate_bytes_per_s
    assert (network.rate_bytes_per_s == np.repeat(rates[:, 0], 2)).all()


def test_hosts_lie_in_their_domains_at_different_nodes(paper_setting):
    where = paper_setting.facts["nodes_of_hosts"]
    assert [where[f"S{i}"][0] for i in range(1, 8)] == list("AABBBBB")
    assert where["D"][0] == "A"
    assert len({where[host] for host in ("D", "S1", "S2")}) == 3
    # Five sources at four nodes: each node is used before one is used again.
    assert len({where[f"S{i}"] for i in range(3, 8)}) == 4


def test_background_crosses_its_wires_in_the_ratio_asked_for(paper_setting):
    network, topology = paper_setting.network, paper_setting.topology
    crossed = Counter()
    for flow in network.background:
        assert topology.domains[flow.from_node].startswith("B")
        assert topology.domains[flow.to_node].startswith("A")
        assert {topology.kinds[flow.from_node], topology.kinds[flow.to_node]} == {"stub"}
        wires = {topology.wire_names[w // 2] for w in network.path(flow.from_node, flow.to_node)}
        crossed[frozenset(wires & {"B0-A0", "B1-A1"})] += 1
        assert 0 <= flow.start_s <= 2
    assert crossed == {frozenset({"B0-A0"}): 15, frozenset({"B1-A1"}): 45}
    assert len({(flow.from_node, flow.to_node) for flow in network.background}) == 60


def test_udp_takes_its_share_of_each_wire_on_average(paper_setting):
    """5 % of 625 000 bytes per second over each peering wire; on for on/(on + off) of the time."""
    network, topology = paper_setting.network, paper_setting.topology
    for name in ("B0-A0", "B1-A1"):
        wire = topology.wire_index(name)
        udp = [
            flow
            for flow in network.background
            if flow.kind == "udp"
            and wire in {w // 2 for w in network.path(flow.from_node, flow.to_node)}
        ]
        means = [f.rate_bytes_per_s * f.mean_on_s / (f.mean_on_s + f.mean_off_s) for f in udp]
        assert sum(means) == pytest.approx(0.05 * 625_000)
        assert all(0.2 <= t <= 3 for flow in udp for t in (flow.mean_on_s, flow.mean_off_s))


def test_without_udp_the_tcp_flows_are_the_same(paper, paper_setting):
    silent = build(paper.with_values({"background.udp_share": 0}))
    tcp = [flow for flow in paper_setting.network.background if flow.kind == "tcp"]
    assert list(silent.network.background) == tcp
    n_silent = sum(facts["silent"] for facts in silent.facts["background"].values())
    assert n_silent == 60 - len(tcp)


def test_a_share_of_the_flows_is_tcp():
    """400 flows with probability 0.75: 300, standard deviation 8.7."""
    tree = PAPER | {"background": PAPER["background"] | {"flows": 400}}
    kinds = Counter(flow.kind for flow in build(dc.Scenario.from_dict(tree)).network.background)
    assert kinds.total() == 400
    assert abs(kinds["tcp"] - 300) < 45


@pytest.mark.parametrize("wire", [None, "B0-A0", "A0-A1", "B0-B1"])
def test_pairs_that_cross_a_wire_are_those_whose_path_holds_it(wire):
    scenario = line_of(
        topology={"kind": "two-domains"},
        hosts={
            "destination": {"at": "A0"},
            "sources": [{"at": "B0", "backlog_bytes": 1}, {"at": "B1", "backlog_bytes": 1}],
        },
    )
    setting = build(scenario)
    network, nodes = setting.network, np.arange(setting.network.n_nodes)
    number = None if wire is None else setting.topology.wire_index(wire)
    expected = {
        (a, b)
        for a in nodes
        for b in nodes
        if a != b and (number is None or number in {w // 2 for w in network.path(a, b)})
    }
    found = crossing_pairs(network, nodes, nodes, number).tolist()
    assert len(found) == len(expected)
    assert {tuple(pair) for pair in found} == expected


@given(st.integers(0, 100), st.lists(st.integers(0, 5), min_size=1, max_size=4).filter(any))
def test_flows_are_split_in_the_ratio_to_within_one(n, ratio):
    counts = split_evenly(n, ratio)
    assert sum(counts) == n
    assert all(
        abs(count - n * part / sum(ratio)) < 1 for count, part in zip(counts, ratio, strict=True)
    )


def test_a_wire_that_no_route_crosses_is_refused():
    scenario = dc.Scenario.from_dict(
        changed("background", {"flows": 1, "from": "A", "to": "A", "over": ["B0-A0"]})
    )
    with pytest.raises(dc.ProblemError, match=r"crosses the wire 'B0-A0'; choose another wire"):
        build(scenario)


def test_background_that_nobody_meets_is_warned_of():
    """N2 and N3 lie behind the destination's router."""
    tree = line_of().to_dict()
    tree["topology"]["n_nodes"] = 4
    tree["background"] = {"pairs": [{"from": "N2", "to": "N3"}, {"from": "N0", "to": "N1"}]}
    with pytest.warns(UserWarning, match=r"flow 0 \(N2 -> N3\) shares no wire"):
        run = dc.simulate(tree, engine="fluid", method="direct")
    assert len(run.settings["warnings"]) == 1


def test_a_topology_s_own_hosts_can_take_part():
    tree = {
        "topology": {
            "kind": "dumbbell",
            "rate_bytes_per_s": 1e6,
            "delay_s": 0.0,
            "access_rate_bytes_per_s": 1e8,
            "access_delay_s": 0.0,
        },
        "hosts": {
            "destination": {"at": "R0"},
            "sources": [{"at": "L0", "backlog_bytes": 2_000_000}],
        },
        "transport": {"header_bytes": 0},
    }
    setting = build(dc.Scenario.from_dict(tree))
    assert setting.network.n_nodes == 6
    run = dc.simulate(tree, engine="fluid")
    assert run.makespan_s == pytest.approx(2.0, rel=1e-3)
    tree["hosts"]["sources"].append({"at": "L0", "backlog_bytes": 1})
    with pytest.raises(dc.ProblemError, match=r"sources\[1\].at: 'L0' is a host that is taken"):
        build(dc.Scenario.from_dict(tree))
    tree["hosts"]["sources"][1] = {"at": "L1", "backlog_bytes": 1, "access": {"delay_s": 1.0}}
    with pytest.raises(dc.ProblemError, match="has its wire already"):
        build(dc.Scenario.from_dict(tree))


def test_explicit_wires_and_a_zero_rate():
    wires = [{"a": "X", "b": "Y", "rate_bytes_per_s": [1e6, 2e6], "name": "w"}]
    tree = line_of().to_dict() | {"topology": {"kind": "explicit", "wires": wires}}
    tree["hosts"]["destination"], tree["hosts"]["sources"][0]["at"] = {"at": "Y"}, "X"
    tree["topology"]["nodes"] = [{"name": "X", "domain": "left"}]
    scenario = dc.Scenario.from_dict(tree)
    assert estimates_of(scenario) == {("S", "D"): 1e6, ("D", "S"): 2e6}
    assert scenario.with_values({"run.seed": 3}).section("topology") == scenario.section("topology")
    wires[0]["rate_bytes_per_s"] = 0
    with pytest.raises(dc.ProblemError, match=r"topology.wires\[0\].rate_bytes_per_s must be"):
        dc.Scenario.from_dict(tree)


@pytest.mark.parametrize(
    ("topology", "n_nodes"),
    [
        ({"kind": "transit-stub", "nodes_per_stub": [1, 3], "peering": {"delay_s": 0.5}}, None),
        ({"kind": "two-domains", "peering_rate_bytes_per_s": [1e6, 2e6]}, 4),
        ({"kind": "star", "n_hosts": 3, "rate_bytes_per_s": 1e6}, 4),
        ({"kind": "graphml", "file": "map.graphml", "default_rate_bytes_per_s": 1e6}, 3),
    ],
)
def test_every_kind_of_topology_is_built_and_written_out(topology, n_nodes, tmp_path):
    graph = nx.path_graph(3)
    nx.write_graphml(graph, tmp_path / "map.graphml")
    tree = line_of().to_dict() | {"topology": topology}
    scenario = dc.Scenario.from_dict(tree, tmp_path)
    built = make_topology(scenario)
    assert n_nodes in (None, built.n_nodes)
    again = make_topology(dc.Scenario.from_dict(scenario.to_dict(), tmp_path))
    assert again.sha256 == built.sha256


def test_a_topology_is_drawn_anew_with_the_run_s_seed_unless_it_has_one(paper):
    hashes = [
        make_topology(paper.with_values({"topology.seed": own, "run.seed": run})).sha256
        for own, run in ((None, 1), (None, 2), (1, 1), (1, 2))
    ]
    assert hashes[0] != hashes[1]
    assert hashes[2] == hashes[3]


def test_parts_that_are_not_joined_are_refused():
    wires = [{"a": a, "b": b, "rate_bytes_per_s": 1e6} for a, b in (("X", "Y"), ("U", "V"))]
    tree = line_of().to_dict() | {"topology": {"kind": "explicit", "wires": wires}}
    tree["hosts"]["destination"], tree["hosts"]["sources"][0]["at"] = {"at": "V"}, "X"
    with pytest.raises(dc.ProblemError, match="connected"):
        build(dc.Scenario.from_dict(tree))


# Estimates ----------------------------------------------------------------------------------


def bandwidths(problem):
    names = problem.names
    ends = zip(problem.link_from, problem.link_to, strict=True)
    rates = problem.bandwidth_bytes_per_s[0].tolist()
    return {(names[a], names[b]): rate for (a, b), rate in zip(ends, rates, strict=True)}


def estimates_of(scenario):
    return bandwidths(planning_problem(build(scenario), "fluid")[0])


def test_an_idle_wire_is_estimated_at_its_rate():
    assert estimates_of(line_of()) == {("S", "D"): 1e6, ("D", "S"): 1e6}


def test_headers_shrink_what_is_estimated():
    scenario = line_of(transport={"header_bytes": 52, "segment_bytes": 948})
    assert estimates_of(scenario)["S", "D"] == pytest.approx(948_000)


def test_background_is_shared_with_by_tcp_and_yielded_to_by_udp():
    """Three endless transfers beside the probe: a quarter. UDP on for 1 of 4 s at 0.4 MB/s takes
    0.1 MB/s: a quarter of 0.9 MB/s. Nobody sends the other way.
    """
    tcp = [{"from": "N0", "to": "N1"}] * 3
    assert estimates_of(line_of(background={"pairs": tcp})) == {
        ("S", "D"): pytest.approx(250_000),
        ("D", "S"): 1e6,
    }
    udp = {"from": "N0", "to": "N1", "kind": "udp", "rate_bytes_per_s": 4e5, "mean_off_s": 3.0}
    both = line_of(background={"pairs": [*tcp, udp]})
    assert estimates_of(both)["S", "D"] == pytest.approx(225_000)


def test_a_measurement_says_what_it_cost():
    """Two probes of 0.1 × 5 MB at 1 MB/s, one after the other."""
    setting = build(line_of(scale=0.1))
    cost = measure(setting, "fluid").cost
    assert cost["probes"] == 2
    assert cost["bytes"] == 1_000_000
    assert cost["simulated_s"] == pytest.approx(1.0)


def test_only_pairs_that_cross_the_wire_are_misestimated(paper):
    right = estimates_of(paper)
    wrong = estimates_of(
        paper.with_values(
            {
                "estimates.perturbations": [
                    {"wire": "B1-A1", "factor": 1.7},
                    {"wire": "B0-A0", "factor": 0.3},
                ]
            }
        )
    )
    setting = build(paper)
    network, topology = setting.network, setting.topology
    factors = Counter()
    for a, b in right:
        wires = {w // 2 for w in network.path(network.host_node[a], network.host_node[b])}
        expected = 1.0
        expected *= 1.7 if topology.wire_index("B1-A1") in wires else 1
        expected *= 0.3 if topology.wire_index("B0-A0") in wires else 1
        assert wrong[a, b] == pytest.approx(expected * right[a, b])
        factors[expected] += 1
    assert set(factors) == {1.0, 1.7, 0.3}
    with pytest.raises(dc.ProblemError, match=r"estimates.perturbations\[0\].wire: there is no"):
        estimates_of(
            paper.with_values({"estimates.perturbations": [{"wire": "B1-A0", "factor": 2}]})
        )


def test_access_rates_can_be_known():
    scenario = line_of(estimates={"know_access": True})
    problem, _ = planning_problem(build(scenario), "fluid")
    assert problem.uplink_bytes_per_s.tolist() == [1e8, 1e8]


def test_estimates_can_be_given(tmp_path):
    (tmp_path / "grid.csv").write_text("from,to,bandwidth_bytes_per_s\nS,D,700\n")
    tree = line_of(estimates={"kind": "given", "file": "grid.csv"}).to_dict()
    scenario = dc.Scenario.from_dict(tree, tmp_path)
    assert estimates_of(scenario) == {("S", "D"): 700.0}
    (tmp_path / "grid.csv").write_text("from,to,bandwidth_bytes_per_s\nS,E,700\n")
    with pytest.raises(dc.ProblemError, match=r"estimates.file .*grid.csv"):
        estimates_of(scenario)


@pytest.fixture
def fake_ns3(monkeypatch):
    """Stand in for ns-3's probes: count them, and answer 1000 bytes per second."""
    calls = []

    def probe_ns3(network, pairs, n_bytes, repeats, *, seed, **_):
        calls.append(seed)
        rows = [
            (a, b, t, 1000.0, n_bytes, n_bytes / 1000) for a, b in pairs for t in range(repeats)
        ]
        columns = ["from", "to", "time_s", "bandwidth_bytes_per_s", "bytes", "duration_s"]
        return ns3_probe.Probes(pd.DataFrame(rows, columns=columns), 0, 1.0, 1, 0.1)

    monkeypatch.setattr(probing, "_KNOWN", {})
    monkeypatch.setattr(ns3_probe, "probe_ns3", probe_ns3)
    return calls


def test_one_measurement_serves_all_methods_and_lies_in_the_cache(fake_ns3, tmp_path, monkeypatch):
    scenario = line_of()
    for method in ("direct", "best-path", "coordinated"):
        setting = build(scenario.with_values({"method.name": method}))
        found = measure(setting, "ns3", tmp_path)
    assert len(fake_ns3) == 1
    assert len(found.samples) == 2 * 3
    assert not found.cost["from_cache"]
    monkeypatch.setattr(probing, "_KNOWN", {})  # another process
    again = measure(build(scenario), "ns3", tmp_path)
    assert again.cost["from_cache"]
    pd.testing.assert_frame_equal(again.samples, found.samples)
    assert len(fake_ns3) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"run.seed": 2},
        {"estimates.repeats": 4},
        {"transport.variant": "Cubic"},
        {"background.pairs": [{"from": "N0", "to": "N1"}]},
        {"run.warm_up_s": 1.0},
    ],
)
def test_whatever_shapes_the_samples_is_measured_anew(values, fake_ns3):
    measure(build(line_of()), "ns3")
    measure(build(line_of().with_values(values)), "ns3")
    assert len(fake_ns3) == 2


def test_a_damaged_cache_is_measured_anew(fake_ns3, tmp_path, monkeypatch):
    measure(build(line_of()), "ns3", tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text()[:-20])
    monkeypatch.setattr(probing, "_KNOWN", {})
    assert not measure(build(line_of()), "ns3", tmp_path).cost["from_cache"]
    assert len(fake_ns3) == 2


def test_a_thousand_hosts_are_refused_where_each_pair_would_be_measured():
    tree = line_of().to_dict()
    tree["hosts"]["relays"] = [{"count": 1000, "at": "N0"}]
    setting = build(dc.Scenario.from_dict(tree))
    with pytest.raises(dc.ProblemError, match=r"1002 hosts need 1003002 pairs .* give estimates"):
        measure(setting, "fluid")


# Runs ---------------------------------------------------------------------------------------


def test_one_transfer_takes_bytes_over_rate():
    """5 MB at 1 MB/s; connections are there at once, as there is no delay."""
    run = dc.simulate(line_of(), engine="fluid", method="direct")
    assert run.complete
    assert run.makespan_s == pytest.approx(5.0)
    assert run.settings["predicted_makespan_s"] == pytest.approx(5.0)
    assert run.settings["scenario"]["run"]["seed"] == 1


@pytest.mark.parametrize("method", ["direct", "best-path", "coordinated"])
@pytest.mark.parametrize("timing", ["asap", "planned"])
def test_every_method_collects_every_byte(method, timing, paper):
    run = dc.simulate(paper.with_values({"method.timing": timing}), engine="fluid", method=method)
    assert run.complete
    assert run.collected_bytes == 35_000_000
    into = run.routes[run.routes["to"] == "D"].groupby("source")["bytes"].sum()
    assert into.sum() == pytest.approx(35_000_000, abs=100)
    assert set(into.index) == set(run.source_finish_s)
    again = dc.simulate(paper.with_values({"method.timing": timing}), engine="fluid", method=method)
    assert again.makespan_s == run.makespan_s


def test_no_flows_equal_no_background(paper):
    tree = paper.to_dict()
    tree["background"]["flows"] = 0
    without = {key: value for key, value in tree.items() if key != "background"}
    runs = [dc.simulate(t, engine="fluid") for t in (tree, without)]
    assert runs[0].makespan_s == runs[1].makespan_s
    assert runs[0].background.empty


def test_a_store_and_forward_plan_runs_too(paper):
    run = dc.simulate(paper.with_values({"method.slot_s": 5.0}), engine="fluid")
    assert run.complete


def test_the_time_limit_leaves_a_partial_run():
    """At 1 MB/s 2 of 5 MB are there after 2 s."""
    run = dc.simulate(line_of(), engine="fluid", method="direct", time_limit_s=2.0)
    assert not run.complete
    assert np.isnan(run.makespan_s)
    assert run.collected_bytes == pytest.approx(2_000_000, abs=2000)


def test_direct_with_as_many_streams_as_the_coordinated_plan(paper):
    coordinated = carry_out(paper, engine="fluid")
    n = coordinated.run.settings["connections"]
    assert len(coordinated.run.connections) == n
    assert n == n_connections(coordinated.schedule, paper.section("method"))
    for shared in ("by-data", "evenly"):
        values = {"method.streams_as": "coordinated", "method.streams_shared": shared}
        run = dc.simulate(paper.with_values(values), engine="fluid", method="direct")
        assert len(run.connections) == n > 7
        per_source = run.connections.groupby("from")["connection"].count()
        if shared == "evenly":
            assert per_source.max() - per_source.min() <= 1
    few = paper.with_values({"method.total_streams": 3})
    with pytest.raises(dc.ProblemError, match="total_streams must be >= 7, one for each source"):
        dc.simulate(few, engine="fluid", method="direct")


def test_parallel_streams_get_a_larger_share():
    """Beside one endless transfer one stream gets a half, three get three quarters."""
    background = {"pairs": [{"from": "N0", "to": "N1"}]}
    scenario = line_of(background=background)
    for streams, share in ((1, 1 / 2), (3, 3 / 4)):
        run = dc.simulate(
            scenario.with_values({"method.streams": streams}), engine="fluid", method="direct"
        )
        assert run.makespan_s == pytest.approx(5.0 / share, rel=1e-3)


def test_a_given_schedule_is_carried_out_if_it_is_for_the_same_data(paper):
    outcome = carry_out(paper, engine="fluid")
    again = dc.simulate(paper, engine="fluid", schedule=outcome.schedule)
    assert again.makespan_s == outcome.run.makespan_s
    other = paper.with_values({"backlog.seed": 3})
    with pytest.raises(dc.ProblemError, match=r"another problem: it collects \d+ bytes of 'S1'"):
        dc.simulate(other, engine="fluid", schedule=outcome.schedule)
    with pytest.raises(dc.ProblemError, match="host 'S1' takes no part"):
        dc.simulate(line_of(), engine="fluid", schedule=outcome.schedule)
    plan = dc.direct(dc.Problem.from_matrix(["S", "E"], [[0, 1.0], [0, 0]], [5, 0], "E"))
    with pytest.raises(dc.ProblemError, match="its destination is 'E', the scenario's is 'D'"):
        dc.simulate(line_of(), engine="fluid", schedule=plan)


def test_wrong_engines_are_refused(paper):
    with pytest.raises(dc.ProblemError, match="engine must be one of ns3, fluid, got 'ns2'"):
        dc.simulate(paper, engine="ns2")


# A problem instead of a topology --------------------------------------------------------------

PROBLEM = """
destination = "D"
[hosts.S]
backlog_bytes = 1000
release_s = 1.0
[hosts.D]
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = 100.0
"""


@pytest.fixture
def problem_scenario(tmp_path):
    (tmp_path / "p.toml").write_text(PROBLEM)
    (tmp_path / "truth.csv").write_text("from,to,bandwidth_bytes_per_s\nS,D,50\n")
    (tmp_path / "s.toml").write_text('problem = "p.toml"\ntruth_csv = "truth.csv"\n')
    return tmp_path / "s.toml"


def test_a_plan_is_made_on_one_grid_and_judged_on_another(problem_scenario):
    """1000 bytes, there after 1 s, at 100 bytes/s promised and 50 found: 11 s and 21 s."""
    run = dc.simulate(problem_scenario, engine="fluid")
    assert run.settings["predicted_makespan_s"] == pytest.approx(11.0)
    assert run.makespan_s == pytest.approx(21.0)


def test_a_problem_has_no_packets(problem_scenario):
    with pytest.raises(dc.ProblemError, match="no packets to simulate"):
        dc.simulate(problem_scenario)


def test_scaling_a_problem_is_refused(problem_scenario):
    scenario = dc.Scenario.from_file(problem_scenario).with_values({"scale": 0.5})
    with pytest.raises(dc.ProblemError, match="scale must be 1 with a problem"):
        dc.simulate(scenario, engine="fluid")
