"""A page on this host alone that follows something: files, and a stream of what is new.

It listens on loopback and takes no orders. What it tells goes only to who has its token, which
stands in the part of the address that browsers do not send.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.errors import ProblemError
from datacollect.net.fan_out import start_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    # From what a page has been told so far, which the function keeps there, to what is new, as one
    # line of JSON; None: nothing.
    News: TypeAlias = Callable[[dict[str, Any]], str | None]

STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
LOOK_S = 1.0
# So often something is sent that says nothing: who is gone is noticed.
STILL_S = 15.0
# Pages that are open at the same time; how long a request may take, and an answer where the browser
# is busy.
MOST_STREAMS, REQUEST_S, ANSWER_S = 16, 10.0, 120.0


class LivePage:
    """Serves a page: ``with LivePage(static, news, port) as page``.

    Parameters
    ----------
    static : mapping of str to (bytes, str)
        By path, its content and its media type.
    news : callable
        Called again and again for each page that is open.
    port : int
        0: any free one.
    policy : str
        The page's Content-Security-Policy.
    token : str, optional
        One that was kept; else a new one.

    Attributes
    ----------
    url : str
        With the token.

    Raises
    ------
    ProblemError
        The port is taken.
    """

    def __init__(
        self,
        static: Mapping[str, tuple[bytes, str]],
        news: News,
        port: int,
        policy: str = STRICT,
        token: str | None = None,
    ) -> None:
        token = token or secrets.token_urlsafe(24)
        try:
            self._server = _Server(static, news, port, policy, token)
        except OSError as error:
            raise ProblemError(
                f"--page {port}: {error.strerror}; choose another port; 0 is any free one"
            ) from None
        self.url = f"http://127.0.0.1:{self._server.server_port}/#{token}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="the page", daemon=True
        )

    def __enter__(self) -> LivePage:
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


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        static: Mapping[str, tuple[bytes, str]],
        news: News,
        port: int,
        policy: str,
        token: str,
    ) -> None:
        self.static, self.news, self.policy, self.token = static, news, policy, token
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
        self.connection.settimeout(ANSWER_S)
        if self.path == "/events":
            self._stream()
        elif self.path in self.server.static:
            data, kind = self.server.static[self.path]
            self._answer(200, kind, data)
        else:
            self._answer(404, "text/plain", b"no such path\n")

    def _answer(self, status: int, kind: str, data: bytes) -> None:
        self._begin(status, kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _begin(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", self.server.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")

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
        """Send what is new, each time that something is."""
        told: dict[str, Any] = {}
        said_s = time.monotonic()
        while not self.server.is_over.is_set():
            text = self.server.news(told)
            if text is not None:
                self.wfile.write(f"data: {text}\n\n".encode())
            elif time.monotonic() - said_s > STILL_S:
                self.wfile.write(b": still here\n\n")
            if text is not None or time.monotonic() - said_s > STILL_S:
                said_s = time.monotonic()
            self.server.is_over.wait(LOOK_S)

    def log_message(self, *_: object) -> None:
        """Write no log: who looks at a page of one's own is nobody's business."""
