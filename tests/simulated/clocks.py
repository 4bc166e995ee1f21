"""Agents whose clocks are set while a collection is under way, and what a collector knows of them.

The network that writes tickets, and the rules that judge them, are the real ones.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from datacollect.errors import RefusedError, TicketError
from datacollect.net.keys import PrivateKey
from datacollect.net.tickets import SOURCE, judge_ticket, read_ticket
from datacollect.transfer.protocol.messages import AgentFacts
from datacollect.transfer.sources.agent.network import Network

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.net.tickets import Ticket

KEY = PrivateKey(b"the key of simulated collectors!")
BEGUN_UNIX_S = 1.7e9
STEPS_S = (-20.0, -500.0, 25 * 3600.0)


class AgentClock:
    """Clock of an agent, and which tickets it lets in."""

    def __init__(self, name: str) -> None:
        self.name, self.set_s = name, 0.0
        self.n_refused = 0

    def facts(self) -> AgentFacts:
        return AgentFacts(self.name, "0", self._now_s(), True, ())

    def ticket_of(self, token: str) -> Ticket:
        return read_ticket(token, SOURCE, [KEY.public])

    def judge(self, ticket: Ticket) -> None:
        """Refuse a ticket as an agent's core does."""
        try:
            judge_ticket(ticket, self.name, self._now_s())
        except TicketError as error:
            self.n_refused += 1
            raise RefusedError(f"refuses (401): {error}", 401, is_final=True) from None

    def _now_s(self) -> float:
        return BEGUN_UNIX_S + time.monotonic() + self.set_s


class SimulatedNetwork(Network):
    """Opens simulated sessions with one source."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        super().__init__({}, KEY, "simulated", timeout_s=20.0, connections=16)
        self._connect_simulated = connect

    def _connect(self, *_: object) -> Any:
        return self._connect_simulated()
