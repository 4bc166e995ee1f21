"""How a schedule is carried out: events in, decisions out.

A controller is told what happened and when, and answers what to do next. It has no clock, no
sockets and no threads, so the same controller drives a packet simulator, a fluid model, or a
collector over real connections; those, the drivers, move bytes and report events, and decide
nothing.

The driver calls `Controller.start` once, then `Controller.handle` for every event in the order
of time, and carries out the decisions it gets back, in their order, at the event's instant:

- `Open` asks for a connection between two hosts; `ConnectionOpened` follows, or
  `ConnectionClosed` where it cannot be had.
- `Send` queues a range of a source's data on a connection. Ranges leave first in, first out; a
  byte leaves when it is there: at the source from the start, at a relay once it has arrived
  (cut-through), so a queued range may wait for its bytes. Ranges may be queued before the
  connection is open.
- `RangeArrived` reports that all of a queued range is at the connection's receiving host.
- `WakeMe` asks for a `Timer` event at an instant.
- `Close` ends a connection once its queue is empty, or at once if it says so.

The collection is over when every byte is at the destination; the driver knows that itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class ConnectionOpened:
    """The connection carries data from now on."""

    time_s: float
    connection: int


@dataclass(frozen=True, slots=True)
class ConnectionStalled:
    """Nothing has moved on the connection for the driver's stall time although data wait."""

    time_s: float
    connection: int


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """The connection is gone; ranges still queued on it are not sent."""

    time_s: float
    connection: int


@dataclass(frozen=True, slots=True)
class RangeArrived:
    """A whole range, as it was queued by one `Send`, is at the connection's receiving host."""

    time_s: float
    connection: int
    host: str
    source: str
    offset_bytes: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class ConnectionHasRoom:
    """Less than the connection's window of queued bytes has yet to leave."""

    time_s: float
    connection: int
    room_bytes: int


@dataclass(frozen=True, slots=True)
class HostLost:
    """A host no longer answers; its connections are closed and what it stored is lost."""

    time_s: float
    host: str


@dataclass(frozen=True, slots=True)
class Timer:
    """The instant that a `WakeMe` asked for."""

    time_s: float
    tag: int


Event: TypeAlias = (
    ConnectionOpened
    | ConnectionStalled
    | ConnectionClosed
    | RangeArrived
    | ConnectionHasRoom
    | HostLost
    | Timer
)


@dataclass(frozen=True, slots=True)
class Open:
    """Open a connection; the controller numbers connections itself, each number once.

    ``window_bytes`` bounds what is on its way without acknowledgement, at least two segments,
    and what is queued when `ConnectionHasRoom` tells of room; None leaves it to the transport.
    ``pace_bytes_per_s`` caps its sending rate, None leaves it to the transport.
    """

    connection: int
    from_host: str
    to_host: str
    window_bytes: int | None = None
    pace_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Send:
    """Queue a range of a source's backlog on a connection."""

    connection: int
    source: str
    offset_bytes: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Close:
    """End a connection once its queue is empty, or at once, dropping what is queued on it.

    Of a range that is cut off what has arrived stays where it is; no `RangeArrived` follows.
    """

    connection: int
    drop_queue: bool = False


@dataclass(frozen=True, slots=True)
class WakeMe:
    """Ask for a `Timer` event with this tag at an instant."""

    time_s: float
    tag: int


Decision: TypeAlias = Open | Send | Close | WakeMe


class Controller(Protocol):
    """What decides. One instance carries out one collection."""

    def start(self) -> list[Decision]:
        """Return the first decisions, at time 0."""
        ...

    def handle(self, event: Event) -> list[Decision]:
        """Return what to do after an event."""
        ...
