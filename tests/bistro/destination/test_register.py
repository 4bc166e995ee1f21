"""The register, on both databases: idempotent, and whole whatever ends it."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
from conftest import NO_POSTGRES
from instances.bistro_folders import HandedIn, MadeBistro, collecting_event, event_file
from instances.events import DEADLINE_S, key_of
from instances.postgres import postgres, program

from datacollect.bistro.destination.holdings import LOST, MOST_TRIES
from datacollect.bistro.destination.kept_logs import LOGGED, KeptLog
from datacollect.bistro.destination.missing import Known
from datacollect.bistro.destination.register import Register
from datacollect.bistro.formats.custody.batches import read_batch, sign_batch
from datacollect.bistro.formats.custody.segments import index_name, read_index, segment_name
from datacollect.bistro.formats.custody.verdicts import (
    DOES_NOT_OPEN,
    LATE,
    OTHER_CONTENT,
    OTHER_TICKET,
    Verdict,
)
from datacollect.bistro.formats.event.file import read_event
from datacollect.errors import ProblemError, StoreError

EVENT = collecting_event()
# Uploads may still come, and the deadline may still be moved.
DURING_S = EVENT.collect_until_s


@pytest.fixture(scope="module")
def server():
    if program("initdb") is None:
        pytest.skip(NO_POSTGRES)
    with postgres() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Return where a new register is made: a folder, or a database of a server."""
    if request.param == "sqlite":
        return str(tmp_path / "register")
    import psycopg

    address = request.getfixturevalue("server")
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("DROP DATABASE IF EXISTS one WITH (FORCE)")
        db.execute("CREATE DATABASE one")
    return address.replace("/postgres?", "/one?")


@pytest.fixture
def register(place):
    made = Register(place, EVENT)
    yield made
    made.close()


@pytest.fixture
def north(tmp_path):
    return MadeBistro(EVENT, "north", tmp_path / "north")


@pytest.fixture
def south(tmp_path):
    return MadeBistro(EVENT, "south", tmp_path / "south")


def take_all(register, *bistros, fetched=True):
    """Take all that bistros serve, as a destination does."""
    for bistro in bistros:
        for path in sorted((bistro.folder / "batches").glob("*")):
            register.held.take_batch(read_batch(path.read_bytes(), EVENT))
        for number in range(bistro.n_segments):
            pieces = read_index((bistro.folder / index_name(number)).read_bytes())
            register.held.take_index(bistro.name, number, pieces)
            if fetched:
                fetch(register, bistro, number)


def fetch(register, bistro, number):
    n_bytes = (bistro.folder / segment_name(number)).stat().st_size
    assert register.held.take_segment(bistro.name, number, n_bytes)


def timed(register, *uploads, time_s=DEADLINE_S):
    register.take_times((each.entry, time_s) for each in uploads)
    register.judge_times()


def opened_as(register, why="", **more):
    """Judge all that can be opened; return which entries those were."""
    found = [each.upload for each in register.held.to_open()]
    for upload in found:
        register.opened(upload, why, **more)
    return [upload.commitment.entry for upload in found]


def test_twice_the_same_batch_and_index_is_nothing_new(register, north):
    upload = HandedIn(EVENT)
    north.segment((upload.entry, 0, upload.sealed))
    batch = north.batch(upload.row(), upload.row())
    assert register.held.take_batch(batch)
    assert not register.held.take_batch(batch)
    pieces = read_index((north.folder / index_name(0)).read_bytes())
    assert register.held.last_batch("south") == -1
    assert register.held.take_index("north", 0, pieces)
    assert not register.held.take_index("north", 0, pieces)
    assert register.held.last_batch("north") == 0
    assert register.counts().waiting == 1
    assert register.held.to_fetch() == {"north": {0}}
    assert register.held.lies() == []


def test_what_was_read_of_a_bistros_files_is_known_by_its_latest_stamp(register):
    register.held.take_files("north", {"a": "1", "b": "1"})
    register.held.take_files("north", {"b": "2"})
    register.held.take_files("south", {"a": "3"})
    assert register.held.files_of("north") == {"a": "1", "b": "2"}
    assert register.held.files_of("south") == {"a": "3"}


def test_an_entry_goes_from_its_row_to_a_covered_segment(register, north):
    upload = HandedIn(EVENT, ticket=1)
    north.push(upload)
    take_all(register, north, fetched=False)
    assert [*register.without_time()] == [upload.entry]
    # Its data come before logs have answered, and are opened only once its time is known.
    assert register.held.to_fetch() == {"north": {0}}
    fetch(register, north, 0)
    assert register.held.to_fetch() == {}
    assert opened_as(register) == []
    timed(register, upload)
    assert [*register.without_time()] == []
    assert opened_as(register, ticket="1", file="a") == [upload.entry]
    assert register.held.covered("north", DURING_S) == []
    verdict = Verdict(EVENT.id, upload.entry, "collected")
    assert register.to_log() == [verdict]
    register.logged([verdict])
    assert register.to_log() == []
    assert register.held.covered("north", DURING_S) == [0]
    assert register.known(upload.entry) == Known(
        upload.entry, DEADLINE_S, ("north",), "collected", ""
    )
    assert register.counts() == (1, 0, 1, 0, 0, 0)


def test_what_was_forgotten_is_named_no_more_nor_fetched_again(register, north):
    upload = HandedIn(EVENT)
    north.push(upload)
    take_all(register, north)
    timed(register, upload)
    opened_as(register, file="x/name.pdf", n_bytes=1, sha256=bytes(32))
    assert register.held.segments_of([upload.entry]) == [("north", 0, True, False)]
    for _ in range(2):  # again after an interruption
        register.forget([upload.entry])
    assert register.losses.forget_absent(lambda *_: False, lambda *_: True) == 0
    assert register.known(upload.entry).word == "collected"
    assert [*register.held.to_open()] == []


def test_what_lies_at_two_bistros_is_fetched_and_opened_once(register, north, south):
    upload = HandedIn(EVENT)
    north.push(upload)
    south.push(upload)
    take_all(register, north, south, fetched=False)
    assert register.held.to_fetch() == {"north": {0}}
    fetch(register, north, 0)
    timed(register, upload)
    assert opened_as(register) == [upload.entry]
    assert register.held.to_fetch() == {}
    register.logged(register.to_log())
    # The copy that nobody has fetched may go, too.
    assert register.held.covered("south", DURING_S) == [0]


def test_where_a_bistro_holds_other_bytes_the_copy_at_another_counts(register, north, south):
    upload = HandedIn(EVENT)
    north.push(upload)
    south.push(upload)
    take_all(register, north, south, fetched=False)
    timed(register, upload)
    fetch(register, north, 0)
    assert opened_as(register, LOST) == [upload.entry]
    assert [lie.who for lie in register.held.lies()] == ["north"]
    assert register.to_log() == []
    assert register.held.to_fetch() == {"south": {0}}
    fetch(register, south, 0)
    assert opened_as(register) == [upload.entry]
    assert register.counts().collected == 1


def test_what_began_before_hides_nothing_however_often(register, north):
    """An owner begins again a hundred times, and gives up; its bistro is honest."""
    upload = HandedIn(EVENT)
    for number in range(1, 101):
        north.segment((number, 0, b"a false beginning"))
    north.segment((upload.entry, 0, upload.sealed[:9]))
    north.segment(*((number, 0, b"another") for number in range(101, 201)))
    north.segment((upload.entry, 9, upload.sealed[9:]))
    north.batch(upload.row())
    take_all(register, north)
    timed(register, upload)
    (opening,) = register.held.to_open()
    assert opening.parts.tolist() == [(100, 0, 0, 9), (102, 0, 9, len(upload.sealed) - 9)]
    register.opened(opening.upload, "")
    register.logged(register.to_log())
    # What nobody has pushed to its end keeps no segment.
    assert register.held.covered("north", DURING_S) == [*range(103)]
    assert register.held.lies() == []


def test_nobody_is_blamed_for_bytes_before_all_are_here_that_he_has_signed_for(register, north):
    """Of the index of the second try nothing has come yet: the first one hashes wrong."""
    upload = HandedIn(EVENT)
    north.segment((upload.entry, 0, bytes(len(upload.sealed))))
    north.segment((upload.entry, 0, upload.sealed))
    north.batch(upload.row())
    second = (north.folder / index_name(1)).read_bytes()
    north.n_segments = 1
    take_all(register, north)
    timed(register, upload)
    assert opened_as(register, LOST) == [upload.entry]
    assert register.held.lies() == []
    register.held.take_index("north", 1, read_index(second))
    fetch(register, north, 1)
    assert opened_as(register) == [upload.entry]


def test_who_has_shown_all_segments_and_no_such_bytes_is_blamed(register, north):
    upload = HandedIn(EVENT)
    north.segment((upload.entry, 0, bytes(len(upload.sealed))))
    north.segment((7, 0, b"another's"))
    north.batch(upload.row())
    take_all(register, north)
    timed(register, upload)
    assert opened_as(register, LOST) == [upload.entry]
    (lie,) = register.held.lies()
    assert (lie.who, upload.entry.hex() in lie.text) == ("north", True)


def test_of_an_entry_a_bistro_has_two_versions_and_more_are_named(register, north):
    """An owner signs as many as he likes: what else there is has its bistro signed, too."""
    upload = HandedIn(EVENT)
    versions = [bytes([n]) * 9 for n in range(50)]
    numbers = [upload.number(each) for each in versions]
    north.segment(*((n, 0, each) for n, each in zip(numbers, versions, strict=True)))
    north.batch(upload.row(versions[0]))
    north.batch(*map(upload.row, versions))
    take_all(register, north)
    timed(register, upload)
    (opening,) = register.held.to_open()
    assert opening.upload.size == 9
    (lie,) = register.held.lies()
    assert lie.who == "north"
    assert lie.text.startswith("Its batch 1 names 49 uploads besides those that it has signed")
    north.push(upload)
    take_all(register, north)
    assert len([*register.held.to_open()]) == 2


def test_two_uploads_of_one_number_are_their_bistros_doing(register, north):
    one, two = HandedIn(EVENT, 1), HandedIn(EVENT, 2)
    north.push(one)
    north.batch((*two.row()[:-1], one.number()))
    take_all(register, north)
    timed(register, one, two)
    assert opened_as(register) == [one.entry]
    assert [lie.who for lie in register.held.lies()] == ["north"]


def counting_rows(register, monkeypatch):
    """Count the rows that each question finds."""
    plain, found = register._db.rows, []

    def rows(*args):
        result = plain(*args)
        found.append(len(result))
        return result

    monkeypatch.setattr(register._db, "rows", rows)
    return found


@pytest.mark.parametrize("n_versions", [1, 40])
def test_memory_is_bounded_whatever_a_bistro_and_an_owner_list(
    register, north, monkeypatch, n_versions
):
    """Pieces are looked at once, for the upload that they are of: not for each version."""
    monkeypatch.setattr("datacollect.bistro.destination.holdings.PIECES_TOGETHER", 100)
    upload = HandedIn(EVENT)
    versions = [bytes([n]) * 1000 for n in range(n_versions)]
    for each in versions:
        pieces = [(upload.number(each), at, each[:1]) for at in range(1000)]
        north.segment(*pieces)
    north.batch(*map(upload.row, versions))
    take_all(register, north)
    timed(register, upload)
    found = counting_rows(register, monkeypatch)
    (opening,) = register.held.to_open()
    assert len(opening.parts) == 1000
    assert max(found) <= 100
    assert sum(found) < 1000 + 200


@pytest.mark.parametrize(("n_pieces", "is_fetched"), [(1024, True), (1025, False)])
def test_crumbs_of_a_byte_in_segments_of_their_own_are_not_fetched(
    register, north, n_pieces, is_fetched
):
    """A bistro and an owner would have anybody fetch as many files as the upload has bytes."""
    upload = HandedIn(EVENT, content=bytes(1500))
    crumbs = [(upload.entry, at, b"x") for at in range(n_pieces - 1)]
    rest = upload.sealed[n_pieces - 1 :]
    north.segment(*crumbs, (upload.entry, n_pieces - 1, rest))
    north.batch(upload.row())
    take_all(register, north, fetched=False)
    timed(register, upload)
    assert bool(register.held.to_fetch()) == is_fetched


def test_an_upload_of_more_pieces_than_any_honest_one_is_not_looked_at_further(
    register, north, monkeypatch
):
    monkeypatch.setattr("datacollect.bistro.destination.holdings.PIECES_TOGETHER", 10)
    monkeypatch.setattr("datacollect.bistro.destination.holdings.MOST_PIECES", 50)
    upload = HandedIn(EVENT)
    north.segment(*((upload.entry, at, b"x") for at in range(len(upload.sealed))))
    north.batch(upload.row())
    take_all(register, north)
    timed(register, upload)
    found = counting_rows(register, monkeypatch)
    assert [*register.held.to_open()] == []
    assert sum(found) < 50 + 30


def test_what_may_go_is_found_in_steps_that_grow_as_the_pieces_do(tmp_path):
    """Counted by SQLite's own machine, of what was refused, in pieces of four bytes."""
    steps = {}
    for n_bytes in (1000, 2000):
        register = Register(str(tmp_path / f"{n_bytes}"), EVENT)
        north = MadeBistro(EVENT, "north", tmp_path / f"north{n_bytes}")
        upload = HandedIn(EVENT, content=bytes(n_bytes))
        pieces = range(0, len(upload.sealed), 4)
        north.segment(*((upload.entry, at, upload.sealed[at : at + 4]) for at in pieces))
        north.batch(upload.row())
        take_all(register, north)
        timed(register, upload)
        assert opened_as(register, DOES_NOT_OPEN) == [upload.entry]
        register.logged(register.to_log())
        counted = [0]

        def count(counted=counted):
            counted[0] += 1
            return False

        register._db._open.set_progress_handler(count, 10)
        assert register.held.covered("north", DURING_S) == [0]
        register._db._open.set_progress_handler(None)
        steps[len(pieces)] = 10 * counted[0]
        register.close()
    (few, few_steps), (many, many_steps) = steps.items()
    assert many_steps / few_steps < 1.2 * many / few


def test_who_serves_junk_without_end_is_remembered_for_some_of_it(register, monkeypatch):
    monkeypatch.setattr("datacollect.bistro.destination.holdings.MOST_LIES", 3)
    for n in range(9):
        register.held.take_lie("north", f"junk {n}")
    register.held.take_lie("south", "junk")
    assert len(register.held.lies()) == 4


def test_many_batches_of_one_number_are_shown_by_two_of_them(register, north):
    first = north.batch(HandedIn(EVENT).row())
    for n in range(9):
        other = sign_batch(EVENT, "north", 0, bytes(32), n, first.rows, key_of("north"), 0)
        register.held.take_batch(other)
    (lie,) = register.held.lies()
    assert "9 different batches with the number 0" in lie.text
    assert lie.text.count("datacollect-batch/2") == 2


def test_what_a_bistro_shows_bit_by_bit_is_not_opened_without_end(register, north):
    upload = HandedIn(EVENT)
    north.segment((upload.entry, 0, bytes(len(upload.sealed))))
    north.batch(upload.row())
    take_all(register, north)
    timed(register, upload)
    n_tried = 0
    for _ in range(20):
        n_tried += len(opened_as(register, LOST))
        north.segment((upload.entry, 0, b"x"))
        take_all(register, north)
    assert n_tried == MOST_TRIES
    assert len(register.held.lies()) == 1


REVOKED_S = DEADLINE_S - 7


def revoked(register, ticket=7):
    """Return what such a ticket has pushed, which has no copy here."""
    register.take_revoked({ticket.to_bytes(16, "big").hex(): REVOKED_S})
    return HandedIn(EVENT, ticket=ticket)


def test_what_was_refused_for_its_revoked_ticket_is_tried_again_once_it_is_of_before(
    register, north
):
    """Logs that were silent prove lesser times by and by."""
    upload = revoked(register)
    north.push(upload)
    take_all(register, north)
    timed(register, upload, time_s=DEADLINE_S)
    assert opened_as(register, OTHER_TICKET) == [upload.entry]
    timed(register, upload, time_s=REVOKED_S + 1)
    assert [*register.held.to_open()] == []
    for _ in range(2):
        timed(register, upload, time_s=DEADLINE_S - 9)
        found = [*register.held.to_open()]
    assert [each.time_s for each in found] == [DEADLINE_S - 9]
    register.opened(found[0].upload, "")
    assert register.known(upload.entry).word == "collected"


def test_what_no_time_can_mend_keeps_no_segment(register, north):
    """Else any ticket holds as many segments as it has entries, until all is over."""
    register.take_revoked({(8).to_bytes(16, "big").hex(): REVOKED_S})
    # Of a ticket that was not revoked, of one that was revoked later than this, and of none.
    uploads = HandedIn(EVENT, ticket=7), HandedIn(EVENT, ticket=8), HandedIn(EVENT)
    for upload in uploads:
        north.push(upload)
    take_all(register, north)
    timed(register, *uploads, time_s=REVOKED_S)
    opened_as(register, OTHER_TICKET)
    register.logged(register.to_log())
    assert register.held.covered("north", EVENT.collect_until_s) == [0, 1, 2]
    register.held.drop_segments("north", [0, 1, 2])
    # Whoever proves lesser times has nothing fetched again that may be gone.
    timed(register, *uploads, time_s=REVOKED_S - 9)
    assert register.held.to_fetch() == {}


def test_what_is_of_a_revoked_ticket_keeps_its_segment_as_long_as_times_may_fall(register, north):
    upload = revoked(register)
    north.push(upload)
    take_all(register, north)
    timed(register, upload)
    opened_as(register, OTHER_TICKET)
    register.logged(register.to_log())
    assert register.held.covered("north", EVENT.collect_until_s) == []
    assert register.held.covered("north", EVENT.collect_until_s + 1) == [0]


def test_a_segment_that_might_go_is_asked_for_again_where_a_ticket_may_count(register, north):
    upload, other = revoked(register), HandedIn(EVENT)
    north.push(upload)
    north.push(other)
    take_all(register, north)
    timed(register, upload, other)
    opened_as(register, OTHER_TICKET)
    register.logged(register.to_log())
    assert register.held.covered("north", EVENT.collect_until_s + 1) == [0, 1]
    register.held.drop_segments("north", [0, 1])
    timed(register, upload, time_s=DEADLINE_S - 9)
    assert register.held.to_fetch() == {"north": {0}}
    assert register.held.covered("north", EVENT.collect_until_s + 1) == [1]


def test_who_shows_the_right_bytes_later_has_not_lied(register, north):
    """A push began with other bytes, of the same length; the segment of the second try is late."""
    upload = HandedIn(EVENT)
    north.segment((upload.entry, 0, bytes(len(upload.sealed))))
    north.batch(upload.row())
    take_all(register, north)
    timed(register, upload)
    assert opened_as(register, LOST) == [upload.entry]
    (lie,) = register.held.lies()
    assert lie.who == "north"
    assert upload.entry.hex() in lie.text
    north.segment((b"z" * 32, 0, b"another's"))
    take_all(register, north)
    assert [*register.held.to_open()] == []
    north.segment((upload.entry, 0, upload.sealed))
    take_all(register, north, fetched=False)
    assert register.held.lies() == []
    assert register.held.to_fetch() == {"north": {2}}
    fetch(register, north, 2)
    assert opened_as(register) == [upload.entry]


def test_a_segment_stays_while_its_bistro_shows_other_bytes_of_what_was_refused(
    register, north, south
):
    """It may show the right ones yet: sealed anew, they may be the only ones that open."""
    upload = HandedIn(EVENT)
    south.push(upload)
    take_all(register, south)
    timed(register, upload)
    assert opened_as(register, DOES_NOT_OPEN) == [upload.entry]
    register.logged(register.to_log())
    anew, _ = upload.seal_anew()
    north.segment((upload.number(anew), 0, bytes(len(anew))))
    north.batch(upload.row(anew))
    take_all(register, north)
    assert opened_as(register, LOST) == [upload.entry]
    assert register.held.covered("north", DURING_S) == []
    assert register.held.covered("south", DURING_S) == [0]


def test_what_does_not_open_may_come_sealed_anew_and_its_bistro_keeps_it_until_then(
    register, north
):
    upload = HandedIn(EVENT)
    north.push(upload)
    take_all(register, north)
    timed(register, upload)
    assert opened_as(register, DOES_NOT_OPEN) == [upload.entry]
    (refused,) = register.to_log()
    register.logged([refused])
    assert register.held.covered("north", DURING_S) == [0]
    # The other ciphertext lies there before its batch says so: its bistro keeps it itself, and goes
    # by no word on segments that is older than this batch.
    anew, _ = upload.seal_anew()
    north.segment((upload.number(anew), 0, anew))
    take_all(register, north)
    assert register.held.n_batches("north") == 1
    assert register.held.covered("north", DURING_S) == [0, 1]
    north.batch(upload.row(anew))
    take_all(register, north)
    assert register.held.n_batches("north") == 2
    assert register.held.covered("north", DURING_S) == [0]
    (opening,) = register.held.to_open()
    assert not opening.upload.is_committed
    register.opened(opening.upload, "")
    # An old verdict that is logged late is no word on the new one.
    register.logged([refused])
    (verdict,) = register.to_log()
    assert verdict.word == "collected"
    register.logged([verdict])
    assert register.held.covered("north", DURING_S) == [0, 1]


def opened_at(register, bistro, why=""):
    """Judge what a bistro shows of an entry, and nothing else."""
    for opening in [*register.held.to_open()]:
        if opening.upload.bistro == bistro:
            register.opened(opening.upload, why)


def test_what_a_bistro_says_was_sealed_anew_refuses_nobody_before_all_copies_were_seen(
    register, north, south
):
    upload = HandedIn(EVENT)
    south.segment((upload.number(b"junk"), 0, b"junk"))
    south.batch(upload.row(b"junk", bistro="south"))
    north.push(upload)
    take_all(register, north, south)
    timed(register, upload)
    opened_at(register, "south", DOES_NOT_OPEN)
    assert register.to_log() == []
    # Nor does it where the other one shows something else first.
    opened_at(register, "north", LOST)
    assert register.to_log() == []
    assert register.held.covered("south", DURING_S) == []
    north.segment((upload.entry, 0, upload.sealed))
    take_all(register, north)
    opened_at(register, "north")
    assert register.to_log() == [Verdict(EVENT.id, upload.entry, "collected")]
    assert register.held.lies() == []


def test_junk_that_a_bistro_reports_by_itself_refuses_nobody(register, north, south):
    """Somebody has committed and pushed nothing; north has the receipt, and no owner's key."""
    upload = HandedIn(EVENT)
    north.segment((upload.number(b"junk"), 0, b"junk"))
    row = upload.row(b"junk")
    north.batch((*row[:10], bytes(64), *row[11:]))
    take_all(register, north)
    timed(register, upload)
    assert [*register.held.to_open()] == []
    assert register.to_log() == []
    assert register.known(upload.entry) == Known(upload.entry)
    (lie,) = register.held.lies()
    assert lie.who == "north"
    assert lie.text.startswith("It reports entries that nobody handed in: 1 row of its batch 0")
    # Whoever is pushed to later is heard.
    south.push(upload)
    take_all(register, south)
    timed(register, upload)
    assert opened_as(register) == [upload.entry]
    assert register.to_log() == [Verdict(EVENT.id, upload.entry, "collected")]


def test_what_was_sealed_anew_is_refused_where_there_is_nothing_else(register, north):
    upload = HandedIn(EVENT)
    anew, _ = upload.seal_anew()
    north.segment((upload.number(anew), 0, anew))
    north.batch(upload.row(anew))
    take_all(register, north)
    timed(register, upload)
    opened_at(register, "north", OTHER_CONTENT)
    assert register.to_log() == [Verdict(EVENT.id, upload.entry, "refused", OTHER_CONTENT)]


def test_the_ciphertext_that_was_committed_to_decides_why_and_once(register, north, south):
    """A bistro's junk takes from nobody the right to seal anew what does not open."""
    upload = HandedIn(EVENT)
    south.segment((upload.number(b"junk"), 0, b"junk"))
    south.batch(upload.row(b"junk", bistro="south"))
    take_all(register, south)
    timed(register, upload)
    opened_at(register, "south", OTHER_CONTENT)
    (by_junk,) = register.to_log()
    assert by_junk.why == OTHER_CONTENT
    north.push(upload)
    take_all(register, north)
    opened_at(register, "north", DOES_NOT_OPEN)
    (by_committed,) = register.to_log()
    assert by_committed.why == DOES_NOT_OPEN
    register.logged([by_committed])
    south.push(upload)
    south.segment((upload.number(b"other"), 0, b"other"))
    south.batch(upload.row(b"other", bistro="south"))
    take_all(register, south)
    opened_at(register, "south", OTHER_CONTENT)
    assert register.to_log() == []
    assert register.known(upload.entry).why == DOES_NOT_OPEN


def test_a_second_refusal_never_takes_back_what_was_collected(register, north, south):
    upload = HandedIn(EVENT)
    north.push(upload)
    south.segment((upload.entry, 0, upload.sealed))
    take_all(register, north, south)
    timed(register, upload)
    (opening,) = register.held.to_open()
    register.opened(opening.upload, "")
    register.opened(opening.upload._replace(bistro="south"), OTHER_CONTENT)
    assert register.known(upload.entry).word == "collected"


def test_what_is_late_is_refused_unfetched_until_the_deadline_moves(place, north):
    upload = HandedIn(EVENT)
    north.push(upload)
    register = Register(place, EVENT)
    take_all(register, north, fetched=False)
    timed(register, upload, time_s=EVENT.latest_s + 1)
    assert register.held.to_fetch() == {}
    assert register.to_log() == [Verdict(EVENT.id, upload.entry, "refused", LATE)]
    assert register.counts() == (0, 1, 0, 1, 0, 0)
    # Whoever moves the deadline needs its data.
    register.logged(register.to_log())
    assert register.held.covered("north", EVENT.collect_until_s) == []
    assert register.held.covered("north", EVENT.collect_until_s + 1) == [0]
    register.close()
    register = Register(place, replace(EVENT, deadline_s=EVENT.deadline_s + 1))
    register.judge_times()
    assert register.to_log() == []
    assert register.held.to_fetch() == {"north": {0}}
    fetch(register, north, 0)
    assert opened_as(register) == [upload.entry]
    register.close()


def test_the_least_time_counts_whichever_log_proves_it_first(register, north):
    upload = HandedIn(EVENT)
    north.push(upload)
    take_all(register, north)
    timed(register, upload, time_s=EVENT.latest_s + 5)
    timed(register, upload, time_s=EVENT.latest_s)
    timed(register, upload, time_s=EVENT.latest_s + 9)
    assert register.known(upload.entry) == Known(upload.entry, EVENT.latest_s, ("north",))


def test_a_tickets_earlier_drafts_are_superseded_once(register, north):
    drafts = [HandedIn(EVENT, number, b"%d" % number, ticket=1) for number in range(3)]
    other = HandedIn(EVENT, 9, ticket=2)
    north.push(*drafts, other)
    take_all(register, north)
    for i, draft in enumerate(drafts):
        timed(register, draft, time_s=100 + i)
    timed(register, other, time_s=50)
    for opening in [*register.held.to_open()]:
        is_other = opening.upload.commitment.entry == other.entry
        register.opened(opening.upload, "", ticket="2" if is_other else "1")
    register.logged(register.to_log())
    assert register.supersede() == 2
    assert register.supersede() == 0
    expected = {
        Verdict(EVENT.id, draft.entry, "superseded", drafts[2].entry.hex()) for draft in drafts[:2]
    }
    assert {*register.to_log()} == expected
    assert register.counts() == (4, 0, 2, 0, 2, 0)


def test_a_forked_a_hidden_and_an_invented_batch_are_named_and_its_rows_count(register, north):
    one, two, three = (HandedIn(EVENT, number) for number in range(3))
    first = north.batch(one.row())
    forked = sign_batch(EVENT, "north", 0, bytes(32), 1, first.rows, key_of("north"))
    hidden = north.batch(two.row())
    invented = np.array([three.row()], first.rows.dtype)
    invented["salt"] = one.commitment.salt
    last = north.batch(three.row(), tuple(invented[0]))
    for batch in (last, first, forked):
        assert register.held.take_batch(batch)
    texts = [lie.text for lie in register.held.lies()]
    assert {lie.who for lie in register.held.lies()} == {"north"}
    assert len(texts) == 3
    (fork,) = [text for text in texts if "2 different batches with the number 0" in text]
    for batch in (first, forked):
        assert json.dumps(batch.note.data.decode()) in fork
    assert "It has signed batch 2, but shows no batch 1." in texts
    assert any("opening no commitment" in text for text in texts)
    assert {known.entry for known in register.incomplete()} == {one.entry, three.entry}
    register.held.take_batch(hidden)
    assert not any("shows no batch" in lie.text for lie in register.held.lies())


def test_an_index_that_lies_brings_nothing_to_open(register, north):
    upload = HandedIn(EVENT)
    north.segment((upload.entry, 5, upload.sealed))
    north.segment((b"z" * 32, 0, b"nobody's"))
    north.batch(upload.row())
    take_all(register, north)
    timed(register, upload)
    assert [*register.held.to_open()] == []
    assert register.held.covered("north", DURING_S) == [1]
    assert [*register.incomplete()] == [Known(upload.entry, DEADLINE_S, ("north",))]


def test_the_register_of_another_event_is_refused(place):
    Register(place, EVENT).close()
    with pytest.raises(ProblemError, match="belongs to event"):
        Register(place, collecting_event(name="Another"))


def test_a_register_goes_on_where_it_was(place, north):
    upload = HandedIn(EVENT)
    north.push(upload)
    register = Register(place, EVENT)
    take_all(register, north)
    timed(register, upload)
    register.close()
    register = Register(place, EVENT)
    take_all(register, north)
    assert opened_as(register) == [upload.entry]
    register.close()


def test_more_entries_than_one_page_are_all_opened(register, north, monkeypatch):
    monkeypatch.setattr("datacollect.bistro.destination.register.MOST_AT_ONCE", 2)
    uploads = [HandedIn(EVENT, number) for number in range(5)]
    north.push(*uploads)
    take_all(register, north)
    # All are asked for, also behind many of which no log knows.
    assert [*register.without_time()] == sorted(each.entry for each in uploads)
    timed(register, *uploads)
    assert sorted(opened_as(register)) == sorted(each.entry for each in uploads)


def test_what_is_not_here_is_listed_some_at_a_time_with_all_its_bistros(
    register, north, south, monkeypatch
):
    uploads = sorted((HandedIn(EVENT, n) for n in range(7)), key=lambda each: each.entry)
    collected, refused, late, *waiting = uploads
    north.push(*uploads)
    south.batch(
        *(each.row(bistro="south") for each in uploads[4:]),
        uploads[4].row(b"anew", bistro="south"),
    )
    take_all(register, north, south)
    timed(register, *uploads[:2], *uploads[3:6])
    timed(register, late, time_s=EVENT.latest_s + 1)
    for opening in [*register.held.to_open()]:
        reasons = {collected.entry: "", refused.entry: DOES_NOT_OPEN}
        if opening.upload.commitment.entry in reasons:
            register.opened(opening.upload, reasons[opening.upload.commitment.entry])
    monkeypatch.setattr("datacollect.bistro.destination.register.MOST_AT_ONCE", 2)
    plain, n_asked = register._db.rows, []

    def counting(*args):
        n_asked.append(args)
        return plain(*args)

    monkeypatch.setattr(register._db, "rows", counting)
    both = ("north", "south")
    assert [*register.incomplete()] == [
        Known(refused.entry, DEADLINE_S, ("north",), "refused", DOES_NOT_OPEN),
        Known(waiting[0].entry, DEADLINE_S, ("north",)),
        Known(waiting[1].entry, DEADLINE_S, both),
        Known(waiting[2].entry, DEADLINE_S, both),
        Known(waiting[3].entry, None, both),
    ]
    # Three pages, and one to see that there is no more.
    assert len(n_asked) == 4


def test_two_machines_take_the_same_batch_once(server, tmp_path):
    import psycopg

    with psycopg.connect(server, autocommit=True) as db:
        db.execute("DROP DATABASE IF EXISTS two WITH (FORCE)")
        db.execute("CREATE DATABASE two")
    place = server.replace("/postgres?", "/two?")
    first, second = Register(place, EVENT), Register(place, EVENT)
    upload = HandedIn(EVENT)
    batch = MadeBistro(EVENT, "north", tmp_path).batch(upload.row())
    assert first.held.take_batch(batch)
    assert not second.held.take_batch(batch)
    assert second.counts().waiting == 1
    first.close()
    second.close()


def test_a_database_that_is_not_there_is_named():
    with pytest.raises(StoreError, match="database fails"):
        Register("postgresql:///nothing?host=/nowhere", EVENT)


def test_without_psycopg_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ProblemError, match=r"needs psycopg: .* install .*psycopg"):
        Register("postgresql:///any", EVENT)


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[1:2]
from datacollect.bistro.formats.custody.batches import read_batch
from datacollect.bistro.formats.custody.segments import read_index
from datacollect.bistro.formats.custody.verdicts import Verdict
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.destination.register import Register
from datacollect.files import held_folder as folder

n_left = int(sys.argv[4])
plain = folder.Database.rows
many = folder.Database.many

def counting(call):
    def counted(*args):
        global n_left
        n_left -= 1
        if n_left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args)
    return counted

folder.Database.rows, folder.Database.many = counting(plain), counting(many)
event = read_event(Path(sys.argv[2], "event.toml").read_bytes())
register = Register(sys.argv[3], event)
north = Path(sys.argv[2], "north")
register.held.take_batch(read_batch((north / "batches/0000000000.batch").read_bytes(), event))
pieces = read_index((north / "segments/0000000000.index").read_bytes())
register.held.take_index("north", 0, pieces)
n_bytes = (north / "segments/0000000000.segment").stat().st_size
register.held.take_segment("north", 0, n_bytes)
register.take_times([(entry, 5) for entry in register.without_time()])
register.judge_times()
for opening in [*register.held.to_open()]:
    register.opened(opening.upload, "", ticket="1")
register.logged(register.to_log())
register.supersede()
register.logged(register.to_log())
assert register.held.covered("north", 0) == [0], register.held.covered("north", 0)
print(register.counts())
"""


@pytest.mark.slow
def test_killed_at_any_call_it_goes_on_to_the_same_end(tmp_path):
    """Each start is killed one call of the database later; the next one goes on in its folder."""
    data = event_file()
    (tmp_path / "event.toml").write_bytes(data)
    event = read_event(data)
    MadeBistro(event, "north", tmp_path / "north").push(
        HandedIn(event, 1, b"1", ticket=1), HandedIn(event, 2, b"2", ticket=1)
    )
    folder = str(tmp_path / "register")
    repository = str(Path(__file__).resolve().parents[3])
    for n_calls in range(1, 200, 3):
        words = [sys.executable, "-c", KILLED, repository, str(tmp_path), folder, str(n_calls)]
        done = run(words, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout.strip() == (
        "Counts(in_time=2, late=0, collected=1, refused=0, superseded=1, waiting=0)"
    )


# What was lost --------------------------------------------------------------------------------


def collected_with_draft(register, north):
    """Have two drafts of a ticket collected, of which the later counts; and one that is refused."""
    drafts = [HandedIn(EVENT, i, b"%d" % i, ticket=1) for i in (1, 2)]
    refused = HandedIn(EVENT, 3, b"3", ticket=2)
    north.push(*drafts)
    north.push(refused)
    take_all(register, north)
    for i, each in enumerate((*drafts, refused)):
        timed(register, each, time_s=DEADLINE_S - 10 + i)
    for found in [each.upload for each in register.held.to_open()]:
        is_refused = found.commitment.entry == refused.entry
        why = OTHER_CONTENT if is_refused else ""
        file = None if is_refused else found.commitment.entry.hex()
        register.opened(found, why, ticket="2" if is_refused else "1", file=file, n_bytes=1)
    register.logged(register.to_log())
    assert register.supersede() == 1
    register.logged(register.to_log())
    return (*drafts, refused)


def said_of(*uploads):
    first, second, refused = (each.entry for each in uploads)
    return {
        first: Verdict(EVENT.id, first, "superseded", second.hex()),
        second: Verdict(EVENT.id, second, "collected"),
        refused: Verdict(EVENT.id, refused, "refused", OTHER_CONTENT),
    }


def test_what_lies_here_is_not_forgotten(register, north):
    uploads = collected_with_draft(register, north)
    before = register.counts()
    assert register.losses.forget_absent(lambda *_: True, lambda *_: True) == 0
    assert register.counts() == before
    assert register.held.to_fetch() == {}
    # What may go is found again from what is logged.
    assert register.held.covered("north", DURING_S) == [0, 1]
    register.losses.take_said(said_of(*uploads).values())
    register.losses.judge_said(is_final=True)
    assert register.counts() == before
    assert register.losses.lost_since() == set()


def test_what_is_gone_is_fetched_again_and_comes_to_the_same_verdicts(register, north):
    uploads = collected_with_draft(register, north)
    before = register.counts()
    said = said_of(*uploads)
    assert register.losses.forget_absent(lambda *_: False, lambda *_: False) == 2
    register.losses.take_said(said.values())
    register.losses.take_said(said.values())
    # What was refused stands; of the others it is known that they were here.
    assert register.losses.lost_since() == {uploads[1].entry}
    assert register.held.covered("north", DURING_S) == [1]
    assert register.held.to_fetch() == {"north": {0}}
    fetch(register, north, 0)
    assert {*opened_as(register, ticket="1", file="a", n_bytes=1)} == {
        each.entry for each in uploads[:2]
    }
    assert {each.entry for each in register.to_log()} <= {*said}
    register.logged(register.to_log())
    assert register.supersede() == 1
    verdicts = register.to_log()
    assert verdicts == [said[uploads[0].entry]]
    register.logged(verdicts)
    assert register.counts() == before
    assert register.losses.lost_since() == set()
    assert register.held.covered("north", DURING_S) == [0, 1]


def test_what_was_said_stands_in_a_new_register_where_nothing_comes_again(place, register, north):
    """The segments are gone: batches alone name what was handed in."""
    uploads = [HandedIn(EVENT, i, b"%d" % i, ticket=1) for i in (1, 2)]
    refused = HandedIn(EVENT, 3, b"3", ticket=2)
    north.push(*uploads, refused)
    register.losses.take_said(said_of(*uploads, refused).values())
    take_all_batches(register, north)
    timed(register, *uploads, refused)
    register.losses.judge_said(is_final=False)
    assert register.known(refused.entry).why == OTHER_CONTENT
    assert register.to_log() == []
    # A draft was superseded by one that is not here: it may still come, and be collected.
    register.losses.judge_said(is_final=True)
    assert register.known(uploads[0].entry).word == ""
    assert register.losses.lost_since() == {uploads[1].entry}
    # Once that one is here, the other one is superseded still.
    north.segment((uploads[1].entry, 0, uploads[1].sealed))
    take_index(register, north, 1)
    fetch(register, north, 1)
    assert opened_as(register, ticket="1", file="a", n_bytes=1) == [uploads[1].entry]
    register.losses.judge_said(is_final=True)
    assert register.known(uploads[0].entry).word == "superseded"
    assert register.losses.lost_since() == set()


def take_all_batches(register, bistro):
    for path in sorted((bistro.folder / "batches").glob("*")):
        register.held.take_batch(read_batch(path.read_bytes(), EVENT))


def take_index(register, bistro, number):
    pieces = read_index((bistro.folder / index_name(number)).read_bytes())
    register.held.take_index(bistro.name, number, pieces)


def test_what_was_read_of_logs_is_kept_in_parts_and_replaced_whole(register, monkeypatch):
    monkeypatch.setattr("datacollect.bistro.destination.kept_logs.ROWS_TOGETHER", 2)
    assert register.logs.by_log() == {}
    # Some entries end with zeros.
    rows = np.array([(b"a" * 31, 5), (b"b", 6), (bytes(32), 7)], LOGGED)
    for log, n in [("one", 3), ("two", 0), ("two", 1), ("one", 2)]:
        register.logs.keep(log, KeptLog(10 * n, rows[:n]))
    found = register.logs.by_log()
    assert {log: each.until_s for log, each in found.items()} == {"one": 20, "two": 10}
    assert found["one"].rows.tolist() == rows[:2].tolist()
    assert found["two"].rows.tolist() == rows[:1].tolist()
