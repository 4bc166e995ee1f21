"""Many connections, read in turns: who waits holds none, and nothing is lost at an end."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import ExitStack

import pytest

from datacollect.net.tls_stream import RECORD_BYTES
from datacollect.net.turns import TURN_BYTES, InTurns

ROOM = 8 * RECORD_BYTES


def pair(held: ExitStack) -> tuple[socket.socket, socket.socket]:
    """Return both ends of a connection."""
    near, far = socket.socketpair()
    held.callback(near.close)
    held.callback(far.close)
    near.settimeout(20)
    return near, far


class Noting:
    """A turn that notes how many hold it at a time."""

    def __init__(self) -> None:
        self.lock, self.n, self.most, self.taken = threading.Lock(), 0, 0, 0

    def __enter__(self) -> bool:
        self.lock.acquire()
        self.n += 1
        self.taken += 1
        self.most = max(self.most, self.n)
        return True

    def __exit__(self, *_: object) -> None:
        self.n -= 1
        self.lock.release()


class Broken(socket.socket):
    """Brings some bytes, then an error, as often as it is asked."""

    def recv_into(self, buffer: memoryview, *_: int) -> int:  # type: ignore[override]
        n_bytes = super().recv_into(buffer)
        if n_bytes == 0:
            raise ssl.SSLError("decryption failed")
        return n_bytes


class Unfinished(socket.socket):
    """Its record never gets whole."""

    def recv_into(self, buffer: memoryview, *_: int) -> int:  # type: ignore[override]
        super().recv_into(buffer)
        raise ssl.SSLWantReadError


def of_kind(kind: type[socket.socket], near: socket.socket) -> socket.socket:
    """Return the same connection, of a class of its own."""
    return kind(near.family, near.type, fileno=near.detach())


def test_who_waits_for_data_holds_no_turn() -> None:
    """There is one turn; the first connection brings nothing, the second is read all the same."""
    with ExitStack() as held:
        (silent, silent_far), (near, far) = pair(held), pair(held)
        turns, room = Noting(), memoryview(bytearray(ROOM))
        waiting = threading.Thread(
            target=lambda: InTurns(silent, turns).recv_into(memoryview(bytearray(ROOM)))
        )
        waiting.start()
        far.sendall(b"a" * 1000)
        assert InTurns(near, turns).recv_into(room) == 1000
        assert waiting.is_alive()
        silent_far.sendall(b"b")
        waiting.join(20)
        assert not waiting.is_alive()
        assert (turns.most, turns.taken) == (1, 2)


def test_a_turn_reads_all_that_is_there_and_no_more_than_it_may() -> None:
    with ExitStack() as held:
        near, far = pair(held)
        sender = threading.Thread(target=far.sendall, args=(bytes(TURN_BYTES + 1000),))
        sender.start()
        reader, room, read = InTurns(near, Noting()), memoryview(bytearray(2 * TURN_BYTES)), []
        while sum(read) < TURN_BYTES + 1000:
            read.append(reader.recv_into(room))
        sender.join(20)
        assert max(read) <= TURN_BYTES
        assert near.gettimeout() == 20


def test_what_came_before_an_end_or_an_error_is_returned_first() -> None:
    with ExitStack() as held:
        (near, far), (other, other_far) = pair(held), pair(held)
        far.sendall(b"abc")
        far.close()
        other_far.sendall(b"abcd")
        other_far.close()
        room = memoryview(bytearray(ROOM))
        ending = InTurns(near)
        assert [ending.recv_into(room) for _ in range(3)] == [3, 0, 0]
        broken = InTurns(held.enter_context(of_kind(Broken, other)))
        broken._connection.settimeout(20)
        assert broken.recv_into(room) == 4
        with pytest.raises(ssl.SSLError, match="decryption failed"):
            broken.recv_into(room)


@pytest.mark.parametrize("brings", [b"", b"x"])
def test_a_record_that_does_not_come_is_waited_for_once(brings: bytes) -> None:
    """Bytes of a record that is not whole buy no time, nor does a peer that is silent."""
    with ExitStack() as held:
        near, far = pair(held)
        unfinished = held.enter_context(of_kind(Unfinished, near))
        unfinished.settimeout(0.2)
        over = threading.Event()

        def trickle() -> None:
            while brings and not over.wait(0.02):
                far.sendall(brings)

        feeder = threading.Thread(target=trickle)
        feeder.start()
        try:
            with pytest.raises(TimeoutError):
                InTurns(unfinished).recv_into(memoryview(bytearray(ROOM)))
        finally:
            over.set()
            feeder.join(20)
        assert unfinished.gettimeout() == 0.2
