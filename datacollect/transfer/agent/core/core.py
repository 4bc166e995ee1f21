"""The agent's state machine (sans I/O): events in, actions out; safe to deep-copy.

A session without TLS goes from its first byte to the head of a request to connect, is judged by its
relay ticket, waits until the ticket's nonce is kept, then until the next host accepts, and is then
relayed. A session over TLS is judged by the source ticket of its first request that needs one, or
it is to be a tunnel, and goes on like one that is relayed, to a service of the agent's own file.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, RefusedError, TicketError
from datacollect.files.kinds import shown
from datacollect.net.addresses import origin_of
from datacollect.net.buckets import Bucket
from datacollect.net.connect import AS_CONFIGURED, parse_connect
from datacollect.net.tickets import RELAY, TUNNEL, judge_ticket, read_ticket
from datacollect.transfer.agent.core import actions, events
from datacollect.transfer.agent.core.admission import Admission, AdmissionCounts
from datacollect.transfer.agent.core.greetings import Awaited
from datacollect.transfer.agent.core.sessions import AgentSession, Phase, in_order_to_go
from datacollect.transfer.agent.core.source_requests import CLOCK_SET_BACK_S, SourceRequests
from datacollect.transfer.agent.core.totals import AgentTotals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacollect.net.connect import ConnectRequest
    from datacollect.net.tickets import Ticket
    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.agent.core.actions import Action
    from datacollect.transfer.agent.core.events import ClockReading, Event
    from datacollect.transfer.agent.core.totals import SessionTotals

TLS_FIRST_BYTE = 0x16

# A relayed session that is idle for this time has nothing under way when the agent is to end.
QUIET_S = 1.0

# So long somebody without a ticket keeps a connection without a request: handlers serve anybody.
STRANGER_IDLE_S = 75.0

# So much longer than `connect_s` a tunnel may wait for its service; then it hangs.
HANGS_S = 5.0

# So long after all sessions were told to end it leaves behind those that do not, as where a disk
# hangs.
LEFT_AFTER_S = 5.0

# So many connections at most may be ending above the limit because others took their places.
GIVING_WAY_AT_ONCE = 100
LOOKED_OUT_AT_ONCE, LOOKS_EVERY_S = 64, 0.05
# Who has come this instant gives way only where its address idles on more than this part of all.
PART_OF_IDLE = 16

# Refusals that the log has per second; others are counted.
LOGGED_PER_S, LOGGED_AT_ONCE = 20.0, 200.0
BURST_S = 10.0


class AgentCore:
    """State machine of an agent: its promises, and what it does next.

    Parameters
    ----------
    config : AgentConfig
    version : str
        What it says its version is.
    used_nonces : mapping
        Tickets used before this start, and the times at which they may be forgotten, seconds since
        1970.
    """

    def __init__(
        self, config: AgentConfig, version: str, used_nonces: Mapping[str, float] | None = None
    ) -> None:
        self.name = config.name
        self.limits = config.limits
        self.connect_to = dict(config.connect_to)
        self._plain_http_to = config.plain_http_to
        self.collectors = config.collectors
        self._tunnel = config.tunnel
        self.users = frozenset() if config.tunnel is None else config.tunnel.users
        # Of services of its own, by name.
        self._users_of = dict(config.services)
        self.sessions: dict[int, AgentSession] = {}
        self.used_until_s = dict(used_nonces or {})
        self.totals = AgentTotals()
        self.stopping_since_s: float | None = None
        # When the last sessions are told to end, once it is to end itself.
        self._drained_s = 0.0
        self.finished = False
        self._source = SourceRequests(config, version)
        self._counts = AdmissionCounts(config.limits.sessions, config.limits.sessions_per_address)
        # By origin, or "": when none was found, else those that give way, the next one last, and
        # when something had last moved there.
        self._to_go: dict[str, tuple[float, list[tuple[AgentSession, float]]]] = {}
        # Told to end, without a place, and not ended yet.
        self._n_giving_way = 0
        self._arrivals: dict[str, Bucket] = {}
        self._log = Bucket(LOGGED_PER_S, LOGGED_AT_ONCE)
        self._unlogged = 0

    @property
    def serves_collectors(self) -> bool:
        """Return whether somebody collects here, or through this host, now."""
        return any(session.ticket is not None for session in self.sessions.values())

    def handle(self, event: Event) -> list[Action]:
        """Return what is to be done now that this has happened, in this order."""
        if isinstance(event, events.Accepted):
            return self._accepted(event)
        if isinstance(event, events.Tick):
            return self._tick(event.now) + self._end_if_done(event.now)
        if isinstance(event, events.StopAsked):
            return self._stop(event.now) + self._end_if_done(event.now)
        if isinstance(event, events.CollectorsRead):
            return self._withdraw(event)
        session = self.sessions.get(event.session)
        if session is None:  # it ended while the event was under way
            return []
        if isinstance(event, events.Ended):
            return self._ended(session, event) + self._end_if_done(event.now)
        if session.phase is Phase.ENDING:
            return []
        return self._of_session(session, event)

    def _of_session(self, session: AgentSession, event: Event) -> list[Action]:
        """Handle what happens to a session that is not about to end."""
        of_phase: dict[Phase, tuple[tuple[type, ...], Callable[..., list[Action]]]] = {
            Phase.FIRST_BYTE: ((events.FirstByte,), self._first_byte),
            Phase.HEAD: ((events.HeadRead,), self._head_read),
            Phase.NONCE: ((events.NonceKept,), self._nonce_kept),
            Phase.DIALLING: ((events.Dialled,), self._dialled),
            Phase.RELAYING: ((events.Passed, events.HalfClosed), self._moved),
            Phase.TLS: (
                (
                    *(events.TunnelAsked, events.RequestRead, events.HandedOver, events.PlaceHeld),
                    *(events.Malformed, events.BodyRead),
                    *(events.Passed, events.Sent),
                ),
                self._tls,
            ),
        }
        expected, handler = of_phase[session.phase]
        # What was under way when the phase changed is too late.
        return handler(session, event) if isinstance(event, expected) else []

    # The way in ------------------------------------------------------------------------------

    def _accepted(self, event: events.Accepted) -> list[Action]:
        """Count a connection before it has said anything: silence must not take others' room."""
        now_s = event.now.monotonic_s
        self.totals.connections += 1
        origin = origin_of(event.address)
        arrivals = self._arrivals.setdefault(
            origin, Bucket(self.limits.new_per_s, max(self.limits.new_per_s * BURST_S, 1.0))
        )
        is_too_fast = not arrivals.take(now_s)
        done: list[Action] = []
        if not is_too_fast and self.stopping_since_s is None and self._counts.is_full(origin):
            done = self._make_room(origin, event.now)
        place, why = self._counts.enter(origin)
        session = AgentSession(
            event.session, event.address, origin, place, Phase.FIRST_BYTE, now_s, now_s, now_s, why
        )
        self.sessions[session.number] = session
        if self.stopping_since_s is not None:
            return self._close(session, "the agent is stopping")
        if is_too_fast:
            return self._close_noted(session, "too many connections per second", event.now)
        if place is Admission.NOWHERE:
            return self._close_noted(session, why or "", event.now)
        return done

    def _make_room(self, origin: str, now: ClockReading) -> list[Action]:
        """Close the connection that has been idle longest, if any, for one from an origin.

        Where all places are taken, it is one of the origin that has most of the idle ones: whoever
        opens many loses his own, and the few of everybody else stay. Where only the origin's are
        taken, it is one of those.
        """
        if self._n_giving_way >= GIVING_WAY_AT_ONCE:
            return []
        session = self._next_to_go("" if self._counts.is_short_everywhere() else origin, now)
        if session is None:
            return []
        self._counts.leave(session.origin, session.place)
        session.place = Admission.NOWHERE
        session.gives_way = True
        self._n_giving_way += 1
        return self._close_noted(session, "it was idle, and its place was needed", now)

    def _next_to_go(self, origin: str, now: ClockReading) -> AgentSession | None:
        """Return which idle connection of an origin gives way, or of all where that is empty.

        All are looked at for some at once, and not again at once where there is none: in a flood
        that would be dear for each.
        """
        now_s = now.monotonic_s
        looked_s, found = self._to_go.get(origin, (-math.inf, []))
        while True:
            while found:
                session, active_s = found.pop()
                if session.active_s == active_s and session.may_give_way(now_s):
                    return session
            if now_s - looked_s < LOOKS_EVERY_S:
                return None
            idle = [
                each
                for each in self.sessions.values()
                if origin in ("", each.origin) and each.may_give_way(now_s)
            ]
            least = math.inf if origin else self.limits.sessions // PART_OF_IDLE
            found = in_order_to_go(idle, now_s, least)[:LOOKED_OUT_AT_ONCE][::-1]
            looked_s = -math.inf if found else now_s
            self._to_go[origin] = looked_s, found

    def _first_byte(self, session: AgentSession, event: events.FirstByte) -> list[Action]:
        if event.byte == TLS_FIRST_BYTE:
            if session.refused_for is not None:
                return self._close_noted(session, session.refused_for, event.now)
            session.enter(Phase.TLS, event.now.monotonic_s)
            return [actions.StartTls(session.number)]
        session.enter(Phase.HEAD, event.now.monotonic_s)
        return [actions.ReadHead(session.number)]

    # Relaying --------------------------------------------------------------------------------

    def _head_read(self, session: AgentSession, event: events.HeadRead) -> list[Action]:
        return self._asked_to_connect(session, event, self._judged)

    def _asked_to_connect(
        self,
        session: AgentSession,
        event: events.HeadRead | events.TunnelAsked,
        judge: Callable[[AgentSession, ConnectRequest, ClockReading], Ticket],
    ) -> list[Action]:
        try:
            request = parse_connect(event.head)
            ticket = judge(session, request, event.now)
        except ProblemError as error:
            return self._refuse(session, 400, str(error), event.now)
        except RefusedError as error:
            return self._refuse(session, error.status, str(error), event.now)
        session.ticket, session.next_host = ticket, ticket.egress
        session.enter(Phase.NONCE, event.now.monotonic_s)
        # Used from now on, whatever becomes of it.
        until_s = ticket.expires_s + CLOCK_SET_BACK_S
        self.used_until_s[ticket.nonce] = until_s
        return [actions.KeepNonce(session.number, ticket.nonce, until_s)]

    def _counting(
        self,
        request: ConnectRequest,
        kind: str,
        issuers: frozenset[str],
        now: ClockReading,
        table: str = "tunnel",
    ) -> Ticket:
        """Return the ticket of a request to connect, which counts here now, once."""
        if request.token is None:
            raise RefusedError(f"a {kind} ticket is needed, in the header Proxy-Authorization", 407)
        try:
            ticket = read_ticket(request.token, kind, issuers, table)
            judge_ticket(ticket, self.name, now.unix_s)
        except TicketError as error:
            raise RefusedError(f"the ticket does not count: {error}", 407) from None
        if ticket.nonce in self.used_until_s:
            raise RefusedError("the ticket does not count: it has been used", 407)
        return ticket

    def _judged(self, session: AgentSession, request: ConnectRequest, now: ClockReading) -> Ticket:
        """Return the ticket of a request to be relayed, or refuse it."""
        if session.refused_for is not None:
            raise RefusedError(f"{session.refused_for}; try again later", 503)
        ticket = self._counting(request, RELAY, self.collectors, now)
        name = self._name_of(request)
        if ticket.egress != name:
            raise RefusedError("the ticket is for another next host", 403)
        if self._n_relayed(ticket) >= ticket.most_sockets:
            raise RefusedError("as many connections are open as the ticket allows", 429)
        return ticket

    def _name_of(self, request: ConnectRequest) -> str:
        """Return which host of `connect_to` is meant: by its name, or by its very address."""
        if request.host in self.connect_to:
            port = self.connect_to[request.host][1]
            if request.port not in (AS_CONFIGURED, port):
                raise RefusedError(
                    f"this agent connects to {request.host} only at port {port}, got "
                    f"{request.port}; write {AS_CONFIGURED}, which means the port in the agent's "
                    "file",
                    403,
                )
            return request.host
        for name, address in self.connect_to.items():
            if (request.host, request.port) == address:
                return name
        raise RefusedError(
            "this agent may not connect to the requested host; write the host into `connect_to` "
            "of the agent's file, and restart the agent",
            403,
        )

    def _n_relayed(self, ticket: Ticket) -> int:
        return sum(
            other.ticket is not None
            and (other.ticket.kind, other.ticket.issuer) == (RELAY, ticket.issuer)
            and other.ticket.collection == ticket.collection
            for other in self.sessions.values()
        )

    def _nonce_kept(self, session: AgentSession, event: events.NonceKept) -> list[Action]:
        if event.failure is not None:
            why = "this agent cannot keep used tickets"
            self.totals.failed += 1
            return [
                actions.WriteLog("failed", {**session.facts(), "why": event.failure}),
                *self._refuse(session, 503, why, event.now),
            ]
        session.enter(Phase.DIALLING, event.now.monotonic_s)
        name = session.next_host or ""
        if self._is_own(session) and session.ticket is not None:
            return [actions.Serve(session.number, name, session.ticket.issuer)]
        host, port = (self._services if session.is_tunnel else self.connect_to)[name]
        return [actions.Dial(session.number, host, port)]

    def _dialled(self, session: AgentSession, event: events.Dialled) -> list[Action]:
        if event.failure is not None:
            text = f"{session.next_host} cannot be reached: {event.failure}"
            return self._refuse(session, 502, text, event.now)
        session.enter(Phase.RELAYING, event.now.monotonic_s)
        most_bytes = self._most_bytes(session)
        awaited = Awaited.GREETING if self._asks_greeting(session) else Awaited.ALL
        self._totals_of(session).sessions += 1
        return [
            actions.Establish(session.number, most_bytes, awaited),
            actions.WriteLog("relaying", session.facts()),
        ]

    def _asks_greeting(self, session: AgentSession) -> bool:
        """Return whether nothing passes to the next host before a greeting by TLS."""
        return not session.is_tunnel and session.next_host not in self._plain_http_to

    def _moved(
        self, session: AgentSession, event: events.Passed | events.HalfClosed
    ) -> list[Action]:
        if isinstance(event, events.HalfClosed):
            session.is_half_closed, session.active_s = True, event.now.monotonic_s
            return []
        session.up_bytes += event.up_bytes
        session.down_bytes += event.down_bytes
        totals = self._totals_of(session)
        totals.up_bytes += event.up_bytes
        totals.down_bytes += event.down_bytes
        session.active_s = event.now.monotonic_s
        return self._close(session, "its ticket's bytes are spent") if event.spent else []

    # Tunnels ---------------------------------------------------------------------------------

    @property
    def _services(self) -> dict[str, tuple[str, int]]:
        return {} if self._tunnel is None else self._tunnel.to

    def _judged_tunnel(self, _: AgentSession, request: ConnectRequest, now: ClockReading) -> Ticket:
        """Return the ticket of a request for a tunnel, or refuse it."""
        if request.host in self._users_of:
            users = self._users_of[request.host]
            ticket = self._counting(request, TUNNEL, users, now, table=request.host)
            return _for_service(ticket, request)
        if self._tunnel is None:
            raise RefusedError("this agent has no tunnels; write [tunnel] into its file", 404)
        ticket = self._counting(request, TUNNEL, self.users, now)
        if request.host not in self._services:
            known = ", ".join(sorted(self._services))
            raise RefusedError(
                f"`to` of [tunnel] in this agent's file names no service {shown(request.host)}: "
                f"{known}",
                404,
            )
        _for_service(ticket, request)
        most = self._tunnel.most_connections
        led_out = (each for each in self.sessions.values() if each.is_tunnel)
        if sum(each.next_host not in self._users_of for each in led_out) >= most:
            raise RefusedError(
                f"as many tunnels are open as `most_connections` of [tunnel] allows, {most}; try "
                "again later",
                429,
            )
        return ticket

    def _is_own(self, session: AgentSession) -> bool:
        """Return whether it leads to a service of the agent's own.

        Whoever is served there comes again.
        """
        return session.is_tunnel and session.next_host in self._users_of

    def _most_bytes(self, session: AgentSession) -> int | None:
        """Return how many bytes a connection may move: by its ticket, and by the agent's file."""
        limits = [session.ticket.most_bytes if session.ticket else 0]
        if session.is_tunnel and self._tunnel is not None and not self._is_own(session):
            limits.append(self._tunnel.most_bytes)
        return min((limit for limit in limits if limit is not None), default=None)

    def _stays(self, session: AgentSession) -> bool:
        """Return whether a connection over which nothing passes may go on.

        One side of a tunnel that has ended may never hear of the other again.
        """
        if session.is_tunnel:
            return not session.is_half_closed
        return session.ticket is not None and session.ticket.stays

    def _most_idle_s(self, session: AgentSession) -> float:
        """Return for how long nothing may pass."""
        if self._stays(session):
            return math.inf
        if session.is_tunnel and self._tunnel is not None:
            return self._tunnel.half_idle_s
        is_stranger = session.ticket is None and session.is_handed_over and not session.busy
        return min(self.limits.idle_s, STRANGER_IDLE_S) if is_stranger else self.limits.idle_s

    # Over TLS --------------------------------------------------------------------------------

    def _tls(
        self,
        session: AgentSession,
        event: (
            events.TunnelAsked
            | events.RequestRead
            | events.HandedOver
            | events.PlaceHeld
            | events.Malformed
            | events.BodyRead
            | events.Passed
            | events.Sent
        ),
    ) -> list[Action]:
        if isinstance(event, events.Passed) and not session.holds_place:
            return []  # a byte now and then makes nobody younger
        session.active_s = event.now.monotonic_s
        if isinstance(event, events.Passed):
            return []
        if isinstance(event, events.TunnelAsked):
            return self._asked_to_connect(session, event, self._judged_tunnel)
        if isinstance(event, events.HandedOver):
            session.busy = session.is_handed_over = session.holds_place = True
            return []
        if isinstance(event, events.PlaceHeld):
            session.holds_place = event.holds
            return []
        if isinstance(event, events.Malformed):
            facts = {**session.facts(), "status": event.status, "why": event.why}
            return self._noted("refused", facts, event.now)
        if isinstance(event, events.Sent):
            session.busy = False
            session.down_bytes += 0 if event.only_hashed else event.n_bytes
            self._count_sent(session, event.n_bytes)
            self._source.sent(session, event.n_bytes)
            if self.stopping_since_s is not None:
                return self._close(session, "the agent is stopping", reset=False)
            return []
        session.busy = True
        # Of a body that was not read nothing tells where the next request begins.
        unread = isinstance(event, events.RequestRead) and event.body_bytes > 0
        is_known = session.ticket is not None
        try:
            if isinstance(event, events.RequestRead):
                done = self._source.asked(session, event, self.sessions, self.collectors)
                if not is_known and session.ticket is not None:
                    self._totals_of(session).sessions += 1
                return done
            return self._source.body_read(session, event, self.sessions)
        except RefusedError as error:
            last = unread or error.status in (401, 403, 429)
            facts = {**session.facts(), "status": error.status, "why": str(error)}
            answer = actions.Respond(
                session.number, error.status, f"{error}\n".encode(), "text/plain", last
            )
            return [*self._noted("refused", facts, event.now), answer]

    # Totals ----------------------------------------------------------------------------------

    def _totals_of(self, session: AgentSession) -> SessionTotals:
        """Return where what a session moves is counted."""
        assert session.ticket is not None
        host = session.next_host or self.name
        return self.totals.by_session.of(session.ticket.kind, session.ticket.collection, host)

    def _count_sent(self, session: AgentSession, n_bytes: int) -> None:
        """Count the bytes of files in an answer, or what of them had left when it broke off."""
        if session.ticket is None or not n_bytes:
            return
        totals = self._totals_of(session)
        if session.is_hashing:
            totals.hashed_bytes += n_bytes
        else:
            totals.down_bytes += n_bytes

    # Ends ------------------------------------------------------------------------------------

    def _tick(self, now: ClockReading) -> list[Action]:
        for nonce in [
            nonce for nonce, until_s in self.used_until_s.items() if until_s <= now.unix_s
        ]:
            del self.used_until_s[nonce]
        self._source.forget(now.unix_s)
        for address in [a for a, b in self._arrivals.items() if b.is_full(now.monotonic_s)]:
            del self._arrivals[address]
        self._to_go.clear()
        done: list[Action] = []
        for session in list(self.sessions.values()):
            done += self._late(session, now)
        return done

    def _late(self, session: AgentSession, now: ClockReading) -> list[Action]:
        """Return what becomes of a session that has taken too long."""
        limits, now_s = self.limits, now.monotonic_s
        waited_s, idle_s = now_s - session.since_s, now_s - session.active_s
        # From accepting it to the end of its first request's head, or to a ticket that counts.
        greeted_late = now_s - session.accepted_s >= limits.head_s
        is_known = session.ticket is not None or session.is_handed_over
        unproved = session.phase is Phase.TLS and not is_known
        if self.stopping_since_s is not None and session.phase is not Phase.ENDING:
            if now_s >= self._drained_s:
                return self._close(session, "the agent is stopping")
            if session.phase is Phase.RELAYING and idle_s >= QUIET_S:
                return self._close(session, "the agent is stopping", reset=False)
        if session.phase is Phase.FIRST_BYTE or unproved:
            why = "no request in time"
            return self._close_noted(session, why, now) if greeted_late else []
        if session.phase is Phase.HEAD and greeted_late:
            return self._refuse(session, 408, "the request took too long", now)
        is_silent = session.phase is Phase.RELAYING and not session.up_bytes
        if is_silent and waited_s >= limits.head_s and self._asks_greeting(session):
            return self._close_noted(session, "no greeting from the client in time", now)
        if session.phase is Phase.DIALLING and session.is_tunnel:
            # Its thread waits, and says so itself where nobody answers.
            hangs = waited_s >= limits.connect_s + HANGS_S
            return self._close_noted(session, "its service does not respond", now) if hangs else []
        if session.phase is Phase.DIALLING and waited_s >= limits.connect_s:
            return self._refuse(session, 504, f"{session.next_host} does not answer", now)
        is_open = session.phase in (Phase.RELAYING, Phase.TLS)
        if is_open and idle_s >= self._most_idle_s(session):
            return self._close(session, "no data for too long")
        return []

    def _stop(self, now: ClockReading) -> list[Action]:
        first = self.stopping_since_s is None
        now_s = now.monotonic_s
        if first:
            self.stopping_since_s, self._drained_s = now_s, now_s + self.limits.drain_s
        else:
            self._drained_s = min(self._drained_s, now_s)
        done: list[Action] = (
            [actions.StopListening(), actions.WriteLog("ending", {})] if first else []
        )
        for session in list(self.sessions.values()):
            goes_on = session.phase is Phase.RELAYING and not self._is_own(session)
            under_way = goes_on or session.busy
            if session.phase is not Phase.ENDING and not (first and under_way):
                done += self._close(session, "the agent is stopping", reset=session.busy)
        return done

    def _withdraw(self, read: events.CollectorsRead) -> list[Action]:
        withdrawn, gone = self.collectors - read.collectors, self.users - read.users
        self.collectors, self.users = read.collectors, read.users
        left = {name: read.users_of.get(name, frozenset()) for name in self._users_of}
        gone_of = {name: users - left[name] for name, users in self._users_of.items()}
        self._users_of = left
        done: list[Action] = [
            actions.WriteLog(
                "collectors", {"n": len(read.collectors), "withdrawn": sorted(withdrawn)}
            )
        ]
        if self._tunnel is not None:
            done.append(
                actions.WriteLog("users", {"n": len(read.users), "withdrawn": sorted(gone)})
            )
        for session in list(self.sessions.values()):
            keys, whose = (gone, "user") if session.is_tunnel else (withdrawn, "collector")
            if self._is_own(session):
                keys = gone_of[session.next_host or ""]
            if session.ticket is not None and session.ticket.issuer in keys:
                done += self._close(session, f"its {whose}'s key was withdrawn")
        return done

    def _ended(self, session: AgentSession, event: events.Ended) -> list[Action]:
        del self.sessions[session.number]
        self._counts.leave(session.origin, session.place)
        self._n_giving_way -= session.gives_way
        facts = session.facts() | {"why": event.why}
        noted = self._noted("failed", facts, event.now) if event.is_failure else []
        self._count_sent(session, event.sent_bytes)
        if session.ticket is None:
            return noted
        if session.set_aside_bytes:  # what was not sent is the ticket's again
            self._source.sent(session, event.sent_bytes)
        life = {"up_bytes": session.up_bytes, "down_bytes": session.down_bytes, "why": event.why}
        return [*noted, actions.WriteLog("ended", session.facts() | life)]

    def _end_if_done(self, now: ClockReading) -> list[Action]:
        if self.stopping_since_s is None or self.finished:
            return []
        if self.sessions and now.monotonic_s < self._drained_s + LEFT_AFTER_S:
            return []
        self.finished = True
        left = {
            "why": f"{len(self.sessions)} sessions do not end; the agent stops without "
            f"waiting for them"
        }
        return [*([actions.WriteLog("failed", left)] if self.sessions else []), actions.Exit()]

    def _close(self, session: AgentSession, why: str, *, reset: bool = True) -> list[Action]:
        session.phase = Phase.ENDING
        return [actions.EndSession(session.number, why, reset)]

    def _close_noted(self, session: AgentSession, why: str, now: ClockReading) -> list[Action]:
        return [
            *self._noted("refused", session.facts() | {"why": why}, now),
            *self._close(session, why),
        ]

    def _refuse(
        self, session: AgentSession, status: int, text: str, now: ClockReading
    ) -> list[Action]:
        noted = self._noted("refused", session.facts() | {"status": status, "why": text}, now)
        session.phase = Phase.ENDING
        return [*noted, actions.Refuse(session.number, status, text)]

    def _noted(self, what: str, facts: dict[str, Any], now: ClockReading) -> list[Action]:
        """Log what strangers can bring about, so that they cannot fill the disk with it."""
        if what == "refused":
            self.totals.refused[str(facts.get("status", "none"))] += 1
        else:
            self.totals.failed += 1
        if not self._log.take(now.monotonic_s):
            self._unlogged += 1
            return []
        if self._unlogged:
            facts = {**facts, "not_logged_before": self._unlogged}
            self._unlogged = 0
        return [actions.WriteLog(what, facts)]


def _for_service(ticket: Ticket, request: ConnectRequest) -> Ticket:
    if ticket.egress != request.host:
        raise RefusedError("the ticket is for another service", 403)
    return ticket
