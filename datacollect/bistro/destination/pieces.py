"""Pieces of segments that hold an upload, put together in the order in which they were written.

An index says of a piece whose it is, not of which upload: an upload that began again, or one sealed
anew, has the same entry. Each begins at offset 0, and what it is, its hash tells.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Who begins again more often is followed from the latest times alone.
MOST_WAYS = 16


@dataclass(frozen=True, order=True)
class Piece:
    """Bytes of an upload from `upload_offset` on: they lie in a segment at `segment_offset`."""

    segment: int
    segment_offset: int
    upload_offset: int
    n_bytes: int


def whole_uploads(pieces: Iterable[Piece], size: int) -> list[tuple[Piece, ...]]:
    """Return the ways in which pieces of one bistro make an upload of `size` bytes, latest first.

    Examples
    --------
    >>> first, second = Piece(0, 7, 0, 5), Piece(1, 0, 5, 3)
    >>> whole_uploads([second, first], 8) == [(first, second)], whole_uploads([second], 8)
    (True, [])
    """
    # Each: how far it has come, and what it is made of.
    runs: deque[tuple[int, list[Piece]]] = deque(maxlen=MOST_WAYS)
    for piece in sorted(pieces):
        stop = piece.upload_offset + piece.n_bytes
        if piece.upload_offset == 0:
            runs.append((stop, [piece]))
            continue
        for i in reversed(range(len(runs))):
            at, parts = runs[i]
            if piece.upload_offset <= at < stop:
                # A bistro that was cut off may have written the same bytes twice.
                ahead = at - piece.upload_offset
                rest = Piece(piece.segment, piece.segment_offset + ahead, at, piece.n_bytes - ahead)
                parts.append(rest)
                runs[i] = stop, parts
                break
    return [tuple(parts) for at, parts in reversed(runs) if at == size]


def segments_to_fetch(
    needed: Mapping[bytes, Mapping[str, frozenset[int]]], fetched: Mapping[str, frozenset[int]]
) -> dict[str, set[int]]:
    """Return which segments of which bistros are to be fetched, so that each entry comes once.

    Parameters
    ----------
    needed : mapping of bytes to mapping of str to frozenset of int
        For each entry without a verdict, by bistro that holds it whole: the segments.
    fetched : mapping of str to frozenset of int
        Segments that are here, by bistro.

    Examples
    --------
    >>> copies = {"north": frozenset({7}), "south": frozenset({1})}
    >>> segments_to_fetch({b"a": copies, b"b": {"south": frozenset({1})}}, {})
    {'south': {1}}
    """
    found: dict[str, set[int]] = {}
    # Entries that lie at one bistro alone decide first: copies of others may come with them.
    for _, copies in sorted(needed.items(), key=lambda each: (len(each[1]), each[0])):
        more = {
            bistro: segments - fetched.get(bistro, frozenset()) - found.get(bistro, set())
            for bistro, segments in copies.items()
        }
        if more:
            bistro = min(more, key=lambda name: (len(more[name]), name))
            if more[bistro]:
                found.setdefault(bistro, set()).update(more[bistro])
    return found
