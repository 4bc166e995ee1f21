"""Tickets: who may hand in, known to services by a number alone.

A ticket is a key, and a token by which the organiser says that this key may hand in. Services and
bistros see the token; the key stays with its owner, who signs for each of them what is to be taken.
So whoever has seen a token, or a signature for somebody else, can do nothing with it.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.bistro.formats.event.kinds import Hex, SecretHex
from datacollect.bistro.formats.log.one_meaning import peer_json
from datacollect.errors import ProblemError, TicketError
from datacollect.files.documents import document_name, parse_toml, read_text
from datacollect.files.fields import Document, Field
from datacollect.files.kinds import Text, Whole
from datacollect.files.toml_tables import toml_of
from datacollect.net.keys import (
    KEY_BYTES,
    SIGNATURE_BYTES,
    PrivateKey,
    joined_token,
    public_key_bytes,
    signature_of,
    unverified_payload,
    verify_token,
)
from datacollect.net.kinds import PublicKey
from datacollect.net.tickets import claims_payload, read_values, sign_claims

if TYPE_CHECKING:
    from os import PathLike

    from datacollect.bistro.formats.event.event import Event
    from datacollect.files.kinds import Kind

ASSERTION = "datacollect-event-ticket/2"
TICKET_FORMAT, TICKET_SUFFIX = "datacollect-ticket/2", ".ticket"
# Of events of version 1: a word that whoever heard it could use.
OLDER_FORMAT = "datacollect-ticket/1"
ID_BYTES = 16
# Behind a page's address: what follows never leaves the browser.
LINK_MARK = "#t="
# The ticket's seed and the organiser's signature; the number where it is not that of the key.
_LINKED_BYTES = KEY_BYTES + SIGNATURE_BYTES
_NUMBER = b"datacollect-ticket-number/1\n"

# What a token says.
_CLAIMS: dict[str, Kind] = {
    "event": Hex(),
    "id": Hex(ID_BYTES),
    "key": PublicKey(),
    "exp": Whole(),
}

TICKET = Document(
    "the ticket",
    "Lets one person hand in. Anyone who has this file can do so in that person's name.",
    (
        Field("format", Text((TICKET_FORMAT,)), "Format and version.", required=True),
        Field("event", Hex(), "The event's id.", required=True),
        Field(
            "token",
            Text(),
            "The part of the ticket that services and bistros are shown.",
            required=True,
        ),
        Field(
            "seed",
            SecretHex(KEY_BYTES),
            "Secret seed of the ticket's key: shown to nobody.",
            required=True,
        ),
    ),
    remedy="the organiser of the event gives you one",
)


@dataclass(frozen=True)
class Ticket:
    """A person's ticket: what its file holds."""

    event: bytes
    token: str = field(repr=False)
    seed: bytes = field(repr=False)

    @cached_property
    def key(self) -> PrivateKey:
        """Return what its owner signs with."""
        return PrivateKey(self.seed)

    @cached_property
    def number(self) -> bytes:
        """Say what it is known by, as its token says: 16 bytes; `owned` tells whether it counts."""
        number: bytes = read_values(unverified_payload(self.token), _CLAIMS, "ticket")["id"]
        return number

    @property
    def text(self) -> str:
        """The file of the ticket."""
        values = {"event": self.event.hex(), "token": self.token, "seed": self.seed.hex()}
        return toml_of(TICKET, {"format": TICKET_FORMAT, **values})

    @property
    def link(self) -> str:
        """Return what a link to the event's page ends with: the ticket in 131 characters.

        It holds what the event's file does not say: the seed and the organiser's signature; and
        the number, where that is not the one of the key.
        """
        number = self.number
        told = self.seed + signature_of(self.token)
        if number != number_of(self.key.public):
            told += number
        return LINK_MARK + _base64(told)

    @classmethod
    def from_link(cls, link: str, event: Event) -> Ticket:
        """Read the ticket of a link, the whole address or its end; `owned` tells if it counts.

        Raises
        ------
        TicketError
            The link is none of a ticket, or was cut.
        """
        text = link.partition(LINK_MARK)[2].strip()
        try:
            told = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        except ValueError:
            told = b""
        if _base64(told) != text:  # written in another way, which others would refuse
            told = b""
        number = told[_LINKED_BYTES:]
        if len(told) < _LINKED_BYTES or len(number) not in (0, ID_BYTES):
            raise TicketError(
                f"the link is damaged: {LINK_MARK} must be followed by "
                f"{-(-_LINKED_BYTES * 4 // 3)} letters, got {len(text)}; copy it again, whole"
            )
        seed = told[:KEY_BYTES]
        public = PrivateKey(seed).public
        payload = claims_payload(_claims_of(event, number or number_of(public), public))
        return cls(event.id, joined_token(payload, told[KEY_BYTES:_LINKED_BYTES]), seed)

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Ticket:
        """Read a ticket's file; raise `ProblemError` where it is none."""
        return TICKET.from_file(
            path,
            lambda tree, _: cls(**{k: v for k, v in _values(tree).items() if k != "format"}),
            lambda path, _: _tree(path),
        )


def _base64(told: bytes) -> str:
    return base64.urlsafe_b64encode(told).rstrip(b"=").decode()


def _values(tree: dict[str, Any]) -> dict[str, Any]:
    if tree.get("format") == OLDER_FORMAT:
        raise ProblemError(
            f"format must be {TICKET_FORMAT}, got {OLDER_FORMAT}: a ticket of an older kind, which "
            "is no longer accepted; ask the organiser for a new one"
        )
    return TICKET.read(tree)


def _tree(path: str | PathLike[str]) -> dict[str, Any]:
    text = read_text(path)
    try:
        return parse_toml(text, str(path))
    except ProblemError:
        # Without the line: it may be that of the seed.
        raise ProblemError(
            f"{document_name(path)}: not valid TOML; copy the ticket again"
        ) from None


class Shown(NamedTuple):
    """Proof of a ticket in a request: its token, and what its key has signed."""

    token: str
    signature: bytes = b""


@dataclass(frozen=True)
class Admitted:
    """Facts that a service or a bistro learns from a token.

    Attributes
    ----------
    id : str
        The ticket's number: 32 hexadecimal digits, the organiser knows whose.
    key : str
        The ticket's public key: what is handed in with it is signed by it.
    token_sha256 : bytes
        By which the ticket is revoked.
    """

    id: str
    key: str
    token_sha256: bytes


def new_ticket(event: Event, number: bytes, seed: bytes, organiser: PrivateKey) -> Ticket:
    """Return a ticket that counts until the event's files are collected.

    Parameters
    ----------
    event : Event
    number : bytes
        16 random bytes, by which the organiser knows whose it is.
    seed : bytes
        32 random bytes: the ticket's key.
    organiser : PrivateKey
    """
    if organiser.public != event.organiser:
        raise ProblemError(
            f"the key must be the organiser's, {event.organiser}, got that of {organiser.public}"
        )
    claims = _claims_of(event, number, PrivateKey(seed).public)
    return Ticket(event.id, sign_claims(organiser, claims, ASSERTION), seed)


def number_of(key: str) -> bytes:
    """Return the number of a ticket whose link need not carry one: 16 bytes of its key's hash."""
    return hashlib.sha256(_NUMBER + public_key_bytes(key)).digest()[:ID_BYTES]


def _claims_of(event: Event, number: bytes, key: str) -> dict[str, Any]:
    """Return what the organiser signs, in its order: links are read by signing the same."""
    return {
        "v": 1,
        "event": event.id.hex(),
        "id": number.hex(),
        "key": key,
        "exp": event.collect_until_s,
    }


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
    if not any(claims["id"]):
        raise TicketError("the ticket's number is all zeros, which stands for no ticket")
    if now_s >= claims["exp"]:
        raise TicketError(f"the ticket has expired {now_s - claims['exp']:.0f} s ago")
    token_sha256 = token_hash(token)
    if token_sha256 in event.revoked:
        raise TicketError("the ticket is revoked; ask the organiser for the new one")
    return Admitted(claims["id"].hex(), claims["key"], token_sha256)


def key_of_token(token: str) -> str:
    """Return the public key that a token names, whoever has signed it.

    Raises
    ------
    TicketError
        It is no token of a ticket.
    """
    tree = peer_json(unverified_payload(token))
    key = tree.get("key") if isinstance(tree, dict) else None
    if not isinstance(key, str):
        raise TicketError("the ticket is damaged: its token names no key")
    return key


def token_hash(token: str) -> bytes:
    """Return the hash by which a ticket is revoked, of its token."""
    return hashlib.sha256(token.encode()).digest()


def owned(ticket: Ticket, event: Event) -> Admitted:
    """Return what a ticket's token says, where its key is the one that the token names.

    Whether it has expired, services say: the clock of who holds it proves nothing.

    Raises
    ------
    TicketError
        As `admitted`, or its key is another: nobody would take what it signs.
    """
    found = admitted(ticket.token, event, 0)
    if ticket.key.public != found.key:
        raise TicketError("the ticket is damaged: its key is not the one that its token names")
    return found


def read_ticket(path: str | PathLike[str], event: Event) -> Ticket:
    """Read the file of a ticket, or of a link to the event's page that brings one.

    Raises
    ------
    ProblemError
        It is neither, or was cut.
    """
    text = read_text(path)
    if LINK_MARK not in text or "\n" in text.strip():
        return Ticket.from_file(path)
    try:
        return Ticket.from_link(text, event)
    except TicketError as error:
        raise ProblemError(f"{document_name(path)}: {error}") from None


def read_owned(
    path: str | PathLike[str], event: Event, remedy: str = ""
) -> tuple[Ticket, Admitted]:
    """Read a ticket's file; return it, and what its token says for an event.

    Raises
    ------
    ProblemError
        It is no ticket, or does not count; `remedy` ends the message.
    """
    ticket = read_ticket(path, event)
    try:
        return ticket, owned(ticket, event)
    except TicketError as error:
        raise ProblemError(f"{document_name(path)}: {error}{remedy}") from None
