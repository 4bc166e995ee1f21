"""Status says what a folder holds, from the outside and at any instant, and writes nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from blake3 import blake3
from instances.stores import UNIT, Held, fetch, get_ready, pull

from datacollect.errors import ProblemError
from datacollect.transfer.protocol.source import LeftOut
from datacollect.transfer.store.state import snapshot
from datacollect.transfer.store.status import status_of
from datacollect.transfer.store.store import PieceKey, Store


def contents(folder):
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_folder_of_which_all_is_there(tmp_path):
    pull(tmp_path, Held(a=10, b=UNIT + 1))
    before = contents(tmp_path)
    found = status_of(tmp_path)
    assert found.complete
    assert not found.at_work
    tree = found.to_dict()
    assert tree["sources"] == [
        {
            "name": "S",
            "done_files": 2,
            "done_bytes": UNIT + 11,
            "waiting_files": 0,
            "waiting_bytes": 0,
            "missing_files": 0,
            "wanted": True,
            "listed": True,
            "trouble": None,
        }
    ]
    json.dumps(tree)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("made", ["nothing", "folder", "empty state", "no start"])
def test_where_nothing_was_started_there_is_no_status(tmp_path, made):
    if made != "nothing":
        (tmp_path / ".datacollect").mkdir()
    if made == "empty state":
        (tmp_path / ".datacollect/state.sqlite").write_bytes(b"")
    if made == "no start":
        Store(tmp_path).close()
    with pytest.raises(ProblemError, match="no pull has written into this folder") as caught:
        status_of(tmp_path)
    assert caught.value.exit_code == 2


def test_a_source_that_is_not_listed_to_its_end_is_not_complete(tmp_path):
    """Though everything that is known of is there."""
    source = Held(a=10)
    pull(tmp_path, source)
    store = Store(tmp_path)
    store.state.begin_start(["S", "T"])
    store.state.note_trouble("T", "cannot be reached")
    get_ready(store, source)
    fetch(store, source)
    found = status_of(tmp_path)
    assert found.at_work
    store.close()
    assert not found.complete
    assert not found.missing
    assert [(s.name, s.listed, s.trouble) for s in found.sources] == [
        ("S", True, None),
        ("T", False, "cannot be reached"),
    ]


def test_what_was_left_out_is_not_complete(tmp_path):
    source = Held(a=10)
    source.left_out = [LeftOut("\\udcff", "not UTF-8", "ff")]
    pull(tmp_path, source)
    found = status_of(tmp_path)
    assert not found.complete
    assert found.to_dict()["missing"] == [
        {"source": "S", "path": "\\udcff", "why": "not UTF-8", "path_hex": "ff"}
    ]


def test_a_read_only_folder_is_read(tmp_path):
    """Nobody may write to it, and no file for sharing can be made."""
    into = tmp_path / "into"
    pull(into, Held(a=10))
    (into / ".datacollect/state.sqlite").chmod(0o444)
    (into / ".datacollect").chmod(0o555)
    into.chmod(0o555)
    try:
        assert status_of(into).complete
        assert not list((into / ".datacollect").glob("state.sqlite-*"))
    finally:
        into.chmod(0o755)
        (into / ".datacollect").chmod(0o755)


KILLED = """
import os, signal, sys
sys.path[:0] = {paths!r}
from instances.stores import Held, fetch, get_ready
from datacollect.transfer.store.store import PieceKey, Store
from pathlib import Path

store, source = Store(Path({into!r})), Held(a=10, b=100_000)
store.state.begin_start(["S"])
get_ready(store, source)
fetch(store, source)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_log_that_a_killed_pull_has_left_is_read(tmp_path):
    """All that is recorded lies in it: the file itself knows nothing."""
    paths = [str(Path(__file__).resolve().parents[2]), *sys.path]
    code = KILLED.format(paths=paths, into=str(tmp_path / "into"))
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    inside = tmp_path / "into/.datacollect"
    assert (inside / "state.sqlite-wal").stat().st_size > 0
    before = contents(inside)
    assert status_of(tmp_path / "into").complete
    assert contents(inside) == before
    # Half a frame behind, as where it was killed in the middle of a write.
    with (inside / "state.sqlite-wal").open("ab") as log:
        log.write(b"x" * 1000)
    assert status_of(tmp_path / "into").complete
    (inside / "state.sqlite-wal").unlink()
    with pytest.raises(ProblemError, match="no pull has written"):
        status_of(tmp_path / "into")


@pytest.mark.slow
def test_beside_a_pull_at_work_each_look_is_of_one_instant(tmp_path):
    """Two facts are changed together, over and over, with the log begun again in between."""
    store = Store(tmp_path)
    store.state.begin_start(["S"])
    store.state._db.execute("PRAGMA wal_autocheckpoint=20").fetchall()
    ends, n_written = threading.Event(), 0

    def write():
        nonlocal n_written
        while not ends.is_set():
            n_written += 1
            with store.state._transaction() as db:
                for key in ("one", "two"):
                    value = f"{n_written} " * 2000
                    db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (key, value))
            time.sleep(0.0005)

    thread = threading.Thread(target=write)
    thread.start()
    seen = set()
    try:
        begun_s = time.monotonic()
        while time.monotonic() < begun_s + 2.0 or len(seen) <= 10 or n_written <= 100:
            assert time.monotonic() < begun_s + 60.0, (len(seen), n_written)
            with closing(snapshot.snapshot_of(tmp_path / ".datacollect/state.sqlite")) as state:
                one, two = state.fact("one"), state.fact("two")
            assert one == two
            seen.add(one)
    finally:
        ends.set()
        thread.join()
        store.close()


def test_a_log_that_is_begun_anew_meanwhile_is_read_again(tmp_path, monkeypatch):
    pull(tmp_path / "into", Held(a=10))
    path = tmp_path / "into/.datacollect/state.sqlite"
    shutil.copy(path, tmp_path / "copy")
    log = path.with_name("state.sqlite-wal")
    log.write_bytes(b"1" * 64)
    read, n_read = snapshot._read_main, []

    def meanwhile(of):
        n_read.append(of)
        if len(n_read) == 1:
            log.write_bytes(b"2" * 64)
        elif len(n_read) == 2:
            log.unlink()
        return read(of)

    monkeypatch.setattr(snapshot, "_read_main", meanwhile)
    assert status_of(tmp_path / "into").complete
    assert len(n_read) == 3


def test_damage_is_said(tmp_path):
    pull(tmp_path, Held(a=10))
    path = tmp_path / ".datacollect/state.sqlite"
    path.write_bytes(b"no database" * 500)
    with pytest.raises(ProblemError, match="damaged"):
        status_of(tmp_path)


def test_a_full_disk_is_no_trouble_to_status(tmp_path, monkeypatch):
    """Whatever writes fails; nothing of it is asked for."""
    pull(tmp_path, Held(a=10))
    real = os.open

    def no_writing(path, flags, *args, **kwargs):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(28, "No space left on device")
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", no_writing)
    assert status_of(tmp_path).complete


def test_a_file_that_does_not_lie_where_it_was_placed_is_not_complete(tmp_path):
    source = Held(a=10, b=20, c=30)
    pull(tmp_path, source)
    (tmp_path / "S/a").unlink()
    (tmp_path / "S/b").write_bytes(b"another")
    found = status_of(tmp_path)
    assert not found.complete
    assert [(entry.path, entry.why.split(";")[0]) for entry in found.missing] == [
        ("a", "no longer exists"),
        ("b", "differs in size or times from when it came"),
    ]
    (tree,) = found.sources
    assert (tree.done_files, tree.done_bytes, tree.missing_files) == (1, 30, 2)
    assert found.recorded_bytes == 30
    (tmp_path / "S/b").unlink()
    assert pull(tmp_path, source).is_complete
    assert status_of(tmp_path).complete


def test_what_a_source_does_not_have_any_more_may_be_taken_away(tmp_path):
    source = Held(a=10, b=20)
    pull(tmp_path, source)
    del source.files["a"]
    pull(tmp_path, source)
    (tmp_path / "S/a").unlink()
    assert status_of(tmp_path).complete


def test_what_is_verified_counts_once_however_it_came(tmp_path):
    """Fetched, fetched again, adopted, and in part."""
    source = Held(a=10, b=2 * UNIT)
    pull(tmp_path, source)
    (tmp_path / "S/b").unlink()
    pull(tmp_path, source)
    assert status_of(tmp_path).recorded_bytes == 2 * UNIT + 10
    for path in (tmp_path / ".datacollect").glob("state.sqlite*"):
        path.unlink()
    assert pull(tmp_path, source).n_bytes == 0
    assert status_of(tmp_path).recorded_bytes == 2 * UNIT + 10
    source.write("c", bytes(range(256)) * 1024)
    store = Store(tmp_path)
    store.state.begin_start(["S"])
    get_ready(store, source)
    store.start(lambda *_: None)
    piece = store.needed("S")[0]
    segments = store.segments(PieceKey("S", piece))
    data = b"".join(map(source.part, segments))
    spans = [segment.span for segment in segments]
    store.put(PieceKey("S", piece), spans, memoryview(data), blake3(data).digest())
    store.stop()
    assert store.state.recorded_bytes() == 3 * UNIT + 10
    store.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("SELECT 1", "no pull has written into this folder"),
        ("UPDATE facts SET value = 99 WHERE key = 'version'", "must be state of version"),
        ("DELETE FROM facts", "holds no collection"),
    ],
)
def test_a_state_that_says_nothing_is_let_go_at_once(tmp_path, change, said):
    """A connection that is collected as garbage may find its files gone before it."""
    Store(tmp_path).close()
    db = apsw.Connection(str(tmp_path / ".datacollect/state.sqlite"))
    db.execute(change).fetchall()
    db.close()
    before = {id(each) for each in apsw.connections()}
    with pytest.raises(ProblemError, match=said) as caught:
        status_of(tmp_path)
    # What was raised holds all that was at work then.
    assert {id(each) for each in apsw.connections()} <= before
    del caught
