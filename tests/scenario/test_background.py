"""Background traffic: which wires it crosses, and how much of it there is."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances.small_scenarios import PAPER, changed, line_of

import datacollect as dc
from datacollect.scenario.background import crossing_pairs, split_evenly
from datacollect.scenario.setting import build


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
