"""Servers as child processes: what they write is bounded."""

from __future__ import annotations

import sys

from datacollect.bistro.one_host import processes
from datacollect.bistro.one_host.processes import Server, Watch

# Writes a line of its log for each that it reads, after one that says that it is ready.
WRITES = (
    "import sys, time\n"
    "print('ready', flush=True)\n"
    "for i in range(10**6):\n"
    "    sys.stderr.write(f'{i:06d}\\n')\n"
    "    sys.stderr.flush()\n"
    "    time.sleep(0.0005)\n"
)


def test_log_keeps_its_length_and_what_came_before_beside(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "MOST_LOG_BYTES", 700)
    log, kept = tmp_path / "a.log", tmp_path / "a.log.1"
    server = Server("a", [sys.executable, "-c", WRITES], log, {})
    watch, said = Watch([server], print), []
    server.start()
    try:
        server.await_ready()
        seen = set()
        while len(seen) < 2:
            watch.look()
            if kept.exists():
                seen.add(kept.read_text()[:6])
        # It is cut where it lies: the server writes on into the same file, from its beginning.
        assert "\0" not in kept.read_text()
        assert server.code is None
    finally:
        server.end()
    assert said == []


def test_log_is_cut_also_where_nothing_more_can_be_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "MOST_LOG_BYTES", 10)

    def full(*_):
        raise OSError(28, "no space left")

    monkeypatch.setattr(processes.shutil, "copyfile", full)
    log = tmp_path / "a.log"
    log.write_text("x" * 11)
    Server("a", [], log, {}).bound_log()
    assert log.read_text() == ""
