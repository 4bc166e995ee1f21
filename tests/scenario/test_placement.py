"""Topologies of scenarios, who is where in them, and who holds what."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances.small_scenarios import line_of

import datacollect as dc
from datacollect.scenario.placement import make_topology, scaled_with_total, uniform_with_total
from datacollect.scenario.setting import build


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


def test_hosts_lie_in_their_domains_at_different_nodes(paper_setting):
    where = paper_setting.facts["nodes_of_hosts"]
    assert [where[f"S{i}"][0] for i in range(1, 8)] == list("AABBBBB")
    assert where["D"][0] == "A"
    assert len({where[host] for host in ("D", "S1", "S2")}) == 3
    # Five sources at four nodes: each node is used before one is used again.
    assert len({where[f"S{i}"] for i in range(3, 8)}) == 4


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
    with pytest.raises(
        dc.ProblemError, match=r"sources\[1\].at: 'L0' is a host that is already in use"
    ):
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
    assert make_topology(scenario).rate_bytes_per_s.tolist() == [[1e6, 2e6]]
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
