"""Holes of sparse files: what of them is fetched, written and counted, and what is not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from datacollect.transfer.protocol.source import Listed

# Whole blocks of zeros are not written to sparse files.
BLOCK = 64 * 1024
_ZEROS = bytes(BLOCK)


def data_bytes(file: Listed) -> int:
    """Return the bytes of a file that take room: all of them, unless its holes are known."""
    if file.extents is None:
        return file.n_bytes
    return sum(n_bytes for _, n_bytes in file.extents)


def are_ranges(extents: Sequence[tuple[int, int]], n_bytes: int) -> bool:
    """Return whether data ranges lie within a file, in order, apart from each other.

    >>> are_ranges([(0, 5), (8, 2)], 10), are_ranges([(0, 5), (4, 2)], 10)
    (True, False)
    """
    end = 0
    for offset, length in extents:
        if offset < end or length <= 0:
            return False
        end = offset + length
    return end <= n_bytes


def stretches(
    n_bytes: int, extents: Sequence[Sequence[int]], piece_bytes: int
) -> Iterator[tuple[int, int, bool]]:
    """Yield how a file with holes lies: from, to, whether it is a hole.

    Holes that are shorter than a piece are fetched with what lies around them.

    >>> list(stretches(100, [(20, 10), (35, 5)], 10))
    [(0, 20, True), (20, 40, False), (40, 100, True)]
    """
    begin = end = 0  # of the data that are not reported yet
    for offset, length in (*extents, (n_bytes, 0)):
        if offset - end >= piece_bytes:
            if end > begin:
                yield begin, end, False
            yield end, offset, True
            begin = offset
        end = offset + length
    if end > begin:
        yield begin, end, False


def cuts(n_bytes: int, extents: Sequence[Sequence[int]], piece_bytes: int) -> list[int]:
    """Return where the pieces of a file with holes begin: a hole is one, however long it is.

    >>> cuts(100, [(20, 25)], 10)
    [0, 20, 30, 40, 45]
    """
    found: list[int] = []
    for begin, end, is_hole in stretches(n_bytes, extents, piece_bytes):
        found.extend([begin] if is_hole else range(begin, end, piece_bytes))
    return found


def hole_starts(n_bytes: int, extents: Sequence[Sequence[int]], piece_bytes: int) -> list[int]:
    """Return where the pieces begin that are nothing but hole."""
    found = stretches(n_bytes, extents, piece_bytes)
    return [begin for begin, _, is_hole in found if is_hole]


def written_parts(data: memoryview, offset: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of some data of a sparse file that are to be written: from, to.

    Whole blocks of zeros, where the file's own blocks are, are not.

    >>> list(written_parts(memoryview(b"a" + bytes(3 * BLOCK)), 0))
    [(0, 65536), (196608, 196609)]
    """
    begin = 0
    at = -offset % BLOCK
    while at + BLOCK <= len(data):
        if data[at : at + BLOCK] == _ZEROS:
            if at > begin:
                yield begin, at
            begin = at + BLOCK
        at += BLOCK
    if begin < len(data):
        yield begin, len(data)


def data_ranges(fd: int, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of an open file, between two places, that are no holes: from, to."""
    while begin < end:
        try:
            begin = max(begin, os.lseek(fd, begin, os.SEEK_DATA))
            stop = min(end, os.lseek(fd, begin, os.SEEK_HOLE))
        except OSError:  # nothing but a hole from there on
            return
        if begin < stop:
            yield begin, stop
        begin = stop


def is_hole(fd: int, offset: int, n_bytes: int) -> bool:
    """Return whether a part of an open file holds no data, as far as the file system knows."""
    try:
        return os.lseek(fd, offset, os.SEEK_DATA) >= offset + n_bytes
    except OSError:  # nothing but a hole from there on, or nothing at all
        return True
