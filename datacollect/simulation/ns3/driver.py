"""The packet engine's driver: passes ns-3's reports to a controller, and carries out decisions."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from datacollect.control.decisions import (
    Close,
    Open,
    PlanRemaining,
    Send,
    WakeMe,
    refuse,
    require_possible,
)
from datacollect.control.events import (
    BytesMoved,
    ConnectionClosed,
    ConnectionHasRoom,
    ConnectionOpened,
    ConnectionStalled,
    RangeArrived,
    Timer,
)
from datacollect.control.plan_request import remaining_planned
from datacollect.simulation.ns3.messages import ConnectionAsked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from datacollect.control.controller import Controller
    from datacollect.control.decisions import Decision
    from datacollect.control.events import Event
    from datacollect.control.plan_request import RemainingPlanner
    from datacollect.simulation.ns3.messages import LogEntry

# As the C++ program numbers what it reports, and why it has stopped.
OPENED, STALLED, CLOSED, ARRIVED, ROOM, TIMER = range(6)
EVENTS, TICK, LIMIT, COOLED, NOTHING = range(5)

# The timer at which the driver itself looks at what has arrived; no controller has such a tag.
LOOK = 2**62


class Ns3Driver:
    """Carry out a controller's decisions in one simulation, and keep the log of connections.

    Parameters
    ----------
    simulation : collect::Simulation
    controller : Controller
    hosts : sequence of str
        By number.
    backlog_bytes : mapping of str to int
    apart : set of pairs of str
        Hosts that cannot reach each other.
    plan_remaining : callable, optional
        Plans the rest for a controller that asks for it, in no simulated time.
    """

    def __init__(
        self,
        simulation: Any,
        controller: Controller,
        hosts: Sequence[str],
        backlog_bytes: Mapping[str, int],
        apart: set[tuple[str, str]],
        plan_remaining: RemainingPlanner | None = None,
    ) -> None:
        self._simulation = simulation
        self._controller = controller
        self._hosts = hosts
        self._number = {name: i for i, name in enumerate(hosts)}
        self._backlog_bytes = backlog_bytes
        self._apart = apart
        self._plan_remaining = plan_remaining
        self._opened: set[int] = set()
        self._closed: set[int] = set()
        self._carrying: set[int] = set()  # open by now
        self._will_look = False
        self.log: list[LogEntry] = []

    def run(self, beat: Callable[[], None]) -> str:
        """Simulate until all is collected; return why it stopped, "" if it is complete."""
        simulation = self._simulation
        simulation.WarmUp()
        self._apply(self._controller.start())
        while not simulation.Complete():
            if self._controller.finished:
                return "the controller has finished"
            if simulation.Idle() and not self._handle_events():
                return "nothing left to do: no data queued, no connection opening, no timer set"
            reason = simulation.Run()
            if reason == EVENTS:
                self._handle_events()
            elif reason == TICK:
                beat()
            elif reason == LIMIT:
                self._handle_events()
                return "" if simulation.Complete() else "time limit"
        self._handle_events()
        return ""

    def cool_down(self, cool_down_s: float, beat: Callable[[], None]) -> None:
        """End all connections and let the background go on."""
        for connection in sorted(self._opened - self._closed):
            self._simulation.Close(connection, True)
        self._handle_events()
        self._simulation.CoolDown(cool_down_s)
        while (reason := self._simulation.Run()) not in (COOLED, NOTHING):
            if reason == EVENTS:
                self._simulation.TakeEvents()
            beat()

    def _handle_events(self) -> bool:
        """Hand all that happened to the controller; True if anything had."""
        any_event = False
        while events := list(self._simulation.TakeEvents()):
            any_event = True
            for raw in events:
                for event in self._looked(raw.time_s) if _is_look(raw) else (self._event(raw),):
                    if not self._simulation.Complete():
                        self._apply(self._controller.handle(event))
        return any_event

    def _looked(self, time_s: float) -> Iterator[Event]:
        """Tell what has arrived; look again as long as there are connections."""
        self._will_look = False
        for connection in sorted(self._carrying):
            yield BytesMoved(time_s, connection, self._simulation.Arrived(connection))
        self._look_later()

    def _look_later(self) -> None:
        every_s = self._controller.watches_every_s
        if every_s is not None and self._opened - self._closed and not self._will_look:
            self._will_look = True
            self._simulation.WakeAt(self._simulation.Now() + every_s, LOOK)

    def _event(self, raw: Any) -> Event:
        """Return what a report says; note it where it is about a connection itself."""
        kind, time_s, connection = raw.kind, raw.time_s, raw.connection
        if kind == ARRIVED:
            return RangeArrived(
                time_s,
                connection,
                self._hosts[raw.host],
                self._hosts[raw.source],
                raw.offset,
                raw.bytes,
            )
        if kind == ROOM:
            return ConnectionHasRoom(time_s, connection, raw.bytes)
        if kind == TIMER:
            return Timer(time_s, raw.offset)
        event: ConnectionOpened | ConnectionStalled | ConnectionClosed
        if kind == OPENED:
            event = ConnectionOpened(time_s, connection)
            self._carrying.add(connection)
        elif kind == STALLED:
            event = ConnectionStalled(time_s, connection)
        else:
            event = ConnectionClosed(time_s, connection)
            self._closed.add(connection)
            self._carrying.discard(connection)
        self.log.append(event)
        return event

    def _apply(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            require_possible(
                decision,
                hosts=self._number,
                backlog_bytes=self._backlog_bytes,
                opened=self._opened,
            )
            match decision:
                case Send(connection, source, offset, n):
                    self._simulation.Send(connection, self._number[source], offset, n)
                case Open():
                    self._open(decision)
                case Close(connection, drop):
                    self._simulation.Close(connection, drop)
                case WakeMe(time_s, tag):
                    self._simulation.WakeAt(time_s, tag)
                case PlanRemaining():
                    event = remaining_planned(
                        self._plan_remaining, decision, self._simulation.Now()
                    )
                    self._apply(self._controller.handle(event))

    def _open(self, wanted: Open) -> None:
        for ends in pairwise(wanted.hosts):
            if ends in self._apart or ends[0] == ends[1]:
                refuse(wanted, f"no route between {ends[0]!r} and {ends[1]!r}")
        self._opened.add(wanted.connection)
        self.log.append(ConnectionAsked(self._simulation.Now(), wanted.connection, wanted.hosts))
        self._simulation.Open(
            wanted.connection,
            [self._number[host] for host in wanted.hosts],
            wanted.window_bytes or 0,
            wanted.pace_bytes_per_s or 0.0,
        )
        self._look_later()


def _is_look(raw: Any) -> bool:
    return bool(raw.kind == TIMER and raw.offset == LOOK)
