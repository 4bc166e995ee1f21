"""A bistro killed at every step: what was promised is there, in the batch that was named."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from instances.bistros import bistro_event
from instances.events import key_of, owner_key, owner_of

from datacollect.bistro.formats.custody.batches import FIRST, opening, read_batch, signed_for
from datacollect.bistro.formats.custody.segments import read_index
from datacollect.bistro.formats.custody.verdicts import Covered
from datacollect.bistro.formats.event.statements import push_statement
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.receipt.upload_wish import Wish
from datacollect.bistro.upload_server import messages as told
from datacollect.bistro.upload_server.core import Accepting
from datacollect.bistro.upload_server.messages import Append, Cut, Drop, Keep, Refuse, Release, Tell
from datacollect.bistro.upload_server.requests import CoveredSaid
from datacollect.bistro.upload_server.store import UploadStore
from datacollect.files.held_folder import Database, Held

# Fewer would mean that they are not counted.
LEAST_STEPS = 50


class KilledError(BaseException):
    """The process ends here."""


class Steps:
    """Counts what reaches the disk, and ends the process before the step of a number."""

    def __init__(self, monkeypatch, last: int) -> None:
        self.n, self.last = 0, last
        for owner, name in (
            (os, "fdatasync"),
            (os, "pwrite"),
            (os, "truncate"),
            (os, "fsync"),
            (Path, "replace"),
            (Path, "unlink"),
            (Database, "rows"),
        ):
            monkeypatch.setattr(owner, name, self._counting(getattr(owner, name)))

    def _counting(self, call):
        def counted(*args, **kwargs):
            self.n += 1
            if self.n >= self.last:
                raise KilledError
            return call(*args, **kwargs)

        return counted


def opened(folder, event):
    return UploadStore(Held(folder), event, event.bistros[0], key_of("north"))


def doing(store, event, most_bytes):
    """Return what tells a core of what happens, has done what it wants, and returns its answer."""
    core = Accepting(event, "north", most_bytes, 1e9, store.kept(0.0), store)

    def do(what, data=b""):
        answer = None
        for action in core.handle(what):
            if isinstance(action, Tell | Refuse):
                answer = action
            elif not isinstance(action, Cut):
                store.add(action, data if isinstance(action, Append) else b"")
        group = store.take()
        store.commit(group)
        whole = [each.upload.id for each, _ in group if isinstance(each, Keep)]
        core.handle(told.Settled(tuple(u for u in whole if store.by_id(u))))
        return answer

    return do


def work(store, event, promised):
    """Push three uploads, close segments and batches, and let the first segment go."""
    do = doing(store, event, 10**6)
    for i in range(3):
        data = bytes([i]) * (1000 + i)
        digest = hashlib.sha256(data).digest()
        owner = owner_of(f"{i}")
        commitment = Commitment(event.id, bytes([i]) * 32, len(data), digest, b"p" * 32, owner)
        pushed = (commitment.entry, digest, len(data), bytes(16))
        said = push_statement(event.id, event.bistros[0].key, *pushed)
        wish = Wish(commitment, len(data), digest, owner_key(f"{i}").sign(said))
        now_s = 100.0 * (i + 1)
        do(told.CreateAsked(i, now_s, wish, f"u{i}", 10**12))
        do(told.WriteAsked(i, f"u{i}", 0, len(data)))
        do(told.Arrived(i, now_s, 600), data[:600])
        do(told.Arrived(i, now_s, len(data) - 600), data[600:])
        upload = do(told.WriteEnded(i, now_s, digest)).upload
        promised[commitment.entry] = (upload.batch, data)
        do(told.Ticked(now_s + 50))


def require_kept(folder, event, promised):
    served = folder / "served"
    rows, entries, previous = {}, {}, FIRST
    for number, path in enumerate(sorted(served.glob("batches/*"))):
        batch = read_batch(path.read_bytes(), event)
        assert (batch.number, batch.previous) == (number, previous)
        previous = batch.digest
        assert opening(batch.rows, event).all()
        assert signed_for(batch.rows, event, event.bistros[0]).all()
        rows |= {bytes(row["entry"]): number for row in batch.rows}
        entries |= {int(row["upload"]): bytes(row["entry"]) for row in batch.rows}
    found = {entry: bytearray(len(data)) for entry, (_, data) in promised.items()}
    for path in sorted(served.glob("segments/*.segment")):
        segment = path.read_bytes()
        pieces = read_index(path.with_suffix(".index").read_bytes())
        assert pieces["n_bytes"].sum() == len(segment)
        for piece in pieces:
            at, start, n = (int(piece[f]) for f in ("upload_offset", "segment_offset", "n_bytes"))
            entry = entries.get(int(piece["upload"]))
            if entry in found:
                found[entry][at : at + n] = segment[start : start + n]
    for entry, (number, data) in promised.items():
        assert rows[entry] == number
        assert bytes(found[entry]) == data


@pytest.fixture(scope="module")
def event(tmp_path_factory):
    return bistro_event(tmp_path_factory.mktemp("event"), admission="open")


@pytest.mark.slow
def test_what_was_promised_outlives_a_kill_at_every_step(tmp_path, event):
    n_steps, last = 0, 0
    while last == n_steps:
        last += 1
        folder = tmp_path / str(last)
        promised: dict = {}
        store = opened(folder, event)
        with pytest.MonkeyPatch.context() as patched:
            steps = Steps(patched, last)
            with suppress(KilledError):
                work(store, event, promised)
            n_steps = steps.n
        store.close()
        # The next start finishes what was begun; a second one finds nothing to do.
        for _ in range(2):
            with closing(opened(folder, event)) as again:
                again.kept(1000.0)
        require_kept(folder, event, promised)
    assert last > LEAST_STEPS
    assert len(promised) == 3


def test_what_was_collected_is_known_as_such_after_a_restart(tmp_path, event):
    with closing(opened(tmp_path, event)) as store:
        work(store, event, {})
        store.add(Release((0, 1), (), 7.0, 6))
        store.add(Release((), (1,), 9.0, 8))
        store.commit(store.take())
    with closing(opened(tmp_path, event)) as again:
        kept = again.kept(1000.0)
        assert kept.released == {0: 7.0}
        assert (kept.last_contact_s, kept.told_s) == (9.0, 8)
        again.add(Drop((0,)))
        again.commit(again.take())
        kept = again.kept(1001.0)
    assert kept.released == {}
    assert [*kept.closed] == [1, 2]


def whole_of(event, i, ticket=b"t" * 16):
    salt = i.to_bytes(32, "big")
    commitment = Commitment(event.id, salt, 10, b"s" * 32, b"p" * 32, owner_of("0"))
    wish = Wish(commitment, 10, b"s" * 32, bytes(64), ticket)
    return told.Upload(f"u{i}", wish, 1e9, 10, set(), 1, b"s" * 32, 0, 1)


def test_many_threads_may_ask_what_is_kept(tmp_path, event):
    with closing(opened(tmp_path / "up", event)) as store:
        for i in range(3000):
            store.add(Keep(whole_of(event, i)))
        store.commit(store.take())
        with ThreadPoolExecutor(4) as threads:
            found = [*threads.map(lambda _: len(store.entries_of(b"t" * 16)), range(40))]
        assert set(found) == {3000}


def test_what_was_sent_and_given_up_is_known_after_a_restart(tmp_path, event):
    data = b"x" * 100
    commitment = Commitment(event.id, bytes(32), 100, b"s" * 32, b"p" * 32, owner_of("0"))
    wish = Wish(commitment, 100, b"s" * 32, bytes(64), b"t" * 16)
    with closing(opened(tmp_path / "up", event)) as store:
        upload = told.Upload("u", wish, 1e9, 100)
        for action in (Keep(upload), Append(upload, 0, 0, 0, 100), told.Forget("u")):
            store.add(action, data if isinstance(action, Append) else b"")
        store.commit(store.take())
    with closing(opened(tmp_path / "up", event)) as again:
        kept = again.kept(1.0)
        assert kept.spoilt_bytes == {(b"t" * 16, wish.commitment.entry): 100}
        assert kept.spoilt_pieces == {(b"t" * 16, wish.commitment.entry): 1}


def test_what_came_with_a_wrong_checksum_keeps_nobody_from_being_carried(tmp_path):
    """An honest line that errs once must not end what all others push."""
    event = bistro_event(tmp_path, admission="open")
    slow, data = b"y" * 5000, b"h" * 1000
    with closing(opened(tmp_path / "folder", event)) as store:
        do = doing(store, event, 10**9)

        def begin(upload, content, i):
            digest = hashlib.sha256(content).digest()
            owner = owner_of(f"{i}")
            salt = bytes([i]) * 32
            made = Commitment(event.id, salt, len(content), digest, b"p" * 32, owner)
            wish = Wish(made, len(content), digest, bytes(64))
            do(told.CreateAsked(i, 100.0, wish, upload, 10**12))

        def send(i, upload, offset, content, **end):
            do(told.WriteAsked(i, upload, offset, len(content)))
            do(told.Arrived(i, 100.0, len(content)), content)
            return do(told.WriteEnded(i, 100.0, **end))

        begin("slow", slow, 9)
        send(1, "slow", 0, slow[:1])
        send(2, "slow", 1, b"z" * 10, is_wrong=True)
        begin("other", data, 3)
        send(3, "other", 0, data, sha256=hashlib.sha256(data).digest())
        do(told.Ticked(150.0, 10**12))
        do(CoveredSaid(7, 160.0, Covered(event.id, "north", 1, 9, (range(9),), 160)))
        do(told.Ticked(161.0, 10**12))
        ended = send(4, "slow", 1, slow[1:], sha256=hashlib.sha256(slow).digest())
        assert ended.upload.is_whole
