"""A wire with a counter: a port that passes bytes on to another, and notes how many went when."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

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

    def __enter__(self) -> MeteredPort:
        self._listener = socket.socket()
        # Inherited by whoever is accepted.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    @property
    def address(self) -> tuple[str, int]:
        return self._listener.getsockname()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.address[1]}"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                far = socket.socket()
                far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
                far.connect(self.far)
                for ends in ((near, far, None), (far, near, self.rows)):
                    threading.Thread(target=_pass_on, args=ends, daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket, rows: list | None) -> None:
    with suppress(OSError):
        while data := source.recv(BUFFER_BYTES):
            sink.sendall(data)
            if rows is not None:
                rows.append((time.monotonic(), len(data)))
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


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
