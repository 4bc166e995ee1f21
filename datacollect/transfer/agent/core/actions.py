"""Actions that an agent's core returns. The shell carries them out, and decides nothing itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.transfer.agent.core.greetings import Awaited

if TYPE_CHECKING:
    from datacollect.transfer.protocol.messages import FileEntry, Read


@dataclass(frozen=True, slots=True)
class StartTls:
    """Greet as TLS's server, then report the head of each request by `RequestRead`."""

    session: int


@dataclass(frozen=True, slots=True)
class ReadHead:
    """Read a request without TLS, and not a byte further; report it by `HeadRead`."""

    session: int


@dataclass(frozen=True, slots=True)
class ReadBody:
    """Read the body that the request has announced; tell it by `BodyRead`."""

    session: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class KeepNonce:
    """Keep a nonce on disk, then tell by `NonceKept`."""

    session: int
    nonce: str
    until_s: float


@dataclass(frozen=True, slots=True)
class Dial:
    """Connect to the next host, then tell by `Dialled`."""

    session: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Serve:
    """Connect to a service of the agent's own, for a user, then tell by `Dialled`."""

    session: int
    service: str
    user: str


@dataclass(frozen=True, slots=True)
class Establish:
    """Say that the connection is open, then pass bytes in both directions, up to a limit.

    ``awaited``: what has to be said before all of them pass; of tunnels nothing.
    """

    session: int
    most_bytes: int | None
    awaited: Awaited = Awaited.GREETING


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer a request to connect by a refusal, then end the session."""

    session: int
    status: int
    text: str


@dataclass(frozen=True, slots=True)
class Respond:
    """Answer a request over TLS; `last`: and end the session."""

    session: int
    status: int
    body: bytes
    content_type: str = "application/json"
    last: bool = False


@dataclass(frozen=True, slots=True)
class ListFiles:
    """Answer with a page of the inventory: what patterns allow, after a path.

    ``detail``: with modes, folders and holes.
    """

    session: int
    after: str | None
    most: int
    patterns: tuple[str, ...] | None
    detail: bool = False


@dataclass(frozen=True, slots=True)
class SendSegments:
    """Answer with the bytes that a read names, how they were read, and their hash."""

    session: int
    read: Read


@dataclass(frozen=True, slots=True)
class HashSegments:
    """Answer with the hash of each segment that a read names, and how it was read."""

    session: int
    read: Read


@dataclass(frozen=True, slots=True)
class SendFile:
    """Answer with a file, or the part of it that the headers ask for, up to a limit of bytes."""

    session: int
    path: str
    with_body: bool
    ranges: str | None
    if_range: str | None
    most_bytes: int | None


@dataclass(frozen=True, slots=True)
class ConfirmFiles:
    """Answer which of the files are no more as they were listed, or cannot be read."""

    session: int
    files: tuple[FileEntry, ...]


@dataclass(frozen=True, slots=True)
class TellSessions:
    """Answer with facts of sessions, to which the shell adds what TCP knows."""

    session: int
    rows: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class EndSession:
    """End a session now; `reset`: so that the other side knows that something was cut off."""

    session: int
    why: str
    reset: bool = True


@dataclass(frozen=True, slots=True)
class StopListening:
    """Accept nobody any more."""


@dataclass(frozen=True, slots=True)
class Exit:
    """All is done: the agent ends."""


@dataclass(frozen=True, slots=True)
class WriteLog:
    """Write a record into the log."""

    what: str
    facts: dict[str, Any]


Action: TypeAlias = (
    StartTls
    | ReadHead
    | ReadBody
    | KeepNonce
    | Dial
    | Serve
    | Establish
    | Refuse
    | Respond
    | ListFiles
    | SendSegments
    | HashSegments
    | SendFile
    | ConfirmFiles
    | TellSessions
    | EndSession
    | StopListening
    | Exit
    | WriteLog
)
