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


class Head(NamedTuple):
    """What lies before a message.

    Attributes
    ----------
    nonce : bytes
    message, packet : int
        Numbers, from 0 on: of all made, and of all sent.
    made_ns : int
        By the receiver's clock that is never set, as far as the sender knows it.
    """

    nonce: bytes
    message: int
    packet: int
    made_ns: int


def raw_nonce(nonce: str) -> bytes:
    """Return a ticket's nonce as packets carry it.

    >>> raw_nonce("A" * 22 + "==") == bytes(16)
    True
    """
    return base64.b64decode(nonce)


@lru_cache(maxsize=16)
def _spaced(segment_bytes: int) -> struct.Struct:
    return struct.Struct(f"{HEAD.format}{segment_bytes - HEAD.size}x")


def heads_of(data: memoryview, segment_bytes: int) -> list[Head]:
    """Return the heads of the packets that came together, each of so many bytes but the last.

    What is too short for a head has none.

    >>> two = HEAD.pack(bytes(16), 1, 1, 7) + b"abc" + HEAD.pack(bytes(16), 2, 2, 8) + b"d"
    >>> [head.message for head in heads_of(memoryview(two), HEAD.size + 3)]
    [1, 2]
    """
    if segment_bytes < HEAD.size:
        return []
    whole = len(data) // segment_bytes * segment_bytes
    heads = [*map(Head._make, _spaced(segment_bytes).iter_unpack(data[:whole]))]
    if len(data) - whole >= HEAD.size:
        heads.append(Head._make(HEAD.unpack_from(data, whole)))
    return heads
