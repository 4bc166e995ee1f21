"""Tickets: who may hand in, known to services by a number alone.

A ticket is a token that the organiser has signed, and a secret whose hash is in the token. Services
and bistros see the token; the secret travels inside the seal only, so that whoever has seen a token
cannot hand in in its owner's name: the destination refuses what lacks the secret.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.event.kinds import Hex, SecretHex
from datacollect.errors import ProblemError, TicketError
from datacollect.files.documents import document_name, parse_toml, read_text
from datacollect.files.fields import Document, Field
from datacollect.files.kinds import Text, Whole
from datacollect.files.toml_tables import toml_of
from datacollect.net.keys import verify_token
from datacollect.net.tickets import read_values, sign_claims

if TYPE_CHECKING:
    from os import PathLike

    from datacollect.bistro.formats.event.event import Event
    from datacollect.files.kinds import Kind
    from datacollect.net.keys import PrivateKey

ASSERTION = "datacollect-event-ticket/1"
TICKET_FORMAT, TICKET_SUFFIX = "datacollect-ticket/1", ".ticket"
ID_BYTES = 16
SECRET_BYTES = 32

# What a token says.
_CLAIMS: dict[str, Kind] = {
    "event": Hex(),
    "id": Hex(ID_BYTES),
    "secret_sha256": Hex(),
    "exp": Whole(),
}

TICKET = Document(
    "the ticket",
    "Lets one person hand in. Whoever has this file can do so in that person's name.",
    (
        Field("format", Text((TICKET_FORMAT,)), "Format and version.", required=True),
        Field("event", Hex(), "The event's id.", required=True),
        Field("token", Text(), "What services and bistros are shown.", required=True),
        Field(
            "secret", SecretHex(SECRET_BYTES), "What only the destination is told.", required=True
        ),
    ),
    remedy="the organiser of the event gives you one",
)


@dataclass(frozen=True)
class Ticket:
    """A person's ticket: what its file holds."""

    event: bytes
    token: str = field(repr=False)
    secret: bytes = field(repr=False)

    @property
    def text(self) -> str:
        """The file of the ticket."""
        values = {"event": self.event.hex(), "token": self.token, "secret": self.secret.hex()}
        return toml_of(TICKET, {"format": TICKET_FORMAT, **values})

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Ticket:
        """Read a ticket's file; raise `ProblemError` where it is none."""
        return TICKET.from_file(
            path,
            lambda tree, _: cls(**{k: v for k, v in TICKET.read(tree).items() if k != "format"}),
            lambda path, _: _tree(path),
        )


def _tree(path: str | PathLike[str]) -> dict[str, Any]:
    text = read_text(path)
    try:
        return parse_toml(text, str(path))
    except ProblemError:
        # Without the line: it may be that of the secret.
        raise ProblemError(
            f"{document_name(path)}: not valid TOML; copy the ticket again"
        ) from None


@dataclass(frozen=True)
class Admitted:
    """What a service or a bistro learns from a token.

    Attributes
    ----------
    id : str
        The ticket's number: 32 hexadecimal digits, the organiser knows whose.
    secret_sha256 : bytes
        Of the secret that the destination wants to see.
    token_sha256 : bytes
        By which the ticket is revoked.
    """

    id: str
    secret_sha256: bytes
    token_sha256: bytes


def new_ticket(event: Event, number: bytes, secret: bytes, key: PrivateKey) -> Ticket:
    """Return a ticket that counts until the event's files are collected.

    Parameters
    ----------
    event : Event
    number : bytes
        16 random bytes, by which the organiser knows whose it is.
    secret : bytes
        32 random bytes.
    key : PrivateKey
        The organiser's.
    """
    if key.public != event.organiser:
        raise ProblemError(
            f"the key must be the organiser's, {event.organiser}, got that of {key.public}"
        )
    claims = {
        "v": 1,
        "event": event.id.hex(),
        "id": number.hex(),
        "secret_sha256": hashlib.sha256(secret).hexdigest(),
        "exp": event.collect_until_s,
    }
    return Ticket(event.id, sign_claims(key, claims, ASSERTION), secret)


def admitted(token: str, event: Event, now_s: float) -> Admitted:
    """Return what a token says, if it counts for an event now.

    Parameters
    ----------
    token : str
    event : Event
        With the amendments that are known: they may have revoked it.
    now_s : float
        The clock of who judges, seconds since 1970.

    Raises
    ------
    TicketError
        It is of another event or organiser, has expired, or is revoked.
    """
    payload = verify_token(token, event.organiser, ASSERTION)
    claims = read_values(payload, _CLAIMS, "ticket")
    if claims["event"] != event.id:
        raise TicketError(f"the ticket is for another event, {claims['event'].hex()[:16]}…")
    if now_s >= claims["exp"]:
        raise TicketError(f"the ticket has expired {now_s - claims['exp']:.0f} s ago")
    token_sha256 = token_hash(token)
    if token_sha256 in event.revoked:
        raise TicketError("the ticket is revoked; ask the organiser for the new one")
    return Admitted(claims["id"].hex(), claims["secret_sha256"], token_sha256)


def token_hash(token: str) -> bytes:
    """Return the hash by which a ticket is revoked, of its token."""
    return hashlib.sha256(token.encode()).digest()


def owned(ticket: Ticket, event: Event) -> Admitted:
    """Return what a ticket's token says, where its secret is the token's, too.

    Whether it has expired, services say: the clock of who holds it proves nothing.

    Raises
    ------
    TicketError
        As `admitted`, or its secret is another's: the destination would refuse what it seals.
    """
    found = admitted(ticket.token, event, 0)
    if hashlib.sha256(ticket.secret).digest() != found.secret_sha256:
        raise TicketError("the ticket is damaged: its secret is not that of its token")
    return found


def read_owned(
    path: str | PathLike[str], event: Event, remedy: str = ""
) -> tuple[Ticket, Admitted]:
    """Read a ticket's file; return it, and what its token says for an event.

    Raises
    ------
    ProblemError
        It is no ticket, or does not count; `remedy` ends the message.
    """
    ticket = Ticket.from_file(path)
    try:
        return ticket, owned(ticket, event)
    except TicketError as error:
        raise ProblemError(f"{document_name(path)}: {error}{remedy}") from None
