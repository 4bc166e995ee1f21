"""Patient of the doctor: a collection or an agent, and those it has to do with, looked at once."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from datacollect.errors import DatacollectError, ProblemError, TransferError
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import open_route, start_tls
from datacollect.net.fan_out import fan_out
from datacollect.net.keys import read_private_key
from datacollect.net.tcp_info import tcp_info
from datacollect.net.tls import client_context, fingerprint_of
from datacollect.transfer.sources.agent.network import Network
from datacollect.transfer.sources.agent.session import SourceSession
from datacollect.transfer.sources.kinds import AGENTS as AGENTS_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from datacollect.net.keys import PrivateKey
    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.protocol.messages import AgentFacts
    from datacollect.transfer.pull.config.file import Collection

# What is looked at.
COLLECTION, AGENT = "collection", "agent"
LATE = "no answer in time"
# How long looking at one host may take; then one that does not even resolve is left.
WITHIN_S, LEFT_AFTER_S = 8.0, 12.0
# Ways from one agent to another that are tried.
MOST_WAYS = 200
# What the doctor's tickets are called.
NUMBER = "doctor"


@dataclass(frozen=True)
class Place:
    """Place where a host is said to listen, and how its certificate is known.

    Attributes
    ----------
    address : (str, int)
    ca : Path or None
        Who has signed its certificate.
    is_plain : bool
        Whether it speaks without TLS: then nobody is asked who answers.
    """

    address: tuple[str, int]
    ca: Path | None = None
    is_plain: bool = False


@dataclass(frozen=True)
class Seen:
    """Facts seen of a host.

    Attributes
    ----------
    addresses : tuple of str
        What its name leads to.
    trouble : str
        Why it was not looked at to the end; empty: it was.
    step : str
        At which step: ``name``, ``port``, ``TLS`` or ``answer``.
    rtt_s : float or None
        The shortest round trip, as TCP knows it.
    fingerprint : str
        Of its certificate.
    facts : AgentFacts or None
    offset_s, half_rtt_s : float
        Its clock less ours, and by how much that may be wrong.
    """

    addresses: tuple[str, ...] = ()
    trouble: str = ""
    step: str = ""
    rtt_s: float | None = None
    fingerprint: str = ""
    facts: AgentFacts | None = None
    offset_s: float = 0.0
    half_rtt_s: float = 0.0


@dataclass(frozen=True)
class Patient:
    """Subject of the doctor: a collection with the folder that it goes into, or an agent.

    Attributes
    ----------
    file : str
    folder : Path
        Where what is kept lies.
    collection : Collection or None
    agent : AgentConfig or None
    """

    file: str
    folder: Path
    collection: Collection | None = None
    agent: AgentConfig | None = None

    @property
    def kind(self) -> str:
        """Of what checks look at it."""
        return COLLECTION if self.agent is None else AGENT

    @cached_property
    def places(self) -> Mapping[str, Place]:
        """The agents that it has to do with, by name."""
        if self.collection is not None:
            entries = self.collection.entries.get(AGENTS_KEY, {})
            return {name: Place(each.address, each.ca) for name, each in entries.items()}
        assert self.agent is not None
        plain = self.agent.plain_http_to
        return {
            name: Place(address, is_plain=name in plain)
            for name, address in self.agent.connect_to.items()
        }

    @cached_property
    def seen(self) -> Mapping[str, Seen]:
        """Return what was seen of each of them, all at once."""
        outcomes = fan_out(self.places, lambda name: look_at(name, self.places[name]), LEFT_AFTER_S)
        late = Seen(trouble=f"no answer in {LEFT_AFTER_S:g} s", step="name")
        return {name: outcomes[name].result() if name in outcomes else late for name in self.places}

    @cached_property
    def key(self) -> PrivateKey | None:
        """The key of a collection; None where it cannot be read."""
        try:
            return None if self.collection is None else read_private_key(self.collection.key)
        except ProblemError:
            return None

    @cached_property
    def network(self) -> Network | None:
        """The agents of a collection, for questions with tickets."""
        if self.collection is None or self.key is None:
            return None
        limits = self.collection.limits
        return Network(
            self.collection.entries.get(AGENTS_KEY, {}),
            self.key,
            NUMBER,
            timeout_s=min(limits.timeout_s, WITHIN_S),
            connections=limits.connections,
        )

    @cached_property
    def ways(self) -> Mapping[tuple[str, str], str]:
        """From which agent to which was tried, and why it did not work; empty: it did."""
        network = self.network
        if network is None:
            return {}
        pairs = [
            (tail, head)
            for tail, seen in self.seen.items()
            if seen.facts is not None
            for head in seen.facts.relays_to
            if head in self.places and head != tail
        ][:MOST_WAYS]
        by_text = {" ".join(pair): pair for pair in pairs}

        def way(text: str) -> str:
            tail, head = by_text[text]
            return why_not(lambda: network.ask(head, (tail,), Deadline(WITHIN_S)))

        outcomes = fan_out(by_text, way, LEFT_AFTER_S)
        return {
            pair: outcomes[text].result() if text in outcomes else LATE
            for text, pair in by_text.items()
        }

    def is_wanted(self, name: str) -> bool:
        """Say whether a pull is incomplete without a host; an agent relays to all that it names."""
        if self.collection is None:
            return False
        return self.collection.sources is None or name in self.collection.sources


def look_at(name: str, place: Place) -> Seen:
    """Look at a host, step by step, as far as it lets."""
    host, port = place.address
    deadline = Deadline(WITHIN_S)
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return Seen(trouble=f"{getattr(error, 'strerror', None) or error}", step="name")
    seen = Seen(tuple(dict.fromkeys(str(row[4][0]) for row in rows)))
    step = "port"
    try:
        plain = open_route([], name, place.address, deadline=deadline)
        if place.is_plain:
            with plain:
                return Seen(seen.addresses, rtt_s=_rtt_s(plain))
        step = "TLS"
        connection = start_tls(plain, client_context(place.ca), host, name, deadline)
        with SourceSession(connection, name, WITHIN_S) as session:
            step = "answer"
            certificate = connection.getpeercert(binary_form=True) or b""
            asked_s, asked_at_s = time.monotonic(), time.time()
            facts = session.agent(deadline)
            half_s = (time.monotonic() - asked_s) / 2
            return Seen(
                seen.addresses,
                rtt_s=_rtt_s(connection),
                fingerprint=fingerprint_of(certificate),
                facts=facts,
                offset_s=facts.time_s - asked_at_s - half_s,
                half_rtt_s=half_s,
            )
    except (TransferError, ProblemError, OSError) as error:
        why = str(error).removeprefix(f"{name}: ")
        return Seen(seen.addresses, trouble=why, step=step)


def why_not(call: Callable[[], object]) -> str:
    """Return why a call fails; empty where it does not."""
    try:
        call()
    except DatacollectError as error:
        return str(error)
    return ""


def _rtt_s(connection: socket.socket) -> float | None:
    facts = tcp_info(connection)
    return facts.get("least_rtt_s") or facts.get("rtt_s")
