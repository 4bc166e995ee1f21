"""Agents over real sockets: whatever is served arrives, directly and through blind relays."""

from __future__ import annotations

import os

import blake3
import pytest
from instances.agents import running, session_with, source_ticket, write_agent

from datacollect.errors import RefusedError
from datacollect.transfer.wire.messages import Read, Segment


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
        read = Read(tuple(Segment(file, 0, file.n_bytes) for file in page.files))
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
        with pytest.raises(RefusedError, match="none is given") as caught:
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
