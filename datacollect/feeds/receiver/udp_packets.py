"""Threads that receive a feed's packets: one reads them, one writes them to their places."""

from __future__ import annotations

import queue
import select
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.errors import StoreError
from datacollect.feeds.formats.packets import HEAD
from datacollect.feeds.receiver.buffers import BUFFER_BYTES, Buffers
from datacollect.feeds.receiver.core import Write
from datacollect.feeds.udp.heads import heads_of
from datacollect.feeds.udp.pacing import CATCH_UP
from datacollect.feeds.udp.sockets import (
    TOGETHER_BYTES,
    before_others,
    prepare_receiver,
    receive_together,
)
from datacollect.net.udp import bound_udp

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Sequence

    from datacollect.feeds.udp.heads import Heads
    from datacollect.feeds.udp.receiving import Place

LOOKED_AFTER_S = 0.1
# Of one round: whoever sends empty packets without end stops nobody else.
MOST_CALLS = 1024
# After something was read, more gathers in the kernel: so long, or as a part of its room permits.
LEAST_REST_S, MOST_REST_S, REST_PART = 0.001, 0.01, 1 / 8
# Of its room, heads and what it notes of packets take more than half; and a source may catch up.
ROOM_OF_DATA = 2.5 * CATCH_UP


class _Packets(NamedTuple):
    """Packets of one size, but for the last, in a row of a buffer."""

    at: int
    n_bytes: int
    packet_bytes: int
    is_odd: bool


class _ToWrite(NamedTuple):
    """Packets that were read together, and where they go."""

    buffer: bytearray
    places: Sequence[tuple[_Packets, Place]]


class PacketThreads:
    """Receives packets until it is closed.

    Parameters
    ----------
    address : (str, int)
        Port 0: any free one.
    message_bytes : int
    bytes_per_s : float
        Of the source.
    take : callable
        Gets the heads of what has come together, the size of the last message, and how often the
        socket had no room so far; returns where what is new goes. Of the thread that reads.
    write : callable
        Writes; of the thread that writes.

    Attributes
    ----------
    port : int
    granted_bytes : int
        Of the socket's buffer.
    failure : OSError, StoreError or None
        Why nothing more is written.
    runs_first : bool
        Whether the thread that reads runs before other programs.

    Raises
    ------
    RefusedError
        The port cannot be opened.
    """

    def __init__(
        self,
        address: tuple[str, int],
        message_bytes: int,
        bytes_per_s: float,
        take: Callable[[Heads, int, int], Sequence[Place]],
        write: Callable[[Write], None],
    ) -> None:
        self._message_bytes, self._take, self._write = message_bytes, take, write
        self.granted_bytes, self.runs_first = 0, False
        self.failure: OSError | StoreError | None = None
        self._is_over = threading.Event()
        # What was counted has been handed on to be written where nobody has it.
        self._round = threading.Lock()
        self._buffers = Buffers()
        self._due: queue.SimpleQueue[_ToWrite | threading.Event | None] = queue.SimpleQueue()
        self._socket = bound_udp(address, "feed", self._prepare)
        self._rest_s = rest_s(self.granted_bytes, bytes_per_s)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self.port: int = self._socket.getsockname()[1]
        names = {"feed read": self._read_all, "feed write": self._write_all}
        self._threads = [
            threading.Thread(target=run, name=name, daemon=True) for name, run in names.items()
        ]
        for thread in self._threads:
            thread.start()

    def _prepare(self, opened: socket.socket) -> None:
        self.granted_bytes = prepare_receiver(opened)
        opened.setblocking(False)

    def close(self) -> None:
        """Receive no more; return when all that was read is written. Again does nothing."""
        self._is_over.set()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def settle(self) -> None:
        """Return when all that was read before is written, or cannot be."""
        reached = threading.Event()
        with self._round:
            self._due.put(reached)
        while not reached.wait(LOOKED_AFTER_S):
            if not self._threads[1].is_alive():
                return

    # The thread that reads -----------------------------------------------------------------------

    def _read_all(self) -> None:
        try:
            with self._socket, before_others() as self.runs_first:
                while not self._is_over.is_set():
                    self._read()
        except Exception as error:  # noqa: BLE001 - what was counted may not be written
            self.failure = _failure_of(error)
        finally:
            self._due.put(None)

    def _read(self) -> None:
        """Read what has come, and wait for more."""
        with self._round:
            n_bytes = self._read_round()
        if n_bytes is None:
            self._poll.poll(LOOKED_AFTER_S * 1000)
        elif n_bytes <= BUFFER_BYTES - TOGETHER_BYTES:
            # Threads that wake each other for every few packets cost more than the packets.
            time.sleep(self._rest_s)

    def _read_round(self) -> int | None:
        """Read what has come, and hand it on together; return how much, None: nothing."""
        buffer = self._buffers.take(LOOKED_AFTER_S)
        if buffer is None:
            return None
        places: list[tuple[_Packets, Place]] = []
        n_bytes: int | None = None
        for packets, n_overflows in self._received(buffer):
            n_bytes = packets.at + packets.n_bytes
            data = memoryview(buffer)[packets.at : packets.at + packets.n_bytes]
            heads = heads_of(data, packets.packet_bytes)
            # Those of another size are none of the feed's.
            last_bytes = 0 if packets.is_odd else _last_bytes(packets) - HEAD.size
            found = self._take(heads, last_bytes, n_overflows) if len(heads) else ()
            places += [(packets, place) for place in found]
        if places and self.failure is None:
            self._due.put(_ToWrite(buffer, places))
        else:
            self._buffers.give(buffer)
        return n_bytes

    def _received(self, buffer: bytearray) -> Iterator[tuple[_Packets, int]]:
        """Receive into a buffer; yield what stands in a row, and how often there was no room."""
        view, size = memoryview(buffer), HEAD.size + self._message_bytes
        first = at = n_overflows = 0
        for _ in range(MOST_CALLS):
            if at + TOGETHER_BYTES > BUFFER_BYTES:
                break
            try:
                got = receive_together(self._socket, view[at:])
            except OSError:
                # Nothing has come; or of a packet, as where its check sum is wrong: the next one
                # may be well.
                break
            n_overflows = max(n_overflows, got.n_overflows)
            if not got.n_bytes:  # anyone may send an empty one, and it has no size to go by
                continue
            stop = at + got.n_bytes
            if got.segment_bytes != size or got.n_bytes % size:
                if at > first:
                    yield _Packets(first, at - first, size, is_odd=False), n_overflows
                is_odd = got.n_bytes > got.segment_bytes != size
                yield _Packets(at, got.n_bytes, got.segment_bytes, is_odd=is_odd), n_overflows
                first = stop
            at = stop
        if at > first:
            yield _Packets(first, at - first, size, is_odd=False), n_overflows

    # The thread that writes ----------------------------------------------------------------------

    def _write_all(self) -> None:
        # Were it kept from its processor while it holds the interpreter, so would be who reads.
        try:
            with before_others():
                self._write_due()
        except Exception as error:  # noqa: BLE001 - what was counted is not written
            self.failure = self.failure or _failure_of(error)

    def _write_due(self) -> None:
        while (round_ := self._due.get()) is not None:
            if isinstance(round_, threading.Event):
                round_.set()
                continue
            if self.failure is None:
                try:
                    self._write_places(round_)
                except Exception as error:  # noqa: BLE001 - nothing behind it is written
                    self.failure = _failure_of(error)
            self._buffers.give(round_.buffer)

    def _write_places(self, due: _ToWrite) -> None:
        for packets, place in due.places:
            content = _contents(due.buffer, packets, place)
            self._write(Write(place.message * self._message_bytes, [content]))


def rest_s(granted_bytes: int, bytes_per_s: float) -> float:
    """Return how long packets may gather: the longer, the less each costs.

    >>> [round(rest_s(n_mb * 10**6, 112.5e6), 4) for n_mb in (32, 16, 8, 1)]
    [0.01, 0.0057, 0.0028, 0.001]
    """
    room_s = REST_PART * granted_bytes / (ROOM_OF_DATA * bytes_per_s)
    return min(max(room_s, LEAST_REST_S), MOST_REST_S)


def _last_bytes(packets: _Packets) -> int:
    """Return how long the last of some packets is."""
    return packets.n_bytes - (packets.n_bytes - 1) // packets.packet_bytes * packets.packet_bytes


def _contents(buffer: bytearray, packets: _Packets, place: Place) -> memoryview:
    """Return the messages of packets in a row, without their heads."""
    size = packets.packet_bytes
    first, stop = place.at * size, min((place.at + place.n) * size, packets.n_bytes)
    n_whole = (stop - first) // size
    heads_on = np.frombuffer(buffer, np.uint8, n_whole * size, packets.at + first)
    rows = heads_on.reshape(n_whole, size)[:, HEAD.size :]
    rest = memoryview(buffer)[packets.at + first + n_whole * size : packets.at + stop]
    # By one copy: a call of the system with as many parts costs more.
    whole = np.ascontiguousarray(rows).reshape(-1).data
    return memoryview(b"".join((whole, rest[HEAD.size :]))) if rest else whole


def _failure_of(error: Exception) -> OSError | StoreError:
    if isinstance(error, OSError | StoreError):
        return error
    return StoreError(f"{type(error).__name__}: {error}")
