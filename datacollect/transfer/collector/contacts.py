"""Agents as the collector knows them: addresses, clocks, what they say; tickets for them."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.errors import TransferError
from datacollect.transfer.wire.session import Hop, connect
from datacollect.transfer.wire.tickets import RELAY, SOURCE, Ticket, sign_ticket
from datacollect.transfer.wire.tls import client_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Mapping

    from datacollect.signing import PrivateKey
    from datacollect.transfer.collector.config import AgentEntry, Collection
    from datacollect.transfer.wire.messages import AgentFacts
    from datacollect.transfer.wire.session import SourceSession

# Relay tickets are used at once. Source tickets outlast a session that goes on over night.
RELAY_TICKET_S, SOURCE_TICKET_S = 50.0, 12 * 3600.0


@dataclass(frozen=True)
class Contact:
    """What an agent has said, and over which relays it was reached.

    Attributes
    ----------
    facts : AgentFacts
    relays : tuple of str
    clock_ahead_s : float
        Its clock less ours, which never jumps.
    """

    facts: AgentFacts
    relays: tuple[str, ...]
    clock_ahead_s: float


class Contacts:
    """Opens sessions with agents. Its methods may be called by any thread.

    Parameters
    ----------
    collection : Collection
    key : PrivateKey
    number : str
        What the collection is called in tickets.
    """

    def __init__(self, collection: Collection, key: PrivateKey, number: str) -> None:
        self._agents: Mapping[str, AgentEntry] = collection.agents
        self._patterns = {name: source.files for name, source in (collection.sources or {}).items()}
        self._limits = collection.limits
        self._key, self._number = key, number
        self._tls = {name: client_context(entry.ca) for name, entry in self._agents.items()}
        self._lock = threading.Lock()
        self.known: dict[str, Contact] = {}

    def ask_all(self, names: Iterable[str]) -> dict[str, str]:
        """Ask agents for their facts, all at a time, then those not reached through the others.

        Returns
        -------
        dict of str to str
            Why each of those is not reached that are not.
        """
        troubles = self._ask_each(dict.fromkeys(names, ((),)))
        ways = {
            name: tuple((r,) for r, c in self.known.items() if name in c.facts.relays_to)
            for name in troubles
        }
        through = self._ask_each({name: ways[name] for name in troubles if ways[name]})
        return {
            name: through.get(name, why) for name, why in troubles.items() if name not in self.known
        }

    def _ask_each(self, ways: Mapping[str, tuple[tuple[str, ...], ...]]) -> dict[str, str]:
        troubles: dict[str, str] = {}

        def ask(name: str) -> None:
            for relays in ways[name]:
                try:
                    self.ask(name, relays)
                except TransferError as error:
                    troubles[name] = str(error)
                else:
                    troubles.pop(name, None)
                    return

        threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in ways]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return troubles

    def ask(self, name: str, relays: tuple[str, ...] = ()) -> Contact:
        """Ask one agent for its facts: its time above all."""
        session = self._connect(name, relays)
        try:
            asked_s = time.monotonic()
            facts = session.agent()
            # Between question and answer the clocks agree best in the middle.
            ahead_s = facts.time_s - (asked_s + time.monotonic()) / 2
        finally:
            session.close()
        if facts.name != name:
            raise TransferError(
                f"agent {name!r} calls itself {facts.name!r}: give it the name in its own file"
            )
        contact = Contact(facts, relays, ahead_s)
        self.add(contact)
        return contact

    def add(self, contact: Contact) -> None:
        """Remember what an agent, or another server, has said."""
        with self._lock:
            self.known[contact.facts.name] = contact

    def forget_clock(self, name: str) -> None:
        """Ask an agent for its time again before the next ticket."""
        with self._lock:
            self.known.pop(name, None)

    def connect(self, source: str, relays: tuple[str, ...]) -> tuple[SourceSession, str]:
        """Open a session with a source; return it with the ticket for its files."""
        session = self._connect(source, relays)
        try:
            if source not in self.known:
                facts = session.agent()
                contact = Contact(facts, relays, facts.time_s - time.monotonic())
                with self._lock:
                    self.known[source] = contact
            return session, self._source_ticket(source, relays)
        except BaseException:
            session.close()
            raise

    def hops(self, relays: tuple[str, ...], to: str) -> list[Hop]:
        """Return the relays on the way, each with its ticket."""
        hops = []
        for i, relay in enumerate(relays):
            egress = relays[i + 1] if i + 1 < len(relays) else to
            now_s = self._time_at(relay, relays[:i])
            ticket = Ticket(
                issuer=self._key.public,
                audience=relay,
                kind=RELAY,
                collection=self._number,
                issued_s=now_s,
                expires_s=now_s + RELAY_TICKET_S,
                source=to,
                via=relays,
                egress=egress,
                most_sockets=self._limits.connections,
                agents=relays[: i + 1],
            )
            hops.append(Hop(relay, self._agents[relay].address, sign_ticket(ticket, self._key)))
        return hops

    def _connect(self, name: str, relays: tuple[str, ...]) -> SourceSession:
        agent = self._agents[name]
        tls: ssl.SSLContext = self._tls[name]
        return connect(
            self.hops(relays, name),
            name,
            agent.address,
            tls,
            agent.fingerprint,
            timeout_s=self._limits.timeout_s,
        )

    def _source_ticket(self, source: str, relays: tuple[str, ...]) -> str:
        now_s = self._time_at(source, relays)
        ticket = Ticket(
            issuer=self._key.public,
            audience=source,
            kind=SOURCE,
            collection=self._number,
            issued_s=now_s,
            expires_s=now_s + SOURCE_TICKET_S,
            source=source,
            files=self._patterns.get(source),
            via=relays,
            most_sockets=self._limits.connections + 4,
        )
        return sign_ticket(ticket, self._key)

    def _time_at(self, name: str, relays: tuple[str, ...]) -> float:
        """Return an agent's time, which it is asked for where it is not known."""
        contact = self.known.get(name) or self.ask(name, relays)
        return contact.clock_ahead_s + time.monotonic()


def new_collection_number() -> str:
    """Return what no other collection is called."""
    return secrets.token_hex(8)
