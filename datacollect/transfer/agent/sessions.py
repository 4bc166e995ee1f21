"""The sessions of an agent, as its core sees them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datacollect.transfer.wire.tickets import Ticket


class Phase(StrEnum):
    """What a session waits for."""

    FIRST_BYTE = "first byte"
    HEAD = "head"
    NONCE = "nonce"
    DIALLING = "dialling"
    RELAYING = "relaying"
    TLS = "tls"
    ENDING = "ending"


@dataclass
class Session:
    """One connection, from accepting it to its end.

    Attributes
    ----------
    number : int
    address : str
        Where it comes from, without the port.
    phase : Phase
    since_s, active_s : float
        When the phase began, when something last moved; monotonic seconds.
    ticket : Ticket or None
        What it was allowed by.
    next_host : str or None
        Where it is relayed to, by name.
    up_bytes, down_bytes : int
        Towards the far side, and back.
    busy : bool
        Whether a request over TLS is being answered.
    set_aside_bytes : int
        What its ticket is charged for the answer under way.
    """

    number: int
    address: str
    phase: Phase
    since_s: float
    active_s: float
    ticket: Ticket | None = None
    next_host: str | None = None
    up_bytes: int = 0
    down_bytes: int = 0
    busy: bool = False
    set_aside_bytes: int = 0

    def enter(self, phase: Phase, now_s: float) -> None:
        """Begin a phase."""
        self.phase, self.since_s, self.active_s = phase, now_s, now_s

    def facts(self) -> dict[str, Any]:
        """Return what the log says about it."""
        facts: dict[str, Any] = {"session": self.number, "from": self.address}
        if self.ticket is not None:
            facts |= {"kind": self.ticket.kind, "collection": self.ticket.collection}
        if self.next_host is not None:
            facts["to"] = self.next_host
        return facts
