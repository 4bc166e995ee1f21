"""The fields of a scenario's topology, by its kind."""

from __future__ import annotations

from typing import Any

from datacollect.kinds import Field, Kind, Number, Rows, Table, Text, Whole
from datacollect.scenario_kinds import ByKind, Choice, Flag, OneOrTwo, Part
from datacollect.topologies.rules import DEFAULT_QUEUE_PACKETS, NODE_KINDS, WIRE_KINDS
from datacollect.topologies.transit_stub import PEERING, STUB, TRANSIT, TRANSIT_STUB, WireClass

SECONDS = Number("seconds")
ONE_RATE = Number("bytes per second", positive=True, remedy="leave the wire out")
RATE = OneOrTwo(ONE_RATE)
QUEUE = OneOrTwo(Whole(minimum=1))
NAME = Text()
SEED = Whole(remedy="use any whole number from 0 on")

_KIND = Field("kind", NAME, "Kind of topology.", required=True)
_SEED = Field("seed", SEED, "Seed; default: from run.seed.")


def _wires(name: str, kind: WireClass, what: str) -> Field:
    values: dict[str, Any] = {
        "rate_bytes_per_s": kind.rate_bytes_per_s,
        "delay_s": kind.delay_s,
        "queue_packets": kind.queue_packets,
    }
    kinds: dict[str, Kind] = {
        "rate_bytes_per_s": ONE_RATE,
        "delay_s": SECONDS,
        "queue_packets": Whole(minimum=1),
    }
    fields = tuple(
        Field(key, kinds[key], f"{key} of these wires.", default=default)
        for key, default in values.items()
    )
    return Field(name, Part(Table(f"the {what} wires", what, fields)), what, default=values)


_CLASSES = (
    _wires("peering", PEERING, "peering"),
    _wires("transit", TRANSIT, "transit"),
    _wires("transit_stub_wires", TRANSIT_STUB, "transit-stub"),
    _wires("stub", STUB, "stub"),
)
_QUEUES = Field(
    "queue_packets", Whole(minimum=1), "Queue of all wires.", default=DEFAULT_QUEUE_PACKETS
)


def _count(name: str, default: Any, least: int = 0, *, ranged: bool = False) -> Field:
    kind: Kind = Whole(minimum=least)
    return Field(name, OneOrTwo(kind) if ranged else kind, f"{name}.", default=default)


def _required(name: str, kind: Kind, what: str) -> Field:
    return Field(name, kind, what, required=True)


def _topology(kind: str, what: str, *fields: Field) -> tuple[str, Table]:
    return kind, Table("the topology", what, (_KIND, *fields))


_NODE = Table(
    "the node",
    "A router or an end host.",
    (
        _required("name", NAME, "Unique name."),
        Field("kind", Choice(NODE_KINDS), "Kind of node.", default="router"),
        Field("domain", NAME, "Domain that it belongs to."),
    ),
)
_WIRE = Table(
    "the wire",
    "A line between two nodes, used both ways.",
    (
        _required("a", NAME, "One end."),
        _required("b", NAME, "The other end."),
        _required("rate_bytes_per_s", RATE, "Bytes per second: one, or from a to b and back."),
        Field("delay_s", SECONDS, "Propagation time, seconds.", default=0.001),
        Field("queue_packets", QUEUE, "Queue: one, or at a and at b.", default=50),
        Field("kind", Choice(WIRE_KINDS), "Kind of wire.", default="backbone"),
        Field("name", NAME, "Unique name; by default its ends."),
    ),
)

_MAP = (
    Field("default_delay_s", SECONDS, "Where places are unknown.", default=0.005),
    _QUEUES,
    Field("largest_component", Flag(), "Keep the largest connected part only.", default=False),
)

TOPOLOGY = ByKind(
    (
        _topology("paper-152", "The core paper's network.", _SEED, *_CLASSES),
        _topology(
            "transit-stub",
            "A transit-stub network.",
            _SEED,
            _count("n_transit_domains", 2, 1),
            _count("nodes_per_transit_domain", 4, 1, ranged=True),
            Field("transit_edge_probability", Number(positive=True), "Of a wire.", default=0.6),
            _count("stubs_per_transit_node", 3, ranged=True),
            _count("nodes_per_stub", 6, 1, ranged=True),
            Field("stub_edge_probability", Number(positive=True), "Of a wire.", default=0.2),
            _count("extra_transit_stub", 0),
            _count("extra_stub_stub", 0),
            _count("peering_wires", 2),
            *_CLASSES,
        ),
        _topology(
            "two-domains",
            "Domains A and B, two routers each, two peering wires.",
            Field("peering_rate_bytes_per_s", RATE, "Of both, or B0-A0, B1-A1.", default=625e3),
            Field("peering_delay_s", SECONDS, "Peering wires' delay.", default=0.020),
            Field("transit_rate_bytes_per_s", ONE_RATE, "Within domains.", default=1.25e6),
            Field("transit_delay_s", SECONDS, "Within domains.", default=0.010),
            _QUEUES,
        ),
        _topology(
            "dumbbell",
            "Hosts L0, ... and R0, ... on two routers with one wire, bottleneck.",
            _count("n_left", 2, 1),
            _count("n_right", 2, 1),
            _required("rate_bytes_per_s", ONE_RATE, "Of the bottleneck."),
            _required("delay_s", SECONDS, "Of the bottleneck."),
            _QUEUES,
            _required("access_rate_bytes_per_s", ONE_RATE, "Of hosts' wires."),
            Field("access_delay_s", SECONDS, "Of hosts' wires.", default=0.001),
        ),
        _topology(
            "star",
            "Hosts H0, H1, ... around one router.",
            _required("n_hosts", Whole(minimum=1), "Number of hosts."),
            _required("rate_bytes_per_s", ONE_RATE, "Of the wires."),
            Field("delay_s", SECONDS, "Of the wires.", default=0.005),
            _QUEUES,
        ),
        _topology(
            "line",
            "Routers N0, N1, ... in a row.",
            _required("n_nodes", Whole(minimum=1), "Number of routers."),
            _required("rate_bytes_per_s", ONE_RATE, "Of the wires."),
            Field("delay_s", SECONDS, "Of the wires.", default=0.005),
            _QUEUES,
        ),
        _topology(
            "graphml",
            "A map of a network, as the Internet Topology Zoo has them.",
            _required("file", NAME, "GraphML file, relative to this file."),
            _required("default_rate_bytes_per_s", ONE_RATE, "Where the map names none."),
            *_MAP,
            Field("keep_external", Flag(), "Keep nodes of other networks.", default=True),
        ),
        _topology(
            "topohub",
            "A network of the package topohub.",
            _required("name", NAME, "Its name there."),
            _required("rate_bytes_per_s", ONE_RATE, "Of all wires."),
            *_MAP,
        ),
        _topology(
            "explicit",
            "Wires, and nodes where more than their names is to be said.",
            Field("nodes", Rows(_NODE), "Nodes; ends of wires need not be listed.", default=()),
            _required("wires", Rows(_WIRE), "Wires."),
        ),
    )
)
