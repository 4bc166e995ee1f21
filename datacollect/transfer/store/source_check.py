"""Files that are done, compared with their source as it is now: by its hashes, part by part."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from blake3 import blake3

from datacollect.transfer.protocol.source import Segment, Span
from datacollect.transfer.store.comparing import MOST_SPANS, SPAN_BYTES, open_placed
from datacollect.transfer.store.folder.paths import Folders
from datacollect.transfer.store.state.hashes import hash_of
from datacollect.transfer.store.verifying import Unsound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from datacollect.transfer.store.comparing import Digests
    from datacollect.transfer.store.state.reading import PlacedRow, Reading

_READ_BYTES = 2**20
_NO_HASHES = (
    "this source gives no hashes to compare it by; name its sha256 in the collection's manifest"
)
_NO_ANSWER = "the source gave no hash of it now: it is changed, gone or cannot be read there"


class Range(NamedTuple):
    """A part of a file."""

    offset_bytes: int
    n_bytes: int


class Differing(NamedTuple):
    """A file of which the source has other bytes.

    Attributes
    ----------
    number : int
    path : str
    parts : list of Range
        That differ.
    equal : list of Range
        That do not.
    filled : list of Range
        That differ, and came as holes.
    """

    number: int
    path: str
    parts: list[Range]
    equal: list[Range]
    filled: list[Range]

    @property
    def n_bytes(self) -> int:
        """Return how much differs, to the ends of parts."""
        return sum(part.n_bytes for part in self.parts)


class ComparedWithSource(NamedTuple):
    """Result of comparing a source's files with it.

    Attributes
    ----------
    n_files, n_bytes : int
        That are as the source has them.
    differing : list of Differing
    not_compared : list of Unsound
    """

    n_files: int
    n_bytes: int
    differing: list[Differing]
    not_compared: list[Unsound]


class _Part(NamedTuple):
    row: PlacedRow
    segment: Segment
    own: bytes
    is_hole: bool = False


def compared_with_source(
    root_fd: int,
    state: Reading,
    number: int,
    name: str,
    digests: Digests,
    go_on: Callable[[], None],
) -> ComparedWithSource:
    """Compare all files of a source that are done and listed with what the source has.

    Bytes here are those whose hashes are recorded: whoever calls this has made sure of it.

    Parameters
    ----------
    root_fd : int
        Of the destination folder.
    state : Reading
    number, name : int, str
        The source's.
    digests : callable
        Asks the source for the BLAKE3 of segments.
    go_on : callable
        Called between questions; ends it by raising something.
    """
    folders = Folders(root_fd)
    found = ComparedWithSource(0, 0, [], [])
    n_files = n_bytes = 0
    try:
        for row, verdict in _verdicts(_Own(folders, state, name), number, digests, go_on):
            if isinstance(verdict, str):
                found.not_compared.append(Unsound(row.number, name, row.listed.path, verdict))
            elif verdict.parts:
                found.differing.append(verdict)
            else:
                n_files, n_bytes = n_files + 1, n_bytes + row.listed.n_bytes
    finally:
        folders.close()
    return found._replace(n_files=n_files, n_bytes=n_bytes)


class _Own:
    """Hashes of what lies here."""

    def __init__(self, folders: Folders, state: Reading, name: str) -> None:
        self._folders, self.state, self._name = folders, state, name

    def parts(self, row: PlacedRow) -> Iterator[_Part]:
        """Yield the parts of a file by which it is compared.

        Raises
        ------
        OSError
            It cannot be read.
        """
        recorded = self.state.hashes_of(row.number)
        if sum(n_bytes for _, n_bytes, _ in recorded) == row.listed.n_bytes:
            for offset, n_bytes, digest in recorded:
                yield from self._cut(row, offset, n_bytes, digest)
            return
        # It came by a version that noted no hashes of its own.
        with open_placed(self._folders, self._name, row.listed.path) as fd:
            for offset in range(0, row.listed.n_bytes, SPAN_BYTES):
                n_bytes = min(SPAN_BYTES, row.listed.n_bytes - offset)
                own = hash_of(fd, offset, n_bytes)
                yield self._part(row, offset, n_bytes, own or b"")

    def sha256_of(self, row: PlacedRow, go_on: Callable[[], None]) -> str:
        """Return the SHA-256 of a whole file."""
        hasher = hashlib.sha256()
        with open_placed(self._folders, self._name, row.listed.path) as fd:
            offset = 0
            while data := os.pread(fd, _READ_BYTES, offset):
                go_on()
                hasher.update(data)
                offset += len(data)
        return hasher.hexdigest()

    def _cut(self, row: PlacedRow, offset: int, n_bytes: int, digest: bytes) -> Iterator[_Part]:
        """Yield a part as it is, and a hole in parts that a source reads at once."""
        if digest:
            yield self._part(row, offset, n_bytes, digest)
            return
        for at in range(offset, offset + n_bytes, SPAN_BYTES):
            n = min(SPAN_BYTES, offset + n_bytes - at)
            yield self._part(row, at, n, _hash_of_zeros(n))._replace(is_hole=True)

    @staticmethod
    def _part(row: PlacedRow, offset: int, n_bytes: int, own: bytes) -> _Part:
        return _Part(row, Segment(Span(row.number, offset, n_bytes), row.listed), own)


def _verdicts(
    own: _Own, number: int, digests: Digests, go_on: Callable[[], None]
) -> Iterator[tuple[PlacedRow, Differing | str]]:
    """Yield what became of each file: what of it differs, or why it was not compared."""
    asking = _Asking(digests, go_on)
    for row in own.state.placed(number):
        if row.is_gone:
            continue
        try:
            if row.listed.sha256 is not None:
                yield row, _by_sha256(row, own.sha256_of(row, go_on))
                continue
            parts = list(own.parts(row))
        except OSError as error:
            yield row, f"it cannot be read: {error.strerror}"
            continue
        yield from asking.add(row, parts)
    yield from asking.ask()


def _by_sha256(row: PlacedRow, sha256: str) -> Differing:
    all_of_it, path = [Range(0, row.listed.n_bytes)], row.listed.path
    if sha256 == row.listed.sha256:
        return Differing(row.number, path, [], all_of_it, [])
    return Differing(row.number, path, all_of_it, [], all_of_it)


class _Asking:
    """Asks a source about as many parts at once as it reads at once."""

    def __init__(self, digests: Digests, go_on: Callable[[], None]) -> None:
        self._digests, self._go_on = digests, go_on
        self._batch: list[_Part] = []
        self._n_bytes = 0
        self._found: dict[int, tuple[PlacedRow, Differing]] = {}  # all parts of which are added
        self._why: dict[int, str] = {}

    def add(
        self, row: PlacedRow, parts: Sequence[_Part]
    ) -> Iterator[tuple[PlacedRow, Differing | str]]:
        """Have the parts of a file compared; yield the files that are, with this or before."""
        for part in parts:
            n_bytes = part.segment.span.n_bytes
            if self._n_bytes + n_bytes > SPAN_BYTES or len(self._batch) >= MOST_SPANS:
                yield from self.ask(but=row.number)
            self._found.setdefault(row.number, (row, Differing(row.number, "", [], [], [])))
            self._batch.append(part)
            self._n_bytes += n_bytes
        if not parts:
            yield row, Differing(row.number, row.listed.path, [], [], [])

    def ask(self, but: int | None = None) -> Iterator[tuple[PlacedRow, Differing | str]]:
        """Ask about what was added; yield the files of which nothing more comes: not `but`."""
        batch, self._batch, self._n_bytes = self._batch, [], 0
        self._go_on()
        asked = self._digests([part.segment for part in batch]) if batch else []
        for i, part in enumerate(batch):
            span, number = part.segment.span, part.row.number
            if asked is None:
                self._why[number] = _NO_HASHES
            elif i >= len(asked) or asked[i] is None:
                self._why[number] = _NO_ANSWER
            else:
                found = self._found[number][1]
                at = Range(span.offset_bytes, span.n_bytes)
                (found.equal if asked[i] == part.own else found.parts).append(at)
                if part.is_hole and asked[i] != part.own:
                    found.filled.append(at)
        for number in [number for number in self._found if number != but]:
            row, found = self._found.pop(number)
            yield row, self._why.pop(number, "") or found._replace(path=row.listed.path)


@cache
def _hash_of_zeros(n_bytes: int) -> bytes:
    hasher, zeros = blake3(), bytes(_READ_BYTES)
    for at in range(0, n_bytes, _READ_BYTES):
        hasher.update(zeros[: n_bytes - at])
    return hasher.digest()
