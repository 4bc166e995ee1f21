"""Packets of a feed: the nonce of its ticket, two numbers, when the message was made, the message.

The nonce is known to both ends alone, by TLS; who sees the path can read it, and forge packets: a
signature for each would cost more than all else. Messages are numbered when they are made; packets
when they are sent, so that the receiver can tell what the path has lost from what was left out.
"""

from __future__ import annotations

import base64
import struct

HEAD = struct.Struct("!16sQQQ")
# Of IP with UDP: of version 4, which is shorter, and of version 6.
IP_BYTES, MOST_IP_BYTES = 28, 48
# What Ethernet carries, and with long frames.
USUAL_BYTES, LONGEST_BYTES = 1500, 9000
USUAL_MESSAGE_BYTES = USUAL_BYTES - MOST_IP_BYTES - HEAD.size
MOST_MESSAGE_BYTES = LONGEST_BYTES - MOST_IP_BYTES - HEAD.size


def raw_nonce(nonce: str) -> bytes:
    """Return a ticket's nonce as packets carry it.

    >>> raw_nonce("A" * 22 + "==") == bytes(16)
    True
    """
    return base64.b64decode(nonce)
