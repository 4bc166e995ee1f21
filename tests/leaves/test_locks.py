"""A lock is another's, or cannot be had at all: these are two different things to say."""

from __future__ import annotations

import errno
import fcntl
import os
from types import SimpleNamespace

import pytest

from datacollect.errors import NotWrittenError
from datacollect.exports.inventory import _noting
from datacollect.files import locks
from datacollect.files.held_folder import Held
from datacollect.files.locks import is_locked, take_lock
from datacollect.measuring.cycle.record import only_one


@pytest.fixture
def no_locks(monkeypatch):
    """A file system without locks, as some over a network."""

    def refusing(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    names = {name: getattr(fcntl, name) for name in dir(fcntl) if name.startswith("LOCK_")}
    monkeypatch.setattr(locks, "fcntl", SimpleNamespace(**names, flock=refusing))


def test_a_lock_is_one_holders(tmp_path):
    path = tmp_path / "lock"
    with path.open("w") as one, path.open("w") as other:
        assert take_lock(one.fileno())
        assert not take_lock(other.fileno())
        assert is_locked(path)
    assert not is_locked(path)


@pytest.mark.parametrize(
    "hold",
    [only_one, lambda folder: _noting(folder / "notes"), Held],
    ids=["cycle", "manifest", "bistro"],
)
def test_where_there_are_no_locks_nobody_else_is_said_to_be_at_work(tmp_path, no_locks, hold):
    with pytest.raises(NotWrittenError, match="No locks available"):
        hold(tmp_path).__enter__()
    assert not is_locked(tmp_path / "notes")
