"""The collector's side of a session: through relays to an agent, one TLS connection, pipelined.

Blocking, for one thread at a time; only `SourceSession.abort` may be called from another. Every
call that waits gives up after `timeout_s` seconds in which nothing arrives.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from datacollect.errors import ProblemError, RefusedError, TransferError
from datacollect.kinds import shown
from datacollect.transfer.wire import connect as connecting
from datacollect.transfer.wire import messages
from datacollect.transfer.wire.messages import (
    CHANGED,
    MOST_ANSWER_BYTES,
    TAIL_BYTES,
    Confirmation,
    ReadAnswer,
    SessionFacts,
)
from datacollect.transfer.wire.tcp_info import tcp_info
from datacollect.transfer.wire.tls import require_fingerprint, say_goodbye
from datacollect.transfer.wire.told import told

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import h11

    from datacollect.transfer.wire.messages import AgentFacts, FileEntry, InventoryPage, Read

# Requests that may be unanswered; the bytes of them that surely fit into the kernel's buffers while
# the agent is busy sending: with more both sides could wait for each other.
MOST_OUTSTANDING = 64
OUTSTANDING_BYTES = 64 * 1024

MOST_HEAD_BYTES = 16 * 1024
# One record of TLS.
RECORD_BYTES = 16 * 1024
REFUSAL_BYTES = 64 * 1024


@dataclass(frozen=True)
class Hop:
    """A relay on the way.

    Attributes
    ----------
    name : str
        As the relay before it calls it; of the first, any.
    address : tuple of str and int
        Host and port; used of the first only, the others are reached by name.
    ticket : str
        Token of the relay ticket for this relay.
    """

    name: str
    address: tuple[str, int]
    ticket: str


def open_way(
    hops: Sequence[Hop],
    name: str,
    address: tuple[str, int],
    *,
    timeout_s: float,
    congestion: str | None = None,
) -> socket.socket:
    """Return a plain connection to `name` through the hops; without hops, to its address.

    Parameters
    ----------
    hops : sequence of Hop
        Relays, the nearest first.
    name : str
        The last host, as the last relay calls it (``connect_to``).
    address : tuple of str and int
        Its host and port, used without hops.
    timeout_s : float
        How long one step may take, seconds.
    congestion : str or None
        Congestion control of this host's own connection, such as ``"cubic"``; None: the kernel's.

    Raises
    ------
    RefusedError
        A relay refuses: its status is kept.
    TransferError
        The first host cannot be reached, or a relay does not answer.
    """
    first = hops[0].address if hops else address
    names = [*(hop.name for hop in hops), name]
    connection = _dial(first, names[0], timeout_s, congestion)
    try:
        for hop, target in zip(hops, names[1:], strict=True):
            with telling(hop.name):
                connection.sendall(connecting.connect_request(target, hop.ticket))
                _require_established(connection, hop.name, target)
    except BaseException:
        connection.close()
        raise
    return connection


def connect(
    hops: Sequence[Hop],
    name: str,
    address: tuple[str, int],
    tls: ssl.SSLContext,
    fingerprint: str | None,
    *,
    timeout_s: float,
    congestion: str | None = None,
) -> SourceSession:
    """Return a session with an agent, over TLS from end to end.

    Parameters are those of `open_way`, and

    tls : ssl.SSLContext
        `datacollect.transfer.wire.tls.client_context`.
    fingerprint : str or None
        What the agent's certificate must have; None: `tls` must know who has signed it.

    Raises
    ------
    RefusedError, TransferError
        As `open_way`; or TLS fails, or the certificate is another's.
    """
    plain = open_way(hops, name, address, timeout_s=timeout_s, congestion=congestion)
    try:
        with telling(name):
            connection = tls.wrap_socket(plain, server_hostname=address[0])
    except BaseException:
        plain.close()
        raise
    try:
        require_fingerprint(connection, fingerprint, name)
    except BaseException:
        connection.close()
        raise
    return SourceSession(connection, name)


class SourceSession:
    """Requests to one agent over one TLS connection; answers come in the order of the requests.

    The first request but `agent` needs a ticket, the others may leave it out.

    Attributes
    ----------
    name : str
        The agent, for messages.
    received_bytes : int
        Bytes of files that have arrived; grows while `receive_into` waits.
    """

    def __init__(self, connection: ssl.SSLSocket, name: str) -> None:
        self.name = name
        self.received_bytes = 0
        self._connection = connection
        self._ahead = b""
        # Of requests that are not answered yet: h11's view, bytes of the request, of the answer.
        self._outstanding: deque[tuple[h11.Connection, int, int]] = deque()
        self._prepared: tuple[Read, bytes] | None = None

    @property
    def outstanding(self) -> int:
        """Number of reads that are not answered yet."""
        return len(self._outstanding)

    def agent(self) -> AgentFacts:
        """Ask who is there, and what time it is there; no ticket is needed."""
        with _as_failure(self.name):
            return messages.parse_facts(self._ask("GET", "/v1/agent"))

    def inventory(
        self, ticket: str | None = None, after: str | None = None, most: int | None = None
    ) -> InventoryPage:
        """Ask for a page of the list of files; `after` comes from the page before."""
        given = {"after": after, "most": most}
        query = urlencode({key: value for key, value in given.items() if value is not None})
        body = self._ask("GET", "/v1/inventory" + (f"?{query}" if query else ""), ticket)
        with _as_failure(self.name):
            return messages.parse_page(body)

    def confirm(self, files: Iterable[FileEntry], ticket: str | None = None) -> Confirmation:
        """Ask whether files are still as they were listed."""
        body = self._ask("POST", "/v1/confirm", ticket, messages.confirm_body(files))
        with _as_failure(self.name):
            return messages.parse_confirmation(body)

    def sessions(self, ticket: str | None = None) -> list[SessionFacts]:
        """Ask for the open sessions that tickets of the same collector have opened."""
        body = self._ask("POST", "/v1/sessions", ticket, b"{}")
        with _as_failure(self.name):
            rows = messages.parse_object(body).get("sessions", [])
            try:
                return [SessionFacts(**row) for row in rows]
            except TypeError:
                raise ProblemError("what it tells of its sessions is malformed") from None

    def has_room(self, read: Read) -> bool:
        """Whether another read may be sent before an answer is received."""
        size = len(self._body_of(read)) + 512
        queued = sum(n_bytes for _, n_bytes, _ in self._outstanding)
        full = len(self._outstanding) >= MOST_OUTSTANDING or queued + size > OUTSTANDING_BYTES
        return not self._outstanding or not full

    def send_read(self, read: Read, ticket: str | None = None) -> None:
        """Ask for bytes; the answer is received later.

        Raises
        ------
        ProblemError
            `has_room` says no: both sides could wait for each other.
        """
        if not self.has_room(read):
            raise ProblemError("receive an answer before more is asked for")
        body = self._body_of(read)
        self._prepared = None
        view, n_bytes = self._send("POST", "/v1/read", ticket, body)
        self._outstanding.append((view, n_bytes, read.n_bytes))

    def _body_of(self, read: Read) -> bytes:
        """Return the body of a request, made once for the question whether there is room."""
        if self._prepared is None or self._prepared[0] is not read:
            self._prepared = read, messages.read_body(read)
        return self._prepared[1]

    def receive_into(self, buffer: memoryview) -> ReadAnswer:
        """Receive the answer to the first read that is not answered yet.

        Parameters
        ----------
        buffer : memoryview
            Bytes, writable, as long as what was asked for, or longer.

        Raises
        ------
        RefusedError
            The agent refuses; the session may go on.
        TransferError
            The connection is lost or stalls, or the answer is malformed.
        """
        view, _, wanted = self._outstanding.popleft()
        status, length = self._head(view)
        if status == 409:
            body = self._body(length, REFUSAL_BYTES + MOST_ANSWER_BYTES)
            with _as_failure(self.name):
                return ReadAnswer(0, CHANGED, b"", messages.parse_confirmation(body))
        if status != 200:
            self._refused(status, length)
        if length != wanted + TAIL_BYTES:
            raise TransferError(f"{self.name}: answered {length} bytes to a read of {wanted}")
        self._fill(buffer[:wanted])
        tail = bytearray(TAIL_BYTES)
        self._fill(memoryview(tail), counted=False)
        return ReadAnswer(wanted, tail[0], bytes(tail[1:]), Confirmation())

    def tcp_info(self) -> dict[str, float]:
        """Return what the kernel knows of this host's connection: to the agent or first relay."""
        return tcp_info(self._connection)

    def abort(self) -> None:
        """End the session from another thread; what waits in it raises `TransferError`."""
        with suppress(OSError):  # not connected any more
            # Not SSLSocket.shutdown, which would take TLS away under the other thread's feet.
            socket.socket.shutdown(self._connection, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        say_goodbye(self._connection)
        self._connection.close()

    def __enter__(self) -> SourceSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(
        self, method: str, target: str, ticket: str | None = None, body: bytes | None = None
    ) -> bytes:
        if self._outstanding:
            raise ProblemError("receive the answers of all reads before anything else is asked")
        view, _ = self._send(method, target, ticket, body)
        status, length = self._head(view)
        if status != 200:
            self._refused(status, length)
        return self._body(length, MOST_ANSWER_BYTES)

    def _send(
        self, method: str, target: str, ticket: str | None, body: bytes | None
    ) -> tuple[h11.Connection, int]:
        import h11

        headers = [("Host", re.sub(r"[^\w.-]", "-", self.name, flags=re.ASCII))]
        if ticket is not None:
            headers.append(("Authorization", f"Bearer {ticket}"))
        if body is not None:
            headers.append(("Content-Length", str(len(body))))
        # One view for each request: h11 itself does not pipeline on this side.
        view = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_HEAD_BYTES)
        raw = view.send(h11.Request(method=method, target=target, headers=headers)) or b""
        raw += (view.send(h11.Data(data=body)) or b"") if body is not None else b""
        raw += view.send(h11.EndOfMessage()) or b""
        with telling(self.name):
            self._connection.sendall(raw)
        return view, len(raw)

    def _head(self, view: h11.Connection) -> tuple[int, int]:
        """Return status and length of the next answer."""
        import h11

        while connecting.END not in self._ahead:
            if len(self._ahead) > MOST_HEAD_BYTES:
                raise TransferError(f"{self.name}: its answer's head has no end")
            self._ahead += self._receive()
        end = self._ahead.index(connecting.END) + len(connecting.END)
        head, self._ahead = self._ahead[:end], self._ahead[end:]
        try:
            view.receive_data(head)
            answer = view.next_event()
        except h11.RemoteProtocolError as error:
            raise TransferError(f"{self.name}: answers no HTTP: {told(str(error))}") from None
        if not isinstance(answer, h11.Response):
            raise TransferError(f"{self.name}: answers out of turn")
        lengths = [value for key, value in answer.headers if key == b"content-length"]
        if not lengths:
            raise TransferError(f"{self.name}: its answer must say how long it is")
        return answer.status_code, int(lengths[0])

    def _body(self, length: int, most: int) -> bytes:
        if length > most:
            raise TransferError(f"{self.name}: its answer has {length} bytes, {most} may be")
        body = bytearray(length)
        self._fill(memoryview(body), counted=False)
        return bytes(body)

    def _fill(self, view: memoryview, *, counted: bool = True) -> None:
        """Receive until the view is full."""
        taken = min(len(self._ahead), len(view))
        view[:taken] = self._ahead[:taken]
        self._ahead = self._ahead[taken:]
        self.received_bytes += taken if counted else 0
        with telling(self.name):  # once, not for each of a piece's thousand records
            while taken < len(view):
                n_bytes = self._connection.recv_into(view[taken:])
                if n_bytes == 0:
                    break
                taken += n_bytes
                self.received_bytes += n_bytes if counted else 0
        if taken < len(view):
            raise TransferError(f"{self.name}: ended the connection within an answer")

    def _receive(self) -> bytes:
        with telling(self.name):
            data = self._connection.recv(RECORD_BYTES)
        if not data:
            raise TransferError(f"{self.name}: ended the connection")
        return data

    def _refused(self, status: int, length: int) -> None:
        text = told(self._body(length, REFUSAL_BYTES).decode(errors="replace").strip())
        raise RefusedError(f"{self.name}: refuses ({status}): {text}", status)


def _dial(
    address: tuple[str, int], name: str, timeout_s: float, congestion: str | None
) -> socket.socket:
    try:
        connection = socket.create_connection(address, timeout=timeout_s)
    except OSError as error:
        reason = error.strerror or str(error)
        where = f"{address[0]}:{address[1]}"
        raise TransferError(
            f"{name}: cannot be reached at {where}: {reason}; is its agent running, and may this "
            "host connect to it?"
        ) from None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if congestion is not None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        except OSError:
            connection.close()
            raise TransferError(
                f"this kernel has no congestion control {shown(congestion)}; "
                "/proc/sys/net/ipv4/tcp_available_congestion_control lists those it has"
            ) from None
    return connection


def _require_established(connection: socket.socket, relay: str, target: str) -> None:
    """Read a relay's answer to its end and not a byte further."""
    head = b""
    while not head.endswith(connecting.END):
        ahead = connection.recv(MOST_HEAD_BYTES - len(head), socket.MSG_PEEK)
        if not ahead:
            raise TransferError(f"{relay}: ended the connection instead of connecting to {target}")
        end = (head + ahead).find(connecting.END)
        taken = len(ahead) if end < 0 else end + len(connecting.END) - len(head)
        head += connection.recv(taken)
        if len(head) >= MOST_HEAD_BYTES:
            raise TransferError(f"{relay}: its answer to CONNECT has no end")
    with _as_failure(relay):
        status = connecting.answered_status(head)
    if status != 200:
        reason = connection.recv(REFUSAL_BYTES).decode(errors="replace").strip()
        text = told(reason)
        raise RefusedError(f"{relay}: does not connect to {target} ({status}): {text}", status)


@contextmanager
def telling(name: str) -> Iterator[None]:
    """Turn what sockets and TLS raise into our errors, which name the peer."""
    try:
        yield
    except TimeoutError:
        raise TransferError(f"{name}: nothing moves any more; the connection is given up") from None
    except ssl.SSLCertVerificationError as error:
        raise TransferError(f"{name}: its certificate does not count: {_reason(error)}") from None
    except (OSError, ValueError) as error:
        raise TransferError(f"{name}: the connection failed: {_reason(error)}") from None


@contextmanager
def _as_failure(name: str) -> Iterator[None]:
    """A peer's malformed answer is a failed transfer, not bad input of this program's user."""
    try:
        yield
    except ProblemError as error:
        raise TransferError(f"{name}: {error}") from None


def _reason(error: Any) -> str:
    reason = getattr(error, "verify_message", None) or getattr(error, "reason", None)
    return str(reason or getattr(error, "strerror", None) or error)
