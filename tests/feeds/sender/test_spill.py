"""A spill: what is in it outlasts its process."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

from datacollect.errors import ProblemError, StoreError
from datacollect.feeds.sender.core import SenderCore
from datacollect.feeds.sender.missing import Run
from datacollect.feeds.sender.spill import Spill
from datacollect.feeds.sender.store import Memory, Message
from datacollect.files.held_folder import Database


def reopened(folder, spill):
    """Return what another process finds."""
    spill.close(is_done=False)
    return Spill(folder, "scan7", 4)


def test_another_process_goes_on(tmp_path):
    spill = Spill(tmp_path, "scan7", 4)
    stream = spill.begun.stream
    spill.add([Message(i, i, bytes(4)) for i in range(5)], b"tt", ends=False)
    spill.drop(Run(5, 2, 8), b"t", ends=False)
    spill.drop_kept(Run(3, 1, 4))
    spill.release(2)
    again = reopened(tmp_path, spill)
    begun = again.begun
    assert (begun.stream, begun.made, begun.made_bytes, begun.tail) == (stream, 7, 28, b"t")
    assert (begun.lost, begun.lost_bytes, begun.written, begun.restarts) == (3, 12, 2, 1)
    assert begun.missing == [Run(3, 1, 4), Run(5, 2, 8)]
    assert again.kept_bytes == 8
    assert [each.number for each in again.read(2, 7, 100)] == [2]
    assert [each.number for each in again.read(4, 7, 1)] == [4]
    again.close(is_done=True)
    assert Spill(tmp_path, "scan7", 4).begun.is_new


def test_both_stores_answer_alike(tmp_path):
    """The core cannot tell them apart."""
    found = []
    for store in (Memory(), Spill(tmp_path, "scan7", 4)):
        core = SenderCore(store, 4, 40, "drop-old")
        blocks = []
        for i in range(12):
            core.write(bytes([i]) * 7, i)
            if i % 3 == 0:
                blocks.append(b"".join(core.frames(11)))
            if i == 6:
                core.told_written(1)
        core.end(99)
        while core.has_something:
            blocks.append(b"".join(core.frames(50)))
        found.append((blocks, core.counts, store.kept_bytes))
    assert found[0] == found[1]


def test_what_is_committed_after_a_sync_is_synced(tmp_path, monkeypatch):
    """The thread that syncs comes between a change and its commit: that change is synced later."""
    synced, transaction = threading.Event(), Database.transaction

    def sync(path):
        if path.parent == tmp_path:  # and not the folder of a test before this one
            synced.set()

    monkeypatch.setattr("datacollect.feeds.sender.spill._sync", sync)
    monkeypatch.setattr("datacollect.feeds.sender.spill.SYNC_S", 0.01)
    spill = Spill(tmp_path, "scan7", 4)

    @contextmanager
    def slow(self):
        with transaction(self):
            yield
            synced.wait(0.1)
        synced.clear()

    monkeypatch.setattr(Database, "transaction", slow)
    spill.add([Message(0, 0, bytes(4))], b"", ends=False)
    assert synced.wait(10)
    spill.close(is_done=True)


def test_a_folder_is_one_feeds(tmp_path):
    spill = Spill(tmp_path, "scan7", 4)
    with pytest.raises(ProblemError, match="another process"):
        Spill(tmp_path, "scan7", 4)
    spill.close(is_done=False)
    with pytest.raises(ProblemError, match="name another folder"):
        Spill(tmp_path, "scan8", 4)
    with pytest.raises(ProblemError, match="message_bytes = 4, got 8"):
        Spill(tmp_path, "scan7", 8)


def test_a_call_that_fails_changes_nothing(tmp_path):
    spill = Spill(tmp_path, "scan7", 4)
    spill.add([Message(0, 0, bytes(4))], b"", ends=False)
    with pytest.raises(StoreError, match="UNIQUE"):
        spill.add([Message(1, 0, bytes(4)), Message(0, 0, bytes(4))], b"x", ends=False)
    assert spill.kept_bytes == 4
    assert reopened(tmp_path, spill).begun.made == 1


def test_what_the_receiver_has_of_an_earlier_process_is_not_lost(tmp_path):
    """Of three messages, none told to be written, three are dropped; the receiver has two."""
    spill = Spill(tmp_path, "scan7", 2)
    spill.add([Message(number, 1, b"ab") for number in range(3)], b"", ends=False)
    spill.close(is_done=False)
    spill = Spill(tmp_path, "scan7", 2)
    core = SenderCore(spill, 2, 6, "drop-old")
    core.write(b"cdefgh", 2)
    assert core.counts.lost == 3
    core.connected(2, 2)
    assert (core.counts.lost, core.counts.lost_bytes) == (1, 2)
    spill.close(is_done=False)
    spill = Spill(tmp_path, "scan7", 2)
    assert (spill.begun.lost, spill.begun.lost_bytes) == (1, 2)
    spill.close(is_done=False)
