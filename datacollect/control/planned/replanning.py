"""The controller that requests plans of what remains while a plan is carried out."""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.control.connections import SHARED, ConnectionTable, Lane, Piece, Recovery, RouteHop
from datacollect.control.controller import Controller
from datacollect.control.decisions import Decision, PlanRemaining, WakeMe
from datacollect.control.events import (
    ConnectionClosed,
    ConnectionStalled,
    Event,
    HostLost,
    RangeArrived,
    RemainingPlanned,
    Timer,
)
from datacollect.control.planned.connection_window import (
    LEAST_PIECES,
    ConnectionWindow,
    HopQueue,
    Waiting,
)
from datacollect.control.planned.data_locations import Whereabouts, pieces_of, present
from datacollect.control.planned.observed_rates import ObservedRates
from datacollect.control.planned.relay_room import RelayRoom
from datacollect.control.planned.rows import Row, rows_of
from datacollect.errors import ProblemError
from datacollect.numbers.byte_ranges import ByteRanges
from datacollect.schedule.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.new_links import NewLinks
    from datacollect.schedule.schedule import Schedule

# Timers; those of connections are negative.
REPLAN, RELEASE = 0, 1


class _Asked(NamedTuple):
    """A plan of what remains that has not come yet."""

    number: int
    at_s: float
    on_time: bool


class ReplanningController(Controller):
    """Carry out a pipelined schedule as soon as possible, and have what remains planned again.

    Every `replan_s` seconds it asks, by `PlanRemaining`, for a schedule from where the data lie:
    what is in flight counts as lying at the host that receives it, and does arrive. Until the
    answer comes nothing more is handed to connections. Where there is none the schedule under way
    goes on.

    Connections between hosts that the new schedule uses, too, stay; others are opened, or closed
    once nothing is in flight over them. So that there is something left to plan, data wait at
    their hosts in pieces, and each connection is handed about what it delivers in two seconds. A
    relay passes a piece on once it has all of it.

    What the planner gets to know: a link over which a connection was busy for the whole interval
    since the last planning (it had pieces in flight all the time, and was not held up for want
    of room at the receiving host) has the rate observed in it, all its connections together, until
    the forecast's next period if there is one; all other links keep the estimates that they had.
    Nothing else: not the rates of wires, nor others' traffic.

    When a host is lost the remainder is planned again at once, without new estimates.

    Parameters
    ----------
    problem : Problem
        What the schedule was made for.
    schedule : Schedule
        Pipelined.
    replan_s : float
    lanes : int
        Parallel connections per hop; each takes the next piece when it has room.
    shared_connections : bool
        One connection (or set of lanes) per hop for all routes, rather than one for each route.
        Pieces leave in the order in which the schedule sends them.
    piece_bytes : int, optional
        Size of a piece at most; by default 1/4000 of all data, 64 KiB at most.
    room_bytes : mapping of str to float, optional
        Room for others' data at hosts; unlimited at those left out. What is in flight to a host
        takes up room there already: a relay full of parts of pieces could pass none of them on.
        Pieces are no larger than a quarter of the smallest room.
    window_bytes : int, optional
        Asked for with each connection.
    recovery : Recovery, optional

    Attributes
    ----------
    answer : dict
        ``replans``: how often the remainder was planned again; ``at_s``: when; ``predicted_end_s``:
        when each new schedule promised to end.

    Raises
    ------
    ProblemError
        A number is out of range, the schedule is in slots, or a host has next to no room.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> plan = dc.coordinated(problem)
    >>> controller = ReplanningController(problem, plan, replan_s=60.0)
    >>> controller.start()  # doctest: +NORMALIZE_WHITESPACE
    [Open(connection=0, hosts=('S', 'D'), window_bytes=None, pace_bytes_per_s=None),
     Send(connection=0, source='S', offset_bytes=0, n_bytes=10), WakeMe(time_s=60.0, tag=0)]
    """

    decides_at_destination = True

    def __init__(
        self,
        problem: Problem,
        schedule: Schedule,
        *,
        replan_s: float,
        lanes: int = 1,
        shared_connections: bool = False,
        piece_bytes: int | None = None,
        room_bytes: Mapping[str, float] | None = None,
        window_bytes: int | None = None,
        recovery: Recovery | None = None,
    ) -> None:
        for name, value in (("replan_s", replan_s), ("lanes", lanes), ("piece_bytes", piece_bytes)):
            if value is not None and not value > 0:
                raise ProblemError(f"{name} must be > 0, got {value}")
        if schedule.slot_s is not None:
            raise ProblemError(
                "the schedule must be pipelined to be planned again while it runs, got slots of "
                f"{schedule.slot_s:g} s; plan without slot_s"
            )
        self._problem = problem
        self._destination = problem.destination
        self._schedule = schedule
        self._replan_s = replan_s
        self._n_lanes = lanes
        self._shared = shared_connections
        self._room = RelayRoom(problem, room_bytes)
        self._piece_bytes = self._room.piece_bytes(problem.total_bytes, piece_bytes)
        self._table = ConnectionTable(recovery, window_bytes=window_bytes)
        self._backlog_bytes = {
            name: n
            for name, n in zip(problem.names, problem.backlog_bytes.tolist(), strict=True)
            if n and name != problem.destination
        }
        self._release_s = dict(zip(problem.names, problem.release_s.tolist(), strict=True))
        self._collected = {source: ByteRanges() for source in self._backlog_bytes}
        for part in problem.held:
            if part.host == problem.destination:
                self._collected[part.source].add(part.offset_bytes, part.n_bytes)
        # The schedule under way. Its routes are numbered on from those of the one before.
        self._first_route = self._n_routes = 0
        self._hops: dict[RouteHop, HopQueue] = {}
        self._windows: dict[Lane, ConnectionWindow] = {}
        # What it sends on once a piece has arrived that left under an earlier schedule.
        self._expected: dict[tuple[str, Piece], list[Waiting]] = {}
        self._unreleased: list[Waiting] = []
        self._stranded: list[tuple[str, Piece]] = []  # on connections given up, at their senders
        self._lost: set[str] = set()
        self._n_waiting = 0
        self._asked: _Asked | None = None
        self._n_asked = 0
        self._put_off: dict[HopQueue, None] = {}  # hops that are fed once the answer is here
        self._observed = ObservedRates()
        self.answer: dict[str, Any] = {"replans": 0, "at_s": [], "predicted_end_s": []}

    def start(self) -> list[Decision]:
        """Return the first decisions, at time 0."""
        decisions = self._adopt(self._schedule, 0.0)
        self._observed.begin(0.0, self._windows.values())
        return [*decisions, WakeMe(self._replan_s, REPLAN)]

    def handle(self, event: Event) -> list[Decision]:
        """Return what to do after an event."""
        match event:
            case RangeArrived():
                return self._arrived(event)
            case HostLost():
                return self._host_lost(event)
            case RemainingPlanned():
                return self._planned(event)
            case Timer() if event.tag == REPLAN:
                return self._on_time(event.time_s)
            case Timer() if event.tag == RELEASE:
                return self._released(event.time_s)
            case ConnectionStalled():
                return self._stalled(event)
            case Timer() | ConnectionClosed():
                return self._table.handle(event)
            case _:
                return []

    # Pieces in flight --------------------------------------------------------------------

    def _arrived(self, event: RangeArrived) -> list[Decision]:
        if event.host == self._destination:
            self._collected[event.source].add(event.offset_bytes, event.n_bytes)
        lane = self._table.lane_of(event.connection)
        if self._table.arrived(event) is None or lane is None:
            return []
        window = self._windows[lane]
        piece = Piece(event.source, event.offset_bytes, event.n_bytes)
        entry = window.arrived(piece, event.time_s)
        self._observed.moved(lane, piece.n_bytes)
        decisions = self._feed(window.hop, event.time_s) if window.hop else []
        if not window.in_flight:
            window.was_busy = False
            if window.hop is None:
                del self._windows[lane]
                decisions += self._table.close(lane)
        for hop in self._queue_onward(lane.to_host, entry):
            decisions += self._feed(hop, event.time_s)
        for hop in self._room.left(lane.from_host, piece):
            decisions += self._feed(hop, event.time_s)
        return decisions

    def _queue_onward(self, host: str, entry: Waiting) -> list[HopQueue]:
        """Queue what arrived at a host for where it goes next; return the hops."""
        route_hop = RouteHop(entry.route_hop.route, entry.route_hop.hop + 1)
        if entry.route_hop.route < self._first_route:
            onward = self._expected.pop((host, entry.piece), [])
        else:
            onward = [] if host == self._destination else [entry._replace(route_hop=route_hop)]
        for part in onward:
            heappush(self._hops[part.route_hop].ready, part)
        return list(dict.fromkeys(self._hops[part.route_hop] for part in onward))

    def _feed(self, hop: HopQueue, time_s: float) -> list[Decision]:
        """Hand a hop's connections as many pieces as they need."""
        decisions: list[Decision] = []
        if hop.from_host in self._lost or hop.to_host in self._lost:
            return decisions
        if self._asked is not None:
            self._put_off[hop] = None
            return decisions
        least_bytes = LEAST_PIECES * self._piece_bytes
        while hop.ready and (window := hop.neediest(time_s, least_bytes)):
            if not self._room.take(hop, hop.ready[0].piece):
                for other in hop.windows:
                    other.was_busy = False
                break
            entry = heappop(hop.ready)
            window.sent(entry)
            decisions += self._table.send(window.lane, entry.piece, entry.route_hop)
        return decisions

    def _released(self, time_s: float) -> list[Decision]:
        """Queue what has been released by now."""
        waiting, self._unreleased = self._unreleased, []
        hops: dict[HopQueue, None] = {}
        for entry in waiting:
            if self._release_s[entry.piece.source] > time_s:
                self._unreleased.append(entry)
            else:
                heappush(self._hops[entry.route_hop].ready, entry)
                hops[self._hops[entry.route_hop]] = None
        return [decision for hop in hops for decision in self._feed(hop, time_s)]

    # Replanning --------------------------------------------------------------------------

    def _on_time(self, time_s: float) -> list[Decision]:
        links = self._observed.new_links(self._problem, time_s, self._windows.values())
        return self._replan(time_s, links, on_time=True)

    def _has_work(self) -> bool:
        """Return whether anything is in flight, or can be."""
        return (
            bool(self._unreleased or self._stranded)
            or any(window.in_flight for window in self._windows.values())
            or any(hop.ready for hop in self._hops.values())
        )

    def _replan(self, time_s: float, links: NewLinks | None, *, on_time: bool) -> list[Decision]:
        """Ask for a plan of what remains, if anything does beyond what is in flight to the end."""
        where = self._whereabouts()
        on_time = on_time or (self._asked is not None and self._asked.on_time)
        self._asked = None
        if where.bytes_at(self._destination) >= sum(self._backlog_bytes.values()):
            return self._next_interval(time_s, on_time=on_time)
        self._asked = _Asked(self._n_asked, time_s, on_time)
        self._n_asked += 1
        progress = Progress(time_s, where.held(), links, tuple(sorted(self._lost)))
        return [PlanRemaining(self._asked.number, progress)]

    def _planned(self, event: RemainingPlanned) -> list[Decision]:
        """Adopt the plan, unless another has been asked for since."""
        asked, decisions = self._asked, list[Decision]()
        if asked is None or asked.number != event.number:
            return decisions
        self._asked, put_off, self._put_off = None, self._put_off, {}
        if event.schedule is not None:
            self.answer["replans"] += 1
            self.answer["at_s"].append(asked.at_s)
            self.answer["predicted_end_s"].append(asked.at_s + event.schedule.makespan_s)
            decisions = self._adopt(event.schedule, asked.at_s)
        else:
            decisions = [d for hop in put_off for d in self._feed(hop, event.time_s)]
        return decisions + self._next_interval(event.time_s, on_time=asked.on_time)

    def _next_interval(self, time_s: float, *, on_time: bool) -> list[Decision]:
        """Observe again; where it was time to plan, say when it is again."""
        self._observed.begin(time_s, self._windows.values())
        return [WakeMe(time_s + self._replan_s, REPLAN)] if on_time and self._has_work() else []

    def _whereabouts(self) -> Whereabouts:
        """Find where all data lie, or will once they arrive."""
        where = Whereabouts(self._backlog_bytes)
        for source, ranges in self._collected.items():
            for offset, n_bytes in present(ranges, self._backlog_bytes[source]):
                where.lay(self._destination, Piece(source, offset, n_bytes))
        for lane, window in self._windows.items():
            for piece in window.in_flight:
                where.lay(lane.to_host, piece)
        waiting = [
            (hop.from_host, entry.piece)
            for hop in dict.fromkeys(self._hops.values())
            for entry in hop.ready
        ]
        for host, piece in (*waiting, *self._stranded):
            if host not in (piece.source, *self._lost):
                where.lay(host, piece)
        for source in self._lost & self._backlog_bytes.keys():
            where.lay_remaining(self._destination, source)  # gone: nobody waits for it any more
        return where

    def _adopt(self, schedule: Schedule, at_s: float) -> list[Decision]:
        """Begin to carry out a schedule; what waits under the one before is in it, too."""
        rows = [row for row in rows_of(schedule, None) if row.hop == 0]
        self._expected, self._unreleased, self._stranded = {}, [], []
        self._room.nobody_waits()
        for window in self._windows.values():
            window.hop = None
        self._first_route += self._n_routes
        self._n_routes = len(schedule.routes)
        decisions = self._connect(schedule, dict.fromkeys(row.route for row in rows))
        for row in rows:
            self._queue(row, at_s)
        for hop in dict.fromkeys(self._hops.values()):
            decisions += self._feed(hop, at_s)
        released_s = {self._release_s[entry.piece.source] for entry in self._unreleased}
        return [*decisions, *(WakeMe(release_s, RELEASE) for release_s in sorted(released_s))]

    def _connect(self, schedule: Schedule, routes: Mapping[int, None]) -> list[Decision]:
        """Find each hop's connections among those there are; open what lacks, close the others."""
        hops: dict[tuple[str, str, int], HopQueue] = {}
        self._hops = {}
        used: Counter[tuple[str, str]] = Counter()
        decisions: list[Decision] = []
        for route in routes:
            for number, ends in enumerate(pairwise(schedule.routes[route].hosts)):
                which = SHARED if self._shared else used[ends]
                used[ends] += 1
                place = (*ends, which)
                if place not in hops:
                    hops[place] = HopQueue(*ends)
                    lanes = [Lane(*place, i) for i in range(self._n_lanes)]
                    hops[place].windows = [
                        self._windows.setdefault(ln, ConnectionWindow(ln)) for ln in lanes
                    ]
                self._hops[RouteHop(self._first_route + route, number)] = hops[place]
        for hop in hops.values():
            for window in hop.windows:
                window.hop = hop
                decisions += self._table.open(window.lane)
        for lane, window in list(self._windows.items()):
            if window.hop is None and not window.in_flight:
                del self._windows[lane]
                decisions += self._table.close(lane)
        return decisions

    def _queue(self, row: Row, at_s: float) -> None:
        """Cut what a route sends into pieces, and queue those that are there."""
        route_hop = RouteHop(self._first_route + row.route, 0)
        host, source = self._hops[route_hop].from_host, row.piece.source
        coming = [
            piece
            for lane, window in self._windows.items()
            if lane.to_host == host
            for piece in window.in_flight
            if piece.source == source
        ]
        for piece, first in pieces_of(row.piece, coming, self._piece_bytes):
            middle = piece.offset_bytes + piece.n_bytes / 2 - row.piece.offset_bytes
            begun_s = (row.finish_s - row.start_s) * middle / row.piece.n_bytes
            entry = Waiting(at_s + row.start_s + begun_s, self._n_waiting, piece, route_hop)
            self._n_waiting += 1
            if first is not None:
                self._expected.setdefault((host, first), []).append(entry)
            elif host == source and self._release_s[source] > at_s:
                self._unreleased.append(entry)
            else:
                heappush(self._hops[route_hop].ready, entry)

    # Trouble --------------------------------------------------------------------------------

    def _stalled(self, event: ConnectionStalled) -> list[Decision]:
        """Replace a stuck connection, or give it up where no route uses it any more.

        What is in flight over it is planned again the next time, from its sender.
        """
        lane = self._table.lane_of(event.connection)
        if lane is None or self._windows[lane].hop is not None:
            return self._table.handle(event)
        self._give_up(lane)
        return list(self._table.drop(lane))

    def _host_lost(self, event: HostLost) -> list[Decision]:
        """Plan again without a host: what it held of others' starts again at its source."""
        self._lost.add(event.host)
        for lane in list(self._windows):
            if event.host in (lane.from_host, lane.to_host):
                self._give_up(lane)
        closed = self._table.lose(event.host, lambda _, __: False)
        return closed + self._replan(event.time_s, None, on_time=False)

    def _give_up(self, lane: Lane) -> None:
        """Forget a connection; what is in flight over it lies where it left."""
        for piece in self._windows.pop(lane).in_flight:
            self._stranded.append((lane.from_host, piece))
            self._room.will_not_come(lane.to_host, piece)
