"""A page on this host alone that follows something: files, and a stream of what is new.

It listens on loopback and takes no orders. What it tells goes only to who has its token, which
stands in the part of the address that browsers do not send.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.net.few_http import FewHandler, FewServer

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
# Pages that are open at the same time.
MOST_STREAMS = 16
# How long pages get at the end to hear the last.
LAST_S = 2.0


class LivePage:
    """Serves a page: ``with LivePage(static, news, port) as page``.

    Parameters
    ----------
    static : mapping of str to (bytes, str)
        By path, its content and its media type.
    news : callable
        Called again and again for each page that is open, and once more at the end.
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
        self._server = _Server(static, news, port, policy, token)
        self.url = f"http://127.0.0.1:{self._server.server_port}/#{token}"

    def __enter__(self) -> LivePage:
        """Begin; raise `TransferError` where there is no thread is available."""
        self._server.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End; pages that are open hear the last, and say that they are not connected."""
        self._server.__exit__(kind, error, at)
        self._server.wait_for_streams(LAST_S)


class _Server(FewServer):
    def __init__(
        self,
        static: Mapping[str, tuple[bytes, str]],
        news: News,
        port: int,
        policy: str,
        token: str,
    ) -> None:
        self.static, self.news, self.policy, self.token = static, news, policy, token
        self.n_streams, self.streams = 0, threading.Condition()
        super().__init__(("127.0.0.1", port), _Handler, f"--page {port}")

    def enter_stream(self) -> bool:
        """Take a place for a page; return whether there was one."""
        with self.streams:
            is_room = self.n_streams < MOST_STREAMS
            self.n_streams += is_room
            return is_room

    def leave_stream(self) -> None:
        """Give the place of a page back."""
        with self.streams:
            self.n_streams -= 1
            self.streams.notify_all()

    def wait_for_streams(self, most_s: float) -> None:
        """Wait until no page is left, but not for ever."""
        with self.streams:
            self.streams.wait_for(lambda: self.n_streams == 0, most_s)


class _Handler(FewHandler):
    server: _Server

    def reply(self) -> None:
        """Answer with a file of the page, or with what is new."""
        if self.path == "/events":
            self._stream()
        elif self.path in self.server.static:
            data, kind = self.server.static[self.path]
            self._answer(200, kind, data)
        else:
            self._answer(404, "text/plain", b"no such path\n")

    def _headers(self) -> tuple[tuple[str, str], ...]:
        return (
            ("Content-Security-Policy", self.server.policy),
            ("Referrer-Policy", "no-referrer"),
        )

    def _answer(self, status: int, kind: str, data: bytes) -> None:
        self.answer(status, kind, data, self._headers())

    def _stream(self) -> None:
        given = self.headers.get("Authorization", "").encode(errors="replace")
        if not hmac.compare_digest(given, f"Bearer {self.server.token}".encode()):
            self._answer(401, "text/plain", b"what follows # in the address lets in\n")
            return
        if not self.server.enter_stream():
            self._answer(503, "text/plain", b"too many pages are open; close some\n")
            return
        try:
            self.server.keep(self.connection)
            self.begin(200, "text/event-stream", self._headers())
            self.send_header("Connection", "close")
            self.end_headers()
            self._tell()
        finally:
            self.server.leave_stream()

    def _tell(self) -> None:
        """Send what is new, each time that something is, and what is in the end."""
        told: dict[str, Any] = {}
        said_s = time.monotonic()
        while True:
            is_over = self.server.is_over.is_set()
            text = self.server.news(told)
            if text is not None:
                self.wfile.write(f"data: {text}\n\n".encode())
            elif time.monotonic() - said_s > STILL_S:
                self.wfile.write(b": still here\n\n")
            if text is not None or time.monotonic() - said_s > STILL_S:
                said_s = time.monotonic()
            if is_over:
                return
            self.server.is_over.wait(LOOK_S)
