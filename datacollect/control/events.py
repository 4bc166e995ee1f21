"""Events that a driver reports to a controller: what has happened, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from datacollect.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class ConnectionOpened:
    """The connection carries data from now on."""

    time_s: float
    connection: int


@dataclass(frozen=True, slots=True)
class ConnectionStalled:
    """Connection without progress for the driver's stall time although data wait."""

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
class BytesMoved:
    """So much has arrived over a connection since it was opened, as controllers that watch hear."""

    time_s: float
    connection: int
    n_bytes: int


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


@dataclass(frozen=True, slots=True)
class RemainingPlanned:
    """The schedule that a `PlanRemaining` asked for; None where there is none, or not in time."""

    time_s: float
    number: int
    schedule: Schedule | None


Event: TypeAlias = (
    ConnectionOpened
    | ConnectionStalled
    | ConnectionClosed
    | RangeArrived
    | ConnectionHasRoom
    | BytesMoved
    | HostLost
    | Timer
    | RemainingPlanned
)
