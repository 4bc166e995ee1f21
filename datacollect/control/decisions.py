"""What a controller decides, and what of it a driver can carry out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Never, TypeAlias

from datacollect.errors import SimulationError, nearest_hint

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from datacollect.schedule.progress import Progress


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

    Of a range that is cut off what has arrived stays where it is; no `RangeArrived` follows. Where
    the range is sent again a driver may go on from there.
    """

    connection: int
    drop_queue: bool = False


@dataclass(frozen=True, slots=True)
class WakeMe:
    """Ask for a `Timer` event with this tag at an instant."""

    time_s: float
    tag: int


@dataclass(frozen=True, slots=True)
class PlanRest:
    """Ask for a schedule from where the data lie; a `RestPlanned` event with this number answers.

    The clock of ``progress`` is the collection's; time 0 of the schedule is its instant.
    """

    number: int
    progress: Progress


Decision: TypeAlias = Open | Send | Close | WakeMe | PlanRest


def require_possible(
    decision: Decision,
    *,
    hosts: Collection[str],
    backlog_bytes: Mapping[str, int],
    opened: Collection[int],
) -> None:
    """Refuse what no driver can carry out.

    Whether a connection can be had is another matter: where it cannot, `ConnectionClosed` says so.

    Parameters
    ----------
    decision : Decision
    hosts : collection of str
        Where connections may begin and end.
    backlog_bytes : mapping of str to int
        What each source holds; nothing at those left out.
    opened : collection of int
        Numbers of all connections that were asked for, whatever has become of them.

    Raises
    ------
    SimulationError
        An unknown host or connection, a number that was used before, a range beyond the source's
        backlog, a pace of 0, a time before 0.

    Examples
    --------
    >>> rules = {"hosts": ["S", "D"], "backlog_bytes": {"S": 10}, "opened": [0]}
    >>> require_possible(Send(0, "S", 0, 10), **rules)
    >>> require_possible(Close(1), **rules)
    Traceback (most recent call last):
    datacollect.errors.SimulationError: the controller decided Close(connection=1,
    drop_queue=False): connection 1 was never opened; open it first
    """
    match decision:
        case Send(connection, source, offset_bytes, n_bytes):
            _require_opened(decision, connection, opened)
            backlog = backlog_bytes.get(source, 0)
            if n_bytes < 1 or offset_bytes < 0 or offset_bytes + n_bytes > backlog:
                refuse(
                    decision,
                    f"the range must lie within the source's {backlog} bytes; is this a schedule "
                    "for another problem?",
                )
        case Open(connection, from_host, to_host, _, pace_bytes_per_s):
            for host in (from_host, to_host):
                if host not in hosts:
                    hint = nearest_hint(host, hosts)
                    refuse(decision, f"host {host!r} is not in the network{hint}")
            if connection in opened:
                refuse(decision, f"number {connection} has been used before; take a new one")
            if pace_bytes_per_s is not None and not pace_bytes_per_s > 0:
                refuse(decision, "pace_bytes_per_s must be > 0; None leaves it to the transport")
        case Close(connection):
            _require_opened(decision, connection, opened)
        case WakeMe(time_s):
            if not time_s >= 0:
                refuse(decision, "time_s must be >= 0; the collection begins at 0")
        case PlanRest():
            pass  # whether anybody can plan the driver knows
        case _:
            refuse(decision, "this is no decision; Open, Send, Close, WakeMe and PlanRest are")


def _require_opened(decision: Send | Close, connection: int, opened: Collection[int]) -> None:
    if connection not in opened:
        refuse(decision, f"connection {connection} was never opened; open it first")


def refuse(decision: object, why: str) -> Never:
    """Raise SimulationError: a driver cannot carry a decision out."""
    raise SimulationError(f"the controller decided {decision}: {why}")
