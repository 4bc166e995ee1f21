"""Many packets by one call of the kernel, and one by one where it cannot."""

from __future__ import annotations

import os
import select
import socket

import pytest
from instances.ports import free_port

from datacollect.feeds.formats.packets import HEAD
from datacollect.feeds.udp.heads import heads_of
from datacollect.feeds.udp.pacing import Pacing
from datacollect.feeds.udp.sockets import (
    UDP_SEGMENT,
    PacketSender,
    before_others,
    prepare_receiver,
    receive_together,
)
from datacollect.net.udp import bound_udp, connected_udp

NONCE, SIZE = bytes(range(16)), HEAD.size + 100


def packets(n: int) -> list[bytes]:
    return [HEAD.pack(NONCE, i, i, 7) + bytes([i]) * 100 for i in range(n)]


def received(there: socket.socket, n: int) -> list[int]:
    """Return the numbers of what comes, until there are so many."""
    there.settimeout(10.0)
    found: list[int] = []
    while len(found) < n:
        buffer = bytearray(65_536)
        got = receive_together(there, buffer)
        found += heads_of(memoryview(buffer)[: got.n_bytes], got.segment_bytes)["message"].tolist()
    return found


@pytest.mark.parametrize("refuses", [False, True])
def test_packets_arrive_as_they_were_whether_the_kernel_cuts_them_or_not(refuses: bool) -> None:
    with bound_udp(("127.0.0.1", 0), "feed", lambda _: None) as there:
        assert prepare_receiver(there) > 0
        with connected_udp(there.getsockname(), "D") as here:
            sender = PacketSender(here, SIZE)
            if refuses:
                # As an interface without check sums does: more cuts than there may be.
                here.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1)
            sent = b"".join(packets(16))
            assert sender.send(sent) == 0
            assert sender.is_segmented != refuses
            assert received(there, 16) == list(range(16))


@pytest.mark.parametrize("size", [SIZE, 1452, 8952])
def test_one_call_takes_a_quantum(size: int) -> None:
    n = Pacing(1e6, size).quantum
    with bound_udp(("127.0.0.1", 0), "feed", lambda _: None) as there:
        prepare_receiver(there)
        with connected_udp(there.getsockname(), "D") as here:
            sender = PacketSender(here, size)
            sent = [HEAD.pack(NONCE, i, i, 7).ljust(size, b"x") for i in range(n)]
            assert sender.send(b"".join(sent)) == 0
            assert received(there, n) == list(range(n))
            assert sender.is_segmented


def test_a_port_that_is_closed_is_said() -> None:
    with connected_udp(("127.0.0.1", free_port()), "D") as here:
        sender = PacketSender(here, SIZE)
        sender.send(packets(1)[0])
        # Loopback answers soon, not at once on a busy machine; each call says so once.
        assert select.select([here], [], [], 10)[0]
        with pytest.raises(ConnectionRefusedError):
            sender.send(packets(1)[0])


def test_heads_of_what_is_none_are_none() -> None:
    for data, segment in ((b"", 0), (b"", 140), (bytes(39), 39), (bytes(150), 140), (bytes(9), 0)):
        assert len(heads_of(data, segment)) == 0


def test_a_thread_is_before_others_for_a_while() -> None:
    usual = os.sched_getscheduler(0)
    with before_others() as is_first:
        assert (os.sched_getscheduler(0) == os.SCHED_FIFO) == is_first
    assert os.sched_getscheduler(0) == usual
