"""Threads that receive a feed's packets: one reads them, one writes them to their places."""

from __future__ import annotations

import queue
import select
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from datacollect.errors import StoreError
from datacollect.feeds.formats.packets import HEAD, heads_of
from datacollect.feeds.receiver.core import Write
from datacollect.feeds.udp.sockets import (
    TOGETHER_BYTES,
    before_others,
    prepare_receiver,
    receive_together,
)
from datacollect.net.udp import bound_udp

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from datacollect.feeds.formats.packets import Heads
    from datacollect.feeds.udp.receiving import Place

# What may be read and not be written yet: 32 MB.
BUFFERS = 512
LOOKED_AFTER_S = 0.1
# What is read before it is handed on; and how long more gathers in the kernel after that.
MOST_TOGETHER, REST_S = 64, 0.001


class _ToWrite(NamedTuple):
    """Packets that were read together, and where they go."""

    buffer: bytearray
    n_bytes: int
    segment_bytes: int
    places: Sequence[Place]


class PacketThreads:
    """Receives packets until it is closed.

    Parameters
    ----------
    address : (str, int)
        Port 0: any free one.
    message_bytes : int
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
        take: Callable[[Heads, int, int], Sequence[Place]],
        write: Callable[[Write], None],
    ) -> None:
        self._message_bytes, self._take, self._write = message_bytes, take, write
        self.granted_bytes, self.runs_first = 0, False
        self.failure: OSError | StoreError | None = None
        self._is_over = threading.Event()
        # What was counted has been handed on to be written where nobody has it.
        self._round = threading.Lock()
        self._free: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self._due: queue.SimpleQueue[list[_ToWrite] | threading.Event | None] = queue.SimpleQueue()
        for _ in range(BUFFERS):
            self._free.put(bytearray(TOGETHER_BYTES))
        self._socket = bound_udp(address, "feed", self._prepare)
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
            n = self._read_round()
        if n:
            # Threads that wake each other for every few packets cost more than the packets.
            time.sleep(REST_S)
        else:
            self._poll.poll(LOOKED_AFTER_S * 1000)

    def _read_round(self) -> int:
        """Read all that has come, and hand it on together; return how much that is."""
        round_: list[_ToWrite] = []
        while len(round_) < MOST_TOGETHER:
            try:
                buffer = self._free.get(timeout=0 if round_ else LOOKED_AFTER_S)
            except queue.Empty:
                break
            due = self._received(buffer)
            if due is None or isinstance(due, bool):
                self._free.put(buffer)
                if due is None:
                    break
            else:
                round_.append(due)
        if round_:
            self._due.put(round_)
        return len(round_)

    def _received(self, buffer: bytearray) -> _ToWrite | bool | None:
        """Receive into a buffer; return what to write, False: nothing, None: nothing has come."""
        try:
            got = receive_together(self._socket, buffer)
        except BlockingIOError:
            return None
        except OSError:
            # Of a packet, as where its check sum is wrong; the next one may be well.
            return None
        heads = heads_of(memoryview(buffer)[: got.n_bytes], got.segment_bytes)
        n = len(heads.messages)
        if not n:
            return False
        last_bytes = got.n_bytes - (n - 1) * got.segment_bytes - HEAD.size
        if n > 1 and got.segment_bytes != HEAD.size + self._message_bytes:
            return False
        places = self._take(heads, last_bytes, got.n_overflows)
        if not places or self.failure is not None:
            return False
        return _ToWrite(buffer, got.n_bytes, got.segment_bytes, places)

    # The thread that writes ----------------------------------------------------------------------

    def _write_all(self) -> None:
        # Were it kept from its processor while it holds the interpreter, so would be who reads.
        with before_others():
            self._write_due()

    def _write_due(self) -> None:
        while (round_ := self._due.get()) is not None:
            if isinstance(round_, threading.Event):
                round_.set()
                continue
            for due in round_:
                if self.failure is None:
                    try:
                        self._write_places(due)
                    except Exception as error:  # noqa: BLE001 - nothing behind it is written
                        self.failure = _failure_of(error)
                self._free.put(due.buffer)

    def _write_places(self, due: _ToWrite) -> None:
        view, step = memoryview(due.buffer)[: due.n_bytes], due.segment_bytes
        for place in due.places:
            first = place.at * step
            blocks = [
                view[at + HEAD.size : at + step]
                for at in range(first, first + place.n * step, step)
            ]
            self._write(Write(place.message * self._message_bytes, blocks))


def _failure_of(error: Exception) -> OSError | StoreError:
    if isinstance(error, OSError | StoreError):
        return error
    return StoreError(f"{type(error).__name__}: {error}")
