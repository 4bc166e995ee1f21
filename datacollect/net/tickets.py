"""Tickets: what a collector's key allows an agent to do, for whom, how much, how long.

A source ticket lets its holder list and read files of one agent, as often as it likes until it
expires. A relay ticket opens one connection through one agent to one next host, once, within a
minute. A tunnel ticket opens one connection to one service that an agent's file names, once, within
a minute. A spool ticket lets its holder have pieces kept at one agent, and fetch them; a sealed
ticket lets a relay have pieces of one agent's files, sealed, and nothing else. All are PASETO
v4.public tokens; what they are for is their implicit assertion, so that none counts as another.
Nothing here reads a clock: times are given, in seconds since 1970.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, TicketError
from datacollect.files.documents import peer_json
from datacollect.files.kinds import shown
from datacollect.net.keys import sign_token, unverified_payload, verify_token

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from datacollect.files.kinds import Kind
    from datacollect.net.keys import PrivateKey

SOURCE, RELAY, TUNNEL = "source", "relay", "tunnel"
SPOOL, SEALED = "spool", "sealed"
KINDS = (SOURCE, RELAY, TUNNEL, SPOOL, SEALED)
ASSERTIONS = {kind: f"datacollect-{kind}-ticket/1" for kind in KINDS}

# How long a ticket may hold, in seconds, and how far ahead of the agent's clock it may be issued:
# the collector knows that clock to within a round trip.
LONGEST_S = {
    **dict.fromkeys((SOURCE, SPOOL, SEALED), 24 * 3600.0),
    **dict.fromkeys((RELAY, TUNNEL), 60.0),
}
AHEAD_S = 5.0

_COLLECTORS = ("collectors", "`collectors`")

NONCE_BYTES = 16
MOST_AGENTS = 8
MOST_NAMES = 1000
# Whole numbers in JSON are exact up to here everywhere.
NUMBER_STOP = 2**62


def new_nonce() -> str:
    """Return 16 random bytes in Base64."""
    return base64.b64encode(os.urandom(NONCE_BYTES)).decode()


@dataclass(frozen=True)
class Ticket:
    """Contents of a ticket.

    Attributes
    ----------
    issuer : str
        The collector's public key.
    audience : str
        The agent that it is for.
    kind : str
        ``"source"``, ``"relay"``, ``"tunnel"``, ``"spool"`` or ``"sealed"``.
    collection : str
        Which collection, as the collector calls it.
    issued_s, expires_s : float
        By the agent's clock, seconds since 1970.
    inventory, source : str or None
        Which list of files, and whose; for the collector's own records and the agent's log.
    files : tuple of str or None
        Patterns of the files that may be read; None: all.
    via : tuple of str
        The relays between collector and source.
    egress : str or None
        Of relay tickets: the next host, as the agent's ``connect_to`` names it. Of tunnel tickets:
        the service, as its ``to`` names it.
    most_bytes : int or None
        Bytes that may be moved with it; None: any number.
    most_sockets : int
        Connections that may be open with it at a time; of relay tickets: of this collection.
    nonce : str
        16 random bytes in Base64, which distinguish it from all others.
    agents : tuple of str
        Of relay tickets: the chain of agents from the first to this one.
    stays : bool
        Of relay tickets: whether the connection stays open however long nothing passes, as that of
        a tunnel. Older agents do not know it, and refuse it.
    """

    issuer: str
    audience: str
    kind: str
    collection: str
    issued_s: float
    expires_s: float
    inventory: str | None = None
    source: str | None = None
    files: tuple[str, ...] | None = None
    via: tuple[str, ...] = ()
    egress: str | None = None
    most_bytes: int | None = None
    most_sockets: int = 1
    nonce: str = field(default_factory=new_nonce)
    agents: tuple[str, ...] = ()
    stays: bool = False


def sign_ticket(ticket: Ticket, key: PrivateKey) -> str:
    """Return the token of a ticket, signed by its issuer.

    Examples
    --------
    >>> from datacollect.net.keys import new_private_key
    >>> key = new_private_key()
    >>> ticket = Ticket(key.public, "S1", "source", "c1", issued_s=1000.0, expires_s=1060.0)
    >>> read_ticket(sign_ticket(ticket, key), "source", [key.public]) == ticket
    True
    """
    return sign_claims(key, _claims(ticket), ASSERTIONS[ticket.kind])


def read_ticket(token: str, kind: str, issuers: Collection[str], table: str = "tunnel") -> Ticket:
    """Return the ticket of a token that one of the issuers has signed for this kind of use.

    Those of tunnel tickets are the users of a table of an agent's file, of others its collectors.

    Raises
    ------
    TicketError
        Nobody known has signed it, or it was signed for something else, or says what no ticket
        can say.
    """
    whose, place = ("users", f"`users` of [{table}]") if kind == TUNNEL else _COLLECTORS
    claims = signed_claims(token, ASSERTIONS[kind], issuers, whose, place)
    ticket = _ticket(claims)
    if ticket.kind != kind:
        raise TicketError(f"this is not a {kind} ticket")
    return ticket


def judge_ticket(ticket: Ticket, agent: str, now_s: float) -> None:
    """Raise `TicketError` unless the ticket counts at this agent now.

    Parameters
    ----------
    ticket : Ticket
    agent : str
        Name of the agent that judges.
    now_s : float
        Its clock, seconds since 1970.
    """
    if ticket.audience != agent:
        raise TicketError(
            f"the ticket is for agent {shown(ticket.audience)}, this agent is {shown(agent)}"
        )
    if ticket.source not in (None, agent) and ticket.kind in (SOURCE, SEALED):
        raise TicketError(
            f"the ticket is for files of {shown(ticket.source)}, this agent is {shown(agent)}"
        )
    if ticket.kind in (SPOOL, SEALED) and ticket.most_bytes is not None:
        raise TicketError(f"a {ticket.kind} ticket must have no limit of bytes")
    require_in_time(ticket.issued_s, ticket.expires_s, now_s, LONGEST_S[ticket.kind])
    if ticket.kind == RELAY:
        _judge_route(ticket, agent)


def sign_claims(key: PrivateKey, claims: Mapping[str, Any], assertion: str) -> str:
    """Return the token of claims, signed for a use."""
    return sign_token(key, claims_payload(claims), assertion)


def claims_payload(claims: Mapping[str, Any]) -> bytes:
    """Return the bytes of claims that are signed: JSON in their order, without spaces."""
    return json.dumps(claims, separators=(",", ":"), ensure_ascii=False).encode()


def signed_claims(
    token: str, assertion: str, issuers: Collection[str], whose: str, place: str
) -> dict[str, Any]:
    """Return the claims of a token that one of the issuers has signed for a use.

    Parameters
    ----------
    token, assertion : str
    issuers : collection of str
        Public keys.
    whose, place : str
        What messages call the issuers, and where in an agent's file they stand.

    Raises
    ------
    TicketError
        Nobody of them has signed it, or it was signed for something else.
    """
    issuer = read_claims(unverified_payload(token)).get("iss")
    if not isinstance(issuer, str) or issuer not in issuers:
        raise TicketError(
            f"the ticket's issuer is not one of the agent's {whose}; write the public key "
            f"(`datacollect keys show` prints it) into {place} of the agent's file, and send it "
            "SIGHUP"
        )
    # Only what the signature covers counts from here on.
    claims = read_claims(verify_token(token, issuer, assertion))
    if claims.get("iss") != issuer:
        raise TicketError("the token's payload names another issuer than the key that signed it")
    return claims


def require_in_time(issued_s: float, expires_s: float, now_s: float, longest_s: float) -> None:
    """Raise `TicketError` unless a ticket counts now, by the agent's clock."""
    life_s = expires_s - issued_s
    if not 0 < life_s <= longest_s:
        raise TicketError(
            f"a ticket may be valid for at most {longest_s:g} s, this one is valid for {life_s:g} s"
        )
    if issued_s > now_s + AHEAD_S:
        raise TicketError(
            f"the ticket was issued {issued_s - now_s:.0f} s in the future, by the agent's clock"
        )
    if now_s >= expires_s:
        raise TicketError(f"the ticket expired {now_s - expires_s:.0f} s ago")


def take_fields(tree: dict[str, Any], fields: Collection[str], what: str) -> None:
    """Take the version out of a ticket's claims; raise `TicketError` where other fields are left.

    Parameters
    ----------
    tree : dict
    fields : collection of str
    what : str
        Whose fields they are.
    """
    if tree.pop("v", None) != 1:
        raise TicketError(
            "the ticket's version must be 1; is its issuer's program newer than the agent?"
        )
    if odd := tree.keys() ^ set(fields):
        raise TicketError(f"the token's fields are not {what}: {shown(', '.join(sorted(odd)))}")


def _judge_route(ticket: Ticket, agent: str) -> None:
    if not ticket.agents or len(ticket.agents) > MOST_AGENTS or ticket.agents[-1] != agent:
        raise TicketError(
            f"the ticket's agents must be a chain of at most {MOST_AGENTS} that ends with "
            f"{shown(agent)}"
        )
    if len({*ticket.agents, ticket.egress}) <= len(ticket.agents):
        raise TicketError("the ticket's route is a loop: it passes an agent twice")


def _claims(ticket: Ticket) -> dict[str, Any]:
    return {
        "v": 1,
        "iss": ticket.issuer,
        "aud": ticket.audience,
        "kind": ticket.kind,
        "collection": ticket.collection,
        "inventory": ticket.inventory,
        "source": ticket.source,
        "files": None if ticket.files is None else list(ticket.files),
        "via": list(ticket.via),
        "egress": ticket.egress,
        "most_bytes": ticket.most_bytes,
        "most_sockets": ticket.most_sockets,
        "nonce": ticket.nonce,
        "iat": ticket.issued_s,
        "exp": ticket.expires_s,
        "agents": list(ticket.agents),
        **({"stays": True} if ticket.stays else {}),
    }


def read_claims(payload: bytes) -> dict[str, Any]:
    """Return the JSON object that a token's payload is; raise `TicketError` where it is none."""
    tree = peer_json(payload, has_unique_keys=True)
    if not isinstance(tree, dict):
        raise TicketError("the token's payload is not a JSON object")
    return tree


def read_values(payload: bytes, kinds: Mapping[str, Kind], what: str) -> dict[str, Any]:
    """Return the claims of a token's payload, each read by its kind.

    Parameters
    ----------
    payload : bytes
    kinds : mapping from str to Kind
        All of the claims but the version, which is 1.
    what : str
        Whose claims they are, such as "ticket".

    Raises
    ------
    TicketError
        There are others, or a kind takes no such value.

    Examples
    --------
    >>> from datacollect.files.kinds import Whole
    >>> read_values(b'{"v": 1, "size": 7}', {"size": Whole()}, "receipt")
    {'size': 7}
    """
    claims = read_claims(payload)
    try:
        if claims.keys() != {"v", *kinds} or claims["v"] != 1:
            raise ProblemError(f"the token's fields are not those of a {what}")
        return {name: kind.read(claims[name], name) for name, kind in kinds.items()}
    except ProblemError as error:
        raise TicketError(f"the {what} does not count: {error}") from None


def _ticket(tree: dict[str, Any]) -> Ticket:
    stays = tree.pop("stays", None)
    _require(stays is None or (stays is True and tree.get("kind") == RELAY), "stays")
    take_fields(tree, _claims(_EMPTY).keys() - {"v"}, "a ticket's")
    for name in ("iss", "aud", "kind", "collection"):
        _require(isinstance(tree[name], str) and tree[name], name)
    for name in ("inventory", "source", "egress"):
        _require(tree[name] is None or (isinstance(tree[name], str) and tree[name]), name)
    for name in ("iat", "exp"):
        _require(is_number(tree[name]), name)
    for name, least in (("most_bytes", 0), ("most_sockets", 1)):
        allowed = name == "most_bytes" and tree[name] is None
        _require(allowed or (type(tree[name]) is int and least <= tree[name] < NUMBER_STOP), name)
    _require(is_nonce(tree["nonce"]), "nonce")
    return Ticket(
        issuer=tree["iss"],
        audience=tree["aud"],
        kind=tree["kind"],
        collection=tree["collection"],
        issued_s=float(tree["iat"]),
        expires_s=float(tree["exp"]),
        inventory=tree["inventory"],
        source=tree["source"],
        files=None if tree["files"] is None else _names(tree, "files"),
        via=_names(tree, "via"),
        egress=tree["egress"],
        most_bytes=tree["most_bytes"],
        most_sockets=tree["most_sockets"],
        nonce=tree["nonce"],
        agents=_names(tree, "agents"),
        stays=stays is True,
    )


def _names(tree: dict[str, Any], key: str) -> tuple[str, ...]:
    names = tree[key]
    _require(isinstance(names, list) and len(names) <= MOST_NAMES, key)
    _require(all(isinstance(name, str) and name for name in names), key)
    return tuple(names)


def is_number(value: Any) -> bool:
    """Return whether a claim is a number that everybody reads alike, at least 0."""
    return type(value) in (int, float) and 0 <= value < NUMBER_STOP


def is_nonce(value: Any) -> bool:
    """Return whether a claim is what `new_nonce` makes."""
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return False
    # One text for one nonce: Base64 of other lengths has spare bits that could vary.
    return len(raw) == NONCE_BYTES and base64.b64encode(raw).decode() == value


def _require(fits: Any, name: str) -> None:
    if not fits:
        raise TicketError(f"malformed field {name}")


_EMPTY = Ticket("", "", SOURCE, "", 0.0, 0.0, nonce="")
