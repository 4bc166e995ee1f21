"""Segments of a bistro: a file of at most 64 MiB and, beside it, the index of its uploads.

Only closed segments are served: a segment and its index never change. An upload may span several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.bistro.formats.log.checkpoints import SIZE_STOP
from datacollect.errors import ProblemError
from datacollect.transfer.pieces.segments import MOST_SEGMENT_BYTES, segment_name

if TYPE_CHECKING:
    from pathlib import PurePosixPath

# Names and sizes of segments are those of the core's store of pieces.
__all__ = ["MOST_SEGMENT_BYTES", "segment_name"]

CLOSED_AFTER_S = 10.0
MOST_PIECES = 1_000_000

# A piece: bytes from `upload_offset` of an upload lie at `segment_offset`. `upload`: its number at
# this bistro, which the row of it in a batch has, too, and nothing else that began before.
# `NOBODYS`: the bytes are of no upload any more.
NOBODYS = 0
PIECE = np.dtype(
    [
        ("upload", ">u8"),
        ("upload_offset", ">u8"),
        ("segment_offset", ">u8"),
        ("n_bytes", ">u8"),
    ]
)
MOST_INDEX_BYTES = MOST_PIECES * PIECE.itemsize
# What a bistro takes for an upload: so many requests and one more for each so many bytes.
MORE_PIECES, LEAST_PIECE_BYTES = 256, 4096


def most_pieces_of(size: int) -> int:
    """Return of how many pieces an upload of a size may be; a bistro makes a fourth of them.

    Whoever has a bistro's help could have each byte lie in a segment of its own, and fetched alone.

    >>> most_pieces_of(2**22)
    5120
    """
    return 4 * (MORE_PIECES + size // LEAST_PIECE_BYTES)


def index_name(number: int) -> str:
    """Return the path of a segment's index below the folder that a bistro serves.

    >>> segment_name(7), index_name(7), batch_name(7)
    ('segments/0000000007.segment', 'segments/0000000007.index', 'batches/0000000007.batch')
    """
    return f"segments/{number:010}.index"


def batch_name(number: int) -> str:
    """Return the path of a batch."""
    return f"batches/{number:010}.batch"


def number_of(path: PurePosixPath) -> int | None:
    """Return the number of a segment, an index or a batch by its path; None: it is none."""
    if len(path.stem) == 10 and path.stem.isascii() and path.stem.isdigit():
        number = int(path.stem)
        if str(path) in {segment_name(number), index_name(number), batch_name(number)}:
            return number
    return None


def read_index(data: bytes, place: str = "the index") -> np.ndarray:
    """Return the pieces of a segment, of dtype `PIECE`, in the order in which they lie.

    Parameters
    ----------
    data : bytes
        Of the index's file.
    place : str
        What messages call it.

    Raises
    ------
    ProblemError
        The pieces do not lie one after the other, or are more than a segment holds.
    """
    if len(data) % PIECE.itemsize or len(data) > MOST_INDEX_BYTES:
        raise ProblemError(f"{place} must be whole rows, at most {MOST_PIECES}")
    pieces = np.frombuffer(data, PIECE)
    lengths = pieces["n_bytes"].astype(np.uint64)
    # No length above a segment's most: so many of these add up to less than 2**64.
    ends = np.cumsum(lengths)
    is_filled = (
        (lengths <= MOST_SEGMENT_BYTES).all()
        and (pieces["segment_offset"] == ends - lengths).all()
        and (ends <= MOST_SEGMENT_BYTES).all()
    )
    if not is_filled:
        raise ProblemError(
            f"{place}: its pieces must fill a segment of at most {MOST_SEGMENT_BYTES} bytes, "
            "without gaps"
        )
    if max(int(pieces[name].max(initial=0)) for name in ("upload", "upload_offset")) >= SIZE_STOP:
        raise ProblemError(f"{place}: uploads and offsets must be below {SIZE_STOP}")
    return pieces
