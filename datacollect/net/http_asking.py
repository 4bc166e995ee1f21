"""Short HTTP requests to servers by their URL: bounded responses, usual checks of TLS."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from datacollect.errors import TransferError
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import dial, start_tls
from datacollect.net.http_client import HttpChannel
from datacollect.net.http_heads import request_head
from datacollect.net.names import host_and_port, host_port_text
from datacollect.net.tls import require_fingerprint, web_context

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType

# How long an answer may take that comes by and by, and what one has at most where nobody says.
ANSWER_S = 10.0
MOST_ANSWER_BYTES = 65_536
# Nobody comes again later than this, whatever a server says.
MOST_RETRY_AFTER_S = 3600.0
NO_BODY = (204, 304)
# What is read at a time of an answer that may be long.
BLOCK_BYTES = 65_536
# How long a refusal is waited for that comes instead of taking all.
GOODBYE_S = 2.0


class Answer(NamedTuple):
    """Response of a server; `retry_after_s`: when it wants to be asked again.

    `headers` has their names in lowercase.
    """

    status: int
    body: bytes
    retry_after_s: float | None = None
    headers: Mapping[str, str] = MappingProxyType({})


class Incoming:
    """An answer whose body is still to come, see `Asker.begun`.

    Attributes
    ----------
    status : int
    headers : mapping
        By lowercase name.
    n_bytes : int
        Of the body.
    left_bytes : int
        Of these, what was not read yet.
    """

    def __init__(
        self, status: int, headers: Mapping[str, str], n_bytes: int, read: Callable[[int], bytes]
    ) -> None:
        self.status, self.headers, self.n_bytes = status, headers, n_bytes
        self.left_bytes = n_bytes
        self._read = read

    def blocks(self) -> Iterator[bytes]:
        """Yield what is left of the body, by and by.

        Raises
        ------
        TransferError
            The server is too slow, or has gone.
        """
        while self.left_bytes:
            data = self._read(min(self.left_bytes, BLOCK_BYTES))
            self.left_bytes -= len(data)
            yield data


class Asker:
    """Asks one server, over one connection that is kept as long as it lasts.

    For one thread at a time. Redirections are answers like others: nobody follows them.

    Parameters
    ----------
    url : str
        Of http or https, without query.
    tls : ssl.SSLContext, optional
        By default what `web_context` makes, which takes a while.
    timeout_s : float
        How long connecting, and each answer, may take.
    fingerprint : str, optional
        Of its certificate, where that is pinned, and not verified by `tls`.
    what : str, optional
        What runs there, as messages call it.

    Raises
    ------
    TransferError
        When it is asked: it cannot be reached, is another, or answers no HTTP, too slowly or too
        much.
    """

    def __init__(
        self,
        url: str,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = ANSWER_S,
        fingerprint: str | None = None,
        what: str = "server",
    ) -> None:
        self._fingerprint, self._what = fingerprint, what
        parts = urlsplit(url)
        self._is_tls = parts.scheme == "https"
        self._address = address_of(url)
        self._path = parts.path.rstrip("/")
        self._name = host_port_text(*self._address)
        self._tls, self._timeout_s = tls, timeout_s
        self._channel: HttpChannel | None = None

    def __enter__(self) -> Asker:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def get(self, path: str, most_bytes: int = MOST_ANSWER_BYTES) -> Answer:
        """Return the answer to a GET of a path below the URL."""
        return self._asked("GET", path, None, {}, most_bytes)

    def post(
        self, path: str, body: bytes, content_type: str, most_bytes: int = MOST_ANSWER_BYTES
    ) -> Answer:
        """Return the answer to a POST to a path below the URL."""
        return self._asked("POST", path, body, {"Content-Type": content_type}, most_bytes)

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        blocks: Iterable[bytes] = (),
        n_bytes: int | None = None,
        most_bytes: int = MOST_ANSWER_BYTES,
    ) -> Answer:
        """Return the answer to any request, which is sent once: it may change something.

        A connection that the server has ended meanwhile is made again before anything is sent.

        Parameters
        ----------
        method, path : str
        headers : mapping
        blocks : iterable of bytes
            The body; it may take its time, as long as some of it is taken now and then.
        n_bytes : int, optional
            Of the body; None: there is none.
        most_bytes : int
            Of the answer.
        """
        if self._channel is not None and not self._channel.is_quiet:
            self.close()
        length = {} if n_bytes is None else {"Content-Length": str(n_bytes)}
        try:
            if self._channel is None:
                self._channel = self._opened(Deadline(self._timeout_s))
            channel = self._channel
            channel.send(self._request(method, path, None, {**headers, **length}))
            try:
                for block in blocks:
                    channel.send(block)
            except TransferError:
                # A server that refuses answers before it has all of it.
                with suppress(TransferError):
                    answer = self._answered(channel, most_bytes, Deadline(GOODBYE_S))
                    self.close()
                    return answer
                raise
            deadline = Deadline(self._timeout_s)
            return self._answered(channel, most_bytes, deadline, is_head=method == "HEAD")
        except BaseException:
            self.close()
            raise

    @contextmanager
    def begun(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> Iterator[Incoming]:
        """Yield the answer to any request once its head has come; its body is read within.

        The request is sent once. The answer must say how long it is: it may be of any length.
        """
        if self._channel is not None and not self._channel.is_quiet:
            self.close()
        incoming = None
        try:
            if self._channel is None:
                self._channel = self._opened(Deadline(self._timeout_s))
            channel = self._channel
            channel.send(self._request(method, path, body, headers))
            head = channel.head(Deadline(self._timeout_s))
            n_bytes = 0 if method == "HEAD" or head.status in NO_BODY else head.length
            if head.status < 200 or n_bytes is None:
                raise TransferError(f"{self._name}: its response says no length")
            incoming = Incoming(
                head.status,
                head.headers,
                n_bytes,
                lambda n: channel.body(n, n, Deadline(self._timeout_s)),
            )
            yield incoming
        finally:
            is_whole = incoming is not None and not incoming.left_bytes
            if not is_whole or "close" in head.headers.get("connection", "").lower():
                self.close()

    def _asked(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        most_bytes: int,
    ) -> Answer:
        is_kept = self._channel is not None
        raw = self._request(method, path, body, headers)
        try:
            return self._answer(raw, most_bytes)
        except TransferError:
            self.close()
            # What was kept open may have been closed meanwhile, which only asking shows.
            if not is_kept:
                raise
        except BaseException:
            self.close()
            raise
        try:
            return self._answer(raw, most_bytes)
        except BaseException:
            self.close()
            raise

    def _request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> bytes:
        target = f"{self._path}{path}" or "/"
        length = [] if body is None else [("Content-Length", str(len(body)))]
        head = request_head(method, target, self._name, [*headers.items(), *length])
        return head + (body or b"")

    def _answer(self, raw: bytes, most_bytes: int) -> Answer:
        deadline = Deadline(self._timeout_s)
        if self._channel is None:
            self._channel = self._opened(deadline)
        self._channel.send(raw)
        return self._answered(self._channel, most_bytes, deadline)

    def _opened(self, deadline: Deadline) -> HttpChannel:
        return HttpChannel(self._connected(deadline), self._name, self._timeout_s)

    def _answered(
        self,
        channel: HttpChannel,
        most_bytes: int,
        deadline: Deadline,
        *,
        is_head: bool = False,
    ) -> Answer:
        head = channel.head(deadline)
        if head.status < 200:
            raise TransferError(f"{self._name}: unexpected status {head.status}")
        body = b""
        if head.status not in NO_BODY and not is_head:
            if head.is_chunked:  # as proxies answer
                body = channel.chunked_body(most_bytes, deadline)
            else:
                body = channel.body(head.length, most_bytes, deadline)
        if "close" in head.headers.get("connection", "").lower():
            self.close()
        again_s = _seconds(head.headers.get("retry-after", ""))
        return Answer(head.status, body, again_s, head.headers)

    def _connected(self, deadline: Deadline) -> socket.socket:
        plain = dial([self._address], self._name, deadline, what=self._what)
        if not self._is_tls:
            return plain
        try:
            self._tls = self._tls or web_context()
        except BaseException:
            plain.close()
            raise
        connection = start_tls(plain, self._tls, self._address[0], self._name, deadline)
        if self._fingerprint is not None:
            try:
                require_fingerprint(connection, self._fingerprint, self._name)
            except BaseException:
                connection.close()
                raise
        return connection


class Askers:
    """Connections to several servers, kept from one question to the next, for many threads.

    To make a connection costs a server more than to answer. `close` closes them; those that are in
    use are closed after their question.

    Parameters
    ----------
    tls : ssl.SSLContext
    """

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._lock = threading.Lock()
        self._idle: list[tuple[str, Asker]] | None = []

    @contextmanager
    def of(self, url: str) -> Iterator[Asker]:
        """Yield one who asks a server, and is nobody else's meanwhile."""
        asker = self._taken(url)
        try:
            yield asker
        finally:
            with self._lock:
                if self._idle is None:
                    asker.close()
                else:
                    self._idle.append((url, asker))

    def _taken(self, url: str) -> Asker:
        with self._lock:
            idle = self._idle or []
            for i, (other, _) in enumerate(idle):
                if other == url:
                    return idle.pop(i)[1]
        return Asker(url, self._tls)

    def close(self) -> None:
        """Close what is not in use."""
        with self._lock:
            idle, self._idle = self._idle or [], None
        for _, asker in idle:
            asker.close()


def address_of(url: str) -> tuple[str, int]:
    """Return host and port of a server by its URL, of https or http.

    >>> address_of("https://s.example/a"), address_of("http://[::1]:8080")
    (('s.example', 443), ('::1', 8080))
    """
    parts = urlsplit(url)
    return host_and_port(parts.netloc, default_port=443 if parts.scheme == "https" else 80)


def _seconds(text: str) -> float | None:
    found = re.fullmatch(r"[0-9]{1,9}", text.strip(), re.ASCII)
    return min(float(found[0]), MOST_RETRY_AFTER_S) if found else None
