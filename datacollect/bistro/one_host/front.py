"""Front of an event on one host: an agent shows the page, and passes what is for other servers.

Uploads, which are large, are the agent's own. Requests that are passed on are small, and read whole
before: a server behind sees short requests over kept connections, and whom they are counted for.
Answers that are long come by and by. So all connections together take bounded memory.
"""

from __future__ import annotations

import gzip
import mimetypes
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from datacollect.bistro.one_host.front_table import front_of
from datacollect.bistro.page.files import HEADERS, PAGE, SCRIPT, read_headers
from datacollect.errors import ProblemError, TransferError
from datacollect.files.documents import document_name
from datacollect.net.http_asking import Askers
from datacollect.net.names import host_port_text
from datacollect.net.tls import web_context
from datacollect.transfer.agent.handlers import AgentHandlers, Started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from datacollect.net.http_asking import Incoming
    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.agent.shell.handling import Exchange, Handler

# No request to a service, a witness or a log is longer.
MOST_REQUEST_BYTES = 2**20
# Of all requests that are being read: others come again.
MOST_HELD_BYTES = 64 * 2**20
# An answer of so much is read whole: who is slow to take it keeps nobody from the server behind.
SHORT_BYTES = 64 * 1024
# Who posts what is so short is done in less, or holds a place for its own sake.
BODY_S = 60.0
# What servers read as they read all: behind CONNECT some take the next request for its body.
METHODS = ("GET", "HEAD", "POST", "OPTIONS")
# Whom is asked again by the client, and when.
AWAY, FULL, AGAIN_S = 502, 503, "2"
# What belongs to one connection alone, or is said by the agent itself.
OF_CONNECTION = frozenset(
    ("connection", "keep-alive", "transfer-encoding", "content-length", "date", "server", "upgrade")
)
TEXT_TYPE = "text/plain; charset=utf-8"
# What the system may call otherwise, or not know.
TYPES = {".js": "text/javascript; charset=utf-8", ".html": "text/html; charset=utf-8"}


class Room:
    """Memory that requests take together; safe to use from several threads.

    Parameters
    ----------
    n_bytes : int
        Of all of them.
    """

    def __init__(self, n_bytes: int) -> None:
        self._lock = threading.Lock()
        self.left_bytes = n_bytes

    @contextmanager
    def of(self, n_bytes: int) -> Iterator[bool]:
        """Yield whether there is room for so much; if so, it is taken within."""
        with self._lock:
            is_room = n_bytes <= self.left_bytes
            self.left_bytes -= n_bytes if is_room else 0
        try:
            yield is_room
        finally:
            with self._lock:
                self.left_bytes += n_bytes if is_room else 0


class Passing:
    """Passes requests on to a server of this host, and its answers back.

    Parameters
    ----------
    prefix : str
        What the paths begin with; the server does not see it.
    url : str
        Of the server.
    askers : Askers
    room : Room
        For requests.
    """

    def __init__(self, prefix: str, url: str, askers: Askers, room: Room) -> None:
        self._prefix, self._url, self._askers, self._room = prefix, url, askers, room

    def answer(self, exchange: Exchange) -> None:
        """Answer a request as the server does; 502: it does not, 503: too much is under way.

        Raises
        ------
        OSError, TransferError
            The client has gone.
        """
        # Anybody may promise a body, or ask and not read: neither keeps others out.
        exchange.hold_place(False)
        if exchange.method not in METHODS:
            allowed = ", ".join(METHODS)
            _say(exchange, 405, f"what is here is asked by {allowed}", ("Allow", allowed))
            return
        if exchange.body_bytes > MOST_REQUEST_BYTES:
            _say(exchange, 413, "the body is longer than any request here needs")
            return
        with self._room.of(exchange.body_bytes) as is_room:
            if not is_room:
                text = "too much is under way here; try again"
                _say(exchange, FULL, text, ("Retry-After", AGAIN_S))
                return
            body, end_s = bytearray(), time.monotonic() + BODY_S
            while part := exchange.read():
                body += part
                if time.monotonic() > end_s:
                    _say(exchange, 408, "the body did not come in time; send it again")
                    return
            with ExitStack() as reading:
                try:
                    answer = self._asked(exchange, bytes(body), reading)
                    short = None
                    if answer.n_bytes <= SHORT_BYTES:
                        short = b"".join(answer.blocks())
                        reading.close()
                except TransferError:
                    text = "this part of the event does not answer; try again"
                    _say(exchange, AWAY, text, ("Retry-After", AGAIN_S))
                    return
                headers = [each for each in answer.headers.items() if each[0] not in OF_CONNECTION]
                if short is None:
                    exchange.stream(answer.status, headers, answer.n_bytes, answer.blocks())
                else:
                    exchange.answer(answer.status, headers, short)

    def _asked(self, exchange: Exchange, body: bytes, reading: ExitStack) -> Incoming:
        """Return the answer of the server, which is read within."""
        headers = {"X-Forwarded-For": exchange.address}
        if "content-type" in exchange.headers:
            headers["Content-Type"] = exchange.headers["content-type"]
        path = exchange.target.removeprefix(self._prefix.rstrip("/"))
        sent = body if body or exchange.method == "POST" else None
        asker = reading.enter_context(self._askers.of(self._url))
        for is_last in (False, True):
            try:
                return reading.enter_context(asker.begun(exchange.method, path, headers, sent))
            except TransferError:
                # A kept connection may have just ended; what is posted here may come twice.
                if is_last:
                    raise
        raise AssertionError("it was asked twice")


class Page:
    """Shows a file of the event's page.

    Parameters
    ----------
    path : Path
        Of the file.
    headers : dict of str to str
        Those of `HEADERS`, which the page and its script are served with.
    """

    def __init__(self, path: Path, headers: dict[str, str]) -> None:
        self._path, self._headers = path, headers
        self._lock = threading.Lock()
        self._written_ns = -1
        self._plain = b""
        self._packed: bytes | None = None

    def answer(self, exchange: Exchange) -> None:
        """Answer a request with the file as it is now, packed for who says that he unpacks it."""
        # Who asks and does not read keeps nobody out.
        exchange.hold_place(False)
        if exchange.method not in ("GET", "HEAD"):
            _say(exchange, 405, "a page is read by GET", ("Allow", "GET, HEAD"))
            return
        is_packed = "gzip" in exchange.headers.get("accept-encoding", "")
        try:
            data = self._data(is_packed=is_packed)
        except OSError:
            _say(exchange, 404, "this file of the page is not there any more")
            return
        packed = [("Content-Encoding", "gzip")] if is_packed else []
        headers = [("Content-Type", _type_of(self._path)), ("Vary", "Accept-Encoding"), *packed]
        exchange.answer(200, [*headers, *self._headers.items()], data)

    def _data(self, *, is_packed: bool) -> bytes:
        """Return the file as it is: read, and packed, once for all who ask at a time."""
        with self._lock:
            written_ns = self._path.stat().st_mtime_ns
            if written_ns != self._written_ns:
                self._plain, self._packed = self._path.read_bytes(), None
                self._written_ns = written_ns
            if not is_packed:
                return self._plain
            if self._packed is None:
                self._packed = gzip.compress(self._plain, mtime=0)
            return self._packed


def _type_of(path: Path) -> str:
    guessed = mimetypes.guess_type(path.name)[0] or "text/plain"
    whole = f"{guessed}; charset=utf-8" if guessed.startswith("text/") else guessed
    return TYPES.get(path.suffix, whole)


def _say(exchange: Exchange, status: int, text: str, *headers: tuple[str, str]) -> None:
    exchange.answer(status, [("Content-Type", TEXT_TYPE), *headers], f"{text}\n".encode())


def page_handlers(folder: Path) -> dict[str, Handler]:
    """Return who shows the files of a page's folder, by path; the page itself at ``/``, too.

    Raises
    ------
    ProblemError
        There is no page.
    """
    try:
        headers = read_headers((folder / HEADERS).read_text(encoding="utf-8"))
        names = sorted(path.name for path in folder.iterdir() if path.is_file())
    except (OSError, ValueError):
        names, headers = [], {}
    if PAGE not in names or not headers:
        raise ProblemError(
            f"front.page: {document_name(folder)} must be the folder of an event's page; "
            "`datacollect event page EVENT -o DIR` writes one"
        )
    found = {
        f"/{name}": Page(folder / name, headers if name in (PAGE, SCRIPT) else {}).answer
        for name in names
    }
    return {"/": found[f"/{PAGE}"], **found}


def _start(config: AgentConfig, _log: Callable[[str], None]) -> Started:
    front = front_of(config)
    askers, room = Askers(web_context()), Room(MOST_HELD_BYTES)
    passed = {
        f"/{name}/": Passing(f"/{name}/", f"http://{host_port_text(*place)}", askers, room).answer
        for name, place in front.to.items()
    }
    return Started({**page_handlers(front.page), **passed}, close=askers.close)


FRONT_HANDLERS = AgentHandlers("front", _start)
