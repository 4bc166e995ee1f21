"""What is said of drafts, in whichever order they come: it fits as it is read, and ends right."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances.bistro_folders import collecting_event
from instances.entry_times import EntryTimes
from instances.events import key_of, owner_of, owners_signature
from instances.how_many import many

from datacollect.bistro.destination.counting import Draft, superseded
from datacollect.bistro.destination.holdings import Upload
from datacollect.bistro.destination.opening import Opener
from datacollect.bistro.destination.register import Register
from datacollect.bistro.destination.run import destination_round
from datacollect.bistro.destination.run.destination_round import Destination
from datacollect.bistro.formats.custody.batches import ROW, row_of, sign_batch
from datacollect.bistro.formats.custody.verdicts import COLLECTED, SUPERSEDED, read_verdict
from datacollect.bistro.formats.event.statements import push_statement
from datacollect.bistro.formats.log.entry import Commitment

EVENT = collecting_event()


class FlakyLog:
    """A log in memory: it has every entry once, and takes only so many requests."""

    published_size = 0

    def __init__(self) -> None:
        self.entries: dict[bytes, None] = {}
        self.n_left = 0

    def record(self, entries):
        if self.n_left == 0:
            return None
        self.n_left -= 1
        self.entries.update(dict.fromkeys(entries))
        return len(self.entries)


def row_of_upload(upload, number):
    commitment, key = upload.commitment, EVENT.bistros[0].key
    said = push_statement(EVENT.id, key, commitment.entry, upload.sha256, 1, bytes(16))
    signature = owners_signature(said, commitment.owner)
    return row_of(commitment, 1, upload.sha256, bytes(16), 0, signature, upload=number)


class Drafts:
    """Drafts that a destination may collect, one after the other."""

    def __init__(self, made, counts, folder) -> None:
        self.event = replace(EVENT, counts=counts)
        self.uploads, self.drafts = [], []
        for number, (time_s, content, ticket) in enumerate(made):
            code = sha256(content.encode()).digest()
            salt = number.to_bytes(32, "big")
            commitment = Commitment(EVENT.id, salt, 1, code, code, owner_of(f"{number}"))
            self.uploads.append(Upload("north", 1, code, commitment))
            self.drafts.append(Draft(time_s, commitment.entry, ticket, code))
        rows = [row_of_upload(each, i + 1) for i, each in enumerate(self.uploads)]
        batch = sign_batch(*(EVENT, "north", 0, bytes(32), 0), np.array(rows, ROW), key_of("north"))
        self.log = FlakyLog()
        self.register = Register(str(folder / "register"), self.event)
        self.register.held.take_batch(batch)
        self.destination = Destination(
            *(self.event, key_of("verdicts"), self.register),
            Opener((), None, folder, folder / "into"),
            *(self.log, lambda _: (), EntryTimes(EVENT, lambda _: None), lambda _: None),
            lambda opener, openings: map(opener.open, openings),
        )

    def collect(self, number):
        draft = self.drafts[number]
        self.register.take_times([(draft.entry, draft.time_s)])
        self.register.opened(self.uploads[number], "", draft.ticket)

    def do_round(self, n_logged):
        """Do a round whose log takes so many requests, each of two verdicts at most."""
        self.log.n_left = n_logged
        self.destination.do_round(EVENT.latest_s + 1)

    def last(self):
        """Return the last verdict on each, having read them in their order."""
        last = {}
        for data in self.log.entries:
            verdict = read_verdict(data, EVENT.id)
            if verdict.word == SUPERSEDED:
                by = last[bytes.fromhex(verdict.why)]
                assert by.word == COLLECTED, "by one of which something else was said"
            last[verdict.entry] = verdict
        return last

    def judge(self):
        """What is said last is what the register holds, and leads to the drafts that count."""
        self.judge_log()
        last, instead = self.last(), superseded(self.drafts, self.event.counts)
        for draft in self.drafts:
            assert self.end_of(draft.entry, last) == instead.get(draft.entry, draft.entry)

    def judge_log(self):
        """What is said last is what the register holds, and leads to a draft that counts."""
        last = self.last()
        assert len(last) == len(self.drafts)
        for draft in self.drafts:
            verdict = last[draft.entry]
            known = self.register.known(draft.entry)
            assert (known.word, known.why) == (verdict.word, verdict.why)
            assert last[self.end_of(draft.entry, last)].word == COLLECTED

    def end_of(self, entry, last):
        for _ in self.drafts:  # as many steps as there are at most without a circle
            if last[entry].word == SUPERSEDED:
                entry = bytes.fromhex(last[entry].why)
        return entry


# What a ticket is, lies inside the content.
TICKETS = {"a": "1", "b": "1", "c": "1", "d": "2"}


@st.composite
def arrivals(draw):
    is_open = draw(st.booleans())
    made = [
        (time_s, content, None if is_open else TICKETS[content])
        for time_s, content in draw(
            st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abcd")), min_size=1, max_size=7)
        )
    ]
    order = draw(st.permutations(range(len(made))))
    return made, [(number, draw(st.integers(0, 4))) for number in order]


@pytest.fixture(autouse=True)
def small_requests(monkeypatch):
    monkeypatch.setattr(destination_round, "MOST_LOGGED_AT_ONCE", 2)


@pytest.mark.slow
@settings(max_examples=many(300))
@given(arrivals(), st.sampled_from(["last", "first", "all"]))
def test_whatever_the_order_in_which_drafts_come_the_same_ones_count(arrivals, counts):
    made, steps = arrivals
    with TemporaryDirectory() as folder:
        drafts = Drafts(made, counts, Path(folder))
        with closing(drafts.register):
            for number, n_logged in steps:
                drafts.collect(number)
                drafts.do_round(n_logged)
                drafts.last()
            drafts.do_round(-1)
            drafts.judge()


@pytest.mark.slow
@settings(max_examples=many(200))
@given(
    arrivals(),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(0, 4)), max_size=8),
    st.sampled_from(["last", "first", "all"]),
)
def test_times_that_are_proved_to_be_less_afterwards_lead_in_no_circle(arrivals, less, counts):
    made, steps = arrivals
    with TemporaryDirectory() as folder:
        drafts = Drafts(made, counts, Path(folder))
        with closing(drafts.register):
            for number, n_logged in steps:
                drafts.collect(number)
                drafts.do_round(n_logged)
            for number, time_s, n_logged in less:
                entry = drafts.drafts[number % len(made)].entry
                drafts.register.take_times([(entry, time_s)])
                drafts.do_round(n_logged)
                drafts.last()
            drafts.do_round(-1)
            drafts.judge_log()


def test_a_verdict_that_would_come_back_is_left_out(tmp_path):
    """A service that was away proves less for the second draft, and then for the first one."""
    drafts = Drafts([(10, "a", "1"), (20, "b", "1")], "last", tmp_path)
    first, second = (each.entry for each in drafts.drafts)
    with closing(drafts.register):
        drafts.collect(0)
        drafts.collect(1)
        drafts.do_round(-1)
        assert drafts.last()[first].why == second.hex()
        for entry, time_s in ((second, 5), (first, 3)):
            drafts.register.take_times([(entry, time_s)])
            drafts.do_round(-1)
        drafts.judge_log()
        assert {each.word for each in drafts.last().values()} == {COLLECTED}


def test_a_draft_counts_again_once_the_later_one_turns_out_to_be_a_copy(tmp_path):
    """The second content was committed to before the first: its later entry is a copy.

    Its first entry comes last, by whoever has kept it back, when the copy has superseded the other.
    """
    made = [(10, "a", "1"), (20, "b", "1"), (5, "b", "1")]
    drafts = Drafts(made, "last", tmp_path)
    first, copy, kept_back = (each.entry for each in drafts.drafts)
    with closing(drafts.register):
        drafts.collect(0)
        drafts.collect(1)
        drafts.do_round(-1)
        assert drafts.last()[first].why == copy.hex()
        drafts.collect(2)
        drafts.do_round(-1)
        last = drafts.last()
        assert (last[first].word, last[first].why) == (COLLECTED, copy.hex())
        assert [(last[each].word, last[each].why) for each in (copy, kept_back)] == [
            (SUPERSEDED, first.hex())
        ] * 2
        drafts.judge()


def test_a_copy_of_an_old_draft_that_was_lost_takes_the_place_of_no_newer_one(tmp_path):
    """A bistro has reported the first draft and lost it; somebody has its ciphertext."""
    drafts = Drafts([(5, "a", "1"), (20, "b", "1"), (30, "a", "1")], "last", tmp_path)
    lost, newer, copy = drafts.drafts
    with closing(drafts.register):
        drafts.register.take_times([(lost.entry, lost.time_s)])
        drafts.collect(1)
        drafts.collect(2)
        drafts.do_round(-1)
        last = drafts.last()
        assert (last[newer.entry].word, last[copy.entry].why) == (COLLECTED, newer.entry.hex())


def test_whoever_starts_again_knows_whose_least_time_matters(tmp_path):
    made = [(5, "a", "1"), (20, "b", "1"), (7, "d", "2"), (8, "c", None)]
    drafts = Drafts(made, "last", tmp_path)
    first, second, _, waiting = (each.entry for each in drafts.drafts)
    with closing(drafts.register):
        for number in range(3):
            drafts.collect(number)
        drafts.register.take_times([(waiting, 8)])
        assert {*drafts.register.unsure()} == {first, second, waiting}


def test_nothing_is_superseded_by_what_is_not_said_to_be_collected_yet(tmp_path):
    """The log takes two verdicts, and no more; meanwhile a later draft comes."""
    drafts = Drafts([(i, f"{i}", "1") for i in range(5)], "last", tmp_path)
    with closing(drafts.register):
        for number in range(4):
            drafts.collect(number)
        drafts.do_round(1)
        assert {each.word for each in drafts.last().values()} == {COLLECTED}
        drafts.collect(4)
        for _ in range(20):
            drafts.do_round(1)
            drafts.last()
        drafts.judge()
