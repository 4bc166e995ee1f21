"""A web server that misbehaves as it is told to, for each file, and counts what it sends.

It speaks HTTP/1.1 by itself: libraries would not let it be wrong.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import unquote

from judges.misbehaving_answers import (
    HOP,
    LOGIN,
    MOVED,
    PAGE,
    Answer,
    Elsewhere,
    Ends,
    Pace,
    Request,
    ServedFile,
    answer,
)
from judges.misbehaviour import HONEST, Behaviour

MOST_HEAD_BYTES = 64 * 1024
# What a client has not read and never will is sent all the same: keep that little.
SEND_BUFFER_BYTES = 16 * 1024
DRIP_S, TRICKLE_S = 0.02, 0.3
# Before the first byte: less than any client's limit.
LATE_S = 1.5
FIRST_WINDOW_BYTES, ROUND_TRIP_S = 14_600, 0.1
CHUNKS = 3
BLOCK = bytes(16 * 1024)
# Of an answer that never ends: enough to show who listens to all of it.
MOST_ENDLESS_BYTES = 20_000_000
NOT_FOUND = Answer(404, payload=b"no", lengths=("2",))


@dataclass
class Site:
    """Files by path with a behaviour each, and the requests for them.

    Attributes
    ----------
    files : dict
        By path, beginning with "/" and not encoded.
    behaviours : dict
        By path; a file without one is honest.
    elsewhere : Elsewhere
    n_requests, sent_bytes : Counter
        By path: requests, redirects included, and bytes of bodies that were sent.
    requests : list of (str, str)
        Request line and value of Range of each request, in order.
    """

    files: dict[str, ServedFile]
    behaviours: dict[str, Behaviour] = field(default_factory=dict)
    elsewhere: Elsewhere = field(default_factory=Elsewhere)
    n_requests: Counter = field(default_factory=Counter)
    sent_bytes: Counter = field(default_factory=Counter)
    requests: list[tuple[str, str]] = field(default_factory=list)
    _n_before: Counter = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def behave(self, behaviours: Mapping[str, Behaviour]) -> None:
        """Behave so from now on, and begin to count again."""
        with self._lock:
            self.behaviours = dict(behaviours)
            self.requests = []
            for counts in (self.n_requests, self.sent_bytes, self._n_before):
                counts.clear()

    def answer(self, method: str, target: str, headers: Mapping[str, str]) -> tuple[str, Answer]:
        """Return the path of the file that is asked for, and the answer.

        Parameters
        ----------
        method : str
        target : str
            As in the request line.
        headers : mapping of str to str
            Names in lowercase.
        """
        path, is_moved, n_hops = _parsed(unquote(target.split("?", maxsplit=1)[0]))
        file, behaviour = self.files.get(path), self.behaviours.get(path, HONEST)
        if path.startswith(LOGIN):
            behaviour = Behaviour(status=path.rpartition("/")[2] or "ranges", body="page")
            file = ServedFile(PAGE, PAGE, PAGE)
        with self._lock:
            self.requests.append((f"{method} {target}", headers.get("range", "")))
            self.n_requests[path] += 1
            stage = path, is_moved, n_hops
            n_before = self._n_before[stage]
            self._n_before[stage] += 1
        if file is None or method not in ("GET", "HEAD"):
            return path, NOT_FOUND
        request = Request(
            path,
            n_before,
            *_asked_range(headers.get("range", ""), len(file.data)),
            if_range=headers.get("if-range"),
            is_moved=is_moved,
            n_hops=n_hops,
            is_head=method == "HEAD",
        )
        return path, answer(behaviour, file, request, self.elsewhere)

    def sent(self, path: str, n_bytes: int) -> None:
        """Count bytes."""
        with self._lock:
            self.sent_bytes[path] += n_bytes


def _parsed(path: str) -> tuple[str, bool, int]:
    """Return a path without what redirects put before it, whether they did, and how many."""
    if path.startswith(f"{MOVED}/"):
        return path.removeprefix(MOVED), True, 0
    if found := re.fullmatch(rf"{HOP}/(\d{{1,4}})(/.*)", path, re.DOTALL):
        return found[2], True, int(found[1])
    return path, False, 0


def _asked_range(text: str, n: int) -> tuple[int | None, int | None]:
    """Return the range that is asked for, of a file of `n` bytes; what is none is ignored."""
    found = re.fullmatch(r"bytes=(\d*)-(\d*)", text)
    if not found or not (found[1] or found[2]):
        return None, None
    if not found[1]:
        return max(0, n - int(found[2])), None
    if found[2] and int(found[2]) < int(found[1]):
        return None, None
    return int(found[1]), int(found[2]) if found[2] else None


class MisbehavingServer:
    """Serves a site on a free port of loopback, a thread for each connection.

    Parameters
    ----------
    site : Site
    tls : ssl.SSLContext, optional
        It speaks TLS by this.
    patience_s : float
        How long it says nothing where it stalls, before it closes the connection.
    """

    def __init__(
        self, site: Site, *, tls: ssl.SSLContext | None = None, patience_s: float = 5.0
    ) -> None:
        self.site, self.patience_s = site, patience_s
        self._tls = tls
        self._is_over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        """Its URL, without a slash in the end."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def close(self) -> None:
        """End it, and all connections."""
        self._is_over.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._is_over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # Who goes away is no failure of ours.
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(60.0)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            self._open.add(connection)
            try:
                self._talk(connection)
            finally:
                self._open.discard(connection)
        with suppress(OSError):
            connection.close()

    def _talk(self, connection: socket.socket) -> None:
        buffer = b""
        while not self._is_over.is_set():
            while b"\r\n\r\n" not in buffer:
                data = connection.recv(65536)
                if not data or len(buffer) > MOST_HEAD_BYTES:
                    return
                buffer += data
            head, _, buffer = buffer.partition(b"\r\n\r\n")
            method, target, headers = _read_head(head.decode("latin-1"))
            path, found = self.site.answer(method, target, headers)
            try:
                self._send(connection, path, found)
            except OSError:
                return
            if not self._goes_on(connection, path, found) or headers.get("connection") == "close":
                return

    def _send(self, connection: socket.socket, path: str, found: Answer) -> None:
        body = _in_chunks(found) if found.is_chunked else found.payload
        head = b"" if found.status == 0 else _head(found)
        if found.pace is Pace.LATE and self._is_over.wait(LATE_S):
            return
        if found.pace in (Pace.PROMPT, Pace.LATE):
            self._send_at_once(connection, path, head, body)
            return
        connection.sendall(head)
        is_drip = found.pace is Pace.DRIP
        step = max(1, -(-len(body) // 8)) if is_drip else 1
        until_s = time.monotonic() + self.patience_s
        for begin in range(0, len(body), step):
            if self._is_over.wait(DRIP_S if is_drip else TRICKLE_S):
                return
            connection.sendall(body[begin : begin + step])
            self.site.sent(path, len(body[begin : begin + step]))
            if not is_drip and time.monotonic() > until_s:
                raise ConnectionAbortedError("it has trickled long enough")

    def _send_at_once(self, connection: socket.socket, path: str, head: bytes, body: bytes) -> None:
        """Send; as over a long way, whoever wants no more is heard after the first window."""
        begin, rest = body[:FIRST_WINDOW_BYTES], body[FIRST_WINDOW_BYTES:]
        connection.sendall(head + begin)
        self.site.sent(path, len(begin))
        if rest:
            has_news = select.select([connection], [], [], ROUND_TRIP_S)[0] and self._tls is None
            if has_news and not connection.recv(1, socket.MSG_PEEK):
                raise ConnectionAbortedError("nobody listens")
            connection.sendall(rest)
            self.site.sent(path, len(rest))

    def _goes_on(self, connection: socket.socket, path: str, found: Answer) -> bool:
        """Do what comes after an answer; tell whether the connection is still of use."""
        match found.ends:
            case Ends.STAYS:
                return True
            case Ends.RESETS:
                now = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
            case Ends.WAITS:
                self._is_over.wait(self.patience_s)
            case Ends.NEVER:
                block = BLOCK if found.status else _more_head(found.payload)
                for _ in range(MOST_ENDLESS_BYTES // len(block)):
                    if self._is_over.is_set():
                        break
                    connection.sendall(block)
                    self.site.sent(path, len(block))
        return False


def _more_head(begun: bytes) -> bytes:
    """Return what goes on with a head: its last line, or lines like it."""
    return b"X-More: more\r\n" * 1000 if begun.endswith(b"\r\n") else b"x" * len(BLOCK)


def _read_head(text: str) -> tuple[str, str, dict[str, str]]:
    first, *lines = text.split("\r\n")
    method, _, rest = first.partition(" ")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return method, rest.rpartition(" ")[0], headers


def _head(found: Answer) -> bytes:
    lines = []
    if found.informational is not None:
        lines += [_status_line(found.informational), "Link: </style.css>", ""]
    lines.append(_status_line(found.status))
    lines += [f"{name}: {value}" for name, value in found.headers]
    lines += [f"Content-Length: {value}" for value in found.lengths]
    if found.is_chunked:
        lines.append("Transfer-Encoding: chunked")
    if found.ends is not Ends.STAYS:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _status_line(status: int) -> str:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"


def _in_chunks(found: Answer) -> bytes:
    step = max(1, -(-len(found.payload) // CHUNKS))
    parts = [found.payload[i : i + step] for i in range(0, len(found.payload), step)]
    chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in parts]
    return b"".join(chunks) + (b"0\r\n\r\n" if found.is_ended else b"")


@contextmanager
def misbehaving_server(
    site: Site, *, tls: ssl.SSLContext | None = None, patience_s: float = 5.0
) -> Iterator[MisbehavingServer]:
    """Serve a site until the block ends."""
    server = MisbehavingServer(site, tls=tls, patience_s=patience_s)
    try:
        yield server
    finally:
        server.close()
