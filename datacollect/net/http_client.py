"""The client's side of HTTP over one connection: requests out, heads and bodies in, blocking.

For one thread at a time; only `HttpChannel.abort` may be called from another. What is small, heads
and bodies in JSON, has a deadline of the step that wants it; of the bytes of files each call that
waits gives up after `timeout_s` seconds in which nothing arrives.
"""

from __future__ import annotations

import select
import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from datacollect.errors import TransferError
from datacollect.net.dialling import as_failure, naming_peer
from datacollect.net.http_heads import END, MOST_HEAD_BYTES, chunk_length, response_head
from datacollect.net.tcp_info import tcp_info
from datacollect.net.tls import say_goodbye
from datacollect.net.tls_stream import RECORD_BYTES
from datacollect.net.turns import InTurns

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.net.deadline import Deadline
    from datacollect.net.http_heads import ResponseHead

LINE_END = b"\r\n"
# Of a line between chunks.
MOST_LINE_BYTES = 1024


class Pacer(Protocol):
    """Limits that what is received keeps to; see `datacollect.transfer.rates.pacer`."""

    def reading(self, connection: socket.socket) -> Callable[[Any], int]:
        """Return what reads from a connection as its ``recv_into`` does, in its turn."""

    def count(self, n_bytes: int) -> None:
        """Count bytes that have not waited."""

    def end(self) -> None:
        """Share the limits no more, and wait no longer; from any thread."""


class HttpChannel:
    """A connection to a server that speaks HTTP.

    Parameters
    ----------
    connection : ssl.SSLSocket or socket.socket
    name : str
        The server, for messages.
    timeout_s : float
        How long a call for bytes of files waits.
    pacer : Pacer, optional
        Limits: bytes of files wait for their turn, all else counts.

    Attributes
    ----------
    received_bytes : int
        Bytes of files that have arrived; grows while `fill` waits.
    """

    def __init__(
        self,
        connection: ssl.SSLSocket | socket.socket,
        name: str,
        timeout_s: float,
        pacer: Pacer | None = None,
    ) -> None:
        self.received_bytes = 0
        self._pacer = pacer
        self._recv_into: Callable[[Any], int] = (
            InTurns(connection).recv_into if pacer is None else pacer.reading(connection)
        )
        self._connection, self._name, self._timeout_s = connection, name, timeout_s
        self._ahead = b""
        connection.settimeout(timeout_s)

    @property
    def is_quiet(self) -> bool:
        """Return whether a request may be sent.

        Nothing has come since the last answer, no end either.
        """
        if self._ahead or (
            isinstance(self._connection, ssl.SSLSocket) and self._connection.pending()
        ):
            return False
        # Not `select`, which knows a thousand descriptors.
        polling = select.poll()
        polling.register(self._connection, select.POLLIN)
        return not polling.poll(0)

    def send(self, raw: bytes) -> None:
        """Send a request."""
        with naming_peer(self._name):
            self._connection.sendall(raw)

    def head(self, deadline: Deadline | None = None) -> ResponseHead:
        """Return the head of the next answer.

        Raises
        ------
        TransferError
            The connection is lost, the deadline passes, or the answer is no HTTP.
        """
        while END not in self._ahead:
            if len(self._ahead) > MOST_HEAD_BYTES:
                raise TransferError(f"{self._name}: the head of its response is too long")
            data = self._receive(deadline)
            if not data:
                raise TransferError(f"{self._name}: connection closed before a response")
            self._ahead += data
        end = self._ahead.index(END) + len(END)
        raw, self._ahead = self._ahead[:end], self._ahead[end:]
        with as_failure(self._name):
            return response_head(raw)

    def body(self, length: int | None, most: int, deadline: Deadline) -> bytes:
        """Return the body of an answer, which must say how long it is."""
        if length is None:
            raise TransferError(f"{self._name}: its response has neither Content-Length nor chunks")
        if length > most:
            raise TransferError(
                f"{self._name}: its response has {length} bytes, the limit is {most}"
            )
        parts = [self._ahead[:length]]
        self._ahead = self._ahead[length:]
        left = length - len(parts[0])
        while left:
            # Only what comes takes memory, not what a head announces.
            data = self._receive(deadline, left)
            if not data:
                raise TransferError(f"{self._name}: connection closed in the middle of a response")
            parts.append(data)
            left -= len(data)
        return b"".join(parts)

    def chunked_body(self, most: int, deadline: Deadline) -> bytes:
        """Return the body of an answer that comes in chunks; what follows the last is dropped."""
        parts, n_bytes = [], 0
        while length := self._chunk_length(deadline):
            n_bytes += length
            if n_bytes > most:
                raise TransferError(f"{self._name}: its response has more than {most} bytes")
            parts.append(self.body(length, most, deadline))
            if self._line(deadline):
                raise TransferError(f"{self._name}: malformed response: a chunk exceeds its size")
        n_left = MOST_HEAD_BYTES
        while trailer := self._line(deadline):
            n_left -= len(trailer)
            if n_left < 0:
                raise TransferError(f"{self._name}: the trailers of its response are too long")
        return b"".join(parts)

    def _chunk_length(self, deadline: Deadline) -> int:
        length = chunk_length(self._line(deadline))
        if length is None:
            raise TransferError(f"{self._name}: malformed response: a chunk has no size")
        return length

    def _line(self, deadline: Deadline) -> bytes:
        """Return the next line, without its end."""
        while LINE_END not in self._ahead:
            if len(self._ahead) > MOST_LINE_BYTES:
                raise TransferError(f"{self._name}: a line of its response is too long")
            data = self._receive(deadline)
            if not data:
                raise TransferError(f"{self._name}: connection closed in the middle of a response")
            self._ahead += data
        line, _, self._ahead = self._ahead.partition(LINE_END)
        return line

    def fill(self, view: memoryview, *, counted: bool = True) -> None:
        """Receive until the view is full."""
        taken = min(len(self._ahead), len(view))
        view[:taken] = self._ahead[:taken]
        self._ahead = self._ahead[taken:]
        self.received_bytes += taken if counted else 0
        with naming_peer(self._name):  # once, not for each of a piece's thousand records
            self._connection.settimeout(self._timeout_s)
            while taken < len(view):
                n_bytes = self._recv_into(view[taken:])
                if n_bytes == 0:
                    break
                taken += n_bytes
                self.received_bytes += n_bytes if counted else 0
        if taken < len(view):
            raise TransferError(f"{self._name}: connection closed in the middle of a response")

    def tcp_info(self) -> dict[str, float]:
        """Return what the kernel knows of this host's connection: to the server or first relay."""
        return tcp_info(self._connection)

    def abort(self) -> None:
        """End it from another thread; what waits in it raises `TransferError`."""
        if self._pacer is not None:
            self._pacer.end()
        with suppress(OSError):  # not connected any more
            # Not SSLSocket.shutdown, which would take TLS away under the other thread's feet.
            socket.socket.shutdown(self._connection, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        if self._pacer is not None:
            self._pacer.end()
        if isinstance(self._connection, ssl.SSLSocket):
            say_goodbye(self._connection)
        self._connection.close()

    def _receive(self, deadline: Deadline | None, most: int = RECORD_BYTES) -> bytes:
        with naming_peer(self._name):
            if deadline is None:
                self._connection.settimeout(self._timeout_s)
                return self._connection.recv(min(most, RECORD_BYTES))
            data = None
            while data is None:
                self._connection.settimeout(deadline.left_s())
                with suppress(TimeoutError):  # the deadline says whether it is over
                    data = self._connection.recv(min(most, RECORD_BYTES))
            deadline.came(len(data))
        if self._pacer is not None:
            self._pacer.count(len(data))
        return data
