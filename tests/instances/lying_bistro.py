"""A bistro that takes all it is sent, and says for ever that it has nothing."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

BLOCK_BYTES = 2**16


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LyingBistro

    def handle(self) -> None:
        with suppress(OSError):
            super().handle()

    def _answer(self, status: int) -> None:
        left = int(self.headers.get("Content-Length", 0))
        while left and (block := self.rfile.read(min(left, BLOCK_BYTES))):
            left -= len(block)
            self.server.taken_bytes += len(block)
        self.server.asked.append(self.command)
        self.send_response(status)
        for name, value in (
            ("Tus-Resumable", "1.0.0"),
            ("Upload-Offset", "0"),
            ("Location", "/tus/a"),
            ("Content-Length", "0"),
        ):
            self.send_header(name, value)
        self.end_headers()

    def do_POST(self) -> None:
        self._answer(201)

    def do_PATCH(self) -> None:
        self._answer(204)

    def do_HEAD(self) -> None:
        self._answer(200)

    def log_message(self, *_: object) -> None:
        """Tests say what matters."""


class LyingBistro(ThreadingHTTPServer):
    """Counts what it was asked, and how many bytes it has thrown away."""

    daemon_threads = True

    def __init__(self, port: int, certificate: Path, key: Path) -> None:
        self.asked: list[str] = []
        self.taken_bytes = 0
        super().__init__(("127.0.0.1", port), _Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )

    def handle_error(self, *_: object) -> None:
        """Whoever has had enough hangs up."""


@contextmanager
def lying_bistro(port: int, certificate: Path, key: Path) -> Iterator[LyingBistro]:
    """Run one until the end."""
    server = LyingBistro(port, certificate, key)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
