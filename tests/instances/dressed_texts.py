"""Texts as other programs would have written them, and texts that something has damaged."""

from __future__ import annotations

import gzip
import random

ENCODINGS = ("utf-8", "utf-8", "utf-8-sig", "utf-16")
# What damage puts in: what other formats have, what no text has, what numbers may become.
ODD = (
    *(b"\x00", b"\xff", b"\n", b"\r\n", b",", b";", b"\t", b'"', b"'", b"{", b"}", b"[", b"]"),
    *(b"-", b"e999", b"NaN", b"Infinity", b"null", b"true", b"1,500", b"0", b"9" * 400),
    *(b"<", b"/>", b"&#0;", "é".encode(), b"\xef\xbb\xbf", b"1e-320", b"10**5", b"2024-13-45"),
)


def encoded(rng: random.Random, text: str) -> bytes:
    """Return the text in an encoding, packed or not: it still says the same."""
    if rng.random() < 0.3:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    data = text.encode(rng.choice(ENCODINGS))
    return gzip.compress(data, mtime=0) if rng.random() < 0.2 else data


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Return the bytes with one to three places changed, left out, doubled or cut off."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) + 1)
        until = min(at + rng.choice([1, 1, 2, 5, 20, 100]), len(data))
        match rng.randrange(6):
            case 0:
                data = data[:at]
            case 1:
                data = data[:at] + data[until:]
            case 2:
                data = data[:until] + data[at:]
            case 3:
                data = data[:at] + rng.choice(ODD) + data[at:]
            case 4:
                data = data[:at] + rng.choice(ODD) + data[until:]
            case 5:
                data = data[:at] + bytes(rng.randrange(256) for _ in data[at:until]) + data[until:]
    return data
