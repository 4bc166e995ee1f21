"""The fluid engine's driver: passes events to a controller in the order of time, and obeys it."""

from __future__ import annotations

import heapq
import math
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from datacollect.control.decisions import (
    Close,
    Decision,
    Open,
    PlanRemaining,
    Send,
    WakeMe,
    require_possible,
)
from datacollect.control.events import (
    BytesMoved,
    ConnectionClosed,
    ConnectionHasRoom,
    ConnectionOpened,
    ConnectionStalled,
    Event,
    HostLost,
    RangeArrived,
    Timer,
)
from datacollect.control.plan_request import remaining_planned
from datacollect.errors import ProblemError, SimulationError
from datacollect.numbers.byte_ranges import ByteRanges
from datacollect.simulation.fluid.parts import QueuedRange
from datacollect.simulation.fluid.state import FluidState
from datacollect.simulation.fluid.wires import chained
from datacollect.simulation.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from datacollect.control.controller import Controller
    from datacollect.control.plan_request import RemainingPlanner
    from datacollect.numbers.arrays import BoolArray, FloatArray
    from datacollect.problem.hosts import Held
    from datacollect.simulation.fluid.parts import FluidConnection, FluidHost
    from datacollect.simulation.fluid.wires import FluidNetwork, FluidPath
    from datacollect.simulation.run import OnProgress


PROGRESS_EVERY_EVENTS = 200


class FluidDriver:
    """The driver of a controller: tells it events in the order of time, does what it decides."""

    def __init__(
        self,
        network: FluidNetwork,
        backlog_bytes: Mapping[str, int],
        destination: str,
        controller: Controller,
        stall_s: float,
        relay_buffer_bytes: float,
        plan_remaining: RemainingPlanner | None = None,
    ) -> None:
        for host in (*backlog_bytes, destination):
            network.require_host(host)
        for host, n_bytes in backlog_bytes.items():
            if n_bytes < 0:
                raise ProblemError(f"host {host!r}: backlog_bytes must be >= 0, got {n_bytes}")
        self.network = network
        # What is at the destination from the start is no task.
        self.backlog_bytes = {h: n for h, n in backlog_bytes.items() if h != destination}
        self.destination = destination
        self.controller = controller
        self.plan_remaining = plan_remaining
        self.recorder = Recorder(self.backlog_bytes, destination)
        self.state = FluidState(network, self.recorder, destination, relay_buffer_bytes)
        self.stall_s = stall_s
        self.n_events = 0
        self.end_s = 0.0
        self._there: dict[str, ByteRanges] = {}
        self._known: dict[int, FluidConnection | None] = {}
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._n_planned = 0
        # Of the agenda: the network's next change, if there is one, and the next look.
        self._n_changes = 0
        self._n_looks = 0

    # Others' traffic --------------------------------------------------------------------------

    def background_rates(self, from_s: float, to_s: float) -> FloatArray:
        """Return others' mean rates between two instants without the collection.

        In no time: those of the steady state, when all of them send.
        """
        rates, n = self.state.flow_rates, self.state.n_background
        idle = np.zeros(len(self.state.left), dtype=bool)
        upstream = np.full(n + len(idle), -1)

        def at(time_s: float, active: BoolArray) -> FloatArray:
            capacity = self.network.capacity_bytes_per_s(time_s)
            return rates.rates(capacity, np.concatenate([active, idle]), upstream)[:n]

        if n == 0 or to_s <= from_s:
            return at(from_s, np.ones(n, dtype=bool))
        moved, now_s = np.zeros(n), from_s
        while now_s < to_s:
            until_s = min(to_s, self.network.next_change_s(now_s))
            moved += at(now_s, self.network.background_active(now_s)) * (until_s - now_s)
            now_s = until_s
        return moved / (to_s - from_s)

    def background_goodput(self) -> FloatArray:
        """Return others' mean rates during the collection."""
        moved = self.state.moved_bytes[: self.state.n_background]
        return moved / self.end_s if self.end_s > 0 else moved

    # Time -------------------------------------------------------------------------------------

    def prepare(
        self,
        release_s: Mapping[str, float],
        held: Sequence[Held],
        lost_hosts_s: Mapping[str, float],
    ) -> None:
        """Lay the data out, and plan what happens to the network and its hosts."""
        at_home = {source: ByteRanges() for source in self.backlog_bytes}
        elsewhere = {source: ByteRanges() for source in self.backlog_bytes}
        for part in held:
            if part.source in self.backlog_bytes and part.host != part.source:
                elsewhere[part.source].add(part.offset_bytes, part.n_bytes)
                self._lay(part.host, part.source, part.offset_bytes, part.n_bytes)
        for source, n_bytes in self.backlog_bytes.items():
            for offset, n in elsewhere[source].missing(0, n_bytes):
                at_home[source].add(offset, n)
                lay = partial(self._lay, source, source, offset, n)
                at_s = release_s.get(source, 0.0)
                if at_s > 0:
                    self._plan(at_s, lay)
                else:
                    lay()
        for host, lost_s in lost_hosts_s.items():
            self.network.require_host(host)
            self._plan(lost_s, partial(self._lose, host))
        self._plan_change()

    def run(self, time_limit_s: float, event_limit: int, progress: OnProgress | None) -> None:
        """Go from event to event until all is collected, or nothing more is to happen."""
        state = self.state
        self._decide(self.controller.start())
        self._plan_look()
        state.settle()
        while not (self.recorder.is_complete or self.controller.finished):
            next_s = state.next_s(self.stall_s)
            if self._agenda:
                next_s = min(next_s, self._agenda[0][0])
            if next_s > time_limit_s or next_s == math.inf or self._is_over():
                break
            state.advance(max(next_s, state.now_s))
            self._happen()
            state.settle()
            self.n_events += 1
            if self.n_events > event_limit:
                raise SimulationError(
                    f"fluid engine: more than event_limit = {event_limit} events by "
                    f"{state.now_s:g} s of simulated time; is the controller in an endless loop?"
                )
            if progress and self.n_events % PROGRESS_EVERY_EVENTS == 0:
                progress(state.now_s, sum(self.recorder.collected_bytes.values()))
        self._stop(time_limit_s)

    def _is_over(self) -> bool:
        """Return whether nothing moves or will: all that is still to come is others' traffic."""
        n_others = self._n_changes + self._n_looks
        return len(self._agenda) <= n_others and not self.state.active.any()

    def _stop(self, time_limit_s: float) -> None:
        """Count what has moved of ranges under way."""
        state = self.state
        is_over = self.recorder.is_complete or self.controller.finished
        if not is_over and time_limit_s < math.inf:
            state.advance(max(time_limit_s, state.now_s))
        self.end_s = state.now_s
        for connection in state.connections:
            if not connection.is_gone and connection.queue:
                self._cut(connection)

    def _happen(self) -> None:
        """Do all that is due now."""
        state = self.state
        for connection in state.drained():
            self._drained(connection)
        for connection in state.stalled(self.stall_s):
            self.recorder.stalled(connection.number)
            self._plan(state.now_s, partial(self._tell_if_there, connection, ConnectionStalled))
        until_s = state.now_s + state.tie_s
        while self._agenda and self._agenda[0][0] <= until_s:
            if self.recorder.is_complete:
                return
            heapq.heappop(self._agenda)[2]()

    def _drained(self, connection: FluidConnection) -> None:
        state = self.state
        head = state.finished(connection)
        at_s = state.now_s + head.behind_s + connection.path.delay_s
        self._plan(at_s, partial(self._arrived, connection, head))
        if connection.is_closing and not connection.queue:
            self._gone(connection)
        else:
            self._plan(state.now_s, partial(self._tell_room, connection))

    def _plan(self, time_s: float, act: Callable[[], None]) -> None:
        self._n_planned += 1
        heapq.heappush(self._agenda, (time_s, self._n_planned, act))

    def _plan_change(self) -> None:
        change_s = self.network.next_change_s(self.state.now_s + self.state.tie_s)
        self._n_changes = int(change_s < math.inf)
        if self._n_changes:
            self._plan(change_s, self._change)

    def _plan_look(self) -> None:
        every_s = self.controller.watches_every_s
        if every_s is not None:
            self._n_looks = 1
            self._plan(self.state.now_s + every_s, self._look)

    # What happens -----------------------------------------------------------------------------

    def _look(self) -> None:
        """Have what has left on each connection told once it has arrived."""
        state = self.state
        for connection in state.connections:
            if connection.is_open:
                behind_s = connection.queue[0].behind_s if connection.queue else 0.0
                at_s = state.now_s + behind_s + connection.path.delay_s
                moved = int(state.moved_bytes[state.n_background + connection.index])
                self._plan(at_s, partial(self._tell_moved, connection, moved))
        self._plan_look()

    def _tell_moved(self, connection: FluidConnection, n_bytes: int) -> None:
        if not connection.is_gone:
            self._tell(BytesMoved(self.state.now_s, connection.number, n_bytes))

    def _tell(self, event: Event) -> None:
        self._decide(self.controller.handle(event))

    def _change(self) -> None:
        for connection in self.state.all_but_drained():
            self._drained(connection)
        self.state.refresh_network()
        self._plan_change()

    def _lay(self, host: str, source: str, offset_bytes: int, n_bytes: int) -> None:
        if self.state.host(host).is_lost:
            return
        self.state.put(host, source, offset_bytes, n_bytes)
        if host == self.destination:
            self._collect(source, offset_bytes, n_bytes)

    def _collect(self, source: str, offset_bytes: int, n_bytes: int) -> None:
        there = self._there.setdefault(source, ByteRanges())
        new_bytes = there.add(offset_bytes, n_bytes)
        self.recorder.collected(source, self.state.now_s, new_bytes)

    def _arrived(self, connection: FluidConnection, head: QueuedRange) -> None:
        host = connection.to_host
        if host.is_lost:
            return
        if host.name == self.destination:
            self._collect(head.source, head.offset_bytes, head.n_bytes)
        if not self.recorder.is_complete:
            self._tell(
                RangeArrived(
                    self.state.now_s,
                    connection.number,
                    host.name,
                    head.source,
                    head.offset_bytes - head.skipped_bytes,
                    head.n_bytes + head.skipped_bytes,
                )
            )

    def _opened(self, connection: FluidConnection) -> None:
        if connection.is_gone:
            return
        self.state.opened(connection)
        self.recorder.opened(connection.number, self.state.now_s)
        self._tell(ConnectionOpened(self.state.now_s, connection.number))
        self._tell_room(connection)

    def _tell_room(self, connection: FluidConnection) -> None:
        if connection.window_bytes is None or connection.is_gone:
            return
        room = connection.window_bytes - connection.queued_bytes
        if room > 0:
            self._tell(ConnectionHasRoom(self.state.now_s, connection.number, room))

    def _tell_if_there(self, connection: FluidConnection, kind: type[ConnectionStalled]) -> None:
        if not connection.is_gone:
            self._tell(kind(self.state.now_s, connection.number))

    def _closed(self, number: int) -> None:
        self.recorder.closed(number, self.state.now_s)
        self._tell(ConnectionClosed(self.state.now_s, number))

    def _gone(self, connection: FluidConnection) -> None:
        self._cut(connection)
        self._plan(self.state.now_s, partial(self._closed, connection.number))

    def _cut(self, connection: FluidConnection) -> None:
        """End a connection; what of its head has arrived at the destination counts."""
        head = connection.queue[0] if connection.queue else None
        done = self.state.gone(connection)
        if head is not None and done and connection.to_host.name == self.destination:
            self._collect(head.source, head.offset_bytes, done)

    def _lose(self, host: str) -> None:
        state = self.state
        lost = state.host(host)
        for connection in state.connections:
            if not connection.is_gone and lost in connection.hosts:
                self._gone(connection)
        state.lose(lost)
        self._tell(HostLost(state.now_s, host))

    # What is decided --------------------------------------------------------------------------

    def _decide(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            require_possible(
                decision,
                hosts=self.network.hosts,
                backlog_bytes=self.backlog_bytes,
                opened=self._known,
            )
            match decision:
                case Send():
                    self._send(decision)
                case WakeMe():
                    at_s = max(decision.time_s, self.state.now_s)
                    self._plan(at_s, partial(self._wake, decision.tag))
                case Open():
                    self._open(decision)
                case Close():
                    self._close(decision)
                case PlanRemaining():
                    self._tell(remaining_planned(self.plan_remaining, decision, self.state.now_s))

    def _wake(self, tag: int) -> None:
        self._tell(Timer(self.state.now_s, tag))

    def _open(self, wanted: Open) -> None:
        number, state = wanted.connection, self.state
        self.recorder.asked(number, wanted.hosts, state.now_s)
        hops = [self.network.path(*hop) for hop in pairwise(wanted.hosts)]
        path = chained(hops)
        hosts = tuple(state.host(name) for name in wanted.hosts)
        if path is None or any(host.is_lost for host in hosts):
            self._known[number] = None
            self._plan(state.now_s, partial(self._closed, number))
            return
        connection = state.add_connection(number, hosts, path, wanted.window_bytes)
        state.flow_rates.add(path, _most_bytes_per_s(wanted, hops))
        self._known[number] = connection
        self._plan(state.now_s + path.round_trip_s, partial(self._opened, connection))

    def _connection(self, number: int) -> FluidConnection | None:
        """Return a connection, None if it is gone."""
        connection = self._known[number]
        return None if connection is None or connection.is_gone else connection

    def _send(self, wanted: Send) -> None:
        connection = self._connection(wanted.connection)
        if connection is not None and not connection.is_closing:
            self.state.enqueue(connection, _not_yet_there(connection.to_host, wanted))

    def _close(self, wanted: Close) -> None:
        connection = self._connection(wanted.connection)
        if connection is None:
            return
        connection.is_closing = True
        if wanted.drop_queue or not connection.queue:
            self._gone(connection)


def _not_yet_there(receiver: FluidHost, wanted: Send) -> QueuedRange:
    """Return what is to be sent of a range: from where a connection before was cut off.

    Receivers ask for what they lack. All of a range that is there is sent again all the same:
    whoever asks for that has not heard of it yet.
    """
    there = receiver.ranges(wanted.source).end_after(wanted.offset_bytes)
    end = wanted.offset_bytes + wanted.n_bytes
    begin = wanted.offset_bytes if there is None or there >= end else there
    return QueuedRange(wanted.source, begin, end - begin, begin - wanted.offset_bytes)


def _most_bytes_per_s(wanted: Open, hops: Iterable[FluidPath | None]) -> float | None:
    """Return what pacing and the window allow: a window of bytes each round-trip time of a hop."""
    pace = wanted.pace_bytes_per_s
    longest_s = max(hop.round_trip_s for hop in hops if hop is not None)
    if wanted.window_bytes is None or longest_s <= 0:
        return pace
    by_window = wanted.window_bytes / longest_s
    return by_window if pace is None else min(pace, by_window)
