"""The collector's side of a session: through relays to an agent, one TLS connection, pipelined.

Blocking, for one thread at a time; only `SourceSession.abort` may be called from another. What is
asked for in one go, a page or a confirmation, has one deadline; of the bytes of files each call
that waits gives up after `timeout_s` seconds in which nothing arrives.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from datacollect.errors import ProblemError, RefusedError, TransferError
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import REFUSAL_BYTES, as_failure, naming_peer, open_route, start_tls
from datacollect.net.http_client import HttpChannel
from datacollect.net.http_heads import request_head
from datacollect.net.safe_text import safe_text
from datacollect.net.tls import require_fingerprint
from datacollect.transfer.protocol import messages
from datacollect.transfer.protocol.messages import (
    CHANGED,
    MOST_ANSWER_BYTES,
    TAIL_BYTES,
    ReadAnswer,
    SessionFacts,
    WireConfirmation,
)

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Sequence

    from datacollect.net.deadline import Flow
    from datacollect.net.dialling import RelayHop
    from datacollect.net.http_heads import ResponseHead
    from datacollect.transfer.protocol.messages import AgentFacts, FileEntry, InventoryPage, Read
    from datacollect.transfer.rates.pacer import Pacer

# What answers may have: small ones, so that whoever lies takes little memory. A page ends after
# 4 MiB at its source; a confirmation of a read names the files of one piece.
MOST_FACTS_BYTES, MOST_PAGE_BYTES, MOST_STALE_BYTES = 2**20, 5 * 2**20, 5 * 2**20
REASON_BYTES = 2048

# Requests that may be unanswered; the bytes of them that surely fit into the kernel's buffers while
# the agent is busy sending: with more both sides could wait for each other.
MOST_OUTSTANDING = 64
OUTSTANDING_BYTES = 64 * 1024

# Refusals inside TLS after which another try is of no use: the source does not know our key.
FINAL_STATUS = (401, 403)


def connect(
    hops: Sequence[RelayHop],
    name: str,
    address: tuple[str, int],
    tls: ssl.SSLContext,
    fingerprint: str | None,
    *,
    timeout_s: float,
    deadline: Deadline | None = None,
    congestion: str | None = None,
    pacer: Pacer | None = None,
) -> SourceSession:
    """Return a session with an agent, over TLS from end to end.

    Parameters
    ----------
    hops, name, address, congestion
        As `datacollect.net.dialling.open_route` takes them.
    tls : ssl.SSLContext
        `datacollect.net.tls.client_context`.
    fingerprint : str or None
        What the agent's certificate must have; None: `tls` must know who has signed it.
    timeout_s : float
        How long each step over the session may take.
    deadline : Deadline or None
        Of the contact itself; None: `timeout_s` from now on.
    pacer : Pacer, optional
        Limits that what comes keeps to.

    Raises
    ------
    RefusedError, TransferError
        As `open_route`; or TLS fails.
    IdentityError
        The certificate is another's.
    """
    deadline = deadline or Deadline(timeout_s)
    plain = open_route(hops, name, address, deadline=deadline, congestion=congestion)
    connection = start_tls(plain, tls, address[0], name, deadline)
    try:
        with naming_peer(name):
            require_fingerprint(connection, fingerprint, name)
    except BaseException:
        connection.close()
        raise
    return SourceSession(connection, name, timeout_s, pacer)


class SourceSession:
    """Requests to one agent over one TLS connection; answers come in the order of the requests.

    The first request but `agent` needs a ticket, the others may leave it out.

    Attributes
    ----------
    name : str
        The agent, for messages.
    """

    def __init__(
        self,
        connection: ssl.SSLSocket,
        name: str,
        timeout_s: float = 20.0,
        pacer: Pacer | None = None,
    ) -> None:
        self.name = name
        self._pacer = pacer
        self._channel = HttpChannel(connection, name, timeout_s, pacer)
        self._timeout_s = timeout_s
        # Of requests that are not answered yet: bytes of the request, of the answer.
        self._outstanding: deque[tuple[int, int]] = deque()
        self._prepared: tuple[Read, bytes] | None = None

    @property
    def received_bytes(self) -> int:
        """Bytes of files that have arrived."""
        return self._channel.received_bytes

    @property
    def is_waiting(self) -> bool:
        """Return whether limits keep it from receiving what may be there."""
        return self._pacer is not None and self._pacer.is_waiting

    def agent(self, deadline: Deadline | None = None) -> AgentFacts:
        """Ask who is there, and what time it is there; no ticket is needed."""
        with as_failure(self.name):
            body = self._ask("GET", "/v1/agent", most=MOST_FACTS_BYTES, deadline=deadline)
            return messages.parse_facts(body)

    def inventory(
        self,
        ticket: str | None = None,
        after: str | None = None,
        most: int | None = None,
        *,
        detail: bool = False,
        flow: Flow | None = None,
    ) -> InventoryPage:
        """Ask for a page of the list of files; `after` comes from the page before.

        `detail`: with modes, folders and holes, where the agent's facts say that it lists them.
        `flow`: of all pages together.
        """
        given = {"after": after, "most": most, "detail": 1 if detail else None}
        query = urlencode({key: value for key, value in given.items() if value is not None})
        target = "/v1/inventory" + (f"?{query}" if query else "")
        deadline = Deadline(self._timeout_s, flow=flow)
        body = self._ask("GET", target, ticket, most=MOST_PAGE_BYTES, deadline=deadline)
        with as_failure(self.name):
            return messages.parse_page(body)

    def confirm(self, files: Iterable[FileEntry], ticket: str | None = None) -> WireConfirmation:
        """Ask whether files are still as they were listed."""
        files = list(files)
        asked = messages.confirm_body(files)
        # Paths that were asked about, and a reason for each.
        most = len(asked) + REASON_BYTES * (len(files) + 1)
        body = self._ask("POST", "/v1/confirm", ticket, asked, most=most)
        with as_failure(self.name):
            return messages.parse_confirmation(body)

    def digests(self, read: Read, ticket: str | None = None) -> tuple[bytes | None, ...]:
        """Ask for the BLAKE3 of each segment; None for what is not as listed."""
        most = TAIL_BYTES * len(read.segments)
        body = self._ask("POST", "/v1/hash", ticket, messages.read_body(read), most=most)
        with as_failure(self.name):
            return messages.parse_digests(body, len(read.segments))

    def sessions(self, ticket: str | None = None) -> list[SessionFacts]:
        """Ask for the open sessions that tickets of the same collector have opened."""
        body = self._ask("POST", "/v1/sessions", ticket, b"{}")
        with as_failure(self.name):
            return list(messages.parse_sessions(body))

    def has_room(self, read: Read) -> bool:
        """Return whether another read may be sent before an answer is received."""
        size = len(self._body_of(read)) + 512
        queued = sum(n_bytes for n_bytes, _ in self._outstanding)
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
            raise ProblemError(
                "too many requests wait for an answer: receive one before asking for more"
            )
        body = self._body_of(read)
        self._prepared = None
        n_bytes = self._send("POST", "/v1/read", ticket, body)
        self._outstanding.append((n_bytes, read.n_bytes))

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
        _, wanted = self._outstanding.popleft()
        head = self._channel.head()
        if head.status == 409:
            deadline = Deadline(self._timeout_s)
            body = self._channel.body(head.length, MOST_STALE_BYTES, deadline)
            with as_failure(self.name):
                return ReadAnswer(0, CHANGED, b"", messages.parse_confirmation(body))
        if head.status != 200:
            self._refused(head)
        if head.length != wanted + TAIL_BYTES:
            raise TransferError(f"{self.name}: answered {head.length} bytes to a read of {wanted}")
        self._channel.fill(buffer[:wanted])
        tail = bytearray(TAIL_BYTES)
        self._channel.fill(memoryview(tail), counted=False)
        return ReadAnswer(wanted, tail[0], bytes(tail[1:]), WireConfirmation())

    def tcp_info(self) -> dict[str, float]:
        """Return what the kernel knows of this host's connection: to the agent or first relay."""
        return self._channel.tcp_info()

    def abort(self) -> None:
        """End the session from another thread; what waits in it raises `TransferError`."""
        self._channel.abort()

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def __enter__(self) -> SourceSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(
        self,
        method: str,
        target: str,
        ticket: str | None = None,
        body: bytes | None = None,
        *,
        most: int = MOST_ANSWER_BYTES,
        deadline: Deadline | None = None,
    ) -> bytes:
        if self._outstanding:
            raise ProblemError("receive the answers of all reads before anything else is asked")
        deadline = deadline or Deadline(self._timeout_s)
        self._send(method, target, ticket, body)
        head = self._channel.head(deadline)
        if head.status != 200:
            self._refused(head)
        return self._channel.body(head.length, most, deadline)

    def _send(self, method: str, target: str, ticket: str | None, body: bytes | None) -> int:
        """Send a request; return its bytes."""
        headers = [] if ticket is None else [("Authorization", f"Bearer {ticket}")]
        if body is not None:
            headers.append(("Content-Length", str(len(body))))
        host = re.sub(_NOT_IN_HOSTS, "-", self.name)
        raw = request_head(method, target, host, headers) + (body or b"")
        self._channel.send(raw)
        return len(raw)

    def _refused(self, head: ResponseHead) -> None:
        body = self._channel.body(head.length, REFUSAL_BYTES, Deadline(self._timeout_s))
        text = safe_text(body.decode(errors="replace").strip())
        why = f"{self.name}: refuses ({head.status}): {text}"
        raise RefusedError(why, head.status, is_final=head.status in FINAL_STATUS)


_NOT_IN_HOSTS = re.compile(r"[^\w.-]", re.ASCII)
