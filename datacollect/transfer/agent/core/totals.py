"""Totals of an agent since its start, for whoever watches it: plain numbers, kept by its core."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from datacollect.net.bounded_rows import BoundedRows

# Each row makes four series.
MOST_ROWS = 200


@dataclass
class SessionTotals:
    """Bytes that sessions of one kind have moved, for one collection, by way of one host.

    Attributes
    ----------
    sessions : int
        How many have begun.
    up_bytes, down_bytes : int
        Towards the host, and from it.
    hashed_bytes : int
        Of files that were read and hashed, and did not leave.
    """

    sessions: int = 0
    up_bytes: int = 0
    down_bytes: int = 0
    hashed_bytes: int = 0


def _no_rows() -> BoundedRows[SessionTotals]:
    return BoundedRows(SessionTotals, MOST_ROWS)


@dataclass
class AgentTotals:
    """Totals of an agent.

    Attributes
    ----------
    connections : int
        That were accepted.
    by_session : BoundedRows of SessionTotals
        By kind of ticket, collection and host: the next one of what is relayed, else the agent.
    refused : Counter of str
        Requests and connections, by status; ``none`` of those that were closed without one.
    failed : int
        What this host could not do: its disk, its memory.
    """

    connections: int = 0
    by_session: BoundedRows[SessionTotals] = field(default_factory=_no_rows)
    refused: Counter[str] = field(default_factory=Counter)
    failed: int = 0
