"""The threads that receive packets: what they are asked to settle is written."""

from __future__ import annotations

import socket
import threading
from contextlib import closing

import pytest

from datacollect.feeds.formats.packets import HEAD
from datacollect.feeds.receiver.udp_packets import PacketThreads
from datacollect.feeds.udp.receiving import Place

SIZE, RATE = 8, 1e6
PACKET = HEAD.pack(bytes(16), 0, 0, 5) + bytes(SIZE)


def send(port: int, *packets: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for packet in packets or (PACKET,):
            out.sendto(packet, ("127.0.0.1", port))


def test_what_was_counted_is_written_once_it_is_settled() -> None:
    """The core counts a packet before whoever writes has got it."""
    is_counted, goes_on = threading.Event(), threading.Event()
    written: list[object] = []
    seen: list[int] = []

    def take(heads, *_):
        is_counted.set()
        goes_on.wait(20)
        return [Place(0, 0, len(heads))]

    with closing(PacketThreads(("127.0.0.1", 0), SIZE, RATE, take, written.append)) as threads:

        def settle() -> None:
            threads.settle()
            seen.append(len(written))

        send(threads.port)
        assert is_counted.wait(20)
        settling = threading.Thread(target=settle)
        settling.start()
        settling.join(0.2)
        goes_on.set()
        settling.join()
    assert seen == [1]


def test_a_thread_that_fails_says_so() -> None:
    def take(*_):
        raise OverflowError("odd")

    with closing(PacketThreads(("127.0.0.1", 0), SIZE, RATE, take, pytest.fail)) as threads:
        send(threads.port)
        threads._threads[0].join(20)
        threads.settle()
        assert str(threads.failure) == "OverflowError: odd"


@pytest.mark.parametrize("size", [0, 1, HEAD.size - 1, HEAD.size, HEAD.size + 1, 60_000])
def test_a_packet_of_any_size_ends_no_feed(size: int) -> None:
    """Anyone may send it: those that come with it, and after it, are read."""
    seen, has_come = [], threading.Semaphore(0)

    def take(heads, last_bytes, _):
        if last_bytes == SIZE:
            seen.append(len(heads))
            has_come.release(len(heads))
        return ()

    with closing(PacketThreads(("127.0.0.1", 0), SIZE, RATE, take, pytest.fail)) as threads:
        send(threads.port, PACKET, bytes(size), PACKET)
        send(threads.port, bytes(size))
        send(threads.port, PACKET)
        for _ in range(3):
            assert has_come.acquire(timeout=20), threads.failure
        assert threads.failure is None
    assert sum(seen) == 3
