"""Statements of maps are used, or named as not understood; GML is GML."""

from __future__ import annotations

import gzip

import pytest

from datacollect.errors import DatacollectWarning, ProblemError
from datacollect.topologies import from_graphml
from datacollect.topologies.map_files import read_map_file
from datacollect.topologies.speeds import speed_of

HEAD = """<?xml version="1.0" encoding="{encoding}"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="r" for="edge" attr.name="LinkSpeedRaw" attr.type="double"/>
<key id="s" for="edge" attr.name="LinkSpeed" attr.type="string"/>
<key id="u" for="edge" attr.name="LinkSpeedUnits" attr.type="string"/>
<key id="l" for="all" attr.name="label" attr.type="string"/>
<key id="i" for="node" attr.name="Internal" attr.type="string"/>
"""
NODES = '<node id="0"/><node id="1"/><node id="2"/>'
EDGES = '<edge source="0" target="1"/><edge source="1" target="2"/>'


def graphml(inside, *, keys="", directed="undirected", encoding="utf-8"):
    """Write a file; `keys` are declared besides those of `HEAD`."""
    graph = f'<graph edgedefault="{directed}">{inside}</graph></graphml>\n'
    return (HEAD.format(encoding=encoding) + keys + graph).encode(encoding)


@pytest.fixture
def read(tmp_path):
    def read_bytes(data, name="map.graphml"):
        (tmp_path / name).write_bytes(data)
        return from_graphml(tmp_path / name, default_rate_bytes_per_s=1e6)

    return read_bytes


# Speeds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "bytes_per_s"),
    [
        ({"LinkSpeedRaw": 1e9}, 1.25e8),
        ({"LinkSpeedRaw": "1000000000"}, 1.25e8),
        ({"LinkSpeed": "34", "LinkSpeedUnits": "M"}, 4.25e6),
        ({"LinkSpeed": 2.5, "LinkSpeedUnits": "G"}, 3.125e8),
        ({"LinkSpeed": "10", "LinkSpeedUnits": "Gbps"}, 1.25e9),
        ({"LinkSpeed": "10", "LinkSpeedUnits": "MB/s"}, 1e7),
        ({"LinkSpeed": "622 Mbit/s"}, 7.775e7),
        ({"LinkLabel": "10 Gbps"}, 1.25e9),
        ({"LinkLabel": "155Mbps"}, 1.9375e7),
        ({"label": "100 Gbit/s"}, 1.25e10),
        ({"LinkLabel": "OC-48", "LinkType": "2.5 Gbps"}, 3.125e8),
        ({"LinkSpeedRaw": 1e10, "LinkSpeed": "10", "LinkSpeedUnits": "G", "label": "x"}, 1.25e9),
    ],
)
def test_what_is_stated_in_one_way_is_used(data, bytes_per_s):
    assert speed_of(data, "") == speed_of(data, "")
    assert speed_of(data, "").bytes_per_s == pytest.approx(bytes_per_s, rel=1e-12)
    assert speed_of(data, "").not_understood == ""


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"LinkSpeed": "10"}, "LinkSpeed '10'"),
        ({"LinkSpeed": "10", "LinkSpeedUnits": "g"}, "LinkSpeed '10' LinkSpeedUnits 'g'"),
        ({"LinkSpeed": "10", "LinkSpeedUnits": "Gb/s"}, "LinkSpeed '10' LinkSpeedUnits 'Gb/s'"),
        ({"LinkSpeed": "1-10", "LinkSpeedUnits": "G"}, "LinkSpeed '1-10' LinkSpeedUnits 'G'"),
        ({"LinkSpeed": "10 Gbps", "LinkSpeedUnits": "G"}, "LinkSpeed '10 Gbps' LinkSpeedUnits 'G'"),
        ({"LinkLabel": "<45Mb"}, "LinkLabel '<45Mb'"),
        ({"LinkLabel": "2x10Gbps"}, "LinkLabel '2x10Gbps'"),
        ({"LinkLabel": "OC-192c"}, "LinkLabel 'OC-192c'"),
        ({"LinkType": "GigE 10 GE"}, "LinkType 'GigE 10 GE'"),
        ({"LinkLabel": "Lit Fibre"}, ""),
        ({"LinkLabel": "Route 66"}, ""),
        ({}, ""),
    ],
)
def test_what_is_not_understood_is_named_and_not_guessed(data, named):
    assert speed_of(data, "").bytes_per_s is None
    assert speed_of(data, "").not_understood == named


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"LinkSpeedRaw": 1e9, "LinkSpeed": "10", "LinkSpeedUnits": "G"},
            r"says 1 Gbit/s, but .*10",
        ),
        ({"LinkSpeedRaw": "fast"}, r"LinkSpeedRaw must be bit/s, > 0 and finite, got 'fast'"),
        ({"LinkSpeed": "0", "LinkSpeedUnits": "G"}, r"LinkSpeed must be > 0 and finite, got '0'"),
    ],
)
def test_speeds_that_are_none_or_differ_are_refused(data, message):
    with pytest.raises(ProblemError, match=r"^e: .*" + message):
        speed_of(data, "e")


def test_a_note_says_how_many_edges_took_the_default(read):
    inside = NODES + (
        '<edge source="0" target="1"><data key="s">34</data><data key="u">M</data></edge>'
        '<edge source="1" target="2"><data key="l">&gt;10Gbps</data></edge>'
        '<edge source="0" target="2"/><edge source="1" target="1"/>'
    )
    with pytest.warns(DatacollectWarning, match="2 of 3 edges took default_rate_bytes_per_s, 8 Mb"):
        topology = read(graphml(inside))
    assert topology.notes[0].endswith("not understood as a speed: label '>10Gbps' (1)")
    assert sorted(topology.rate_bytes_per_s[:, 0].tolist()) == [1e6, 1e6, 4.25e6]
    assert topology.attach("S", "node 0", 1e6, 0.001).notes == topology.notes


# GraphML ------------------------------------------------------------------------------------


def test_defaults_that_the_file_declares_are_used(read):
    """Of edges and of nodes; what an element says itself comes first."""
    keys = (
        '<key id="g" for="edge" attr.name="LinkSpeedRaw" attr.type="double">'
        "<default>8e9</default></key>"
        '<key id="e" for="node" attr.name="Internal" attr.type="int"><default>0</default></key>'
    )
    data = graphml(
        '<node id="0"/><node id="1"><data key="e">1</data></node><node id="2"/>'
        '<edge source="0" target="1"/><edge source="1" target="2"><data key="g">8e6</data></edge>',
        keys=keys,
    )
    data = data.replace(
        b'<key id="r" for="edge" attr.name="LinkSpeedRaw"', b'<key id="r" for="edge"'
    )
    topology = read(data)
    assert sorted(topology.rate_bytes_per_s[:, 0].tolist()) == [1e6, 1e9]
    assert topology.kinds == ("external", "router", "external")


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("0", "external"),
        ("0.0", "external"),
        ("False", "external"),
        ("1", "router"),
        (" true ", "router"),
    ],
)
@pytest.mark.filterwarnings("ignore::datacollect.errors.DatacollectWarning")
def test_internal_may_be_text(read, said, kind):
    inside = f'<node id="0"><data key="i">{said}</data></node><node id="1"/><node id="2"/>{EDGES}'
    assert read(graphml(inside)).kinds[0] == kind


def test_directed_edges_of_an_undirected_graph_lead_one_way(read):
    """One line there at 8 Gbit/s, one back at 1.6 Gbit/s; the other edge leads both ways."""
    inside = NODES + (
        '<edge source="0" target="1" directed="true"><data key="r">8e9</data></edge>'
        '<edge source="1" target="0" directed="true"><data key="r">1.6e9</data></edge>'
        '<edge source="1" target="2"><data key="r">8e6</data></edge>'
    )
    topology = read(graphml(inside))
    assert topology.rate_bytes_per_s.tolist() == [[1e9, 2e8], [1e6, 1e6]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
@pytest.mark.parametrize("name", ["map.graphml", "map.xml", "map.gml", "map.graphml.gz"])
@pytest.mark.filterwarnings("ignore::datacollect.errors.DatacollectWarning")
def test_graphml_is_graphml_in_its_own_encoding_under_any_name(read, encoding, name):
    inside = f'<node id="0"><data key="l">Zürich</data></node><node id="1"/><node id="2"/>{EDGES}'
    data = graphml(inside, encoding=encoding)
    assert (
        read(data, name).names[0] == read(gzip.compress(data, mtime=0), name).names[0] == "Zürich"
    )


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ('<node id="0"/><node id="0"/>', r"2 nodes have the id '0'; give each its own"),
        (
            NODES + '<edge id="a" source="0" target="1"/><edge id="a" source="1" target="2"/>',
            r"2 edges have the id 'a'",
        ),
        (
            '<node id="0"><data key="l">A</data><data key="l">B</data></node>',
            r"node '0': label is given twice; keep one",
        ),
        (
            f'<node id="0"><data key="i">maybe</data></node><node id="1"/><node id="2"/>{EDGES}',
            r"node '0': Internal must be 1, or 0 for a node of another network, got 'maybe'",
        ),
        (NODES + '<edge source="0" target="1" directed="no"/>', r"directed must be true or false"),
        ('<node id="0"><graph/></node>', r"node '0' holds a graph of its own, which is no node"),
        (NODES + "<hyperedge/>", r"a hyperedge, which is no node or wire"),
        (NODES + EDGES + '</graph><graph edgedefault="directed">', r"holds 2 graphs"),
    ],
)
def test_what_a_reader_of_graphs_would_lose_is_refused(read, inside, message):
    with pytest.raises(ProblemError, match=message):
        read(graphml(inside))


def test_an_encoding_that_nobody_knows_is_refused(read):
    data = graphml(NODES + EDGES).replace(b"utf-8", b"utf-88")
    with pytest.raises(
        ProblemError, match=r"not XML in the encoding that its first line names: unk"
    ):
        read(data)


def test_keys_declared_twice_and_unknown_types_are_refused(read):
    key = '<key id="r" for="edge" attr.name="x" attr.type="{}"/>'
    with pytest.raises(ProblemError, match=r"2 keys have the id 'r'"):
        read(graphml(NODES, keys=key.format("int")))
    keys = key.format("colour").replace('"r"', '"c"')
    inside = '<node id="0"/><node id="1"/><edge source="0" target="1"><data key="c">1</data></edge>'
    with pytest.raises(ProblemError, match=r"attr\.type must be one of int, .*, got 'colour'"):
        read(graphml(inside, keys=keys))


# GML ----------------------------------------------------------------------------------------

GML = """Creator "somebody"
graph [
  Network "Tiny"
  node [ id 0 label "A" Internal 1 Longitude -78.5 Latitude 0.0 ]
  node [ id 1 label "B &#38; C" Internal 0 ]
  edge [ source 0 target 1 LinkSpeedRaw 8000000.0 ]
  edge [ source 1 target 0 LinkSpeed "16" LinkSpeedUnits "M" ]
]
"""


@pytest.mark.parametrize("name", ["map.gml", "map.graphml", "map"])
def test_gml_is_gml_under_any_name(read, name):
    topology = read(GML.encode(), name)
    assert topology.names == ("A", "B & C")
    assert topology.kinds == ("router", "external")
    assert topology.rate_bytes_per_s.tolist() == [[3e6, 3e6]]
    assert topology.positions[0].tolist() == [-78.5, 0.0]


def test_directed_gml_leads_one_way():
    data = GML.replace("graph [", "graph [ directed 1", 1).encode()
    assert [edge.one_way for edge in read_map_file(data, "").edges] == [True, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("target 1", "target 7"), r"map\.gml: not a graph in GML: .*7"),
        (("id 1", "id 0"), r"not a graph in GML: .*duplicated"),
        (("]\n]", "]"), r"not a graph in GML"),
        (("edge [", "\x02edge ["), r"not a graph in GML: cannot tokenize \\x02edge"),
        (('Network "Tiny"\n', 'Network "Tiny\n\n'), r"not a graph in GML"),
        (("8000000.0", "-1"), r"LinkSpeedRaw must be bit/s, > 0 and finite, got -1"),
    ],
)
def test_bad_gml_is_refused(read, change, message):
    with pytest.raises(ProblemError, match=message):
        read(GML.replace(*change).encode(), "map.gml")


@pytest.mark.parametrize(("said", "is_one_way"), [("Directed", True), ("UNDIRECTED", False)])
def test_whether_edges_lead_one_way_may_be_written_in_capitals(said, is_one_way):
    (edge, _) = read_map_file(graphml(NODES + EDGES, directed=said), "a.graphml").edges
    assert edge.one_way is is_one_way


def test_a_graph_whose_edges_lead_nobody_knows_where_is_refused(read):
    """It was read as undirected, whatever it said."""
    with pytest.raises(ProblemError, match=r"edgedefault .* must be directed or .*, got 'both'"):
        read(graphml(NODES + EDGES, directed="both"))


@pytest.mark.parametrize("text", ["graph G { 0 -- 1 }", "Graph [ node [ id 0 ] ]"])
def test_what_is_neither_graphml_nor_gml_is_no_broken_xml(read, text):
    with pytest.raises(ProblemError, match=r"neither GraphML, .* nor GML, .* save the map as one"):
        read(text.encode())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('label "A"', 'label "A" label "Z"'), "node '0': label is given 2 times; keep one"),
        (('label "A"', 'label "A" label "A"'), "node '0': label is given 2 times; keep one"),
        (("Longitude -78.5", "Longitude 1 Longitude 2"), "node '0': Longitude is given 2 times"),
        (("LinkSpeedRaw 8000000.0", "LinkSpeedRaw 8 LinkSpeedRaw 9"), "edge '0' - '1': LinkSpeedR"),
        (('Network "Tiny"', "directed 1 directed 0"), "must be 0 or 1, once, got 1 and 0"),
        (('Network "Tiny"', "directed 2"), "directed of the graph must be 0 or 1, once, got 2"),
        (('Network "Tiny"', 'directed "0"'), 'directed of the graph must be 0 or 1, once, got "0"'),
    ],
)
def test_what_gml_states_twice_or_oddly_is_refused(read, change, message):
    with pytest.raises(ProblemError, match=message):
        read(GML.replace(*change).encode(), "map.gml")


def test_tables_of_gml_may_be_given_twice_and_edges_may_be_called_directed():
    text = GML.replace('label "A"', 'label "A" graphics [ x 1 ] graphics [ x 2 ]')
    text = text.replace("edge [ source 0", 'edge [ directed 1 note "directed 1 [" source 0')
    assert [edge.one_way for edge in read_map_file(text.encode(), "").edges] == [False, False]


@pytest.mark.parametrize("said", ["1_0", "\u0661\u0660", "\uff11\uff10", "1e400"])
def test_what_only_python_reads_as_a_number_is_no_speed(said):
    assert speed_of({"LinkLabel": f"{said} Gbps"}, "").bytes_per_s is None
    with pytest.raises(ProblemError, match="LinkSpeedRaw must be bit/s, > 0 and finite"):
        speed_of({"LinkSpeedRaw": said}, "")
    if said != "1e400":
        assert speed_of({"LinkSpeed": said, "LinkSpeedUnits": "G"}, "").bytes_per_s is None


@pytest.mark.parametrize("kind", ["double", "long"])
def test_numbers_of_graphml_are_of_ascii_digits(read, kind):
    keys = f'<key id="n" for="edge" attr.name="LinkSpeedRaw2" attr.type="{kind}"/>'
    edges = EDGES.replace("/>", '><data key="n">1_0</data></edge>', 1)
    with pytest.raises(ProblemError, match=r"'1_0'; each value must be of the attr.type"):
        read(graphml(NODES + edges, keys=keys))


@pytest.mark.parametrize("data", [b"graph [ ]", b"graph [ directed 1 ]", graphml("")])
def test_a_map_without_nodes_is_called_so(read, data):
    """It was told that keep_external keeps all."""
    with pytest.raises(ProblemError, match="the map has no nodes; is it the file that was meant"):
        read(data)
