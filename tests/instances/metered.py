"""A wire with a counter: a port that passes bytes on to another, and notes how many went when."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Small, so that what is counted as passed has arrived, but for some packets.
BUFFER_BYTES = 16 * 1024


@dataclass
class MeteredPort:
    """A port of loopback that stands before another; `with MeteredPort(address) as port`.

    Attributes
    ----------
    rows : list of (float, int)
        When bytes went from the far side to the near one, and how many.
    """

    far: tuple[str, int]
    rows: list[tuple[float, int]] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> MeteredPort:
        self._listener = socket.socket()
        # Inherited by whoever is accepted.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)
        self._begin(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # who waits in `accept` wakes up
            self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    @property
    def address(self) -> tuple[str, int]:
        return self._listener.getsockname()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.address[1]}"

    def n_bytes(self, begin_s: float, end_s: float) -> int:
        """Return what has passed between two instants of the monotonic clock."""
        return sum(n for at_s, n in self.rows if begin_s <= at_s < end_s)

    def _begin(self, act: Callable[..., None], *given: object) -> None:
        thread = threading.Thread(target=act, args=given, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._begin(self._serve, self._listener.accept()[0])

    def _serve(self, near: socket.socket) -> None:
        with near, socket.socket() as far:
            far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            far.connect(self.far)
            up = threading.Thread(target=_pass_on, args=(near, far, []), daemon=True)
            up.start()
            _pass_on(far, near, self.rows)
            up.join(10)


def _pass_on(source: socket.socket, sink: socket.socket, rows: list[tuple[float, int]]) -> None:
    with suppress(OSError):
        while data := source.recv(BUFFER_BYTES):
            sink.sendall(data)
            rows.append((time.monotonic(), len(data)))
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def most_within(rows: list[tuple[float, int]], seconds: float) -> int:
    """Return the most bytes of all spans of time of this length."""
    rows, most, first, n_bytes = sorted(rows), 0, 0, 0
    for at_s, n in rows:
        n_bytes += n
        while rows[first][0] < at_s - seconds:
            n_bytes -= rows[first][1]
            first += 1
        most = max(most, n_bytes)
    return most
