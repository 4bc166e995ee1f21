"""Marks: two make the same, who was not told finds nothing, and all of a ticket are found."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances.events import event_of, key_of, marked_by, owner_of, ticket_of
from judges.bistro_verifier import mark_of

from datacollect.bistro.destination.marking import MarkKeys
from datacollect.bistro.formats.event.marks import (
    MarkedEntries,
    mark_key,
    own_mark_key,
    require_mark,
    with_mark,
)
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.errors import ProblemError
from datacollect.net.keys import public_key_bytes, public_text

VERDICTS = {"key": key_of("verdicts").public, "url": "https://verdicts.example"}
EVENT = event_of(verdicts=VERDICTS)
KEY = key_of("verdicts")


def keys_of(number):
    return own_mark_key(EVENT, ticket_of(EVENT, number).key)


def table_of(entries):
    return MarkedEntries(np.array(entries, "S32"))


@given(st.integers(1, 10**6), st.binary(min_size=24, max_size=24))
def test_both_make_the_same_and_so_does_who_reads_the_page(number, beginning):
    ticket = ticket_of(EVENT, number)
    mark = own_mark_key(EVENT, ticket.key).mark(beginning)
    assert mark == MarkKeys(EVENT, KEY).of(ticket.key.public).mark(beginning)
    other = public_key_bytes(KEY.public)
    assert mark == mark_of(ticket.seed, other, EVENT.id, beginning)
    other = public_key_bytes(ticket.key.public)
    assert mark == mark_of(KEY.seed, other, EVENT.id, beginning)


def test_another_event_ticket_or_beginning_has_another_mark():
    beginning = bytes(24)
    other = replace(EVENT, id=bytes(32))
    marks = {
        keys_of(1).mark(beginning),
        keys_of(2).mark(beginning),
        own_mark_key(other, ticket_of(EVENT, 1).key).mark(beginning),
        mark_key(EVENT, ticket_of(EVENT, 1).key, key_of("dest").public).mark(beginning),
        *(keys_of(1).mark(bytes(i) + b"x" + bytes(23 - i)) for i in range(24)),
    }
    assert len(marks) == 4 + 24


@given(st.lists(st.integers(0, 3), max_size=60), st.randoms(use_true_random=False))
def test_the_entries_of_each_ticket_are_found_and_no_others(tickets, chance):
    """0: a stranger's, as he likes."""
    entries = []
    for number in tickets:
        entry = chance.randbytes(32)
        entries.append(entry[:24] + keys_of(number).mark(entry) if number else entry)
    marked = table_of(entries)
    for number in (1, 2, 3):
        wanted = [i for i, ticket in enumerate(tickets) if ticket == number]
        assert marked.of(keys_of(number)).tolist() == wanted


def test_nearly_right_is_wrong():
    """The group of a ticket can be seen in a log, and every byte of what stands behind it, too."""
    key, entry = keys_of(1), sha256(b"mine").digest()
    mine = entry[:24] + key.mark(entry)
    near = [
        mine[:i] + bytes([mine[i] ^ bit]) + mine[i + 1 :] for i in range(32) for bit in (1, 128)
    ]
    assert table_of([mine]).of(key).tolist() == [0]
    assert table_of(near).of(key).tolist() == []


def test_a_commitment_keeps_what_binds_it():
    made = Commitment(EVENT.id, bytes(32), 1, bytes(32), bytes(32), owner_of("it"))
    marked = marked_by(EVENT, made)
    assert marked.entry[:24] == made.entry[:24]
    assert marked.entry[24:] == marked.mark == keys_of(1).mark(made.entry)
    assert with_mark(marked, keys_of(1)) == marked


@pytest.mark.parametrize("changes", [{"admission": "open", "verdicts": VERDICTS}, {}])
def test_where_nobody_is_counted_or_nobody_collects_there_are_no_marks(changes):
    event = event_of(**changes)
    assert not event.has_marks
    assert own_mark_key(event, ticket_of(EVENT).key) is None
    made = Commitment(event.id, bytes(32), 1, bytes(32), bytes(32), owner_of("it"))
    require_mark(made, event, "it")
    with pytest.raises(ProblemError, match="it must have no mark"):
        require_mark(replace(made, mark=bytes(8)), event, "it")


def test_a_ticket_that_nobody_can_hold_has_no_mark():
    """Of a key of small order everybody knows what two make of it."""
    for raw in (bytes(32), (1).to_bytes(32, "little")):
        assert MarkKeys(EVENT, KEY).of(public_text(raw)) is None
    assert MarkKeys(EVENT, KEY).of(None) is None


def test_a_mark_has_eight_bytes():
    with pytest.raises(ProblemError, match="mark of a commitment must have 8 bytes"):
        Commitment(bytes(32), bytes(32), 0, bytes(32), bytes(32), bytes(32), bytes(7))
