"""Locations of data while a collection is under way, as replanning needs them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from datacollect.control.connections import Piece
from datacollect.numbers.byte_ranges import ByteRanges
from datacollect.problem.hosts import Held

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Whereabouts:
    """Data that lie elsewhere than at their sources, each byte at one host.

    Of a byte that is laid at several hosts the first counts: whoever asks begins at the end of
    the way.

    Examples
    --------
    >>> where = Whereabouts({"S": 10})
    >>> where.lay("D", Piece("S", 0, 4))
    >>> where.lay("K", Piece("S", 2, 4))
    >>> where.held()  # doctest: +NORMALIZE_WHITESPACE
    (Held(host='D', source='S', offset_bytes=0, n_bytes=4),
     Held(host='K', source='S', offset_bytes=4, n_bytes=2))
    """

    def __init__(self, backlog_bytes: Mapping[str, int]) -> None:
        self._backlog_bytes = backlog_bytes
        self._known = {source: ByteRanges() for source in backlog_bytes}
        self._at: dict[tuple[str, str], ByteRanges] = {}

    def lay(self, host: str, piece: Piece) -> None:
        """Say that a piece lies at a host."""
        for offset, n_bytes in self._known[piece.source].missing(piece.offset_bytes, piece.n_bytes):
            self._at.setdefault((host, piece.source), ByteRanges()).add(offset, n_bytes)
        self._known[piece.source].add(piece.offset_bytes, piece.n_bytes)

    def lay_remaining(self, host: str, source: str) -> None:
        """Say that all of a source that lies nowhere yet is at a host."""
        self.lay(host, Piece(source, 0, self._backlog_bytes[source]))

    def bytes_at(self, host: str) -> int:
        """Return how much lies at a host."""
        return sum(ranges.total_bytes for (where, _), ranges in self._at.items() if where == host)

    def held(self) -> tuple[Held, ...]:
        """Return what lies elsewhere than at its source."""
        return tuple(
            Held(host, source, offset, n_bytes)
            for (host, source), ranges in self._at.items()
            if host != source
            for offset, n_bytes in present(ranges, self._backlog_bytes[source])
        )


def present(ranges: ByteRanges, n_bytes: int) -> list[tuple[int, int]]:
    """Return the ranges (offset, bytes) of the first `n_bytes` that are in a set.

    >>> there = ByteRanges()
    >>> _ = there.add(2, 3), there.add(8, 2)
    >>> present(there, 10)
    [(2, 3), (8, 2)]
    """
    gone = ByteRanges()
    for offset, n in ranges.missing(0, n_bytes):
        gone.add(offset, n)
    return gone.missing(0, n_bytes)


def pieces_of(
    piece: Piece, coming: Iterable[Piece], piece_bytes: int
) -> Iterator[tuple[Piece, Piece | None]]:
    """Cut a range of one source at a host into pieces, each there or part of what is to come.

    Parameters
    ----------
    piece : Piece
    coming : iterable of Piece
        Of the same source and in flight to the same host, apart from each other.
    piece_bytes : int
        Size of those that are there, at most.

    Yields
    ------
    piece : Piece
    coming : Piece or None
        What has to arrive first.

    Examples
    --------
    >>> for part, first in pieces_of(Piece("S", 0, 10), [Piece("S", 6, 9)], 4):
    ...     print(part, first)
    Piece(source='S', offset_bytes=0, n_bytes=3) None
    Piece(source='S', offset_bytes=3, n_bytes=3) None
    Piece(source='S', offset_bytes=6, n_bytes=4) Piece(source='S', offset_bytes=6, n_bytes=9)
    """
    end = piece.offset_bytes + piece.n_bytes
    parts: list[tuple[Piece, Piece | None]] = []
    not_there = ByteRanges()
    for arriving in coming:
        low = max(piece.offset_bytes, arriving.offset_bytes)
        high = min(end, arriving.offset_bytes + arriving.n_bytes)
        if low < high:
            parts.append((Piece(piece.source, low, high - low), arriving))
            not_there.add(low, high - low)
    for offset, n_bytes in not_there.missing(piece.offset_bytes, piece.n_bytes):
        n_parts = -(-n_bytes // piece_bytes)
        cuts = [offset + n_bytes * i // n_parts for i in range(n_parts + 1)]
        parts += [(Piece(piece.source, low, high - low), None) for low, high in pairwise(cuts)]
    yield from sorted(parts, key=lambda part: part[0].offset_bytes)
