"""Durability of the store: a crash at any instant loses nothing recorded."""

import fcntl
import os
import shutil
import threading

import numpy as np
import pytest
from blake3 import blake3

from datacollect.errors import ProblemError, StoreError
from datacollect.transfer.protocol.source import Listed, Page
from datacollect.transfer.store import store as stores
from datacollect.transfer.store.state.state import FileState
from datacollect.transfer.store.store import PieceKey, Store

UNIT = 2**16


def content(path, n_bytes):
    return np.random.default_rng(len(path) + n_bytes).bytes(n_bytes)


FILES = {"a/one": 100, "a/two": 3 * UNIT, "empty": 0, "z": UNIT + 1}


def listing(files=FILES, mtime_ns=1):
    return [Listed(path, n, mtime_ns, i) for i, (path, n) in enumerate(sorted(files.items()))]


def list_and_know(store, listed):
    listing = store.listing("S")
    listing.take(Page(listed))
    listing.end()
    assert store.prepare("S", UNIT, apart=False) == []
    store.know("S")


def begin(store, files=FILES, mtime_ns=1):
    store.state.begin_start(["S"])
    list_and_know(store, listing(files, mtime_ns))


def fetch(store, pieces=None, mangle=None):
    for piece in store.needed("S") if pieces is None else pieces:
        segments = store.segments(PieceKey("S", piece))
        data = b"".join(
            content(file.path, file.n_bytes)[span.offset_bytes : span.offset_bytes + span.n_bytes]
            for span, file in segments
        )
        spans = [segment.span for segment in segments]
        store.put(PieceKey("S", piece), spans, memoryview(data), blake3(data).digest())


def carry_out(store, pieces=None):
    reports = []
    store.start(lambda keys, failure: reports.append((keys, failure)))
    fetch(store, pieces)
    store.stop()
    return reports


def collected(folder, files=FILES):
    return {path for path in files if (folder / "S" / path).is_file()}


def whole(folder, files=FILES):
    return all((folder / "S" / p).read_bytes() == content(p, n) for p, n in files.items())


def test_everything_arrives_under_its_name(tmp_path):
    store = Store(tmp_path)
    begin(store)
    reports = carry_out(store)
    assert any(keys for keys, _ in reports)
    assert all(failure is None for _, failure in reports)
    assert whole(tmp_path)
    assert store.needed("S") == []
    assert not store.state.waiting()
    store.close()
    assert not any((tmp_path / ".datacollect/incoming").iterdir())


def test_files_get_their_names_only_when_they_are_whole(tmp_path):
    store = Store(tmp_path)
    begin(store)
    carry_out(store, pieces=[0])
    # the first piece holds a/one and the beginning of a/two
    assert collected(tmp_path) == {"a/one", "empty"}
    carry_out(store)
    assert whole(tmp_path)
    store.close()


@pytest.mark.parametrize("n_pieces", range(6))
def test_a_copy_of_the_folder_at_any_instant_goes_on(tmp_path, n_pieces):
    """What a crash leaves is what is on disk: a copy of it must go on where it was."""
    store = Store(tmp_path / "one")
    begin(store)
    n_all = len(store.needed("S"))
    carry_out(store, pieces=store.needed("S")[:n_pieces])
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    store.close()
    second = Store(tmp_path / "two")
    assert second.mend() == 0
    begin(second)
    assert len(second.needed("S")) == n_all - n_pieces
    carry_out(second)
    assert whole(tmp_path / "two")
    second.close()


def test_a_crash_between_writing_and_recording_fetches_again(tmp_path):
    store = Store(tmp_path)
    begin(store)
    fetch(store)  # written, nobody records
    assert collected(tmp_path) == set()
    store.state.close()
    os.close(store._opened.lock_fd)
    again = Store(tmp_path)
    again.mend()
    begin(again)
    assert len(again.needed("S")) == len(again.layout("S").pieces)
    carry_out(again)
    assert whole(tmp_path)
    again.close()


def test_a_crash_between_renaming_and_noting_it_fetches_nothing(tmp_path, monkeypatch):
    store = Store(tmp_path)
    begin(store)
    store.settle_remaining()  # the empty file
    settle = store.state.settle

    def crash(files):
        files = list(files)
        if any(each.state is FileState.DONE for each in files):
            raise OSError(5, "crash")
        settle(files)

    monkeypatch.setattr(store.state, "settle", crash)
    carry_out(store)
    monkeypatch.undo()
    assert whole(tmp_path)
    store.close()
    again = Store(tmp_path)
    assert again.mend() == 0
    begin(again)
    assert again.needed("S") == []
    again.close()


def test_files_taken_away_by_hand_are_fetched_again(tmp_path):
    store = Store(tmp_path)
    begin(store)
    carry_out(store)
    store.close()
    (tmp_path / "S/z").unlink()
    (tmp_path / "S/a/one").unlink()
    again = Store(tmp_path)
    assert again.mend() == 2
    begin(again)
    carry_out(again)
    assert whole(tmp_path)
    again.close()


def test_a_file_that_changed_is_fetched_again_and_others_are_not(tmp_path):
    store = Store(tmp_path)
    begin(store)
    carry_out(store)
    changed = [f._replace(mtime_ns=2) if f.path == "z" else f for f in listing()]
    list_and_know(store, changed)
    waiting = [
        segment.file.path for p in store.needed("S") for segment in store.segments(PieceKey("S", p))
    ]
    assert set(waiting) == {"z"}
    carry_out(store)
    assert whole(tmp_path)
    store.close()


def test_retired_files_are_waited_for_no_more(tmp_path):
    store = Store(tmp_path)
    begin(store)
    rows = store.state.files_in(store.state.source_id("S"), FileState.WAITING)
    (z,) = [row.number for row in rows if row.listed.path == "z"]
    store.retire("S", [z], "changed")
    carry_out(store)
    assert collected(tmp_path) == {"a/one", "a/two", "empty"}
    store.close()


def test_unreadable_files_are_missing_each_for_its_own_reason(tmp_path):
    store = Store(tmp_path)
    begin(store)
    numbers = {
        row.listed.path: row.number
        for row in store.state.files_in(store.state.source_id("S"), FileState.WAITING)
    }
    store.unreadable("S", [(numbers["z"], "Permission denied"), (numbers["a/one"], "I/O error")])
    carry_out(store)
    assert collected(tmp_path) == {"a/two", "empty"}
    assert [(m.path, m.why) for m in store.state.missing()] == [
        ("a/one", "I/O error"),
        ("z", "Permission denied"),
    ]
    store.close()


def test_a_source_that_is_listed_again_meanwhile_has_no_piece_written_twice(tmp_path):
    """What is written and not recorded yet stays taken, and counts once."""
    store = Store(tmp_path)
    begin(store)
    fetch(store, store.needed("S")[:2])
    list_and_know(store, listing())
    assert not {0, 1} & set(store.needed("S"))
    carry_out(store)
    assert whole(tmp_path)
    assert store.state.is_complete()
    store.close()


def test_a_source_that_was_put_off_waits_with_the_reason(tmp_path):
    store = Store(tmp_path)
    begin(store)
    store.put_off("S", "no room")
    assert store.needed("S") == []
    carry_out(store)
    assert {m.why for m in store.state.missing()} == {"no room"}
    list_and_know(store, listing())
    assert store.put_off_sources() == {}
    carry_out(store)
    assert whole(tmp_path)
    store.close()


def test_a_file_gone_from_the_source_is_missing_unless_it_was_collected(tmp_path):
    store = Store(tmp_path)
    begin(store)
    carry_out(store, pieces=[0])
    begin(store, {"empty": 0})
    assert [(m.path, m.why) for m in store.state.missing()] == [
        ("a/two", "gone from the source"),
        ("z", "gone from the source"),
    ]
    assert collected(tmp_path) == {"a/one", "empty"}
    store.close()


def test_no_piece_is_written_twice(tmp_path):
    store = Store(tmp_path)
    begin(store)
    key, data = PieceKey("S", 0), memoryview(bytes(UNIT))
    spans = [segment.span for segment in store.segments(key)]
    assert store.put(key, spans, data, b"") is True
    assert store.put(key, spans, data, b"") is False
    store.close()


def test_one_pull_at_a_time(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(ProblemError, match="another pull is running in this folder"):
        Store(tmp_path)
    store.close()
    Store(tmp_path).close()


def test_whoever_asks_for_the_status_stops_no_pull(tmp_path):
    Store(tmp_path).close()
    fd = os.open(tmp_path / ".datacollect/lock", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    threading.Timer(0.2, os.close, [fd]).start()
    Store(tmp_path).close()


def test_a_file_that_was_missing_and_is_gone_is_not_missing_for_ever(tmp_path):
    store = Store(tmp_path)
    begin(store)
    numbers = {row.listed.path: row.number for row in store.state.files_in(1, FileState.WAITING)}
    store.unreadable("S", [(numbers["z"], "Permission denied")])
    begin(store, {"empty": 0})
    assert "z" in {entry.path for entry in store.state.missing()}  # named once
    begin(store, {"empty": 0})
    assert store.state.missing() == []
    store.close()


def test_nothing_is_written_once_it_is_closed(tmp_path):
    store = Store(tmp_path)
    begin(store)
    piece = store.needed("S")[0]
    store.close()
    assert store.put(PieceKey("S", piece), [], memoryview(b"x"), b"") is False


def test_a_full_disk_is_said_and_what_is_recorded_stays(tmp_path, monkeypatch):
    store = Store(tmp_path)
    begin(store)
    carry_out(store, pieces=[0])

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stores.os, "pwrite", full)
    store.start(lambda *_: None)
    with pytest.raises(StoreError, match=r"No space left on device; .* make room"):
        fetch(store)
    monkeypatch.undo()
    store.close()
    again = Store(tmp_path)
    assert again.mend() == 0
    begin(again)
    assert 0 not in again.needed("S")
    carry_out(again)
    assert whole(tmp_path)
    again.close()


def test_a_damaged_state_is_bad_input(tmp_path):
    Store(tmp_path).close()
    for path in (tmp_path / ".datacollect").glob("state.sqlite*"):
        path.write_bytes(b"no database" * 500)
    with pytest.raises(ProblemError, match=r"move state.sqlite and .* away, and nothing else"):
        Store(tmp_path)
