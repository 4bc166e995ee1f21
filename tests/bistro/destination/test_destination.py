"""What the destination makes of what bistros report; lies are named, people are not to blame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from instances.bistro_folders import HandedIn, MadeBistro, collecting_event
from instances.events import key_of

from datacollect.bistro.destination.batch_faults import chain_lies, rows_handed_in
from datacollect.bistro.destination.counting import Draft, superseded
from datacollect.bistro.destination.missing import (
    WITHOUT_DATA,
    WITHOUT_UPLOAD,
    Known,
    is_hidden,
    missing_of,
)
from datacollect.bistro.destination.pieces import MOST_WAYS, Piece, segments_to_fetch, whole_uploads
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
        "It has signed batch 2 and shows no batch 1."
    ]
    assert texts(Link(1, B, A)) == ["It has signed batch 1 and shows no batch 0."]


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


def unsigned_rows(one):
    """Rows of north that open what somebody has committed to, and that nobody has signed for."""
    stolen = (*one.row()[:-1], one.row(bistro="south")[-1])
    honest = np.array([one.row()], ROW)
    other = honest.copy()
    other["sha256"] = A
    longer = honest.copy()
    longer["size"] += 1
    return {
        "junk that it calls sealed anew": (*one.row(b"junk")[:-1], bytes(64)),
        "junk with its own signature": (*one.row(b"junk")[:-1], key_of("north").sign(b"junk")),
        "what was pushed to another bistro": stolen,
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
        "It reports what nobody handed in: 1 row of its batch 0 without the owner's signature, "
        "the first is row 1."
    )


def test_an_empty_batch_says_nothing():
    batch = sign_batch(EVENT, "north", 0, bytes(32), 0, np.array([], ROW), key_of("north"))
    assert rows_handed_in(batch, EVENT)[1] == []


def test_pieces_of_several_segments_make_an_upload_in_order():
    first, second, third = Piece(0, 90, 0, 10), Piece(1, 0, 10, 20), Piece(4, 7, 30, 1)
    assert whole_uploads([third, first, second], 31) == [(first, second, third)]
    assert whole_uploads([first, third], 31) == []
    assert whole_uploads([first, second], 31) == []


def test_an_upload_that_began_again_is_put_together_of_its_own_pieces():
    cut, whole = Piece(0, 0, 0, 10), (Piece(1, 0, 0, 4), Piece(1, 4, 4, 16))
    assert whole_uploads([cut, *whole], 20) == [whole]
    anew = (Piece(2, 0, 0, 20),)
    assert whole_uploads([*anew, cut, *whole], 20) == [anew, whole]


def test_of_an_upload_that_began_very_often_the_latest_ways_are_followed():
    cut = [Piece(n, 0, 0, 1) for n in range(1000)]
    whole = (Piece(1000, 0, 0, 4), Piece(1000, 4, 4, 16))
    assert whole_uploads([*cut, *whole], 20) == [whole]
    many = [Piece(n, 0, 0, 5) for n in range(1000)]
    assert whole_uploads(many, 5) == [(each,) for each in many[: -MOST_WAYS - 1 : -1]]


@pytest.mark.slow
def test_an_upload_of_very_many_pieces_is_put_together():
    pieces = tuple(Piece(0, n, n, 1) for n in range(200_000))
    assert whole_uploads(pieces, len(pieces)) == [pieces]


def test_bytes_that_were_written_twice_count_once():
    first, again = Piece(0, 0, 0, 10), Piece(1, 100, 6, 10)
    assert whole_uploads([first, again], 16) == [(first, Piece(1, 104, 10, 6))]


@pytest.mark.parametrize(
    "pieces",
    [
        [Piece(0, 0, 5, 5)],
        [Piece(0, 0, 0, 11)],
        [Piece(0, 0, 0, 4), Piece(0, 4, 5, 5)],
        [Piece(0, 0, 2**62, 2**62), Piece(0, 0, 0, 1)],
    ],
)
def test_an_index_that_lies_makes_no_upload(pieces):
    assert whole_uploads(pieces, 10) == []


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
