"""The fields of a scenario's topology, by its kind."""

from __future__ import annotations

from datacollect.files.fields import Field, Part, Rows, Table
from datacollect.files.kinds import Choice, Flag, Kind, Number, Share, Text, Whole
from datacollect.scenario.kinds import ByKind, OneOrTwo
from datacollect.topologies.rules import DEFAULT_QUEUE_PACKETS, NODE_KINDS, WIRE_KINDS
from datacollect.topologies.transit_stub import PEERING, STUB, TRANSIT, TRANSIT_STUB, WireClass

SECONDS = Number("seconds")
ONE_RATE = Number("bytes per second", positive=True, remedy="leave the wire out")
RATE = OneOrTwo(ONE_RATE)
QUEUE = OneOrTwo(Whole(minimum=1))
NAME = Text()
SEED = Whole(remedy="use any whole number from 0 on")

_SEED = Field("seed", SEED, "Seed of what is drawn; default: from run.seed.")
_QUEUES = Field(
    "queue_packets",
    Whole(minimum=1),
    "Most packets that wait before each wire.",
    default=DEFAULT_QUEUE_PACKETS,
)


def _required(name: str, kind: Kind, what: str) -> Field:
    return Field(name, kind, what, required=True)


def _count(name: str, what: str, default: int, least: int = 0) -> Field:
    return Field(name, Whole(minimum=least), what, default=default)


def _range(name: str, what: str, default: int, least: int = 0) -> Field:
    """A number, or the least and the most of what is drawn."""
    return Field(name, OneOrTwo(Whole(minimum=least)), what, default=default)


def _probability(name: str, what: str, default: float) -> Field:
    return Field(name, Share(positive=True), what, default=default)


def _rate(what: str) -> Field:
    return _required("rate_bytes_per_s", ONE_RATE, what)


def _delay(what: str, default_s: float) -> Field:
    return Field("delay_s", SECONDS, what, default=default_s)


def _wire_class(name: str, kind: WireClass, which: str) -> Field:
    table = Table(
        f"the {which} wires",
        f"What all {which} wires have in common.",
        (
            Field(
                "rate_bytes_per_s",
                ONE_RATE,
                "Rate of each direction, bytes per second.",
                default=kind.rate_bytes_per_s,
            ),
            _delay("Propagation time, seconds.", kind.delay_s),
            Field("queue_packets", _QUEUES.kind, _QUEUES.description, default=kind.queue_packets),
        ),
    )
    return Field(name, Part(table), table.description, default=table.read({}, ""))


_CLASSES = (
    _wire_class("peering", PEERING, "peering"),
    _wire_class("transit", TRANSIT, "transit"),
    _wire_class("transit_stub_wires", TRANSIT_STUB, "transit-stub"),
    _wire_class("stub", STUB, "stub"),
)


def _topology(kind: str, what: str, *fields: Field) -> tuple[str, Table]:
    chosen = _required("kind", Choice((kind,)), "Kind of topology.")
    return kind, Table(f"the {kind} topology", what, (chosen, *fields))


_NODE = Table(
    "the node",
    "A router or an end host.",
    (
        _required("name", NAME, "Unique name."),
        Field("kind", Choice(NODE_KINDS), "Kind of node.", default="router"),
        Field("domain", NAME, "Domain that the node belongs to."),
    ),
)
_WIRE = Table(
    "the wire",
    "A line between two nodes, used in both directions.",
    (
        _required("a", NAME, "Node at one end."),
        _required("b", NAME, "Node at the other end."),
        _required("rate_bytes_per_s", RATE, "Bytes per second: one, or from a to b and back."),
        Field("delay_s", SECONDS, "Propagation time, seconds.", default=0.001),
        Field(
            "queue_packets",
            QUEUE,
            "Most packets that wait before the wire: one number, or one at a and one at b.",
            default=DEFAULT_QUEUE_PACKETS,
        ),
        Field("kind", Choice(WIRE_KINDS), "Kind of wire.", default="backbone"),
        Field("name", NAME, "Unique name of the wire; by default the names of its ends."),
    ),
)

_MAP = (
    Field(
        "default_delay_s",
        SECONDS,
        "Propagation time where the map gives no length, seconds.",
        default=0.005,
    ),
    _QUEUES,
    Field("largest_component", Flag(), "Keep the largest connected part only.", default=False),
)

TOPOLOGY = ByKind(
    (
        _topology("paper-152", "The core paper's 152 nodes.", _SEED, *_CLASSES),
        _topology(
            "transit-stub",
            "A random transit-stub network; where two numbers can stand, the least and the most.",
            _SEED,
            _count("n_transit_domains", "Number of transit domains.", 2, 1),
            _range("nodes_per_transit_domain", "Nodes of each transit domain.", 4, 1),
            _probability(
                "transit_edge_probability",
                "Probability that two nodes of a transit domain share a wire.",
                0.6,
            ),
            _range("stubs_per_transit_node", "Stub domains at each transit node.", 3),
            _range("nodes_per_stub", "Nodes of each stub domain.", 6, 1),
            _probability(
                "stub_edge_probability",
                "Probability that two nodes of a stub domain share a wire.",
                0.2,
            ),
            _count("extra_transit_stub", "Further wires between transit and stub nodes.", 0),
            _count("extra_stub_stub", "Further wires between stub domains.", 0),
            _count("peering_wires", "Wires between every two transit domains.", 2),
            *_CLASSES,
        ),
        _topology(
            "two-domains",
            "Domains A and B, two routers each, two peering wires.",
            Field(
                "peering_rate_bytes_per_s",
                RATE,
                "Rate of both peering wires, or of B0-A0 and of B1-A1, bytes per second.",
                default=PEERING.rate_bytes_per_s,
            ),
            Field(
                "peering_delay_s",
                SECONDS,
                "Propagation time of the peering wires, seconds.",
                default=PEERING.delay_s,
            ),
            Field(
                "transit_rate_bytes_per_s",
                ONE_RATE,
                "Rate within the domains, bytes per second.",
                default=TRANSIT.rate_bytes_per_s,
            ),
            Field(
                "transit_delay_s",
                SECONDS,
                "Propagation time within the domains, seconds.",
                default=TRANSIT.delay_s,
            ),
            _QUEUES,
        ),
        _topology(
            "dumbbell",
            "Hosts L0, L1, ... and R0, R1, ... on two routers with one wire, bottleneck.",
            _count("n_left", "Hosts at the left router.", 2, 1),
            _count("n_right", "Hosts at the right router.", 2, 1),
            _rate("Rate of the bottleneck, bytes per second."),
            _required("delay_s", SECONDS, "Propagation time of the bottleneck, seconds."),
            Field(
                "queue_packets",
                Whole(minimum=1),
                "Most packets that wait before the bottleneck.",
                default=DEFAULT_QUEUE_PACKETS,
            ),
            _required(
                "access_rate_bytes_per_s", ONE_RATE, "Rate of hosts' wires, bytes per second."
            ),
            Field(
                "access_delay_s",
                SECONDS,
                "Propagation time of the hosts' own wires, seconds.",
                default=0.001,
            ),
            Field(
                "access_queue_packets",
                Whole(minimum=1),
                "Most packets that wait before each host's own wire.",
                default=DEFAULT_QUEUE_PACKETS,
            ),
        ),
        _topology(
            "star",
            "Hosts H0, H1, ... around one router, hub.",
            _required("n_hosts", Whole(minimum=1), "Number of hosts."),
            _rate("Rate of the wires, bytes per second."),
            _delay("Propagation time of the wires, seconds.", 0.005),
            _QUEUES,
        ),
        _topology(
            "line",
            "Routers N0, N1, ... in a row.",
            _required("n_nodes", Whole(minimum=1), "Number of routers."),
            _rate("Rate of the wires, bytes per second."),
            _delay("Propagation time of the wires, seconds.", 0.005),
            _QUEUES,
        ),
        _topology(
            "graphml",
            "A map of a network, as the Internet Topology Zoo has them.",
            _required("file", NAME, "GraphML or GML file, relative to this file."),
            _required(
                "default_rate_bytes_per_s",
                ONE_RATE,
                "Rate where the map names none, bytes per second.",
            ),
            Field(
                "rate_factor",
                Number(positive=True),
                "Factor on the rates that the map names.",
                default=1.0,
            ),
            *_MAP,
            Field("keep_external", Flag(), "Keep nodes of other networks.", default=True),
        ),
        _topology(
            "topohub",
            "A network of the package topohub.",
            _required("name", NAME, "Its name there, such as topozoo/Abilene."),
            _rate("Rate of all wires, bytes per second."),
            *_MAP,
        ),
        _topology(
            "explicit",
            "Wires, and those nodes of which more than the name must be given.",
            Field("nodes", Rows(_NODE), "Nodes; ends of wires need not be listed.", default=()),
            _required("wires", Rows(_WIRE), "Every wire of the network."),
        ),
    )
)
