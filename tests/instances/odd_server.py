"""A web server on this machine whose answers a test makes itself."""

from __future__ import annotations

import re
import ssl
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

BLOCK_BYTES = 2**14


@dataclass(frozen=True)
class Request:
    """Request for a path, the first and the last byte, None for all; other headers."""

    path: str
    first: int | None
    last: int | None
    headers: dict[str, str]


@dataclass(frozen=True)
class Answer:
    """Response: all of the body, and never an end where `is_endless`."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    n_stated: int | None = None
    is_endless: bool = False


def part_of(data: bytes, request: Request, **headers: str) -> Answer:
    """Return what an honest server says."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if request.first is None:
        return Answer(200, data, headers)
    last = min(request.last, len(data) - 1)
    headers["Content-Range"] = f"bytes {request.first}-{last}/{len(data)}"
    return Answer(206, data[request.first : last + 1], headers)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle(self):
        with suppress(ConnectionError):  # who has had enough hangs up
            super().handle()

    def do_GET(self):
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        first, last = (int(asked[1]), int(asked[2])) if asked else (None, None)
        request = Request(self.path, first, last, dict(self.headers))
        self.server.requests.append(request)
        answer = self.server.answer(request)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        stated = len(answer.body) if answer.n_stated is None else answer.n_stated
        if answer.is_endless:
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(stated))
        self.end_headers()
        with suppress(ConnectionError, ssl.SSLError):
            self._send(answer)

    def do_HEAD(self):
        self.do_GET()

    def _send(self, answer):
        while self.command == "GET":
            for begin in range(0, len(answer.body), BLOCK_BYTES):
                self.wfile.write(answer.body[begin : begin + BLOCK_BYTES])
                self.server.sent_bytes += len(answer.body[begin : begin + BLOCK_BYTES])
            if not answer.is_endless:
                break
        if answer.n_stated is not None:
            self.close_connection = True

    def log_message(self, *_):
        pass


@contextmanager
def odd_server(answer, *, tls=None):
    """Answer requests by this function; yield the server, whose `url` is its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.answer, server.requests, server.sent_bytes = answer, [], 0
    server.url = f"http://127.0.0.1:{server.server_port}"
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        server.url = f"https://localhost:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
