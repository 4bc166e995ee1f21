"""GraphML: a file of our own, three of the Internet Topology Zoo, and what is wrong with others."""

from __future__ import annotations

import bz2
import gzip
import warnings
from collections import Counter

import numpy as np
import pytest

from datacollect.errors import DatacollectWarning, ProblemError
from datacollect.topologies import from_graphml
from datacollect.topologies.maps import great_circle_km

GBIT = 125e6  # bytes per second

# Quito and Kisumu lie on the equator, 78.5° W and 34.75° E: 113.25° apart. Two lines join them,
# one of known speed; a third leads from Quito to itself. Nowhere has no place, Neighbour belongs
# to another network.
WORLD = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="label" attr.type="string" for="node" id="label"/>
  <key attr.name="Longitude" attr.type="double" for="node" id="lon"/>
  <key attr.name="Latitude" attr.type="double" for="node" id="lat"/>
  <key attr.name="Internal" attr.type="int" for="node" id="in"/>
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="speed"/>
  <graph edgedefault="undirected">
    <node id="q"><data key="label">Quito</data>
      <data key="lon">-78.5</data><data key="lat">0.0</data><data key="in">1</data></node>
    <node id="k"><data key="label">Kisumu</data>
      <data key="lon">34.75</data><data key="lat">0.0</data><data key="in">1</data></node>
    <node id="n"><data key="label">None</data><data key="in">1</data></node>
    <node id="x"><data key="label">Neighbour</data><data key="in">0</data></node>
    <edge source="q" target="k"><data key="speed">1000000000.0</data></edge>
    <edge source="k" target="q"/>
    <edge source="q" target="q"/>
    <edge source="k" target="n"><data key="speed">8000000.0</data></edge>
    <edge source="n" target="x"/>
  </graph>
</graphml>
"""


def read(path, **options):
    """Read a map; what is said beside it is for other tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatacollectWarning)
        return from_graphml(path, **options)


@pytest.fixture
def write(tmp_path):
    """Write a GraphML file, with replacements in the text."""

    def write_file(text=WORLD, *changes):
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "world.graphml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


def test_speeds_places_and_names_are_read(write):
    """113.25/360 of the equator of 40 030 km is 12 593 km: 63.0 ms at 199 862 km/s.

    The two lines carry 1 Gbit/s and the default of 0.5 Gbit/s.
    """
    topology = read(write(), default_rate_bytes_per_s=0.5 * GBIT, default_delay_s=0.25)
    assert topology.names == ("Quito", "Kisumu", "node n", "Neighbour")
    assert topology.kinds == ("router", "router", "router", "external")
    assert topology.n_wires == 3
    cable, radio, border = (
        topology.wire_index(name) for name in ("Kisumu-Quito", "Kisumu-node n", "node n-Neighbour")
    )
    assert topology.rate_bytes_per_s[cable].tolist() == [1.5 * GBIT] * 2
    assert topology.delay_s[cable] == pytest.approx(0.0630, abs=5e-5)
    assert topology.rate_bytes_per_s[radio].tolist() == [1e6, 1e6]
    assert topology.delay_s[radio] == topology.delay_s[border] == 0.25
    assert topology.rate_bytes_per_s[border].tolist() == [0.5 * GBIT] * 2
    assert np.all(topology.queue_packets == 50)
    assert topology.positions[:2].tolist() == [[-78.5, 0.0], [34.75, 0.0]]
    assert np.isnan(topology.positions[2:]).all()


def test_nodes_of_other_networks_can_be_left_out(write):
    topology = read(write(), default_rate_bytes_per_s=GBIT, keep_external=False)
    assert topology.names == ("Quito", "Kisumu", "node n")
    assert topology.n_wires == 2


def test_names_that_repeat_get_their_ids(write):
    path = write(WORLD, (">Quito<", ">Kisumu<"))
    topology = read(path, default_rate_bytes_per_s=GBIT)
    assert topology.names[:2] == ("Kisumu (q)", "Kisumu (k)")


def test_places_in_one_town_are_ten_microseconds_apart(write):
    path = write(WORLD, ("34.75", "-78.5"))
    topology = read(path, default_rate_bytes_per_s=GBIT)
    assert topology.delay_s[0] == 1e-5


def test_of_a_network_in_parts_the_largest_can_be_kept(write):
    path = write(WORLD, ('<edge source="k" target="q"/>', ""))
    path = write(path.read_text(), ('source="q" target="k"', 'source="q" target="q"'))
    with pytest.raises(ProblemError) as caught:
        read(path, default_rate_bytes_per_s=GBIT)
    message = str(caught.value)
    assert f"{path}: the network is not connected" in message
    assert "2 parts: 'Kisumu', 'node n', 'Neighbour' / 'Quito'" in message
    assert "largest_component=True" in message
    topology = read(path, default_rate_bytes_per_s=GBIT, largest_component=True)
    assert topology.names == ("Kisumu", "node n", "Neighbour")


def test_one_way_edges_are_the_directions_of_one_wire(write):
    """Quito -> Kisumu at 1 Gbit/s, back at the default; Kisumu -> n has no way back: the same."""
    path = write(WORLD, ('edgedefault="undirected"', 'edgedefault="directed"'))
    topology = read(path, default_rate_bytes_per_s=3 * GBIT)
    there = topology.wire_index("Kisumu-Quito")
    assert topology.names[topology.wire_from[there]] == "Quito"
    assert topology.rate_bytes_per_s[there].tolist() == [GBIT, 3 * GBIT]
    assert topology.rate_bytes_per_s[topology.wire_index("Kisumu-node n")].tolist() == [1e6, 1e6]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("</graph>", "")], r"world.graphml: line \d+, column \d+: not well-formed XML"),
        ([("<graph edge", "<grph edge"), ("</graph>", "</grph>")], "not a graph in GraphML"),
        ([('for="node" id="lon"', 'for="node" id="long"')], "not a graph in GraphML: .*no key lon"),
        ([("-78.5", "west")], "not a graph in GraphML: .*west.*must be of the attr.type"),
        (
            [('source="n" ', "")],
            "an edge joins 'x' to node 'None', which the file does not declare",
        ),
        (
            [('target="n"', 'target="m"')],
            "an edge joins 'k' to node 'm', .* correct source or target",
        ),
        ([("-78.5", "278.5")], r"node 'q' \(Quito\): Longitude must be degrees from -180 to 180"),
        ([("-78.5", "nan")], "Longitude must be degrees.*got nan; correct it, or remove"),
        ([("8000000.0", "0.0")], "edge 'k' - 'n': LinkSpeedRaw must be bit/s, > 0 .*got 0.0"),
        ([("8000000.0", "inf")], "LinkSpeedRaw must be bit/s.* got inf; correct it, or remove"),
    ],
)
def test_bad_files_are_refused(write, changes, message):
    path = write(WORLD, *changes)
    with pytest.raises(ProblemError, match=message) as caught:
        read(path, default_rate_bytes_per_s=GBIT)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "neither GraphML, which begins with <, nor GML"),
        ("hosts = 3", "neither GraphML, which begins with <, nor GML"),
        ("<html/>", "not a graph in GraphML"),
        ("<graphml xmlns='http://graphml.graphdrawing.org/xmlns'/>", "not a graph in GraphML"),
        (
            "<graphml xmlns='http://graphml.graphdrawing.org/xmlns'><graph/></graphml>",
            "the map has no nodes; is it the file that was meant",
        ),
    ],
)
def test_what_is_no_graphml_is_refused(write, text, message):
    with pytest.raises(ProblemError, match=message):
        read(write(text), default_rate_bytes_per_s=GBIT)


def test_what_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(ProblemError, match=r"none\.graphml: no such file"):
        read(tmp_path / "none.graphml", default_rate_bytes_per_s=GBIT)
    with pytest.raises(ProblemError, match="is a folder; name a file in it"):
        read(tmp_path, default_rate_bytes_per_s=GBIT)
    packed = tmp_path / "world.graphml.gz"
    packed.write_bytes(gzip.compress(WORLD.encode(), mtime=0)[:-9])
    with pytest.raises(ProblemError, match="a packed file that is cut off or damaged"):
        read(packed, default_rate_bytes_per_s=GBIT)


def test_compressed_files_are_read(write):
    path = write()
    plain = read(path, default_rate_bytes_per_s=GBIT)
    for suffix, module in ((".gz", gzip), (".bz2", bz2)):
        packed = path.with_suffix(f".graphml{suffix}")
        packed.write_bytes(module.compress(path.read_bytes()))
        assert read(packed, default_rate_bytes_per_s=GBIT).sha256 == plain.sha256


def test_a_default_rate_of_nothing_is_refused(write):
    with pytest.raises(ProblemError, match="default_rate_bytes_per_s must be > 0, got 0"):
        read(write(), default_rate_bytes_per_s=0)


@pytest.mark.parametrize(
    ("one", "other", "degrees"),
    [
        ((0.0, 0.0), (180.0, 0.0), 180.0),
        ((10.0, 90.0), (-77.0, -90.0), 180.0),
        ((179.0, 0.0), (-179.0, 0.0), 2.0),
        ((0.0, 60.0), (180.0, 60.0), 60.0),
        ((5.0, 45.0), (5.0, 45.0), 0.0),
    ],
)
def test_distances_along_great_circles(one, other, degrees):
    """Over a pole, over the antimeridian, nowhere: degrees of a circle of 2·π·6371.0088 km."""
    expected_km = degrees / 360 * 2 * np.pi * 6371.0088
    assert great_circle_km(one, other) == pytest.approx(expected_km, abs=1e-6)


# The Internet Topology Zoo ------------------------------------------------------------------


@pytest.fixture
def zoo(measured_data):
    """Folder of files of the Internet Topology Zoo."""
    return measured_data / "topologyzoo"


def test_abilene(zoo):
    """11 nodes, 14 edges, no speeds. New York - Chicago: 1145 km by tables, 5.73 ms."""
    topology = read(zoo / "Abilene.graphml", default_rate_bytes_per_s=1.25e9)
    assert (topology.n_nodes, topology.n_wires) == (11, 14)
    assert np.all(topology.rate_bytes_per_s == 1.25e9)
    assert topology.neighbours("Denver") == ("Seattle", "Sunnyvale", "Kansas City")
    assert topology.delay_s[topology.wire_index("New York-Chicago")] == pytest.approx(
        1145 / 199_862, rel=2e-3
    )


def test_esnet_with_parallel_edges_and_neighbours(zoo):
    """92 edges join 79 pairs; 10 have a speed; 14 of 68 nodes belong to others.

    Sunnyvale - Seattle are two edges, one of 10 Gbit/s and one without speed; Chicago - NETL are
    three without. Equinix and AU are two nodes each, 11 nodes are called None.
    """
    topology = read(zoo / "Esnet.graphml", default_rate_bytes_per_s=1e6)
    assert (topology.n_nodes, topology.n_wires) == (68, 79)
    assert Counter(topology.kinds) == {"router": 54, "external": 14}
    seattle = topology.wire_index("SNV1-SEA" if "SNV1-SEA" in topology.wire_names else "SEA-SNV1")
    assert topology.rate_bytes_per_s[seattle].tolist() == [10 * GBIT + 1e6] * 2
    rates = Counter(topology.rate_bytes_per_s[:, 0].tolist())
    assert rates == {
        10 * GBIT: 7,
        10 * GBIT + 1e6: 1,
        45e6 / 8: 1,
        155e6 / 8: 1,
        1e6: 58,
        2e6: 10,
        3e6: 1,
    }
    thousandth = read(zoo / "Esnet.graphml", default_rate_bytes_per_s=1e6, rate_factor=0.001)
    assert thousandth.rate_bytes_per_s[seattle].tolist() == [0.01 * GBIT + 1e6] * 2
    assert Counter(thousandth.rate_bytes_per_s[:, 0].tolist())[1e6] == 58
    assert {"AU (14)", "AU (66)", "Equinix (35)", "Equinix (53)"} < set(topology.names)
    assert sum(name.startswith("node ") for name in topology.names) == 11
    own = read(zoo / "Esnet.graphml", default_rate_bytes_per_s=1e6, keep_external=False)
    assert set(own.kinds) == {"router"}
    assert own.n_nodes == 54


def test_geant_with_unknown_places(zoo):
    """40 nodes, 61 edges, 39 with a speed; UA, MD and BY have no place, with 2 + 1 + 1 wires."""
    topology = read(zoo / "Geant2012.graphml", default_rate_bytes_per_s=1e6, default_delay_s=0.5)
    assert (topology.n_nodes, topology.n_wires) == (40, 61)
    rates = Counter(topology.rate_bytes_per_s[:, 0].tolist())
    assert rates == {10 * GBIT: 26, 2.5 * GBIT: 5, GBIT: 6, 155e6 / 8: 2, 1e6: 22}
    unknown = np.flatnonzero(np.isnan(topology.positions).any(axis=1))
    assert [topology.names[i] for i in unknown] == ["UA", "MD", "BY"]
    without = {i for name in ("UA", "MD", "BY") for i in topology.wires_at(name)}
    assert set(np.flatnonzero(topology.delay_s == 0.5)) == without
    assert topology.delay_s[topology.delay_s < 0.5].max() < 0.020  # Europe is small
