"""What a bistro decides, by sequences derived by hand, and against a simple model of uploads."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances.events import owner_key, owner_of
from instances.interpreter_steps import n_steps

from datacollect.bistro.formats.custody.segments import CLOSED_AFTER_S
from datacollect.bistro.formats.custody.verdicts import Covered
from datacollect.bistro.formats.event.event import Bistro, Event
from datacollect.bistro.formats.event.statements import give_up_statement
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.receipt.upload_wish import Wish
from datacollect.bistro.upload_server import core as accepting
from datacollect.bistro.upload_server import messages as told
from datacollect.bistro.upload_server import requests
from datacollect.bistro.upload_server.core import (
    AHEAD_S,
    BATCH_AFTER_S,
    EMPTY_S,
    LEAST_CLAIM_BYTES,
    LEAST_PIECE_BYTES,
    MORE_PIECES,
    MOST_SPOILT,
    Accepting,
)
from datacollect.bistro.upload_server.messages import (
    Carry,
    CloseBatch,
    CloseSegment,
    Cut,
    Drop,
    Forget,
    Kept,
    Refuse,
    Release,
    Tell,
)
from datacollect.transfer.pieces.room import SPARE_BYTES

EVENT = Event(
    *(b"e" * 32, "An event", "UTC", 0, 1000, 10, 2000, 3000, "", (), "tickets", "last"),
    *(1, None, 2, (), (), None, (Bistro("north", "https://north.example", "ed25519:k"),), ()),
)
DISK = 2 * SPARE_BYTES
EXPIRE_S = 100.0


class Nothing:
    """A disk on which nothing is whole yet."""

    def whole(self, entry, *, sealed_anew):
        return None

    def by_id(self, upload):
        return None

    def entries_of(self, ticket):
        return set()


def core_of(most_bytes=1000, keep_s=0.0):
    return Accepting(EVENT, "north", most_bytes, EXPIRE_S, Kept(), Nothing(), keep_s)


def wish_of(data=b"x" * 100, salt=0, ticket=1):
    sha256 = hashlib.sha256(data).digest()
    owner = owner_of(f"{salt}")
    commitment = Commitment(EVENT.id, salt.to_bytes(32, "big"), len(data), sha256, b"p" * 32, owner)
    return Wish(commitment, len(data), sha256, bytes(64), ticket.to_bytes(16, "big"))


def end(core, upload, salt=0, request=8):
    """Have the owner of an entry give its upload up."""
    said = give_up_statement(EVENT.id, "ed25519:k", upload)
    return core.handle(told.EndAsked(request, upload, owner_key(f"{salt}").sign(said)))


def create(core, wish, upload="a", now_s=0.0, request=1):
    return core.handle(told.CreateAsked(request, now_s, wish, upload, DISK))


def kinds(actions):
    return [type(each) for each in actions]


def push(core, upload, n_bytes, total, offset=0, request=9, now_s=0.0, sha256=b""):
    """Push some bytes in one request; return what becomes of its end."""
    core.handle(told.WriteAsked(request, upload, offset, n_bytes))
    core.handle(told.Arrived(request, now_s, n_bytes))
    digest = sha256 or hashlib.sha256(b"x" * total).digest()
    return core.handle(told.WriteEnded(request, now_s, digest))


def test_room_is_reserved_when_an_upload_begins_and_given_back_when_it_expires():
    core = core_of(most_bytes=250)
    for i in range(2):
        assert kinds(create(core, wish_of(salt=i), f"u{i}"))[-1] is Tell
    (refused,) = create(core, wish_of(salt=2, ticket=2), "u2")
    assert refused.status == 507
    assert core.handle(told.Ticked(EXPIRE_S - 1)) == []
    assert kinds(core.handle(told.Ticked(EXPIRE_S))) == [Forget, Forget]
    assert kinds(create(core, wish_of(salt=2, ticket=2), "u2"))[-1] is Tell


def test_unfinished_uploads_count_against_the_ticket():
    core = core_of()
    statuses = [create(core, wish_of(salt=i), f"u{i}")[-1] for i in range(3)]
    assert kinds(statuses) == [Tell, Tell, Refuse]
    # The same entry again is the same upload.
    assert create(core, wish_of(salt=0), "other")[-1].upload.id == "u0"


def test_who_goes_on_with_an_upload_ends_the_connection_before():
    core = core_of()
    create(core, wish_of())
    assert core.handle(told.WriteAsked(5, "a", 0, 100)) == []
    core.handle(told.Arrived(5, 0.0, 40))
    cut, said = core.handle(told.LookAsked(6, "a"))
    assert (cut, said.upload.offset) == (Cut(5), 40)
    # What the stale one still brings goes nowhere, and changes nothing.
    assert core.handle(told.Arrived(5, 0.0, 10))[0].status == 409
    assert core.handle(told.WriteEnded(5, 0.0, b""))[0].status == 409
    assert push(core, "a", 60, 100, offset=40)[-1].upload.is_whole


def test_only_the_owner_of_an_entry_gives_its_upload_up():
    core = core_of()
    create(core, wish_of())
    push(core, "a", 40, 100)
    said = give_up_statement(EVENT.id, "ed25519:k", "a")
    elsewhere = give_up_statement(EVENT.id, "ed25519:other", "a")
    for signature in (
        *(b"", bytes(64), owner_key("1").sign(said), owner_key("0").sign(elsewhere)),
        owner_key("0").sign(give_up_statement(EVENT.id, "ed25519:k", "b")),
    ):
        (refused,) = core.handle(told.EndAsked(8, "a", signature))
        assert (refused.status, core.handle(told.LookAsked(9, "a"))[-1].upload.offset) == (403, 40)
    assert kinds(end(core, "a")) == [Forget, Tell]


def test_what_an_owner_signs_later_takes_the_place_of_what_never_ended():
    core = core_of()
    create(core, wish_of(ticket=1), "a")
    core.handle(told.WriteAsked(5, "a", 0, 100))
    core.handle(told.Arrived(5, 0.0, 40))
    # With another ticket of the same owner, who goes on from another device.
    done = create(core, wish_of(ticket=2), "b")
    assert {Forget("a"), Cut(5)} <= {*done[:2]}
    assert push(core, "b", 100, 100)[-1].upload.is_whole
    # What is whole stays, whatever else is signed for.
    assert create(core, wish_of(ticket=3), "c")[-1].upload.id == "b"


def test_one_ticket_does_not_reserve_all_room_without_a_byte():
    size = 10 * LEAST_CLAIM_BYTES
    core = core_of(most_bytes=size)
    large = replace(wish_of(ticket=1), size=size)
    assert kinds(create_large(core, large, "a"))[-1] is Tell
    assert core.reserved_bytes == LEAST_CLAIM_BYTES
    # More is promised as more comes.
    push(core, "a", LEAST_CLAIM_BYTES, 1)
    assert core.stored_bytes + core.reserved_bytes == LEAST_CLAIM_BYTES
    other = replace(wish_of(salt=1, ticket=2), size=5 * LEAST_CLAIM_BYTES)
    assert kinds(create_large(core, other, "b"))[-1] is Tell
    # Now a finds less than it would have; what there is it gets, and then it is told so.
    push(core, "b", 4 * LEAST_CLAIM_BYTES, 1)
    core.handle(told.WriteAsked(5, "a", LEAST_CLAIM_BYTES, size - LEAST_CLAIM_BYTES))
    assert not isinstance(core.handle(told.Arrived(5, 0.0, 4 * LEAST_CLAIM_BYTES))[-1], Refuse)
    (refused,) = core.handle(told.Arrived(5, 0.0, LEAST_CLAIM_BYTES))
    assert refused.status == 507
    assert core.handle(told.LookAsked(6, "a"))[-1].upload.offset == 5 * LEAST_CLAIM_BYTES
    assert core.stored_bytes + core.reserved_bytes == size
    # The other one ends as it was promised.
    assert not isinstance(push(core, "b", LEAST_CLAIM_BYTES, 1, 4 * LEAST_CLAIM_BYTES)[0], Refuse)


def create_large(core, wish, upload):
    return core.handle(told.CreateAsked(1, 0.0, wish, upload, 2**50))


def test_who_sends_nothing_gives_way_to_who_would_be_refused():
    core = core_of(most_bytes=250)
    for i in range(2):
        create(core, wish_of(salt=i, ticket=i + 1), f"u{i}", now_s=10.0 * i)
    late = wish_of(salt=2, ticket=3)
    for now_s in (EMPTY_S - 1.0, EMPTY_S):
        done = create(core, late, "u2", now_s=now_s)
    # The older of both, and no more than are needed.
    assert (done[0], kinds(done)[-1]) == (Forget("u0"), Tell)
    assert core.handle(told.LookAsked(5, "u1"))[-1].upload.id == "u1"
    # Of which something has come, stays until it expires.
    core = core_of(most_bytes=250)
    create(core, wish_of(), "u0")
    push(core, "u0", 1, 1)
    create(core, wish_of(salt=1, ticket=2), "u1")
    push(core, "u1", 1, 1)
    assert create(core, late, "u2", now_s=EXPIRE_S - 1.0)[-1].status == 507


def test_what_is_whole_is_never_ended_for_want_of_room_however_small():
    core = core_of(most_bytes=250)
    empty = wish_of(b"")
    create(core, empty, "a")
    core.handle(told.WriteAsked(5, "a", 0, 0))
    ended = told.WriteEnded(5, EMPTY_S, empty.sha256)
    assert core.handle(ended)[-1].upload.is_whole
    # Its group is on the way to the disk: its receipt will name a batch that must have its row.
    large = wish_of(b"x" * 251, salt=1, ticket=2)
    (refused,) = create(core, large, "b", now_s=EMPTY_S)
    assert refused.status == 507


def test_wrong_checksums_write_no_more_than_an_entry_may_spoil():
    core = core_of(most_bytes=10**6)
    create(core, wish_of())
    statuses = []
    for request in range(2 * MOST_SPOILT + 2):
        if isinstance(core.handle(told.LookAsked(0, "a"))[-1], Refuse):
            break
        core.handle(told.WriteAsked(request, "a", 0, 100))
        core.handle(told.Arrived(request, 0.0, 100))
        ended = told.WriteEnded(request, 0.0, b"", is_wrong=True)
        statuses.append(core.handle(ended)[-1].status)
        assert core.stored_bytes + core.reserved_bytes <= 10**6
    assert statuses == [460] * MOST_SPOILT + [403]
    assert core.stored_bytes == (MOST_SPOILT + 1) * 100
    assert create(core, wish_of(), "b")[-1].status == 403


def test_spoilt_bytes_take_the_room_of_what_they_should_have_been():
    core = core_of(most_bytes=250)
    create(core, wish_of(), "a")
    create(core, wish_of(salt=1, ticket=2), "b")
    core.handle(told.WriteAsked(5, "a", 0, 100))
    core.handle(told.Arrived(5, 0.0, 100))
    core.handle(told.WriteEnded(5, 0.0, b"", is_wrong=True))
    assert core.stored_bytes + core.reserved_bytes <= 250
    assert push(core, "b", 100, 100)[-1].upload.is_whole
    core.handle(told.WriteAsked(6, "a", 0, 100))
    assert core.handle(told.Arrived(6, 0.0, 100))[-1].status == 507


def test_an_entry_that_was_spoilt_counts_for_its_ticket():
    core = core_of(most_bytes=10**6)
    for i in range(2):
        create(core, wish_of(salt=i), f"u{i}")
        push(core, f"u{i}", 99, 1)
        end(core, f"u{i}", i)
    assert create(core, wish_of(salt=2), "u2")[-1].status == 403
    assert kinds(create(core, wish_of(salt=2, ticket=2), "u2"))[-1] is Tell
    assert kinds(create(core, wish_of(salt=1), "u1"))[-1] is Tell


def test_of_an_upload_and_the_same_sealed_anew_one_is_under_way():
    """Indices name entries: pieces of both, in turn, would be put together wrongly."""
    anew = replace(wish_of(), size=60, sha256=b"a" * 32)
    for first, then in ((wish_of(), anew), (anew, wish_of())):
        core = core_of()
        create(core, first, "a")
        core.handle(told.WriteAsked(5, "a", 0, 50))
        core.handle(told.Arrived(5, 0.0, 10))
        assert {Forget("a"), Cut(5)} <= {*create(core, then, "b")[:2]}
        assert core.handle(told.LookAsked(6, "a"))[0].status == 404


def test_receipt_names_the_batch_that_is_closed_ten_seconds_later():
    core = core_of()
    create(core, wish_of(), now_s=50.0)
    whole = push(core, "a", 100, 100, now_s=50.0)[-1].upload
    assert (whole.batch, whole.time_s) == (0, 50)
    later = 50.0 + BATCH_AFTER_S
    assert CloseBatch(0, later, 1) in core.handle(told.Ticked(later))
    create(core, wish_of(salt=1), "b", now_s=later)
    assert push(core, "b", 100, 100, now_s=later)[-1].upload.batch == 1


def test_other_bytes_than_committed_to_are_forgotten():
    core = core_of()
    create(core, wish_of())
    forgotten, refused = push(core, "a", 100, 100, sha256=b"other")
    assert (type(forgotten), refused.status) == (Forget, 460)
    assert core.reserved_bytes == 0


def test_only_closed_segments_without_unfinished_bytes_are_let_go():
    core = core_of()
    create(core, wish_of(), "a")
    create(core, wish_of(salt=1), "b")
    push(core, "a", 100, 100)
    push(core, "b", 40, 100)
    covered = Covered(EVENT.id, "north", 1, 9, (range(9),), 0)
    note = requests.CoveredSaid(7, 5.0, covered)
    assert core.handle(note) == [Release((), (), 5.0, 0)]
    assert CloseSegment(0, CLOSED_AFTER_S) in core.handle(told.Ticked(CLOSED_AFTER_S))
    assert core.handle(note) == [Release((), (), 5.0, 0)]  # b goes on in it
    push(core, "b", 60, 100, offset=40, now_s=11.0)
    core.handle(told.Settled(("a", "b")))
    assert core.handle(note) == [Release((0,), (), 5.0, 0), Drop((0,))]
    assert core.stored_bytes == 60
    other = Covered(EVENT.id, "south", 1, 9, (range(9),), 0)
    assert core.handle(requests.CoveredSaid(7, 5.0, other))[0].status == 403


def touched(core, n_segments, at_s=0.0, n_bytes=1):
    """Have segments closed in which somebody ends an upload of 100 bytes, and "slow" has few."""
    for i in range(n_segments):
        now_s = at_s + 20.0 * i
        create(core, wish_of(salt=i, ticket=i), f"u{i}", now_s=now_s)
        push(core, f"u{i}", 100, 100, now_s=now_s)
        core.handle(told.Settled((f"u{i}",)))
        push(core, "slow", n_bytes, 1000, offset=i * n_bytes, now_s=now_s)
        core.handle(told.Ticked(now_s + CLOSED_AFTER_S, DISK))


def slow_one(core):
    wish = wish_of(data=b"y" * 1000, salt=99, ticket=99)
    create(core, wish, "slow")
    return wish


def test_who_touches_each_segment_with_a_byte_keeps_none_of_them():
    core = core_of(10_000)
    slow_one(core)
    touched(core, 5)
    assert core.stored_bytes == 5 * 101
    all_of_it = covered_of(*range(9), now_s=100.0)
    assert core.handle(all_of_it) == [Release((), (), 100.0, 0)]
    carried = core.handle(told.Ticked(100.0, DISK))
    assert carried == [Carry("slow", i, 5, i, 1) for i in range(5)]
    assert core.handle(told.Ticked(100.5, DISK)) == []
    numbers = tuple(range(5))
    assert core.handle(all_of_it) == [Release(numbers, (), 100.0, 0), Drop(numbers)]
    assert core.stored_bytes == 5
    # It goes on where it was, and is named with where it lies now.
    whole = push(core, "slow", 995, 1000, offset=5, now_s=101.0, sha256=wish_of(b"y" * 1000).sha256)
    assert whole[-1].upload.is_whole
    assert whole[-1].upload.segments.keys() == {5}


def test_what_is_carried_never_is_more_than_it_frees():
    """Of 100 bytes beside them 33 are carried; 34 keep the segment as long as they wait."""
    for n_bytes, is_carried in ((33, True), (34, False)):
        core = core_of(10_000)
        slow_one(core)
        touched(core, 1, n_bytes=n_bytes)
        core.handle(covered_of(0, now_s=50.0))
        assert (Carry in kinds(core.handle(told.Ticked(50.0, DISK)))) == is_carried
        assert (Drop in kinds(core.handle(covered_of(0, now_s=51.0)))) == is_carried


def wrong(core, offset, n_bytes, now_s, *, between=()):
    """Push bytes of "slow" with a wrong checksum; `between`: what happens before that shows."""
    core.handle(told.WriteAsked(7, "slow", offset, n_bytes))
    core.handle(told.Arrived(7, now_s, n_bytes))
    done = [action for each in between for action in core.handle(each)]
    core.handle(told.WriteEnded(7, now_s, is_wrong=True))
    return done


def test_what_came_with_a_wrong_checksum_is_not_carried():
    core = core_of(10_000)
    slow_one(core)
    push(core, "slow", 1, 1000, now_s=0.0)
    wrong(core, 1, 10, 0.0)
    create(core, wish_of(), "u0")
    push(core, "u0", 100, 100)
    core.handle(told.Settled(("u0",)))
    core.handle(told.Ticked(CLOSED_AFTER_S, DISK))
    core.handle(covered_of(0, now_s=50.0))
    assert core.handle(told.Ticked(50.0, DISK)) == [Carry("slow", 0, 1, 0, 1)]


def test_what_is_carried_while_a_wrong_push_is_under_way_stays_where_it_is_carried_to():
    """Of 3 bytes that are carried 1 is left, and is carried on once its next segment may go."""
    core = core_of(10_000)
    slow_one(core)
    push(core, "slow", 1, 1000, now_s=0.0)
    create(core, wish_of(), "u0")
    push(core, "u0", 100, 100)
    core.handle(told.Settled(("u0",)))
    meanwhile = [
        told.Ticked(CLOSED_AFTER_S, DISK),
        covered_of(0, now_s=50.0),
        told.Ticked(50.0, DISK),
    ]
    assert Carry("slow", 0, 1, 0, 3) in wrong(core, 1, 2, 0.0, between=meanwhile)
    create(core, wish_of(salt=1), "u1", now_s=51.0)
    push(core, "u1", 100, 100, now_s=51.0)
    core.handle(told.Settled(("u1",)))
    core.handle(told.Ticked(51.0 + CLOSED_AFTER_S, DISK))
    core.handle(covered_of(0, 1, now_s=90.0))
    assert core.handle(told.Ticked(90.0, DISK)) == [Carry("slow", 1, 2, 0, 1)]


def test_so_much_is_carried_at_a_time(monkeypatch):
    monkeypatch.setattr("datacollect.bistro.upload_server.core.MOST_CARRIED_BYTES", 2)
    core = core_of(10_000)
    slow_one(core)
    touched(core, 5)
    core.handle(covered_of(*range(9), now_s=100.0))
    carried = [core.handle(told.Ticked(100.0 + i, DISK)) for i in range(4)]
    assert [[each.source for each in done] for done in carried] == [[0, 1], [2, 3], [4], []]


def test_a_word_of_times_to_come_does_not_keep_later_ones_out_for_ever():
    """Both clocks were ahead by a year, and are set right."""
    core = core_of(10_000)
    year_s = 365 * 86400
    core.handle(covered_of(0, time_s=year_s, now_s=float(year_s)))
    (refused,) = core.handle(covered_of(0, time_s=3600, now_s=100.0))
    assert refused.status == 409
    assert core.handle(covered_of(0, time_s=3700, now_s=100.0)) == [Release((), (), 100.0, 3700)]


def test_nothing_is_carried_to_a_disk_that_is_full_or_does_not_say():
    core = core_of(10_000)
    slow_one(core)
    touched(core, 1)
    for disk_bytes in (SPARE_BYTES, None):
        core.handle(covered_of(0, now_s=50.0))
        assert core.handle(told.Ticked(50.0, disk_bytes)) == []


def test_what_was_given_up_keeps_no_segment():
    core = core_of(10_000)
    slow_one(core)
    touched(core, 2)
    end(core, "slow", 99)
    assert Drop((0, 1)) in core.handle(covered_of(0, 1, now_s=100.0))


def test_a_word_on_segments_says_nothing_of_batches_that_come_later():
    """Of an upload that has ended since, the destination did not know when it said so."""
    core = core_of(10_000)
    collected(core, 1)
    slow_one(core)
    push(core, "slow", 1000, 1000, now_s=50.0, sha256=wish_of(b"y" * 1000).sha256)
    core.handle(told.Settled(("slow",)))
    assert CloseBatch(1, 60.0, 2) in core.handle(told.Ticked(60.0))
    before = Covered(EVENT.id, "north", 1, 1, (range(9),), 1)
    done = core.handle(requests.CoveredSaid(7, 70.0, before))
    assert done == [Release((0,), (), 70.0, 1), Drop((0,))]
    after = replace(before, n_batches=2, time_s=2)
    assert Drop((1,)) in core.handle(requests.CoveredSaid(7, 71.0, after))


def test_a_batch_is_closed_behind_all_that_it_names():
    core = core_of(10_000)
    create(core, wish_of())
    push(core, "a", 100, 100, now_s=0.0)
    closed = core.handle(told.Ticked(CLOSED_AFTER_S))
    assert closed == [CloseSegment(0, CLOSED_AFTER_S), CloseBatch(0, CLOSED_AFTER_S, 1)]


def test_everything_goes_when_keeping_ends():
    core = core_of()
    create(core, wish_of())
    push(core, "a", 100, 100)
    core.handle(told.Settled(("a",)))
    core.handle(told.Ticked(CLOSED_AFTER_S))
    assert Drop((0,)) in core.handle(told.Ticked(float(EVENT.keep_until_s)))


def covered_of(*numbers, time_s=0, now_s=50.0):
    ranges = tuple(range(n, n + 1) for n in numbers)
    return requests.CoveredSaid(7, now_s, Covered(EVENT.id, "north", 1, 9, ranges, time_s))


def collected(core, n_segments):
    """Have so many segments of 100 bytes closed, each with an upload of its own."""
    for i in range(n_segments):
        create(core, wish_of(salt=i, ticket=i), f"u{i}", now_s=20.0 * i)
        push(core, f"u{i}", 100, 100, now_s=20.0 * i)
        core.handle(told.Settled((f"u{i}",)))
        core.handle(told.Ticked(20.0 * i + CLOSED_AFTER_S))


def test_what_was_collected_stays_for_its_time():
    core = core_of(keep_s=100.0)
    collected(core, 2)
    assert core.handle(covered_of(0)) == [Release((0,), (), 50.0, 0)]
    # It counts as room, and waits for nobody.
    assert (core.stored_bytes, core.released_bytes, core.oldest_s) == (100, 100, 30.0)
    assert core.free_bytes(DISK) == 900
    # The same word again changes nothing of when it was said first.
    assert core.handle(covered_of(0, now_s=60.0)) == [Release((), (), 60.0, 0)]
    assert core.handle(told.Ticked(149.0)) == []
    assert core.handle(told.Ticked(150.0)) == [Drop((0,))]
    assert (core.stored_bytes, core.released_bytes) == (100, 0)


def test_clock_that_was_set_back_keeps_nothing_for_longer():
    core = core_of(keep_s=100.0)
    collected(core, 1)
    core.handle(covered_of(0, now_s=900.0))
    assert core.handle(told.Ticked(40.0)) == []
    assert core.handle(told.Ticked(140.0)) == [Drop((0,))]


def test_the_oldest_that_was_collected_goes_where_its_room_is_needed():
    core = core_of(most_bytes=350, keep_s=1e9)
    collected(core, 3)
    core.handle(covered_of(0, 1))
    assert core.free_bytes(DISK) == 250
    done = create(core, wish_of(salt=7, ticket=7), "new", now_s=60.0)
    # 300 lie there, 50 are left: for 100 more one of them goes, before anybody is told.
    assert [each for each in done if isinstance(each, Drop)] == [Drop((0,))]
    assert done.index(Drop((0,))) < len(done) - 1
    assert isinstance(done[-1], Tell)
    # What the destination needs is promised to nobody.
    refused = create(core, wish_of(b"x" * 200, salt=8, ticket=8), "more", now_s=60.0)[-1]
    assert (refused.status, refused.text[:21]) == (507, "there is room for 150")


def test_what_was_collected_goes_where_others_fill_the_disk():
    core = core_of(keep_s=1e9)
    collected(core, 3)
    core.handle(covered_of(0, 1))
    assert core.free_bytes(SPARE_BYTES - 150) == 50
    assert core.handle(told.Ticked(60.0, SPARE_BYTES)) == []
    assert core.handle(told.Ticked(60.0, SPARE_BYTES - 150)) == [Drop((0, 1))]


def test_destination_that_has_lost_its_disk_needs_again_what_it_had_covered():
    core = core_of(keep_s=100.0)
    collected(core, 2)
    core.handle(covered_of(0, 1, time_s=40))
    assert core.handle(covered_of(1, time_s=60)) == [Release((), (0,), 50.0, 60)]
    # A word that is older than the last lets nothing go, nor takes anything back.
    for older in (covered_of(0, 1, time_s=40), covered_of(time_s=59)):
        (refused,) = core.handle(older)
        assert refused.status == 409
    assert (core.stored_bytes, core.released_bytes, core.oldest_s) == (100, 100, 10.0)
    assert core.handle(told.Ticked(150.0)) == [Drop((1,))]
    assert core.handle(covered_of(0, time_s=70, now_s=160.0))[0] == Release((0,), (), 160.0, 70)


def test_word_of_times_to_come_does_not_silence_the_next_ones():
    core = core_of(keep_s=100.0)
    collected(core, 1)
    (refused,) = core.handle(covered_of(0, time_s=60 + int(AHEAD_S), now_s=50.0))
    assert (refused.status, core.last_contact_s) == (409, None)
    assert core.handle(covered_of(0, time_s=50, now_s=50.0)) == [Release((0,), (), 50.0, 50)]


def busy(n):
    """A bistro with so many uploads being pushed, segments of each kind, and no more room."""
    kept = Kept(
        segment=2 * n,
        closed={i: (100, float(i)) for i in range(2 * n)},
        released=dict.fromkeys(range(n), 0.0),
        spoilt_bytes={(i.to_bytes(16, "big"), bytes(32)): 5 for i in range(n)},
    )
    core = Accepting(EVENT, "north", 300 * n + 210, EXPIRE_S, kept, Nothing(), 1e9)
    for i in range(n):
        create(core, wish_of(salt=i, ticket=i), f"u{i}")
        core.handle(told.WriteAsked(i, f"u{i}", 0, 100))
        core.handle(told.Arrived(i, 0.0, 10 if i else 9))
    return core


WISHES = [wish_of(salt=10**9 + i, ticket=10**9 + i) for i in range(4)]
MEASURED = {
    "a block": lambda core: core.handle(told.Arrived(7, 1.0, 20)),
    "a push that begins": lambda core: core.handle(told.WriteAsked(10**9, "u7", 10, 9)),
    "a look": lambda core: core.handle(told.LookAsked(10**9, "u7")),
    "one that is given up": lambda core: end(core, "u7", salt=7),
    "one that begins": lambda core: create(core, WISHES[0], "v0", request=10**9),
    "one that has no room": lambda core: [
        create(core, each, "v", now_s=EMPTY_S, request=10**9)
        for each in (replace(WISHES[1], size=10**9), replace(WISHES[2], size=10**9))
    ],
    "how it is": lambda core: (core.oldest_s, core.free_bytes(DISK)),
}


@pytest.mark.parametrize("name", MEASURED)
def test_what_anybody_may_ask_for_costs_as_much_however_many_there_are(name):
    """Counted in steps of the interpreter, which no other load of the machine changes."""
    few, many = busy(20), busy(500)
    for core in (few, many):
        assert core.oldest_s == float(len(core._room.released))  # looked for once
    few_steps, many_steps = (n_steps(lambda c=core: MEASURED[name](c)) for core in (few, many))
    assert many_steps <= 1.5 * few_steps + 100


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "push", "look", "end", "tick"]),
        st.integers(0, 3),
        st.integers(0, 60),
    ),
    max_size=40,
)


@given(STEPS)
def test_offsets_and_room_are_those_of_a_simple_model(steps):
    """The model: an offset by upload; room is what all have sent and may still send."""
    core, offsets, sent, now_s = core_of(10_000), {}, 0, 0.0
    for request, (what, i, n) in enumerate(steps):
        upload = f"u{i}"
        if what == "create":
            core.handle(
                told.CreateAsked(request, now_s, wish_of(salt=i, ticket=i + 1), upload, DISK)
            )
            offsets.setdefault(upload, 0)
        elif what == "push" and upload in offsets and offsets[upload] < 100:
            n = min(n, 100 - offsets[upload])
            push(core, upload, n, 100, offsets[upload], request, now_s)
            offsets[upload], sent = offsets[upload] + n, sent + n
        elif what == "end" and offsets.get(upload, 100) < 100:
            end(core, upload, i, request)
            del offsets[upload]
        elif what == "look":
            answer = core.handle(told.LookAsked(request, upload))[-1]
            found = answer.upload.offset if isinstance(answer, Tell) else None
            assert found == offsets.get(upload)
        elif what == "tick":
            now_s += 0.5
            core.handle(told.Ticked(now_s))
        assert core.stored_bytes == sent
        assert core.reserved_bytes == sum(100 - offset for offset in offsets.values())


class Room:
    """A core and the disk beneath it: at a restart it starts with what uploads are here."""

    def __init__(self, most_bytes):
        self.most_bytes, self.spoilt, self.uploads = most_bytes, 0, {}
        self.core, self.n_requests = core_of(most_bytes), 0

    def begin(self, i, size, now_s):
        wish = replace(wish_of(salt=i, ticket=i + 1), size=size)
        done = self.core.handle(told.CreateAsked(0, now_s, wish, f"u{i}", 2**50))
        if isinstance(done[-1], Tell):
            self.uploads.setdefault(f"u{i}", [0, done[-1].upload.wish])
        self.forget(done)

    def push(self, upload, n_bytes, now_s):
        offset, wish = self.uploads[upload]
        # The last byte stays away: none becomes whole.
        n_bytes = min(n_bytes, wish.size - offset - 1)
        self.n_requests += 1
        self.core.handle(told.WriteAsked(self.n_requests, upload, offset, n_bytes))
        done = self.core.handle(told.Arrived(self.n_requests, now_s, n_bytes))
        if not isinstance(done[-1], Refuse):
            self.uploads[upload][0] += n_bytes
            self.core.handle(told.WriteEnded(self.n_requests, now_s, b""))

    def forget(self, done):
        for each in done:
            if isinstance(each, Forget):
                self.spoilt += self.uploads.pop(each.upload)[0]

    def restart(self):
        here = [
            told.Upload(name, wish, 10.0**6, offset)
            for name, (offset, wish) in self.uploads.items()
        ]
        n_bytes = self.core.stored_bytes
        kept = Kept(here, segment=1, closed={0: (n_bytes, 0.0)})
        self.core = Accepting(EVENT, "north", self.most_bytes, EXPIRE_S, kept, Nothing())


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["begin", "push", "push", "end", "restart"]),
            st.integers(0, 2),
            st.integers(1, 12),
        ),
        max_size=30,
    )
)
def test_no_more_is_promised_than_there_is_room_for_and_every_byte_has_an_owner(steps):
    """Also after restarts, which do not know what was granted before."""
    room = Room(12 * LEAST_CLAIM_BYTES)
    for now_s, (what, i, n) in enumerate(steps):
        if what == "begin" and f"u{i}" not in room.uploads:
            room.begin(i, n * LEAST_CLAIM_BYTES, now_s)
        elif what == "push" and f"u{i}" in room.uploads:
            room.push(f"u{i}", n * LEAST_CLAIM_BYTES // 2, now_s)
        elif what == "end" and f"u{i}" in room.uploads:
            room.forget(end(room.core, f"u{i}", i))
        elif what == "restart":
            room.restart()
        here = sum(offset for offset, _ in room.uploads.values())
        assert room.core.stored_bytes == here + room.spoilt
        assert room.core.stored_bytes + room.core.reserved_bytes <= room.most_bytes


def test_a_restart_grants_no_more_than_there_is_room_for():
    """Of 12: b has 2 and was granted its 6; a has 2, and was granted 6, for want of room not 9."""
    room = Room(12 * LEAST_CLAIM_BYTES)
    room.begin(0, 12 * LEAST_CLAIM_BYTES, 0.0)
    room.begin(1, 6 * LEAST_CLAIM_BYTES, 0.0)
    for upload in ("u0", "u1", "u1", "u0"):
        room.push(upload, LEAST_CLAIM_BYTES, 0.0)
    for _ in range(2):
        assert room.core.stored_bytes + room.core.reserved_bytes == room.most_bytes
        room.restart()


def test_what_is_told_is_not_what_others_go_on_with():
    core = core_of()
    create(core, wish_of())
    (looked,) = core.handle(told.LookAsked(2, "a"))
    push(core, "a", 100, 100)
    # Whoever waits for his answer must not be promised what came later, and is not kept yet.
    assert (looked.upload.offset, looked.upload.is_whole) == (0, False)


def test_nobody_fills_the_disk_with_one_entry():
    core = core_of(most_bytes=10**6)
    n_pushes = 0
    while kinds(create(core, wish_of(), f"u{n_pushes}"))[-1] is Tell:
        push(core, f"u{n_pushes}", 100, 100, sha256=b"w" * 32)  # not what was committed to
        n_pushes += 1
    assert n_pushes == MOST_SPOILT + 1
    # An upload that is given up leaves its bytes behind, too; others' entries are not meant.
    assert kinds(create(core, wish_of(salt=1), "b"))[-1] is Tell


def test_pieces_are_not_arbitrarily_small():
    core = core_of()
    create(core, wish_of(b"x" * 1000))
    for offset in range(MORE_PIECES):
        assert isinstance(push(core, "a", 1, offset + 1, offset)[-1], Tell)
    (refused,) = core.handle(told.WriteAsked(9, "a", MORE_PIECES, 1))
    assert refused.status == 403


def in_pieces(core, n, wish, *, is_wrong):
    """Push so many bytes one by one, and give them up, or have their checksums be wrong."""
    if isinstance(create(core, wish, "p")[-1], Refuse):
        return False
    for offset in range(n):
        at = 0 if is_wrong else offset
        core.handle(told.WriteAsked(9, "p", at, 1))
        core.handle(told.Arrived(9, 0.0, 1))
        core.handle(told.WriteEnded(9, 0.0, b"", is_wrong=is_wrong))
    end(core, "p")
    return True


@pytest.mark.parametrize("is_wrong", [False, True])
def test_pieces_that_are_given_up_are_not_endless_either(is_wrong):
    """Each takes a row and a place in an index, however small it is."""
    core, wish = core_of(10**9), wish_of(b"x" * 10**6)
    most = MORE_PIECES + 10**6 // LEAST_PIECE_BYTES
    n_cycles = 0
    while in_pieces(core, most, wish, is_wrong=is_wrong):
        n_cycles += 1
        assert n_cycles <= MOST_SPOILT + 1
    assert n_cycles == MOST_SPOILT + 1
    assert kinds(create(core, wish_of(salt=1), "b"))[-1] is Tell
    # What a start knows of it counts as well.
    spoilt = {wish.budget: 10}, {wish.budget: MOST_SPOILT * most + 1}
    kept = Kept(spoilt_bytes=spoilt[0], spoilt_pieces=spoilt[1])
    again = Accepting(EVENT, "north", 10**9, EXPIRE_S, kept, Nothing())
    assert create(again, wish, "p")[-1].status == 403


def test_of_too_many_that_are_under_way_who_was_silent_longest_gives_way(monkeypatch):
    monkeypatch.setattr(accepting, "MOST_UNDER_WAY", 3)
    core = core_of(10**9)
    for i in range(3):
        create(core, wish_of(salt=i, ticket=i + 1), f"u{i}", now_s=float(i))
    push(core, "u0", 10, 10, now_s=3.0)
    done = create(core, wish_of(salt=3, ticket=4), "u3", now_s=EMPTY_S)
    assert Forget("u0") not in done
    assert kinds(done)[-1] is Tell
    done = create(core, wish_of(salt=4, ticket=5), "u4", now_s=EMPTY_S + 1.0)
    assert Forget("u1") in done
    done = create(core, wish_of(salt=5, ticket=6), "u5", now_s=EMPTY_S + 2.0)
    assert Forget("u2") in done
    done = create(core, wish_of(salt=6, ticket=7), "u6", now_s=EMPTY_S + 3.0)
    assert Forget("u0") in done


def test_what_is_unfinished_ends_with_the_time_of_collecting():
    core = core_of()
    create(core, wish_of(), now_s=1950.0)
    assert core.handle(told.Ticked(1999.0)) == []
    assert kinds(core.handle(told.Ticked(2000.0))) == [Forget]


def test_clock_that_is_set_back_holds_nothing_open():
    core = core_of()
    create(core, wish_of(), now_s=900.0)
    push(core, "a", 100, 100, now_s=900.0)
    assert core.handle(told.Ticked(100.0)) == []
    done = core.handle(told.Ticked(100.0 + max(CLOSED_AFTER_S, BATCH_AFTER_S)))
    assert kinds(done) == [CloseSegment, CloseBatch]
