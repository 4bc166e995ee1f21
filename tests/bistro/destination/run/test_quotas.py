"""One quota over all logs: what of a ticket counts, whatever is pushed, hidden, repeated or killed.

The logs are as services show them, the destination reads them; who judges beside it is a few lines
of the rule alone.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances.bistro_folders import collecting_event
from instances.entry_times import EntryTimes
from instances.events import key_of, marked_by, owner_of, owners_signature, ticket_of
from instances.how_many import many

from datacollect.bistro.destination.holdings import Upload
from datacollect.bistro.destination.marking import MarkKeys
from datacollect.bistro.destination.opening import Opener
from datacollect.bistro.destination.register import Register
from datacollect.bistro.destination.run.destination_round import Destination
from datacollect.bistro.destination.run.log_table import LogTable, joined
from datacollect.bistro.destination.run.logged_entries import LoggedEntries
from datacollect.bistro.destination.run.quotas import Quotas
from datacollect.bistro.destination.run.standing import SETTLES_AFTER_S
from datacollect.bistro.formats.custody.batches import FIRST, ROW, row_of, sign_batch
from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    DOES_NOT_OPEN,
    NEVER_CAME,
    OTHER_CONTENT,
    REFUSED,
    SUPERSEDED,
    read_verdict,
)
from datacollect.bistro.formats.event.statements import push_statement
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.errors import TransferError

QUOTA = 2
EVENT = collecting_event(limits={"commitments_per_ticket": QUOTA})
KEY = key_of("verdicts")
TICKETS = {f"{n:032x}": ticket_of(EVENT, n).key.public for n in (1, 2)}
DURING_S, OVER_S = EVENT.latest_s + 100, EVENT.collect_until_s + SETTLES_AFTER_S + 1
SERVICES = ("a", "b", "c")
NAMES = tuple(each.name for each in EVENT.bistros)


class Logs:
    """What services show: some are silent, some show entries twice."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[int, bytes]]] = {name: [] for name in SERVICES}
        self.silent: set[str] = set()

    def table(self, event, now_s):
        if now_s <= event.latest_s:
            return joined(())
        shown = [self.of(name) for name in self.rows.keys() - self.silent]
        return joined(each.in_time(event.latest_s) for each in shown)

    def of(self, name):
        """Return what a service shows."""
        rows = self.rows[name]
        return LogTable(
            np.array([entry for _, entry in rows], "S32"),
            np.array([time_s for time_s, _ in rows], np.int64),
        )

    def unread(self, event):
        return tuple(sorted(self.silent))


class KeptLog:
    """A log of verdicts in memory: it has every entry once; killed at a call, if that is asked."""

    published_size = 0

    def __init__(self) -> None:
        self.entries: dict[bytes, None] = {}
        self.killed_after: int | None = None

    def record(self, entries):
        if self.killed_after is not None:
            self.killed_after -= 1
            if self.killed_after < 0:
                raise KilledError
        self.entries.update(dict.fromkeys(entries))
        return len(self.entries)


class KilledError(Exception):
    pass


@dataclass
class Draft:
    commitment: Commitment
    number: int
    ticket: str
    times_s: dict[str, int] = field(default_factory=dict)

    @property
    def entry(self) -> bytes:
        return self.commitment.entry

    @property
    def order(self) -> tuple[int, bytes]:
        return min(self.times_s.values()), self.entry


class World:
    """Two tickets, three services, a destination that is made anew at each round."""

    def __init__(self, folder, counts="last", never_came="another") -> None:
        self.event = replace(EVENT, counts=counts, never_came=never_came)
        self.folder, self.logs, self.log = folder, Logs(), KeptLog()
        # How the destination knows logs, by its register.
        self.reading = lambda _: self.logs
        self.drafts: list[Draft] = []
        self.pushed: dict[bytes, str] = {}
        self.last, self.n_batches = FIRST, 0
        # What was asked of bistros does not come whole; what their batches name is then not known.
        self.is_silent = False
        self.revoked_s: dict[str, int] = {}
        self.shown: set[bytes] = set()

    def commit(self, number, *places, by=None):
        """Commit a new draft of a ticket at services, each at a time; `by`: who marks it."""
        n = len(self.drafts)
        code = sha256(f"{n}".encode()).digest()
        made = Commitment(EVENT.id, n.to_bytes(32, "big"), 1, code, code, owner_of(f"{n}"))
        made = marked_by(EVENT, made, number if by is None else by)
        draft = Draft(made, n, f"{number:032x}")
        for service, time_s in places:
            self.repeat(draft, service, time_s)
        self.drafts.append(draft)
        return draft

    def repeat(self, draft, service, time_s):
        self.logs.rows[service].append((time_s, draft.entry))
        draft.times_s[service] = min(time_s, draft.times_s.get(service, time_s))

    def push(self, draft, why=""):
        """Have a bistro report it, and the destination open it."""
        code, key = draft.commitment.ciphertext_sha256, EVENT.bistros[0].key
        ticket = bytes.fromhex(draft.ticket)
        said = push_statement(EVENT.id, key, draft.entry, code, 1, ticket)
        signature = owners_signature(said, draft.commitment.owner)
        row = row_of(draft.commitment, 1, code, ticket, 0, signature, upload=self.n_batches + 1)
        batch = sign_batch(
            *(EVENT, "north", self.n_batches, self.last, 0), np.array([row], ROW), key_of("north")
        )
        self.n_batches, self.last = self.n_batches + 1, batch.digest
        with self.register() as register:
            register.held.take_batch(batch)
            register.take_times([(draft.entry, draft.order[0])])
            upload = Upload("north", 1, code, draft.commitment)
            register.opened(upload, why, draft.ticket)
        self.pushed[draft.entry] = why

    def register(self):
        return closing(Register(str(self.folder / "register"), self.event))

    def round(self, now_s, killed_after=None):
        """Do a round as a new start does; return whether it was killed in it."""
        self.log.killed_after = killed_after
        with self.register() as register:
            quotas = Quotas(
                self.event,
                self.reading(register),
                MarkKeys(EVENT, KEY),
                TICKETS,
                lambda since_s: not register.held.have_all_said(NAMES, since_s),
                lambda: self.shown,
                self.revoked_s,
                register.proved,
            )
            destination = Destination(
                *(self.event, KEY, register),
                Opener((), None, self.folder, self.folder / "into"),
                *(self.log, self.bring, EntryTimes(EVENT, lambda _: None), lambda _: None),
                lambda opener, openings: map(opener.open, openings),
                quotas,
            )
            try:
                destination.do_round(now_s)
            except KilledError:
                return True
        return False

    def bring(self, wanted):
        return () if self.is_silent else wanted.keys()

    def said(self):
        """Return the last verdict on each entry: its word, and why."""
        found = {}
        for data in self.log.entries:
            verdict = read_verdict(data, EVENT.id)
            found[verdict.entry] = (verdict.word, verdict.why)
        return found

    def counting(self):
        return {entry for entry, (word, _) in self.said().items() if word == COLLECTED}


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def four_drafts(world):
    """Two drafts at each of two services: more than the ticket is good for in all."""
    return [world.commit(1, (service, 10 + i)) for i, service in enumerate("aabb")]


@pytest.mark.parametrize("counts", ["last", "first", "all"])
@pytest.mark.parametrize("which", [(2,), (3,), (2, 3)])
def test_beyond_the_quota_nothing_counts_whatever_is_pushed_after_the_deadline(
    tmp_path, counts, which
):
    """The one that suits is chosen when the questions are known: it is collected, and no more."""
    world = World(tmp_path, counts)
    drafts = four_drafts(world)
    for number in which:
        world.push(drafts[number])
    world.round(DURING_S)
    # It is said at once that it came; what counts, once the others came or there is no time left.
    assert world.counting() == {drafts[n].entry for n in which}
    world.round(OVER_S)
    said = world.said()
    assert world.counting() == set()
    stands = drafts[0 if counts == "first" else 1].entry.hex()
    assert [said[drafts[n].entry] for n in which] == [(SUPERSEDED, stands)] * len(which)
    assert [said[each.entry] for each in drafts[:2]] == [(REFUSED, NEVER_CAME)] * 2


def test_among_those_that_it_is_good_for_the_last_that_came_counts(world):
    drafts = four_drafts(world)
    for draft in drafts:
        world.push(draft)
    world.round(DURING_S)
    # All that could come has come: nobody waits for the end.
    assert world.counting() == {drafts[1].entry}


@pytest.mark.parametrize(
    ("never_came", "counting"), [("another", True), ("none", False)], ids=["another", "none"]
)
def test_what_counts_where_the_last_draft_never_came_the_event_says(tmp_path, never_came, counting):
    world = World(tmp_path, never_came=never_came)
    first, second = (world.commit(1, ("a", 10 + i)) for i in range(2))
    world.push(first)
    world.round(DURING_S)
    assert world.counting() == {first.entry}
    world.round(OVER_S)
    assert world.said()[second.entry] == (REFUSED, NEVER_CAME)
    assert (first.entry in world.counting()) == counting


def test_entries_by_times_that_repeat_or_lie_spend_nothing_more(world):
    """A service repeats what it was sent, and what another one was; the quota stays the same."""
    first = world.commit(1, ("a", 10))
    second = world.commit(1, ("b", 20))
    for draft in (first, second):
        for service in "ac":
            for time_s in (30, 40, 40):
                world.repeat(draft, service, time_s)
    for draft in (first, second):
        world.push(draft)
    world.round(DURING_S)
    assert world.counting() == {second.entry}


def test_what_strangers_put_into_logs_costs_the_owner_nothing(world):
    """Marks at random, another ticket's, and the owner's own ones behind other beginnings."""
    first, second = (world.commit(1, ("c", 100 + i)) for i in range(2))
    other = world.commit(2, ("a", 5))
    forged = [
        sha256(b"%d" % i).digest()[:24] + mark
        for i in range(50)
        for mark in (first.entry[24:], sha256(b"x%d" % i).digest()[:8])
    ]
    world.logs.rows["a"] += [(1, each) for each in forged]
    for draft in (first, second, other):
        world.push(draft)
    world.round(DURING_S)
    assert world.counting() == {second.entry, other.entry}


def test_a_service_that_is_silent_keeps_nobody_waiting_beyond_the_end(world):
    drafts = four_drafts(world)
    world.logs.silent = {"c"}
    for draft in drafts:
        world.push(draft)
    world.round(DURING_S)
    # It may know of an earlier draft: all are said to have come, and none to count instead.
    assert world.counting() == {each.entry for each in drafts}
    world.round(OVER_S)
    assert world.counting() == {drafts[1].entry}


def test_a_service_that_is_silent_after_a_restart_takes_back_nothing(world):
    """It was read once; what it has shown then is in the register, and no verdict is another."""
    drafts = four_drafts(world)
    names = dict(zip(EVENT.services, "ab", strict=True))

    def read(service, event):
        name = names[service]
        if name in world.logs.silent:
            raise TransferError("does not answer")
        return world.logs.of(name)

    world.reading = lambda register: LoggedEntries(read, lambda _: None, register.logs)
    world.push(drafts[2])
    world.round(OVER_S)
    said = world.said()
    assert said[drafts[2].entry] == (SUPERSEDED, drafts[1].entry.hex())
    world.logs.silent = {"a"}
    world.round(OVER_S + 1)
    # Nor does one that is read anew for a later deadline, and shows less.
    world.logs.silent, world.logs.rows["a"] = set(), []
    world.event = replace(world.event, deadline_s=EVENT.deadline_s + 1)
    world.round(OVER_S + 2)
    assert world.said() == said


def test_what_a_silent_service_had_proved_before_counts(world):
    """The register knows the times by which it collected, also where nobody shows them any more."""
    hidden = [world.commit(1, ("c", 1 + i)) for i in range(2)]
    shown = [world.commit(1, ("a", 10 + i)) for i in range(2)]
    for draft in (*hidden, *shown):
        world.push(draft)
    world.logs.silent = {"c"}
    world.round(OVER_S)
    assert world.counting() == {hidden[1].entry}


def test_what_was_refused_keeps_its_place_when_its_service_falls_silent(world):
    """Its time was proved before, so it is one of those that may count, read or not."""
    drafts = [world.commit(1, ("c", 1 + i)) for i in range(3)]
    for draft, why in zip(drafts, ("", OTHER_CONTENT, ""), strict=True):
        world.push(draft, why)
    world.logs.silent = {"c"}
    world.round(OVER_S)
    assert world.counting() == {drafts[0].entry}


def test_a_draft_by_a_silent_service_stands_beside_the_only_one_that_is_shown(tmp_path):
    """The logs that are read name one entry of the ticket; another one came."""
    world = World(tmp_path, never_came="none")
    came, shown = world.commit(1, ("c", 10)), world.commit(1, ("a", 11))
    world.push(came)
    world.logs.silent = {"c"}
    world.round(OVER_S)
    assert world.said() == {
        shown.entry: (REFUSED, NEVER_CAME),
        came.entry: (SUPERSEDED, shown.entry.hex()),
    }


def test_once_nothing_more_can_come_nobody_waits_for_what_is_still_fetched(world, monkeypatch):
    """A bistro and an owner may have segments of a byte each fetched for days."""
    drafts = four_drafts(world)
    for draft in drafts:
        world.push(draft)
    monkeypatch.setattr(Destination, "_fetch", lambda *_: True)
    world.round(DURING_S)
    assert world.counting() == {each.entry for each in drafts}
    world.round(OVER_S)
    assert world.counting() == {drafts[1].entry}


def test_one_tickets_drafts_touch_no_others(world):
    four_drafts(world)
    other = world.commit(2, ("b", 11))
    world.push(other)
    world.round(DURING_S)
    world.round(OVER_S)
    assert world.said()[other.entry] == (COLLECTED, "")


def test_nothing_is_said_never_to_have_come_that_a_bistro_may_hold(world):
    draft, shown = world.commit(1, ("a", 10)), world.commit(2, ("a", 10))
    world.shown = {shown.entry}
    only_said_once_all_bistros_have_spoken(world, draft)


def only_said_once_all_bistros_have_spoken(world, draft):
    world.is_silent = True
    world.round(OVER_S)
    assert world.said() == {}
    world.is_silent = False
    world.round(OVER_S)
    assert world.said() == {draft.entry: (REFUSED, NEVER_CAME)}


def test_what_came_by_the_logs_own_word_is_never_said_to_have_never_come(world):
    """The register is lost when there is no time left, and the batches come a round later."""
    drafts = [world.commit(number, ("a", 10)) for number in (1, 2)]
    world.push(drafts[0])
    world.round(DURING_S)
    assert world.counting() == {drafts[0].entry}
    rmtree(world.folder / "register")
    with world.register() as register:
        register.losses.take_said(read_verdict(data, EVENT.id) for data in world.log.entries)
    world.n_batches, world.last = 0, FIRST
    world.round(OVER_S)
    # Of the other one the log has said nothing: no batch names it, and all batches came.
    assert world.said()[drafts[1].entry] == (REFUSED, NEVER_CAME)
    assert world.counting() == {drafts[0].entry}
    world.push(drafts[0])
    world.round(OVER_S + 1)
    assert world.counting() == {drafts[0].entry}
    assert len(world.log.entries) == 2


@pytest.mark.parametrize("whole_s", [DURING_S, EVENT.collect_until_s + SETTLES_AFTER_S])
def test_what_came_whole_before_the_end_is_asked_for_once_more(world, whole_s):
    draft = world.commit(1, ("a", 10))
    world.round(whole_s)
    only_said_once_all_bistros_have_spoken(world, draft)


def test_a_bistro_that_came_whole_after_the_end_may_be_away_since(world):
    """The other one comes later: what was heard of the first is in the register."""
    draft = world.commit(1, ("a", 10))
    for away in NAMES:
        world.bring = lambda wanted, away=away: wanted.keys() - {away}
        world.round(OVER_S)
    assert world.said() == {draft.entry: (REFUSED, NEVER_CAME)}


@pytest.mark.parametrize("counts", ["last", "first"])
def test_who_has_stolen_a_ticket_spoils_nothing_after_it_was_revoked(tmp_path, counts):
    """By another ticket he logs an entry with the stolen one's mark, and never sends it."""
    world = World(tmp_path, counts, never_came="none")
    before = world.commit(1, ("a", 10))
    # As if a log had published the revocation before the owner's other draft stood there.
    after = world.commit(1, ("b", 20))
    world.push(before)
    world.revoked_s = {before.ticket: 15}
    world.round(OVER_S)
    assert world.counting() == {before.entry}
    assert world.said()[after.entry] == (REFUSED, NEVER_CAME)


def test_a_revocation_that_is_heard_of_late_counts_from_its_own_time_on(tmp_path):
    world = World(tmp_path, never_came="none")
    draft, later = (world.commit(1, ("a", time_s)) for time_s in (10, 20))
    world.push(draft)
    world.round(OVER_S)
    assert world.said()[draft.entry] == (SUPERSEDED, later.entry.hex())
    # What stood there by that very second is the ticket's.
    world.revoked_s = {draft.ticket: 20}
    world.round(OVER_S)
    assert world.counting() == set()
    world.revoked_s = {draft.ticket: 19}
    world.round(OVER_S)
    assert world.counting() == {draft.entry}


def test_what_never_came_comes_no_more(world):
    """Else who knows what counts could still choose: what is brought afterwards changes nothing."""
    draft, later = world.commit(1, ("a", 10)), world.commit(1, ("a", 11))
    world.push(draft)
    world.round(OVER_S)
    before = world.said()
    assert before[later.entry] == (REFUSED, NEVER_CAME)
    world.push(later)
    with world.register() as register:
        assert [*register.held.to_open()] == []
        assert register.known(later.entry).why == NEVER_CAME
    world.round(OVER_S)
    assert world.said() == before


def test_what_does_not_open_is_waited_for_until_the_end(world):
    """It may come sealed anew."""
    first, second = (world.commit(1, ("a", 10 + i)) for i in range(2))
    third = world.commit(1, ("b", 12))
    world.push(second, DOES_NOT_OPEN)
    world.push(first, DOES_NOT_OPEN)
    world.push(third)
    world.round(DURING_S)
    assert third.entry in world.counting()
    world.round(OVER_S)
    assert world.said()[third.entry] == (SUPERSEDED, second.entry.hex())


def test_who_marks_by_another_ticket_has_drafts_of_that_ticket(world):
    """Two people put their tickets together, and have two quotas: each its own, and no third."""
    drafts = [world.commit(1, ("a", 10 + i), by=2) for i in range(3)]
    for draft in drafts:
        draft.ticket = f"{2:032x}"
        world.push(draft)
    world.round(DURING_S)
    assert world.counting() == {drafts[1].entry}


# What comes may come anyhow -------------------------------------------------------------------

TIMES_S = [*range(1, 8), EVENT.latest_s, EVENT.latest_s + 1]


@st.composite
def courses(draw):
    """Draw drafts of two tickets, what becomes of each, who is silent, and where it is killed."""
    places = st.lists(
        st.tuples(st.sampled_from(SERVICES), st.sampled_from(TIMES_S)), min_size=1, max_size=3
    )
    drafts = draw(
        st.lists(st.tuples(st.sampled_from([1, 1, 1, 2]), places), min_size=1, max_size=7)
    )
    fates = [draw(st.sampled_from(["before", "after", "never", OTHER_CONTENT])) for _ in drafts]
    silent = draw(st.sets(st.sampled_from(SERVICES), max_size=2))
    returns = draw(st.booleans())
    kills = draw(st.lists(st.integers(0, 4), max_size=4))
    order = draw(st.permutations(range(len(drafts))))
    return drafts, fates, silent, returns, kills, order


def counting_by_the_rule(world, hidden):
    """Return which entries count, by the words of the rule, of all that is not hidden."""
    latest_s, counts = EVENT.latest_s, world.event.counts
    found: set[bytes] = set()
    for ticket in TICKETS:
        own = sorted(
            (min(times), each.entry)
            for each in world.drafts
            if each.ticket == ticket
            and (times := [t for s, t in each.times_s.items() if t <= latest_s and s not in hidden])
        )
        good = [entry for _, entry in own][:QUOTA]
        came = [entry for entry in good if world.pushed.get(entry) == ""]
        absent = [entry for entry in good if entry not in world.pushed]
        pool = came + (absent if world.event.never_came == "none" and counts != "all" else [])
        pool.sort(key=good.index)
        if counts == "all":
            found |= {*came}
        elif pool and (chosen := pool[0 if counts == "first" else -1]) in came:
            found.add(chosen)
    return found


@pytest.mark.slow
@settings(max_examples=many(150), deadline=None)
@given(
    courses(),
    st.sampled_from(["last", "first", "all"]),
    st.sampled_from(["another", "none"]),
)
def test_whatever_comes_when_the_rule_decides(course, counts, never_came):
    drafts, fates, silent, returns, kills, order = course
    with TemporaryDirectory() as folder:
        world = World(Path(folder), counts, never_came)
        made = [world.commit(number, *places) for number, places in drafts]
        is_late = {each.entry for each in made if each.order[0] > EVENT.latest_s}
        kills = iter([*kills, *[None] * 99])
        world.round(EVENT.latest_s - 1)

        def bring(when, now_s):
            for number in order:
                draft, fate = made[number], fates[number]
                if draft.entry not in is_late and fate in (when, OTHER_CONTENT):
                    if draft.entry not in world.pushed:
                        world.push(draft, fate if fate == OTHER_CONTENT else "")
                    while world.round(now_s, next(kills)):
                        pass

        bring("before", 0)
        world.logs.silent = {*silent}
        world.round(DURING_S)
        bring("after", DURING_S)
        if returns:
            world.logs.silent = set()
        while world.round(OVER_S, next(kills)):
            pass
        # Of what was pushed the register knows the time, whoever is silent.
        hidden = world.logs.silent
        for each in made:
            if each.entry in world.pushed and {*each.times_s} <= hidden:
                each.times_s["by the register"] = min(each.times_s.values())
            elif each.entry in world.pushed:
                each.times_s["by the register"] = each.order[0]
        assert world.counting() == counting_by_the_rule(world, hidden)
        before = {**world.log.entries}
        world.round(OVER_S + 1)
        assert world.log.entries == before
