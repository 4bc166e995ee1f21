"""The shell of a session over TLS: a thread that reads requests and sends answers."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import format_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

# Not when they are first needed: by then all file descriptors may be in use.
import blake3
import h11

from datacollect.errors import RefusedError, TransferError
from datacollect.net.addresses import origin_of
from datacollect.net.deadline import Deadline
from datacollect.net.http_heads import MOST_HEAD_BYTES
from datacollect.net.tcp_info import tcp_info
from datacollect.net.tls import say_goodbye
from datacollect.transfer.agent.core import actions, events
from datacollect.transfer.agent.shell.files import SegmentReader
from datacollect.transfer.agent.shell.listing import FolderInventory
from datacollect.transfer.agent.shell.whole_files import FileAnswer
from datacollect.transfer.protocol.messages import (
    TAIL_BYTES,
    confirmation_body,
    digests_body,
    sessions_body,
)

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from datacollect.transfer.agent.core.actions import Action
    from datacollect.transfer.agent.shell.context import AgentContext
    from datacollect.transfer.agent.shell.files import Folder
    from datacollect.transfer.agent.shell.handling import Handler
    from datacollect.transfer.rates.throttle import Throttle

# What is received at once of requests: small, because each session waits with such a block.
STEP_BYTES = 4096

# The same of a body that a handler takes: it may be long.
BODY_STEP_BYTES = 64 * 1024

# What is read, hashed and encrypted at once; one such buffer for each session.
BLOCK_BYTES = 256 * 1024

# What is thrown away of a request that was refused, and how long it is waited for.
LINGER_BYTES, LINGER_S = 8 * 2**20, 2.0

# How long a peer may take to accept or send a block: slower ones are given up.
STALL_S = 120.0

# So often who waits looks whether the session was cut meanwhile.
LOOK_S = 0.25

# Headers that mean something here; each may be given once.
_HEADERS = (
    *("authorization", "range", "if-range"),
    *("content-length", "transfer-encoding", "host"),
)


# RFC 9110 leaves it open what others call themselves.
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class _Handed:
    """A request that a handler answers; see `Exchange`."""

    def __init__(
        self, session: TlsSession, asked: events.RequestRead, headers: Mapping[str, str]
    ) -> None:
        self.method, self.target, self.headers = asked.method, asked.target, headers
        self.body_bytes = self._left_bytes = asked.body_bytes
        self._session = session
        self._deadline = Deadline(STALL_S)

    @property
    def address(self) -> str:
        """Return whom it is counted for."""
        return self._session.address

    @property
    def beside_collectors(self) -> bool:
        """Return whether somebody collects at this host, or through it, now."""
        return self._session.beside_collectors

    @property
    def throttle(self) -> Throttle | None:
        """The limit of all that passes the agent."""
        return self._session.throttle

    def read(self) -> bytes:
        """Return what comes next of the body; empty: its end."""
        if not self._left_bytes:
            return b""
        data = self._session.next_of_body(self._deadline)
        self._left_bytes -= len(data)
        if not self._left_bytes:
            self._session.next_of_body(self._deadline)  # the end of the message
        return data

    def answer(
        self, status: int, headers: Sequence[tuple[str, str]] = (), body: bytes = b""
    ) -> None:
        """Answer, once."""
        self.stream(status, headers, len(body), (body,))

    def stream(
        self,
        status: int,
        headers: Sequence[tuple[str, str]],
        n_bytes: int,
        blocks: Iterable[bytes],
    ) -> None:
        """Answer, once, with a body that comes by and by."""
        self._session.answer_handed(status, headers, n_bytes, blocks, last=self._left_bytes > 0)

    def hold_place(self, holds: bool) -> None:
        """Say whether the connection's place is held against others."""
        self._session.hold_place(holds)

    def cut(self, why: str) -> None:
        """End the connection."""
        self._session.cut(why)

    def at_end(self, name: str, do: Callable[[], None]) -> None:
        """Have something done when the connection has ended."""
        self._session.at_end[name] = do


class _Length:
    """Stands for bytes that are sent beside h11, which needs to know their number alone."""

    def __init__(self, n_bytes: int) -> None:
        self._n_bytes = n_bytes

    def __len__(self) -> int:
        return self._n_bytes


class TlsSession:
    """A connection over TLS, in a thread of its own; only `cut` is called from others."""

    def __init__(
        self, shell: AgentContext, number: int, connection: socket.socket, folder: Folder | None
    ) -> None:
        self._shell = shell
        self._number = number
        self._plain = connection
        self._folder = folder
        self._inventory = FolderInventory(folder) if folder is not None else None
        self._tls: ssl.SSLSocket | None = None
        self._http: h11.Connection | None = None
        self._buffer: bytearray | None = None
        self._why: str | None = None
        self._sent_bytes = 0  # of files, in the answer under way
        self._moved_bytes = self._reported_bytes = 0  # of all answers, since the beginning
        self.throttle = shell.throttle
        self._turn_bytes = 0  # that may be sent by it
        self._without_body = False  # HEAD is answered by a head alone, whatever the answer
        self._asked_before = False
        self._failures: dict[str, str] = {}  # see `SegmentReader`
        self._all_headers: dict[str, str] = {}  # of the request under way
        self.at_end: dict[str, Callable[[], None]] = {}  # by name

    @property
    def address(self) -> str:
        """Return whom the session is counted for; empty where it has just ended."""
        try:
            return origin_of(str((self._tls or self._plain).getpeername()[0]))
        except OSError:
            return ""

    @property
    def beside_collectors(self) -> bool:
        """Return whether the agent serves collectors meanwhile."""
        return self._shell.serves_collectors

    def run(self) -> None:
        """Serve until one side ends the session."""
        why, is_failure = "the client closed the connection", False
        try:
            self._plain.settimeout(self._shell.head_s)
            self._tls = self._shell.tls.wrap_socket(
                self._plain, server_side=True, do_handshake_on_connect=False
            )
            self._tls.do_handshake()
            self._tls.settimeout(STALL_S)
            self._serve()
        except TransferError as error:
            why = str(error)
        except TimeoutError:
            why = "no data within the time limit"
        except (OSError, ValueError) as error:  # ssl's errors are OSErrors, some are ValueErrors
            why = f"the connection failed: {getattr(error, 'reason', None) or type(error).__name__}"
        except Exception as error:  # noqa: BLE001 - reported, whatever it is; the others go on
            why, is_failure = f"{type(error).__name__}: {error}", True
        finally:
            self._say_goodbye()
            with suppress(OSError):
                (self._tls or self._plain).close()
            for do in self.at_end.values():
                do()
            self._shell.forget(self._number)
            now = self._shell.now()
            why = self._why or why
            self._shell.tell(events.Ended(now, self._number, why, self._sent_bytes, is_failure))

    def _say_goodbye(self) -> None:
        """Tell that nothing more comes; what a refused request still sends is thrown away.

        To close with something unread would reset the connection, and the refusal be lost.
        """
        say_goodbye(self._tls)
        unread = self._http is not None and self._http.their_state is h11.SEND_BODY
        if self._tls is None or not unread or self._why is not None:
            return
        # All that TLS holds is let go of first: of strangers there may be many at a time.
        self._plain = socket.socket(fileno=self._tls.detach())
        self._tls = self._http = None
        with suppress(OSError):
            self._plain.shutdown(socket.SHUT_WR)
            throw_away(self._plain)

    def cut(self, why: str) -> None:
        """End the session from any thread: what waits in it fails."""
        self._why = self._why or why
        with suppress(OSError):
            # Not SSLSocket.shutdown, which would take TLS away under the thread's feet.
            socket.socket.shutdown(self._tls or self._plain, socket.SHUT_RDWR)

    def perform(self, action: Action) -> None:
        """Do what the core says about this session."""
        if isinstance(action, actions.EndSession):
            self.cut(action.why)
        elif isinstance(action, actions.Respond):
            self._answer(action)
        elif isinstance(action, actions.ListFiles):
            assert self._inventory is not None
            page = self._inventory.page(
                action.after, action.most, action.patterns, detail=action.detail
            )
            self._respond(200, page, "application/x-ndjson")
        elif isinstance(action, actions.ReadBody):
            self._read_body(action.n_bytes)
        elif isinstance(action, actions.SendSegments):
            self._send_segments(action)
        elif isinstance(action, actions.HashSegments):
            self._hash_segments(action)
        elif isinstance(action, actions.SendFile):
            self._send_file(action)
        elif isinstance(action, actions.ConfirmFiles):
            assert self._folder is not None
            found = self._folder.confirm(action.files, self._failures)
            self._respond(200, confirmation_body(found))
        elif isinstance(action, actions.TellSessions):
            rows = [{**row, **self._shell.tcp_facts(row["session"])} for row in action.rows]
            self._respond(200, sessions_body(rows))

    def report_passed(self) -> None:
        """Tell how much of an answer has left since the last time, from the loop's thread."""
        moved_bytes = self._moved_bytes
        if moved_bytes != self._reported_bytes:
            n_bytes, self._reported_bytes = moved_bytes - self._reported_bytes, moved_bytes
            self._shell.tell(events.Passed(self._shell.now(), self._number, 0, n_bytes))

    def tcp_facts(self) -> dict[str, dict[str, float] | None]:
        """Return what TCP knows of this session's one side."""
        return {"collector_side": tcp_info(self._plain if self._tls is None else self._tls)}

    # Requests ------------------------------------------------------------------------------

    def _serve(self) -> None:
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD_BYTES)
        while self._why is None:
            try:
                request = self._next_head()
                if request is None:
                    return
                handler = self._shell.handler_of(request.target)
                if handler is None:
                    self._shell.tell(request)
                else:
                    self._hand_over(request, handler)
            except h11.RemoteProtocolError as error:
                self._refuse_malformed(error.error_status_hint, "the request is malformed")
                return
            except RefusedError as error:
                self._refuse_malformed(error.status, str(error))
                return
            if self._http.our_state is not h11.DONE:
                return
            self._http.start_next_cycle()

    def _next_head(self) -> events.RequestRead | None:
        """Return the head of the next request; None at the end."""
        assert self._http is not None
        # Between requests the core says how long it waits; a head that has begun must end soon.
        begun = self._http.trailing_data[0] or not self._asked_before
        deadline = Deadline(self._shell.head_s) if begun else None
        self._asked_before = True
        while (request := self._http.next_event()) is h11.NEED_DATA:
            self._receive(deadline)
            deadline = deadline or Deadline(self._shell.head_s)
        if not isinstance(request, h11.Request):
            return None
        self._all_headers = {
            name.decode().lower(): value.decode("latin-1") for name, value in request.headers
        }
        headers: dict[str, str] = {}
        for raw_name, value in request.headers:
            name = raw_name.decode().lower()
            if name in headers:
                raise RefusedError(f"the header {name} is given twice", 400)
            if name in _HEADERS:
                headers[name] = value.decode("latin-1")
        if "transfer-encoding" in headers:
            # Two statements of a body's length could be read as two different requests.
            raise RefusedError("a request must say its Content-Length", 411)
        body_bytes = int(headers.get("content-length", 0))
        if body_bytes == 0:
            self._http.next_event()  # the end of the message
        method, target = request.method.decode(), request.target.decode("latin-1")
        self._without_body = method == "HEAD"
        now = self._shell.now()
        return events.RequestRead(now, self._number, method, target, headers, body_bytes)

    def _read_body(self, n_bytes: int) -> None:
        """Read the body that the head has announced, and report it; it may be slow."""
        assert self._http is not None
        assert self._tls is not None
        if self._http.they_are_waiting_for_100_continue:
            goes_on = h11.InformationalResponse(status_code=100, headers=[])
            self._tls.sendall(self._http.send(goes_on) or b"")
        deadline = Deadline(self._shell.head_s)
        body = bytearray()
        while not isinstance(event := self._http.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                deadline.came(self._receive(deadline))
            elif isinstance(event, h11.Data):
                body += event.data
            else:
                raise TransferError("connection closed in the middle of a request")
        assert len(body) == n_bytes
        self._shell.tell(events.BodyRead(self._shell.now(), self._number, bytes(body)))

    def _hand_over(self, asked: events.RequestRead, handler: Handler) -> None:
        """Have a handler answer; what it raises ends the session."""
        self._shell.tell(events.HandedOver(self._shell.now(), self._number))
        handler(_Handed(self, asked, self._all_headers))

    def hold_place(self, holds: bool) -> None:
        """Say whether what a handler does holds the place against others."""
        self._shell.tell(events.PlaceHeld(self._shell.now(), self._number, holds))

    def next_of_body(self, deadline: Deadline) -> bytes:
        """Return what comes next of a request's body; empty: its end."""
        assert self._http is not None
        assert self._tls is not None
        if self._http.they_are_waiting_for_100_continue:
            goes_on = h11.InformationalResponse(status_code=100, headers=[])
            self._tls.sendall(self._http.send(goes_on) or b"")
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                n_bytes = self._receive(deadline, BODY_STEP_BYTES)
                deadline.came(n_bytes)
                self._moved_bytes += n_bytes
                if self.throttle is not None:
                    self._wait(self.throttle.owe(n_bytes))
        except h11.RemoteProtocolError:
            raise TransferError("connection closed in the middle of a request") from None
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    def answer_handed(
        self,
        status: int,
        headers: Sequence[tuple[str, str]],
        n_bytes: int,
        blocks: Iterable[bytes],
        *,
        last: bool,
    ) -> None:
        """Send the answer of a handler; one that is cut short ends the session."""
        ends = [("Connection", "close")] if last else []
        self._begin(status, n_bytes, [*headers, *ends])
        if n_bytes and not self._without_body:
            for block in blocks:
                self._send(block)
        self._finish(0)

    def _receive(self, deadline: Deadline | None, most_bytes: int = STEP_BYTES) -> int:
        """Take what comes next; return how many bytes that are, 0 at the end."""
        assert self._http is not None
        assert self._tls is not None
        self._tls.settimeout(None if deadline is None else deadline.left_s())
        data = self._tls.recv(most_bytes)
        self._tls.settimeout(STALL_S)
        if self.throttle is not None and most_bytes == STEP_BYTES:  # what is small only counts
            self.throttle.owe(len(data))
        self._http.receive_data(data)
        return len(data)

    def _refuse_malformed(self, status: int, text: str) -> None:
        """Answer what no request could be made of; the session ends."""
        assert self._http is not None
        self._shell.tell(events.Malformed(self._shell.now(), self._number, status, text))
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._respond(status, f"{text}\n".encode(), "text/plain", last=True)

    # Answers -------------------------------------------------------------------------------

    def _answer(self, action: actions.Respond) -> None:
        self._respond(action.status, action.body, action.content_type, last=action.last)

    def _respond(
        self,
        status: int,
        body: bytes,
        content_type: str = "application/json",
        *,
        last: bool = False,
        hashed_bytes: int = 0,
    ) -> None:
        headers = [("Content-Type", content_type)]
        self._begin(status, len(body), [*headers, ("Connection", "close")] if last else headers)
        if body and not self._without_body:
            self._send(memoryview(body))
        self._finish(hashed_bytes, only_hashed=hashed_bytes > 0)

    def _begin(self, status: int, length: int, headers: list[tuple[str, str]]) -> None:
        """Send an answer's head, and let h11 count its body, which `_send` sends, as sent."""
        assert self._http is not None
        assert self._tls is not None
        date = format_datetime(datetime.now(UTC), usegmt=True)
        response = h11.Response(
            status_code=status,
            reason=_PHRASES.get(status, "").encode(),
            headers=[
                ("Date", date),
                *([] if status == HTTPStatus.NO_CONTENT else [("Content-Length", str(length))]),
                *headers,
            ],
        )
        head = self._http.send(response) or b""
        if self.throttle is not None:
            self.throttle.owe(len(head))
        self._tls.sendall(head)
        if length and not self._without_body:
            # h11 documents that whatever has a length will do, and says bytes in its types.
            body: Any = _Length(length)
            self._http.send_with_data_passthrough(h11.Data(data=body))

    def _send(self, block: memoryview | bytes) -> None:
        """Send all of it, a record at a time, as `sendall` does, and count what has left."""
        assert self._tls is not None
        if self.throttle is not None:
            self._send_in_turns(memoryview(block), self.throttle)
            return
        left = memoryview(block)
        while left:
            n_bytes = self._tls.send(left)
            self._moved_bytes += n_bytes
            left = left[n_bytes:]

    def _send_in_turns(self, left: memoryview, throttle: Throttle) -> None:
        """Send as `_send` does, no faster than the agent's limit allows."""
        assert self._tls is not None
        while left:
            if not self._turn_bytes:
                self._turn_bytes = throttle.turn_bytes(len(left))
                self._wait(throttle.owe(self._turn_bytes))
            n_bytes = self._tls.send(left[: self._turn_bytes])
            self._turn_bytes -= n_bytes
            self._moved_bytes += n_bytes
            left = left[n_bytes:]

    def _wait(self, wait_s: float) -> None:
        """Wait, unless the session is cut."""
        until_s = time.monotonic() + wait_s
        while (left_s := until_s - time.monotonic()) > 0:
            if self._why is not None:
                raise TransferError(self._why)
            time.sleep(min(left_s, LOOK_S))

    def _finish(self, n_bytes: int, *, only_hashed: bool = False) -> None:
        assert self._http is not None
        self._http.send(h11.EndOfMessage())
        self._sent_bytes = 0
        now = self._shell.now()
        self._shell.tell(events.Sent(now, self._number, n_bytes, only_hashed))

    def _block(self) -> memoryview:
        """Return the buffer, made when it is first needed: many sessions never do."""
        if self._buffer is None:
            self._buffer = bytearray(BLOCK_BYTES)
        return memoryview(self._buffer)

    def _send_segments(self, action: actions.SendSegments) -> None:
        """Send the bytes asked for, while they are hashed; or say at once what is not there."""
        assert self._folder is not None
        segments = action.read.segments
        stale = self._folder.stale({segment.file: None for segment in segments})
        if stale.changed or stale.gone:
            self._respond(409, confirmation_body(stale))
            return
        n_bytes = action.read.n_bytes
        self._begin(200, n_bytes + TAIL_BYTES, [("Content-Type", "application/octet-stream")])
        digest = blake3.blake3()
        reader = SegmentReader(self._folder, segments, self._failures)
        for block in reader.blocks(self._block()):
            digest.update(block)
            self._send_file_block(block)
        self._send(bytes([reader.status]) + digest.digest())
        self._finish(n_bytes)

    def _hash_segments(self, action: actions.HashSegments) -> None:
        """Send the hash of each segment alone; its bytes count as if they were sent."""
        assert self._folder is not None
        rows: list[tuple[int, bytes]] = []
        for segment in action.read.segments:
            digest = blake3.blake3()
            reader = SegmentReader(self._folder, [segment], self._failures)
            for block in reader.blocks(self._block()):
                digest.update(block)
                self._sent_bytes += len(block)
                self._moved_bytes += len(block)
            rows.append((reader.status, digest.digest()))
        n_bytes = action.read.n_bytes
        body = digests_body(rows)
        self._respond(200, body, "application/octet-stream", hashed_bytes=n_bytes)

    def _send_file(self, action: actions.SendFile) -> None:
        assert self._folder is not None
        try:
            answer = FileAnswer(self._folder, action)
        except RefusedError as error:
            self._respond(error.status, f"{error}\n".encode(), "text/plain")
            return
        with answer:
            self._begin(answer.status, answer.n_bytes, answer.headers())
            if action.with_body:
                self._send_all(answer.blocks(self._block()))
            self._finish(answer.n_bytes if action.with_body else 0)

    def _send_all(self, blocks: Iterable[memoryview]) -> None:
        for block in blocks:
            self._send_file_block(block)

    def _send_file_block(self, block: memoryview) -> None:
        """Send a part of a file: it counts, whether all of it arrives or not."""
        self._sent_bytes += len(block)
        self._send(block)


def throw_away(connection: socket.socket) -> None:
    """Take what comes, for a while, until the other side has ended too."""
    until_s, left_bytes = time.monotonic() + LINGER_S, LINGER_BYTES
    block = bytearray(STEP_BYTES)
    while left_bytes > 0 and (left_s := until_s - time.monotonic()) > 0:
        connection.settimeout(left_s)
        n_bytes = connection.recv_into(block)
        if n_bytes == 0:
            return
        left_bytes -= n_bytes
