"""A service's core, driven by hand: durable before it promises, kept before a witness sees it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from instances.events import event_of, key_of, ticket_of
from instances.log_store import LogStore

from datacollect.bistro.formats.custody.verdicts import Verdict
from datacollect.bistro.formats.event.amendments import sign_amendment
from datacollect.bistro.formats.event.statements import commit_statement
from datacollect.bistro.formats.event.tickets import Shown
from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint, cosigned_times, log_key
from datacollect.bistro.formats.log.tiles import Tile, bundle_of, entries_of
from datacollect.bistro.formats.log.witnessing import AddCheckpoint
from datacollect.bistro.formats.receipt.counted_time import proved_time, time_in
from datacollect.bistro.log_service import core, messages, requests
from datacollect.bistro.log_service.core import ServiceCore
from datacollect.bistro.log_service.messages import (
    Acknowledge,
    AskWitness,
    Publish,
    Refuse,
    Store,
    StoreHead,
    Warn,
)
from datacollect.bistro.log_service.proving import proof_of
from datacollect.bistro.now import Now
from datacollect.bistro.witness.core import WitnessCore
from datacollect.errors import ProblemError

EVENT = event_of()
ORGANISER = key_of("organiser")
A, B, C = (letter * 32 for letter in (b"a", b"b", b"c"))


TICKET = ticket_of(EVENT)


def signed(event, *entries: bytes, number: int = 1, log: int = 0) -> Shown:
    """Return what a ticket shows that hands entries in to one of the event's logs."""
    ticket = ticket_of(event, number)
    said = commit_statement(event.id, event.services[log].log.key, entries)
    return Shown(ticket.token, ticket.key.sign(said))


class Bench:
    """A service, its folder, its witnesses; what it asks for is done when the test says so."""

    def __init__(self, event=EVENT, store: LogStore | None = None, witnesses=None, start_s=0.0):
        self.event = event
        self.at_s = start_s
        self.store = store or LogStore()
        self.core = ServiceCore(event, key_of("s0"), self.store.kept(), self.store)
        log = event.services[0].log
        self.witnesses = witnesses or [
            WitnessCore(f"w{i}.example", key_of(f"w{i}.example"), [log], {}, 0, self.now)
            for i in range(4)
        ]
        self.alive = {0, 1, 2, 3}
        self.actions = []
        self.n_requests = 0
        self.tell(messages.Ticked(self.now))

    # How far the service's clock is behind those of the witnesses.
    behind_s = 0.0

    @property
    def now(self) -> Now:
        return Now(self.at_s, EVENT.deadline_s - 1000 + self.at_s - self.behind_s)

    @property
    def right_now(self) -> Now:
        return Now(self.at_s, self.now.unix_s + self.behind_s)

    def tell(self, event) -> None:
        self.actions += self.core.handle(event)

    def wait(self, by_s: float) -> None:
        self.at_s += by_s
        self.tell(messages.Ticked(self.now))

    def take(self, *kinds) -> list:
        """Return the actions of some kinds, and take them from the list."""
        found = [action for action in self.actions if isinstance(action, kinds)]
        self.actions = [action for action in self.actions if not isinstance(action, kinds)]
        return found

    def do(self, *kinds) -> None:
        """Do what was asked for until nothing of some kinds is left."""
        while found := self.take(*kinds):
            for action in found:
                self.do_one(action)

    def do_one(self, action) -> None:
        if isinstance(action, Store):
            self.store.store(action)
            self.tell(messages.Stored(self.now, action.first + len(action.rows)))
        elif isinstance(action, StoreHead):
            self.store.store_head(action)
            self.tell(messages.HeadStored(self.now, action.size))
        elif isinstance(action, Publish):
            self.store.publish(action)
            self.tell(messages.Published(self.now, action.size))
        elif isinstance(action, AskWitness):
            status, body = None, b""
            if action.witness in self.alive:
                decision = self.witnesses[action.witness].add_checkpoint(
                    action.body, self.right_now
                )
                status, body = getattr(decision, "status", 200), decision.answer
            self.tell(messages.WitnessAnswered(self.now, action.witness, status, body))

    def do_all(self) -> None:
        self.do(Store, StoreHead, AskWitness, Publish)

    def commit(self, *entries: bytes, number: int = 1, address: str = "a") -> int:
        """Hand entries in with a ticket, by its number."""
        return self.show(entries, signed(self.event, *entries, number=number), address)

    def show(self, entries: tuple[bytes, ...], shown: Shown | None, address: str = "a") -> int:
        self.n_requests += 1
        self.tell(requests.CommitAsked(self.now, self.n_requests, entries, shown, address))
        return self.n_requests

    def amend(self, note: bytes) -> None:
        self.n_requests += 1
        self.tell(requests.AmendAsked(self.now, self.n_requests, note, "a"))


def started(**more) -> Bench:
    bench = Bench(**more)
    bench.do_all()
    assert bench.core.is_ready
    return bench


def test_an_entry_is_acknowledged_only_once_it_is_on_the_disk():
    bench = started()
    request = bench.commit(A)
    assert bench.take(Acknowledge) == []
    (store,) = bench.take(Store)
    assert (store.first, [row.entry for row in store.rows]) == (0, [A])
    bench.do_one(store)
    (answer,) = bench.take(Acknowledge)
    assert answer.request == request
    assert answer.words[0].index == 0
    assert answer.words[0].is_by(EVENT.services[0].log, A)
    assert answer.words[0].time_s == int(bench.now.unix_s)


def test_what_comes_while_the_disk_is_busy_goes_together():
    bench = started()
    bench.commit(A)
    (first,) = bench.take(Store)
    bench.commit(B, number=2)
    bench.commit(C, number=3)
    assert bench.take(Store) == []
    bench.do_one(first)
    # Not at once either: groups are 20 ms apart.
    assert bench.take(Store) == []
    assert bench.core.wake_s == pytest.approx(bench.at_s + 0.02)
    bench.wait(0.02)
    (second,) = bench.take(Store)
    assert (second.first, [row.entry for row in second.rows]) == (1, [B, C])
    assert second.rows[0].ticket == (2).to_bytes(16, "big").hex()


def test_who_comes_again_gets_the_same_index_and_no_second_entry():
    bench = started()
    bench.commit(A, B)
    bench.commit(B)  # while it is on its way
    bench.do(Store)
    bench.commit(B, A)
    assert [[word.index for word in answer.words] for answer in bench.take(Acknowledge)] == [
        [0, 1],
        [1],
        [1, 0],
    ]
    assert bench.store.entries(0, 9) == [A, B]


def test_a_checkpoint_and_its_tiles_are_kept_before_a_witness_sees_them():
    bench = started()
    bench.commit(A, B)
    bench.do(Store)
    bench.wait(1.0)
    assert bench.take(AskWitness) == []
    (head,) = bench.take(StoreHead)
    signed = SignedCheckpoint.parse(head.note)
    assert signed.checkpoint.size == head.size == 2
    assert signed.is_of(EVENT.services[0].log)
    tiles = dict(head.tiles)
    assert tiles[Tile(-1, 0, 2)] == bundle_of([A, B])
    assert len(tiles[Tile(0, 0, 2)]) == 64
    bench.do_one(head)
    asked = bench.take(AskWitness)
    assert [each.witness for each in asked] == [0, 1, 2, 3]
    assert asked[0].url == "https://w0.example/add-checkpoint"
    assert AddCheckpoint.parse(asked[0].body).signed == signed


def test_a_quorum_publishes_and_later_cosignatures_are_added():
    bench = started()
    bench.commit(A)
    bench.do(Store)
    bench.wait(1.0)
    bench.do(StoreHead)
    asked = bench.take(AskWitness)
    for each in asked[:2]:
        bench.do_one(each)
    assert bench.take(Publish) == []
    bench.do_one(asked[2])
    (three,) = bench.take(Publish)
    assert len(cosigned_times(SignedCheckpoint.parse(three.note).note, EVENT.witness_keys)) == 3
    bench.do_one(three)
    bench.do_one(asked[3])
    (four,) = bench.take(Publish)
    assert len(cosigned_times(SignedCheckpoint.parse(four.note).note, EVENT.witness_keys)) == 4


def test_nothing_changes_nothing_is_signed():
    bench = started()
    bench.wait(100.0)
    assert bench.actions == []
    assert bench.core.wake_s is None


def test_a_proof_comes_from_the_first_checkpoint_that_holds_an_entry():
    bench = started()
    for i, entry in enumerate((A, B)):
        bench.commit(entry)
        bench.do(Store)
        assert proof_of(i, bench.store) is None
        bench.wait(1.5)
        bench.do_all()
    proof = proof_of(0, bench.store)
    assert proof.signed.checkpoint.size == 1
    assert proved_time(proof, A, EVENT).time_s == int(EVENT.deadline_s - 1000 + 1.5)
    assert proved_time(proof_of(1, bench.store), B, EVENT).time_s == EVENT.deadline_s - 1000 + 3


def test_one_dead_witness_changes_nothing_and_two_stop_the_time():
    bench = started()
    bench.alive = {0, 1, 2}
    bench.commit(A)
    bench.wait(1.0)
    bench.do_all()
    assert bench.core.published_size == 1
    bench.alive = {0, 1}
    bench.commit(B)
    bench.wait(1.0)
    bench.do(Store, StoreHead, Publish)
    for each in bench.take(AskWitness):
        bench.do_one(each)
    assert bench.core.published_size == 1
    # It asks again, later and later, and goes on where they come back.
    assert bench.at_s < bench.core.wake_s <= bench.at_s + 1.0
    bench.alive = {0, 1, 2, 3}
    bench.wait(8.0)
    bench.do_all()
    assert bench.core.published_size == 2


def test_a_second_checkpoint_waits_while_the_first_may_still_be_signed():
    """Slow witnesses that are asked for two would give a quorum to none."""
    bench = started()
    bench.commit(A)
    bench.do(Store)
    bench.wait(1.0)
    bench.do(StoreHead)
    asked = bench.take(AskWitness)
    bench.commit(B)
    bench.do(Store)
    bench.wait(2.0)
    assert bench.take(StoreHead) == []
    for each in asked:
        bench.do_one(each)
    bench.do(Publish)
    bench.do_all()
    assert bench.core.published_size == 2


class Ahead:
    """A witness whose clock has been ahead of all others' since it began."""

    def __init__(self, i: int, by_s: float) -> None:
        name, self._by_s = f"w{i}.example", by_s
        log = EVENT.services[0].log
        start = self._later(Now(0.0, EVENT.deadline_s - 1000))
        self._core = WitnessCore(name, key_of(name), [log], {}, 0, start)

    def _later(self, now: Now) -> Now:
        return Now(now.monotonic_s, now.unix_s + self._by_s)

    def add_checkpoint(self, body: bytes, now: Now):
        return self._core.add_checkpoint(body, self._later(now))


def headed(bench, entry: bytes) -> None:
    bench.commit(entry)
    bench.do(Store)
    bench.wait(1.0)
    bench.do_all()


def published_s(bench, size: int) -> int:
    note = SignedCheckpoint.parse(bench.store.published[size], "it").note
    return sorted(cosigned_times(note, bench.event.witness_keys).values())[bench.event.quorum - 1]


def test_a_service_whose_clock_is_behind_says_so_and_publishes_all_the_same():
    """All witnesses are a minute ahead of it: more than may post-date together."""
    bench = started()
    bench.behind_s = 60.0
    headed(bench, A)
    assert bench.core.published_size == 1
    assert published_s(bench, 1) == int(bench.right_now.unix_s)
    said = [each.text for each in bench.take(Warn)]
    assert "the clock here is 60 s behind those of witnesses; set it" in said
    headed(bench, B)
    assert bench.core.published_size == 2
    # It is said once, and that it is over.
    assert not any("clock here" in each.text for each in bench.take(Warn))
    bench.behind_s = 0.0
    headed(bench, C)
    assert [each.text for each in bench.take(Warn)] == [
        "the clock here agrees with those of witnesses again"
    ]


def test_one_witness_that_is_ahead_makes_nobody_late_and_counts_once_it_is_due():
    """With a third one dead its cosignature is needed, and is not lost while others come."""
    bench = started()
    bench.witnesses[2] = Ahead(2, 60.0)
    bench.alive = {0, 1, 2}
    headed(bench, A)
    assert bench.core.published_size == 0
    (warned, *_) = (each.text for each in bench.take(Warn) if "w2" in each.text)
    assert warned.startswith("witness w2.example is 60 s ahead of the clock here")
    first_s = bench.now.unix_s + 60
    for _ in range(70):
        if bench.core.published_size < 1:
            bench.commit(B)
            bench.wait(1.0)
            bench.do_all()
    assert published_s(bench, 1) == int(first_s)
    assert first_s - 6 <= bench.now.unix_s <= first_s + 4


def test_nobody_waits_for_a_witness_that_is_a_year_ahead():
    bench = started()
    bench.witnesses[2] = Ahead(2, 365 * 86_400.0)
    bench.alive = {0, 1, 2}
    headed(bench, A)
    headed(bench, B)
    bench.alive = {0, 1, 2, 3}
    bench.wait(10.0)
    bench.do_all()
    assert bench.core.published_size == 2
    assert published_s(bench, 2) == int(bench.now.unix_s)


def test_cosignatures_from_the_future_do_not_count_yet():
    bench = started()
    bench.commit(A)
    bench.do(Store)
    bench.wait(1.0)
    bench.do(StoreHead)
    asked = bench.take(AskWitness)
    log = [EVENT.services[0].log]
    for which, by_s, n_warned in ((0, 6, 1), (1, 5, 0)):
        ahead = Now(bench.at_s, bench.now.unix_s + by_s)
        name = f"w{which}.example"
        late = WitnessCore(name, key_of(name), log, {}, 0, ahead)
        # It has forgotten the empty log that it signed.
        body = AddCheckpoint(0, (), AddCheckpoint.parse(asked[which].body).signed).data
        answer = late.add_checkpoint(body, ahead).answer
        bench.tell(messages.WitnessAnswered(bench.now, which, 200, answer))
        assert len(bench.take(Warn)) == n_warned


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (200, b"noise", "answers something that is no signature"),
        (200, b"\xff", "answers something that is no signature"),
        (200, "— w0.example AAAAAAA=\n".encode(), "has not signed what it was asked for"),
        (409, b"many\n", "answers 409 without a size"),
        (404, b"no such log\x1b[31m", r"answers 404: no such log\x1b[31m"),
        (None, b"", "does not answer"),
    ],
)
def test_odd_answers_are_said_and_do_no_harm(status, body, why):
    bench = started()
    bench.commit(A)
    bench.do(Store)
    bench.wait(1.0)
    bench.do(StoreHead)
    asked = bench.take(AskWitness)
    bench.tell(messages.WitnessAnswered(bench.now, 0, status, body))
    (warned,) = bench.take(Warn)
    assert why in warned.text
    for each in asked[1:]:
        bench.do_one(each)
    bench.do_all()
    assert bench.core.published_size == 1


def test_nothing_is_taken_before_witnesses_have_told_what_they_signed():
    """3 of 4 are enough: of them two have signed whatever was published, one of whom may lie."""
    bench = Bench()
    bench.do(StoreHead)
    asked = bench.take(AskWitness)
    bench.commit(A)
    assert bench.take(Refuse)[0].status == 503
    for each in asked[:2]:
        bench.do_one(each)
    assert not bench.core.is_ready
    bench.do_one(asked[2])
    assert bench.core.is_ready


def test_one_witness_that_claims_to_know_more_is_not_believed_and_two_are():
    bench = started()
    bench.commit(A)
    bench.do(Store)
    bench.wait(1.0)
    bench.do(StoreHead)
    asked = bench.take(AskWitness)
    bench.tell(messages.WitnessAnswered(bench.now, 0, 409, b"1000\n"))
    assert "1000 entries of this log, and its folder holds 1; one" in bench.take(Warn)[0].text
    for each in asked[1:]:
        bench.do_one(each)
    bench.do_all()
    assert bench.core.published_size == 1
    bench.commit(B)
    bench.do(Store)
    bench.wait(1.0)
    bench.do(StoreHead)
    bench.tell(messages.WitnessAnswered(bench.now, 1, 409, b"3\n"))
    assert "entries 2 to 2 are missing" in bench.core.missing


def test_a_witness_that_names_one_size_after_the_other_is_left_in_peace():
    bench = started()
    bench.commit(A, B)
    bench.do(Store)
    bench.wait(1.0)
    bench.do(StoreHead)
    bench.take(AskWitness)
    n_asked = 0
    for size in (1, 2, 1, 2, 1):
        bench.tell(messages.WitnessAnswered(bench.now, 0, 409, f"{size}\n".encode()))
        n_asked += len(bench.take(AskWitness))
    assert n_asked == 1


def test_a_log_restored_from_an_old_copy_takes_and_signs_nothing():
    bench = started()
    old = replace(bench.store, rows=[], indices={}, tiles={}, by_ticket={}, published={})
    bench.commit(A, B, C)
    bench.wait(1.0)
    bench.do_all()
    restored = Bench(store=old, witnesses=bench.witnesses, start_s=bench.at_s)
    restored.do_all()
    assert not restored.core.is_ready
    assert "has signed 3 entries of this log, and its folder holds 0: entries 0 to 2" in (
        restored.core.missing
    )
    restored.commit(A)
    (refused,) = restored.take(Refuse)
    assert (refused.status, "entries 0 to 2 are missing" in refused.text) == (503, True)
    restored.wait(100.0)
    assert restored.take(Store, StoreHead, AskWitness) == []


@pytest.mark.parametrize("n_entries", [1, 2])
def test_a_log_that_runs_twice_stops_where_witnesses_have_signed_the_other(n_entries):
    """Of one size, or shorter and no beginning of it: neither can be told from its size alone."""
    bench = started()
    copy = replace(bench.store, rows=[], indices={}, tiles={}, by_ticket={}, published={})
    other = Bench(store=copy, witnesses=bench.witnesses, start_s=bench.at_s)
    other.do_all()
    bench.commit(C)
    bench.wait(1.0)
    bench.do_all()
    other.commit(*[A, B][:n_entries])
    other.do(Store)
    other.wait(1.0)
    other.do(StoreHead)
    while not other.core.missing and other.at_s < 60:
        other.do_all()
        other.wait(1.0)
    assert "signed another log of 1 entries in this one's name" in other.core.missing
    assert "Two copies of it run" in other.core.missing
    other.commit(b"d" * 32)
    assert other.take(Refuse)[0].status == 503
    # Whoever was first goes on.
    bench.commit(b"e" * 32)
    bench.wait(1.0)
    bench.do_all()
    assert bench.core.published_size == 2


@pytest.mark.parametrize(("status", "body"), [(409, b"0\n"), (422, b"no proof\n")])
def test_one_witness_that_says_it_signed_another_log_stops_nothing(status, body):
    bench = started()
    bench.commit(A)
    bench.do(Store)
    bench.wait(1.0)
    bench.do(StoreHead)
    asked = bench.take(AskWitness)
    bench.tell(messages.WitnessAnswered(bench.now, 0, status, body))
    (warned,) = bench.take(Warn)
    assert "another log of 0 entries" in warned.text
    for each in asked[1:]:
        bench.do_one(each)
    bench.do_all()
    assert bench.core.published_size == 1


def test_a_service_goes_on_where_its_folder_has_left_it():
    """Stopped with an entry kept that no checkpoint holds; nothing is signed twice or lost."""
    entries = [i.to_bytes(32, "big") for i in range(300)]
    event = event_of(limits={"commitments_per_ticket": 1000})
    bench = started(event=event)
    bench.commit(*entries)
    bench.do(Store)
    bench.wait(1.0)
    bench.do_all()
    bench.commit(A, number=2)
    bench.do(Store)
    again = Bench(event, bench.store, bench.witnesses, bench.at_s)
    published = bench.store.published[300]
    again.do_all()
    again.wait(1.0)
    again.do_all()
    assert again.core.published_size == 301
    # Times that were published stay.
    times = cosigned_times(SignedCheckpoint.parse(published).note, EVENT.witness_keys)
    kept = SignedCheckpoint.parse(again.store.published[300]).note
    assert times.items() <= cosigned_times(kept, EVENT.witness_keys).items()
    for index in (0, 255, 256, 299, 300):
        entry = [*entries, A][index]
        assert proved_time(proof_of(index, again.store), entry, event).time_s is not None
    assert entries_of(again.store.tiles[-1, 0], Tile(-1, 0)) == entries[:256]
    assert entries_of(again.store.tiles[-1, 1], Tile(-1, 1, 45)) == [*entries[256:], A]


def test_a_damaged_folder_is_refused():
    bench = started()
    bench.commit(A, B)
    bench.wait(1.0)
    bench.do_all()
    bench.store.tiles[0, 0] = bytes(64)
    with pytest.raises(ProblemError, match="its checkpoint and its tiles contradict each other"):
        ServiceCore(EVENT, key_of("s0"), bench.store.kept(), bench.store)
    with pytest.raises(
        ProblemError, match="key must be the private key of one of the event's services"
    ):
        ServiceCore(EVENT, key_of("w0.example"), LogStore().kept(), LogStore())


ELEVEN = tuple(bytes([i]) * 32 for i in range(11))


@pytest.mark.parametrize(
    ("entries", "shown", "status", "why"),
    [
        ((), signed(EVENT), 400, "1 to 1000 different entries of 32 bytes"),
        ((b"short",), signed(EVENT, b"short"), 400, "1 to 1000 different entries of 32 bytes"),
        ((A, A), signed(EVENT, A, A), 400, "1 to 1000 different entries of 32 bytes"),
        ((A,), None, 403, "a ticket is needed"),
        ((A,), Shown("noise", bytes(64)), 403, "this is not a token"),
        ((A,), signed(event_of(name="another"), A), 403, "for another event"),
        (ELEVEN, signed(EVENT, *ELEVEN), 403, "is good for 10 commitments, 0 were"),
    ],
)
def test_what_is_not_taken_is_said(entries, shown, status, why):
    bench = started()
    bench.show(entries, shown)
    (refused,) = bench.take(Refuse)
    assert refused.status == status
    assert why in refused.text
    assert bench.take(Store) == []


@pytest.mark.parametrize(
    ("entries", "shown"),
    [
        pytest.param((A,), Shown(TICKET.token), id="its token alone"),
        pytest.param((A,), signed(EVENT, A, log=1), id="for another log"),
        pytest.param((A,), signed(EVENT, B), id="for another entry"),
        pytest.param((A, B), signed(EVENT, B, A), id="in another order"),
        pytest.param((A,), signed(EVENT, A, B), id="for more"),
        pytest.param((A, B), signed(EVENT, A), id="for less"),
        pytest.param(
            (A,), Shown(TICKET.token, signed(EVENT, A, number=2).signature), id="by another ticket"
        ),
    ],
)
def test_what_a_ticket_has_not_signed_for_this_log_spends_nothing_of_it(entries, shown):
    bench = started()
    for _ in range(100):
        bench.show(entries, shown, "thief")
    assert {
        (each.status, "signature must be the ticket's" in each.text) for each in bench.take(Refuse)
    } == {(403, True)}
    # All that a ticket may do at once, and all of its quota.
    for _ in range(50):
        bench.commit(*ELEVEN[:10])
    assert bench.take(Refuse) == []


def test_repeated_to_its_log_a_signature_changes_nothing():
    bench = started()
    for address in ("owner", "thief"):
        bench.show((A, B), signed(EVENT, A, B), address)
        bench.do(Store)
        (answer,) = bench.take(Acknowledge)
        assert [word.index for word in answer.words] == [0, 1]
    bench.wait(1.0)
    bench.commit(*ELEVEN[:8])
    bench.commit(C)
    assert ["10 were made with it, got 1 more" in each.text for each in bench.take(Refuse)] == [
        True
    ]


def test_who_hammers_with_a_stolen_token_is_told_to_go_and_its_owner_is_served():
    """600 at once are an address's share; neighbours that sign are no strangers."""
    bench = started()
    stolen = Shown(TICKET.token, signed(EVENT, A, log=1).signature)
    for _ in range(601):
        bench.show((A,), stolen, "campus")
    refused = bench.take(Refuse)
    assert [each.status for each in refused] == [403] * 600 + [429]
    bench.commit(A, address="campus")
    bench.commit(B, address="home")
    assert bench.take(Refuse) == []


def test_a_quota_counts_what_is_on_its_way_and_what_was_before_a_start():
    bench = started()
    for i in range(9):
        bench.commit(bytes([i]) * 32)
    bench.do_all()
    bench.wait(1.0)
    bench.do_all()
    again = started(store=bench.store, witnesses=bench.witnesses, start_s=bench.at_s)
    again.commit(A)
    again.commit(B)
    (refused,) = again.take(Refuse)
    assert "10 commitments, 10 were made with it, got 1 more" in refused.text
    # What is there already costs nothing.
    again.commit(bytes(32))
    assert [answer.words[0].index for answer in again.take(Acknowledge)] == [0]


@pytest.mark.slow
def test_ten_thousand_drafts_of_one_person_are_taken_and_not_one_more():
    bench = started(event=event_of(limits={"commitments_per_ticket": 10_000}))
    drafts = [n.to_bytes(32, "big") for n in range(10_001)]
    for start in range(0, 10_000, 1000):
        bench.commit(*drafts[start : start + 1000])
        bench.wait(0.1)
        bench.do_all()
    words = [word for answer in bench.take(Acknowledge) for word in answer.words]
    assert [word.index for word in words] == list(range(10_000))
    bench.commit(drafts[-1])
    (refused,) = bench.take(Refuse)
    assert (refused.status, "10000 were made with it, got 1 more" in refused.text) == (403, True)
    bench.wait(1.0)
    bench.do_all()
    proof = proof_of(9999, bench.store)
    assert proof is not None
    assert proof.includes(drafts[9999])


def test_an_event_is_open_from_its_first_second_to_its_last():
    bench = started(event=event_of(opens="2027-04-15T23:43:20-04:00"))
    bench.at_s = 0.9
    bench.commit(A)
    assert "the event opens at Thu 2027-04-15 23:43:20" in bench.take(Refuse)[0].text
    bench.at_s = 1.0
    bench.commit(A)
    assert bench.take(Refuse) == []
    bench.at_s += bench.event.collect_until_s - bench.now.unix_s
    bench.commit(B)
    assert [refused.status for refused in bench.take(Refuse)] == [410]


def test_too_many_are_told_when_to_come_again():
    bench = started()
    for _ in range(61):
        bench.commit(A)
    (refused,) = bench.take(Refuse)
    assert (refused.status, refused.retry_after_s) == (429, 0.5)
    bench.wait(0.5)
    bench.commit(A)
    assert bench.take(Refuse) == []


@pytest.mark.slow
def test_a_campus_behind_one_address_is_served_while_a_stranger_there_is_not():
    """Tickets that count cost an address nothing; 600 that do not are its share."""
    bench = started()
    for i in range(1, 701):
        bench.commit(i.to_bytes(32, "big"), number=i, address="campus")
    assert bench.take(Refuse) == []
    for _ in range(600):
        bench.show((A,), Shown("forged", bytes(64)), "campus")
    assert {refused.status for refused in bench.take(Refuse)} == {403}
    bench.show((A,), Shown("forged", bytes(64)), "campus")
    assert [refused.status for refused in bench.take(Refuse)] == [429]
    # Whose ticket is known is served all the same.
    bench.commit(B, number=699, address="campus")
    assert bench.take(Refuse) == []


def test_anybody_may_hand_in_at_an_open_event():
    bench = started(event=event_of(admission="open"))
    bench.show((A,), None)
    bench.do(Store)
    assert bench.store.rows[0].ticket is None
    assert len(bench.take(Acknowledge)) == 1


def test_at_an_open_event_each_entry_counts_for_its_address():
    """600 at once; more together may come, and are waited for afterwards: 20 a second."""
    bench = started(event=event_of(admission="open"))
    bench.show(tuple(i.to_bytes(32, "big") for i in range(700)), None)
    assert bench.take(Refuse) == []
    bench.show((A,), None)
    assert [(each.status, each.retry_after_s) for each in bench.take(Refuse)] == [(429, 0.05)]
    bench.wait(5.0)
    bench.show((A,), None)
    assert [each.status for each in bench.take(Refuse)] == [429]
    bench.wait(0.06)
    bench.show((A,), None)
    assert bench.take(Refuse) == []


def test_who_asks_again_gets_what_was_signed(monkeypatch):
    bench = started()
    bench.commit(A, B)
    bench.do(Store)
    (first,) = bench.take(Acknowledge)
    monkeypatch.setattr(core, "acknowledge", None)
    bench.wait(30.0)
    bench.commit(B, A)
    (again,) = bench.take(Acknowledge)
    assert again.words == first.words[::-1]


@pytest.mark.parametrize("start_s", [0.0, 1000.0 + 3600.0])
def test_an_amendment_is_an_entry_that_all_can_read(start_s):
    """Before the deadline, and an hour after it."""
    bench = started(start_s=start_s)
    later = {"deadline": "2027-04-16T23:59:59-04:00"}
    note = sign_amendment(EVENT, later, 1, ORGANISER)
    bench.amend(note)
    bench.wait(1.0)
    bench.do_all()
    (answer,) = bench.take(Acknowledge)
    assert answer.words[0].is_by(EVENT.services[0].log, note)
    assert bench.store.entries(0, 1) == [note]
    assert entries_of(bench.store.tiles[-1, 0], Tile(-1, 0, 1)) == [note]
    assert proved_time(proof_of(0, bench.store), note, EVENT).time_s is not None
    assert bench.core.event.deadline_s == EVENT.deadline_s + 86_400
    # Also after another start; and handed in again it is the same entry.
    again = started(store=bench.store, witnesses=bench.witnesses, start_s=bench.at_s)
    assert again.core.event.deadline_s == EVENT.deadline_s + 86_400
    again.amend(note)
    assert again.take(Acknowledge)[0].words[0].index == 0


def test_amendments_that_do_not_fit_are_refused():
    bench = started()
    note = sign_amendment(EVENT, {"deadline": "2027-04-16T23:59:59-04:00"}, 2, ORGANISER)
    for odd, why in (
        (note, "number must be 1, got 2"),
        (note.replace(b"number = 2", b"number = 1"), "must be signed by the organiser"),
        (b"noise", "must be a text, an empty line"),
    ):
        bench.amend(odd)
        (refused,) = bench.take(Refuse)
        assert (refused.status, why in refused.text) == (400, True)
    assert bench.take(Store) == []


def test_a_revoked_ticket_is_refused_from_the_amendment_on():
    from hashlib import sha256

    bench = started()
    bench.commit(A)
    revoked = sha256(TICKET.token.encode()).hexdigest()
    bench.amend(sign_amendment(EVENT, {"revoked": [revoked]}, 1, ORGANISER))
    bench.commit(B)
    (refused,) = bench.take(Refuse)
    assert "the ticket is revoked" in refused.text


def test_an_event_that_was_cancelled_takes_nothing_more_and_no_amendment_after_a_restart_either():
    bench = started()
    bench.commit(A)
    note = sign_amendment(EVENT, {"cancelled": "the exam is moved"}, 1, ORGANISER)
    bench.amend(note)
    bench.wait(1.0)
    bench.do_all()
    again = started(store=bench.store, witnesses=bench.witnesses, start_s=bench.at_s)
    later = sign_amendment(EVENT, {"deadline": "2027-04-16T23:59:59-04:00"}, 2, ORGANISER)
    for each in (bench, again):
        each.commit(B)
        each.amend(later)
        refused = [answer for answer in each.take(Refuse) if answer.status in (400, 410)]
        assert [answer.status for answer in refused] == [410, 400]
        assert refused[0].text == "the event was cancelled: the exam is moved"
        assert "can no longer be changed" in refused[1].text


VERDICTS_EVENT = event_of(
    verdicts={"log": log_key("d.example/0123456789abcdef", key_of("verdicts").public).text}
)
# Longer than any commitment, and no amendment.
WORDS = tuple(
    Verdict(VERDICTS_EVENT.id, entry, word).data
    for entry, word in ((A, "collected"), (B, "refused: is late"))
)


class VerdictsBench(Bench):
    """The log of verdicts, which its owner alone writes into."""

    def __init__(self, store=None):
        event = VERDICTS_EVENT
        self.event, self.at_s, self.store = event, 0.0, store or LogStore()
        self.core = ServiceCore(event, key_of("verdicts"), self.store.kept(), self.store)
        self.witnesses = [
            WitnessCore(f"w{i}.example", key_of(f"w{i}.example"), [event.verdicts], {}, 0, self.now)
            for i in range(4)
        ]
        self.alive, self.actions, self.n_requests = {0, 1, 2, 3}, [], 0
        self.tell(messages.Ticked(self.now))

    @property
    def now(self) -> Now:
        # Verdicts come after the event is over, too.
        return Now(self.at_s, EVENT.collect_until_s + 1000 + self.at_s)

    def record(self, *entries: bytes) -> None:
        self.n_requests += 1
        self.tell(messages.RecordAsked(self.now, self.n_requests, entries))


def test_the_log_of_verdicts_takes_its_owners_words_and_proves_them():
    bench = VerdictsBench()
    bench.do_all()
    bench.record(*WORDS)
    bench.do(Store)
    (answer,) = bench.take(Acknowledge)
    assert [word.index for word in answer.words] == [0, 1]
    bench.wait(1.0)
    bench.do_all()
    for index, data in enumerate(WORDS):
        proof = proof_of(index, bench.store)
        found = time_in(VERDICTS_EVENT.verdicts, proof, data, VERDICTS_EVENT)
        assert found.time_s is not None
        # A word of the destination is no time of a commitment.
        assert proved_time(proof, data, VERDICTS_EVENT).time_s is None


def test_a_verdict_that_is_handed_in_again_stands_where_it_stood():
    bench = VerdictsBench()
    bench.do_all()
    bench.record(*WORDS)
    bench.record(WORDS[1])
    bench.do(Store)
    assert [len(each.words) for each in bench.take(Acknowledge)] == [2, 1]
    assert len(bench.store.rows) == 2


def test_the_log_of_verdicts_goes_on_where_it_was():
    bench = VerdictsBench()
    bench.do_all()
    bench.record(*WORDS)
    bench.do(Store)
    bench.wait(1.0)
    bench.do_all()
    again = VerdictsBench(bench.store)
    again.witnesses = bench.witnesses
    again.do_all()
    assert again.core.is_ready
    again.record(WORDS[0])
    (answer,) = again.take(Acknowledge)
    assert answer.words[0].index == 0


def test_nobody_else_writes_into_the_log_of_verdicts():
    bench = VerdictsBench()
    bench.do_all()
    bench.commit(A)
    bench.amend(b"anything")
    refused = bench.take(Refuse)
    assert [each.status for each in refused] == [403, 403]
    assert bench.store.rows == []
