"""Events and actions of the core of a bistro.

A request is a number that its shell gives it. Times are seconds since 1970, by the bistro's clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection

    from datacollect.bistro.formats.receipt.upload_wish import Wish


@dataclass
class Upload:
    """An upload, from its reservation on.

    Attributes
    ----------
    id : str
        Which only who pushes it is told: whoever knows it can go on with it.
    wish : Wish
    expires_s : float
        When it is forgotten, unless it is whole by then.
    offset : int
        So many bytes lie in segments.
    segments : dict of int to int
        So many of them in each of these.
    n_pieces : int
        Of how many pieces they are there.
    sha256 : bytes or None
        Of all bytes, once it is whole; so are the next two.
    batch : int or None
        The number of the batch that has its row.
    time_s : int or None
        When it was whole.
    """

    id: str
    wish: Wish
    expires_s: float
    offset: int = 0
    segments: dict[int, int] = field(default_factory=dict)
    n_pieces: int = 0
    sha256: bytes | None = None
    batch: int | None = None
    time_s: int | None = None

    @property
    def key(self) -> tuple[bytes, bool]:
        """Return what there is one upload of."""
        return self.wish.commitment.entry, self.wish.sealed_anew

    @property
    def is_whole(self) -> bool:
        """Return whether it counts."""
        return self.sha256 is not None


@dataclass(frozen=True)
class Kept:
    """State that a bistro starts with.

    Attributes
    ----------
    unfinished : collection of Upload
    segment : int
        Number of the open segment.
    segment_bytes : int
        Of it.
    closed : dict
        By number of each segment whose data are kept: its bytes, and when it was closed.
    batch : int
        Number of the open batch; it has no rows yet.
    last_contact_s : float or None
        When the destination has last said what is covered.
    told_s : int
        The time of that word, by the destination's clock: one that is older changes nothing.
    spoilt_bytes : dict of (bytes, bytes) to int
        By number of the ticket and entry: what lies in segments and is of no upload.
    spoilt_pieces : dict of (bytes, bytes) to int
        In how many pieces.
    released : dict of int to float
        By number of each closed segment that the destination needs no more: since when.
    named : dict of int to int
        By number of each segment: the last batch that names an upload of which bytes lie there.
    """

    unfinished: Collection[Upload] = ()
    segment: int = 0
    segment_bytes: int = 0
    closed: dict[int, tuple[int, float]] = field(default_factory=dict)
    batch: int = 0
    last_contact_s: float | None = None
    told_s: int = 0
    spoilt_bytes: dict[tuple[bytes, bytes], int] = field(default_factory=dict)
    spoilt_pieces: dict[tuple[bytes, bytes], int] = field(default_factory=dict)
    released: dict[int, float] = field(default_factory=dict)
    named: dict[int, int] = field(default_factory=dict)


class Known(Protocol):
    """Whole uploads that are on the disk."""

    def whole(self, entry: bytes, *, sealed_anew: bool) -> Upload | None:
        """Return the upload of an entry."""

    def by_id(self, upload: str) -> Upload | None:
        """Return an upload by its id."""

    def entries_of(self, ticket: bytes) -> set[bytes]:
        """Return what was handed in with a ticket."""


# What is told.


@dataclass(frozen=True, slots=True)
class CreateAsked:
    """Somebody wants to push; `id` is for the upload if it is new, `free_bytes` the disk's."""

    request: int
    now_s: float
    wish: Wish
    id: str
    free_bytes: int


@dataclass(frozen=True, slots=True)
class LookAsked:
    """Somebody asks how far an upload is."""

    request: int
    upload: str


@dataclass(frozen=True, slots=True)
class WriteAsked:
    """Somebody pushes bytes from an offset."""

    request: int
    upload: str
    offset: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Arrived:
    """Bytes of a push have come."""

    request: int
    now_s: float
    n_bytes: int


@dataclass(frozen=True, slots=True)
class WriteEnded:
    """All of a push has come, or as much as ever will.

    Attributes
    ----------
    sha256 : bytes or None
        Of all bytes of the upload by now.
    is_wrong : bool
        Whether a checksum that came with them is not theirs.
    """

    request: int
    now_s: float
    sha256: bytes | None = None
    is_wrong: bool = False


@dataclass(frozen=True, slots=True)
class EndAsked:
    """Somebody gives an upload up; `signature`: the owner's, over `give_up_statement`."""

    request: int
    upload: str
    signature: bytes


@dataclass(frozen=True, slots=True)
class Posted:
    """Somebody has posted a note; each kind is a class in `requests`."""

    request: int
    now_s: float


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time has passed; `free_bytes` are the disk's, None: nobody knows."""

    now_s: float
    free_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """These uploads are on the disk as they are: whole."""

    uploads: tuple[str, ...]


Event: TypeAlias = (
    CreateAsked
    | LookAsked
    | WriteAsked
    | Arrived
    | WriteEnded
    | EndAsked
    | Posted
    | Ticked
    | Settled
)

# What is to be done, in this order. What a request is answered waits for all before it to be kept.


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer a request so."""

    request: int
    status: int
    text: str


@dataclass(frozen=True, slots=True)
class Tell:
    """Answer a request with an upload as it is now, once all before is kept.

    `upload` is a copy: what others go on with meanwhile is not promised by this answer.
    """

    request: int
    upload: Upload
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """End the connection of a request: its upload continues over another connection elsewhere."""

    request: int


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep an upload as it is now."""

    upload: Upload


@dataclass(frozen=True, slots=True)
class Append:
    """Append the bytes that have come to the open segment."""

    upload: Upload
    upload_offset: int
    segment: int
    segment_offset: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Carry:
    """Append to the open segment what an upload has in a closed one: it lies there no more."""

    upload: str
    source: int
    segment: int
    segment_offset: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Unlink:
    """The bytes of an upload from an offset on are not its own any more."""

    upload: str
    offset: int


@dataclass(frozen=True, slots=True)
class Forget:
    """An upload is no more; its bytes stay where they lie."""

    upload: str


@dataclass(frozen=True, slots=True)
class CloseSegment:
    """A segment is complete: serve it."""

    number: int
    now_s: float


@dataclass(frozen=True, slots=True)
class CloseBatch:
    """A batch is complete, and all its uploads lie in the first segments: sign and serve it."""

    number: int
    now_s: float
    n_segments: int


@dataclass(frozen=True, slots=True)
class Release:
    """The destination needs some segments no more, and some again.

    It has said so at `contact_s`, by a word of `told_s`, which is the time by its own clock.
    """

    numbers: tuple[int, ...]
    needed_again: tuple[int, ...]
    contact_s: float
    told_s: int


@dataclass(frozen=True, slots=True)
class Drop:
    """The data of segments go."""

    numbers: tuple[int, ...]


Action: TypeAlias = (
    Refuse
    | Tell
    | Cut
    | Keep
    | Append
    | Carry
    | Unlink
    | Forget
    | CloseSegment
    | CloseBatch
    | Release
    | Drop
)
