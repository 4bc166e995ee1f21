"""What tickets and owners sign: each statement is of one kind, for one receiver, of one thing."""

from __future__ import annotations

from itertools import combinations

import pytest

from datacollect.bistro.formats.event.statements import (
    commit_statement,
    give_up_statement,
    hand_in_statement,
    is_by_key,
    push_statement,
)
from datacollect.net.keys import PrivateKey, public_key_bytes

EVENT, SALT, ENTRY, OTHER = (bytes([i]) * 32 for i in range(1, 5))
TICKET = b"t" * 16
LOG, BISTRO = "ed25519:log", "ed25519:bistro"


def test_the_bytes_are_the_published_ones():
    event, salt, entry, other = (each.hex() for each in (EVENT, SALT, ENTRY, OTHER))
    assert commit_statement(EVENT, LOG, [ENTRY, OTHER]).decode() == (
        f"datacollect-commit/2\n{event}\n{LOG}\n{entry}\n{other}\n"
    )
    assert push_statement(EVENT, BISTRO, ENTRY, OTHER, 258, TICKET).decode() == (
        f"datacollect-push/2\n{event}\n{BISTRO}\n{entry}\n{other}\n258\n{TICKET.hex()}\n"
    )
    assert give_up_statement(EVENT, BISTRO, "u1").decode() == (
        f"datacollect-give-up/2\n{event}\n{BISTRO}\nu1\n"
    )
    assert hand_in_statement(EVENT, SALT, OTHER).decode() == (
        f"datacollect-hand-in/2\n{event}\n{salt}\n{other}\n"
    )


def test_no_two_statements_are_the_same_bytes():
    """Whoever has one of a key has no other: not for more entries, nor another bistro or size."""
    said = [
        commit_statement(EVENT, LOG, [ENTRY]),
        commit_statement(EVENT, LOG, [ENTRY, OTHER]),
        commit_statement(EVENT, LOG, [OTHER, ENTRY]),
        commit_statement(EVENT, BISTRO, [ENTRY]),
        commit_statement(OTHER, LOG, [ENTRY]),
        push_statement(EVENT, BISTRO, ENTRY, OTHER, 1, TICKET),
        push_statement(EVENT, BISTRO, ENTRY, OTHER, 1, bytes(16)),
        push_statement(EVENT, BISTRO, ENTRY, OTHER, 11, TICKET),
        push_statement(EVENT, BISTRO, OTHER, ENTRY, 1, TICKET),
        push_statement(EVENT, LOG, ENTRY, OTHER, 1, TICKET),
        give_up_statement(EVENT, BISTRO, "u1"),
        give_up_statement(EVENT, BISTRO, "u2"),
        hand_in_statement(EVENT, SALT, OTHER),
        hand_in_statement(EVENT, OTHER, SALT),
    ]
    assert all(one != other for one, other in combinations(said, 2))


def test_a_statement_is_by_the_key_that_signed_it():
    key, other = PrivateKey(bytes(32)), PrivateKey(b"o" * 32)
    said = commit_statement(EVENT, LOG, [ENTRY])
    public = public_key_bytes(key.public)
    assert is_by_key(said, key.sign(said), public)
    assert not is_by_key(said, other.sign(said), public)
    assert not is_by_key(said + b"\n", key.sign(said), public)


@pytest.mark.parametrize("signature", [b"", bytes(63), bytes(64), bytes(65)])
def test_what_is_no_signature_is_nobodys(signature):
    assert not is_by_key(b"yes", signature, public_key_bytes(PrivateKey(bytes(32)).public))


def test_a_key_that_nobody_can_hold_has_signed_nothing():
    """For the point of order one, some signatures would pass for any message."""
    identity = b"\1" + bytes(31)
    assert not is_by_key(b"yes", identity + bytes(32), identity)
