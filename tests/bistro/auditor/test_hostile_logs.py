"""Logs that do not fit together, read by an auditor from memory: each lie is named."""

from __future__ import annotations

import hashlib
import random

import pytest
from instances.events import event_bytes, event_of, key_of, owner_of, witness_names
from instances.how_many import many

from datacollect.bistro.auditor import audit_event as auditing
from datacollect.bistro.auditor import log_reading
from datacollect.bistro.auditor.log_reading import read_log
from datacollect.bistro.formats.event.amendments import sign_amendment
from datacollect.bistro.formats.log.acknowledgement import acknowledge
from datacollect.bistro.formats.log.checkpoints import (
    Checkpoint,
    SignedCheckpoint,
    cosign,
    sign_checkpoint,
)
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.log.notes import Note
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.log.tiles import Edge, Tile, bundle_of, tiles_of
from datacollect.bistro.formats.log.tree import inclusion_proof, leaf_hash, range_root
from datacollect.bistro.formats.receipt.counted_time import proved_time
from datacollect.bistro.formats.receipt.receipt import PublishedAmendment, Receipt, amendments_data
from datacollect.errors import DatacollectError
from datacollect.net.http_asking import Answer

EVENT = event_of()
SERVICE = EVENT.services[0]
TIME_S = EVENT.deadline_s - 100
LATER = "2027-04-16T23:59:59-04:00"


class Log:
    """A log in memory that answers as a service does; sizes are those of its checkpoints."""

    def __init__(self, entries: list[bytes], sizes: list[int]) -> None:
        self.entries, self.sizes = entries, sizes
        self.leaves = [leaf_hash(entry) for entry in entries]
        self.changed: dict[str, Answer] = {}
        # What the auditor asked for.
        self.asked: list[str] = []

    def node(self, level: int, index: int) -> bytes:
        start = index << level
        leaves = self.leaves[start : start + (1 << level)]
        return range_root(0, len(leaves), lambda lv, i: _root(leaves, lv, i))

    def checkpoint(self, size: int, time_s: int = TIME_S) -> SignedCheckpoint:
        root = range_root(0, size, lambda lv, i: _root(self.leaves, lv, i))
        checkpoint = Checkpoint(SERVICE.log.name, size, root)
        note = sign_checkpoint(checkpoint, key_of("s0"))
        lines = tuple(
            cosign(note.text, time_s + size, name, key_of(name)) for name in witness_names()
        )
        return SignedCheckpoint(checkpoint, Note(note.text, note.signatures + lines))

    def proof(self, index: int) -> LogProof:
        size = next(size for size in self.sizes if size > index)
        hashes = inclusion_proof(index, size, self.node)
        return LogProof(index, tuple(hashes), self.checkpoint(size))

    def get(self, path: str, most_bytes: int = 0) -> Answer:
        self.asked.append(path)
        if path in self.changed:
            return self.changed[path]
        name, _, rest = path[1:].partition("/")
        if name == "checkpoint":
            return Answer(200, self.checkpoint(self.sizes[-1]).note.data)
        if name == "proof":
            if bytes.fromhex(rest) not in self.entries:
                return Answer(404, b"")
            return Answer(200, self.proof(self.entries.index(bytes.fromhex(rest))).data)
        if name == "amendments":
            rows = [
                PublishedAmendment(entry, (self.proof(i),))
                for i, entry in enumerate(self.entries)
                if len(entry) != 32
            ]
            return Answer(200, amendments_data(EVENT.id, rows))
        return Answer(200, self.tile(Tile.parse(path[1:])))

    def tile(self, tile: Tile) -> bytes:
        first = tile.index * 256
        if tile.level < 0:
            return bundle_of(self.entries[first : first + tile.width])
        edge, tiles = Edge(), {}
        for leaf in self.leaves:
            tiles.update(edge.append(leaf))
        tiles.update(edge.partial_tiles())
        return tiles[tile]

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _root(leaves: list[bytes], level: int, index: int) -> bytes:
    """Return a subtree's root by the definition: halves, down to leaves."""
    if level == 0:
        return leaves[index]
    left, right = (_root(leaves, level - 1, 2 * index + side) for side in (0, 1))
    return hashlib.sha256(b"\1" + left + right).digest()


def entries(n: int) -> list[bytes]:
    return [hashlib.sha256(str(i).encode()).digest() for i in range(n)]


def log_of(n: int = 600, sizes=(1, 7, 256, 300, 600), at: int | None = None) -> Log:
    found = entries(n)
    if at is not None:
        found[at] = sign_amendment(EVENT, {"deadline": LATER}, 1, key_of("organiser"))
    return Log(found, [*sizes])


@pytest.mark.parametrize("at", [None, 0, 6, 255, 300])
def test_sound_log_is_read_whole_with_all_checkpoints_and_amendments(at):
    log = log_of(at=at)
    whole = read_log(SERVICE, EVENT, log)
    assert whole.lies == []
    assert sorted(each.checkpoint.size for each in whole.checkpoints) == log.sizes
    assert list(whole.others) == ([] if at is None else [at])
    served = {f"/{tile.path}" for tile in tiles_of(600)}
    assert served <= set(log.asked)


def test_log_that_is_asked_too_often_is_waited_for_and_no_liar(monkeypatch):
    log, waited = log_of(), []
    monkeypatch.setattr(log_reading.time, "sleep", waited.append)
    answer, n_asked = log.get, iter(range(10_000))

    def get(path: str, most_bytes: int = 0) -> Answer:
        return Answer(429, b"", 2.0) if next(n_asked) % 2 == 0 else answer(path, most_bytes)

    log.get = get
    whole = read_log(SERVICE, EVENT, log)
    assert whole.lies == []
    assert waited == [2.0] * len(log.asked)


def audited(log: Log) -> list[str]:
    """Return what an audit of this log alone says."""
    whole = read_log(SERVICE, EVENT, log)
    wholes = {SERVICE.log.name: whole}
    _, _, lies = auditing._amendments(EVENT, wholes)
    return [f"{lie.who}: {lie.text}" for lie in [*lies, *auditing._lies(EVENT, wholes, {})]]


def test_head_that_the_entries_do_not_make():
    log, other = log_of(), Log([*entries(599), bytes(32)], [600])
    log.changed["/checkpoint"] = Answer(200, other.checkpoint(600).note.data)
    said = " ".join(audited(log))
    assert "have another root than the one that it has signed" in said
    assert "two logs that differ within 600" in said


def test_checkpoint_that_is_no_beginning_is_of_all_who_signed_both():
    log = log_of()
    other = Log([bytes(32), *entries(600)[1:]], [300])
    proof = log.proof(256)
    forked = LogProof(proof.index, proof.hashes, other.checkpoint(300))
    log.changed[f"/proof/{log.entries[256].hex()}"] = Answer(200, forked.data)
    said = audited(log)
    assert any("does not prove entry 256" in each for each in said)


def test_entry_without_a_proof_is_named():
    log = log_of()
    log.changed[f"/proof/{log.entries[7].hex()}"] = Answer(404, b"")
    assert any("does not prove entry 7" in each for each in audited(log))


def test_tile_that_its_entries_do_not_make_is_named():
    log = log_of()
    log.changed["/tile/0/000"] = Answer(200, bytes(256 * 32))
    assert any("serves tile/0/000" in each for each in audited(log))
    log.changed["/tile/0/000"] = Answer(404, b"")
    assert any("does not serve tile/0/000" in each for each in audited(log))


def test_clock_of_a_witness_that_goes_back_is_named():
    log = log_of(sizes=[1, 600])
    log.changed["/checkpoint"] = Answer(200, log.checkpoint(600, TIME_S - 10_000).note.data)
    said = audited(log)
    lie = "w0.example: It has signed a larger log with an earlier time than a smaller one."
    assert [each for each in said if lie in each]


def test_entry_that_is_neither_commitment_nor_amendment_is_named():
    log = log_of(at=3)
    log.entries[3] = b"a secret extension"
    log.leaves[3] = leaf_hash(log.entries[3])
    log.changed["/amendments"] = Answer(200, amendments_data(EVENT.id, []))
    assert any("entry 3 is neither a commitment" in each for each in audited(log))


def test_receipt_with_a_word_alone_gets_its_proof_from_the_log():
    receipt = Receipt(Commitment(EVENT.id, bytes(32), 1, bytes(32), bytes(32), owner_of("it")))
    log = Log([*entries(8), receipt.entry], [3, 9])
    word = acknowledge(SERVICE.log.name, receipt.entry, 8, TIME_S, key_of("s0"))
    whole = read_log(SERVICE, EVENT, log)
    found = auditing._with_proofs(receipt.with_more([word]), {SERVICE.log.name: whole}, EVENT)
    [proof] = found.proofs
    assert proved_time(proof, receipt.entry, EVENT).time_s == TIME_S + 9


RECEIPT = Receipt(Commitment(EVENT.id, bytes(32), 1, bytes(32), bytes(32), owner_of("it")))


def test_an_amendment_published_while_the_log_is_read_accuses_nobody():
    """The head is read before it, the list of amendments after it."""
    before, after = log_of(20, (5, 20)), log_of(21, (5, 20, 21), at=20)
    heads = iter([before, after])

    class Growing(Log):
        def get(self, path: str, most_bytes: int = 0) -> Answer:
            if path == "/checkpoint":
                return next(heads).get(path)
            return (after if path == "/amendments" else before).get(path)

    assert audited(Growing(before.entries, before.sizes)) == []


def test_amendment_of_a_head_that_is_not_shown_is_one_taken_back():
    log, longer = log_of(20, (5, 20)), log_of(21, (5, 20, 21), at=20)
    log.changed["/amendments"] = longer.get("/amendments")
    assert any("has signed 21 entries, but shows only 20" in each for each in audited(log))


@pytest.mark.parametrize("is_over", [False, True])
def test_acknowledged_entry_past_the_end_is_evidence_once_the_event_is_over(is_over):
    word = acknowledge(SERVICE.log.name, RECEIPT.entry, 600, TIME_S, key_of("s0"))
    whole = read_log(SERVICE, EVENT, log_of(), is_over=is_over)
    lies = auditing._lies(
        EVENT, {SERVICE.log.name: whole}, {"a": RECEIPT.with_more([word])}, is_over=is_over
    )
    said = [lie.text for lie in lies]
    assert said == ["It has acknowledged entry 600, but never logged it."] * is_over


def test_log_that_is_not_shown_is_held_against_receipts():
    proof = log_of().proof(7)
    word = acknowledge(SERVICE.log.name, RECEIPT.entry, 3, TIME_S, key_of("s0"))
    proved, told = RECEIPT.with_more(proofs=[proof]), RECEIPT.with_more([word])

    def said(receipt: Receipt, **how: object) -> list[str]:
        return [lie.text for lie in auditing._lies(EVENT, {}, {"a": receipt}, **how)]

    assert said(proved) == []
    hidden = {SERVICE.log.name}
    assert said(proved, hidden=hidden) == ["It has signed 256 entries, but shows no log."]
    assert said(told, hidden=hidden) == []
    assert said(told, hidden=hidden, is_over=True) == [
        "It has acknowledged entry 3, and shows no log."
    ]


def test_receipts_of_a_log_that_cannot_be_read_are_held_against_each_other():
    other = Log([bytes(32), *entries(600)[1:]], [256])
    held = {
        str(i): RECEIPT.with_more(proofs=[log.proof(7)]) for i, log in enumerate((log_of(), other))
    }
    lies = auditing._lies(EVENT, {}, held)
    assert [lie.who for lie in lies] == [SERVICE.log.name, *witness_names()]
    assert lies[0].text == "It has signed two logs that differ within 256."


def test_files_that_are_no_receipts_of_the_event_are_named(tmp_path):
    other = Receipt(Commitment(bytes(32), bytes(32), 1, bytes(32), bytes(32), owner_of("it")))
    for name, data in (("a", RECEIPT.data), ("b", b"broken"), ("c", other.data)):
        (tmp_path / f"{name}.receipt.json").write_bytes(data)
    held, others = auditing._receipts(tmp_path, EVENT, event_bytes())
    assert held == {"a.receipt.json": RECEIPT}
    assert [each.file for each in others] == ["b.receipt.json", "c.receipt.json"]
    assert "JSON" in others[0].trouble
    assert "is of event 0000" in others[1].trouble
    assert not any(each.is_provable for each in others)


def noisy(seed: int) -> None:
    """Change an answer at random: the log cannot be read, or the change is named as a lie."""
    chance = random.Random(seed)
    log = log_of(20, (5, 20), at=7)
    read_log(SERVICE, EVENT, log)
    path = chance.choice(sorted(set(log.asked)))
    body = bytearray(log.get(path).body)
    at = chance.randrange(len(body))
    body[at : at + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 2))
    if bytes(body) == log.get(path).body:
        return
    log.changed[path] = Answer(chance.choice([200, 200, 200, 404, 500]), bytes(body))
    try:
        whole = read_log(SERVICE, EVENT, log)
    except DatacollectError:
        return
    if whole is not None and not whole.lies:
        # What is no signature of anybody says nothing.
        assert path in ("/checkpoint", "/amendments") or path.startswith("/proof/")


def test_noise_is_noticed():
    for seed in range(60):
        noisy(seed)


@pytest.mark.slow
def test_noise_is_noticed_whatever_it_is():
    for seed in range(60, 60 + many(5000)):
        noisy(seed)
