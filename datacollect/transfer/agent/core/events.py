"""Events that a shell reports to an agent's core: what happened to which session, and when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ClockReading:
    """An instant by two clocks.

    Attributes
    ----------
    monotonic_s : float
        For durations.
    unix_s : float
        Seconds since 1970, for tickets; may jump.
    """

    monotonic_s: float
    unix_s: float


@dataclass(frozen=True, slots=True)
class Accepted:
    """Connection accepted, from an address without its port."""

    now: ClockReading
    session: int
    address: str


@dataclass(frozen=True, slots=True)
class FirstByte:
    """The first byte is there, and not taken yet."""

    now: ClockReading
    session: int
    byte: int


@dataclass(frozen=True, slots=True)
class HeadRead:
    """A request without TLS has arrived, to the end of its head, or to the most that one has."""

    now: ClockReading
    session: int
    head: bytes


@dataclass(frozen=True, slots=True)
class TunnelAsked:
    """A request for a tunnel has arrived over TLS: the head of a CONNECT to a service."""

    now: ClockReading
    session: int
    head: bytes


@dataclass(frozen=True, slots=True)
class HalfClosed:
    """One side of a tunnel has said that nothing more comes; the other may go on."""

    now: ClockReading
    session: int


@dataclass(frozen=True, slots=True)
class NonceKept:
    """Nonce of `KeepNonce` kept; or not, and why."""

    now: ClockReading
    session: int
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Dialled:
    """The next host has accepted the connection; or not, and why."""

    now: ClockReading
    session: int
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Passed:
    """Bytes that have moved since the event before; `spent`: as many as `Establish` allowed.

    Over TLS this comes while a response is sent, and `Sent` counts all of them again.
    """

    now: ClockReading
    session: int
    up_bytes: int
    down_bytes: int
    spent: bool = False


@dataclass(frozen=True, slots=True)
class RequestRead:
    """The head of a request has arrived over TLS; nothing of its body has been read.

    Attributes
    ----------
    headers : dict
        By lowercase name, each once.
    body_bytes : int
        How long a body it announces.
    """

    now: ClockReading
    session: int
    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)
    body_bytes: int = 0


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A request has arrived that one of the agent's own handlers answers, not its core."""

    now: ClockReading
    session: int


@dataclass(frozen=True, slots=True)
class PlaceHeld:
    """A handler has said whether what it does holds the connection's place against others."""

    now: ClockReading
    session: int
    holds: bool


@dataclass(frozen=True, slots=True)
class Malformed:
    """Malformed request over TLS; it is being refused."""

    now: ClockReading
    session: int
    status: int
    why: str


@dataclass(frozen=True, slots=True)
class BodyRead:
    """The body of the request has arrived, as `ReadBody` asked for it."""

    now: ClockReading
    session: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Sent:
    """The answer to the last request has left, with `n_bytes` of files.

    ``only_hashed``: they were read and hashed, and did not leave.
    """

    now: ClockReading
    session: int
    n_bytes: int = 0
    only_hashed: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """The session is over, and all that it held is released; why in a few words.

    ``sent_bytes``: of files, in an answer that was broken off. ``is_failure``: it was not for a
    peer to end it; this host, or this program, could not go on.
    """

    now: ClockReading
    session: int
    why: str
    sent_bytes: int = 0
    is_failure: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; told about twice a second."""

    now: ClockReading


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The agent is told to end: after what is under way, or, told again, at once."""

    now: ClockReading


@dataclass(frozen=True, slots=True)
class CollectorsRead:
    """Collectors, users of tunnels and of own services, whose tickets count from now on."""

    now: ClockReading
    collectors: frozenset[str]
    users: frozenset[str] = frozenset()
    users_of: Mapping[str, frozenset[str]] = field(default_factory=dict)


Event: TypeAlias = (
    Accepted
    | FirstByte
    | HeadRead
    | TunnelAsked
    | HalfClosed
    | NonceKept
    | Dialled
    | Passed
    | RequestRead
    | HandedOver
    | PlaceHeld
    | Malformed
    | BodyRead
    | Sent
    | Ended
    | Tick
    | StopAsked
    | CollectorsRead
)
