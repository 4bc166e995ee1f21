"""Events of the core of a session with another server, and its actions. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from datacollect.transfer.sources.web.core.versions import UNKNOWN, Version

if TYPE_CHECKING:
    from datacollect.files.media import ContentKind
    from datacollect.transfer.sources.web.core.urls import Origin, Target


class Worth(Enum):
    """Worth of a response."""

    GOOD = "good"
    CHANGED = "changed"  # the server has another version now
    GONE = "gone"
    REFUSED = "refused"  # it will not give this file: to ask again is of no use
    LATER = "later"  # it failed, and others do not: let them come first
    UNREADABLE = "unreadable"  # it failed, and may not the next time


# Events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskRange:
    """A range of a file is wanted, of this version alone."""

    path: str
    target: Target
    file_bytes: int
    version: Version
    offset_bytes: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class AskSize:
    """Size and version of a file are wanted.

    `is_doubted`: what is known is contradicted: two questions are asked, whose answers must agree.
    `is_probe`: whether there is an answer is all that counts.
    """

    path: str
    target: Target
    is_doubted: bool = False
    is_probe: bool = False


@dataclass(frozen=True, slots=True)
class Greet:
    """The server is to be connected to, before anything is wanted."""

    origin: Origin


@dataclass(frozen=True, slots=True)
class Connected:
    """The connection that was asked for is there."""


@dataclass(frozen=True, slots=True)
class Received:
    """Bytes have come; none: the server has ended the connection. The clock shows what expired."""

    data: bytes
    now_unix_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Filled:
    """So many bytes of what `Fill` wanted are there; fewer: the server has ended the connection."""

    n_bytes: int


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """The connection failed; `is_late`: nothing came for too long, which another does not mend."""

    why: str
    is_late: bool = False


Event: TypeAlias = Greet | AskRange | AskSize | Connected | Received | Filled | ConnectionLost


# Actions --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Connect:
    """Connect to a server; `is_elsewhere`: an answer has led to it, so judge where its name leads.

    `Connected` follows.
    """

    origin: Origin
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class SendBytes:
    """Send bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Take:
    """Bytes of the range that is wanted: they follow those before."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Fill:
    """So many bytes come next that are the range's: put them where they belong, then `Filled`.

    They need no look at HTTP: large ranges are not copied from place to place.
    """

    n_bytes: int


@dataclass(frozen=True, slots=True)
class Disconnect:
    """End the connection."""


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """Answer to a question about a file, or for a range of it.

    `n_bytes` and `version` are the file's, by `AskSize`. So are, to distinguish files from pages:
    where redirects have led to, which document it calls itself, and its first byte. `sha256` is
    what the server says of a range, where one answer has brought all of it.
    """

    worth: Worth
    why: str = ""
    n_bytes: int = 0
    version: Version = UNKNOWN
    landed: Target | None = None
    media: ContentKind | None = None
    begins: bytes = b""
    sha256: bytes | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """The connection is of no use any more.

    `status`: the server cannot answer now, it says, and is to be left alone for `wait_s` seconds; 0
    where it has not said so. `is_asked`: it has asked for that itself.
    """

    why: str
    wait_s: float = 0.0
    status: int = 0
    is_asked: bool = False


Action: TypeAlias = Connect | SendBytes | Take | Fill | Disconnect | FileAnswer | Fail
