"""Agents over real sockets: whatever is served arrives, directly and through blind relays."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time

import blake3
import pytest
from instances.agents import running, session_with, source_ticket, write_agent

from datacollect.errors import RefusedError, TransferError
from datacollect.net.tls import client_context
from datacollect.transfer.protocol.messages import Read, WireSegment


@pytest.fixture
def chain(tmp_path):
    """S1 serves three files; R2 relays to it, R1 to R2."""
    source = write_agent(tmp_path, "S1", serve="data")
    (tmp_path / "data/x").mkdir()
    (tmp_path / "data/a.bin").write_bytes(os.urandom(3_000_001))
    (tmp_path / "data/x/b").write_bytes(b"hello")
    (tmp_path / "data/empty").write_bytes(b"")
    with (
        running(source) as s1,
        running(write_agent(tmp_path, "R2", connect_to={"S1": s1.place})) as r2,
        running(write_agent(tmp_path, "R1", connect_to={"R2": r2.place})) as r1,
    ):
        yield s1, r2, r1


@pytest.mark.parametrize("n_relays", [0, 1, 2])
def test_all_bytes_arrive_through_any_number_of_relays(chain, tmp_path, n_relays):
    s1, r2, r1 = chain
    relays = [[], [r2], [r1, r2]][n_relays]
    with session_with(s1, *relays) as session:
        facts = session.agent()
        assert (facts.name, facts.serves, facts.relays_to) == ("S1", True, ())
        page = session.inventory(source_ticket("S1"))
        assert [file.path for file in page.files] == ["a.bin", "empty", "x/b"]
        read = Read(tuple(WireSegment(file, 0, file.n_bytes) for file in page.files))
        expected = (tmp_path / "data/a.bin").read_bytes() + b"hello"
        for _ in range(3):  # sent before the first is answered
            session.send_read(read)
        for _ in range(3):
            buffer = bytearray(read.n_bytes)
            answer = session.receive_into(memoryview(buffer))
            assert (answer.n_bytes, answer.status) == (len(expected), 0)
            assert bytes(buffer) == expected
            assert answer.blake3 == blake3.blake3(expected).digest()
        assert session.received_bytes == 3 * len(expected)
        assert session.confirm(page.files).changed == ()


def test_without_a_ticket_only_facts_are_told(chain):
    with session_with(chain[0]) as session:
        assert session.agent().name == "S1"
        with pytest.raises(RefusedError, match="no ticket is given") as caught:
            session.inventory()
        assert caught.value.status == 401


def test_relays_tell_what_tcp_knows_of_both_sides(chain):
    s1, r2, _ = chain
    with session_with(s1, r2) as session, session_with(r2) as control:
        session.inventory(source_ticket("S1"))
        rows = {row.kind: row for row in control.sessions(source_ticket("R2"))}
        assert rows["relay"].far_side["rtt_s"] > 0
        assert rows["relay"].collector_side["received_bytes"] > 500
        assert rows["source"].far_side is None


def test_detail_reasons_and_hashes_over_a_session(tmp_path):
    """What newer collectors ask for: folders, modes, holes; per file why; hashes without bytes."""
    source = write_agent(tmp_path, "S1", serve="data")
    (tmp_path / "data/x").mkdir(mode=0o750)
    (tmp_path / "data/a").write_bytes(b"0123456789")
    (tmp_path / "data/a").chmod(0o600)
    (tmp_path / "data/x/b").write_bytes(b"hello")
    with running(source) as s1, session_with(s1) as session:
        assert session.agent().features == ("detail", "reasons", "hashes", "stays", "seals")
        page = session.inventory(source_ticket("S1"), detail=True)
        a, b = page.files
        assert (a.mode, [folder.path for folder in page.folders]) == (0o600, ["x"])
        read = Read((WireSegment(a, 2, 5), WireSegment(b, 0, 5), WireSegment(a, 0, 0)))
        expected = [blake3.blake3(part).digest() for part in (b"23456", b"hello", b"")]
        assert list(session.digests(read)) == expected
        (tmp_path / "data/a").write_bytes(b"changed")
        assert session.digests(read) == (None, expected[1], None)
        (tmp_path / "data/x/b").unlink()
        assert session.digests(read) == (None, None, None)
        found = session.confirm(page.files)
        assert (found.changed, found.gone, found.unreadable) == (("a",), ("x/b",), ())


def test_a_read_that_fails_is_told_by_file_in_the_same_session(tmp_path, monkeypatch):
    source = write_agent(tmp_path, "S1", serve="data")
    for name in "abc":
        (tmp_path / "data" / name).write_bytes(b"0123456789")
    bad = (tmp_path / "data/b").stat().st_ino
    real = os.preadv

    def preadv(number, buffers, offset):
        if os.fstat(number).st_ino == bad:
            raise OSError(5, "Input/output error")
        return real(number, buffers, offset)

    with running(source) as s1, session_with(s1) as session:
        files = session.inventory(source_ticket("S1")).files
        monkeypatch.setattr(os, "preadv", preadv)
        buffer = bytearray(30)
        session.send_read(Read(tuple(WireSegment(file, 0, 10) for file in files)))
        assert session.receive_into(memoryview(buffer)).status == 2
        monkeypatch.undo()
        found = session.confirm(files)
        assert (found.changed, found.gone) == ((), ())
        assert found.unreadable == (("b", "Input/output error"),)


def test_an_answer_under_way_is_told_as_it_moves(tmp_path):
    """Of a large file only a part fits into the kernel's buffers; whoever reads it is slow."""
    source = write_agent(tmp_path, "S1", serve="data")
    with (tmp_path / "data/a").open("wb") as file:
        file.truncate(64 * 2**20)
    with running(source) as s1, session_with(s1) as session:
        session.inventory(source_ticket("S1"))
        [other] = s1.agent._shell._core.sessions.values()
        asked_s = other.active_s
        file = session.inventory().files[0]
        for _ in range(4):
            session.send_read(Read((WireSegment(file, 0, 16 * 2**20),)))
        until_s = time.monotonic() + 60
        while (other.active_s <= asked_s or not other.busy) and time.monotonic() < until_s:
            time.sleep(0.01)
        begun_s = other.active_s
        buffer = memoryview(bytearray(4096))
        # Between two answers it is not busy, for an instant.
        while not (is_told := other.active_s > begun_s and other.busy):
            assert time.monotonic() < until_s
            with contextlib.suppress(TransferError):
                session._channel.fill(buffer)
        assert is_told


def test_what_collectors_of_the_version_before_send_is_answered_as_before(tmp_path):
    """Their very bytes; keys that they do not know may stand beside those that they do."""
    source = write_agent(tmp_path, "S1", serve="data")
    (tmp_path / "data/a").write_bytes(b"0123456789")
    found = (tmp_path / "data/a").stat()
    row = f'["a",10,{found.st_mtime_ns},{found.st_ino}'
    asked = [
        ("GET", "/v1/agent", ""),
        ("GET", "/v1/inventory", ""),
        ("POST", "/v1/confirm", f'{{"files":[{row}]]}}'),
        ("POST", "/v1/sessions", "{}"),
        ("POST", "/v1/read", f'{{"segments":[{row},2,3]]}}'),
    ]
    with running(source) as s1:
        lines = f"Host: S1\r\nAuthorization: Bearer {source_ticket('S1')}\r\n"
        answers = []
        for method, target, body in asked:
            length = f"Content-Length: {len(body)}\r\n" if body else ""
            head = f"{method} {target} HTTP/1.1\r\n{lines}{length}Connection: close\r\n\r\n"
            plain = socket.create_connection(s1.address, timeout=10)
            with client_context().wrap_socket(plain) as tls:
                tls.sendall((head + body).encode())
                raw = b""
                while part := tls.recv(65536):
                    raw += part
            assert raw.startswith(b"HTTP/1.1 200 OK\r\n")
            answers.append(raw.partition(b"\r\n\r\n")[2])
    facts, page, confirmed, sessions = map(json.loads, (answers[0], *_first_lines(answers[1:4])))
    assert facts["format"] == "datacollect-agent-facts/1"
    assert facts.keys() >= {"name", "version", "time_s", "serves", "relays_to"}
    stat = {"bytes": 10, "mtime_ns": found.st_mtime_ns, "inode": found.st_ino}
    assert page == {"path": "a", **stat}
    assert (confirmed["changed"], confirmed["gone"]) == ([], [])
    keys = {"session", "kind", "nonce", "up_bytes", "down_bytes", "collector_side", "far_side"}
    assert sessions["sessions"][0].keys() == keys
    assert answers[4] == b"234" + bytes([0]) + blake3.blake3(b"234").digest()


def _first_lines(bodies):
    return [body.splitlines()[0] for body in bodies]
