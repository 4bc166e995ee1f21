"""Pieces: units of requests, hashes and records, cut from the files of a source laid end to end."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.transfer.protocol.source import Span
from datacollect.transfer.store.state.holes import cuts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from datacollect.numbers.arrays import IntArray

LEAST_BYTES, MOST_BYTES = 2**16, 2**24
# With this many pieces the last ones cost little, and each is worth its request.
WANTED_PIECES = 256
# At most this many small files make a piece: requests stay short.
MOST_FILES = 1024


def piece_size(total_bytes: int) -> int:
    """Return the size of pieces that suits a number of bytes in all: a power of two.

    >>> piece_size(0), piece_size(2**30), piece_size(10**13)
    (65536, 4194304, 16777216)
    """
    size = LEAST_BYTES
    while size < MOST_BYTES and size * WANTED_PIECES < total_bytes:
        size *= 2
    return size


@dataclass
class Layout:
    """Files of one source laid end to end, and how they are cut into pieces.

    Empty files lie nowhere.

    Attributes
    ----------
    files : ndarray of int64, shape (n_files,)
        Numbers of the files in their order.
    starts, sizes : ndarray of int64, shape (n_files,)
        Where each begins, and its bytes.
    pieces, piece_bytes : ndarray of int64, shape (n_pieces,)
        Where each piece begins, and its bytes.

    Examples
    --------
    >>> layout = Layout.empty().extended(np.array([7, 8]), np.array([100_000, 50_000]), 65536)
    >>> layout.pieces.tolist(), layout.piece_bytes.tolist()
    ([0, 65536, 131072], [65536, 65536, 18928])
    >>> list(layout.spans(1))
    [Span(file=7, offset_bytes=65536, n_bytes=34464), Span(file=8, offset_bytes=0, n_bytes=31072)]
    """

    files: IntArray
    starts: IntArray
    sizes: IntArray
    pieces: IntArray
    piece_bytes: IntArray

    @classmethod
    def empty(cls) -> Layout:
        """Return the layout of no files."""
        return cls(*(np.zeros(0, dtype=np.int64) for _ in range(5)))

    @property
    def total_bytes(self) -> int:
        """Return where the next file would begin."""
        return int(self.starts[-1] + self.sizes[-1]) if len(self.starts) else 0

    @property
    def is_whole(self) -> bool:
        """Return whether files follow each other without gaps, and pieces cover all of them."""
        ends = [_end_of_row(self.starts, self.sizes), _end_of_row(self.pieces, self.piece_bytes)]
        return None not in ends and ends[0] == ends[1]

    def extended(
        self,
        files: IntArray,
        sizes: IntArray,
        size: int,
        *,
        apart: bool = False,
        sparse: Mapping[int, Sequence[Sequence[int]]] | None = None,
    ) -> Layout:
        """Return the layout with more files behind, which begin a new piece.

        `apart`: each of them does, so that no piece is of two files. `sparse`: data ranges of files
        with holes, by their numbers; each of these is cut apart, and long holes are one piece.
        """
        held = sizes > 0
        files, sizes = files[held].astype(np.int64), sizes[held].astype(np.int64)
        if not len(sizes):
            return self
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]) + self.total_bytes
        if apart:
            cut = np.concatenate(
                [
                    _own_cuts(start, n_bytes, size, (sparse or {}).get(file))
                    for file, start, n_bytes in zip(
                        files.tolist(), starts.tolist(), sizes.tolist(), strict=True
                    )
                ]
            )
        elif sparse:
            cut = _cuts_around(files, starts, sizes, size, sparse)
        else:
            cut = _cuts(starts, sizes, size)
        ends = np.append(cut[1:], starts[-1] + sizes[-1])
        return Layout(
            np.concatenate([self.files, files]),
            np.concatenate([self.starts, starts]),
            np.concatenate([self.sizes, sizes]),
            np.concatenate([self.pieces, cut]),
            np.concatenate([self.piece_bytes, ends - cut]),
        )

    def spans(self, piece: int) -> Iterator[Span]:
        """Yield the parts of files that make a piece."""
        begin = int(self.pieces[piece])
        end = begin + int(self.piece_bytes[piece])
        first, last = self._within(begin, end)
        rows = zip(
            self.files[first:last].tolist(),
            self.starts[first:last].tolist(),
            self.sizes[first:last].tolist(),
            strict=True,
        )
        for file, start, size in rows:
            low, high = max(begin, start), min(end, start + size)
            yield Span(file, low - start, high - low)

    def pieces_of(self, row: int) -> range:
        """Return the pieces over which the file in a row is spread."""
        start = int(self.starts[row])
        first = int(np.searchsorted(self.pieces, start, side="right")) - 1
        last = int(np.searchsorted(self.pieces, start + int(self.sizes[row]), side="left"))
        return range(first, last)

    def kin(self, piece: int) -> range:
        """Return all pieces that hold parts of the files of a piece.

        >>> layout = Layout.empty().extended(np.array([7, 8]), np.array([100_000, 50_000]), 65536)
        >>> layout.kin(0), layout.kin(2)
        (range(0, 2), range(1, 3))
        """
        begin = int(self.pieces[piece])
        first, last = self._within(begin, begin + int(self.piece_bytes[piece]))
        return range(self.pieces_of(first).start, self.pieces_of(last - 1).stop)

    def _within(self, begin: int, end: int) -> tuple[int, int]:
        """Return the rows of files that have bytes in a range."""
        # Not numpy's search: it lets other threads run, and waits for milliseconds to go on.
        return max(0, bisect_right(self.starts, begin) - 1), bisect_left(self.starts, end)


def _end_of_row(starts: IntArray, sizes: IntArray) -> int | None:
    """Return where ranges end that follow each other from 0 on; None: they do not."""
    ends = np.cumsum(sizes)
    if (sizes <= 0).any() or (starts != ends - sizes).any():
        return None
    return int(ends[-1]) if len(ends) else 0


def _cuts(starts: IntArray, sizes: IntArray, size: int) -> IntArray:
    """Return where pieces begin: every `size` bytes, and more often where files are many."""
    begin, end = int(starts[0]), int(starts[-1] + sizes[-1])
    cuts = np.arange(begin, end, size, dtype=np.int64)
    first = np.searchsorted(starts, cuts, side="right") - 1
    last = np.searchsorted(starts, np.append(cuts[1:], end), side="left")
    crowded = np.flatnonzero(last - first > MOST_FILES).tolist()
    more = [
        starts[row]
        for piece in crowded
        for row in range(int(first[piece]) + MOST_FILES, int(last[piece]), MOST_FILES)
    ]
    return np.unique(np.concatenate([cuts, np.array(more, dtype=np.int64)])) if more else cuts


def _own_cuts(
    start: int, n_bytes: int, size: int, extents: Sequence[Sequence[int]] | None
) -> IntArray:
    """Return where the pieces of one file begin that shares none."""
    if extents is None:
        return np.arange(start, start + n_bytes, size, dtype=np.int64)
    return np.array(cuts(n_bytes, extents, size), dtype=np.int64) + start


def _cuts_around(
    files: IntArray,
    starts: IntArray,
    sizes: IntArray,
    size: int,
    sparse: Mapping[int, Sequence[Sequence[int]]],
) -> IntArray:
    """Return where pieces begin: files with holes are cut apart, those between them together."""
    parts, first = [], 0
    at = [row for row, file in enumerate(files.tolist()) if file in sparse]
    for row in (*at, len(files)):
        if row > first:
            parts.append(_cuts(starts[first:row], sizes[first:row], size))
        if row < len(files):
            extents = sparse[int(files[row])]
            parts.append(_own_cuts(int(starts[row]), int(sizes[row]), size, extents))
        first = row + 1
    return np.concatenate(parts)


def piece_range(layout: Layout) -> tuple[IntArray, IntArray]:
    """Return for each file its first piece, and the one behind its last."""
    first = np.searchsorted(layout.pieces, layout.starts, side="right") - 1
    last = np.searchsorted(layout.pieces, layout.starts + layout.sizes, side="left")
    return first, last


def pieces_of_rows(layout: Layout, is_meant: np.ndarray) -> IntArray:
    """Return the pieces over which the files in some rows are spread: sorted, each once.

    >>> layout = Layout.empty().extended(np.array([7, 8, 9]), np.array([100, 50, 9]), 64)
    >>> pieces_of_rows(layout, np.array([True, False, False])).tolist()
    [0, 1]
    >>> pieces_of_rows(layout, np.array([False, True, True])).tolist()
    [1, 2]
    """
    first, last = piece_range(layout)
    # Of so many files: those that begin with a piece, without those that have ended before it.
    n_begun = np.zeros(len(layout.pieces) + 1, dtype=np.int64)
    np.add.at(n_begun, first[is_meant], 1)
    np.add.at(n_begun, last[is_meant], -1)
    return np.flatnonzero(np.cumsum(n_begun))


def recorded_bytes(layout: Layout, recorded: set[int]) -> IntArray:
    """Return how many bytes of each file are in recorded pieces.

    >>> layout = Layout.empty().extended(np.array([7, 8]), np.array([100, 50]), 64)
    >>> recorded_bytes(layout, {1}).tolist()
    [36, 28]
    """
    is_recorded = np.diff(_recorded_before(layout, recorded)).astype(np.int64)
    before = np.concatenate([[0], np.cumsum(is_recorded * layout.piece_bytes)])

    def below(at: IntArray) -> IntArray:
        piece = np.searchsorted(layout.pieces, at, side="right") - 1
        within = np.minimum(at - layout.pieces[piece], layout.piece_bytes[piece])
        return np.asarray(before[piece] + is_recorded[piece] * within, dtype=np.int64)

    return below(layout.starts + layout.sizes) - below(layout.starts)


def _recorded_before(layout: Layout, recorded: set[int]) -> IntArray:
    is_recorded = np.zeros(len(layout.pieces) + 1, dtype=np.int64)
    if recorded:
        is_recorded[np.array(sorted(recorded), dtype=np.int64) + 1] = 1
    return np.cumsum(is_recorded)
