"""Packets of a feed: the nonce of its ticket, two numbers, when the message was made, the message.

The nonce is known to both ends alone, by TLS; who sees the path can read it, and forge packets: a
signature for each would cost more than all else. Messages are numbered when they are made; packets
when they are sent, so that the receiver can tell what the path has lost from what was left out.
"""

from __future__ import annotations

import base64
import struct
from functools import lru_cache
from typing import NamedTuple

HEAD = struct.Struct("!16sQQQ")
# Of IP with UDP: of version 4, which is shorter, and of version 6.
IP_BYTES, MOST_IP_BYTES = 28, 48
# What Ethernet carries, and with long frames.
USUAL_BYTES, LONGEST_BYTES = 1500, 9000
USUAL_MESSAGE_BYTES = USUAL_BYTES - MOST_IP_BYTES - HEAD.size
MOST_MESSAGE_BYTES = LONGEST_BYTES - MOST_IP_BYTES - HEAD.size


class Heads(NamedTuple):
    """Heads of messages whose packets came together, each a value for each packet.

    Attributes
    ----------
    nonces : tuple of bytes
    messages, packets : tuple of int
        Numbers, from 0 on: of all made, and of all sent.
    made_ns : tuple of int
        By the sender's clock that is never set.
    """

    nonces: tuple[bytes, ...]
    messages: tuple[int, ...]
    packets: tuple[int, ...]
    made_ns: tuple[int, ...]


def raw_nonce(nonce: str) -> bytes:
    """Return a ticket's nonce as packets carry it.

    >>> raw_nonce("A" * 22 + "==") == bytes(16)
    True
    """
    return base64.b64decode(nonce)


@lru_cache(maxsize=256)
def _spaced(segment_bytes: int, n: int, last_bytes: int) -> struct.Struct:
    """Return where the heads are in `n` packets, of which the last may be shorter."""
    whole, last = (f"16sQQQ{size - HEAD.size}x" for size in (segment_bytes, last_bytes))
    return struct.Struct("!" + whole * (n - 1) + last)


def heads_of(data: memoryview, segment_bytes: int) -> Heads:
    """Return the heads of the packets that came together, each of so many bytes but the last.

    Of what is too short for a head there are none.

    >>> two = HEAD.pack(bytes(16), 1, 1, 7) + b"abc" + HEAD.pack(bytes(16), 2, 2, 8) + b"d"
    >>> heads_of(memoryview(two), HEAD.size + 3).messages
    (1, 2)
    """
    n = -(-len(data) // segment_bytes) if segment_bytes else 0
    last_bytes = len(data) - (n - 1) * segment_bytes
    if not n or segment_bytes < HEAD.size or last_bytes < HEAD.size:
        return Heads((), (), (), ())
    flat = _spaced(segment_bytes, n, last_bytes).unpack(data)
    return Heads(flat[0::4], flat[1::4], flat[2::4], flat[3::4])
