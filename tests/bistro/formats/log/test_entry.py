"""Entries: the bytes that the format says, put together by hand."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from datacollect.bistro.formats.log.content import content_digest, header_bytes
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.errors import ProblemError


def test_an_entry_is_the_hash_of_its_parts_in_order():
    event, salt, ciphertext, content = (bytes([i]) * 32 for i in range(4))
    by_hand = (
        b"datacollect-commitment/2\n"
        + event
        + salt
        + b"\0\0\0\0\0\0\1\2"  # 258
        + ciphertext
        + content
        + b"o" * 32
    )
    commitment = Commitment(event, salt, 258, ciphertext, content, b"o" * 32)
    assert commitment.entry == hashlib.sha256(by_hand).digest()


def test_in_events_of_an_older_kind_an_entry_has_no_owner():
    """Another label: no entry of one kind is one of the other."""
    event, salt, ciphertext, content = (bytes([i]) * 32 for i in range(4))
    by_hand = (
        b"datacollect-commitment/1\n"
        + event
        + salt
        + b"\0\0\0\0\0\0\1\2"  # 258
        + ciphertext
        + content
    )
    commitment = Commitment(event, salt, 258, ciphertext, content)
    assert commitment.entry == hashlib.sha256(by_hand).digest()


def test_content_is_keyed_and_its_header_has_a_length():
    secret = bytes(range(32))
    by_hand = hmac.digest(secret, b'datacollect-content/1\n\0\0\0\x0c{"name":"a"}file', "sha256")
    header = header_bytes({"name": "a"})
    assert content_digest(secret, header, [b"fi", b"", b"le"]) == by_hand
    # What moves from the file into the header is something else.
    assert content_digest(secret, header + b"f", [b"ile"]) != by_hand


def test_wrong_lengths_are_refused():
    with pytest.raises(ProblemError, match="salt of a commitment must have 32 bytes"):
        Commitment(bytes(32), bytes(31), 0, bytes(32), bytes(32))
    with pytest.raises(ProblemError, match="owner of a commitment must have 32 bytes"):
        Commitment(bytes(32), bytes(32), 0, bytes(32), bytes(32), bytes(31))
    with pytest.raises(ProblemError, match="size of a commitment must be 0 or more, got -1"):
        Commitment(bytes(32), bytes(32), -1, bytes(32), bytes(32))
    with pytest.raises(ProblemError, match="must have 32 bytes"):
        content_digest(b"", b"", [])
    with pytest.raises(ProblemError, match="at most 65536 bytes"):
        header_bytes({"name": "a" * 70_000})
