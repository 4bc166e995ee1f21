"""The agents of a collection: addresses, clocks, what they say of themselves, tickets for them."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from datacollect.errors import IdentityError, RefusedError, TransferError
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import RelayHop
from datacollect.net.tickets import (
    AHEAD_S,
    RELAY,
    SEALED,
    SOURCE,
    SPOOL,
    TUNNEL,
    Ticket,
    sign_ticket,
)
from datacollect.net.tls import client_context
from datacollect.transfer.protocol.messages import STAYS
from datacollect.transfer.sources.agent.session import SourceSession, connect
from datacollect.transfer.spool.conversation import Conversation

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping, Sequence

    from datacollect.net.agent_entries import AgentEntry
    from datacollect.net.deadline import Flow
    from datacollect.net.keys import PrivateKey
    from datacollect.transfer.protocol.messages import AgentFacts
    from datacollect.transfer.rates.pacer import Pacer


# A clock that has moved by less refuses nothing: a ticket may be ahead of it by twice as much.
MOVED_S = AHEAD_S / 2


class Issue(NamedTuple):
    """Time at which a ticket was written, and by which clock.

    Tickets are written by the agent's clock, as it was when the agent was asked last. Which tickets
    count is for the agent alone to say; here is decided only whether to write a new one.

    Attributes
    ----------
    clock_ahead_s : float
        The agent's clock less ours, which never jumps, as it was known then.
    expires_s : float
        By the agent's clock.
    """

    clock_ahead_s: float
    expires_s: float

    def why_out_of_time(self, clock_ahead_s: float, now_s: float) -> str | None:
        """Return why the ticket may not count any more; None: its time is no reason.

        Parameters
        ----------
        clock_ahead_s : float
            The agent's clock less ours, as it was said after the refusal.
        now_s : float
            By our clock.

        Examples
        --------
        >>> issue = Issue(clock_ahead_s=1000.0, expires_s=1600.0)
        >>> issue.why_out_of_time(980.0, now_s=10.0)
        'its clock was set by -20 s'
        >>> issue.why_out_of_time(1000.5, now_s=599.0)
        'its ticket has expired'
        >>> issue.why_out_of_time(1000.5, now_s=10.0)
        """
        moved_s = clock_ahead_s - self.clock_ahead_s
        if abs(moved_s) > MOVED_S:
            return f"its clock was set by {moved_s:+.0f} s"
        if now_s + clock_ahead_s > self.expires_s - MOVED_S:
            return "its ticket has expired"
        return None


# Relay tickets are used at once. Source tickets outlast a session that goes on over night.
RELAY_TICKET_S, SOURCE_TICKET_S = 50.0, 12 * 3600.0
# By which an agent refuses a ticket: as a source, as a relay.
SOURCE_REFUSES, RELAY_REFUSES = 401, 407


@dataclass(frozen=True)
class Contact:
    """Facts that an agent has told, and the relays over which it was reached.

    Attributes
    ----------
    facts : AgentFacts
    relays : tuple of str
    clock_ahead_s : float
        Its clock less ours, which never jumps.
    answer_s : float
        How long it took to answer: a round trip at least.
    """

    facts: AgentFacts
    relays: tuple[str, ...]
    clock_ahead_s: float
    answer_s: float = 0.0


class Admission:
    """Admission of a session: a ticket, written when the first request needs it.

    A session may wait for long until then, and the agent's clock be set meanwhile: the ticket is
    written by its time as it is known at last.

    Parameters
    ----------
    write : callable
        Returns a new ticket, and when it was written.
    judge : callable
        Returns what it comes to that the agent refuses a ticket of such a time.
    """

    def __init__(
        self,
        write: Callable[[], tuple[str, Issue]],
        judge: Callable[[Issue, RefusedError], TransferError],
    ) -> None:
        self._write, self._judge = write, judge
        self._written: tuple[str, Issue] | None = None

    def ticket(self) -> str:
        """Return the ticket, the same each time."""
        self._written = self._written or self._write()
        return self._written[0]

    def refused(self, error: RefusedError) -> TransferError:
        """Return what to raise where the agent refuses."""
        return error if self._written is None else self._judge(self._written[1], error)


class OpenedSession(NamedTuple):
    """A session with a source, and what lets it in."""

    session: SourceSession
    admission: Admission


class Network:
    """Opens sessions with agents, and connections through them. Any thread may call its methods.

    Parameters
    ----------
    agents : mapping of str to AgentEntry
    key : PrivateKey
        The collector's.
    number : str
        What the collection is called in tickets.
    timeout_s : float
        Of each step.
    connections : int
        Most at a time, as tickets say.
    """

    def __init__(
        self,
        agents: Mapping[str, AgentEntry],
        key: PrivateKey,
        number: str,
        *,
        timeout_s: float,
        connections: int,
    ) -> None:
        self._agents, self._key, self.number = agents, key, number
        self._timeout_s, self._connections = timeout_s, connections
        self._tls = {name: client_context(entry.ca) for name, entry in agents.items()}
        self._known: dict[str, Contact] = {}
        self._news = threading.Condition()
        self._n_news = 0

    @property
    def known(self) -> dict[str, Contact]:
        """The agents that have answered, as they are known now."""
        with self._news:
            return dict(self._known)

    def ways_to(self, name: str) -> list[tuple[str, ...]]:
        """Return the routes to a host: directly, then over each relay that leads to it."""
        relays = [relay for relay, c in self.known.items() if name in c.facts.relays_to]
        return [(), *((relay,) for relay in relays if relay != name)]

    def wait_for_news(self, seen: int, timeout_s: float) -> int:
        """Wait until an agent becomes known, or the time has passed; return what is seen then."""
        with self._news:
            self._news.wait_for(lambda: self._n_news != seen, timeout_s)
            return self._n_news

    def ask(
        self, name: str, relays: tuple[str, ...] = (), deadline: Deadline | None = None
    ) -> Contact:
        """Ask an agent for its facts: its time above all.

        Raises
        ------
        IdentityError
            Another answers, by its certificate or its name.
        TransferError
        """
        deadline = deadline or Deadline(self._timeout_s)
        session = self._connect(name, relays, deadline)
        try:
            asked_s = time.monotonic()
            facts = session.agent(deadline)
            # Between question and answer the clocks agree best in the middle.
            answered_s = time.monotonic()
            ahead_s = facts.time_s - (asked_s + answered_s) / 2
        finally:
            session.close()
        if facts.name != name:
            raise IdentityError(
                f"agent {name!r} calls itself {facts.name!r}: use this name, which is in the "
                "agent's own file, in the collection file"
            )
        contact = Contact(facts, relays, ahead_s, answered_s - asked_s)
        self._learn(name, contact)
        return contact

    def open(
        self,
        name: str,
        relays: tuple[str, ...],
        patterns: Sequence[str] | None,
        flow: Flow | None = None,
        pacer: Pacer | None = None,
    ) -> OpenedSession:
        """Open a session with a source; return it with what lets it in to its files.

        `flow`: of what it is opened for, which counts the time of the contact. `pacer`: limits that
        what comes keeps to.
        """
        session = self._connect(name, relays, Deadline(self._timeout_s, flow=flow), pacer)
        admission = Admission(
            partial(self._source_ticket, name, relays, patterns),
            partial(self.refused, name, relays),
        )
        return OpenedSession(session, admission)

    def converse(self, name: str, pacer: Pacer | None = None) -> Conversation:
        """Open a connection to an agent for requests about sealed pieces, as it was reached."""
        agent, relays = self._agents[name], self._relays_to(name)
        return Conversation(
            name,
            agent.address,
            agent.fingerprint,
            hops=self.hops(relays, name),
            tls=self._tls[name],
            timeout_s=self._timeout_s,
            pacer=pacer,
        )

    def _relays_to(self, name: str) -> tuple[str, ...]:
        contact = self.known.get(name)
        return () if contact is None else contact.relays

    def spool_ticket(self, relay: str) -> str:
        """Return a ticket by which a relay keeps pieces, and gives them back."""
        return self._ticket(SPOOL, relay)

    def key_ticket(self, source: str) -> str:
        """Return a ticket by which a source takes its key."""
        return self._ticket(SOURCE, source)

    def sealed_ticket(self, source: str, relay: str, patterns: Sequence[str] | None) -> str:
        """Return a ticket for a relay, by which a source gives it sealed pieces alone."""
        return self._ticket(SEALED, source, via=(relay,), patterns=patterns)

    def _ticket(
        self,
        kind: str,
        agent: str,
        via: tuple[str, ...] = (),
        patterns: Sequence[str] | None = None,
    ) -> str:
        now_s = self.time_at(agent)
        ticket = Ticket(
            issuer=self._key.public,
            audience=agent,
            kind=kind,
            collection=self.number,
            issued_s=now_s,
            expires_s=now_s + SOURCE_TICKET_S,
            files=None if patterns is None else tuple(patterns),
            via=via,
        )
        return sign_ticket(ticket, self._key)

    def time_at(self, name: str) -> float:
        """Return what an agent's clock shows."""
        return self._clock_ahead_s(name, self._relays_to(name)) + time.monotonic()

    def refused(
        self, name: str, relays: tuple[str, ...], issue: Issue, error: RefusedError
    ) -> TransferError:
        """Return what it comes to that a source refuses: no end, where its clock was set.

        It is asked its time again, over TLS as before; the next ticket is written by that.
        """
        if error.status != SOURCE_REFUSES:
            return error
        try:
            contact = self.ask(name, relays)
        except TransferError as failure:
            # Whether time is the reason is not known, as long as nobody says it.
            return failure
        why = issue.why_out_of_time(contact.clock_ahead_s, time.monotonic())
        if why is None:
            return error
        return RefusedError(f"{error} ({why}; asking again with a new ticket)", error.status)

    def relay_refused(self, relays: tuple[str, ...], error: RefusedError) -> None:
        """Ask a relay that refuses a ticket its time again: the next one is written by that."""
        if error.status == RELAY_REFUSES and error.by in relays:
            with suppress(TransferError):  # the next try finds out
                self.ask(error.by, relays[: relays.index(error.by)])

    def has_moved(self, name: str, relays: tuple[str, ...]) -> bool:
        """Ask an agent its time again; whether its clock was set since it was asked last.

        Raises
        ------
        TransferError
            It does not say.
        """
        before = self.known.get(name)
        ahead_s = self.ask(name, relays).clock_ahead_s
        return before is None or abs(ahead_s - before.clock_ahead_s) > MOVED_S

    def features(self, name: str) -> tuple[str, ...]:
        """Return what an agent can do besides what all of them can."""
        contact = self.known.get(name)
        return () if contact is None else contact.facts.features

    def tunnel_ticket(self, name: str, relays: tuple[str, ...], service: str) -> str:
        """Return a ticket for one tunnel to a service."""
        now_s = self._clock_ahead_s(name, relays) + time.monotonic()
        ticket = Ticket(
            issuer=self._key.public,
            audience=name,
            kind=TUNNEL,
            collection=self.number,
            issued_s=now_s,
            expires_s=now_s + RELAY_TICKET_S,
            via=relays,
            egress=service,
        )
        return sign_ticket(ticket, self._key)

    def hops(self, relays: tuple[str, ...], to: str, *, stays: bool = False) -> list[RelayHop]:
        """Return the relays of the route, each with its ticket.

        `stays`: the connection is to stay open however long nothing passes; older relays end it.
        """
        hops = []
        for i, relay in enumerate(relays):
            egress = relays[i + 1] if i + 1 < len(relays) else to
            if relay not in self._agents:
                raise TransferError(f"{relay}: is not an agent of the collection, and cannot relay")
            now_s = self._clock_ahead_s(relay, relays[:i]) + time.monotonic()
            ticket = Ticket(
                issuer=self._key.public,
                audience=relay,
                kind=RELAY,
                collection=self.number,
                issued_s=now_s,
                expires_s=now_s + RELAY_TICKET_S,
                source=to,
                via=relays,
                egress=egress,
                most_sockets=self._connections,
                agents=relays[: i + 1],
                stays=stays and STAYS in self.features(relay),
            )
            hops.append(
                RelayHop(relay, self._agents[relay].address, sign_ticket(ticket, self._key))
            )
        return hops

    def _connect(
        self,
        name: str,
        relays: tuple[str, ...],
        deadline: Deadline,
        pacer: Pacer | None = None,
    ) -> SourceSession:
        agent = self._agents[name]
        tls: ssl.SSLContext = self._tls[name]
        try:
            return connect(
                self.hops(relays, name),
                name,
                agent.address,
                tls,
                agent.fingerprint,
                timeout_s=self._timeout_s,
                deadline=deadline,
                pacer=pacer,
            )
        except RefusedError as error:
            self.relay_refused(relays, error)
            raise

    def _source_ticket(
        self, source: str, relays: tuple[str, ...], patterns: Sequence[str] | None
    ) -> tuple[str, Issue]:
        ahead_s = self._clock_ahead_s(source, relays)
        now_s = ahead_s + time.monotonic()
        ticket = Ticket(
            issuer=self._key.public,
            audience=source,
            kind=SOURCE,
            collection=self.number,
            issued_s=now_s,
            expires_s=now_s + SOURCE_TICKET_S,
            source=source,
            files=None if patterns is None else tuple(patterns),
            via=relays,
            most_sockets=self._connections + 4,
        )
        return sign_ticket(ticket, self._key), Issue(ahead_s, ticket.expires_s)

    def _clock_ahead_s(self, name: str, relays: tuple[str, ...]) -> float:
        """Return an agent's clock less ours; it is asked for its time where that is not known."""
        return (self.known.get(name) or self.ask(name, relays)).clock_ahead_s

    def _learn(self, name: str, contact: Contact) -> None:
        with self._news:
            self._known[name] = contact
            self._n_news += 1
            self._news.notify_all()
