"""Heads of many packets at once, as arrays: what is done for each packet alone costs too much."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from datacollect.feeds.formats.packets import HEAD

if TYPE_CHECKING:
    from numpy.typing import NDArray

# As `HEAD`: numbers from 0 on, of all messages made, of all packets sent; and when a message was
# made, by the sender's clock that is never set.
HEADS = np.dtype(
    [("nonce", np.uint64, 2), ("message", ">u8"), ("packet", ">u8"), ("made_ns", ">u8")]
)
Heads: TypeAlias = "NDArray[np.void]"


# A head as words, all with the highest byte first.
_WORDS = np.dtype((">u8", (HEADS.itemsize // 8,)))


def words_of(heads: Heads) -> NDArray[np.uint64]:
    """Return all words of heads, a row for each word of a head: the nonce's two, and three numbers.

    Examples
    --------
    >>> words_of(heads_of(HEAD.pack(bytes(16), 1, 2, 7), HEAD.size)).tolist()
    [[0], [0], [1], [2], [7]]
    """
    return heads.view(_WORDS).T.astype(np.uint64, "C")


def nonce_words(nonce: bytes) -> NDArray[np.uint64]:
    """Return a nonce as it stands in `HEADS`."""
    return np.frombuffer(nonce, np.uint64)


def heads_of(data: memoryview | bytearray | bytes, packet_bytes: int) -> Heads:
    """Return the heads of packets that stand in a row: what is written into them stands there.

    Parameters
    ----------
    data : bytes-like
    packet_bytes : int
        Of each but the last. Of what is too short for a head there are none.

    Examples
    --------
    >>> two = HEAD.pack(bytes(16), 1, 1, 7) + b"abc" + HEAD.pack(bytes(16), 2, 2, 8) + b"d"
    >>> heads_of(two, HEAD.size + 3)["message"].tolist()
    [1, 2]
    """
    n = -(-len(data) // packet_bytes) if packet_bytes else 0
    if not n or packet_bytes < HEAD.size or len(data) - (n - 1) * packet_bytes < HEAD.size:
        return np.empty(0, HEADS)
    return np.ndarray((n,), HEADS, data, strides=(packet_bytes,))
