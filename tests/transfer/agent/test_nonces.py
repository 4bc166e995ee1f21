"""Used tickets survive restarts, torn lines and long lives; one agent holds them."""

from __future__ import annotations

import errno
import os

import pytest

from datacollect.errors import NotWrittenError, ProblemError
from datacollect.transfer.agent.shell import nonces as module
from datacollect.transfer.agent.shell.nonces import UsedNonces


def test_a_nonce_survives_until_its_time(tmp_path):
    path = tmp_path / "n"
    nonces = UsedNonces(path, 0.0)
    nonces.keep("a==", 100.0, 0.0)
    nonces.keep("b==", 50.0, 0.0)
    nonces.close()
    for now_s, left in ((0.0, {"a==": 100.0, "b==": 50.0}), (50.0, {"a==": 100.0}), (100.0, {})):
        nonces = UsedNonces(path, now_s)
        assert nonces.still_counting(now_s) == left
        nonces.close()


def test_it_is_in_the_kernels_hands_at_once(tmp_path):
    """Whoever is killed now has kept it."""
    nonces = UsedNonces(tmp_path / "n", 0.0)
    nonces.keep("a==", 100.0, 0.0)
    assert (tmp_path / "n").read_text() == "100.000 a==\n"
    nonces.close()


def test_torn_and_strange_lines_count_as_nothing(tmp_path):
    (tmp_path / "n").write_bytes(b"100.0 a==\nxyz\n\xff\xff 1\n70.5 b==\n900.0 c=")
    nonces = UsedNonces(tmp_path / "n", 1.0)
    assert nonces.still_counting(1.0) == {"a==": 100.0, "b==": 70.5}
    nonces.keep("d==", 80.0, 1.0)
    nonces.close()
    nonces = UsedNonces(tmp_path / "n", 1.0)
    assert set(nonces.still_counting(1.0)) == {"a==", "b==", "d=="}
    nonces.close()


def test_the_file_stays_short(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_LINES", 10)
    nonces = UsedNonces(tmp_path / "n", 0.0)
    for i in range(95):
        nonces.keep(f"{i}==", i + 5.0, float(i))
    nonces.close()
    lines = (tmp_path / "n").read_text().splitlines()
    assert len(lines) <= 11
    assert {f"{i}==" for i in range(91, 95)} <= {line.split()[1] for line in lines}
    # It is still held by one at a time, though it was rewritten.
    nonces = UsedNonces(tmp_path / "n", 94.0)
    with pytest.raises(ProblemError, match="another agent that is running"):
        UsedNonces(tmp_path / "n", 94.0)
    nonces.close()


def test_a_line_that_was_torn_spoils_no_other(tmp_path, monkeypatch):
    """A part of it fits onto the disk, then nothing; later there is room again."""
    nonces = UsedNonces(tmp_path / "n", 0.0)
    room = [10]

    def write(number, data):
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        data, room[0] = data[: room[0]], 0
        return real(number, data)

    real = os.write
    monkeypatch.setattr(os, "write", write)
    with pytest.raises(NotWrittenError, match="No space left on device"):
        nonces.keep("refused==", 1000.0, 0.0)
    monkeypatch.undo()
    nonces.keep("kept==", 1000.0, 0.0)
    nonces.close()
    nonces = UsedNonces(tmp_path / "n", 0.0)
    assert nonces.still_counting(0.0) == {"kept==": 1000.0}
    nonces.close()


def test_many_that_count_are_not_written_anew_each_time(tmp_path, monkeypatch):
    """Ten thousand in ten minutes, and each more would cost as many lines."""
    monkeypatch.setattr(module, "MOST_LINES", 10)
    nonces = UsedNonces(tmp_path / "n", 0.0)
    written = []
    real = nonces._replace
    monkeypatch.setattr(nonces, "_replace", lambda data: written.append(data) or real(data))
    for i in range(1000):
        nonces.keep(f"{i}==", 1e6, 0.0)
    assert len(nonces.still_counting(0.0)) == 1000
    nonces.close()
    assert len(written) <= 8
    assert sum(data.count(b"\n") for data in written) <= 2000


def test_where_it_cannot_be_written(tmp_path):
    with pytest.raises(NotWrittenError, match="name another folder as state"):
        UsedNonces(tmp_path / "no/such", 0.0)
