"""FEED.toml: what a source makes, where it goes, and what becomes of what cannot be sent yet."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, nearest_hint
from datacollect.feeds.formats.packets import USUAL_MESSAGE_BYTES
from datacollect.feeds.formats.udp_settings import UDP_TABLE, UdpSettings, require_datagram
from datacollect.files.fields import ByName, Document, Field
from datacollect.files.file_kinds import FileKind
from datacollect.files.kinds import ListOf, Number, Schema, Text, Whole, shown, wrong
from datacollect.files.quantities import BYTES, BYTES_PER_S, SECONDS
from datacollect.net.agent_entries import AGENT, AgentEntry, agent_of
from datacollect.net.kinds import HostName

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

FEED_FORMAT = "datacollect-feed/1"
TCP, UDP = "tcp", "udp"
STOP, DROP_NEW, DROP_OLD = "stop", "drop-new", "drop-old"
# What a receiver keeps beside a feed's own file, see `datacollect.feeds.receiver.files`.
PART, REPORT, HOLES = ".part", ".json", ".holes"

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
MOST_MESSAGE_BYTES, USUAL_BYTES = 2**20, 4096


@dataclass(frozen=True)
class FeedName:
    """The name of a feed, and of the file that it becomes: it leaves no folder."""

    def read(self, value: Any, place: str) -> str:
        """Return the name."""
        name = Text().read(value, place)
        if not NAME.fullmatch(name):
            raise wrong(
                place,
                "must be letters, digits, dots, dashes and underscores, at most 100, and begin "
                "with a letter or digit",
                name,
                "name no folder: the receiver's file says in which one it lies",
            )
        if name.endswith((PART, REPORT, HOLES)):
            raise wrong(
                place,
                f"must not end in {PART}, {REPORT} or {HOLES}, which the receiver adds itself",
                name,
                "choose another ending",
            )
        return name

    def schema(self) -> Schema:
        """Return the JSON Schema of such names."""
        return {"type": "string", "pattern": f"^{NAME.pattern}$"}


FEED = Document(
    "the feed's file",
    "A source that makes data at a constant rate, and where they go.",
    (
        Field("$schema", Text(), "JSON Schema of this file, for editors."),
        Field("format", Text((FEED_FORMAT,)), "Format and its version.", required=True),
        Field("name", FeedName(), "Name of the file that the receiver makes.", required=True),
        Field("to", HostName(), "The agent that receives the feed, one of agents.", required=True),
        Field(
            "via",
            ListOf(HostName()),
            "Relays in order, one or more of agents; empty: the feed goes directly.",
            default=[],
        ),
        Field("key", Text(), "File of the sender's private key.", required=True),
        Field(
            "agents", ByName(AGENT), "Agents of the receiver and of relays, by name.", required=True
        ),
        Field(
            "rate",
            Number(BYTES_PER_S, positive=True, remedy="say what the source makes"),
            'Rate at which the source makes data, such as "16 Mbit/s".',
            required=True,
        ),
        Field(
            "message_bytes",
            Whole(BYTES, minimum=1, stop=MOST_MESSAGE_BYTES + 1),
            "Bytes of one message, which has one number and one time stamp; left out: 4096, but "
            "1412 by udp, which one packet holds.",
        ),
        Field(
            "transport",
            Text((TCP, UDP)),
            "What is lost on the way is sent again, in order (tcp), or stays lost (udp).",
            default=TCP,
        ),
        Field(
            "buffer_bytes",
            Whole(BYTES, minimum=1),
            "How many bytes are kept until the receiver has written them; in memory, or in spill.",
            default=16_000_000,
        ),
        Field(
            "spill", Text(), "Folder of this feed alone; data in it survive when the sender ends."
        ),
        Field(
            "when_full",
            Text((STOP, DROP_NEW, DROP_OLD)),
            "What happens to data that are made while the buffer is full: the feed ends, or these "
            "data are dropped, or the oldest unsent ones; what is dropped is counted, and listed "
            "as missing.",
            default=STOP,
        ),
        Field(
            "congestion",
            Text(),
            "Congestion control of TCP, such as cubic; left out: bbr where this host has it, else "
            "cubic.",
        ),
        Field(
            "socket_bytes",
            Whole(BYTES, minimum=2048, stop=2**31),
            "Buffers of the connection that the kernel is asked for; left out: they grow by "
            "themselves.",
        ),
        Field(
            "catch_up",
            Number("times the rate", positive=True),
            "How fast late data are sent at most, as a multiple of the rate.",
            default=1.25,
        ),
        Field("udp", UDP_TABLE, 'Settings of transport = "udp".'),
        Field(
            "late_after",
            Number(SECONDS, positive=True),
            "A message is late if its delay exceeds the least delay by more than this, seconds.",
            default=0.02,
        ),
        Field(
            "give_up",
            Number(SECONDS, positive=True),
            "Once the source has ended: after how long without the receiver the sender gives up, "
            "seconds.",
            default=600.0,
        ),
    ),
    remedy="the documentation has one under Feeds",
    named_after_file=True,
)
FEED_KIND = FileKind("feed", FEED)


@dataclass(frozen=True)
class FeedFile:
    """A feed, as its file describes it; see ``FEED``.

    Attributes
    ----------
    name : str
    to : AgentEntry
        Who receives it.
    via : tuple of AgentEntry
    key : Path
    rate_bytes_per_s : float
    message_bytes : int
    transport : str
    buffer_bytes : int
    spill : Path or None
    when_full : str
    congestion : str or None
    socket_bytes : int or None
    catch_up : float
    late_after_s, give_up_s : float
    udp : UdpSettings
        Counts by udp alone.

    Examples
    --------
    >>> tree = {"format": "datacollect-feed/1", "name": "scan7", "to": "D", "key": "k", "agents":
    ...     {"D": {"url": "https://d.example:7443", "ca": "ca.pem"}}, "rate": "16 Mbit/s"}
    >>> FeedFile.from_dict(tree).rate_bytes_per_s
    2000000.0
    """

    name: str
    to: AgentEntry
    via: tuple[AgentEntry, ...]
    key: Path
    rate_bytes_per_s: float
    message_bytes: int
    transport: str
    buffer_bytes: int
    spill: Path | None
    when_full: str
    congestion: str | None
    socket_bytes: int | None
    catch_up: float
    late_after_s: float
    give_up_s: float
    udp: UdpSettings = field(default_factory=UdpSettings)

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> FeedFile:
        """Read such a file; raise `ProblemError` for none, or for one that breaks a rule."""
        return FEED.from_file(path, cls.from_dict)

    @classmethod
    def from_dict(cls, tree: Any, folder: str | PathLike[str] = ".") -> FeedFile:
        """Read the tree of such a file, whose own file names are relative to a folder.

        Raises
        ------
        ProblemError
            The tree breaks a rule.
        """
        values, base = FEED.read(tree), Path(folder)
        if values["message_bytes"] is None:
            by_udp = values["transport"] == UDP
            values["message_bytes"] = USUAL_MESSAGE_BYTES if by_udp else USUAL_BYTES
        entries = {name: agent_of(name, each, base) for name, each in values["agents"].items()}
        to = _entry(values["to"], entries, "to")
        via = tuple(_entry(name, entries, "via") for name in values["via"])
        if to in via:
            raise ProblemError(f"via names the receiver {to.name}; leave it out")
        if values["catch_up"] < 1:
            raise wrong(
                "catch_up",
                "must be >= 1: below that, a late feed would never catch up",
                values["catch_up"],
                "write 1.25",
            )
        if values["buffer_bytes"] < values["message_bytes"]:
            raise wrong(
                "buffer_bytes",
                f"must hold a message of {values['message_bytes']} bytes",
                values["buffer_bytes"],
                "ask `datacollect feed plan`, which names one that fits",
            )
        udp = UdpSettings() if values["udp"] is None else UdpSettings.of(values["udp"])
        if values["transport"] == UDP:
            _require_udp(values)
        elif values["udp"] is not None:
            raise wrong(
                "udp", "must be left out with tcp", values["udp"], 'write transport = "udp"'
            )
        return cls(
            name=values["name"],
            to=to,
            via=via,
            key=base / values["key"],
            rate_bytes_per_s=values["rate"],
            message_bytes=values["message_bytes"],
            transport=values["transport"],
            buffer_bytes=values["buffer_bytes"],
            spill=None if values["spill"] is None else base / values["spill"],
            when_full=values["when_full"],
            congestion=values["congestion"],
            socket_bytes=values["socket_bytes"],
            catch_up=values["catch_up"],
            late_after_s=values["late_after"],
            give_up_s=values["give_up"],
            udp=udp,
        )


def _require_udp(values: Mapping[str, Any]) -> None:
    """Raise `ProblemError` where a feed by UDP has what only TCP can do."""
    require_datagram(values["message_bytes"])
    for key, what in (("via", "go directly"), ("spill", "lose what cannot be sent")):
        if values[key]:
            raise wrong(
                key,
                f"must be left out with udp: packets {what}",
                values[key],
                'leave it out, or write transport = "tcp"',
            )


def _entry(name: str, entries: Mapping[str, AgentEntry], place: str) -> AgentEntry:
    if name not in entries:
        known = ", ".join(entries)
        raise ProblemError(
            f"{place} must name one of agents ({known}), got {shown(name)}"
            + (nearest_hint(name, entries) or f"; add a table [agents.{name}]")
        )
    return entries[name]
