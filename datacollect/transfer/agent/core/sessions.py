"""The sessions of an agent, as its core sees them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from datacollect.net.tickets import TUNNEL
from datacollect.transfer.agent.core.admission import Admission

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.net.tickets import Ticket
    from datacollect.transfer.agent.core.events import RequestRead


# A request without a ticket that was silent for so long gives way like an idle connection: whoever
# promises a body and sends none would hold a place as long as he likes.
SILENT_S, YOUNG_S = 20.0, 1.0


class Phase(StrEnum):
    """Phase of a session: what it waits for."""

    FIRST_BYTE = "first byte"
    HEAD = "head"
    NONCE = "nonce"
    DIALLING = "dialling"
    RELAYING = "relaying"
    TLS = "tls"
    ENDING = "ending"


@dataclass
class AgentSession:
    """One connection, from accepting it to its end.

    Attributes
    ----------
    number : int
    address : str
        Where it comes from, without the port.
    origin : str
        Whom it is counted for: see `datacollect.net.addresses.origin_of`.
    place : Admission
        Where it is counted.
    phase : Phase
    accepted_s, since_s, active_s : float
        When it was accepted, when the phase began, when something last moved; monotonic seconds.
    refused_for : str or None
        Why it cannot stay, whatever it asks for.
    ticket : Ticket or None
        What it was allowed by.
    next_host : str or None
        Where it is relayed to, by name; of tunnels the service.
    up_bytes, down_bytes : int
        Towards the far side, and back.
    busy : bool
        Whether a request over TLS is being answered.
    set_aside_bytes : int
        What its ticket is charged for the answer under way.
    asked : RequestRead or None
        The request whose body is being read.
    is_handed_over : bool
        Whether a handler of the agent's has answered it: it needs no ticket.
    holds_place : bool
        Whether the handler that answers has not said that others may have the place meanwhile.
    gives_way : bool
        Whether it was told to end because another needed its place.
    is_half_closed : bool
        Of tunnels: whether one side has said that nothing more comes.
    is_hashing : bool
        Whether the last answer that it was given has hashes of files, not their bytes.
    """

    number: int
    address: str
    origin: str
    place: Admission
    phase: Phase
    accepted_s: float
    since_s: float
    active_s: float
    refused_for: str | None = None
    ticket: Ticket | None = None
    next_host: str | None = None
    up_bytes: int = 0
    down_bytes: int = 0
    busy: bool = False
    set_aside_bytes: int = 0
    asked: RequestRead | None = None
    is_handed_over: bool = False
    holds_place: bool = True
    gives_way: bool = False
    is_half_closed: bool = False
    is_hashing: bool = False

    @property
    def is_tunnel(self) -> bool:
        """Return whether it leads to a service of this agent's own file."""
        return self.ticket is not None and self.ticket.kind == TUNNEL

    def may_give_way(self, now_s: float) -> bool:
        """Return whether nothing is lost where it ends for another.

        No ticket counts, nothing moves.
        """
        return (
            self.place is Admission.INSIDE
            and self.ticket is None
            and self.phase in (Phase.FIRST_BYTE, Phase.HEAD, Phase.TLS)
            and (not self.busy or not self.holds_place or now_s - self.active_s >= SILENT_S)
        )

    def enter(self, phase: Phase, now_s: float) -> None:
        """Begin a phase."""
        self.phase, self.since_s, self.active_s = phase, now_s, now_s

    def facts(self) -> dict[str, Any]:
        """Return what the log says about it."""
        facts: dict[str, Any] = {"session": self.number, "from": self.address}
        if self.ticket is not None:
            facts |= {"kind": self.ticket.kind, "collection": self.ticket.collection}
            if self.is_tunnel:
                facts["user"] = self.ticket.issuer
        if self.next_host is not None:
            facts["to"] = self.next_host
        return facts


def in_order_to_go(
    idle: Sequence[AgentSession], now_s: float, many: float
) -> list[tuple[AgentSession, float]]:
    """Return idle sessions, and when something last moved: next the oldest of who has most.

    Whoever has opened many loses them until he has no more than others. Who has come this instant
    is about to ask, and stays: else a crowd would close each other's. Only where an origin has more
    than `many` of them it has no time for that.
    """
    by_origin: dict[str, list[AgentSession]] = {}
    for each in sorted(idle, key=lambda each: -each.active_s):
        by_origin.setdefault(each.origin, []).append(each)
    ranked = [
        (-rank, each.active_s, each.number, each)
        for sessions in by_origin.values()
        for rank, each in enumerate(sessions)
        if rank >= many or now_s - each.active_s >= YOUNG_S
    ]
    return [(each, active_s) for _, active_s, _, each in sorted(ranked, key=lambda row: row[:3])]
