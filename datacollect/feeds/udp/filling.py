"""Filling that replaces what is missing in a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from datacollect.feeds.formats.udp_settings import PATTERN, RANDOM

if TYPE_CHECKING:
    from collections.abc import Iterator

# As words of 32 bits, the lowest byte first: what correlators and readers of VLBI data look for.
WORD = (0x11223344).to_bytes(4, "little")
BLOCK_BYTES = 2**20
_PATTERN = WORD * (BLOCK_BYTES // len(WORD) + 1)


def filling(fill: str, offset: int, n_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield where in a file what stands, for a hole; of zeros nothing, which it has there.

    Parameters
    ----------
    fill : str
    offset, n_bytes : int
        Of the hole; words of the pattern begin at multiples of four.

    Examples
    --------
    >>> [(at, data.hex()) for at, data in filling("pattern", 6, 5)]
    [(6, '2211443322')]
    """
    if fill not in (PATTERN, RANDOM):
        return
    end = offset + n_bytes
    for at in range(offset, end, BLOCK_BYTES):
        n = min(BLOCK_BYTES, end - at)
        begin = at % len(WORD)
        yield at, os.urandom(n) if fill == RANDOM else _PATTERN[begin : begin + n]
