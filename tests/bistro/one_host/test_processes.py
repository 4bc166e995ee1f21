"""Servers as child processes: what they write is kept, and bounded."""

from __future__ import annotations

import re
import sys

import pytest

from datacollect.bistro.one_host import server_log
from datacollect.bistro.one_host.processes import Server
from datacollect.errors import NotWrittenError, StoreError

# Says that it is ready, and writes more lines than a pipe holds.
N_LINES = 20_000
WRITES = (
    "import sys\n"
    "print('ready', flush=True)\n"
    f"for i in range({N_LINES}):\n"
    "    sys.stderr.write(f'{i:06d}\\n')\n"
)


def ended(log, program=WRITES):
    """Run a program to its end, of which a server's log has all."""
    server = Server("a", [sys.executable, "-c", program], log, {})
    server.start()
    server.await_ready()
    server._process.wait()
    server.end()


def test_a_log_that_is_long_is_kept_beside_and_no_line_in_between_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(server_log, "MOST_LOG_BYTES", 7000)
    monkeypatch.setattr(server_log, "_BLOCK_BYTES", 700)
    log, kept = tmp_path / "a.log", tmp_path / "a.log.1"
    ended(log)
    now = log.read_text() if log.exists() else ""
    lines = [*map(int, (kept.read_text() + now).split())]
    assert lines == [*range(lines[0], N_LINES)]
    assert len(now) < 7000 <= kept.stat().st_size <= 7700


def test_a_log_that_cannot_be_kept_beside_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(server_log, "MOST_LOG_BYTES", 7000)
    log, kept = tmp_path / "a.log", tmp_path / "a.log.1"
    kept.mkdir()
    ended(log)
    assert log.stat().st_size < 7000 + server_log._BLOCK_BYTES


def test_a_server_runs_on_where_its_log_takes_nothing_more(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "no space left")

    monkeypatch.setattr(server_log.ServerLog, "_write", full)
    ended(tmp_path / "a.log")
    assert (tmp_path / "a.log").read_bytes() == b""


def test_a_log_goes_on_where_somebody_has_removed_the_file(tmp_path):
    log = tmp_path / "a.log"
    ended(log, "import sys; print('ready'); sys.stderr.write('one')")
    log.unlink()
    ended(log, "import sys; print('ready'); sys.stderr.write('two')")
    assert log.read_text() == "two"


def test_the_last_words_of_a_server_that_does_not_start_are_told(tmp_path):
    program = "import sys; sys.stderr.write('on its way\\nerror: no room; make some\\n')"
    server = Server("witness", [sys.executable, "-c", program], tmp_path / "a.log", {})
    server.start()
    with pytest.raises(
        StoreError, match=re.escape("has ended: no room; make some; its whole log:")
    ):
        server.await_ready()
    server.end()


def test_a_log_that_cannot_be_written_is_named(tmp_path):
    server = Server("a", [sys.executable, "-c", WRITES], tmp_path / "absent" / "a.log", {})
    with pytest.raises(NotWrittenError, match=r"absent/a\.log"):
        server.start()
