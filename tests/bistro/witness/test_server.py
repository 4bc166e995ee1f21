"""Witnesses end to end: a real process, and servers in a thread."""

from __future__ import annotations

import json
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from instances.events import event_of, key_of
from instances.logs import SmallLog
from instances.timestamping import NAME, WITHIN_S, World

from datacollect.bistro.formats.log.checkpoints import time_of, witness_key
from datacollect.bistro.formats.log.notes import parse_signatures
from datacollect.bistro.formats.log.tree import consistency_proof
from datacollect.bistro.formats.log.witnessing import ADD_CHECKPOINT, AddCheckpoint
from datacollect.bistro.http import clocks, web
from datacollect.bistro.http.config import WitnessConfig
from datacollect.bistro.witness.server import WitnessServer
from datacollect.errors import StoreError
from datacollect.net.keys import write_private_key

EVENT = event_of()
LOG = SmallLog(EVENT, 0, [bytes([i]) * 32 for i in range(7)])
FORK = SmallLog(EVENT, 0, [bytes([i + 1]) * 32 for i in range(7)])
KEY = witness_key("w.example", key_of("w").public)


def asked(size: int, old_size: int = 0, log: SmallLog = LOG) -> bytes:
    proof = consistency_proof(old_size, size, log.node)
    return AddCheckpoint(old_size, tuple(proof), log.head({}, size)).data


class Running:
    """A witness's process, over plain HTTP."""

    def __init__(self, file) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "datacollect", "witness", str(file), "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        ready, _, _ = select.select([self._process.stdout], [], [], WITHIN_S)
        assert ready, self._process.communicate()
        self.said = json.loads(self._process.stdout.readline())

    def post(self, body: bytes, path: str = ADD_CHECKPOINT) -> tuple[int, bytes, str]:
        request = urllib.request.Request(self.said["url"] + path, data=body)
        try:
            with urllib.request.urlopen(request, timeout=WITHIN_S) as response:
                return response.status, response.read(), response.headers["Content-Type"]
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(), error.headers["Content-Type"]

    def end(self, number: int) -> tuple[int, str]:
        self._process.send_signal(number)
        _, stderr = self._process.communicate(timeout=WITHIN_S)
        return self._process.returncode, stderr.decode()


@pytest.fixture
def file(tmp_path):
    write_private_key(tmp_path / "w.key", key_of("w"))
    path = tmp_path / "w.toml"
    path.write_text(
        'format = "datacollect-witness/1"\nname = "w.example"\nkey = "w.key"\n'
        'listen = "127.0.0.1:0"\nfolder = "signed"\nclock = "trusted"\n'
        f'logs = ["{EVENT.services[0].log.text}"]\n'
    )
    return path


@pytest.mark.slow
def test_what_it_has_signed_outlasts_a_kill(file, tmp_path):
    witness = Running(file)
    assert witness.said["vkey"] == KEY.text
    status, body, _ = witness.post(asked(3))
    assert status == 200
    (line,) = parse_signatures(body.decode(), "the answer")
    assert time_of(line, LOG.head({}, 3).note.text, KEY) is not None
    _, said = witness.end(signal.SIGKILL)
    assert "vouches for its clock" in said

    witness = Running(file)
    assert witness.post(asked(3)) == (409, b"3\n", "text/x.tlog.size")
    assert witness.post(asked(7, 3))[0] == 200
    assert witness.post(asked(7, 7, FORK))[0] == 409
    assert witness.post(b"noise")[0] == 400
    assert witness.post(b" " * 40_000)[0] == 413
    assert witness.post(b"", "/")[0] == 404
    code, said = witness.end(signal.SIGTERM)
    assert code == 0
    assert "two different logs of one size" in said
    with sqlite3.connect(tmp_path / "signed" / "witness.sqlite") as db:
        assert db.execute("SELECT body FROM evidence").fetchall() == [(asked(7, 7, FORK),)]
    db.close()


class Disk:
    """What a witness keeps, and how often; at first the disk is full."""

    def __init__(self) -> None:
        self.kept = []
        self.is_full = True

    def seen(self) -> dict:
        return {}

    def last_s(self) -> int:
        return 0

    def keep(self, decision) -> None:
        if self.is_full:
            raise StoreError("full")
        self.kept.append(decision)


def test_same_answer_is_on_the_disk_before_it_leaves_and_is_written_once():
    disk = Disk()
    logs = (EVENT.services[0].log,)
    config = WitnessConfig("w.example", key_of("w"), None, None, True, logs)
    server = WitnessServer(config, disk, lambda _: None)
    assert server._decided(asked(3)).status == 500
    # It was signed, but nobody may have it yet.
    assert server._decided(asked(3, 3)).status == 500
    disk.is_full = False
    answers = [server._decided(asked(3, 3)) for _ in range(3)]
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == len(disk.kept) == 1


def test_folder_of_another_witness_is_refused(file):
    Running(file).end(signal.SIGTERM)
    file.write_text(file.read_text().replace('"w.example"', '"v.example"'))
    done = subprocess.run(
        [sys.executable, "-m", "datacollect", "witness", str(file)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert f"the folder belongs to {KEY.text}, not to v.example+" in done.stderr


@pytest.mark.slow
def test_body_that_does_not_come_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(web, "BODY_S", 0.05)
    with World(tmp_path) as world:
        world.start_witnesses(0)
        port = int(world.event.witnesses[0].url.rpartition(":")[2])
        plain = socket.create_connection((NAME, port), WITHIN_S)
        with world.trusting.wrap_socket(plain, server_hostname=NAME) as connection:
            head = f"POST {ADD_CHECKPOINT} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"
            connection.sendall(head.encode() + b"old")
            answer = b""
            while part := connection.recv(4096):
                answer += part
        assert answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    ("state", "is_synchronised"), [(0, True), (1, True), (5, False), (-1, False)]
)
def test_clock_counts_only_where_the_kernel_says_so(monkeypatch, state, is_synchronised):
    """What adjtimex returns: a clock state, of which 5 is TIME_ERROR; -1: it failed."""

    class Library:
        @staticmethod
        def adjtimex(_):
            return state

    monkeypatch.setattr(clocks, "_libc", lambda: Library)
    assert clocks.now(is_trusted=False).is_synchronised is is_synchronised
    assert clocks.now().is_synchronised is True


def test_host_without_adjtimex_is_not_synchronised(monkeypatch):
    monkeypatch.setattr(clocks, "_libc", object)
    assert clocks.is_synchronised() is False
