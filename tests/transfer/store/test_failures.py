"""Full, failing and read-only disks are distinguished from damage, and nothing is lost."""

import errno
import os
import re

import apsw
import pytest
from instances.stores import UNIT, Held, pull

from datacollect.errors import DatacollectError, NotWrittenError, ProblemError, StoreError
from datacollect.transfer.store.folder import opening
from datacollect.transfer.store.folder.log import Log
from datacollect.transfer.store.state.failures import StateErrors
from datacollect.transfer.store.state.state import State
from datacollect.transfer.store.store import Store

REMEDY = "nothing verified is lost: {}, and start the same command again"


def error_of(call):
    """Return what a call raises on purpose; None where it ends well."""
    try:
        call()
    except DatacollectError as error:
        return error
    return None


class FailingVfs(apsw.VFS):
    """SQLite's files fail at the n-th call that changes anything, and from then on."""

    def __init__(self, error, n):
        self.name, self.error, self.left = f"failing-{id(self)}", error, n
        super().__init__(self.name, "unix", makedefault=True)

    def xOpen(self, name, flags):  # noqa: N802 - SQLite's name
        return FailingFile(self, name, flags)

    def step(self):
        self.left -= 1
        if self.left < 0:
            raise self.error


class FailingFile(apsw.VFSFile):
    def __init__(self, vfs, name, flags):
        super().__init__("unix", name, flags)
        self.vfs = vfs

    def xWrite(self, data, offset):  # noqa: N802 - SQLite's name
        self.vfs.step()
        super().xWrite(data, offset)

    def xSync(self, flags):  # noqa: N802 - SQLite's name
        self.vfs.step()
        super().xSync(flags)

    def xTruncate(self, size):  # noqa: N802 - SQLite's name
        self.vfs.step()
        super().xTruncate(size)


ERRORS = {
    "full": (apsw.FullError("full"), "its disk is full", "make room"),
    "failing": (
        apsw.IOError("disk I/O error"),
        "disk I/O error|no room",
        "make room, or repair the disk",
    ),
    "read-only": (
        apsw.ReadOnlyError("read-only"),
        "it, or its disk, is read-only",
        "give this user permission to write there, or mount it so",
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", ERRORS)
def test_whenever_the_state_cannot_be_written_nothing_is_lost(tmp_path, kind):
    """At each call in turn; afterwards the same start ends well."""
    error, words, remedy = ERRORS[kind]
    n_failed = 0
    for n in range(0, 200, 3):
        into = tmp_path / f"{kind} {n}"
        source = Held(a=10, b=2 * UNIT, c=0)
        vfs = FailingVfs(error, n)
        try:
            caught = error_of(lambda into=into, source=source: pull(into, source))
            is_reached = vfs.left < 0
        finally:
            vfs.left = 10**9
            vfs.unregister()
        if caught is not None:
            assert isinstance(caught, StoreError)
            assert caught.exit_code == 3
            assert re.search(f"cannot be written: .*({words})", str(caught))
            assert str(caught).endswith(REMEDY.format(remedy))
            n_failed += 1
        assert pull(into, source).is_complete
        if not is_reached:
            break
    else:
        pytest.fail("it never came to its end")
    assert n_failed > 5


def test_sqlite_errors_are_told_apart(tmp_path):
    path = tmp_path / "into/.datacollect/state.sqlite"
    path.parent.mkdir(parents=True)
    errors = StateErrors(path)
    for kind, word in (
        (apsw.FullError, "its disk is full"),
        (apsw.BusyError, "another program holds its state open"),
        (apsw.LockedError, "another program holds its state open"),
        (apsw.ReadOnlyError, "read-only"),
        (apsw.CantOpenError, "unable"),
        (apsw.SQLError, "unable"),
    ):
        found = errors.of(kind("unable to do it"))
        assert isinstance(found, StoreError)
        assert word in str(found)
        assert str(found).startswith(f"{tmp_path / 'into'}: cannot be written: ")
    for damage in (apsw.CorruptError("x"), apsw.NotADBError("x"), apsw.SQLError("malformed x")):
        found = errors.of(damage)
        assert isinstance(found, ProblemError)
        assert found.exit_code == 2
        assert "move state.sqlite and its neighbours state.sqlite-* away, and nothing" in str(found)


def test_a_disk_that_is_full_makes_an_error_of_its_own_kind(tmp_path, monkeypatch):
    """SQLite tells of ENOSPC at syncing as of an I/O error."""
    found = os.statvfs(tmp_path)
    full = os.statvfs_result((*found[:3], 0, 0, *found[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    errors = StateErrors(tmp_path / ".datacollect/state.sqlite")
    assert "its disk is full" in str(errors.of(apsw.IOError("disk I/O error")))


def test_damage_leaves_files_where_they_are(tmp_path):
    """Obeyed, the remedy fetches nothing again."""
    source = Held(a=10, b=2 * UNIT)
    pull(tmp_path, source)
    path = tmp_path / ".datacollect/state.sqlite"
    path.write_bytes(b"no database" * 500)
    with pytest.raises(ProblemError, match="compared by hash, and not fetched again"):
        pull(tmp_path, source)
    for file in path.parent.glob("state.sqlite*"):
        file.rename(tmp_path / file.name)
    again = pull(tmp_path, source)
    assert again.is_complete
    assert again.n_bytes == 0


REMEDIES = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room, or have the quota raised",
    errno.EIO: "repair the disk",
    errno.EROFS: "mount it for writing",
    errno.EMFILE: "ulimit -",
}


@pytest.mark.parametrize("number", REMEDIES)
@pytest.mark.parametrize("n", range(6))
def test_opening_on_such_a_disk_is_no_bad_input(tmp_path, monkeypatch, number, n):
    calls = []

    def fail(*args, **kwargs):
        calls.append(args)
        if len(calls) > n:
            raise OSError(number, os.strerror(number))
        return real(*args, **kwargs)

    for name in ("open", "mkdir"):
        real = getattr(os, name)
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(opening.os, name, fail)
            error = error_of(lambda name=name: Store(tmp_path / f"{name}{n}").close())
            if error is not None:
                assert error.exit_code == 3
                assert REMEDIES[number] in str(error)
                assert number == errno.ENOSPC or "; make room, and" not in str(error)
        Store(tmp_path / f"{name}{n}").close()  # nothing is locked, nothing is broken


def test_opening_what_is_no_folder_is_bad_input(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        NotWrittenError, match=r"is not a folder that can be written to: .*name another"
    ) as caught:
        Store(tmp_path / "file")
    assert caught.value.exit_code == 2


def test_a_log_that_cannot_be_opened_says_so(tmp_path):
    with pytest.raises(NotWrittenError, match=r"log\.jsonl"):
        Log(tmp_path / "nowhere/log.jsonl")


def test_a_lock_is_given_back_when_the_state_cannot_be_opened(tmp_path):
    Store(tmp_path).close()
    path = tmp_path / ".datacollect/state.sqlite"
    good = path.read_bytes()
    path.write_bytes(b"no database" * 500)
    with pytest.raises(ProblemError, match="damaged"):
        Store(tmp_path)
    path.write_bytes(good)
    Store(tmp_path).close()


def test_a_transaction_that_a_full_disk_has_ended_raises_what_ended_it(tmp_path):
    state = State(tmp_path / "state.sqlite")

    def end():
        with state._transaction() as db:
            db.execute("INSERT OR REPLACE INTO facts VALUES ('x', 1)")
            db.execute("ROLLBACK")
            raise apsw.FullError("database or disk is full")

    with pytest.raises(StoreError, match="its disk is full"):
        end()
    assert state.fact("x") is None
    state.set_fact("x", 2)
    state.close()
