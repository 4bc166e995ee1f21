"""Fields of an agent's file, as tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from datacollect.files.fields import Document, Field, Table
from datacollect.files.kinds import ListOf, Number, Schema, Text, Whole, wrong
from datacollect.files.quantities import BYTES_PER_S
from datacollect.net.kinds import TLS, Address, Addresses, HostName, PublicKey
from datacollect.problem.hourly_rates import HostRate

AGENT_FORMAT = "datacollect-agent/1"


@dataclass(frozen=True)
class TableOf:
    """One table."""

    table: Table

    def read(self, value: Any, place: str) -> dict[str, Any]:
        """Return the values of its fields."""
        return self.table.read(value, place)

    def schema(self) -> Schema:
        """Return a reference to the table."""
        return self.table.schema()


SPOOL = Table(
    "the table spool",
    "Room for pieces that wait here. Read, but without effect: nothing is stored yet.",
    (
        Field("folder", Text(), "Where they lie.", required=True),
        Field("bytes", Whole("bytes"), "How much room they may take.", required=True),
    ),
)

LIMITS = Table(
    "the table limits",
    "What an agent takes upon itself, and how patient it is.",
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
            "How long a client may take to say what it wants, or to prove that it may.",
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
            "After how many seconds without a byte a connection is closed.",
            default=900.0,
        ),
        Field(
            "drain_s",
            Number("seconds"),
            "How long an agent that is told to end waits for what is under way.",
            default=60.0,
        ),
        Field(
            "rate",
            HostRate(
                Number(BYTES_PER_S, positive=True, remedy="leave it out for unlimited"),
                has_periods=False,
            ),
            "Most that the agent sends, receives and relays in all, tests included, in bytes per "
            "second: a number, or with timezone rates from hours of the day on, perhaps of days of "
            'the week, "08:00 10 Mbit/s, 20:00 1 Gbit/s"; what is relayed counts once; unlimited '
            "if absent.",
        ),
    ),
)

ACCEPT = Table(
    "the table accept",
    "Sealed uploads that this agent takes for an event, as a bistro.",
    (
        Field("event", Text(), "The event's file, which names this bistro.", required=True),
        Field(
            "folder",
            Text(),
            "Where uploads are kept; the agent serves what is closed of them: `served` in it.",
            required=True,
        ),
        Field(
            "bytes",
            Whole("bytes", minimum=1),
            "How much room they may take.",
            required=True,
        ),
        Field("receipt_key", Text(), "File of the bistro's private key.", required=True),
        Field(
            "expire_s",
            Number("seconds", positive=True),
            "After how many seconds without a byte an unfinished upload is forgotten.",
            default=86_400.0,
        ),
    ),
)

HOURS = re.compile(r"(\d|1\d|2[0-3])-([1-9]|1\d|2[0-4])", re.ASCII)
TOOLS = ("ping", "trace", "pairs", "tcp")
# It tells what others do on the host, too: only where it is named.
COUNTERS = "counters"


@dataclass(frozen=True)
class Hours:
    """Hours of the day between which something may happen, by the host's clock: ``"22-6"``."""

    def read(self, value: Any, place: str) -> tuple[int, int]:
        """Return the first and the last hour."""
        text = Text().read(value, place)
        found = HOURS.fullmatch(text)
        if found is None or found[1] == found[2]:
            remedy = 'write "22-6" for ten in the evening to six in the morning'
            raise wrong(place, "must be two hours of the day", text, remedy)
        return int(found[1]), int(found[2])

    def schema(self) -> Schema:
        """Return the JSON Schema of such hours."""
        return {"type": "string", "pattern": f"^(?:{HOURS.pattern})$"}


MEASURE = Table(
    "the table measure",
    "Tests of the network that operators may run between this host and those of connect_to.",
    (
        Field(
            "operators",
            ListOf(PublicKey(), shortest=1),
            "Public keys of those whose tickets for measuring count. Read again at SIGHUP.",
            required=True,
        ),
        Field(
            "tools",
            ListOf(Text((*TOOLS, COUNTERS))),
            "What may be run, and whether counters of interfaces are told; left out: all tests.",
            default=list(TOOLS),
        ),
        Field(
            "udp_port",
            Whole(minimum=0, stop=65_536),
            "UDP port for the packets of pairs that this host receives; 0, or left out: none.",
        ),
        Field(
            "bytes_per_hour",
            Whole("bytes", minimum=1),
            "How much all tests together may send and receive, counted across restarts.",
            required=True,
        ),
        Field(
            "rate",
            Number("bytes per second", positive=True),
            "How fast a test may send; left out: as fast as the network takes it.",
        ),
        Field("hours", Hours(), "When tests may run, as 22-6; left out: always."),
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
            "Address and port for everything; port 0: any free one, told when ready.",
            required=True,
        ),
        Field(
            "collectors",
            ListOf(PublicKey()),
            "Public keys of those whose tickets count. Read again at SIGHUP.",
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
            "Names of connect_to that are web servers without TLS; to others nothing passes but "
            "TLS and requests to connect onwards.",
            default=[],
        ),
        Field("accept", TableOf(ACCEPT), "Uploads that are taken; left out: none."),
        Field("measure", TableOf(MEASURE), "Tests of the network; left out: nothing is measured."),
        Field("spool", TableOf(SPOOL), "Room for others' pieces; without effect so far."),
        Field("tls", TableOf(TLS), "Left out: a certificate is made at the first start."),
        Field("state", Text(), "Folder of the agent's own files; left out: this file's."),
        Field(
            "congestion",
            Text(),
            "Congestion control of its connections, as bbr or cubic; left out: the kernel's.",
        ),
        Field("limits", TableOf(LIMITS), "Limits; left out: the defaults."),
        Field(
            "timezone",
            Text(),
            "IANA name of the zone whose clocks show the hours of limits.rate, such as "
            "Europe/Zurich.",
        ),
    ),
    remedy="`datacollect agent init` writes one",
)
