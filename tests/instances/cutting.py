"""A way to a server that is cut at given places: a connection each, then all the rest as it is."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread

BLOCK_BYTES = 65536


class Cutting:
    """Passes connections on; of each, so many bytes to the server as the next place says.

    Attributes
    ----------
    port : int
        Where it listens on loopback.
    n_cut : int
        How many connections were cut.
    """

    def __init__(self, port: int, places: Iterable[int]) -> None:
        self._to, self._places = port, iter(places)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.n_cut = self._listener.getsockname()[1], 0
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                left = next(self._places, None)
                Thread(target=self._pass, args=(near, far, left), daemon=True).start()
                Thread(target=self._pass, args=(far, near, None), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, left: int | None) -> None:
        with suppress(OSError):
            while data := source.recv(BLOCK_BYTES if left is None else min(BLOCK_BYTES, left)):
                target.sendall(data)
                if left is not None:
                    left -= len(data)
                    if not left:
                        self.n_cut += 1
                        break
        for each in (source, target):
            with suppress(OSError):
                if left == 0:  # as where a network breaks: what was sent and not read is lost
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextmanager
def cutting(port: int, places: Iterable[int]) -> Iterator[Cutting]:
    """Run one before a server on loopback."""
    way = Cutting(port, places)
    try:
        yield way
    finally:
        way.close()
