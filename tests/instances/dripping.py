"""A host in between that passes bytes on, and after some of them one now and then."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from datacollect.net.tcp_options import stop_accepting

if TYPE_CHECKING:
    from typing import Self

EVERY_S = 0.2


class Dripping:
    """Listens on loopback in front of a server.

    Parameters
    ----------
    address : tuple of str and int
        The server's.
    untouched_bytes : int
        What of each answering direction passes as it comes; the rest drips.
    """

    def __init__(self, address: tuple[str, int], untouched_bytes: int) -> None:
        self._address, self._untouched_bytes = address, untouched_bytes
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self._is_over = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        stop_accepting(self._listener)
        self._listener.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._address)
                for each in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pass_on, args=each, daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket, drips: bool) -> None:
        passed = 0
        with suppress(OSError):
            while data := one.recv(16_384):
                if not drips or passed + len(data) <= self._untouched_bytes:
                    other.sendall(data)
                    passed += len(data)
                    continue
                for byte in data:
                    if self._is_over.is_set():
                        return
                    other.sendall(bytes([byte]))
                    time.sleep(EVERY_S)
        for each in (one, other):
            each.close()
