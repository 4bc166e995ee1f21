"""Packets of a test: the ticket's nonce, and a number; packets of others are known by having none.

Pairs are numbered from 0 on: pair k has the packets 2k and 2k + 1. Numbers of greetings are drawn
at random, far above: who can say them has received one.
"""

from __future__ import annotations

import base64
import struct
from typing import Any

_HEAD = struct.Struct("!16sI")
FIRST_GREETING = 2**31
# Packets of one test at most; more are not kept.
MOST_PACKETS = 10_000
# Arrivals in one answer of the receiver.
PAGE = 1000


def packet(nonce: str, number: int, n_bytes: int) -> bytes:
    """Return the payload of a packet.

    >>> number_of(packet("A" * 22 + "==", 7, 100), "A" * 22 + "==")
    7
    """
    return _HEAD.pack(base64.b64decode(nonce), number).ljust(n_bytes, b"\0")


def number_of(data: bytes, nonce: str) -> int | None:
    """Return the number of a packet; None where it is not of the test."""
    if len(data) < _HEAD.size:
        return None
    found, number = _HEAD.unpack_from(data)
    return int(number) if found == base64.b64decode(nonce) else None


def arrivals_of(told: Any) -> list[tuple[int, int]] | None:
    """Return what a receiver has told of packets; None where that is nothing of the kind.

    Of each packet its number, and a nanosecond.

    >>> arrivals_of([[7, 10**18]]), arrivals_of([[7]]), arrivals_of("7")
    ([(7, 1000000000000000000)], None, None)
    """
    if not isinstance(told, list) or len(told) > PAGE or not all(map(_is_arrival, told)):
        return None
    return [(number, ns) for number, ns in told]


def _is_arrival(row: Any) -> bool:
    return (
        isinstance(row, list)
        and len(row) == 2
        and all(type(value) is int and 0 <= value < 2**63 for value in row)
    )
