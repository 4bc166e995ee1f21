"""Bytes both ways between a program and TLS: half-closes, resets, limits, other threads."""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress

import pytest
from instances.agents import received, sent_both_ways
from instances.tunnels import greeted_streams, tcp_pair

from datacollect.transfer.duplex.duplex import CutError, Duplex
from datacollect.transfer.rates.throttle import Throttle


class Joined:
    """Two programs whose connections are joined by TLS: ``near`` and ``far``."""

    def __init__(self, folder, **options) -> None:
        client, server = greeted_streams(folder)
        self.wires = tcp_pair()
        self.near, inner = tcp_pair()
        self.far, outer = tcp_pair()
        self.client = Duplex(client, self.wires[0], inner)
        self.server = Duplex(server, self.wires[1], outer, **options)
        self.errors: list[CutError] = []
        self._threads = [
            threading.Thread(target=self._run, args=(each,), daemon=True)
            for each in (self.client, self.server)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, duplex: Duplex) -> None:
        try:
            duplex.run()
        except CutError as error:
            self.errors.append(error)

    def join(self) -> list[str]:
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()
        return [str(error) for error in self.errors]


@pytest.fixture
def join(tmp_path):
    """Return what joins two programs, by options of the far side."""
    made = []

    def join(**options) -> Joined:
        made.append(Joined(tmp_path, **options))
        return made[-1]

    yield join
    for one in made:
        one.near.close()
        one.far.close()


@pytest.fixture
def joined(join):
    return join()


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize("first", ["near", "far"])
def test_one_side_ends_and_the_other_goes_on(joined, first):
    one, other = (joined.near, joined.far)[:: 1 if first == "near" else -1]
    one.sendall(b"question")
    one.shutdown(socket.SHUT_WR)
    assert received(other) == b"question"
    for _ in range(3):
        other.sendall(b"answer ")
        time.sleep(0.01)
    other.close()
    assert received(one) == b"answer " * 3
    assert joined.join() == []
    moved = joined.client.moved_bytes
    assert sorted(moved) == [8, 21]
    assert joined.server.moved_bytes == moved[::-1]


@pytest.mark.parametrize("first", ["near", "far"])
def test_a_reset_is_a_reset_at_the_other_end(joined, first):
    one, other = (joined.near, joined.far)[:: 1 if first == "near" else -1]
    one.sendall(b"x")
    assert other.recv(1) == b"x"
    reset(one)
    with pytest.raises(ConnectionResetError):
        other.recv(1)
    assert len(joined.join()) == 2


@pytest.mark.parametrize("half_closed", [False, True])
def test_a_wire_that_ends_without_a_word_is_a_reset_to_both_programs(joined, half_closed):
    """By FIN, as where a host on the way closes its sockets: never taken for an end."""
    joined.near.sendall(b"part")
    assert joined.far.recv(4) == b"part"
    if half_closed:
        joined.near.shutdown(socket.SHUT_WR)
        assert joined.far.recv(1) == b""
    for wire in joined.wires:
        with suppress(OSError):  # it was closed by then
            wire.shutdown(socket.SHUT_RDWR)
    for end in (joined.near, joined.far) if not half_closed else (joined.near,):
        with pytest.raises(ConnectionResetError):
            end.recv(1)
    assert len(joined.join()) == 2


def test_a_program_that_closes_with_something_unsaid_to_it_is_a_reset(joined):
    joined.near.close()
    assert joined.far.recv(1) == b""
    for _ in range(2000):  # more than all buffers on the way hold
        try:
            joined.far.sendall(bytes(2**16))
        except ConnectionError:
            break
    else:
        pytest.fail("nobody takes what is sent, and it is sent on")
    assert len(joined.join()) == 2


def test_many_bytes_both_ways_at_once_arrive_as_they_were_sent(joined):
    sent_both_ways(joined.near, joined.far, 3_000_000)
    assert joined.join() == []


@pytest.mark.slow
def test_a_receiver_that_waits_makes_the_sender_wait(joined):
    joined.near.settimeout(1.0)
    sent = 0
    with suppress(TimeoutError):
        while sent < 200 * 2**20:
            sent += joined.near.send(bytes(2**20))
    assert sent < 60 * 2**20
    joined.near.shutdown(socket.SHUT_WR)
    n_bytes, buffer = 0, bytearray(2**20)
    while part := joined.far.recv_into(buffer):
        n_bytes += part
    assert n_bytes == sent


def test_it_is_cut_off_from_another_thread(joined):
    joined.near.sendall(b"x")
    assert joined.far.recv(1) == b"x"
    joined.server.cut("the user's key was withdrawn")
    for end in (joined.near, joined.far):
        with pytest.raises(ConnectionResetError):
            end.recv(1)
    assert "the user's key was withdrawn" in joined.join()
    joined.server.cut("again")  # when it has ended
    assert joined.server.why == "the user's key was withdrawn"


def test_no_more_bytes_pass_than_are_allowed(join):
    """What is allowed is spent on the wire: less of it reaches the programs."""
    over = threading.Event()
    joined = join(most_bytes=100_000, spent=over.set)
    joined.near.settimeout(1)
    with suppress(TimeoutError):
        for _ in range(1000):
            joined.near.sendall(bytes(2**16))
    assert over.wait(30)
    joined.server.cut("its bytes are spent")
    n_bytes = len(received(joined.far))
    assert 0 < n_bytes <= 100_000
    joined.join()


def test_the_first_end_is_told(join):
    halves = []
    joined = join(half_closed=lambda: halves.append(1))
    joined.near.shutdown(socket.SHUT_WR)
    assert joined.far.recv(1) == b""
    joined.far.close()
    assert received(joined.near) == b""
    assert joined.join() == []
    assert halves == [1]


def test_it_goes_no_faster_than_a_limit(join):
    """400 kB at 1 MB/s, of which a tenth of a second's worth may pass at once."""
    joined = join(throttle=Throttle(1e6))
    begun_s = time.monotonic()
    joined.near.sendall(bytes(400_000))
    joined.near.shutdown(socket.SHUT_WR)
    assert len(received(joined.far)) == 400_000
    assert time.monotonic() - begun_s >= 0.25
    joined.far.close()
    assert received(joined.near) == b""
    assert joined.join() == []
