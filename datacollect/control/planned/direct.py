"""The controller of direct collections: every host sends directly to the destination."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.control.connections import ConnectionTable, Lane, Piece, Recovery, RouteHop
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
from datacollect.control.planned.rows import stripes
from datacollect.errors import ProblemError, nearest_hint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacollect.problem.hosts import Parcel
    from datacollect.problem.problem import Problem


class DirectController(Controller):
    """Send every host's data directly to the destination, with parallel streams.

    Parameters
    ----------
    problem : Problem
        Only who holds what from when on matters, not bandwidths.
    streams : int or mapping of str to int
        Connections of each host; a host that the mapping leaves out has one. Its data are divided
        evenly among them.
    at_a_time : int, optional
        So many hosts send at once; when one is done, the next in order begins. By default all, or
        one where an order is given.
    order : sequence of str, optional
        Hosts that hold data; those not named follow in the problem's order.
    pace_bytes_per_s : mapping of str to float, optional
        Most that each host may send, over its streams together.
    window_bytes : int, optional
        Asked for with each connection.
    recovery : Recovery, optional

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> [type(decision).__name__ for decision in DirectController(problem, streams=2).start()]
    ['Open', 'Send', 'Open', 'Send']
    """

    def __init__(
        self,
        problem: Problem,
        streams: int | Mapping[str, int] = 1,
        *,
        at_a_time: int | None = None,
        order: Sequence[str] | None = None,
        pace_bytes_per_s: Mapping[str, float] | None = None,
        window_bytes: int | None = None,
        recovery: Recovery | None = None,
    ) -> None:
        self._names = problem.names
        self._destination = problem.destination
        self._parcels: dict[str, list[Parcel]] = {}
        for parcel in sorted(problem.parcels, key=lambda p: p.release_s):
            self._parcels.setdefault(problem.names[parcel.host], []).append(parcel)
        holders = [name for name in problem.names if name in self._parcels]
        self._streams = _streams_of(holders, streams)
        self._waiting = _in_order(holders, order or ())
        if at_a_time is None:
            at_a_time = 1 if order is not None else max(1, len(holders))
        if at_a_time < 1:
            raise ProblemError(f"at_a_time must be >= 1, got {at_a_time}")
        self._at_a_time = at_a_time
        self._left: dict[str, int] = {}  # pieces that have yet to arrive, of the hosts that send
        self._table = ConnectionTable(
            recovery,
            window_bytes=window_bytes,
            pace_bytes_per_s={
                lane: pace / self._streams[host]
                for host, pace in (pace_bytes_per_s or {}).items()
                if host in self._parcels
                for lane in self._lanes(host)
            },
        )

    def start(self) -> list[Decision]:
        """Return the first decisions, at time 0."""
        return self._fill(0.0)

    def handle(self, event: Event) -> list[Decision]:
        """Return what to do after an event."""
        match event:
            case RangeArrived():
                return self._arrived(event)
            case HostLost():
                return self._host_lost(event)
            case Timer() if event.tag >= 0:
                return self._fill(event.time_s)
            case Timer() | ConnectionClosed() | ConnectionStalled():
                return self._table.handle(event)
            case _:
                return []

    def _fill(self, time_s: float) -> list[Decision]:
        """Let the next hosts begin, as many as may send."""
        decisions: list[Decision] = []
        while len(self._left) < self._at_a_time and self._waiting:
            begin = next((h for h in self._waiting if self._release_s(h) <= time_s), None)
            if begin is None:
                soonest_s = min(self._release_s(host) for host in self._waiting)
                decisions.append(WakeMe(soonest_s, 0))
                break
            self._waiting.remove(begin)
            decisions += self._begin(begin)
        return decisions

    def _release_s(self, host: str) -> float:
        return self._parcels[host][0].release_s

    def _lanes(self, host: str) -> list[Lane]:
        return [Lane(host, self._destination, 0, i) for i in range(self._streams[host])]

    def _begin(self, host: str) -> list[Decision]:
        decisions: list[Decision] = []
        lanes, n_pieces = self._lanes(host), 0
        for parcel in self._parcels[host]:
            piece = Piece(self._names[parcel.source], parcel.offset_bytes, parcel.n_bytes)
            for lane, part in zip(lanes, stripes(piece, len(lanes)), strict=True):
                if part.n_bytes:
                    decisions += self._table.send(lane, part, RouteHop(0, 0))
                    n_pieces += 1
        self._left[host] = n_pieces
        return decisions

    def _arrived(self, event: RangeArrived) -> list[Decision]:
        lane = self._table.lane_of(event.connection)
        if self._table.arrived(event) is None or lane is None:
            return []
        host = lane.from_host
        self._left[host] -= 1
        if self._left[host]:
            return []
        del self._left[host]
        closed = [d for used in self._lanes(host) for d in self._table.close(used)]
        return closed + self._fill(event.time_s)

    def _host_lost(self, event: HostLost) -> list[Decision]:
        """Go on with the others; what the host had not sent is lost."""
        self._left.pop(event.host, None)
        if event.host in self._waiting:
            self._waiting.remove(event.host)
        return self._table.lose(event.host, lambda _, __: False) + self._fill(event.time_s)


def streams_in_proportion(problem: Problem, total: int) -> dict[str, int]:
    """Share a number of streams out among the hosts that hold data, in proportion to it.

    Every host gets one at least; what remains goes to the largest remainders (Hamilton's method).

    Raises
    ------
    ProblemError
        There are fewer streams than hosts.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["A", "B", "D"], [[0, 0, 5.0], [0, 0, 5.0], [0, 0, 0]], [30, 10, 0], "D"
    ... )
    >>> streams_in_proportion(problem, 8)
    {'A': 6, 'B': 2}
    """
    held = dict.fromkeys((problem.names[parcel.host] for parcel in problem.parcels), 0)
    for parcel in problem.parcels:
        held[problem.names[parcel.host]] += parcel.n_bytes
    if total < len(held):
        raise ProblemError(
            f"total must be at least 1 stream for each of {len(held)} hosts with data, got {total}"
        )
    all_bytes = sum(held.values())
    streams = {host: max(1, total * n // all_bytes) for host, n in held.items()}
    by_remainder = sorted(held, key=lambda host: -(total * held[host] % all_bytes))
    while sum(streams.values()) < total:
        for host in by_remainder[: total - sum(streams.values())]:
            streams[host] += 1
    while sum(streams.values()) > total:  # hosts with little data were given their one
        richest = max(streams, key=lambda host: (streams[host] > 1, streams[host] / held[host]))
        streams[richest] -= 1
    return streams


def _streams_of(holders: Sequence[str], streams: int | Mapping[str, int]) -> dict[str, int]:
    if isinstance(streams, int):
        given = dict.fromkeys(holders, streams)
    else:
        given = {host: streams.get(host, 1) for host in holders}
    for host, n in given.items():
        if n < 1:
            raise ProblemError(f"host {host!r}: streams must be >= 1, got {n}")
    return given


def _in_order(holders: Sequence[str], order: Sequence[str]) -> list[str]:
    for name in order:
        if name not in holders:
            raise ProblemError(
                f"order: {name!r} is not a host with data to send{nearest_hint(name, holders)}"
            )
    if len(set(order)) < len(order):
        raise ProblemError(f"order: a host is named twice, got {list(order)}")
    return list(dict.fromkeys([*order, *holders]))
