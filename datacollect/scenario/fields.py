"""The fields of scenario files: names, kinds, units, defaults; topologies have their own module.

As in `datacollect.problem.fields`, one source for reading and checking files and for the hints in
messages. Every default stands here, so that a run can record what was not said.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

from datacollect.files.choices import Engine
from datacollect.files.fields import Document, Field, Part, Rows, Table
from datacollect.files.kinds import Choice, Flag, Kind, ListOf, Number, Share, Text, Whole
from datacollect.measurement.estimates import AGELESS_ESTIMATORS
from datacollect.methods.choice import METHODS
from datacollect.methods.file_keys import MethodName, MethodTable, fields_in
from datacollect.methods.options.names import BEST_PATH, COORDINATED, RELAY_KINDS
from datacollect.methods.places import refused_in
from datacollect.scenario.topology_fields import QUEUE, RATE, SECONDS, TOPOLOGY
from datacollect.simulation.control import CONTROL
from datacollect.simulation.network import HEADER_BYTES, PRESETS

SCENARIO_FORMAT = "datacollect-scenario/1"
ENGINES: tuple[str, ...] = get_args(Engine)

SEED = Whole(remedy="use any whole number from 0 on")
NAME = Text()
BYTES = Whole("bytes", minimum=1)
POSITIVE_S = Number("seconds", positive=True)
# Estimates that there are none of.
UNKNOWN = "unknown"
WHERE = Choice(("stub", "transit", "router", "external", "any"))


def _table(name: str, description: str, *fields: Field) -> Table:
    return Table(name, description, fields)


def _optional(name: str, kind: Kind, description: str, default: Any = None) -> Field:
    return Field(name, kind, description, default=default)


ACCESS = _table(
    "the access link",
    "The wire between a host and the node at which it attaches.",
    _optional("rate_bytes_per_s", RATE, "Rate, bytes per second: one, or out and in.", 1.25e6),
    _optional("delay_s", SECONDS, "Propagation time, seconds.", 0.001),
    _optional("queue_packets", QUEUE, "Most packets that wait before it.", 50),
)

_PLACE = (
    _optional("at", NAME, "Node to attach to; or a host of the topology, which then takes part."),
    _optional("domain", NAME, "Attach to a node of this domain, drawn; its stub domains count."),
    _optional("among", WHERE, "Kind of node to draw; default: stub where there are any."),
    _optional("access", Part(ACCESS), "Access link, if not that of [hosts.access]."),
)

DESTINATION = _table(
    "the destination",
    "The host that collects everything.",
    _optional("name", NAME, "Name of the host.", "D"),
    *_PLACE,
)
SOURCES = _table(
    "the sources",
    "One host with data, or several alike.",
    _optional("name", NAME, "Name, or with count its beginning; default S1, S2, ..."),
    _optional("count", Whole(minimum=1), "How many hosts.", 1),
    *_PLACE,
    _optional("backlog_bytes", BYTES, "Bytes of each; without it, [backlog] draws them."),
)
RELAYS = _table(
    "the relays",
    "One host without data, or several alike, for others' data to pass.",
    _optional("name", NAME, "Name, or with count its beginning; default K1, K2, ..."),
    _optional("count", Whole(minimum=1), "How many hosts.", 1),
    *_PLACE,
)
HOSTS = _table(
    "the hosts",
    "Who takes part, and where in the topology.",
    _optional("seed", SEED, "Seed of places that are drawn; default: from run.seed."),
    _optional("access", Part(ACCESS), "Every host's access link.", ACCESS.read({}, "")),
    Field("destination", Part(DESTINATION), "The destination.", required=True),
    Field("sources", Rows(SOURCES), "The sources.", required=True),
    _optional("relays", Rows(RELAYS), "Further hosts.", ()),
)

BACKLOG = _table(
    "the backlog",
    "Backlogs of the sources that name none: uniform between bounds.",
    _optional("seed", SEED, "Seed; default: from run.seed."),
    _optional("least_bytes", BYTES, "Least of each source, bytes."),
    _optional("most_bytes", BYTES, "Most of each source, bytes."),
    _optional("total_bytes", BYTES, "Bytes that they add up to, exactly; without it, independent."),
)

PAIR = _table(
    "the pair",
    "A background flow between two named nodes.",
    Field("from", NAME, "Node that sends.", required=True),
    Field("to", NAME, "Node that receives.", required=True),
    _optional("kind", Choice(("tcp", "udp")), "Endless TCP, or on-off UDP.", "tcp"),
    _optional("start_s", SECONDS, "Start, seconds.", 0.0),
    _optional(
        "rate_bytes_per_s",
        Number("bytes per second", positive=True),
        "UDP: bytes per second while on.",
    ),
    _optional("mean_on_s", POSITIVE_S, "UDP: mean on time, seconds.", 1.0),
    _optional("mean_off_s", POSITIVE_S, "UDP: mean off time, seconds.", 1.0),
)
BACKGROUND = _table(
    "the background",
    "Traffic of others, for as long as the simulation lasts.",
    _optional("seed", SEED, "Seed of all that is drawn; default: from run.seed."),
    _optional("flows", Whole(), "Number of flows whose ends are drawn.", 0),
    _optional("from", NAME, "Domain that they come from; default: any."),
    _optional("to", NAME, "Domain that they go to; default: any."),
    _optional("among", WHERE, "Kind of nodes at their ends; default: stub where there are any."),
    _optional("over", ListOf(NAME, 1), "Wires that the flows cross; default: all peering wires."),
    _optional("split", ListOf(Number()), "Ratio of flows over these wires; default: equal parts."),
    _optional(
        "tcp_probability", Share(), "Probability that a flow is endless TCP, else on-off UDP.", 0.75
    ),
    _optional(
        "udp_share",
        Share(),
        "Share of each wire that its UDP flows take on average; 0 silences them.",
        0.05,
    ),
    _optional(
        "least_mean_s",
        POSITIVE_S,
        "Least mean on or off time, seconds; means are drawn uniformly from here to most_mean_s.",
        0.2,
    ),
    _optional("most_mean_s", POSITIVE_S, "Largest mean on or off time, seconds.", 3.0),
    _optional(
        "latest_start_s", SECONDS, "Starts are drawn uniformly from 0 to this, seconds.", 2.0
    ),
    _optional("pairs", Rows(PAIR), "Further flows, between named nodes.", ()),
)

TRANSPORT = _table(
    "the transport",
    "How TCP is set up; for the fluid engine header and round-trip times only.",
    _optional("variant", NAME, "Congestion control by ns-3's name.", "NewReno"),
    _optional("segment_bytes", Whole("bytes", 64, 65_000), "Segment size, bytes.", 1448),
    _optional("buffer_bytes", BYTES, "Send and receive buffer of each socket, bytes.", 1 << 20),
    _optional("initial_window_segments", Whole(minimum=1), "Initial window.", 10),
    _optional("delayed_ack_segments", Whole(minimum=1), "Segments per acknowledgement.", 2),
    _optional(
        "syn_timeout_s", POSITIVE_S, "First retry of a SYN, seconds; doubles each time.", 1.0
    ),
    _optional("syn_retries", Whole(), "Retries of a SYN.", 20),
    _optional("data_retries", Whole(), "Retries of data in a row.", 20),
    # None rather than true, as for probe_scale.
    _optional("sack", Flag(), "Selective acknowledgements; default: true."),
    _optional(
        "preset",
        Choice(tuple(PRESETS)),
        "Another simulator's segments, window, initial window and acknowledgements, instead of "
        "those here; the fluid engine heeds the window.",
    ),
    _optional(
        "header_bytes",
        Whole("bytes"),
        "fluid engine: header bytes of each segment; 54 is TCP with time stamps over PPP, as in "
        "ns-3.",
        HEADER_BYTES,
    ),
)

ROUTING = _table(
    "the routing",
    "How packets find their route.",
    _optional("kind", Choice(("shortest", "hot-potato")), "Shortest, or early exit.", "shortest"),
    _optional("weight", Choice(("hops", "delay")), "What is shortest.", "hops"),
)

PERTURBATION = _table(
    "the perturbation",
    "Estimates of all pairs whose route crosses a wire, in either direction, times a factor.",
    Field("wire", NAME, "Name of the wire.", required=True),
    Field(
        "factor", Number(), "Factor on these estimates; 1.7 over-estimates by 70 %.", required=True
    ),
)
SHARED_WIRE = _table(
    "the shared wire",
    "A wire of which the planner knows which links share it, each direction by itself, and what it "
    "carries: its rate less headers, if nothing else is said.",
    Field("wire", NAME, "Name of the wire.", required=True),
    _optional(
        "bandwidth_bytes_per_s",
        Number("bytes per second", positive=True),
        "What the links carry together in each direction, bytes per second.",
    ),
    _optional(
        "connections",
        Whole(minimum=1, stop=1_000_001),
        "Instead: what this number of connections get there together, max-min fairly beside the "
        "background, UDP at its mean.",
    ),
)
ESTIMATES = _table(
    "the estimates",
    "What the planner knows of the network.",
    _optional(
        "kind",
        Choice(("measured", "exact", "given", UNKNOWN)),
        "Probes in the run's engine; the fluid engine's fair share; a file; unknown, nobody knows: "
        'all links count alike, and with method.relays = "chains" what they bring is learned on '
        "the way.",
        "measured",
    ),
    _optional("file", NAME, "given: CSV of bandwidths, relative to this file."),
    _optional("engine", Choice(ENGINES), "measured: engine, if not that of the run."),
    _optional("probe_bytes", BYTES, "Size of a probe, bytes, before probe_scale.", 5_000_000),
    _optional("repeats", Whole(minimum=1, stop=1001), "Probes of each pair.", 3),
    _optional("give_up_s", POSITIVE_S, "ns3: a probe ends after this time, seconds.", 1000.0),
    _optional("seed", SEED, "Seed of the probes' run; default: from run.seed."),
    _optional(
        "how",
        Choice(AGELESS_ESTIMATORS),
        "Estimator; mean is all bytes over all seconds.",
        "ewma",
    ),
    _optional("a", Share(), "ewma: weight of the past.", 0.9),
    _optional("quantile", Share(), "quantile: which one.", 0.25),
    _optional("know_access", Flag(), "Tell the planner the rates of hosts' access links.", False),
    _optional("perturbations", Rows(PERTURBATION), "What is estimated wrongly.", ()),
    # None rather than (): what is absent is in no hash, so that results made before it stay valid.
    _optional("shared", Rows(SHARED_WIRE), "Wires that the planner knows links to share."),
)


# Options of methods whose default is in every hash. What is absent is in none, so that results made
# before an option was a key stay valid.
HASHED_DEFAULTS = {"solver": "auto"}


def _planning_fields() -> list[Field]:
    found = fields_in("scenario")
    return [replace(field, default=HASHED_DEFAULTS.get(field.name)) for field in found]


def _method_table(name: str, description: str, *fields: Field) -> MethodTable:
    return MethodTable(name, description, fields, refused=refused_in("scenario"))


METHOD = _method_table(
    "the method",
    "How the collection is planned, and how the plan is carried out.",
    _optional(
        "name",
        MethodName(tuple(METHODS.own)),
        "Planning method, or adaptive, which follows no plan.",
        COORDINATED,
    ),
    *_planning_fields(),
    _optional(
        "scaled_slot_s",
        POSITIVE_S,
        "Instead of slot_s: slots in seconds at scale 1; scale shortens them as it does the data.",
    ),
    _optional(
        "timing",
        Choice(("asap", "planned")),
        "As soon as possible in the plan's order, or not before its times.",
        "asap",
    ),
    _optional("lanes", Whole(minimum=1), "Connections per hop.", 1),
    _optional("shared_connections", Flag(), "Routes share the connections of a hop.", False),
    _optional(
        "open_ahead_s", SECONDS, "planned: open connections this many seconds before use.", 1.0
    ),
    _optional("pace", Flag(), "Cap each connection at its planned rate.", False),
    _optional(
        "replan_s",
        POSITIVE_S,
        "coordinated, pipelined: plan again every this many seconds, from where the data "
        "lie and what was observed; scale does not change it. Default: never.",
    ),
    _optional("window_bytes", BYTES, "Window of each connection, bytes; default: the transport's."),
    _optional("streams", Whole(minimum=1), "direct: connections of each source.", 1),
    _optional("total_streams", Whole(minimum=1), "direct: connections of all sources together."),
    _optional(
        "streams_as",
        Choice((COORDINATED, BEST_PATH)),
        "direct: as many connections in all as that method's plan has.",
    ),
    _optional(
        "streams_shared",
        Choice(("evenly", "by-data")),
        "direct: how a total is shared out among sources.",
        "by-data",
    ),
    _optional(
        "connections",
        Whole(minimum=1),
        "adaptive, chains: most connections at a time in all; a route of two hops takes two. "
        "Without it chains of a plan are one for each route.",
    ),
    _optional(
        "connections_as",
        Choice((COORDINATED,)),
        "adaptive, chains: as many as that method's plan has; adaptive's default where connections "
        "is absent.",
    ),
    # None rather than 1: what is absent is in no hash.
    _optional(
        "as_many_times",
        Whole(minimum=1),
        "direct with streams_as; adaptive, or chains with connections_as, without connections: "
        "factor on that number of connections. Default: 1.",
    ),
    # None rather than "queues": what is absent is in no hash.
    _optional(
        "relays",
        Choice(RELAY_KINDS),
        "Where relayed data wait: queues, at the relay; chains, nowhere, each byte is passed on "
        "as it comes, over one TCP connection for each hop, as real transfers do: each of a "
        "plan's routes pulls its share, whatever its times, and takes over from those behind. "
        "Default: queues.",
    ),
    _optional(
        "piece_bytes",
        BYTES,
        "adaptive, chains, replan_s: bytes of a piece at most. Default: a part in 4000 of all "
        "data, from 8 KiB on; replan_s: up to 64 KiB.",
    ),
    _optional(
        "harm",
        Share(positive=True),
        "adaptive: how much of their rate others may lose, as a part of what direct transfers with "
        "one connection per source would leave them, as far as can be observed; caps connections.",
    ),
    _optional(
        "stall_patience_s",
        SECONDS,
        "Replace a stalled connection after this many seconds.",
        0.0,
    ),
    _optional("retry_s", POSITIVE_S, "Open a lost connection again after this many seconds.", 1.0),
    _optional("most_retries", Whole(), "Failures in a row before it is given up.", 10),
    _optional(
        "longest_wait_s",
        POSITIVE_S,
        "Waits double with each failure in a row, up to this many seconds. Default: without end.",
    ),
)

RUN = _table(
    "the run",
    "Settings of the run.",
    _optional("seed", SEED, "Seed of everything that has none of its own.", 1),
    _optional("time_limit_s", POSITIVE_S, "Simulated seconds after which the run ends.", 86_400.0),
    _optional(
        "relay_buffer_bytes",
        BYTES,
        "Room for others' data at each relay, bytes; default: unlimited.",
    ),
    _optional(
        "stall_s", POSITIVE_S, "A connection without progress for this many seconds stalls.", 30.0
    ),
    _optional("warm_up_s", SECONDS, "Background alone before, and again after, seconds.", 20.0),
    _optional("udp_on_off", Flag(), "fluid engine: UDP's on and off times, not its mean.", False),
    # None rather than "delayed": what is absent is in no hash.
    _optional(
        "control",
        Choice(CONTROL),
        "What decides meanwhile, replanning, does so at the destination: delayed, news and "
        "decisions travel for a propagation delay each; free, they are everywhere at once. "
        "Default: delayed.",
    ),
)

# Sections that a scenario may have in any case, and those that need a topology.
ALWAYS = {"method": METHOD, "run": RUN}
WITH_TOPOLOGY = {
    "backlog": BACKLOG,
    "background": BACKGROUND,
    "transport": TRANSPORT,
    "routing": ROUTING,
    "estimates": ESTIMATES,
}

SCENARIO = Document(
    "the scenario",
    "A network, who collects what in it, beside what traffic, and by which method.",
    (
        _optional("$schema", Text(), "JSON Schema of this file, for editors."),
        _optional("format", Text((SCENARIO_FORMAT,)), "Format and its version."),
        _optional("name", NAME, "Name, for messages and results.", "scenario"),
        _optional("scale", Number(positive=True), "Factor on backlogs and probes.", 1.0),
        # None rather than 1: what is absent is in no hash, so that results made before it stay
        # valid.
        _optional(
            "probe_scale",
            Number(positive=True),
            "Factor on probes alone, whatever the scale; default: as scale.",
        ),
        _optional("problem", NAME, "Problem file instead of a topology; fluid engine only."),
        _optional("truth_csv", NAME, "With problem: the bandwidths that there really are."),
        _optional("topology", TOPOLOGY, "The network."),
        _optional("hosts", Part(HOSTS), "Who takes part."),
        *(
            _optional(name, Part(table), table.description)
            for name, table in {**WITH_TOPOLOGY, **ALWAYS}.items()
        ),
    ),
    remedy="`datacollect example scenario_small` writes one to compare with",
    instead={
        "schedule": "carry it out with --schedule",
        "problem": 'write a scenario with problem = "FILE" in it',
    },
    named_after_file=True,
)
