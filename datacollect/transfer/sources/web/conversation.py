"""Carries out the core's actions on a connection to a server."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from datacollect.errors import TransferError
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import naming_peer
from datacollect.transfer.sources.web.core import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.transfer.rates.pacer import Pacer
    from datacollect.transfer.sources.web.core.core import WebCore
    from datacollect.transfer.sources.web.core.urls import Origin

READ_BYTES = 256 * 1024


class Failed(TransferError):
    """An exchange has failed whose connection was there.

    Attributes
    ----------
    wait_s, status, is_asked
        As of `datacollect.transfer.sources.web.core.messages.Fail`.
    turn : int
        In which turn it has failed.
    """

    turn = 0

    def __init__(
        self, message: str, wait_s: float = 0.0, status: int = 0, *, is_asked: bool = False
    ) -> None:
        super().__init__(message)
        self.wait_s, self.status, self.is_asked = wait_s, status, is_asked


class Conversation:
    """A core at work. All but `abort` is for one thread.

    Parameters
    ----------
    name : str
        The server, for messages.
    core : WebCore
    dial : callable
        Takes what the core wants to be connected to, and the deadline of the contact or None.
    timeout_s : float
        How long each step of a question for a file's size may take, however the answer drips.
    pacer : Pacer, optional
        Limits: bytes of ranges wait for their turn, all else counts.

    Attributes
    ----------
    taken : int
        Bytes of the range under way that are in their place.
    received_bytes : int
        Of all ranges.
    is_aborted : bool
    on_bytes : callable or None
        Called once, when the first bytes of a range come.
    """

    def __init__(
        self,
        name: str,
        core: WebCore,
        dial: Callable[[messages.Connect, Deadline | None], socket.socket],
        timeout_s: float,
        pacer: Pacer | None = None,
    ) -> None:
        self._name, self._core, self._dial, self._timeout_s = name, core, dial, timeout_s
        self._pacer = pacer
        self._connection: socket.socket | None = None
        self._recv_into: Callable[[Any], int]  # of the connection
        self._deadline: Deadline | None = None
        self._is_question = False
        self._view = memoryview(b"")
        self._wanted = 0
        self.taken = self.received_bytes = 0
        self.is_aborted = False
        self.on_bytes: Callable[[], None] | None = None

    def greet(self, origin: Origin, deadline: Deadline | None) -> None:
        """Connect, before anything is wanted.

        Raises
        ------
        TransferError
            The server cannot be reached, or is another.
        """
        self._deadline = deadline
        for action in self._core.handle(messages.Greet(origin)):
            self._do(action)
        self._core.handle(messages.Connected())
        self._deadline = None

    def take_into(self, view: memoryview) -> None:
        """Put the ranges that follow here, each behind the one before."""
        self._view, self.taken, self._wanted = view, 0, 0

    def exchange(self, asked: messages.Event) -> messages.FileAnswer:
        """Let the core talk until it has an answer.

        Raises
        ------
        Failed
            It has none.
        TransferError
            The server cannot be reached.
        """
        self._is_question = isinstance(asked, messages.AskSize)
        try:
            return self._talk(asked)
        finally:
            self._is_question, self._deadline = False, None

    def leave(self) -> None:
        """End the connection; the next question opens another."""
        for action in self._core.handle(messages.ConnectionLost("")):
            self._do(action)

    def abort(self) -> None:
        """Let whatever is under way fail at once; from any thread."""
        self.is_aborted = True
        if self._pacer is not None:
            self._pacer.end()
        connection = self._connection
        if connection is not None:
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def close(self) -> None:
        """End."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _talk(self, asked: messages.Event) -> messages.FileAnswer:
        """Let the core talk until it has an answer."""
        event = asked
        while True:
            actions = self._core.handle(event)
            for action in actions:
                if isinstance(action, messages.FileAnswer):
                    return action
                self._do(action)
            if any(isinstance(action, messages.Connect) for action in actions):
                event = messages.Connected()
            else:
                event = self._fill() if self._wanted else self._receive()

    def _do(self, action: messages.Action) -> None:
        if isinstance(action, messages.Take | messages.Fill) and self.on_bytes is not None:
            tell, self.on_bytes = self.on_bytes, None
            tell()
        if self._is_question and isinstance(action, messages.Connect | messages.SendBytes):
            # A step of its own, of which a question has several where it is led on, or asked twice.
            self._deadline = Deadline(self._timeout_s)
        match action:
            case messages.Take(data):
                self._view[self.taken : self.taken + len(data)] = data
                self.taken += len(data)
                self.received_bytes += len(data)
            case messages.SendBytes(data):
                self._send(data)
            case messages.Fill(n_bytes):
                self._wanted = n_bytes
            case messages.Connect():
                self._connection = self._dialled(action)
                self._recv_into = self._reader(self._connection)
            case messages.Disconnect():
                self.close()
            case messages.Fail(why, wait_s, status, is_asked):
                raise Failed(f"{self._name}: {why}", wait_s, status, is_asked=is_asked)

    def _dialled(self, wanted: messages.Connect) -> socket.socket:
        """Connect; where a question has led elsewhere, or is late, it is the question that fails.

        Another question finds out whether the server is there.
        """
        try:
            return self._dial(wanted, self._deadline)
        except TransferError as error:
            if wanted.is_elsewhere or (self._deadline is not None and self._deadline.is_over):
                raise Failed(str(error)) from None
            raise

    def _reader(self, connection: socket.socket) -> Callable[[Any], int]:
        return connection.recv_into if self._pacer is None else self._pacer.reading(connection)

    def _send(self, data: bytes) -> None:
        """Send; what fails shows when the answer is received."""
        if self._connection is not None and not self.is_aborted:
            with suppress(OSError):
                self._connection.sendall(data)

    def _receive(self) -> messages.Event:
        if self._connection is None or self.is_aborted:
            raise Failed(f"{self._name}: the session was ended")
        try:
            with naming_peer(self._name):
                if self._deadline is not None:
                    self._connection.settimeout(self._deadline.left_s())
                data = self._received(self._connection)
        except TransferError as error:
            return self._lost(error)
        if self._deadline is not None:
            self._deadline.came(len(data))
            self._connection.settimeout(self._timeout_s)
        return messages.Received(data, time.time())

    def _received(self, connection: socket.socket) -> bytes:
        """Return what comes next; of ranges in its turn, of questions at once."""
        if self._pacer is None:
            return connection.recv(READ_BYTES)
        if self._deadline is not None:
            data = connection.recv(READ_BYTES)
            self._pacer.count(len(data))
            return data
        data = connection.recv(self._pacer.allowed(READ_BYTES))
        self._pacer.passed(len(data))
        return data

    def _lost(self, error: TransferError) -> messages.Event:
        # What it was before it was put into words.
        is_late = isinstance(error.__context__, TimeoutError)
        return messages.ConnectionLost(str(error).removeprefix(f"{self._name}: "), is_late)

    def _fill(self) -> messages.Event:
        """Receive what is wanted directly into its place."""
        wanted, self._wanted = self._wanted, 0
        if self._connection is None or self.is_aborted:
            raise Failed(f"{self._name}: the session was ended")
        view, taken = self._view[self.taken : self.taken + wanted], 0
        try:
            with naming_peer(self._name):  # once, not for each of a piece's thousand records
                while taken < wanted:
                    n_bytes = self._recv_into(view[taken:])
                    if n_bytes == 0:
                        break
                    taken += n_bytes
                    self.received_bytes += n_bytes
        except TransferError as error:
            return self._lost(error)
        finally:
            self.taken += taken
        return messages.Filled(taken)
