"""Pieces that wait at a hop, and the connections that carry them: no more on them than they need.

What is queued on a connection can no longer be changed. Here most pieces wait
outside, and each connection is handed what it delivers in a few seconds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datacollect.control.connections import Lane, Piece, RouteHop

# A connection has outstanding what arrived over it in this many seconds. While that is more than
# two round trips, a connection that could do more doubles it with each of them, as slow start
# does: it is the network that limits it.
AHEAD_S = 2.0

# The fewest pieces: a new connection has a first window, and one after a pause goes on.
LEAST_PIECES = 4


class Waiting(NamedTuple):
    """A piece that is to go over a hop; the plan sends it at `due_s`, earlier ones go first."""

    due_s: float
    number: int  # tells apart what is due at one instant
    piece: Piece
    route_hop: RouteHop


@dataclass(slots=True, eq=False)
class ConnectionWindow:
    """A connection: what is in flight, and what arrived of late.

    Attributes
    ----------
    lane : Lane
    hop : HopQueue or None
        Whose pieces it takes; None once no route uses it: what is in flight arrives, no more.
    in_flight : dict of Piece to Waiting
    was_busy : bool
        Whether something has been in flight all the time since the last look.
    """

    lane: Lane
    hop: HopQueue | None = None
    in_flight: dict[Piece, Waiting] = field(default_factory=dict)
    was_busy: bool = False
    outstanding_bytes: int = 0
    _recent: deque[tuple[float, int]] = field(default_factory=deque)
    _recent_bytes: int = 0

    def sent(self, entry: Waiting) -> None:
        """Note that a piece was handed to the connection."""
        self.in_flight[entry.piece] = entry
        self.outstanding_bytes += entry.piece.n_bytes

    def arrived(self, piece: Piece, time_s: float) -> Waiting:
        """Note that a piece is at the other end; return what it was sent as."""
        self.outstanding_bytes -= piece.n_bytes
        self._recent.append((time_s, piece.n_bytes))
        self._recent_bytes += piece.n_bytes
        return self.in_flight.pop(piece)

    def needs_bytes(self, time_s: float, least_bytes: int) -> int:
        """Return how much more should be in flight; 0 or less: nothing."""
        while self._recent and self._recent[0][0] <= time_s - AHEAD_S:
            self._recent_bytes -= self._recent.popleft()[1]
        return max(least_bytes, self._recent_bytes) - self.outstanding_bytes


@dataclass(slots=True, eq=False)
class HopQueue:
    """Pieces that wait at one host for another, and the parallel connections that take them.

    Attributes
    ----------
    from_host, to_host : str
    ready : list of Waiting
        A heap; all of them are entirely at `from_host`.
    windows : list of ConnectionWindow
    """

    from_host: str
    to_host: str
    ready: list[Waiting] = field(default_factory=list)
    windows: list[ConnectionWindow] = field(default_factory=list)

    def neediest(self, time_s: float, least_bytes: int) -> ConnectionWindow | None:
        """Return the connection that lacks most; None where none lacks anything."""
        needs = [window.needs_bytes(time_s, least_bytes) for window in self.windows]
        most = max(needs)
        return self.windows[needs.index(most)] if most > 0 else None
