"""Events of the collector's core, and its actions. Plain data, no clock, no sockets.

Times are seconds since the core's start, by a clock that never jumps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.schedule.progress import Progress
    from datacollect.schedule.schedule import Schedule
    from datacollect.transfer.protocol.source import Verdict


# Events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """A session carries requests from now on.

    ``is_proved``: the source has just answered for a file that came before.
    """

    time_s: float
    session: int
    is_proved: bool = False


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """A session could not be opened, broke off, or has been closed.

    ``is_final``: the source itself refuses, by whichever route: to try again is of no use.
    ``wait_s``: it has asked to be left alone for this time.
    """

    time_s: float
    session: int
    why: str
    is_final: bool = False
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Answered:
    """A request has its whole answer; ``is_new``: its bytes were not there before.

    Of what is refused, ``file`` and ``pieces`` are the file, and all its pieces.
    """

    time_s: float
    session: int
    source: str
    piece: int
    n_bytes: int
    verdict: Verdict
    is_new: bool = True
    why: str = ""
    file: int | None = None
    pieces: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A source has said which files of a piece are not as listed any more, or cannot be read."""

    time_s: float
    session: int
    source: str
    piece: int
    changed: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()
    unreadable: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CollectorTicked:
    """Time has passed; all bytes that have arrived on each session since it was opened.

    ``waiting``: sessions that do not wait for an answer. ``held``: sources of which more could be
    received, but for limits of this collection.
    """

    time_s: float
    arrived_bytes: Mapping[int, int] = field(default_factory=dict)
    waiting: frozenset[int] = frozenset()
    held: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Woken:
    """The instant that a `Wake` asked for."""

    time_s: float
    tag: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """Pieces (source, piece) are on disk and noted in the state."""

    time_s: float
    pieces: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """The schedule that a `Plan` asked for; None where there is none."""

    time_s: float
    number: int
    schedule: Schedule | None


@dataclass(frozen=True, slots=True)
class RegroupAsked:
    """More is to be planned: end once what is asked for has come."""

    time_s: float


@dataclass(frozen=True, slots=True)
class StoreFailed:
    """Failure of the store: nothing can be written any more."""

    time_s: float
    why: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Interruption by the user."""

    time_s: float


Event: TypeAlias = (
    SessionOpened
    | SessionEnded
    | Answered
    | Confirmed
    | CollectorTicked
    | Woken
    | Recorded
    | Planned
    | RegroupAsked
    | StoreFailed
    | Interrupted
)


# Actions --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Connect to a source, through relays: the first is connected to, the last connects to it."""

    session: int
    source: str
    relays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """Ask for a piece; answers come in the order of requests."""

    session: int
    source: str
    piece: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask which files of a piece are not as listed any more."""

    session: int
    source: str
    piece: int


@dataclass(frozen=True, slots=True)
class CloseSession:
    """End a session at once; a `SessionEnded` follows. ``is_stuck``: because nothing comes."""

    session: int
    is_stuck: bool = False


@dataclass(frozen=True, slots=True)
class Retire:
    """Wait no more for files that are not as listed; their source is to be listed again."""

    source: str
    files: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Wait no more for files that their source cannot read, each with its own reason."""

    source: str
    files: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Abandon:
    """Give the files of a piece up."""

    source: str
    piece: int
    why: str


@dataclass(frozen=True, slots=True)
class SetAside:
    """A file cannot be had now, and may another time: what has come of it is kept."""

    source: str
    file: int
    why: str


@dataclass(frozen=True, slots=True)
class Wake:
    """Ask for a `Woken` event with this tag at an instant."""

    time_s: float
    tag: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Ask for a schedule of the remainder; a `Planned` event with this number answers."""

    number: int
    progress: Progress


@dataclass(frozen=True, slots=True)
class Note:
    """Write a line to the log."""

    what: str
    about: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Finish:
    """End of the round: nothing more is to be done."""

    why: str


Action: TypeAlias = (
    OpenSession
    | Request
    | Ask
    | CloseSession
    | Retire
    | Unreadable
    | Abandon
    | SetAside
    | Wake
    | Plan
    | Note
    | Finish
)
