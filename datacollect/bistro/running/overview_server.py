"""The organiser's page: how far an event is, on this host alone, for who has its token."""

from __future__ import annotations

import hmac
import json
import re
import secrets
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import TYPE_CHECKING

from datacollect.bistro.running.standing import STANDING_FILE
from datacollect.errors import NotWrittenError, ProblemError
from datacollect.files.documents import document_name, write_owned
from datacollect.net.fan_out import start_thread

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

STATIC = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/overview.js": ("overview.js", "text/javascript; charset=utf-8"),
    "/overview.css": ("overview.css", "text/css; charset=utf-8"),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
TOKEN_FILE, TOKEN_BYTES = "page.token", 24
TOKEN = re.compile(r"[A-Za-z0-9_-]{32}", re.ASCII)
# What others than its owner may do with a file.
OTHERS = 0o077
LOOK_S = 1.0
# So often something is sent that says nothing: who is gone is noticed.
STILL_S = 15.0
# Pages that are open at the same time; how long a request may take.
MOST_STREAMS, REQUEST_S = 16, 10.0


class Overview:
    """Serves the page on loopback: ``with Overview(folder, port) as overview``.

    Parameters
    ----------
    folder : Path
        Of the destination, where it leaves how far the event is.
    port : int
        0: any free one.

    Attributes
    ----------
    url : str
        With the token, in the part that browsers do not send; the same after a new start.

    Raises
    ------
    ProblemError
        The port is taken.
    NotWrittenError
        The token cannot be kept.
    """

    def __init__(self, folder: Path, port: int) -> None:
        token = _kept_token(folder / TOKEN_FILE)
        try:
            self._server = _Server(folder, port, token)
        except OSError as error:
            raise ProblemError(
                f"--page {port}: {error.strerror}; choose another port; 0 is any free one"
            ) from None
        self.url = f"http://127.0.0.1:{self._server.server_port}/#{token}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="the organiser's page", daemon=True
        )

    def __enter__(self) -> Overview:
        """Begin; raise `TransferError` where there is no thread to be had."""
        try:
            start_thread(self._thread)
        except BaseException:
            self._server.server_close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End; pages that are open say that they are not connected."""
        self._server.is_over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _kept_token(path: Path) -> str:
    """Return the token of an earlier start; a new one where there is none that others cannot read.

    Raises
    ------
    NotWrittenError
    """
    with suppress(OSError, ValueError):
        found = path.read_text("ascii")
        if TOKEN.fullmatch(found) and not path.stat().st_mode & OTHERS:
            return found
    token = secrets.token_urlsafe(TOKEN_BYTES)
    try:
        path.unlink(missing_ok=True)
        write_owned(path, token.encode(), mode=0o600, new=True)
    except OSError as error:
        raise NotWrittenError(
            f"{document_name(path)}: cannot be written: {error.strerror}", error.errno
        ) from None
    return token


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, folder: Path, port: int, token: str) -> None:
        self.folder, self.token = folder, token
        self.is_over = threading.Event()
        self.places = threading.BoundedSemaphore(MOST_STREAMS)
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: browsers come and go."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_S
    server_version = "datacollect"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer a request."""
        if self.path == "/events":
            self._stream()
        elif self.path in STATIC:
            name, kind = STATIC[self.path]
            data = files("datacollect.bistro.running").joinpath("overview", name).read_bytes()
            self._answer(200, kind, data)
        else:
            self._answer(404, "text/plain", b"there is no such thing here\n")

    def _answer(self, status: int, kind: str, data: bytes) -> None:
        self._begin(status, kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _begin(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in HEADERS.items():
            self.send_header(name, value)

    def _stream(self) -> None:
        given = self.headers.get("Authorization", "").encode(errors="replace")
        if not hmac.compare_digest(given, f"Bearer {self.server.token}".encode()):
            self._answer(401, "text/plain", b"what follows # in the address lets in\n")
            return
        if not self.server.places.acquire(blocking=False):
            self._answer(503, "text/plain", b"too many pages are open; close some\n")
            return
        try:
            self._begin(200, "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self._tell()
        finally:
            self.server.places.release()

    def _tell(self) -> None:
        """Send how far the event is, again each time that it has changed."""
        path, known, said_s = self.server.folder / STANDING_FILE, -1, time.monotonic()
        while not self.server.is_over.is_set():
            written = path.stat().st_mtime_ns if path.exists() else -1
            if written != known:
                text = json.dumps(json.loads(path.read_bytes()))
                self.wfile.write(f"data: {text}\n\n".encode())
                known, said_s = written, time.monotonic()
            elif time.monotonic() - said_s > STILL_S:
                self.wfile.write(b": still here\n\n")
                said_s = time.monotonic()
            self.server.is_over.wait(LOOK_S)

    def log_message(self, *_: object) -> None:
        """Write no log: who looks at a page of one's own is nobody's business."""
