"""The shell of sessions without TLS: first bytes, requests to connect, the way onwards."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from datacollect.errors import NotWrittenError
from datacollect.net.addresses import addresses_of
from datacollect.net.connect import established
from datacollect.net.fan_out import Begun
from datacollect.net.hop_ends import FAR, NEAR
from datacollect.net.http_heads import HeadReader
from datacollect.net.tcp_info import tcp_info
from datacollect.net.tcp_options import reset_on_close
from datacollect.transfer.agent.core import actions, events
from datacollect.transfer.agent.shell.loop import READABLE, WRITABLE
from datacollect.transfer.agent.shell.splicing import Relay, send_refusal

if TYPE_CHECKING:
    from datacollect.net.fan_out import Outcome
    from datacollect.transfer.agent.core.actions import Action
    from datacollect.transfer.agent.shell.context import AgentContext


class PlainSession:
    """A connection in the loop's thread, until TLS takes it over or it ends.

    Does what its core's actions say and reports the outcome.
    """

    def __init__(self, shell: AgentContext, number: int, connection: socket.socket) -> None:
        self._shell = shell
        self._number = number
        self._near = connection
        self._far: socket.socket | None = None
        self._relay: Relay | None = None
        self._head = HeadReader()
        self._ended = False
        shell.loop.watch(connection.fileno(), READABLE, self._look_at_first_byte)

    def perform(self, action: Action) -> None:
        """Do what the core says about this session; where that fails, it ends."""
        if self._ended:
            return
        try:
            self._perform(action)
        except (OSError, RuntimeError, MemoryError) as error:  # no room, no thread is available
            self._end(f"this host failed: {error}", reset=True, is_failure=True)

    def _perform(self, action: Action) -> None:
        if isinstance(action, actions.StartTls):
            self._shell.loop.forget(self._near.fileno())
            self._shell.start_tls(self._number, self._near)
        elif isinstance(action, actions.ReadHead):
            self._shell.loop.watch(self._near.fileno(), READABLE, self._read_head)
        elif isinstance(action, actions.KeepNonce):
            self._keep_nonce(action)
        elif isinstance(action, actions.Dial):
            self._shell.loop.forget(self._near.fileno())
            self._resolve(action)
        elif isinstance(action, actions.Establish):
            self._establish(action)
        elif isinstance(action, actions.Refuse):
            self._refuse(action)
        elif isinstance(action, actions.EndSession):
            self._end(action.why, reset=action.reset)

    def report_passed(self) -> None:
        """Tell how much has been relayed since the last time."""
        if self._relay is not None:
            self._report_passed(spent=False)

    def resize(self, size_bytes: int) -> None:
        """Set the size of its pipes."""
        if self._relay is not None:
            self._relay.resize(size_bytes)

    def tcp_facts(self) -> dict[str, dict[str, float] | None]:
        """Return what TCP knows of both sides."""
        far = tcp_info(self._far) if self._far is not None else None
        return {"collector_side": tcp_info(self._near), "far_side": far}

    # The inbound side -- ------------------------------------------------------------------------

    def _look_at_first_byte(self, _: int) -> None:
        data = self._received(1, socket.MSG_PEEK)
        if data:
            self._shell.tell(events.FirstByte(self._shell.now(), self._number, data[0]))

    def _read_head(self, _: int) -> None:
        """Take what is there, but nothing behind the head: that is for the next host."""
        ahead = self._received(self._head.room_bytes, socket.MSG_PEEK)
        if not ahead:
            return
        self._head.take(self._near.recv(self._head.wanted_of(ahead)))
        if self._head.is_whole or self._head.is_too_long:
            self._shell.loop.forget(self._near.fileno())
            self._shell.tell(events.HeadRead(self._shell.now(), self._number, self._head.data))

    def _received(self, most: int, flags: int) -> bytes:
        """Return what has arrived, at least a byte; nothing where there is none, or no more."""
        try:
            data = self._near.recv(most, flags)
        except BlockingIOError:
            return b""
        except OSError as error:
            self._end(f"the connection failed: {error.strerror}", reset=False)
            return b""
        if not data:
            self._end("connection closed before a request", reset=False)
        return data

    # The outbound side ---------------------------------------------------------------------

    def _keep_nonce(self, action: actions.KeepNonce) -> None:
        failure = None
        now = self._shell.now()
        try:
            self._shell.nonces.keep(action.nonce, action.until_s, now.unix_s)
        except NotWrittenError as error:
            failure = str(error)
        self._shell.tell(events.NonceKept(now, self._number, failure))

    def _resolve(self, action: actions.Dial) -> None:
        """Ask the name service, in a thread of its own: it may take long."""

        def tell(outcome: Outcome[list[tuple[str, int]]]) -> None:
            failure = None if outcome.error is None else str(outcome.error)
            self._shell.loop.run_soon(lambda: self._dial(outcome.value or [], failure))

        Begun(action.host, lambda host: addresses_of(host, action.port), tell)

    def _dial(self, addresses: list[tuple[str, int]], failure: str | None) -> None:
        """Connect to the first of the addresses that accepts."""
        if self._ended:
            return
        if not addresses:
            self._shell.tell(events.Dialled(self._shell.now(), self._number, failure))
            return
        try:
            self._far = self._socket_for(addresses[0])
            code = self._far.connect_ex(_numeric(addresses[0]))
        except OSError as error:  # too many open files
            self._shell.tell(events.Dialled(self._shell.now(), self._number, error.strerror))
            return
        if code not in (0, errno.EINPROGRESS):
            self._dialled(addresses, code)
            return
        number = self._far.fileno()
        self._shell.loop.watch(number, WRITABLE, lambda _: self._dialled(addresses, None))

    def _socket_for(self, address: tuple[str, int]) -> socket.socket:
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        far = socket.socket(family, socket.SOCK_STREAM)
        far.setblocking(False)
        with suppress(OSError):
            self._shell.tune(far)
        return far

    def _dialled(self, addresses: list[tuple[str, int]], code: int | None) -> None:
        assert self._far is not None
        self._shell.loop.forget(self._far.fileno())
        if code is None:
            code = self._far.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._far.close()
            self._far = None
            self._dial(addresses[1:], os.strerror(code))
        else:
            self._shell.tell(events.Dialled(self._shell.now(), self._number))

    def _establish(self, action: actions.Establish) -> None:
        assert self._far is not None
        try:
            ends = {NEAR: self._shell.hop_end(self._near), FAR: self._shell.hop_end(self._far)}
            # A socket that has sent nothing yet takes this little at once.
            self._near.send(established(ends))
            self._relay = Relay(
                self._shell.loop,
                self._near,
                self._far,
                action.most_bytes,
                action.awaited,
                self._spent,
                self._relay_ended,
                self._shell.throttle,
            )
        except OSError as error:
            self._end(f"the connection failed: {error.strerror}", reset=True)
            return
        self._relay.start(self._shell.pipe_bytes())

    def _spent(self) -> None:
        self._report_passed(spent=True)

    def _report_passed(self, *, spent: bool) -> None:
        assert self._relay is not None
        up, down = self._relay.take_moved()
        if up or down or spent:
            self._shell.tell(events.Passed(self._shell.now(), self._number, up, down, spent))

    # Ends --------------------------------------------------------------------------------

    def _refuse(self, action: actions.Refuse) -> None:
        send_refusal(self._near, action.status, action.text)
        self._end(f"refused ({action.status})", reset=False)

    def _end(self, why: str, *, reset: bool, is_failure: bool = False) -> None:
        if self._relay is not None:
            self._relay.end(why, reset=reset)
            return
        for connection in (self._near, self._far):
            if connection is not None:
                self._shell.loop.forget(connection.fileno())
                if reset:
                    reset_on_close(connection)
                connection.close()
        self._tell_ended(why, is_failure=is_failure)

    def _relay_ended(self, why: str) -> None:
        self._report_passed(spent=False)
        self._tell_ended(why)

    def _tell_ended(self, why: str, *, is_failure: bool = False) -> None:
        self._ended = True
        self._shell.forget(self._number)
        now = self._shell.now()
        self._shell.tell(events.Ended(now, self._number, why, is_failure=is_failure))


def _numeric(address: tuple[str, int]) -> tuple[Any, ...]:
    """Return an address as the kernel needs it: with the number of an IPv6 address's zone."""
    host, port = address
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    return rows[0][4]
