"""A session with another server: the core's actions become bytes on a connection."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from datacollect.errors import TransferError
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import telling
from datacollect.transfer.protocol.source import Answer, Confirmation, Verdict
from datacollect.transfer.sources.web import messages
from datacollect.transfer.sources.web.messages import AskRange, AskSize, Worth
from datacollect.transfer.sources.web.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.transfer.protocol.source import Segment
    from datacollect.transfer.sources.web.core import WebCore
    from datacollect.transfer.sources.web.urls import Target

READ_BYTES = 256 * 1024


class Pace:
    """How long all sessions of a server are to leave it alone; for any thread."""

    def __init__(self) -> None:
        self._until_s = 0.0
        self._lock = threading.Lock()

    def postpone(self, wait_s: float) -> None:
        """Leave it alone for so long from now on."""
        with self._lock:
            self._until_s = max(self._until_s, time.monotonic() + wait_s)

    def wait(self, name: str = "", most_s: float = math.inf) -> None:
        """Wait until it need not be left alone any more.

        Raises
        ------
        TransferError
            It asks for more than `most_s`.
        """
        while (left_s := self._until_s - time.monotonic()) > 0:
            if left_s > most_s:
                raise TransferError(
                    f"{name}: asks to be left alone for {left_s:.0f} s, and patience_s is "
                    f"{most_s:g}; start again later, or write a longer patience_s"
                )
            time.sleep(left_s)


class WebPeer:
    """A server, by its core and what opens connections.

    Parameters
    ----------
    name : str
        The server, for messages.
    core : WebCore
    dial : callable
        Takes what the core wants to be connected to, and the deadline of the contact or None.
    target_of : callable
        Says where a path lies.
    pace : Pace
    timeout_s : float
        How long a question for a file's size may take, however the answer drips.
    patience_s : float
        How long the server may want to be left alone.
    """

    def __init__(
        self,
        name: str,
        core: WebCore,
        dial: Callable[[messages.Connect, Deadline | None], socket.socket],
        target_of: Callable[[str], Target],
        pace: Pace,
        *,
        timeout_s: float = 20.0,
        patience_s: float = math.inf,
    ) -> None:
        self._name, self._core, self._dial = name, core, dial
        self._target_of, self._pace = target_of, pace
        self._timeout_s, self._patience_s = timeout_s, patience_s
        self._connection: socket.socket | None = None
        self._deadline: Deadline | None = None
        self._asked: deque[Sequence[Segment]] = deque()
        self._is_aborted = False
        self._view = memoryview(b"")
        self._taken = self._wanted = 0
        self.received_bytes = 0

    # What sessions ask ------------------------------------------------------------------------

    def has_room(self, segments: Sequence[Segment]) -> bool:
        """Say yes: what is asked for waits here."""
        return True

    def request(self, segments: Sequence[Segment]) -> None:
        """Ask for segments, once those before are there."""
        self._asked.append(segments)

    def receive(self, buffer: memoryview) -> Answer:
        """Fetch the segments that wait longest, one after the other."""
        from blake3 import blake3

        at = 0
        for span, file in self._asked.popleft():
            self._view, self._taken, self._wanted = buffer[at : at + span.n_bytes], 0, 0
            version = Version.of_tag(file.tag)
            ask = AskRange(
                file.path,
                self._target_of(file.path),
                file.n_bytes,
                version,
                span.offset_bytes,
                span.n_bytes,
            )
            answer = self._exchange(ask)
            at += self._taken
            if answer.worth is not Worth.GOOD:
                return Answer(at, _VERDICTS[answer.worth], b"", answer.why)
        return Answer(at, Verdict.VERIFIED, blake3(buffer[:at]).digest())

    def confirm(self, segments: Sequence[Segment]) -> Confirmation:
        """Return which files have changed, and which are gone."""
        changed, gone = [], []
        for span, file in segments:
            answer = self.size(file.path)
            is_other = answer.n_bytes != file.n_bytes
            if answer.worth is Worth.GONE:
                gone.append(span.file)
            elif answer.worth is Worth.GOOD and (
                is_other or Version.of_tag(file.tag).is_other(answer.version)
            ):
                changed.append(span.file)
        return Confirmation(changed, gone)

    def digests(self, segments: Sequence[Segment]) -> list[bytes | None] | None:
        """Say that web servers hash nothing without sending it."""
        return None

    def size(self, path: str) -> messages.Answer:
        """Ask for a file's size and version."""
        self._deadline = Deadline(self._timeout_s)
        try:
            return self._exchange(AskSize(path, self._target_of(path)))
        finally:
            self._deadline = None

    def abort(self) -> None:
        """Let whatever is under way fail at once."""
        self._is_aborted = True
        connection = self._connection
        if connection is not None:
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def close(self) -> None:
        """End."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def connect(self, deadline: Deadline | None = None) -> None:
        """Connect, once the server need not be left alone any more.

        Raises
        ------
        TransferError
            It cannot be reached, or is another.
        """
        self._pace.wait(self._name, self._patience_s)
        self._deadline = deadline
        origin = self._target_of("").origin
        for action in self._core.handle(messages.Greet(origin)):
            self._do(action)
        self._core.handle(messages.Connected())
        self._deadline = None

    # What the core wants ----------------------------------------------------------------------

    def _exchange(self, asked: messages.Event) -> messages.Answer:
        """Let the core talk until it has an answer."""
        event = asked
        while True:
            actions = self._core.handle(event)
            for action in actions:
                if isinstance(action, messages.Answer):
                    return action
                self._do(action)
            if any(isinstance(action, messages.Connect) for action in actions):
                event = messages.Connected()
            else:
                event = self._fill() if self._wanted else self._receive()

    def _do(self, action: messages.Action) -> None:
        match action:
            case messages.Take(data):
                self._view[self._taken : self._taken + len(data)] = data
                self._taken += len(data)
                self.received_bytes += len(data)
            case messages.Send(data):
                self._send(data)
            case messages.Fill(n_bytes):
                self._wanted = n_bytes
            case messages.Connect():
                self._connection = self._dial(action, self._deadline)
            case messages.Disconnect():
                self.close()
            case messages.Fail(why, wait_s):
                self._pace.postpone(wait_s)
                raise TransferError(f"{self._name}: {why}")

    def _send(self, data: bytes) -> None:
        """Send; what fails shows when the answer is received."""
        if self._connection is not None and not self._is_aborted:
            with suppress(OSError):
                self._connection.sendall(data)

    def _receive(self) -> messages.Event:
        if self._connection is None or self._is_aborted:
            raise TransferError(f"{self._name}: the session was ended")
        try:
            with telling(self._name):
                if self._deadline is not None:
                    self._connection.settimeout(self._deadline.left_s())
                data = self._connection.recv(READ_BYTES)
        except TransferError as error:
            return messages.Lost(str(error).removeprefix(f"{self._name}: "))
        if self._deadline is not None:
            self._deadline.came(len(data))
            self._connection.settimeout(self._timeout_s)
        return messages.Received(data, time.time())

    def _fill(self) -> messages.Event:
        """Receive what is wanted straight into its place."""
        wanted, self._wanted = self._wanted, 0
        if self._connection is None or self._is_aborted:
            raise TransferError(f"{self._name}: the session was ended")
        view, taken = self._view[self._taken : self._taken + wanted], 0
        try:
            with telling(self._name):  # once, not for each of a piece's thousand records
                while taken < wanted:
                    n_bytes = self._connection.recv_into(view[taken:])
                    if n_bytes == 0:
                        break
                    taken += n_bytes
                    self.received_bytes += n_bytes
        except TransferError as error:
            return messages.Lost(str(error).removeprefix(f"{self._name}: "))
        finally:
            self._taken += taken
        return messages.Filled(taken)


_VERDICTS = {
    Worth.CHANGED: Verdict.CHANGED,
    Worth.GONE: Verdict.CHANGED,  # the next question says so
    Worth.REFUSED: Verdict.REFUSED,
    Worth.UNREADABLE: Verdict.UNREADABLE,
}
