"""A controller's connections: numbered, opened on first use, replaced when stuck or gone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from datacollect.control.decisions import Close, Decision, Open, Send, WakeMe
from datacollect.control.events import ConnectionClosed, ConnectionStalled, RangeArrived, Timer
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Piece(NamedTuple):
    """A range of a source's backlog."""

    source: str
    offset_bytes: int
    n_bytes: int


class Lane(NamedTuple):
    """Purpose of a connection: a hop, of one route or of all, and which of parallel ones."""

    from_host: str
    to_host: str
    route: int
    number: int


class RouteHop(NamedTuple):
    """Cause of sending a piece: a hop of a route."""

    route: int
    hop: int


SHARED = -1  # a lane for all routes
RESCUE = -2  # directly from where the data first lay, after a relay was lost


@dataclass(frozen=True)
class Recovery:
    """Policy for connections that are stuck or gone.

    Attributes
    ----------
    stall_patience_s : float or None
        Replace a connection that has been reported as stalled when this much time passes without
        an arrival on it; None: never.
    retry_s : float
        Open a lost connection again after this time; doubles with each failure in a row.
    most_retries : int
        So often in a row a connection is replaced or opened again without an arrival on it.
    longest_wait_s : float
        No wait is longer, however often it has doubled.
    """

    stall_patience_s: float | None = 0.0
    retry_s: float = 1.0
    most_retries: int = 10
    longest_wait_s: float = math.inf

    def wait_s(self, failures: int) -> float:
        """Return how long to wait after a number of failures in a row before the present one.

        >>> [Recovery(longest_wait_s=3.0).wait_s(n) for n in (0, 1, 2, 10**9)]
        [1.0, 2.0, 3.0, 3.0]
        """
        return min(self.longest_wait_s, self.retry_s * 2.0 ** min(failures, 1000))

    def __post_init__(self) -> None:
        if self.stall_patience_s is not None and not self.stall_patience_s >= 0:
            raise ProblemError(
                f"stall_patience_s must be >= 0, got {self.stall_patience_s}; None: never replace"
            )
        if not self.retry_s > 0:
            raise ProblemError(f"retry_s must be > 0, got {self.retry_s}")
        if self.most_retries < 0:
            raise ProblemError(f"most_retries must be >= 0, got {self.most_retries}")


@dataclass(slots=True)
class _Connection:
    lane: Lane
    number: int | None  # None between the loss of one connection and the opening of the next
    waiting: dict[Piece, RouteHop] = field(default_factory=dict)
    failures: int = 0
    arrivals: int = 0


# A timer of the table: which lane, whose connection number (None: retry), after how many arrivals.
_Alarm: TypeAlias = tuple[Lane, int | None, int]


class ConnectionTable:
    """One connection per lane, with what is queued on it and has not arrived.

    Timers of the table have negative tags; those from 0 on are the controller's.

    Parameters
    ----------
    recovery : Recovery, optional
    window_bytes : int, optional
        Asked for with each connection.
    pace_bytes_per_s : mapping of Lane to float, optional
    """

    def __init__(
        self,
        recovery: Recovery | None = None,
        *,
        window_bytes: int | None = None,
        pace_bytes_per_s: Mapping[Lane, float] | None = None,
    ) -> None:
        self._recovery = recovery or Recovery()
        self._window_bytes = window_bytes
        self._pace_bytes_per_s = pace_bytes_per_s or {}
        self._by_lane: dict[Lane, _Connection] = {}
        self._by_number: dict[int, _Connection] = {}
        self._alarms: dict[int, _Alarm] = {}
        self._lost: set[str] = set()
        self._n_opened = 0
        self._n_alarms = 0

    def open(self, lane: Lane) -> list[Decision]:
        """Open the lane's connection unless it is there, or one of its hosts is lost."""
        if lane in self._by_lane or self._is_lost(lane):
            return []
        connection = _Connection(lane, None)
        self._by_lane[lane] = connection
        return self._connect(connection)

    def send(self, lane: Lane, piece: Piece, route_hop: RouteHop) -> list[Decision]:
        """Queue a piece, on a new connection if need be."""
        if self._is_lost(lane):
            return []
        decisions = self.open(lane)
        connection = self._by_lane[lane]
        connection.waiting[piece] = route_hop
        if connection.number is not None:
            decisions.append(Send(connection.number, *piece))
        return decisions

    def lane_of(self, connection: int) -> Lane | None:
        """Return the lane that a connection serves; None if it serves none any more."""
        known = self._by_number.get(connection)
        return known.lane if known else None

    def arrived(self, event: RangeArrived) -> RouteHop | None:
        """Take an arrived range off the books; None if it was not waited for any more."""
        connection = self._by_number.get(event.connection)
        if connection is None:
            return None
        connection.failures = 0
        connection.arrivals += 1
        piece = Piece(event.source, event.offset_bytes, event.n_bytes)
        return connection.waiting.pop(piece, None)

    def handle(self, event: ConnectionStalled | ConnectionClosed | Timer) -> list[Decision]:
        """Replace what is stuck, open again what is gone."""
        match event:
            case ConnectionStalled():
                return self._stalled(event)
            case ConnectionClosed():
                return self._closed(event)
            case Timer():
                return self._woken(event)

    def close(self, lane: Lane) -> list[Close]:
        """Close the lane's connection once all on it has left."""
        connection = self._by_lane.pop(lane, None)
        if connection is None or connection.number is None:
            return []
        del self._by_number[connection.number]
        return [Close(connection.number)]

    def drop(self, lane: Lane) -> list[Decision]:
        """Close the lane's connection at once; what is queued on it is waited for no more."""
        return [replace(close, drop_queue=True) for close in self.close(lane)]

    def lose(self, host: str, is_void: Callable[[Piece, RouteHop], bool]) -> list[Decision]:
        """Forget a lost host's connections; take void pieces off all others' queues.

        A queue that held void pieces moves to a new connection: only so do the others get on.
        """
        self._lost.add(host)
        decisions: list[Decision] = []
        for lane in list(self._by_lane):
            connection = self._by_lane[lane]
            if self._is_lost(lane):
                del self._by_lane[lane]
                if connection.number is not None:
                    del self._by_number[connection.number]
                continue
            left = {
                p: route_hop
                for p, route_hop in connection.waiting.items()
                if not is_void(p, route_hop)
            }
            if len(left) < len(connection.waiting):
                connection.waiting = left
                decisions += self._replace(connection)
        return decisions

    # ------------------------------------------------------------------------------------------

    def _is_lost(self, lane: Lane) -> bool:
        return lane.from_host in self._lost or lane.to_host in self._lost

    def _connect(self, connection: _Connection) -> list[Decision]:
        """Open a connection under a new number, with all that waits queued on it."""
        number, lane = self._n_opened, connection.lane
        self._n_opened += 1
        connection.number = number
        self._by_number[number] = connection
        pace = self._pace_bytes_per_s.get(lane)
        decisions: list[Decision] = [
            Open(number, (lane.from_host, lane.to_host), self._window_bytes, pace)
        ]
        decisions += [Send(number, *piece) for piece in connection.waiting]
        return decisions

    def _replace(self, connection: _Connection) -> list[Decision]:
        if connection.number is None:
            return []  # is about to be opened anyway
        del self._by_number[connection.number]
        old = Close(connection.number, drop_queue=True)
        if not connection.waiting:
            del self._by_lane[connection.lane]
            return [old]
        return [old, *self._connect(connection)]

    def _replace_stuck(self, connection: _Connection) -> list[Decision]:
        """Replace a connection, unless that has often been no use."""
        connection.failures += 1
        if connection.failures > self._recovery.most_retries:
            return []
        return self._replace(connection)

    def _alarm(self, alarm: _Alarm, time_s: float) -> WakeMe:
        self._n_alarms += 1
        self._alarms[-self._n_alarms] = alarm
        return WakeMe(time_s, -self._n_alarms)

    def _stalled(self, event: ConnectionStalled) -> list[Decision]:
        connection = self._by_number.get(event.connection)
        patience_s = self._recovery.stall_patience_s
        if connection is None or patience_s is None:
            return []
        if patience_s == 0:
            return self._replace_stuck(connection)
        alarm = (connection.lane, connection.number, connection.arrivals)
        return [self._alarm(alarm, event.time_s + patience_s)]

    def _closed(self, event: ConnectionClosed) -> list[Decision]:
        connection = self._by_number.pop(event.connection, None)
        if connection is None:
            return []  # we asked for it
        connection.number = None
        if not connection.waiting:
            del self._by_lane[connection.lane]
            return []
        connection.failures += 1
        if connection.failures > self._recovery.most_retries:
            return []
        wait_s = self._recovery.wait_s(connection.failures - 1)
        return [self._alarm((connection.lane, None, 0), event.time_s + wait_s)]

    def _woken(self, event: Timer) -> list[Decision]:
        alarm = self._alarms.pop(event.tag, None)
        connection = self._by_lane.get(alarm[0]) if alarm else None
        if alarm is None or connection is None or connection.number != alarm[1]:
            return []
        if connection.number is None:
            return self._connect(connection)
        return self._replace_stuck(connection) if connection.arrivals == alarm[2] else []
