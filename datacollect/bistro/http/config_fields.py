"""Tables of fields of the files of services, witnesses, destinations and their mail servers."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from datacollect.bistro.formats.event.kinds import LogKey
from datacollect.files.choices import RunMethod
from datacollect.files.fields import Document, Field
from datacollect.files.file_kinds import FileKind
from datacollect.files.kinds import Flag, ListOf, Number, Schema, Text, Whole, wrong
from datacollect.net.kinds import TLS, Address, HostName

SERVICE_FORMAT = "datacollect-service/1"
WITNESS_FORMAT = "datacollect-witness/1"
DESTINATION_FORMAT = "datacollect-destination/1"
SMTP_FORMAT = "datacollect-smtp/1"

MOST_WORKERS = 256

IPNetwork: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Network:
    """An address, or a network as ``10.0.0.0/8``."""

    def read(self, value: Any, place: str) -> IPNetwork:
        """Return the network."""
        text = Text().read(value, place)
        try:
            return ipaddress.ip_network(text)
        except ValueError:
            rule = "must be an address or a network"
            raise wrong(place, rule, text, 'write it as "10.0.0.7" or "10.0.0.0/8"') from None

    def schema(self) -> Schema:
        """Return the JSON Schema of such networks."""
        return {"type": "string", "pattern": "^[0-9a-fA-F.:]+(/[0-9]{1,3})?$"}


LISTEN = Field(
    "listen",
    Address(port_0=True),
    "Address and port; port 0: any free one, printed when ready.",
    required=True,
)
KEY = Field(
    "key", Text(), "File of the private key; datacollect keys new writes one.", required=True
)
CERTIFICATE = Field(
    "tls",
    TLS,
    "Certificate and key for HTTPS; left out: plain HTTP, for use behind a proxy that speaks TLS.",
)
BEHIND = Field(
    "behind",
    ListOf(Network()),
    "Proxies whose header X-Forwarded-For is trusted: addresses or networks.",
    default=(),
)

MIRRORS = Field(
    "mirrors",
    ListOf(Text()),
    "Folders on other disks for copies of the log: witnesses are asked to sign entries once one "
    "of these folders holds them.",
    default=(),
)

SERVICE = Document(
    "the service's file",
    "A service, which keeps a log of an event.",
    (
        Field("format", Text((SERVICE_FORMAT,)), "Format and version.", required=True),
        Field("event", Text(), "The event's file, as it was published.", required=True),
        KEY,
        LISTEN,
        Field("folder", Text(), "Folder of the log; made where it is absent.", required=True),
        CERTIFICATE,
        Field(
            "workers",
            Whole(stop=MOST_WORKERS + 1),
            "Processes that speak TLS and verify tickets; 0: one process does all.",
            default=0,
        ),
        BEHIND,
        MIRRORS,
    ),
    remedy="the documentation has one under File formats",
)
SERVICE_KIND = FileKind("service", SERVICE)

WITNESS = Document(
    "the witness's file",
    "A witness, which signs by which time logs had reached their sizes.",
    (
        Field("format", Text((WITNESS_FORMAT,)), "Format and version.", required=True),
        Field(
            "name",
            HostName(),
            "The witness's name in its signatures: a host name that no other witness has.",
            required=True,
        ),
        KEY,
        LISTEN,
        Field(
            "folder",
            Text(),
            "Folder where the witness keeps what it has signed; made if absent.",
            required=True,
        ),
        CERTIFICATE,
        Field(
            "clock",
            Text(("kernel", "trusted")),
            'Who vouches that this host\'s clock is synchronised: "kernel", its kernel; '
            '"trusted", you.',
            default="kernel",
        ),
        Field(
            "logs",
            ListOf(LogKey(), 1, 10_000, "must be a list of 1 to 10000 verifier keys"),
            "Verifier keys of the logs that the witness signs for, as events name them.",
            required=True,
        ),
        Field(
            "behind",
            ListOf(Network()),
            "Addresses or networks of proxies: each may open as many connections as all its "
            "clients would.",
            default=(),
        ),
    ),
    remedy="the documentation has one under File formats",
)
WITNESS_KIND = FileKind("witness", WITNESS)

DESTINATION = Document(
    "the destination's file",
    "The destination, which collects what was handed in, and says what became of it.",
    (
        Field("format", Text((DESTINATION_FORMAT,)), "Format and version.", required=True),
        Field(
            "key",
            Text(),
            "File of the private key of the event's log of verdicts.",
            required=True,
        ),
        Field(
            "mark_key",
            Text(),
            "File of the private key of the log of verdicts that the event's own file names, by "
            'which people mark entries; "lost": nobody has this key any more. Left out: the file '
            "in key.",
        ),
        Field(
            "collector",
            Text(),
            "File of the collector's private key; the bistros' agents know its public half. Left "
            "out: the key of the collection file.",
        ),
        Field(
            "identities",
            ListOf(Text(), 1, 16, "must be a list of 1 to 16 files of identities of age"),
            "Files of secret identities; any one of them opens what people have sealed.",
            required=True,
        ),
        Field(
            "tickets",
            Text(),
            "Folder of everybody's tickets; required unless the event admits everybody.",
        ),
        Field("folder", Text(), "Folder of all that is collected; made if absent.", required=True),
        Field(
            "register",
            Text(),
            "Address postgresql://… of the database, if several machines write the register; left "
            "out: a file in folder.",
        ),
        Field(
            "collection",
            Text(),
            "A collection file: it says what is known of links, how to plan, and which hosts "
            "relay.",
        ),
        Field(
            "method",
            Text(get_args(RunMethod)),
            "Method of pulling, as `datacollect pull --method`.",
            default="adaptive",
        ),
        Field(
            "receipts",
            Text(),
            "Folder of receipts that people have shown; the destination lists the files that "
            "they prove and that are missing.",
        ),
        Field(
            "listen",
            Address(port_0=True),
            "Address and port where people can read the log of verdicts; left out: none.",
        ),
        CERTIFICATE,
        BEHIND,
        MIRRORS,
        Field(
            "workers",
            Whole(minimum=1, stop=MOST_WORKERS + 1),
            "Number of processes that decrypt what was uploaded.",
            default=2,
        ),
        Field(
            "every_s",
            Number("seconds", positive=True),
            "How often the destination asks bistros for new uploads, and tells them what they may "
            "delete.",
            default=10.0,
        ),
    ),
    remedy="the documentation has one under File formats",
)
DESTINATION_KIND = FileKind("destination", DESTINATION)

SMTP = Document(
    "the mail server",
    "The mail server that sends reminders.",
    (
        Field("format", Text((SMTP_FORMAT,)), "Format and version."),
        Field("host", Text(), "The mail server.", required=True),
        Field("port", Whole(minimum=1, stop=65536), "Its port.", default=587),
        Field("from", Text(), "Address of the sender.", required=True),
        Field("user", Text(), "Name to log in to the mail server with; left out: no login."),
        Field(
            "password_file",
            Text(),
            "File of the password; a relative path starts at this file's folder.",
        ),
        Field(
            "starttls",
            Flag(),
            "Whether the connection is encrypted before anything is said; false is for a server on "
            "this host.",
            default=True,
        ),
        Field("page", Text(), "Address of the page where people hand in; the message names it."),
    ),
)
SMTP_KIND = FileKind("smtp", SMTP)
