"""A state of version 1 is brought up in one go: what was verified stays so."""

from pathlib import Path

import apsw
import pytest
from instances.stores import UNIT, Held, pull

from datacollect.errors import ProblemError
from datacollect.transfer.store.state import schema
from datacollect.transfer.store.state.state import FileState, State
from datacollect.transfer.store.status import status_of, verify_of
from datacollect.transfer.store.store import Store

# Written by the code of version 1, when half of it had come; made text by SQLite.
OLD = Path(__file__).with_name("state_version_1.sql")


@pytest.fixture
def source():
    """What it was collecting."""
    held = Held()
    files = {
        "a/done": b"d" * 100,
        "empty": b"",
        "large": b"l" * (UNIT + 10),
        "later": b"w" * (2 * UNIT),
    }
    for i, (path, data) in enumerate(files.items()):
        held.write(path, data, mtime_ns=1_500_000_000_123_456_789 + i, inode=i + 1)
    return held


@pytest.fixture
def old(tmp_path, source):
    """Its folder, as it was left."""
    inside = tmp_path / ".datacollect"
    (inside / "incoming").mkdir(parents=True)
    db = apsw.Connection(str(inside / "state.sqlite"))
    db.execute("PRAGMA journal_mode=WAL").fetchall()
    db.execute(OLD.read_text())
    db.close()
    for path in ("a/done", "empty", "large"):
        (tmp_path / "S" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "S" / path).write_bytes(source.files[path][1])
    (inside / "incoming/4").write_bytes(b"w" * (2 * UNIT - 10 - 100))
    return tmp_path


def test_what_was_verified_is_not_fetched_again(old, source):
    pulled = pull(old, source)
    assert pulled.is_complete
    assert pulled.n_lost == 0
    # Of 3 * UNIT + 110 bytes the first two pieces were recorded; of what is not whole only the hash
    # of a piece together with another file was.
    assert pulled.n_bytes == 2 * UNIT
    assert all((old / "S" / p).read_bytes() == data for p, (_, data) in source.files.items())
    assert pull(old, source).n_bytes == 0


def test_what_was_altered_is_kept_and_named(old, source):
    (old / "S/large").write_bytes(b"mine")
    pulled = pull(old, source)
    assert pulled.missing.keys() == {"large"}
    assert (old / "S/large").read_bytes() == b"mine"


def test_all_that_is_known_is_taken_over(old):
    store = Store(old)
    state = store.state
    assert state.fact("version") == schema.VERSION
    assert state.fact("number") == "abc"
    assert [*state.rates()] == [("S",)]
    files = state.known_files("S")
    assert files["later"].mtime_ns == 1_500_000_000_123_456_789 + 3
    assert state.counts()["S"] == {
        FileState.DONE: (3, UNIT + 110),
        FileState.WAITING: (1, 2 * UNIT),
    }
    assert not state.is_complete()
    store.close()


def test_status_of_an_old_state_changes_nothing(old):
    path = old / ".datacollect/state.sqlite"
    before = path.read_bytes()
    found = status_of(old)
    assert not found.complete
    assert [(s.name, s.done_files, s.waiting_files, s.listed) for s in found.sources] == [
        ("S", 3, 1, False)
    ]
    assert path.read_bytes() == before


def test_old_files_are_verified_by_their_pieces(old, source):
    """The last bytes of `large` share a piece with a file that is not done."""
    verified = verify_of(old)
    assert verified.is_sound
    assert [each.path for each in verified.unverifiable] == ["large"]
    (old / "S/a/done").write_bytes(b"D" * 100)
    assert {each.path for each in verify_of(old).altered} == {"a/done", "large"}
    pull(old, source)


def test_a_migration_is_all_or_nothing(old, monkeypatch):
    path = old / ".datacollect/state.sqlite"
    broken = schema._FROM_1.replace("UPDATE facts", "UPDATE fatcs")
    with monkeypatch.context() as patch:
        patch.setattr(schema, "_FROM_1", broken)
        with pytest.raises(Exception, match="fatcs"):
            State(path)
    state = State(path)
    assert state.counts()["S"][FileState.DONE] == (3, UNIT + 110)
    state.close()


def test_times_before_1970_are_taken_over(old):
    path = old / ".datacollect/state.sqlite"
    db = apsw.Connection(str(path))
    db.execute("UPDATE files SET mtime_ns = -1 WHERE path = 'later'")
    db.execute("UPDATE files SET mtime_ns = -3000000000 WHERE path = 'large'")
    db.close()
    state = State(path)
    times = {name: file.mtime_ns for name, file in state.known_files("S").items()}
    assert (times["later"], times["large"]) == (-1, -3_000_000_000)
    state.close()


def test_a_newer_state_is_left_alone(tmp_path):
    Store(tmp_path).close()
    path = tmp_path / ".datacollect/state.sqlite"
    db = apsw.Connection(str(path))
    db.execute("UPDATE facts SET value = 99 WHERE key = 'version'")
    db.close()
    for open_it in (lambda: Store(tmp_path), lambda: status_of(tmp_path)):
        with pytest.raises(ProblemError, match="must be state of version 3 or before, got 99"):
            open_it()


def test_a_file_of_another_program_is_left_alone(tmp_path):
    (tmp_path / ".datacollect").mkdir()
    db = apsw.Connection(str(tmp_path / ".datacollect/state.sqlite"))
    db.execute("CREATE TABLE mine (x); INSERT INTO mine VALUES (1)")
    db.close()
    with pytest.raises(ProblemError, match="it holds no collection"):
        Store(tmp_path)
    db = apsw.Connection(str(tmp_path / ".datacollect/state.sqlite"))
    assert db.execute("SELECT * FROM mine").fetchall() == [(1,)]
