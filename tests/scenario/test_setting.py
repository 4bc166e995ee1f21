"""Settings of scenarios: streams of random numbers, routes, what does not fit together."""

from __future__ import annotations

import numpy as np
import pytest
from instances.small_scenarios import changed, line_of

import datacollect as dc
from datacollect.scenario.setting import build, network_of
from datacollect.topologies import paper_152


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("hosts.destination.domain", "C", "hosts.destination.domain must be a domain of the"),
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


def drawn(setting):
    network = setting.network
    return setting.facts["nodes_of_hosts"], dict(setting.backlog_bytes), network.background


def test_same_seed_same_setting_another_seed_another(paper, paper_setting):
    assert drawn(build(paper)) == drawn(paper_setting)
    other = drawn(build(paper.with_values({"run.seed": 2})))
    assert all(a != b for a, b in zip(other, drawn(paper_setting), strict=True))


def test_a_preset_sets_what_another_simulator_has_by_default():
    """ns-2: 20 packets of 1000 bytes at most, 2 to begin with, each acknowledged; others stay."""
    scenario = line_of(transport={"preset": "ns-2", "variant": "Cubic", "syn_retries": 3})
    transport = build(scenario).network.transport
    assert (transport.segment_bytes, transport.buffer_bytes) == (1000, 20_000)
    assert (transport.initial_window_segments, transport.delayed_ack_segments) == (2, 1)
    assert not transport.sack
    assert (transport.variant, transport.syn_retries) == ("Cubic", 3)


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


def test_parts_that_are_not_joined_are_refused():
    wires = [{"a": a, "b": b, "rate_bytes_per_s": 1e6} for a, b in (("X", "Y"), ("U", "V"))]
    tree = line_of().to_dict() | {"topology": {"kind": "explicit", "wires": wires}}
    tree["hosts"]["destination"], tree["hosts"]["sources"][0]["at"] = {"at": "V"}, "X"
    with pytest.raises(dc.ProblemError, match="connected"):
        build(dc.Scenario.from_dict(tree))


def test_what_a_map_leaves_open_is_among_the_warnings(tmp_path):
    """Python's own warnings are for callers of the library: commands print these once."""
    (tmp_path / "map.gml").write_text(
        'graph [ node [ id 0 label "A" ] node [ id 1 label "B" ] edge [ source 0 target 1 ] ]'
    )
    topology = {"kind": "graphml", "file": "map.gml", "default_rate_bytes_per_s": 1e6}
    tree = {
        "topology": topology,
        "hosts": {
            "destination": {"at": "A"},
            "sources": [{"at": "B", "backlog_bytes": 1_000_000}],
        },
    }
    [text] = build(dc.Scenario.from_dict(tree, tmp_path)).warnings
    assert text.endswith("map.gml: 1 of 1 edge took default_rate_bytes_per_s, 8 Mbit/s")
