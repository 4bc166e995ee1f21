"""Packets of a test: the ticket's nonce, and a number; packets of others are known by having none.

Pairs are numbered from 0 on: pair k has the packets 2k and 2k + 1. Numbers of greetings are drawn
at random, far above: who can say them has received one.
"""

from __future__ import annotations

import base64
import secrets
import struct

_HEAD = struct.Struct("!16sI")
FIRST_GREETING = 2**31


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


def greeting_number() -> int:
    """Return a number that nobody guesses, and that is no pair's."""
    return FIRST_GREETING + secrets.randbelow(FIRST_GREETING)
