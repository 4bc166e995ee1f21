"""Comparison of files that are there already with their source, by hash."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from blake3 import blake3

from datacollect.transfer.protocol.source import Segment, Span
from datacollect.transfer.store.attributes import finish_file
from datacollect.transfer.store.folder.looks import Looks, looks_of
from datacollect.transfer.store.state.hashes import hash_of
from datacollect.transfer.store.state.state import SpanHash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from datacollect.transfer.store.attributes import StoreOptions
    from datacollect.transfer.store.folder.paths import Folders
    from datacollect.transfer.store.state.reading import Stamp
    from datacollect.transfer.store.state.state import FileRow

    Digests: TypeAlias = Callable[[Sequence[Segment]], list[bytes | None] | None]

_MEANWHILE = "it was changed while it was compared; start the same command again"
# Of one question: what a source reads at once, and of how many parts.
SPAN_BYTES, MOST_SPANS = 2**24, 1024
_READ_BYTES = 2**20


class Adopted(NamedTuple):
    """A file that is what its source has: its hashes, what it looks like, the mode it got."""

    row: FileRow
    hashes: list[SpanHash]
    stamp: Stamp
    set_mode: int | None


class _OwnHash(NamedTuple):
    """The hash of a part of a file here, and how the file looked before it was read."""

    digest: bytes
    looks: Looks


@contextmanager
def open_placed(folders: Folders, source: str, path: str) -> Iterator[int]:
    """Open a file under its final name, for reading."""
    *above, last = (source, *path.split("/"))
    # What is no regular file any more is not waited for.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(last, flags, dir_fd=folders.open(tuple(above), make=False))
    try:
        yield fd
    finally:
        os.close(fd)


class Comparing:
    """Compares files of one source.

    Parameters
    ----------
    folders : Folders
    source : str
    options : StoreOptions
        What of modes and times files get that are adopted.
    digests : callable
        Asks the source.
    go_on : callable
        Called between parts of files; ends it all by raising something.
    """

    def __init__(
        self,
        folders: Folders,
        source: str,
        options: StoreOptions,
        digests: Digests,
        go_on: Callable[[], None],
    ) -> None:
        self._folders, self._source = folders, source
        self._options, self._digests, self._go_on = options, digests, go_on

    def all(self, rows: Sequence[FileRow]) -> Iterator[tuple[FileRow, Adopted | str]]:
        """Yield what came of each: it is adopted, or what is to be reported besides."""
        batch: list[FileRow] = []
        n_bytes = 0
        for row in rows:
            if row.listed.sha256 is not None or row.listed.n_bytes == 0:
                yield row, self._by_itself(row)
            elif row.listed.n_bytes > SPAN_BYTES:
                yield row, self._large(row)
            else:
                if n_bytes + row.listed.n_bytes > SPAN_BYTES or len(batch) >= MOST_SPANS:
                    yield from self._small(batch)
                    batch, n_bytes = [], 0
                batch.append(row)
                n_bytes += row.listed.n_bytes
        yield from self._small(batch)

    def _by_itself(self, row: FileRow) -> Adopted | str:
        """Compare a file with the hash of the whole that was listed; empty ones are equal."""
        sha256 = hashlib.sha256()
        try:
            with open_placed(self._folders, self._source, row.listed.path) as fd:
                looks, hashes = looks_of(os.fstat(fd)), []
                for span in _spans(row):
                    self._go_on()
                    hasher, offset, left = blake3(), span.offset_bytes, span.n_bytes
                    while left:
                        data = os.pread(fd, min(left, _READ_BYTES), offset)
                        if not data:
                            return ""
                        hasher.update(data)
                        sha256.update(data)
                        offset, left = offset + len(data), left - len(data)
                    hashes.append(SpanHash(*span, hasher.digest()))
                if row.listed.sha256 in (None, sha256.hexdigest()):
                    return self._adopted(row, fd, hashes, looks)
        except OSError as error:
            return f"it cannot be read: {error.strerror}"
        return ""

    def _large(self, row: FileRow) -> Adopted | str:
        """Compare a file part after part, until one differs."""
        hashes, looks = [], None
        for span in _spans(row):
            own = self._own_hash(row, span, looks)
            if isinstance(own, str):
                return own
            asked = self._digests([Segment(span, row.listed)])
            if (why := _why_unequal(own.digest, asked, 0)) is not None:
                return why
            hashes.append(SpanHash(*span, own.digest))
            looks = own.looks
        assert looks is not None
        return self._reopened(row, hashes, looks)

    def _small(self, rows: Sequence[FileRow]) -> Iterator[tuple[FileRow, Adopted | str]]:
        """Compare files by one question."""
        own: list[tuple[FileRow, Span, _OwnHash]] = []
        for row in rows:
            span = Span(row.number, 0, row.listed.n_bytes)
            found = self._own_hash(row, span)
            if isinstance(found, str):
                yield row, found
            else:
                own.append((row, span, found))
        if not own:
            return
        asked = self._digests([Segment(span, row.listed) for row, span, _ in own])
        for i, (row, span, digest) in enumerate(own):
            why = _why_unequal(digest.digest, asked, i)
            hashes = [SpanHash(*span, digest.digest)]
            yield row, self._reopened(row, hashes, digest.looks) if why is None else why

    def _own_hash(self, row: FileRow, span: Span, before: Looks | None = None) -> _OwnHash | str:
        """Return the hash of a part of a file that still looks as `before`, or what is wrong."""
        self._go_on()
        try:
            with open_placed(self._folders, self._source, row.listed.path) as fd:
                looks = looks_of(os.fstat(fd))
                if before is not None and looks != before:
                    return _MEANWHILE
                found = hash_of(fd, span.offset_bytes, span.n_bytes)
        except OSError as error:
            return f"it cannot be read: {error.strerror}"
        return "" if found is None else _OwnHash(found, looks)

    def _reopened(self, row: FileRow, hashes: list[SpanHash], looks: Looks) -> Adopted | str:
        try:
            with open_placed(self._folders, self._source, row.listed.path) as fd:
                return self._adopted(row, fd, hashes, looks)
        except OSError as error:
            return f"it cannot be read: {error.strerror}"

    def _adopted(
        self, row: FileRow, fd: int, hashes: list[SpanHash], looks: Looks
    ) -> Adopted | str:
        """Adopt a file that is as it was when its first byte was read."""
        if looks_of(os.fstat(fd)) != looks:
            return _MEANWHILE
        if looks.n_bytes != row.listed.n_bytes:
            return ""
        return Adopted(row, hashes, *finish_file(fd, row.listed, self._options))


def _spans(row: FileRow) -> Iterator[Span]:
    for offset in range(0, row.listed.n_bytes, SPAN_BYTES):
        yield Span(row.number, offset, min(SPAN_BYTES, row.listed.n_bytes - offset))


def _why_unequal(own: bytes, asked: list[bytes | None] | None, i: int) -> str | None:
    """Return what to report where a source's hash is not ours; None where it is."""
    if asked is None:
        return "this source gives no hashes to compare it by"
    if i >= len(asked) or asked[i] is None:
        return "the source gave no hash of it now"
    return None if asked[i] == own else ""
