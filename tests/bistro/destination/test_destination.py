"""What the destination makes of what bistros report; lies are named, people are not to blame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances.bistro_folders import HandedIn, MadeBistro, collecting_event
from instances.events import key_of, ticket_of

from datacollect.bistro.destination.batch_faults import chain_lies, rows_handed_in
from datacollect.bistro.destination.counting import Draft, superseded
from datacollect.bistro.destination.missing import (
    WITHOUT_DATA,
    WITHOUT_UPLOAD,
    Known,
    is_hidden,
    missing_of,
)
from datacollect.bistro.destination.pieces import PIECE_OF_UPLOAD, assembled, segments_to_fetch
from datacollect.bistro.formats.custody.batch_chain import Link
from datacollect.bistro.formats.custody.batches import ROW, sign_batch
from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt
from datacollect.bistro.formats.custody.verdicts import COLLECTED, DOES_NOT_OPEN, LATE, REFUSED

EVENT = collecting_event()
A, B, C, D = (letter * 32 for letter in (b"a", b"b", b"c", b"d"))


def texts(*links):
    return [lie.text for lie in chain_lies("north", links, lambda digest: digest.hex().encode())]


def test_a_chain_without_gaps_holds_whatever_the_order_in_which_it_comes():
    chain = [Link(0, A, bytes(32)), Link(1, B, A), Link(2, C, B)]
    assert texts(*chain) == texts(*chain[::-1]) == texts(*chain, chain[1]) == []


def test_a_batch_that_is_not_shown_is_named():
    assert texts(Link(0, A, bytes(32)), Link(2, C, B)) == [
        "It has signed batch 2, but shows no batch 1."
    ]
    assert texts(Link(1, B, A)) == ["It has signed batch 1, but shows no batch 0."]


def test_two_batches_of_one_number_are_named_with_both_notes():
    (text,) = texts(Link(0, A, bytes(32)), Link(0, B, bytes(32)), Link(1, C, A))
    assert A.hex() in text
    assert B.hex() in text


def test_a_batch_that_follows_another_than_is_shown_is_named():
    (text,) = texts(Link(0, A, bytes(32)), Link(1, C, B))
    assert text == f"Its batch 1 follows a batch that it does not show, {B.hex()}."
    (text,) = texts(Link(0, A, B))
    assert B.hex() in text


def batch_of(tmp_path, *rows):
    return MadeBistro(EVENT, "north", tmp_path).batch(*rows)


def test_rows_that_open_their_commitment_count_and_others_are_named(tmp_path):
    one, two = HandedIn(EVENT, 1), HandedIn(EVENT, 2)
    batch = batch_of(tmp_path, one.row(), two.row())
    all_rows, lies = rows_handed_in(batch, EVENT)
    assert (all_rows.tobytes(), lies) == (batch.rows.tobytes(), [])
    for name, value in (
        ("entry", A),
        ("salt", A),
        ("content_p", A),
        ("committed_sha256", A),
        ("committed_size", 1),
        ("committed_size", 2**64 - 1),
        ("size", 2**63),
        ("time_s", 2**64 - 1),
    ):
        rows = batch.rows.copy()
        rows[name][1] = np.void(value) if isinstance(value, bytes) else value
        good, (lie,) = rows_handed_in(replace(batch, rows=rows), EVENT)
        assert [bytes(entry) for entry in good["entry"]] == [one.entry]
        assert lie.who == "north"
        assert "the first is row 1" in lie.text


def test_a_row_of_another_event_opens_nothing(tmp_path):
    other = HandedIn(collecting_event(name="Another"))
    rows, lies = rows_handed_in(batch_of(tmp_path, other.row()), EVENT)
    assert len(rows) == 0
    assert len(lies) == 1


# Places of signatures in a row.
OWNERS, TICKETS = (ROW.names.index(name) for name in ("signature", "ticket_signature"))


def signed_by(row, place, signature):
    """Return a row with another signature there."""
    return (*row[:place], signature, *row[place + 1 :])


def unsigned_rows(one):
    """Rows of north that open what somebody has committed to, and that nobody has signed for."""
    junk, stolen = one.row(b"junk"), one.row(bistro="south")[OWNERS]
    itself = key_of("north").sign(b"junk")
    honest = np.array([one.row()], ROW)
    other = honest.copy()
    other["sha256"] = A
    longer = honest.copy()
    longer["size"] += 1
    return {
        "junk that it calls sealed anew": signed_by(junk, OWNERS, bytes(64)),
        "junk with its own signature": signed_by(junk, OWNERS, itself),
        "what was pushed to another bistro": signed_by(one.row(), OWNERS, stolen),
        "other bytes than were pushed": tuple(other[0]),
        "more bytes than were pushed": tuple(longer[0]),
    }


@pytest.mark.parametrize("what", unsigned_rows(HandedIn(EVENT)))
def test_a_row_that_its_owner_has_not_signed_is_its_bistros_own(tmp_path, what):
    victim, other = HandedIn(EVENT), HandedIn(EVENT, 2)
    rows = (other.row(), unsigned_rows(victim)[what])
    good, (lie,) = rows_handed_in(batch_of(tmp_path, *rows), EVENT)
    assert [bytes(entry) for entry in good["entry"]] == [other.entry]
    assert lie.who == "north"
    assert lie.text == (
        "It reports entries that nobody handed in: 1 row of its batch 0 without the owner's "
        "signature, the first is row 1."
    )


@pytest.mark.parametrize("ticket", [None, 1, 2])
def test_a_row_that_its_ticket_has_not_signed_is_its_bistros_own(tmp_path, ticket):
    """Its owner has pushed it, maybe with another ticket; the row's was never asked."""
    keys = {n.to_bytes(16, "big").hex(): ticket_of(EVENT, n).key.public for n in (1, 2)}
    victim, other = HandedIn(EVENT, 1, ticket=ticket), HandedIn(EVENT, 2, ticket=2)
    rows = (other.row(), signed_by(victim.row(), TICKETS, other.row()[TICKETS]))
    good, (lie,) = rows_handed_in(batch_of(tmp_path, *rows), EVENT, keys)
    assert [bytes(entry) for entry in good["entry"]] == [other.entry]
    assert lie.text == (
        "It reports entries that nobody handed in: 1 row of its batch 0 without the ticket's "
        "signature, the first is row 1."
    )


def test_a_row_of_a_ticket_that_is_not_known_yet_says_nothing_of_its_bistro(tmp_path):
    one = HandedIn(EVENT, 1, ticket=1)
    rows, lies = rows_handed_in(batch_of(tmp_path, one.row()), EVENT, {})
    assert ([bytes(entry) for entry in rows["entry"]], lies) == ([one.entry], [])


def test_an_empty_batch_says_nothing():
    batch = sign_batch(EVENT, "north", 0, bytes(32), 0, np.array([], ROW), key_of("north"))
    assert rows_handed_in(batch, EVENT)[1] == []


def put_together(pieces, size):
    """Return what makes an upload, of segment, offset there, offset in the upload, length."""
    found = assembled(np.array(pieces, PIECE_OF_UPLOAD), size)
    return None if found is None else found.tolist()


def test_pieces_of_several_segments_make_an_upload_in_order():
    first, second, third = (0, 90, 0, 10), (1, 0, 10, 20), (4, 7, 30, 1)
    assert put_together([first, second, third], 31) == [first, second, third]
    assert put_together([first, third], 31) is None
    assert put_together([first, second], 31) is None
    assert put_together([], 31) is None
    assert put_together([], 0) == []


def test_what_was_carried_on_is_taken_where_it_lies_last():
    """The first bytes were written again behind those that follow them."""
    first, second, carried = (0, 5, 0, 10), (3, 0, 10, 7), (3, 7, 0, 10)
    assert put_together([first, second, carried], 17) == [carried, second]


def test_of_bytes_that_came_twice_the_later_count():
    wrong, right = (0, 0, 4, 6), (1, 0, 4, 6)
    assert put_together([(0, 0, 0, 4), wrong, right], 10) == [(0, 0, 0, 4), right]
    first, again = (0, 0, 0, 10), (1, 100, 6, 10)
    assert put_together([first, again], 16) == [(0, 0, 0, 6), (1, 100, 6, 10)]
    within = (2, 50, 3, 2)
    assert put_together([first, within], 10) == [(0, 0, 0, 3), (2, 50, 3, 2), (0, 5, 5, 5)]


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(1, 8)), max_size=12), st.integers(0, 20))
def test_whatever_overlaps_is_as_if_written_one_after_the_other(spans, size):
    """Judged byte by byte."""
    spans = [(at, n) for at, n in spans if at + n <= size]
    written = [-1] * size
    for which, (at, n) in enumerate(spans):
        written[at : at + n] = [which] * n
    found = put_together([(which, 7, at, n) for which, (at, n) in enumerate(spans)], size)
    if found is None:
        assert -1 in written
        return
    read = []
    for which, offset, at, n in found:
        assert at == len(read)
        assert offset - 7 == at - spans[which][0]
        read += [which] * n
    assert read == written


@pytest.mark.slow
def test_an_upload_of_very_many_pieces_is_put_together():
    pieces = [(0, n, n, 1) for n in range(200_000)]
    assert put_together(pieces, len(pieces)) == pieces
    assert put_together([*pieces, (1, 0, 7, 1)], len(pieces))[7] == (1, 0, 7, 1)


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, 0, 5, 5)],
        [(0, 0, 0, 11)],
        [(0, 0, 0, 4), (0, 4, 5, 5)],
        [(0, 0, 2**63 - 1, 2**26), (0, 0, 0, 1)],
    ],
)
def test_an_index_that_lies_makes_no_upload(pieces):
    assert put_together(pieces, 10) is None


def one_of(*segments):
    return frozenset(segments)


def test_what_lies_at_two_bistros_is_fetched_once():
    copies = {"north": one_of(3), "south": one_of(8, 9)}
    assert segments_to_fetch({A: copies}, {}) == {"north": {3}}
    assert segments_to_fetch({A: copies}, {"south": one_of(8, 9)}) == {}
    assert segments_to_fetch({A: copies, B: {"south": one_of(9)}, C: {"south": one_of(8)}}, {}) == {
        "south": {8, 9}
    }
    assert segments_to_fetch({A: {}}, {}) == {}


DRAFTS = [
    Draft(20, B, "1", b"b"),
    Draft(10, A, "1", b"a"),
    Draft(5, C, "2", b"c"),
    Draft(7, D, None, b"d"),
]


@pytest.mark.parametrize(("counts", "expected"), [("last", {A: B}), ("first", {B: A}), ("all", {})])
def test_one_draft_of_a_ticket_counts_by_its_time(counts, expected):
    assert superseded(DRAFTS, counts) == superseded(DRAFTS[::-1], counts) == expected


def test_of_two_drafts_in_one_second_the_same_counts_for_everybody():
    drafts = [Draft(10, A, "1", b"a"), Draft(10, B, "1", b"b")]
    assert superseded(drafts, "last") == superseded(drafts[::-1], "last") == {A: B}


@pytest.mark.parametrize("counts", ["last", "first", "all"])
def test_a_copy_of_a_sealed_draft_is_no_later_one(counts):
    """Somebody commits to the first draft's ciphertext again, after the second draft."""
    old, new, copy = Draft(1, A, "1", b"old"), Draft(2, B, "1", b"new"), Draft(3, C, "1", b"old")
    found = superseded([copy, new, old], counts)
    assert (
        found
        == {
            "last": {A: B, C: B},
            "first": {B: A, C: A},
            "all": {C: A},
        }[counts]
    )
    unknown = [Draft(1, A, None, b"old"), Draft(3, C, None, b"old"), Draft(2, B, None, b"new")]
    assert superseded(unknown, counts) == {C: A}


def receipt(bistro="north", batch=3):
    return BistroReceipt(EVENT.id, bistro, A, 7, C, False, batch, 900)


def test_what_is_missing_is_told_by_its_evidence():
    assert missing_of(Known(A)) is None
    assert missing_of(Known(A, time_s=5)).kind == WITHOUT_UPLOAD
    assert missing_of(Known(A, 5, ("south",))).kind == WITHOUT_DATA
    found = missing_of(Known(A, 5, ("south",)), [receipt()])
    assert (found.kind, found.bistros) == (WITHOUT_DATA, ("north", "south"))
    assert missing_of(Known(A, 5, ("south",), REFUSED, DOES_NOT_OPEN)).kind == DOES_NOT_OPEN
    assert missing_of(Known(A, 5, ("south",), REFUSED, LATE)) is None
    assert missing_of(Known(A, 5, ("south",), COLLECTED), [receipt()]) is None


def test_a_receipt_that_its_batch_does_not_name_shows_what_its_bistro_hides():
    assert is_hidden(receipt(), 3, ["south"])
    assert not is_hidden(receipt(), 2, [])
    assert not is_hidden(receipt(), 3, ["north"])
