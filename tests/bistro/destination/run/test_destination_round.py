"""A destination's rounds against what bistros serve, with its log and witnesses in the process."""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from instances.bistro_folders import FIRST_IDENTITY, HandedIn, MadeBistro, event_file
from instances.entry_times import EntryTimes
from instances.events import DEADLINE_S, key_of, ticket_of

from datacollect.bistro.destination.keys import read_tickets, ticket_keys
from datacollect.bistro.destination.opening import Opener, OpeningPool
from datacollect.bistro.destination.register import Register
from datacollect.bistro.destination.run import destination_round, event_run
from datacollect.bistro.destination.run.destination_round import Destination
from datacollect.bistro.formats.custody.batches import MOST_BATCH_BYTES, ROW, read_batch, sign_batch
from datacollect.bistro.formats.custody.segments import batch_name, index_name, segment_name
from datacollect.bistro.formats.custody.verdicts import Verdict, read_covered, read_verdict
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.notes import Note
from datacollect.bistro.formats.receipt.counted_time import time_in
from datacollect.bistro.http.config import Listening, ServiceConfig
from datacollect.bistro.log_service.proving import proof_of
from datacollect.bistro.log_service.server.verdict_log import VerdictLog
from datacollect.bistro.log_service.store import LogStore
from datacollect.bistro.now import Now
from datacollect.bistro.witness.core import WitnessCore
from datacollect.errors import ProblemError, StoreError
from datacollect.files.held_folder import Held
from datacollect.net.keys import write_private_key

DATA = event_file()
EVENT = read_event(DATA)
KEY = key_of("verdicts")


class Witnesses:
    """Witnesses in this process, some of whom may be away."""

    def __init__(self) -> None:
        self.away: set[int] = set()
        self._cores = [
            WitnessCore(name, key_of(name), [EVENT.verdicts], {}, 0, self._now())
            for name in (f"w{i}.example" for i in range(4))
        ]

    def _now(self) -> Now:
        return Now(time.monotonic(), time.time())

    def __call__(self) -> Witnesses:
        return self

    async def __aenter__(self) -> Witnesses:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def ask(self, url, body):
        number = next(i for i, each in enumerate(EVENT.witnesses) if url.startswith(each.url))
        if number in self.away:
            return None, b""
        decision = self._cores[number].add_checkpoint(body, self._now())
        return getattr(decision, "status", 200), decision.answer


@pytest.fixture
def witnesses(monkeypatch):
    made = Witnesses()
    monkeypatch.setattr("datacollect.bistro.log_service.server.verdict_log.WitnessClient", made)
    return made


class Bench:
    """A destination of two bistros; what they serve is brought by copying it."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.bistros = {
            name: MadeBistro(EVENT, name, folder / "served" / name) for name in ("north", "south")
        }
        tickets = folder / "tickets"
        tickets.mkdir()
        for number in range(1, 5):
            (tickets / f"{number}.ticket").write_text(ticket_of(EVENT, number).text)
        self.keys = ticket_keys(read_tickets(tickets, EVENT))
        self.times: dict[bytes, int] = {}
        self.brought: list[str] = []
        self.n_rounds = 0

    def handed_in(self, number, ticket, time_s=DEADLINE_S, **more) -> HandedIn:
        made = HandedIn(EVENT, number, b"%d" % number, ticket=ticket, **more)
        self.times[made.entry] = time_s
        return made

    def bring(self, wanted):
        for name, patterns in wanted.items():
            served = self.bistros[name].folder
            for path in (path for pattern in patterns for path in served.glob(pattern)):
                to = self.folder / "fetched" / name / path.relative_to(served)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, to)
                if path.suffix == ".segment":
                    self.brought.append(f"{name} {int(path.stem)}")
        return wanted.keys()

    def round(self, now_s=EVENT.latest_s + 1):
        """Do a round as a new start does; return the segments that may go, and what was logged."""
        into = self.folder / "into"
        notes: dict[str, Note] = {}
        config = ServiceConfig(
            *(EVENT, DATA, KEY, Listening(("127.0.0.1", 0), None)),
            *(self.folder / "log", 0, ()),
        )
        register = Register(str(self.folder / "register"), EVENT)
        opener = Opener((str(FIRST_IDENTITY),), self.keys, self.folder / "fetched", into)
        try:
            with VerdictLog(config, lambda _: None) as log, OpeningPool(1) as pool:
                destination = Destination(
                    *(EVENT, KEY, register, opener, log, self.bring),
                    EntryTimes(EVENT, self.times.get),
                    notes.update,
                    pool.open_all,
                )
                while destination.do_round(now_s):
                    self.n_rounds += 1
            self.counts, self.lies = register.counts(), register.held.lies()
        finally:
            register.close()
        return {
            name: [n for n in range(9) if n in read_covered(note.data, EVENT)]
            for name, note in notes.items()
        }

    def logged(self) -> list[Verdict]:
        store = LogStore(Held(self.folder / "log"), EVENT.verdicts.text)
        try:
            entries = store.entries(0, 99)
            for i, data in enumerate(entries):
                proof = proof_of(i, store)
                assert time_in(EVENT.verdicts, proof, data, EVENT).time_s is not None
        finally:
            store.close()
        return [read_verdict(data, EVENT.id) for data in entries]

    def said(self) -> dict[bytes, str]:
        """Return the last word on each entry."""
        return {each.entry: f"{each.word}: {each.why}" for each in self.logged()}


@pytest.fixture
def bench(tmp_path, witnesses):
    return Bench(tmp_path)


@pytest.mark.slow
def test_a_round_brings_what_was_handed_in_to_proved_verdicts(bench):
    one = bench.handed_in(1, ticket=1)
    draft = bench.handed_in(2, ticket=2, time_s=DEADLINE_S - 9)
    last = bench.handed_in(3, ticket=2)
    late = bench.handed_in(4, ticket=3, time_s=EVENT.latest_s + 1)
    stolen = bench.handed_in(5, ticket=4, signature=bytes(64))
    bench.bistros["north"].push(one, draft)
    bench.bistros["south"].push(one, last, stolen)
    bench.bistros["south"].push(late)
    # The late one stays as long as the deadline may be moved.
    assert bench.round() == {"north": [0], "south": [0]}
    assert bench.round(EVENT.collect_until_s + 1) == {"north": [0], "south": [0, 1]}
    assert bench.said() == {
        one.entry: "collected: ",
        draft.entry: f"superseded: {last.entry.hex()}",
        last.entry: "collected: ",
        late.entry: "refused: is late",
        stolen.entry: "refused: lacks the ticket's signature",
    }
    # The late one was not fetched; one of the two copies was enough.
    assert sorted(bench.brought) == ["north 0", "south 0"]
    path = bench.folder / "into" / last.entry.hex() / "return.pdf"
    assert path.read_bytes() == last.content
    assert bench.lies == []


def ended(*_):
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("step", ["opened", "not signed", "signed"])
def test_what_was_collected_is_published_though_the_event_is_cancelled_then(
    bench, witnesses, monkeypatch, step
):
    """Whatever step the round was cut at: the next start, of a cancelled event, publishes it."""
    one = bench.handed_in(1, ticket=1)
    bench.bistros["north"].push(one)
    with monkeypatch.context() as cut:
        if step == "opened":
            cut.setattr(destination_round, "log_verdicts", ended)
        elif step == "signed":
            cut.setattr(Register, "logged", ended)
        else:
            witnesses.away = {0, 1, 2, 3}
            cut.setattr(VerdictLog.record, "__defaults__", (0.1,))
        with nullcontext() if step == "not signed" else pytest.raises(KeyboardInterrupt):
            bench.round()
    witnesses.away = set()
    folder = bench.folder / "out"
    folder.mkdir()
    (bench.folder / "log").rename(folder / "verdicts")
    (bench.folder / "into").rename(folder / "files")
    (bench.folder / "register").rename(folder / "register")
    for key in ("verdicts", "collector"):
        write_private_key(bench.folder / f"{key}.key", key_of(key))
    (bench.folder / "own.identity").write_text(str(FIRST_IDENTITY))
    (bench.folder / "event.toml").write_bytes(DATA)
    (bench.folder / "destination.toml").write_text(
        'format = "datacollect-destination/1"\nkey = "verdicts.key"\ncollector = "collector.key"\n'
        'identities = ["own.identity"]\ntickets = "tickets"\nfolder = "out"\n'
    )
    cancelled = replace(EVENT, cancelled="no room")
    monkeypatch.setattr(event_run, "_amended", lambda *_: (cancelled, ()))
    files = (bench.folder / "event.toml", bench.folder / "destination.toml")
    found = event_run.run_event(*files, lambda *_: None, lambda _: None, once=True)
    assert (found.cancelled, found.collected, found.n_verdicts) == ("no room", 1, 1)
    (folder / "verdicts").rename(bench.folder / "log")
    assert bench.said() == {one.entry: "collected: "}


@pytest.mark.slow
def test_rounds_go_on_while_pushes_arrive(bench):
    one, two = bench.handed_in(1, ticket=1), bench.handed_in(2, ticket=2)
    north = bench.bistros["north"]
    north.push(one)
    assert bench.round(DEADLINE_S - 5) == {"north": [0], "south": []}
    # Nothing is new; the note is made again, for it may have been lost on its way.
    assert bench.round(DEADLINE_S - 4) == {"north": [0], "south": []}
    north.push(two)
    assert bench.round() == {"north": [0, 1], "south": []}
    assert bench.brought == ["north 0", "north 1"]
    assert bench.counts.collected == 2


@pytest.mark.slow
def test_what_is_opened_and_said_does_not_lie_here_twice(bench):
    """And is not fetched again, though its segment is gone."""
    one, two = bench.handed_in(1, ticket=1), bench.handed_in(2, ticket=2)
    north = bench.bistros["north"]
    north.push(one)
    # Of the second segment more is to come.
    north.segment((two.entry, 0, two.sealed[:10]))
    for _ in range(2):
        bench.round()
        assert bench.said() == {one.entry: "collected: "}
        assert [*(bench.folder / "fetched").rglob("*.segment")] == []
    assert bench.brought == ["north 0"]


def test_what_one_bistro_keeps_back_another_brings(bench):
    one = bench.handed_in(1, ticket=1)
    north, south = bench.bistros.values()
    north.push(one)
    south.push(one)
    (north.folder / segment_name(0)).unlink()
    bench.round()
    assert bench.said() == {one.entry: "collected: "}
    assert bench.brought == ["south 0"]


@pytest.mark.slow
def test_no_segment_goes_before_witnesses_have_signed_its_verdicts(bench, witnesses, monkeypatch):
    monkeypatch.setattr(VerdictLog.record, "__defaults__", (0.5,))
    bench.bistros["north"].push(bench.handed_in(1, ticket=1))
    witnesses.away = {0, 1}
    assert bench.round() == {}
    witnesses.away = set()
    monkeypatch.setattr(VerdictLog.record, "__defaults__", (30.0,))
    assert bench.round() == {"north": [0], "south": []}
    assert len(bench.logged()) == 1


@pytest.mark.slow
def test_bistros_that_lie_are_named_and_the_others_files_are_collected(bench):
    one, two, three = (bench.handed_in(n, ticket=n) for n in (1, 2, 3))
    north, south = bench.bistros.values()
    north.push(one)
    north.push(two)
    south.push(one)
    south.push(three)
    # North alters a segment, hides a batch, writes noise; a receipt of its for data never came.
    altered = north.folder / segment_name(0)
    altered.write_bytes(bytes(len(altered.read_bytes())))
    never = bench.handed_in(4, ticket=4)
    north.batch(never.row())
    (north.folder / batch_name(1)).unlink()
    north.write(batch_name(7), b"noise")
    north.write(index_name(5), b"noise" * 99)
    # Sparse: who reads it whole has no memory left.
    north.write(batch_name(8), b"")
    os.truncate(north.folder / batch_name(8), MOST_BATCH_BYTES + 1)
    bench.round()
    bench.round()
    assert bench.said() == {one.entry: "collected: ", three.entry: "collected: "}
    texts = [lie.text for lie in bench.lies]
    assert {lie.who for lie in bench.lies} == {"north"}
    assert any(one.entry.hex() in text for text in texts)
    assert any("shows no batch 1" in text for text in texts)
    assert any("0000000007.batch: it must begin" in text for text in texts)
    assert any(
        f"0000000008.batch: the file has {MOST_BATCH_BYTES + 1} bytes" in text for text in texts
    )
    assert any("0000000005.index" in text for text in texts)
    assert bench.counts.waiting == 1


@pytest.mark.slow
def test_a_batch_that_a_bistro_changes_is_read_again_and_both_notes_are_kept(bench):
    one, two = bench.handed_in(1, ticket=1), bench.handed_in(2, ticket=2)
    north = bench.bistros["north"]
    north.push(one)
    first = (north.folder / batch_name(0)).read_bytes()
    bench.round()
    assert bench.lies == []
    north.segment((two.entry, 0, two.sealed))
    other = sign_batch(
        *(EVENT, "north", 0, bytes(32), DEADLINE_S), np.array([two.row()], ROW), key_of("north")
    )
    north.write(batch_name(0), other.data)
    bench.round()
    ((who, text),) = [(lie.who, lie.text) for lie in bench.lies]
    assert who == "north"
    for note in (read_batch(first, EVENT).note, other.note):
        assert json.dumps(note.data.decode()) in text
    assert bench.said() == {one.entry: "collected: ", two.entry: "collected: "}


def test_batches_in_the_place_of_others_are_named_and_not_taken(bench):
    one, two = bench.handed_in(1, ticket=1), bench.handed_in(2, ticket=2)
    north, south = bench.bistros.values()
    north.segment((one.entry, 0, one.sealed), (two.entry, 0, two.sealed))
    north.batch(one.row())
    shutil.move(north.folder / batch_name(0), north.folder / batch_name(4))
    south.batch(two.row())
    shutil.move(south.folder / batch_name(0), north.folder / batch_name(0))
    bench.round()
    assert {(lie.who, lie.text) for lie in bench.lies} == {
        ("north", f"Its file {batch_name(4)}: the file holds batch 0 of north."),
        ("north", f"Its file {batch_name(0)}: the file holds batch 0 of south."),
    }
    # What is no report takes no room.
    assert [*(bench.folder / "fetched/north").glob("batches/*")] == []
    assert bench.counts.waiting == 0
    assert bench.said() == {}


@pytest.mark.slow
def test_what_was_read_and_has_not_changed_is_not_read_again(bench, monkeypatch):
    n_read = []

    def reading(*args):
        n_read.append(args)
        return read_batch(*args)

    monkeypatch.setattr(destination_round, "read_batch", reading)
    north = bench.bistros["north"]
    north.push(bench.handed_in(1, ticket=1))
    north.write(batch_name(7), b"noise")
    bench.round()
    assert len(n_read) == 2
    # Nothing is brought: that would put other files there, of the same content.
    monkeypatch.setattr(bench, "bring", lambda _: ())
    bench.round()
    assert len(n_read) == 2


@pytest.mark.slow
def test_a_segment_of_another_length_than_its_index_says_is_named_and_another_copy_taken(bench):
    one = bench.handed_in(1, ticket=1)
    north, south = bench.bistros.values()
    north.push(one)
    south.push(one)
    n_bytes = len(one.sealed)
    north.write(segment_name(0), one.sealed[:-1])
    bench.round()
    assert bench.said() == {one.entry: "collected: "}
    assert [(lie.who, lie.text) for lie in bench.lies] == [
        ("north", f"Its segment 0 has {n_bytes - 1} bytes, but its index says {n_bytes}.")
    ]


@pytest.mark.slow
def test_nobody_waits_for_many_segments_that_do_not_come(bench, monkeypatch):
    """More are wanted than are fetched at once, and the first of them are gone."""
    monkeypatch.setattr(destination_round, "MOST_FETCHED_AT_ONCE", 1)
    uploads = [bench.handed_in(n, ticket=n) for n in (1, 2, 3)]
    north, south = bench.bistros.values()
    for upload in uploads:
        north.push(upload)
    south.push(uploads[1])
    for number in (0, 1):
        (north.folder / segment_name(number)).unlink()
    bench.round()
    assert bench.said() == {each.entry: "collected: " for each in uploads[1:]}
    assert bench.counts.waiting == 1


def test_a_log_that_has_ended_says_so(bench, monkeypatch):
    bench.round()
    config = ServiceConfig(
        *(EVENT, DATA, KEY, Listening(("127.0.0.1", 0), None)),
        *(bench.folder / "log", 0, ()),
    )
    with VerdictLog(config, lambda _: None) as log:

        def broken(_):
            raise StoreError("the disk is gone")

        monkeypatch.setattr(log._store, "index_of", broken)
        for _ in range(2):  # in the middle of it, and afterwards
            with pytest.raises(StoreError, match="the disk is gone"):
                log.record([Verdict(EVENT.id, bytes(32), "collected").data], 5.0)


def test_a_log_that_cannot_begin_says_why_and_lets_the_folder_go(bench, monkeypatch):
    bench.round()
    config = ServiceConfig(
        *(EVENT, DATA, KEY, Listening(("127.0.0.1", 0), None)),
        *(bench.folder / "log", 0, ()),
    )

    def damaged(_):
        raise ProblemError("a tile is missing")

    with monkeypatch.context() as failing:
        failing.setattr(LogStore, "kept", damaged)
        with pytest.raises(ProblemError, match="a tile is missing"):
            VerdictLog(config, lambda _: None).__enter__()
    with VerdictLog(config, lambda _: None):
        pass


def test_only_the_key_of_the_log_of_verdicts_keeps_it(bench):
    bench.round()
    config = ServiceConfig(
        *(EVENT, DATA, key_of("s0"), Listening(("127.0.0.1", 0), None)),
        *(bench.folder / "log", 0, ()),
    )
    with pytest.raises(ValueError, match="the folder belongs to"):
        VerdictLog(config, lambda _: None)
    with pytest.raises(ValueError, match="key must be the private key of"):
        VerdictLog(replace(config, key=key_of("nobody")), lambda _: None)
