"""Pieces of segments that hold an upload, put together in its order.

An index names the upload of each piece by the number that the bistro has given it, so whatever else
began of the same entry is of other numbers. What came twice, by a checksum that was wrong, by a
restart, or carried on to another segment, lies there twice: the later one counts.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

# Bytes from `upload_offset` of an upload on lie in a segment at `segment_offset`.
PIECE_OF_UPLOAD = np.dtype(
    [("segment", "i8"), ("segment_offset", "i8"), ("upload_offset", "i8"), ("n_bytes", "i8")]
)


def assembled(pieces: np.ndarray, size: int) -> np.ndarray | None:
    """Return the pieces that one after the other are an upload of `size` bytes; None: none are.

    Parameters
    ----------
    pieces : ndarray of dtype ``PIECE_OF_UPLOAD``
        Of one upload, in the order of segments and offsets there: of two, the later one counts.
    size : int

    Examples
    --------
    >>> known = np.array([(0, 7, 0, 5), (1, 0, 5, 3), (2, 0, 4, 2)], PIECE_OF_UPLOAD)
    >>> assembled(known, 8).tolist()
    [(0, 7, 0, 4), (2, 0, 4, 2), (1, 1, 6, 2)]
    >>> assembled(known[1:], 8) is None
    True
    """
    if (pieces["n_bytes"] > size - pieces["upload_offset"]).any():
        return None
    order = np.argsort(pieces["upload_offset"], kind="stable")
    begins, ends = pieces["upload_offset"], pieces["upload_offset"] + pieces["n_bytes"]
    in_order = pieces[order]
    follows = np.concatenate([np.zeros(1, np.int64), ends[order]])
    if (begins[order] == follows[:-1]).all():
        return in_order if follows[-1] == size else None
    found: list[tuple[int, int, int, int]] = []
    at, n_begun, last = 0, 0, -1
    # Those that have begun, the latest first.
    begun: list[int] = []
    while at < size:
        while n_begun < len(order) and begins[order[n_begun]] <= at:
            heappush(begun, -int(order[n_begun]))
            n_begun += 1
        while begun and ends[-begun[0]] <= at:
            heappop(begun)
        if not begun:
            return None
        which = -begun[0]
        stop = int(ends[which])
        if n_begun < len(order):
            stop = min(stop, int(begins[order[n_begun]]))
        segment, segment_offset, begin, _ = (int(value) for value in pieces[which])
        if which == last:
            at_segment, at_offset, since, n_bytes = found.pop()
            found.append((at_segment, at_offset, since, n_bytes + stop - at))
        else:
            found.append((segment, segment_offset + at - begin, at, stop - at))
        at, last = stop, which
    return np.array(found, PIECE_OF_UPLOAD)


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
