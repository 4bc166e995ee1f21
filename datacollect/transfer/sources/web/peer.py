"""A session with another server: the core's actions become bytes on a connection."""

from __future__ import annotations

import math
import socket
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from datacollect.errors import TransferError
from datacollect.net.deadline import RENEWED_BY_BYTES, RENEWED_WITHIN_S, Deadline
from datacollect.net.dialling import telling
from datacollect.transfer.protocol.source import Answer, Confirmation, Verdict
from datacollect.transfer.sources.web import messages
from datacollect.transfer.sources.web.heads import BUSY_S
from datacollect.transfer.sources.web.messages import AskRange, AskSize, Worth
from datacollect.transfer.sources.web.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.transfer.protocol.source import Listed, Segment, Span
    from datacollect.transfer.sources.web.core import WebCore
    from datacollect.transfer.sources.web.pace import Pace
    from datacollect.transfer.sources.web.standing import Standing
    from datacollect.transfer.sources.web.urls import Target

READ_BYTES = 256 * 1024
# Before a file that fails is asked for again, doubled each time.
SHORT_S = 0.05


class Failed(TransferError):
    """An exchange has failed whose connection was there.

    Attributes
    ----------
    wait_s, status, is_asked
        As of `datacollect.transfer.sources.web.messages.Fail`.
    turn : int
        In which turn it has failed.
    """

    turn = 0

    def __init__(
        self, message: str, wait_s: float = 0.0, status: int = 0, *, is_asked: bool = False
    ) -> None:
        super().__init__(message)
        self.wait_s, self.status, self.is_asked = wait_s, status, is_asked


def contradicts(answer: messages.Answer, file: Listed) -> bool:
    """Whether an answer says other things of a file than are known; a known hash is no version."""
    if answer.worth is Worth.GONE:
        return True
    if answer.worth is not Worth.GOOD:
        return False
    was = Version.of_tag(file.tag)
    is_other = was.sha256 is None and was.is_other(answer.version)
    return is_other or answer.n_bytes != file.n_bytes


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
    standing : Standing
        What all sessions of the server have seen.
    is_told : callable
        Whether a manifest says bytes and hash of a path.
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
        standing: Standing,
        is_told: Callable[[str], bool] = lambda _: False,
        *,
        timeout_s: float = 20.0,
        patience_s: float = math.inf,
    ) -> None:
        self._name, self._core, self._dial = name, core, dial
        self._target_of, self._pace = target_of, pace
        self._standing, self._is_told = standing, is_told
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
            answer = self._range(span, file)
            at += self._taken
            if answer.worth is not Worth.GOOD:
                return Answer(at, _VERDICTS[answer.worth], b"", answer.why)
        return Answer(at, Verdict.VERIFIED, blake3(buffer[:at]).digest())

    def confirm(self, segments: Sequence[Segment]) -> Confirmation:
        """Return which files have changed, and which are gone: what says so is asked twice."""
        changed, gone, unreadable = [], [], []
        for span, file in segments:
            if self._standing.failures(file.path).n:
                continue  # it failed to come, which tells nothing of its version
            answer = self.size(file.path)
            if contradicts(answer, file):
                answer = self.size(file.path, is_doubted=True)
            if not contradicts(answer, file):
                continue
            if answer.worth is Worth.GONE:
                gone.append(span.file)
            elif self._is_told(file.path):
                why = f"it has {answer.n_bytes} bytes, and {file.n_bytes} in the manifest"
                unreadable.append((span.file, why))
            elif self._note(file, answer) is None:
                changed.append(span.file)
        return Confirmation(changed, gone, unreadable)

    def digests(self, segments: Sequence[Segment]) -> list[bytes | None] | None:
        """Say that web servers hash nothing without sending it."""
        return None

    def size(self, path: str, *, is_doubted: bool = False) -> messages.Answer:
        """Ask for a file's size and version; in two ways, where what is known is contradicted."""
        mark = self._standing.mark(path)
        answer = self._asked_for(path, lambda: AskSize(path, self._target_of(path), is_doubted))
        why = self._standing.note(path, answer.version, mark)
        if why is not None and answer.worth in (Worth.GOOD, Worth.REFUSED):
            return replace(answer, worth=Worth.REFUSED, why=why)
        return answer

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
        with self._pace.turn(self._name, self._patience_s, lambda: self._is_aborted):
            self._deadline = deadline
            origin = self._target_of("").origin
            for action in self._core.handle(messages.Greet(origin)):
                self._do(action)
            self._core.handle(messages.Connected())
            self._deadline = None
            self._leave()

    # One question, until it is answered -------------------------------------------------------

    def _range(self, span: Span, file: Listed) -> messages.Answer:
        """Fetch a span; what has come of it is kept where a connection ends in between."""
        version = Version.of_tag(file.tag)
        target, mark = self._target_of(file.path), self._standing.mark(file.path)
        why = self._standing.why_not_told(file.path)
        if why is not None and version.sha256 is None:
            return messages.Answer(Worth.REFUSED, why)

        def rest() -> AskRange:
            begin, n_bytes = span.offset_bytes + self._taken, span.n_bytes - self._taken
            return AskRange(file.path, target, file.n_bytes, version, begin, n_bytes)

        answer = self._asked_for(file.path, rest)
        if answer.worth is Worth.GOOD:
            self._standing.note(file.path, version, mark)
        elif answer.worth is Worth.CHANGED and version.sha256 is None:
            why = self._standing.note(file.path, answer.version, mark, version)
            if why is not None:
                return replace(answer, worth=Worth.REFUSED, why=why)
        return answer

    def _note(self, file: Listed, answer: messages.Answer) -> str | None:
        """Note another version than was listed; return why, where versions alternate."""
        path = file.path
        was = Version.of_tag(file.tag)
        return self._standing.note(path, answer.version, self._standing.mark(path), was)

    def _asked_for(self, path: str, ask: Callable[[], messages.Event]) -> messages.Answer:
        """Ask until there is an answer; a file that fails while others do not is refused.

        Raises
        ------
        TransferError
            The server is away, or busy.
        """
        if (refusal := self._refusal(path)) is not None and self._is_up(path):
            return refusal
        while True:
            taken, begun_s = self._taken, time.monotonic()
            try:
                answer = self._in_turn(ask)
                if answer.worth is not Worth.UNREADABLE:
                    self._standing.answered(path, is_good=answer.worth is Worth.GOOD)
                    return answer
                if self._standing.is_alone:
                    return answer
                failure = Failed(answer.why)
            except Failed as error:
                failure = error
                if self._is_aborted:
                    if time.monotonic() - begun_s >= RENEWED_WITHIN_S and self._taken == taken:
                        self._standing.failed(path, "nothing comes")
                    raise
            if self._taken - taken >= RENEWED_BY_BYTES:
                continue  # it goes on from there
            is_quick = time.monotonic() - begun_s < self._timeout_s / 2
            if (refusal := self._blame(path, failure, is_quick=is_quick)) is not None:
                return refusal
            if self._asked:  # let others come first
                return messages.Answer(Worth.UNREADABLE, self._standing.failures(path).why)

    def _refusal(self, path: str) -> messages.Answer | None:
        """Return why a file is given up; None as long as it is not."""
        failures = self._standing.failures(path)
        return messages.Answer(Worth.REFUSED, failures.text) if failures.are_too_many else None

    def _blame(self, path: str, failure: Failed, *, is_quick: bool) -> messages.Answer | None:
        """Find out who has failed: the file, which is given up in the end, or the server.

        Parameters
        ----------
        path : str
        failure : Failed
        is_quick : bool
            Whether it showed at once; a connection that ends may be replaced.

        Returns
        -------
        Answer or None
            None: ask once more.

        Raises
        ------
        TransferError
            The server is away, or busy.
        """
        n_failures = self._standing.failed(path, str(failure).removeprefix(f"{self._name}: "))
        if failure.status:
            # Who asks for it is left alone, once; then it may be the file that asks so for ever.
            may_be_waited_for = failure.wait_s <= self._patience_s
            is_first = n_failures == 1 and failure.is_asked and may_be_waited_for
            if is_first or not self._is_up(path):
                self._pace.busy(failure.wait_s, failure.turn)
                raise failure
            if not may_be_waited_for:
                return messages.Answer(Worth.REFUSED, self._standing.failures(path).why)
        elif n_failures == 1 and is_quick:
            return None
        elif not self._is_up(path):
            raise failure
        if (refusal := self._refusal(path)) is not None:
            return refusal
        if not self._asked:
            wait_s = min(failure.wait_s, BUSY_S) if failure.status else SHORT_S * 2**n_failures
            self._pace.pause(wait_s, lambda: self._is_aborted)
        return None

    def _is_up(self, path: str) -> bool:
        """Whether the server answers for another file."""
        for other in self._standing.witnesses(path):
            probe = AskSize(other, self._target_of(other), is_probe=True)
            try:
                answer = self._in_turn(lambda probe=probe: probe)  # type: ignore[misc]
            except Failed:
                if self._is_aborted:
                    return False
            else:
                if answer.worth is not Worth.UNREADABLE:
                    return True
        return False

    def _in_turn(self, ask: Callable[[], messages.Event]) -> messages.Answer:
        with self._pace.turn(self._name, self._patience_s, lambda: self._is_aborted) as turn:
            event = ask()
            self._deadline = Deadline(self._timeout_s) if isinstance(event, AskSize) else None
            try:
                answer = self._exchange(event)
            except Failed as error:
                error.turn = turn
                raise
            finally:
                self._deadline = None
            self._pace.went_well()
            self._leave()
            return answer

    def _leave(self) -> None:
        """Keep no connection where others wait for theirs."""
        if self._pace.is_narrow:
            for action in self._core.handle(messages.Lost("")):
                self._do(action)

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
                self._connection = self._dialled(action)
            case messages.Disconnect():
                self.close()
            case messages.Fail(why, wait_s, status, is_asked):
                raise Failed(f"{self._name}: {why}", wait_s, status, is_asked=is_asked)

    def _dialled(self, wanted: messages.Connect) -> socket.socket:
        """Connect; where a question has led elsewhere, or is late, it is the question that fails.

        Another question tells whether the server is there.
        """
        try:
            return self._dial(wanted, self._deadline)
        except TransferError as error:
            if wanted.is_elsewhere or (self._deadline is not None and self._deadline.is_over):
                raise Failed(str(error)) from None
            raise

    def _send(self, data: bytes) -> None:
        """Send; what fails shows when the answer is received."""
        if self._connection is not None and not self._is_aborted:
            with suppress(OSError):
                self._connection.sendall(data)

    def _receive(self) -> messages.Event:
        if self._connection is None or self._is_aborted:
            raise Failed(f"{self._name}: the session was ended")
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
            raise Failed(f"{self._name}: the session was ended")
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
