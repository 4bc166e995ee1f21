"""Requests that handlers of the agent's own answer: judged by ticket, read to their end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, RefusedError, TicketError
from datacollect.net.connect import token_of
from datacollect.net.tickets import judge_ticket, read_ticket
from datacollect.transfer.spool.messages import MOST_BODY_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from datacollect.net.tickets import Ticket
    from datacollect.transfer.agent.shell.handling import Exchange, Handler

TEXT, OCTETS, JSON = "text/plain", "application/octet-stream", "application/json"


def by_ticket(
    kind: str,
    agent: str,
    collectors: Callable[[], Collection[str]],
    answer: Callable[[Exchange, Ticket, bytes], tuple[str, bytes]],
) -> Handler:
    """Return a handler of POST requests that tickets of one kind allow.

    Parameters
    ----------
    kind, agent : str
    collectors : callable
        Returns whose tickets count now.
    answer : callable
        Takes a request, its ticket and its body; returns the kind of the answer, and the answer. It
        may raise `RefusedError`.
    """

    def handle(exchange: Exchange) -> None:
        try:
            ticket = _ticket_of(exchange, kind, agent, collectors())
            content_type, body = answer(exchange, ticket, _body_of(exchange))
        except RefusedError as error:
            exchange.answer(error.status, [("Content-Type", TEXT)], f"{error}\n".encode())
        except ProblemError as error:
            exchange.answer(400, [("Content-Type", TEXT)], f"{error}\n".encode())
        else:
            exchange.answer(200, [("Content-Type", content_type)], body)

    return handle


def _ticket_of(exchange: Exchange, kind: str, agent: str, collectors: Collection[str]) -> Ticket:
    """Return the ticket that a request brings, if it counts now."""
    if exchange.method != "POST":
        raise RefusedError("only POST is allowed here", 405)
    if exchange.body_bytes > MOST_BODY_BYTES:
        raise RefusedError(f"a request's body has at most {MOST_BODY_BYTES} bytes", 413)
    token = token_of(exchange.headers.get("authorization"))
    try:
        if token is None:
            raise TicketError("no ticket is given in the header Authorization")
        ticket = read_ticket(token, kind, collectors)
        judge_ticket(ticket, agent, time.time())
    except TicketError as error:
        raise RefusedError(f"the ticket does not count: {error}", 401) from None
    return ticket


def _body_of(exchange: Exchange) -> bytes:
    parts = []
    while part := exchange.read():
        parts.append(part)
    return b"".join(parts)
