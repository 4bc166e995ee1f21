"""Protocol that every kind of source follows, and the words for files.

A collector reaches a source, lists it, opens sessions with it and asks them for segments of files.
It knows nothing else of agents, web servers or whatever comes. `datacollect.transfer.sources.kinds`
has the table of kinds.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from datacollect.net.deadline import Deadline


# Why a file is missing that was listed, and is not any more.
GONE = "gone from the source"
# Why a file is named that is there.
UNCONFIRMED = "kept as verified, since its source does not confirm it"
# So much of a file's begin tells what it looks like.
BEGIN_BYTES = 16 * 1024


class Verdict(Enum):
    """Worth of an answer to a request."""

    VERIFIED = "verified"  # its hash is right, its files are as listed, and it is written
    CHANGED = "changed"  # a file is not as it was listed
    UNREADABLE = "unreadable"  # the source could not read a file to its end
    CORRUPT = "corrupt"  # the bytes are not those that the source hashed
    LATER = "late"  # the file of this piece fails for now, and others do not: they come first
    REFUSED = "refused"  # the source will not give the file of this piece: to ask again is no use


class Listed(NamedTuple):
    """A file as its source lists it.

    Attributes
    ----------
    path : str
        Below the source's folder, parts divided by ``/``.
    n_bytes : int
    mtime_ns : int
        Time of the last change, nanoseconds since 1970, of any size; 0 where it is not known.
    inode : int
        The file's number at its host; 0 where it is not known.
    tag : str or None
        What a server knows its version by. Only compared, never read, outside that kind of source.
    sha256 : str or None
        Of the whole file, in lowercase hexadecimal, where it is known beforehand.
    mode : int or None
        Permission bits at its host; None where they are not known.
    extents : tuple of (int, int), or None
        Offset and length of each range that holds data, where the file has holes; None: no holes.
    """

    path: str
    n_bytes: int
    mtime_ns: int
    inode: int
    tag: str | None = None
    sha256: str | None = None
    mode: int | None = None
    extents: tuple[tuple[int, int], ...] | None = None

    @property
    def is_timed(self) -> bool:
        """Say whether its time is known: a file with a number at its host may be of 1970, too."""
        return self.mtime_ns != 0 or self.inode != 0


class Copy(NamedTuple):
    """A verified copy under its name: its size, and its first bytes, up to `BEGIN_BYTES`."""

    n_bytes: int
    begins: bytes


class Known(NamedTuple):
    """Knowledge of earlier starts on the files of a source.

    Attributes
    ----------
    files : mapping of str to Listed
        As they were listed, by path.
    copy_of : callable
        Returns the verified copy at a path, which may be another version than `files` has; None
        where there is none, or where the user wants it to be overwritten.
    """

    files: Mapping[str, Listed]
    copy_of: Callable[[str], Copy | None] = lambda _: None


class ListedFolder(NamedTuple):
    """A folder as its source lists it: path, permission bits, time of the last change."""

    path: str
    mode: int | None
    mtime_ns: int | None


class LeftOut(NamedTuple):
    """Something that is not collected, and why.

    Attributes
    ----------
    name : str
        Escaped where it is not UTF-8.
    why : str
    name_hex : str or None
        The bytes of a name that is not UTF-8, in hexadecimal.
    """

    name: str
    why: str
    name_hex: str | None = None


class Page(NamedTuple):
    """A part of a source's list: over all pages in the order of paths as bytes, each path once.

    Attributes
    ----------
    files : sequence of Listed
    left_out : sequence of LeftOut
    folders : sequence of ListedFolder
    unconfirmed : sequence of LeftOut
        Of `files`, those that are listed as they were known, and why nothing confirmed it.
    notes : sequence of str
        What a user wants to know of it.
    """

    files: Sequence[Listed]
    left_out: Sequence[LeftOut] = ()
    folders: Sequence[ListedFolder] = ()
    unconfirmed: Sequence[LeftOut] = ()
    notes: Sequence[str] = ()


class Span(NamedTuple):
    """Part of a file that lies in a piece: which file, from where, how much."""

    file: int
    offset_bytes: int
    n_bytes: int


class Segment(NamedTuple):
    """A span of a file that is to be read, with all that its source needs to know."""

    span: Span
    file: Listed


class FetchResult(NamedTuple):
    """Result of a request: the bytes are in the buffer.

    Attributes
    ----------
    n_bytes : int
    verdict : Verdict
    digest : bytes
        BLAKE3 of the bytes, as received; empty unless the verdict is VERIFIED.
    why : str
        In words, where it is not.
    """

    n_bytes: int
    verdict: Verdict
    digest: bytes
    why: str = ""


class Confirmation(NamedTuple):
    """Files, by number, that have changed since they were listed; unreadable ones with reasons."""

    changed: Sequence[int] = ()
    gone: Sequence[int] = ()
    unreadable: Sequence[tuple[int, str]] = ()


class Peer(Protocol):
    """A source at the other end of a session. All but `abort` is for one thread."""

    @property
    def received_bytes(self) -> int:
        """All bytes so far, also of the answer that is under way."""

    @property
    def is_proved(self) -> bool:
        """Say whether the source proved on opening that it has a file, by an answer for it."""

    @property
    def is_waiting(self) -> bool:
        """Return whether it waits as the source has asked, or for another session.

        Not for an answer.
        """

    def has_room(self, segments: Sequence[Segment]) -> bool:
        """Return whether it may be asked for segments before an answer is received."""

    def request(self, segments: Sequence[Segment]) -> None:
        """Ask for segments; answers come in the order of requests."""

    def receive(self, buffer: memoryview) -> FetchResult:
        """Wait for the next answer."""

    def confirm(self, segments: Sequence[Segment]) -> Confirmation:
        """Return which files are not as listed any more; nothing is under way."""

    def digests(self, segments: Sequence[Segment]) -> list[bytes | None] | None:
        """Return the BLAKE3 of each segment at the source, None for those that it cannot compute.

        None in all: this source hashes nothing without sending it.
        """

    def abort(self, *, is_stuck: bool = False) -> None:
        """Let whatever is under way fail at once; from any thread.

        `is_stuck`: because nothing comes of it.
        """

    def close(self) -> None:
        """End."""


class Reached(NamedTuple):
    """Facts that a source has told when it was reached.

    Attributes
    ----------
    relays : tuple of str
        Over which it was reached, the nearest first; none: directly.
    serves : bool
        Whether there are files to collect.
    relays_to : tuple of str
        The hosts that it connects others to.
    clock_ahead_s : float or None
        Its clock less ours, where it is known.
    """

    relays: tuple[str, ...]
    serves: bool
    relays_to: tuple[str, ...] = ()
    clock_ahead_s: float | None = None


class Source(Protocol):
    """One host of a collection that bytes come from. Any thread may call its methods.

    Attributes
    ----------
    name : str
    is_cut_by_file : bool
        Whether a request, and so a piece, is of one file. Only then may it answer `REFUSED`, and
        only then does `list` get what is known.
    named : tuple of str
        Paths of its files, where the collection itself names them.
    """

    name: str
    is_cut_by_file: bool
    named: tuple[str, ...]

    def reach(self, deadline: Deadline) -> Reached:
        """Contact it, directly or over the relays that are known by now.

        Raises
        ------
        TransferError
            It cannot be reached; `is_final` where another try cannot help.
        """

    def list(self, known: Known) -> Iterator[Page]:
        """Yield what it has, page by page; it was reached before.

        Parameters
        ----------
        known : Known
            Its files as earlier starts knew them; without any unless `is_cut_by_file`.

        Raises
        ------
        TransferError
            The list cannot be had to its end: what came of it is not counted.
        """

    def open(self, relays: tuple[str, ...]) -> Peer:
        """Open a session over relays, the nearest first.

        Raises
        ------
        TransferError
            It cannot be had, or not over these relays.
        """

    def assurance(self, tags: Mapping[str | None, int]) -> Assurance | None:
        """Return what is known of files that have come: by tags, how many.

        None: all of them are verified by hash.
        """


_UNSURE = "changes during the transfer cannot be ruled out"


class Assurance(NamedTuple):
    """Assurance of the files of a source that does not hash all it sends.

    Attributes
    ----------
    source : str
    hashed_files : int
        Whose SHA-256 is the one that the manifest says.
    tagged_files : int
        Of which no hash is known: all parts are of one version, by a strong ETag.
    unsure_files : int
        Of which parts may be of several versions: there is neither.
    is_protected : bool
        Whether they came by TLS.
    """

    source: str
    hashed_files: int
    tagged_files: int
    unsure_files: int
    is_protected: bool

    @property
    def text(self) -> str:
        """Return what to know of them, in words.

        >>> Assurance("W", 2, 0, 0, True).text
        '2 files have the SHA-256 of the manifest'
        """
        words = [
            f"{n} {'file has' if n == 1 else 'files have'} {what}"
            for n, what in (
                (self.hashed_files, "the SHA-256 of the manifest"),
                (self.tagged_files, "no known hash, and one strong ETag throughout"),
                (self.unsure_files, f"no known hash and no strong ETag: {_UNSURE}"),
            )
            if n
        ]
        if not self.is_protected:
            words.append("without TLS: anyone on the way could read and change the data")
        return "; ".join(words)
