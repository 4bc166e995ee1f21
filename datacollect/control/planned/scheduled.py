"""Controllers that carry out a schedule: at its times, or as soon as possible in its order."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING

from datacollect.control.connections import RESCUE, ConnectionTable, Lane, Piece, Recovery, RouteHop
from datacollect.control.controller import Controller
from datacollect.control.decisions import Decision, WakeMe
from datacollect.control.events import (
    ConnectionClosed,
    ConnectionStalled,
    Event,
    HostLost,
    RangeArrived,
    Timer,
)
from datacollect.control.planned.rows import (
    Row,
    WholeRanges,
    lanes_of_rows,
    planned_paces,
    rows_of,
    stripes,
)
from datacollect.errors import ProblemError
from datacollect.numbers.byte_ranges import ByteRanges
from datacollect.numbers.tolerances import SAME_INSTANT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from datacollect.schedule.schedule import Schedule


class _ScheduleController(Controller):
    """Common part of planned and asap: lanes, arrivals, losses.

    A subclass says in `_is_due` whether a relay's row may leave once it is entirely there.
    """

    def __init__(
        self,
        schedule: Schedule,
        *,
        shared_connections: bool = False,
        lanes: int | None = None,
        pace: bool = False,
        window_bytes: int | None = None,
        recovery: Recovery | None = None,
    ) -> None:
        if lanes is not None and lanes < 1:
            raise ProblemError(f"lanes must be >= 1, got {lanes}")
        self._schedule = schedule
        self._rows = rows_of(schedule, lanes)
        self._lanes = lanes_of_rows(schedule, self._rows, shared=shared_connections)
        self._shared = shared_connections
        self._whole = WholeRanges(self._rows) if schedule.slot_s is not None else None
        self._collected: dict[str, ByteRanges] = {}
        self._dead_routes: set[int] = set()
        self._table = ConnectionTable(
            recovery,
            window_bytes=window_bytes,
            pace_bytes_per_s=planned_paces(self._rows, self._lanes) if pace else None,
        )

    def handle(self, event: Event) -> list[Decision]:
        """Return what to do after an event."""
        match event:
            case RangeArrived():
                return self._arrived(event)
            case HostLost():
                return self._host_lost(event.host)
            case Timer() if event.tag >= 0:
                return self._on_time(event.time_s)
            case Timer() | ConnectionClosed() | ConnectionStalled():
                return self._table.handle(event)
            case _:
                return []

    @abstractmethod
    def _on_time(self, time_s: float) -> list[Decision]:
        """Return what to do at an instant that was asked for."""

    @abstractmethod
    def _is_due(self, row: int) -> bool:
        """Return whether a row may be sent by now."""

    def _waits_for_whole(self, row: int) -> bool:
        """Return whether a row has to wait until it is entirely at its relay."""
        return self._whole is not None and not self._whole.is_whole(row)

    def _open(self, row: int) -> list[Decision]:
        if self._rows[row].route in self._dead_routes:
            return []
        return [d for lane in self._lanes[row] for d in self._table.open(lane)]

    def _send(self, number: int) -> list[Decision]:
        row = self._rows[number]
        if row.route in self._dead_routes:
            return []
        return self._send_striped(row.piece, self._lanes[number], RouteHop(row.route, row.hop))

    def _send_striped(
        self, piece: Piece, lanes: tuple[Lane, ...], route_hop: RouteHop
    ) -> list[Decision]:
        decisions: list[Decision] = []
        for lane, part in zip(lanes, stripes(piece, len(lanes)), strict=True):
            if part.n_bytes:
                decisions += self._table.send(lane, part, route_hop)
        return decisions

    def _arrived(self, event: RangeArrived) -> list[Decision]:
        if event.host == self._schedule.destination:
            here = self._collected.setdefault(event.source, ByteRanges())
            here.add(event.offset_bytes, event.n_bytes)
        route_hop = self._table.arrived(event)
        if route_hop is None or route_hop.route < 0 or self._whole is None:
            return []
        whole = self._whole.arrived(route_hop, event.offset_bytes, event.n_bytes)
        return [d for row in whole if self._is_due(row) for d in self._send(row)]

    def _host_lost(self, host: str) -> list[Decision]:
        """Send directly to the destination what was to pass the lost host and is not there."""
        routes = self._schedule.routes
        cut = {
            number
            for number, route in enumerate(routes)
            if host in route.hosts[1:-1] and number not in self._dead_routes
        }
        self._dead_routes |= cut
        decisions = self._table.lose(
            host, lambda _, route_hop: route_hop.route in self._dead_routes
        )
        for row, lanes in zip(self._rows, self._lanes, strict=True):
            if row.route not in cut or row.hop:
                continue
            first = routes[row.route].hosts[0]
            direct = tuple(
                Lane(first, self._schedule.destination, RESCUE, lane.number) for lane in lanes
            )
            for piece in self._not_collected(row.piece):
                decisions += self._send_striped(piece, direct, RouteHop(RESCUE, 0))
        return decisions

    def _not_collected(self, piece: Piece) -> Iterable[Piece]:
        there = self._collected.setdefault(piece.source, ByteRanges())
        for offset, n_bytes in there.missing(piece.offset_bytes, piece.n_bytes):
            yield Piece(piece.source, offset, n_bytes)


class PlannedController(_ScheduleController):
    """Carry out a schedule at its times: nothing leaves before its planned start.

    Pipelined, ranges are queued on all hops at their starts, and relays forward them as data
    arrive. Slotted, a relay's range leaves when it is entirely there and its start has come.

    Parameters
    ----------
    schedule : Schedule
    open_ahead_s : float
        Open a connection this long before its first use, at time 0 at the earliest.
    shared_connections : bool
        One connection (or set of lanes) per hop for all routes, rather than one for each route.
        A range whose data are late then holds up those queued behind it.
    lanes : int, optional
        Parallel connections per hop, each range divided evenly among them; by default what the
        schedule says in its transfers' streams.
    pace : bool
        Cap each connection's rate at the most that is planned for it.
    window_bytes : int, optional
        Asked for with each connection.
    recovery : Recovery, optional

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> PlannedController(dc.direct(problem)).start()
    ... # doctest: +NORMALIZE_WHITESPACE
    [Open(connection=0, hosts=('S', 'D'), window_bytes=None, pace_bytes_per_s=None),
     Send(connection=0, source='S', offset_bytes=0, n_bytes=10)]
    """

    def __init__(
        self,
        schedule: Schedule,
        *,
        open_ahead_s: float = 1.0,
        shared_connections: bool = False,
        lanes: int | None = None,
        pace: bool = False,
        window_bytes: int | None = None,
        recovery: Recovery | None = None,
    ) -> None:
        super().__init__(
            schedule,
            shared_connections=shared_connections,
            lanes=lanes,
            pace=pace,
            window_bytes=window_bytes,
            recovery=recovery,
        )
        if not open_ahead_s >= 0:
            raise ProblemError(f"open_ahead_s must be >= 0, got {open_ahead_s}")
        self._agenda = _agenda(self._rows, self._lanes, open_ahead_s, self._open, self._start_row)
        self._next = 0
        self._started = [False] * len(self._rows)

    def start(self) -> list[Decision]:
        """Return the first decisions, at time 0."""
        return self._on_time(0.0)

    def _on_time(self, time_s: float) -> list[Decision]:
        """Do all that is due, and ask to be woken for what is next."""
        decisions: list[Decision] = []
        until_s = time_s * (1 + SAME_INSTANT)
        while self._next < len(self._agenda) and self._agenda[self._next][0] <= until_s:
            _, act, row = self._agenda[self._next]
            decisions += act(row)
            self._next += 1
        if self._next < len(self._agenda):
            decisions.append(WakeMe(self._agenda[self._next][0], 0))
        return decisions

    def _start_row(self, row: int) -> list[Decision]:
        self._started[row] = True
        return [] if self._waits_for_whole(row) else self._send(row)

    def _is_due(self, row: int) -> bool:
        return self._started[row]


class AsapController(_ScheduleController):
    """Carry out a schedule without waiting for its times, in its order.

    All connections are opened, and all first hops queued, at time 0. Relays forward as data
    arrive (pipelined) or when a range is entirely there (slotted). Pipelined over shared
    connections, all hops carry ranges as the first hop cuts them, in the order of their starts
    there.

    Parameters
    ----------
    schedule, shared_connections, lanes, pace, window_bytes, recovery
        As for `PlannedController`.
    """

    def start(self) -> list[Decision]:
        """Return the first decisions, at time 0."""
        if self._shared and self._whole is None:
            return self._send_in_one_order()
        decisions: list[Decision] = []
        for row in range(len(self._rows)):
            decisions += self._open(row) if self._waits_for_whole(row) else self._send(row)
        return decisions

    def _send_in_one_order(self) -> list[Decision]:
        """Queue ranges on all their hops, in the same order on every connection.

        In different orders, two connections can wait for each other for ever: each for a range
        that a full relay keeps queued behind another on the other one. In one order the first
        range that has not arrived is the next on all its hops, and so it gets on.
        """
        hops: dict[int, dict[int, tuple[Lane, ...]]] = {}
        for row, lanes in zip(self._rows, self._lanes, strict=True):
            hops.setdefault(row.route, {}).setdefault(row.hop, lanes)
        decisions: list[Decision] = []
        for row in self._rows:
            if row.hop == 0:
                for hop, lanes in sorted(hops[row.route].items()):
                    decisions += self._send_striped(row.piece, lanes, RouteHop(row.route, hop))
        return decisions

    def _on_time(self, time_s: float) -> list[Decision]:
        return []

    def _is_due(self, row: int) -> bool:
        return True


def _agenda(
    rows: list[Row],
    lanes: list[tuple[Lane, ...]],
    open_ahead_s: float,
    open_row: Callable[[int], list[Decision]],
    start_row: Callable[[int], list[Decision]],
) -> list[tuple[float, Callable[[int], list[Decision]], int]]:
    """Return when to do what to which row: openings ahead of the first use of lanes, and starts."""
    first_use_s: dict[Lane, float] = {}
    agenda: list[tuple[float, Callable[[int], list[Decision]], int]] = []
    for number, row in enumerate(rows):  # in order of start
        if min(first_use_s.get(lane, math.inf) for lane in lanes[number]) == math.inf:
            first_use_s |= dict.fromkeys(lanes[number], row.start_s)
            ahead_s = max(0.0, row.start_s - open_ahead_s)
            if ahead_s < row.start_s:
                agenda.append((ahead_s, open_row, number))
        agenda.append((row.start_s, start_row, number))
    agenda.sort(key=lambda entry: entry[0])
    return agenda
