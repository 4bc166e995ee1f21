"""The shell of a tunnel: a thread that greets by TLS, connects to a service, and passes bytes."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING

from datacollect.errors import NotWrittenError, TransferError
from datacollect.net.client_hello import RECORD_HEAD_BYTES, offered_protocols
from datacollect.net.connect import established, refusal
from datacollect.net.deadline import Deadline
from datacollect.net.hop_ends import FAR, NEAR
from datacollect.net.http_heads import HeadReader
from datacollect.net.tcp_info import tcp_info
from datacollect.net.tcp_options import loopback_pair, reset_on_close
from datacollect.net.tls_stream import TlsStream
from datacollect.transfer.agent.core import actions, events
from datacollect.transfer.agent.core.greetings import MOST_RECORD_BYTES
from datacollect.transfer.agent.shell.serving import throw_away
from datacollect.transfer.duplex.duplex import Duplex
from datacollect.transfer.protocol.tunnel import TUNNEL_PROTOCOL

if TYPE_CHECKING:
    import ssl

    from datacollect.transfer.agent.core.actions import Action
    from datacollect.transfer.agent.shell.context import AgentContext

# What is received at once before bytes pass: strangers take no more.
STEP_BYTES = 4096


def asks_for_tunnel(connection: socket.socket, within_s: float) -> bool:
    """Return whether a client that greets by TLS offers a tunnel; what it says stays to be read.

    Parameters
    ----------
    connection : socket.socket
        Blocking.
    within_s : float
        How long the client may take for its greeting.
    """
    deadline = Deadline(within_s)
    try:
        head = _ahead(connection, RECORD_HEAD_BYTES, deadline)
        n_bytes = int.from_bytes(head[3:5], "big")
        if len(head) < RECORD_HEAD_BYTES or n_bytes > MOST_RECORD_BYTES:
            return False
        hello = _ahead(connection, RECORD_HEAD_BYTES + n_bytes, deadline)
    except OSError:  # whoever greets it finds out
        return False
    return TUNNEL_PROTOCOL.encode() in offered_protocols(hello)


def _ahead(connection: socket.socket, n_bytes: int, deadline: Deadline) -> bytes:
    """Return what comes next, as soon as there is so much of it, or nothing more comes."""
    # Only so much makes it readable: nobody has to look again and again.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, n_bytes)
    poll = select.poll()
    poll.register(connection, select.POLLIN | select.POLLRDHUP)
    is_there = poll.poll(deadline.left_s() * 1000)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
    if not is_there:
        raise TimeoutError("no greeting")
    return connection.recv(n_bytes, socket.MSG_PEEK)


class TunnelSession:
    """A connection that is to be a tunnel, in a thread of its own; only `cut` is for others."""

    def __init__(
        self, shell: AgentContext, number: int, connection: socket.socket, tls: ssl.SSLContext
    ) -> None:
        self._shell, self._number, self._wire = shell, number, connection
        self._stream = TlsStream(tls, server_side=True)
        self._head = HeadReader()
        self._far: socket.socket | None = None
        self._duplex: Duplex | None = None
        self._is_refused = False
        self._why: str | None = None
        self._reporting = threading.Lock()
        self._reported = (0, 0)

    def run(self) -> None:
        """Serve until the tunnel has ended."""
        why, is_failure = "refused", False
        try:
            deadline = Deadline(self._shell.head_s)
            self._greet(deadline)
            self._read_head(deadline)
            self._shell.tell(events.TunnelAsked(self._shell.now(), self._number, self._head.data))
            if self._duplex is not None:
                self._duplex.run()
                why = "both sides have ended"
            elif self._is_refused:
                self._let_go()
        except TransferError as error:
            why = str(error)
        except TimeoutError:
            why = "no data within the time limit"
        except (OSError, ValueError) as error:  # ssl's errors are OSErrors, some are ValueErrors
            why = f"the connection failed: {getattr(error, 'reason', None) or type(error).__name__}"
        except Exception as error:  # noqa: BLE001 - reported, whatever it is; the others go on
            why, is_failure = f"{type(error).__name__}: {error}", True
        finally:
            for connection in (self._wire, self._far):
                if connection is not None:
                    with suppress(OSError):
                        connection.close()
            self.report_passed()
            self._shell.forget(self._number)
            ended = events.Ended(
                self._shell.now(), self._number, self._why or why, is_failure=is_failure
            )
            self._shell.tell(ended)

    def cut(self, why: str) -> None:
        """End the session from any thread: what waits in it fails."""
        self._why = self._why or why
        if self._duplex is not None:
            self._duplex.cut(why)
        else:
            with suppress(OSError):
                self._wire.shutdown(socket.SHUT_RDWR)

    def perform(self, action: Action) -> None:
        """Do what the core says about this session."""
        if isinstance(action, actions.EndSession):
            self.cut(action.why)
        elif isinstance(action, actions.KeepNonce):
            self._keep_nonce(action)
        elif isinstance(action, actions.Dial):
            self._dial(action)
        elif isinstance(action, actions.Serve):
            self._serve(action)
        elif isinstance(action, actions.Establish):
            self._establish(action)
        elif isinstance(action, actions.Refuse):
            self._is_refused = True
            self._say(refusal(action.status, action.text), Deadline(self._shell.head_s))

    def report_passed(self, *, spent: bool = False) -> None:
        """Tell how much has passed since the last time, from any thread."""
        if self._duplex is None:
            return
        with self._reporting:
            moved, (up, down) = self._duplex.moved_bytes, self._reported
            self._reported = moved
        passed = (moved[0] - up, moved[1] - down)
        if any(passed) or spent:
            # Seen from the client: what the service says comes down.
            now = self._shell.now()
            self._shell.tell(events.Passed(now, self._number, passed[1], passed[0], spent))

    def tcp_facts(self) -> dict[str, dict[str, float] | None]:
        """Return what TCP knows of both sides."""
        far = tcp_info(self._far) if self._far is not None else None
        return {"collector_side": tcp_info(self._wire), "far_side": far}

    # The way in ------------------------------------------------------------------------------

    def _greet(self, deadline: Deadline) -> None:
        while not self._stream.greet():
            self._send(deadline)
            self._receive(deadline)
        self._send(deadline)

    def _read_head(self, deadline: Deadline) -> None:
        block = memoryview(bytearray(STEP_BYTES))
        while not self._head.is_whole:
            n_bytes = self._stream.read_into(block)
            ahead = bytes(block[:n_bytes])
            if self._stream.is_ended:
                raise TransferError("connection closed before a request")
            if not ahead:
                self._receive(deadline)
                continue
            self._head.take(ahead[: self._head.wanted_of(ahead)])
            if self._head.is_too_long:
                return  # the core says so
            if self._head.is_whole and self._head.data[-len(ahead) :] != ahead:
                raise TransferError("the client sent data before it was answered")

    def _receive(self, deadline: Deadline) -> None:
        self._wire.settimeout(deadline.left_s())
        data = self._wire.recv(STEP_BYTES)
        if not data:
            raise TransferError("connection closed before a request")
        self._stream.feed(data)

    def _send(self, deadline: Deadline) -> None:
        data = self._stream.to_send()
        if data:
            self._wire.settimeout(deadline.left_s())
            self._wire.sendall(data)

    def _say(self, answer: bytes, deadline: Deadline) -> None:
        self._stream.write(answer)
        self._send(deadline)

    def _let_go(self) -> None:
        """End so that a refusal arrives: to close with something unread would reset it."""
        self._stream.end()
        self._send(Deadline(self._shell.head_s))
        self._wire.shutdown(socket.SHUT_WR)
        throw_away(self._wire)

    # The way on ------------------------------------------------------------------------------

    def _keep_nonce(self, action: actions.KeepNonce) -> None:
        failure, now = None, self._shell.now()
        try:
            self._shell.nonces.keep(action.nonce, action.until_s, now.unix_s)
        except NotWrittenError as error:
            failure = str(error)
        self._shell.tell(events.NonceKept(now, self._number, failure))

    def _dial(self, action: actions.Dial) -> None:
        """Connect to the service; its address is the operator's, and counts as written."""
        failure = None
        try:
            self._far = self._connected(action.host, action.port)
        except OSError as error:
            failure = error.strerror or "no answer within the time limit"
        self._shell.tell(events.Dialled(self._shell.now(), self._number, failure))

    def _serve(self, action: actions.Serve) -> None:
        """Have a service of the agent's own serve the client, in a thread of its own."""
        failure, service = None, self._shell.service_of(action.service)
        try:
            if service is None:
                raise OSError(0, "nobody has begun it")
            self._far, theirs = loopback_pair()
            run = partial(service, theirs, action.user)
            try:
                threading.Thread(target=run, name=f"service-{self._number}", daemon=True).start()
            except BaseException:
                theirs.close()
                raise
        except OSError as error:
            failure = error.strerror or "this host fails"
        except RuntimeError:
            failure = "no thread is available"
        self._shell.tell(events.Dialled(self._shell.now(), self._number, failure))

    def _connected(self, host: str, port: int) -> socket.socket:
        deadline = Deadline(self._shell.connect_s)
        failure = OSError(0, "its name does not resolve")
        for family, kind, _, _, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            far = socket.socket(family, kind)
            try:
                self._shell.tune(far, is_loopback=ip_address(place[0]).is_loopback)
                # Before bytes pass, an end would look to the service like one of its client.
                reset_on_close(far)
                far.settimeout(deadline.left_s())
                far.connect(place)
            except OSError as error:
                far.close()
                failure = error
            else:
                return far
        raise failure

    def _establish(self, action: actions.Establish) -> None:
        assert self._far is not None
        ends = {NEAR: self._shell.hop_end(self._wire), FAR: self._shell.hop_end(self._far)}
        self._say(established(ends), Deadline(self._shell.head_s))
        duplex = Duplex(
            self._stream,
            self._wire,
            self._far,
            most_bytes=action.most_bytes,
            throttle=self._shell.throttle,
            spent=lambda: self.report_passed(spent=True),
            half_closed=self._half_closed,
        )
        self._duplex = duplex
        if self._why is not None:  # it was cut meanwhile
            duplex.cut(self._why)

    def _half_closed(self) -> None:
        self.report_passed()
        self._shell.tell(events.HalfClosed(self._shell.now(), self._number))
