"""Decisions of a controller, and the check that a driver can carry them out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Never, TypeAlias

from datacollect.errors import SimulationError, nearest_hint

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from datacollect.schedule.progress import Progress


@dataclass(frozen=True, slots=True)
class Open:
    """Open a connection, or a chain; the controller numbers them itself, each number once.

    Two ``hosts`` are the ends of a connection. More are a *chain*: one TCP connection for each
    hop, and relays in between that pass bytes on as they come (cut-through), in order, and hold no
    more than a bounded buffer; they know nothing of ranges, and lay nothing up. To a controller a
    chain is a connection from its first host to its last: what is sent on it arrives at the last;
    it is open once all its hops are, and gone as soon as one is. It counts as many connections
    as it has hops.

    ``window_bytes`` bounds what is in flight without acknowledgement, at least two segments,
    and what is queued when `ConnectionHasRoom` tells of room; in a chain each hop's, and each
    relay's buffer. None leaves it to the transport. ``pace_bytes_per_s`` caps its sending rate,
    None leaves it to the transport.

    Examples
    --------
    >>> chain = Open(0, ("S", "K", "D"))
    >>> chain.from_host, chain.to_host, chain.n_hops
    ('S', 'D', 2)
    """

    connection: int
    hosts: tuple[str, ...]
    window_bytes: int | None = None
    pace_bytes_per_s: float | None = None

    @property
    def from_host(self) -> str:
        """The host that sends."""
        return self.hosts[0]

    @property
    def to_host(self) -> str:
        """The host that receives."""
        return self.hosts[-1]

    @property
    def n_hops(self) -> int:
        """As how many connections it counts."""
        return len(self.hosts) - 1


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
class PlanRemaining:
    """Ask for a schedule from where the data lie; `RemainingPlanned` with this number answers.

    The clock of ``progress`` is the collection's; time 0 of the schedule is its instant.
    """

    number: int
    progress: Progress


Decision: TypeAlias = Open | Send | Close | WakeMe | PlanRemaining


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
        An unknown host or connection, a chain with a host twice, a number that was used before,
        a range beyond the source's backlog, a pace of 0, a time before 0.

    Examples
    --------
    >>> rules = {"hosts": ["S", "D"], "backlog_bytes": {"S": 10}, "opened": [0]}
    >>> require_possible(Send(0, "S", 0, 10), **rules)
    >>> require_possible(Close(1), **rules)
    Traceback (most recent call last):
    datacollect.errors.SimulationError: the controller's decision cannot be carried out:
    Close(connection=1, drop_queue=False): connection 1 was never opened; open it first
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
        case Open(connection, chain, _, pace_bytes_per_s):
            _require_chain(decision, chain, hosts)
            if connection in opened:
                refuse(decision, f"number {connection} has been used before; take a new one")
            if pace_bytes_per_s is not None and not pace_bytes_per_s > 0:
                refuse(decision, "pace_bytes_per_s must be > 0; None leaves it to the transport")
        case Close(connection):
            _require_opened(decision, connection, opened)
        case WakeMe(time_s):
            if not time_s >= 0:
                refuse(decision, "time_s must be >= 0; the collection begins at 0")
        case PlanRemaining():
            pass  # whether anybody can plan the driver knows
        case _:
            refuse(decision, "must be one of Open, Send, Close, WakeMe and PlanRemaining")


def _require_chain(decision: Open, chain: tuple[str, ...], hosts: Collection[str]) -> None:
    if isinstance(chain, str) or len(chain) < 2:
        refuse(decision, f"hosts must be a tuple of two or more, got {chain!r}")
    for host in chain:
        if host not in hosts:
            refuse(decision, f"host {host!r} is not in the network{nearest_hint(host, hosts)}")
    for host, n in Counter(chain).items():
        # A connection of a host with itself an engine may know how to refuse, or to carry out.
        if n > 1 and len(chain) > 2:
            refuse(decision, f"a chain must pass a host once, got {host!r} {n} times")


def _require_opened(decision: Send | Close, connection: int, opened: Collection[int]) -> None:
    if connection not in opened:
        refuse(decision, f"connection {connection} was never opened; open it first")


def refuse(decision: object, why: str) -> Never:
    """Raise SimulationError: a driver cannot carry a decision out."""
    raise SimulationError(f"the controller's decision cannot be carried out: {decision}: {why}")
