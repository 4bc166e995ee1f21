"""Tickets for measuring: which test an operator's key allows between two hosts, once.

A ticket is for one of the two ends. Ends are named by the fingerprints of their agents'
certificates, which are the same under whatever names operators know the hosts. Both ends' tickets
of one test have the same nonce. A ticket of another kind never counts as one, nor the other way
round: what it is for is its implicit assertion. Nothing here reads a clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datacollect.errors import TicketError
from datacollect.files.kinds import shown
from datacollect.net.tickets import (
    NUMBER_STOP,
    is_nonce,
    is_number,
    new_nonce,
    require_in_time,
    sign_claims,
    signed_claims,
    take_fields,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from datacollect.net.keys import PrivateKey

ASSERTION = "datacollect-measure-ticket/1"
LONGEST_S = 3600.0


@dataclass(frozen=True)
class MeasureTicket:
    """Contents of a ticket for measuring.

    Attributes
    ----------
    issuer : str
        The operator's public key.
    audience : str
        Fingerprint of the agent that it is for, one of the two ends.
    sender, receiver : str
        Fingerprints of the two ends: data go from the first to the second.
    tools : tuple of str
        What may be run.
    most_bytes : int
        Payload that the test may send in all.
    issued_s, expires_s : float
        By the agent's clock, seconds since 1970.
    nonce : str
        16 random bytes in Base64: the test.

    Examples
    --------
    >>> from datacollect.net.keys import new_private_key
    >>> key = new_private_key()
    >>> ticket = MeasureTicket(key.public, "f1", "f1", "f2", ("tcp",), 1000, 0.0, 60.0)
    >>> read_measure_ticket(sign_measure_ticket(ticket, key), [key.public]) == ticket
    True
    """

    issuer: str
    audience: str
    sender: str
    receiver: str
    tools: tuple[str, ...]
    most_bytes: int
    issued_s: float
    expires_s: float
    nonce: str = field(default_factory=new_nonce)


def sign_measure_ticket(ticket: MeasureTicket, key: PrivateKey) -> str:
    """Return the token of a ticket, signed by its issuer."""
    return sign_claims(key, _claims(ticket), ASSERTION)


def read_measure_ticket(token: str, operators: Collection[str]) -> MeasureTicket:
    """Return the ticket of a token that one of the operators has signed for measuring.

    Raises
    ------
    TicketError
        Nobody known has signed it, or it was signed for something else, or says what no ticket
        can say.
    """
    place = "`operators` of [measure]"
    return _ticket(signed_claims(token, ASSERTION, operators, "operators", place))


def judge_measure_ticket(ticket: MeasureTicket, fingerprint: str, now_s: float) -> None:
    """Raise `TicketError` unless the ticket counts at the agent of a fingerprint now.

    Parameters
    ----------
    ticket : MeasureTicket
    fingerprint : str
        Of the certificate of the agent that judges.
    now_s : float
        Its clock, seconds since 1970.
    """
    if ticket.audience != fingerprint:
        raise TicketError(
            f"the ticket is for the agent {shown(ticket.audience)}, this agent is {fingerprint}"
        )
    if fingerprint not in (ticket.sender, ticket.receiver) or ticket.sender == ticket.receiver:
        raise TicketError("the ticket must name two different hosts, one of them this host")
    require_in_time(ticket.issued_s, ticket.expires_s, now_s, LONGEST_S)


def _claims(ticket: MeasureTicket) -> dict[str, Any]:
    return {
        "v": 1,
        "iss": ticket.issuer,
        "aud": ticket.audience,
        "from": ticket.sender,
        "to": ticket.receiver,
        "tools": list(ticket.tools),
        "most_bytes": ticket.most_bytes,
        "nonce": ticket.nonce,
        "iat": ticket.issued_s,
        "exp": ticket.expires_s,
    }


def _ticket(tree: dict[str, Any]) -> MeasureTicket:
    take_fields(tree, _claims(_EMPTY).keys() - {"v"}, "those of a ticket for measuring")
    fits = {
        **{name: _is_text(tree[name]) for name in ("iss", "aud", "from", "to")},
        **{name: is_number(tree[name]) for name in ("iat", "exp")},
        "tools": isinstance(tree["tools"], list) and all(_is_text(tool) for tool in tree["tools"]),
        "most_bytes": type(tree["most_bytes"]) is int and 0 <= tree["most_bytes"] < NUMBER_STOP,
        "nonce": is_nonce(tree["nonce"]),
    }
    for name, is_right in fits.items():
        if not is_right:
            raise TicketError(f"malformed field {name}")
    return MeasureTicket(
        issuer=tree["iss"],
        audience=tree["aud"],
        sender=tree["from"],
        receiver=tree["to"],
        tools=tuple(tree["tools"]),
        most_bytes=tree["most_bytes"],
        issued_s=float(tree["iat"]),
        expires_s=float(tree["exp"]),
        nonce=tree["nonce"],
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 200


_EMPTY = MeasureTicket("", "", "", "", (), 0, 0.0, 0.0, "")
