"""Pictures of topologies: everything is there, once, apart from each other, and legible."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from instances.random_topologies import topologies

from datacollect.errors import ProblemError
from datacollect.topologies import line, paper_152, star, transit_stub, two_domains
from datacollect.topologies.layout import place_nodes


@pytest.fixture(scope="module")
def large():
    """The 152-node network with three hosts, at a transit node, at a gateway, in a stub domain."""
    topology = paper_152(seed=1)
    for host, node in (("D", "A2"), ("S1", "B0.0.0"), ("S2", "B0.0.0")):
        topology = topology.attach(host, node, 1.25e6, 0.001)
    return topology


@pytest.fixture(scope="module")
def figure(large):
    """Its picture."""
    return large.figure()


def elements_of(figure):
    """Number of items of each named group of artists."""
    (axes,) = figure.axes
    wires = {
        group.get_gid(): len(group.get_segments())
        for group in axes.collections
        if group.get_gid().startswith("wires")
    }
    nodes = {
        group.get_gid(): len(group.get_offsets())
        for group in axes.collections
        if group.get_gid().startswith("nodes")
    }
    return wires | nodes, {patch.get_gid() for patch in axes.patches}


def texts_of(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_every_node_wire_and_domain_is_drawn_once(large, figure):
    groups, patches = elements_of(figure)
    kinds = Counter(f"nodes {kind}" for kind in large.kinds)
    kinds.update(f"wires {kind}" for kind in large.wire_kinds)
    assert groups == kinds
    assert patches == {f"domain {domain}" for domain in large.domains}
    assert len(patches) == 2 + 24


def test_wires_end_at_their_nodes(large, figure):
    places = place_nodes(large)
    (peering,) = (c for c in figure.axes[0].collections if c.get_gid() == "wires peering")
    drawn = {tuple(map(tuple, np.round(segment, 6))) for segment in peering.get_segments()}
    expected = {
        tuple(map(tuple, np.round(places[[large.wire_from[i], large.wire_to[i]]], 6)))
        for i in large.wires_of_kind("peering")
    }
    assert drawn == expected


def test_what_matters_is_named_in_a_large_network(figure):
    texts = texts_of(figure)
    assert {
        "B0-A0: 5 Mbit/s",
        "B1-A1: 5 Mbit/s",
        "A0",
        "B3",
        "D",
        "S1",
        "S2",
        "A0.0",
        "B3.2",
    } < set(texts)
    # Nobody could read the names of 144 nodes.
    assert len(texts) == 8 + 24 + 3 + 2


def test_all_nodes_are_named_in_a_small_network():
    figure = two_domains(hosts_a=("D", "K")).figure()
    assert set(two_domains(hosts_a=("D", "K")).names) < set(texts_of(figure))


def test_the_legend_says_what_wires_carry(figure):
    (legend,) = figure.legends
    texts = {text.get_text() for text in legend.get_texts()}
    assert "peering: 5 Mbit/s (2)" in texts
    assert "transit-stub: 2.5 Mbit/s (24)" in texts
    assert "hosts (3)" in texts


def test_peering_wires_are_the_thickest_and_in_front(figure):
    groups = {c.get_gid(): c for c in figure.axes[0].collections}
    peering = groups.pop("wires peering")
    others = [group for name, group in groups.items() if name.startswith("wires")]
    assert all(peering.get_linewidth()[0] > group.get_linewidth()[0] for group in others)
    assert all(peering.get_zorder() > group.get_zorder() for group in others)


def test_the_title_can_be_chosen(figure):
    assert two_domains().figure("Two domains").texts[0].get_text() == "Two domains"
    assert figure.texts[0].get_text() == "155 nodes, 187 wires, 3 hosts"


# Layout -------------------------------------------------------------------------------------


def _least_distance(places):
    return min(
        np.linalg.norm(places[i + 1 :] - places[i], axis=1).min() for i in range(len(places) - 1)
    )


@pytest.mark.parametrize("seed", range(4))
def test_nodes_of_a_large_network_lie_apart(seed):
    """Dots of stub nodes are 0.15 units wide or less at 12 inches for two domains."""
    assert _least_distance(place_nodes(paper_152(seed=seed))) > 0.25


def test_hosts_lie_apart_and_near_their_nodes(large):
    for i in range(20):
        large = large.attach(f"H{i}", large.names[i % 8], 1.0, 0.0)
    places = place_nodes(large)
    assert _least_distance(places) > 0.25
    for host in large.hosts:
        (node,) = large.neighbours(host)
        assert np.linalg.norm(places[large.index[host]] - places[large.index[node]]) < 7


@pytest.mark.parametrize("seed", range(4))
def test_domains_lie_apart(seed):
    """No two nodes of different stub domains lie nearer than what shades their domains is wide."""
    topology = paper_152(seed=seed)
    places = place_nodes(topology)
    stub = np.array([kind == "stub" for kind in topology.kinds])
    domains = np.array(topology.domains)[stub]
    apart = np.linalg.norm(places[stub][:, np.newaxis] - places[stub], axis=2)
    assert apart[domains[:, np.newaxis] != domains].min() > 0.8


def test_peering_wires_run_side_by_side():
    """A is to the left of B; the first two nodes of both face each other, the first above."""
    topology = paper_152(seed=5)
    places = place_nodes(topology)
    (ax0, ay0), (ax1, ay1), (bx0, by0), (bx1, by1) = (
        places[topology.index[name]] for name in ("A0", "A1", "B0", "B1")
    )
    outer = [places[topology.index[name], 0] for name in ("A2", "A3", "B2", "B3")]
    assert max(outer[:2]) < min(ax0, ax1)
    assert max(ax0, ax1) < min(bx0, bx1)
    assert max(bx0, bx1) < min(outer[2:])
    assert ay0 == pytest.approx(by0, abs=0.5)
    assert ay1 == pytest.approx(by1, abs=0.5)
    assert min(ay0, by0) > max(ay1, by1)


@given(topologies())
def test_any_topology_has_places(topology):
    places = place_nodes(topology)
    assert places.shape == (topology.n_nodes, 2)
    assert np.isfinite(places).all()


def test_the_same_topology_has_the_same_places(large):
    assert np.array_equal(place_nodes(large), place_nodes(large))


def test_maps_are_drawn_as_maps():
    """West is left and north is up; what has no place lies by its neighbour."""
    positions = np.array([[-100.0, 40.0], [0.0, 50.0], [20.0, 10.0], [np.nan, np.nan]])
    topology = line(4, rate_bytes_per_s=1.0, delay_s=0.0)
    columns = {name: getattr(topology, name) for name in topology.__dataclass_fields__}
    x, y = place_nodes(type(topology)(**(columns | {"positions": positions}))).T
    assert x[0] < x[1] < x[2]
    assert y[2] < y[0] < y[1]
    assert np.hypot(x[3] - x[2], y[3] - y[2]) < np.hypot(x[3] - x[1], y[3] - y[1])


def test_large_graphs_without_domains_are_placed_too():
    places = place_nodes(star(400, rate_bytes_per_s=1.0, delay_s=0.0))
    assert np.isfinite(places).all()


@pytest.mark.parametrize("n_domains", [1, 2, 3, 5])
def test_any_number_of_transit_domains_can_be_drawn(n_domains):
    topology = transit_stub(
        seed=1, n_transit_domains=n_domains, nodes_per_stub=(1, 4), extra_stub_stub=2
    )
    groups, _ = elements_of(topology.figure())
    assert sum(n for name, n in groups.items() if name.startswith("nodes")) == topology.n_nodes


# Files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_files_are_written_without_pyplot(tmp_path, monkeypatch, suffix, begins):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # makes its import fail
    path = tmp_path / f"picture.{suffix}"
    two_domains().draw(path)
    assert path.read_bytes().startswith(begins)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ProblemError, match=r"must end in \.png, \.svg, \.pdf, got '\.jpg'"):
        two_domains().draw(tmp_path / "picture.jpg")
    with pytest.raises(ProblemError, match=r"picture\.png: cannot be written: No such file"):
        two_domains().draw(tmp_path / "none" / "picture.png")
