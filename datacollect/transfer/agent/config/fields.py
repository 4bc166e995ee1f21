"""Fields of an agent's file, as tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from datacollect.files.fields import Document, Field, Part, Table
from datacollect.files.kinds import ListOf, Number, Text, Whole
from datacollect.files.quantities import BYTES_PER_S
from datacollect.net.kinds import TLS, Address, Addresses, HostName, PublicKey
from datacollect.problem.hourly_rates import HostRate
from datacollect.transfer.agent.config.tables import AGENT_TABLES, usable_tables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.transfer.agent.config.tables import AgentTable

AGENT_FORMAT = "datacollect-agent/1"


SPOOL = Table(
    "the table spool",
    "Room for sealed pieces that wait here until the destination fetches them.",
    (
        Field(
            "folder",
            Text(),
            "Folder in which the pieces are kept; no other agent may use it.",
            required=True,
        ),
        Field(
            "bytes",
            Whole("bytes", minimum=1),
            "Most bytes that the pieces may take.",
            required=True,
        ),
    ),
)

TUNNEL = Table(
    "the table tunnel",
    "Services that users reach through this agent, by any program that speaks TCP.",
    (
        Field(
            "users",
            ListOf(PublicKey()),
            "Public keys of users whose tunnel tickets this agent accepts. Read again at SIGHUP.",
            required=True,
        ),
        Field(
            "to",
            Addresses(shortest=1),
            "The address of each service, by its name; tunnels lead nowhere else. Addresses and "
            "names count as written, even this host's own.",
            required=True,
        ),
        Field(
            "most_connections",
            Whole(minimum=1, stop=1001),
            "Tunnels at a time, of all users.",
            default=16,
        ),
        Field(
            "most_bytes",
            Whole("bytes", minimum=1),
            "Bytes of each tunnel, both ways together; left out: any number.",
        ),
        Field(
            "half_idle_s",
            Number("seconds", positive=True),
            "Seconds without a byte after which a half-closed tunnel ends.",
            default=300.0,
        ),
    ),
)

LIMITS = Table(
    "the table limits",
    "Limits of what an agent accepts at a time, and how long it waits.",
    (
        Field("sessions", Whole(minimum=1), "Connections at a time.", default=1000),
        Field(
            "sessions_per_address",
            Whole(minimum=1),
            "Connections at a time from one address.",
            default=600,
        ),
        Field(
            "new_per_s",
            Number("connections per second", positive=True),
            "New connections per second from one address; ten seconds' worth may come at once.",
            default=100.0,
        ),
        Field(
            "head_s",
            Number("seconds", positive=True),
            "How long a client may take to send its request, or to show its ticket.",
            default=20.0,
        ),
        Field(
            "connect_s",
            Number("seconds", positive=True),
            "How long the next host may take to accept a connection.",
            default=10.0,
        ),
        Field(
            "idle_s",
            Number("seconds", positive=True),
            "Seconds without a byte after which a connection is closed, unless it is a tunnel.",
            default=900.0,
        ),
        Field(
            "drain_s",
            Number("seconds"),
            "How long an agent that is told to stop waits for transfers under way.",
            default=60.0,
        ),
        Field(
            "rate",
            HostRate(
                Number(BYTES_PER_S, positive=True, remedy="leave it out for unlimited"),
                has_periods=False,
            ),
            "Most that the agent sends, receives and relays altogether, tests included, in bytes "
            "per second: one number, or, with timezone, rates that begin at hours of the day, "
            'perhaps on days of the week, such as "08:00 10 Mbit/s, 20:00 1 Gbit/s"; relayed '
            "bytes count once; unlimited if absent.",
        ),
        Field(
            "buffer_bytes",
            Whole("bytes", minimum=4096, stop=2**30 + 1),
            "Buffers of each connection, to send and to receive; left out: they grow as needed.",
        ),
    ),
)

METRICS = Table(
    "the table metrics",
    "Where Prometheus asks for metrics, without TLS: needs the extra `metrics`.",
    (
        Field(
            "listen",
            Address(port_0=True),
            "Address and port of the metrics; anyone who reaches them may read the metrics. Left "
            "out: 127.0.0.1:7444.",
        ),
    ),
)

AGENT = Document(
    "the agent's file",
    "The agent of one host: what it serves, to whom, and where it relays to.",
    (
        Field("format", Text((AGENT_FORMAT,)), "Format and version.", required=True),
        Field("name", HostName(), "The host's name in collections.", required=True),
        Field(
            "listen",
            Address(port_0=True),
            "Address and port for everything; port 0: any free one, printed when ready.",
            required=True,
        ),
        Field(
            "collectors",
            ListOf(PublicKey()),
            "Public keys of collectors whose tickets this agent accepts. Read again at SIGHUP.",
            required=True,
        ),
        Field("serve", Text(), "Folder that is served; left out: the agent only relays."),
        Field(
            "connect_to",
            Addresses(),
            "The only places that this agent relays to, by name. Addresses count as written; "
            "names must not lead to this host or its own network segment.",
            default={},
        ),
        Field(
            "plain_http_to",
            ListOf(HostName()),
            "Names of connect_to that are web servers without TLS; to others only TLS and "
            "requests to connect onwards pass.",
            default=[],
        ),
        Field(
            "spool",
            Part(SPOOL),
            "Room for other hosts' sealed pieces; left out: this agent keeps none.",
        ),
        Field("tunnel", Part(TUNNEL), "Services that users reach through tunnels; left out: none."),
        Field(
            "tls",
            Part(TLS),
            "The agent's certificate and key; left out: the agent makes them at its first start.",
        ),
        Field(
            "state", Text(), "Folder of the agent's own files; left out: the folder of this file."
        ),
        Field(
            "congestion",
            Text(),
            "Congestion control of the agent's connections, such as bbr or cubic; left out: the "
            "kernel's default.",
        ),
        Field("limits", Part(LIMITS), "Limits; left out: the defaults."),
        Field("metrics", Part(METRICS), "Metrics for Prometheus; left out: none."),
        Field(
            "timezone",
            Text(),
            "IANA name of the zone whose clocks show the hours of limits.rate, such as "
            "Europe/Zurich.",
        ),
    ),
    remedy="`datacollect agent init` writes one",
)


def agent_with(tables: Iterable[AgentTable]) -> Document:
    """Return the fields of agents' files, and some tables that others bring."""
    fields = tuple(Field(each.name, Part(each.table), each.text) for each in tables)
    at = [field.name for field in AGENT.fields].index("spool")
    return replace(AGENT, fields=(*AGENT.fields[:at], *fields, *AGENT.fields[at:]))


def fields_for(keys: Iterable[str]) -> Document:
    """Return the fields of an agent's file with some keys.

    Nobody looks for packages where all keys are ours. Where one is nobody's, all tables that can be
    had are among the fields: messages name the nearest.

    Raises
    ------
    ProblemError
        A table is not installed, or a package brings it wrongly.
    """
    others = [key for key in keys if key not in AGENT.by_name]
    if all(map(AGENT_TABLES.has, others)):
        return agent_with(map(AGENT_TABLES.get, others))
    return agent_with(usable_tables(lambda _: None))
