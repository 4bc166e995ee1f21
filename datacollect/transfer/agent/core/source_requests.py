"""Authorization of requests over TLS by source tickets, and their responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import RefusedError, TicketError
from datacollect.net.connect import token_of
from datacollect.net.tickets import SOURCE, judge_ticket, read_ticket
from datacollect.transfer.agent.core import actions
from datacollect.transfer.agent.core.requests import (
    FACTS,
    WantsBytes,
    WantsConfirmation,
    WantsFile,
    WantsHashes,
    WantsList,
    WantsSessions,
    require_route,
    wish_of,
)
from datacollect.transfer.protocol.messages import FEATURES, SPOOLS, AgentFacts, facts_body
from datacollect.transfer.protocol.patterns import matches

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from datacollect.net.tickets import Ticket
    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.agent.core.actions import Action
    from datacollect.transfer.agent.core.events import BodyRead, RequestRead
    from datacollect.transfer.agent.core.requests import Wish
    from datacollect.transfer.agent.core.sessions import AgentSession


# What was used of a ticket is kept longer than it holds: a clock set back must not revive it.
CLOCK_SET_BACK_S = 600.0


class SourceRequests:
    """Authorization of requests by tickets, and how many bytes of them are spent."""

    def __init__(self, config: AgentConfig, version: str) -> None:
        self._name = config.name
        self._version = version
        self._serves = config.serve is not None
        self._relays_to = tuple(config.connect_to)
        self._features = FEATURES if config.spool is None else (*FEATURES, SPOOLS)
        # By nonce: until when to keep them, bytes sent or promised.
        self._spent_bytes: dict[str, tuple[float, int]] = {}

    def asked(
        self,
        session: AgentSession,
        event: RequestRead,
        sessions: Mapping[int, AgentSession],
        collectors: Collection[str],
    ) -> list[Action]:
        """Judge the head of a request: return the answer, or let its body be read.

        Raises
        ------
        RefusedError
            There is no answer; the body, if any, stays unread.
        """
        if require_route(event.method, event.target, event.body_bytes) == FACTS:
            return [actions.Respond(session.number, 200, self._facts(event.now.unix_s))]
        ticket = self._ticket_of(session, event, sessions, collectors)
        if event.body_bytes:
            session.asked = event
            return [actions.ReadBody(session.number, event.body_bytes)]
        return [self._answer(session, event, b"", ticket, sessions)]

    def body_read(
        self, session: AgentSession, event: BodyRead, sessions: Mapping[int, AgentSession]
    ) -> list[Action]:
        """Return the answer to a request whose body is there; raise `RefusedError` for none."""
        asked, ticket = session.asked, session.ticket
        if asked is None or ticket is None:  # nobody has asked for a body
            return []
        session.asked = None
        # To send a body may take long: the ticket must count still.
        self._judge(ticket, event.now.unix_s)
        return [self._answer(session, asked, event.body, ticket, sessions)]

    def sent(self, session: AgentSession, n_bytes: int) -> None:
        """Count the bytes that were sent, in place of those that were set aside for them."""
        if session.ticket is not None:
            self._spend(session.ticket, n_bytes - session.set_aside_bytes)
        session.set_aside_bytes = 0

    def forget(self, unix_s: float) -> None:
        """Forget tickets that have expired, and cannot count again."""
        for nonce in [key for key, (until_s, _) in self._spent_bytes.items() if until_s <= unix_s]:
            del self._spent_bytes[nonce]

    def _facts(self, unix_s: float) -> bytes:
        return facts_body(
            AgentFacts(
                self._name, self._version, unix_s, self._serves, self._relays_to, self._features
            )
        )

    def _answer(
        self,
        session: AgentSession,
        event: RequestRead,
        body: bytes,
        ticket: Ticket,
        sessions: Mapping[int, AgentSession],
    ) -> Action:
        wish = wish_of(event.method, event.target, body)
        if isinstance(wish, WantsSessions):
            return actions.TellSessions(session.number, _rows(ticket, sessions.values()))
        if not self._serves:
            raise RefusedError("this agent only relays; it serves no files", 404)
        return self._served(session, wish, ticket, event)

    def _judge(self, ticket: Ticket, unix_s: float) -> None:
        try:
            judge_ticket(ticket, self._name, unix_s)
        except TicketError as error:
            raise RefusedError(f"the ticket does not count: {error}", 401) from None

    def _ticket_of(
        self,
        session: AgentSession,
        event: RequestRead,
        sessions: Mapping[int, AgentSession],
        collectors: Collection[str],
    ) -> Ticket:
        """Return the ticket that the request brings, or the session's, if it counts now."""
        token = token_of(event.headers.get("authorization"))
        try:
            if token is None and session.ticket is None:
                raise TicketError("no ticket is given in the header Authorization")
            ticket = session.ticket if token is None else read_ticket(token, SOURCE, collectors)
        except TicketError as error:
            raise RefusedError(f"the ticket does not count: {error}", 401) from None
        assert ticket is not None
        self._judge(ticket, event.now.unix_s)
        if not _is_held(ticket, session) and _n_holding(ticket, sessions) >= ticket.most_sockets:
            raise RefusedError("as many connections are open as the ticket allows", 429)
        session.ticket = ticket
        return ticket

    def _served(
        self, session: AgentSession, wish: Wish, ticket: Ticket, event: RequestRead
    ) -> Action:
        if isinstance(wish, WantsList):
            return actions.ListFiles(
                session.number, wish.after, wish.most, ticket.files, wish.detail
            )
        if isinstance(wish, WantsBytes | WantsHashes):
            self._require_allowed(ticket, (segment.file.path for segment in wish.read.segments))
            self._require_left(ticket, wish.read.n_bytes)
            session.set_aside_bytes = wish.read.n_bytes
            self._spend(ticket, wish.read.n_bytes)
            session.is_hashing = isinstance(wish, WantsHashes)
            if isinstance(wish, WantsBytes):
                return actions.SendSegments(session.number, wish.read)
            return actions.HashSegments(session.number, wish.read)
        if isinstance(wish, WantsConfirmation):
            self._require_allowed(ticket, (file.path for file in wish.files))
            return actions.ConfirmFiles(session.number, wish.files)
        assert isinstance(wish, WantsFile)
        self._require_allowed(ticket, (wish.path,))
        session.is_hashing = False
        headers = event.headers
        left_bytes = self._left_bytes(ticket)
        if left_bytes is not None:
            # How much will be sent is not known yet; another session must not be promised it, too.
            session.set_aside_bytes = left_bytes
            self._spend(ticket, left_bytes)
        return actions.SendFile(
            session.number,
            wish.path,
            wish.with_body,
            headers.get("range"),
            headers.get("if-range"),
            left_bytes,
        )

    def _require_allowed(self, ticket: Ticket, paths: Iterable[str]) -> None:
        if not all(matches(path, ticket.files) for path in paths):
            raise RefusedError("the ticket is for other files", 403)

    def _require_left(self, ticket: Ticket, n_bytes: int) -> None:
        left_bytes = self._left_bytes(ticket)
        if left_bytes is not None and n_bytes > left_bytes:
            raise RefusedError("the ticket's bytes are used up", 403)

    def _left_bytes(self, ticket: Ticket) -> int | None:
        if ticket.most_bytes is None:
            return None
        return max(ticket.most_bytes - self._spent_bytes.get(ticket.nonce, (0.0, 0))[1], 0)

    def _spend(self, ticket: Ticket, n_bytes: int) -> None:
        spent_bytes = self._spent_bytes.get(ticket.nonce, (0.0, 0))[1]
        until_s = ticket.expires_s + CLOCK_SET_BACK_S
        self._spent_bytes[ticket.nonce] = (until_s, spent_bytes + n_bytes)


def _rows(ticket: Ticket, sessions: Iterable[AgentSession]) -> tuple[dict[str, object], ...]:
    """Return facts of the sessions that tickets of the same collector have opened."""
    return tuple(
        {
            "session": other.number,
            "kind": other.ticket.kind,
            "nonce": other.ticket.nonce,
            "up_bytes": other.up_bytes,
            "down_bytes": other.down_bytes,
        }
        for other in sessions
        if other.ticket is not None and other.ticket.issuer == ticket.issuer
    )


def _is_held(ticket: Ticket, session: AgentSession) -> bool:
    return session.ticket is not None and session.ticket.nonce == ticket.nonce


def _n_holding(ticket: Ticket, sessions: Mapping[int, AgentSession]) -> int:
    return sum(_is_held(ticket, session) for session in sessions.values())
