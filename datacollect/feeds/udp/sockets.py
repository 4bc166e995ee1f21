"""Sockets that send and receive many packets by one call: ``UDP_SEGMENT``, ``UDP_GRO`` (Linux)."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# linux/udp.h, linux/asm-generic/socket.h; Python's socket module does not name them.
UDP_SEGMENT, UDP_GRO = 103, 104
SO_RXQ_OVFL, SO_RCVBUFFORCE = 40, 33
# What is received together at most.
TOGETHER_BYTES = 65_536
# What the kernel is asked to keep meanwhile.
RECEIVE_BYTES, SEND_BYTES = 16 * 2**20, 4 * 2**20
_INT = struct.Struct("I")
_SIZE_TOLD = (int(socket.IPPROTO_UDP), UDP_GRO)
_OVERFLOWS_TOLD = (int(socket.SOL_SOCKET), SO_RXQ_OVFL)
# Before other programs, but after what the kernel itself runs so.
PRIORITY = 5


class Together(NamedTuple):
    """Packets that one call has received.

    Attributes
    ----------
    n_bytes : int
    segment_bytes : int
        Of each packet but the last.
    n_overflows : int
        How often the socket had no room for what came, so far. The kernel counts what it has put
        together as one: it says that packets were lost here, not how many.
    """

    n_bytes: int
    segment_bytes: int
    n_overflows: int


class PacketSender:
    """Sends packets of one size, many by one call where the kernel can.

    Parameters
    ----------
    connected : socket.socket
    packet_bytes : int
        Of all but the last of each call.

    Attributes
    ----------
    is_segmented : bool
        Whether the kernel cuts packets.
    """

    def __init__(self, connected: socket.socket, packet_bytes: int) -> None:
        self._socket, self._packet_bytes = connected, packet_bytes
        with suppress(OSError):
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        try:
            connected.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, packet_bytes)
            self.is_segmented = True
        except OSError:
            self.is_segmented = False

    def send(self, packets: memoryview | bytes) -> int:
        """Send packets; return how many the kernel has not taken.

        Parameters
        ----------
        packets : bytes-like
            In a row, `MOST_SENT_BYTES` at most; only the last may be shorter.

        Raises
        ------
        ConnectionRefusedError
            The other host has no such port.
        """
        if self.is_segmented:
            try:
                self._socket.send(packets)
            except ConnectionRefusedError:
                raise
            except OSError:
                # Where the interface does not compute check sums, the kernel cuts nothing.
                self._stop_segmenting()
            else:
                return 0
        size = self._packet_bytes
        return sum(not self._sent(packets[at : at + size]) for at in range(0, len(packets), size))

    def _stop_segmenting(self) -> None:
        self.is_segmented = False
        with suppress(OSError):
            self._socket.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 0)

    def _sent(self, packet: memoryview | bytes) -> bool:
        try:
            self._socket.send(packet)
        except ConnectionRefusedError:
            raise
        except OSError:
            return False
        return True


def prepare_receiver(bound: socket.socket) -> int:
    """Have packets arrive together, and kept meanwhile; return the bytes of room granted.

    Of these the kernel uses about half for what it notes of packets.
    """
    for option, value in ((SO_RXQ_OVFL, 1), (socket.SO_RCVBUF, RECEIVE_BYTES)):
        with suppress(OSError):
            bound.setsockopt(socket.SOL_SOCKET, option, value)
    with suppress(OSError):
        # For who administers the network: more than net.core.rmem_max.
        bound.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BYTES)
    with suppress(OSError):
        bound.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
    return bound.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)


def receive_together(bound: socket.socket, into: bytearray | memoryview) -> Together:
    """Receive what has come together; `TOGETHER_BYTES` have room for it."""
    n_bytes, ancillary, _, _ = bound.recvmsg_into([into], 128)
    segment_bytes, n_overflows = n_bytes, 0
    for level, kind, data in ancillary:
        if (level, kind) == _SIZE_TOLD:
            segment_bytes = _INT.unpack_from(data)[0]
        elif (level, kind) == _OVERFLOWS_TOLD:
            n_overflows = _INT.unpack_from(data)[0]
    return Together(n_bytes, segment_bytes, n_overflows)


@contextmanager
def before_others() -> Iterator[bool]:
    """Have this thread run before others, where the host permits it; whether it does."""
    usual = os.sched_getscheduler(0), os.sched_getparam(0)
    # Who has started the program may have given it more.
    priority = max(PRIORITY, usual[1].sched_priority)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
        is_first = True
    except OSError:
        is_first = False
    try:
        yield is_first
    finally:
        if is_first:
            with suppress(OSError):
                os.sched_setscheduler(0, *usual)
