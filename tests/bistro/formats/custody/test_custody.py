"""What bistros and the destination sign, read back; and what nobody signed, refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np
import pytest

from datacollect.bistro.formats.custody.batches import (
    FIRST,
    OWNERLESS_ROW,
    ROW,
    opening,
    read_batch,
    row_of,
    sign_batch,
    signed_by_tickets,
    signed_for,
)
from datacollect.bistro.formats.custody.bistro_receipt import (
    ASSERTION,
    BistroReceipt,
    read_bistro_receipt,
)
from datacollect.bistro.formats.custody.segments import PIECE, number_of, read_index, segment_name
from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    DOES_NOT_OPEN,
    REFUSED,
    SUPERSEDED,
    Covered,
    Verdict,
    ranges_of,
    read_covered,
    read_verdict,
)
from datacollect.bistro.formats.event.event import Bistro, Event
from datacollect.bistro.formats.event.statements import push_statement
from datacollect.bistro.formats.log.checkpoints import log_key
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.errors import ProblemError, TicketError
from datacollect.net.keys import PrivateKey, public_key_bytes, sign_token

KEY, OTHER, VERDICTS, OWNER, TICKET = (PrivateKey(bytes([i]) * 32) for i in (1, 2, 3, 4, 5))
EVENT = Event(
    id=b"e" * 32,
    name="An event",
    timezone="UTC",
    opens_s=0,
    deadline_s=1000,
    lag_s=10,
    collect_until_s=2000,
    keep_until_s=3000,
    organiser="",
    recipients=(),
    admission="open",
    counts="last",
    quorum=1,
    most_bytes=None,
    commitments_per_ticket=1,
    services=(),
    witnesses=(),
    verdicts=log_key("dest.example/0123456789abcdef", VERDICTS.public),
    bistros=(Bistro("north", "https://n.example", KEY.public),),
    authorities=(),
)
COMMITMENT = Commitment(
    EVENT.id, b"s" * 32, 7, b"c" * 32, b"p" * 32, public_key_bytes(OWNER.public)
)
RECEIPT = BistroReceipt(EVENT.id, "north", COMMITMENT.entry, 7, b"c" * 32, False, 3, 900)


NUMBER = b"n" * 16
PUSHED = push_statement(EVENT.id, KEY.public, COMMITMENT.entry, b"c" * 32, 7, NUMBER)


def batch_of(n_rows=2, key=KEY, number=0, previous=FIRST):
    signatures = OWNER.sign(PUSHED), TICKET.sign(PUSHED)
    row = row_of(COMMITMENT, 7, b"c" * 32, NUMBER, 900, *signatures, 5)
    rows = np.array([row] * n_rows, ROW)
    return sign_batch(EVENT, "north", number, previous, 950, rows, key, 12)


def test_a_receipt_is_read_back():
    assert read_bistro_receipt(RECEIPT.signed(KEY), EVENT) == RECEIPT


@pytest.mark.parametrize(
    ("receipt", "key"),
    [
        (RECEIPT, OTHER),
        (replace(RECEIPT, bistro="south"), KEY),
        (replace(RECEIPT, event=b"x" * 32), KEY),
        (replace(RECEIPT, size=-1), KEY),
        (replace(RECEIPT, batch=True), KEY),
    ],
)
def test_a_receipt_of_somebody_or_something_else_is_refused(receipt, key):
    with pytest.raises(TicketError):
        read_bistro_receipt(receipt.signed(key), EVENT)


@pytest.mark.parametrize(
    ("payload", "rule"),
    [
        (b'{"v": 1}', "fields are not those of a bistro's receipt"),
        (b"[]", "not a JSON object"),
        (b"noise", "not a JSON object"),
    ],
)
def test_a_token_that_says_something_else_is_no_receipt(payload, rule):
    with pytest.raises(TicketError, match=rule):
        read_bistro_receipt(sign_token(KEY, payload, ASSERTION), EVENT)


@pytest.mark.parametrize("n_rows", [0, 1, 3])
def test_a_batch_is_read_back(n_rows):
    batch = batch_of(n_rows)
    found = read_batch(batch.data, EVENT)
    assert (found.bistro, found.number, found.time_s, found.n_segments) == ("north", 0, 950, 12)
    assert found.rows.tobytes() == batch.rows.tobytes()
    assert opening(found.rows, EVENT).tolist() == [True] * n_rows
    assert found.digest == batch.digest


def test_batches_are_chained_by_what_was_signed():
    first = batch_of()
    assert (
        batch_of(number=1, previous=first.digest).previous == read_batch(first.data, EVENT).digest
    )
    assert batch_of(1).digest != batch_of(2).digest


def test_no_changed_byte_of_a_batch_passes():
    data = batch_of(1).data
    for i in range(len(data)):
        with pytest.raises(ProblemError):
            read_batch(data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :], EVENT)


def test_no_cut_batch_passes():
    data = batch_of(1).data
    for i in range(len(data)):
        with pytest.raises(ProblemError):
            read_batch(data[:i], EVENT)


def test_a_batch_of_another_key_is_refused():
    with pytest.raises(ProblemError, match="signed by the bistro of the event that it names"):
        read_batch(batch_of(key=OTHER).data, EVENT)


def test_an_invented_row_opens_nothing():
    row = batch_of(1).rows
    for name in ("entry", "salt", "content_p", "committed_sha256", "owner"):
        wrong = row.copy()
        wrong[name] = b"z" * 32
        assert not opening(wrong, EVENT).any()
    wrong = row.copy()
    wrong["committed_size"] = 8
    assert not opening(wrong, EVENT).any()


def test_a_row_is_signed_for_by_its_owner_alone():
    rows = batch_of(2).rows.copy()
    assert signed_for(rows, EVENT, EVENT.bistros[0]).tolist() == [True, True]
    rows["signature"][1] = OTHER.sign(PUSHED)
    assert signed_for(rows, EVENT, EVENT.bistros[0]).tolist() == [True, False]
    assert not len(signed_for(rows[:0], EVENT, EVENT.bistros[0]))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("entry", b"z" * 32),
        ("sha256", b"z" * 32),
        ("size", 8),
        ("owner", public_key_bytes(OTHER.public)),
        # A key of small order: anybody could sign for it.
        ("owner", bytes(32)),
        ("signature", bytes(64)),
        # Whose ticket pushes, the owner says: no bistro puts another one there.
        ("ticket", bytes(16)),
    ],
)
def test_a_row_that_says_something_else_is_not_signed_for(column, value):
    rows = batch_of(1).rows.copy()
    rows[column] = value
    assert not signed_for(rows, EVENT, EVENT.bistros[0]).any()


def test_a_row_is_pushed_by_the_ticket_that_has_signed_it_as_far_as_tickets_are_known():
    rows = batch_of(3).rows.copy()
    rows["ticket_signature"][1] = OWNER.sign(PUSHED)
    known = {NUMBER: TICKET.public}
    north = EVENT.bistros[0]
    assert signed_by_tickets(rows, EVENT, north, known).tolist() == [True, False, True]
    assert signed_by_tickets(rows, EVENT, north, {}).all()
    # A bistro that shows no ticket has not asked for one.
    rows["ticket"][2] = bytes(16)
    assert signed_by_tickets(rows, EVENT, north, {}).tolist() == [True, True, False]


def test_what_is_signed_for_one_bistro_is_not_for_another():
    rows = batch_of(1).rows
    for other in (replace(EVENT.bistros[0], key=OTHER.public),):
        assert not signed_for(rows, EVENT, other).any()
    assert not signed_for(rows, replace(EVENT, id=b"x" * 32), EVENT.bistros[0]).any()


def test_batches_of_an_older_kind_are_read_and_nobody_could_sign_for_their_rows():
    older = replace(EVENT, version=1)
    committed = replace(COMMITMENT, owner=None)
    values = (committed.salt, committed.content, 7, b"c" * 32, 7, b"c" * 32, bytes(16), 900)
    rows = np.array([(committed.entry, *values)], OWNERLESS_ROW)
    data = sign_batch(older, "north", 0, FIRST, 950, rows, KEY).data
    assert b"datacollect-batch/1\n" in data
    found = read_batch(data, older)
    assert opening(found.rows, older).all()
    assert signed_for(found.rows, older, older.bistros[0]).all()
    with pytest.raises(ProblemError, match="must begin with datacollect-batch/2"):
        read_batch(data, EVENT)
    with pytest.raises(ProblemError, match="must begin with datacollect-batch/1"):
        read_batch(batch_of().data, older)
    with pytest.raises(ValueError, match="rows of its own kind"):
        sign_batch(EVENT, "north", 0, FIRST, 950, rows, KEY)


def test_pieces_fill_a_segment():
    pieces = np.array([(7, 0, 0, 5), (7, 9, 5, 2)], PIECE)
    assert read_index(pieces.tobytes()).tobytes() == pieces.tobytes()
    assert len(read_index(b"")) == 0


@pytest.mark.parametrize(
    "rows",
    [
        [(7, 0, 1, 5)],
        [(7, 0, 0, 5), (7, 5, 4, 2)],
        [(7, 0, 0, 5), (7, 5, 6, 2)],
        [(7, 0, 0, 2**64 - 1), (7, 5, 2**64 - 1, 8)],
        [(7, 0, 0, 2**26), (7, 2**26, 2**26, 1)],
        [(7, 2**63, 0, 5)],
        [(2**63, 0, 0, 5)],
    ],
)
def test_pieces_that_fill_no_segment_are_refused(rows):
    with pytest.raises(ProblemError):
        read_index(np.array(rows, PIECE).tobytes())


def test_a_cut_index_is_refused():
    with pytest.raises(ProblemError):
        read_index(bytes(PIECE.itemsize - 1))


def test_names_have_numbers():
    assert number_of(PurePosixPath(segment_name(12))) == 12
    for name in ("segments/12.segment", "segments/000000001².segment", "batches/0000000012.index"):
        assert number_of(PurePosixPath(name)) is None


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(EVENT.id, COMMITMENT.entry, COLLECTED),
        Verdict(EVENT.id, COMMITMENT.entry, COLLECTED, "ab" * 32),
        Verdict(EVENT.id, COMMITMENT.entry, REFUSED, DOES_NOT_OPEN),
        Verdict(EVENT.id, COMMITMENT.entry, SUPERSEDED, "ab" * 32),
    ],
)
def test_a_verdict_is_read_back(verdict):
    assert read_verdict(verdict.data, EVENT.id) == verdict


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(b"x" * 32, COMMITMENT.entry, COLLECTED),
        Verdict(EVENT.id, COMMITMENT.entry, COLLECTED, "gladly"),
        Verdict(EVENT.id, COMMITMENT.entry, REFUSED),
        Verdict(EVENT.id, COMMITMENT.entry, REFUSED, "is ugly"),
        Verdict(EVENT.id, COMMITMENT.entry, SUPERSEDED, "ab"),
        Verdict(EVENT.id, COMMITMENT.entry, "burnt"),
        Verdict(EVENT.id, b"short", COLLECTED),
    ],
)
def test_what_is_no_verdict_is_refused(verdict):
    with pytest.raises(ProblemError):
        read_verdict(verdict.data, EVENT.id)


def test_the_word_on_segments_is_read_back():
    covered = Covered(EVENT.id, "north", 10, 4, ranges_of({0, 1, 5}), 990)
    found = read_covered(covered.signed(EVENT, VERDICTS).data, EVENT)
    assert found == covered
    assert [number for number in range(8) if number in found] == [0, 1, 5]
    nothing = replace(covered, segments=())
    assert read_covered(nothing.signed(EVENT, VERDICTS).data, EVENT) == nothing


def test_the_word_of_another_on_segments_is_refused():
    covered = Covered(EVENT.id, "north", 10, 4, ranges_of({0, 1, 5}), 990)
    for wrong, key in (
        (covered, OTHER),
        (replace(covered, event=b"x" * 32), VERDICTS),
        (replace(covered, segments=(range(3, 5), range(2, 3))), VERDICTS),
        (replace(covered, segments=(range(3, 5), range(5, 7))), VERDICTS),
        (replace(covered, segments=(range(3, 3),)), VERDICTS),
    ):
        with pytest.raises(ProblemError):
            read_covered(wrong.signed(EVENT, key).data, EVENT)
