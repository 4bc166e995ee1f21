"""Session with another server: requests until their response, or until it is known who fails."""

from __future__ import annotations

import hashlib
import math
import time
from collections import deque
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from datacollect.net.deadline import RENEWED_BY_BYTES
from datacollect.transfer.protocol.source import Confirmation, FetchResult, Span, Verdict
from datacollect.transfer.sources.web.conversation import Conversation, Failed
from datacollect.transfer.sources.web.core import messages
from datacollect.transfer.sources.web.core.heads import BUSY_S, TOO_MANY
from datacollect.transfer.sources.web.core.messages import AskRange, AskSize, Worth
from datacollect.transfer.sources.web.core.versions import Version
from datacollect.transfer.sources.web.pace import LATER_OR_LONGER

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Sequence

    from datacollect.net.deadline import Deadline
    from datacollect.transfer.protocol.source import Listed, Segment
    from datacollect.transfer.rates.pacer import Pacer
    from datacollect.transfer.sources.web.core.core import WebCore
    from datacollect.transfer.sources.web.core.urls import Target
    from datacollect.transfer.sources.web.pace import ServerPace
    from datacollect.transfer.sources.web.standing import Standing

# Before a file that fails is asked for again, doubled each time.
SHORT_S = 0.05


def contradicts(answer: messages.FileAnswer, file: Listed) -> bool:
    """Return whether an answer says other things of a file than are known.

    A known hash is no version.
    """
    if answer.worth is Worth.GONE:
        return True
    if answer.worth is not Worth.GOOD:
        return False
    was = Version.of_tag(file.tag)
    is_other = was.sha256 is None and was.is_other(answer.version)
    return is_other or answer.n_bytes != file.n_bytes


OTHER_DIGEST = (
    "its data have another SHA-256 than its server says (RFC 9530: Content-Digest, Repr-Digest): "
    "a proxy changes them, or the server is wrong; a sha256 in a manifest would decide"
)


def _is_as_said(view: memoryview, answer: messages.FileAnswer) -> bool:
    """Say whether a range has the hash that its server says, if one answer brought it all."""
    if answer.worth is not Worth.GOOD or answer.sha256 is None:
        return True
    return hashlib.sha256(view).digest() == answer.sha256


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
    pace : ServerPace
    standing : Standing
        What all sessions of the server have seen.
    is_told : callable
        Whether a manifest says bytes and hash of a path.
    timeout_s : float
        How long each step of a question for a file's size may take, however the answer drips.
    patience_s : float
        How long the server may want to be left alone.
    pacer : Pacer, optional
        Limits that what comes keeps to.
    """

    def __init__(
        self,
        name: str,
        core: WebCore,
        dial: Callable[[messages.Connect, Deadline | None], socket.socket],
        target_of: Callable[[str], Target],
        pace: ServerPace,
        standing: Standing,
        is_told: Callable[[str], bool] = lambda _: False,
        *,
        timeout_s: float = 20.0,
        patience_s: float = math.inf,
        pacer: Pacer | None = None,
    ) -> None:
        self._name, self._talk = name, Conversation(name, core, dial, timeout_s, pacer)
        self._pacer = pacer
        self._target_of, self._pace = target_of, pace
        self._standing, self._is_told = standing, is_told
        self._timeout_s, self._patience_s = timeout_s, patience_s
        self._asked: deque[Sequence[Segment]] = deque()
        self._is_stuck = self.is_proved = self._is_left_alone = False

    @property
    def received_bytes(self) -> int:
        """All bytes so far."""
        return self._talk.received_bytes

    @property
    def is_waiting(self) -> bool:
        """Return whether it leaves the server alone, waits for another session, or for limits."""
        return self._is_left_alone or (self._pacer is not None and self._pacer.is_waiting)

    # What sessions ask ------------------------------------------------------------------------

    def has_room(self, segments: Sequence[Segment]) -> bool:
        """Say yes: what is asked for waits here."""
        return True

    def request(self, segments: Sequence[Segment]) -> None:
        """Ask for segments, once those before are there."""
        self._asked.append(segments)

    def receive(self, buffer: memoryview) -> FetchResult:
        """Fetch the segments that wait longest, one after the other."""
        from blake3 import blake3

        at = 0
        for span, file in self._asked.popleft():
            view = buffer[at : at + span.n_bytes]
            self._talk.take_into(view)
            answer = self._range(span, file)
            at += self._talk.taken
            if file.sha256 is None and not _is_as_said(view, answer):
                return FetchResult(at, Verdict.UNREADABLE, b"", OTHER_DIGEST)
            if answer.worth is not Worth.GOOD:
                return FetchResult(at, _VERDICTS[answer.worth], b"", answer.why)
        return FetchResult(at, Verdict.VERIFIED, blake3(buffer[:at]).digest())

    def confirm(self, segments: Sequence[Segment]) -> Confirmation:
        """Return which files have changed, and which are gone: what says so is asked twice."""
        changed, gone, unreadable = [], [], []
        for span, file in segments:
            if self._standing.failures(file.path).n:
                continue  # it failed to come, which says nothing of its version
            answer = self.size(file.path)
            if contradicts(answer, file):
                answer = self.size(file.path, is_doubted=True)
            if answer.worth is Worth.REFUSED:
                self._standing.refuse(file.path, answer.why)
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

    def size(
        self, path: str, *, is_doubted: bool = False, others_first: bool = False
    ) -> messages.FileAnswer:
        """Ask for a file's size and version.

        Parameters
        ----------
        path : str
        is_doubted : bool
            What is known is contradicted: ask two questions.
        others_first : bool
            Where nothing comes, let others come first: the answer is `LATER`.
        """
        mark = self._standing.mark(path)

        def ask() -> AskSize:
            return AskSize(path, self._target_of(path), is_doubted)

        answer = self._asked_for(path, ask, others_first=others_first)
        why = self._standing.note(path, answer.version, mark)
        if why is not None and answer.worth in (Worth.GOOD, Worth.REFUSED):
            return replace(answer, worth=Worth.REFUSED, why=why)
        return answer

    def beginning(self, file: Listed, n_bytes: int) -> bytes | None:
        """Return the first bytes of a file of this size; None where they do not come.

        Whatever version they are of: nodes may differ in ETags for one and the same page.
        """
        buffer = bytearray(n_bytes)
        self._talk.take_into(memoryview(buffer))
        answer = self._fetched(Span(0, 0, n_bytes), file._replace(tag=None))
        return bytes(buffer) if answer.worth is Worth.GOOD else None

    def abort(self, *, is_stuck: bool = False) -> None:
        """Let whatever is under way fail at once; `is_stuck`: because nothing comes of it."""
        self._is_stuck = is_stuck
        self._talk.abort()

    def close(self) -> None:
        """End."""
        self._talk.close()
        if self._pacer is not None:
            self._pacer.end()

    def connect(self, deadline: Deadline | None = None) -> None:
        """Connect, once the server need not be left alone any more.

        Where one of its files is silent, it is asked for one that was not: so it proves that it is
        there.

        Raises
        ------
        TransferError
            It cannot be reached, or is another.
        """
        with self._pace.turn(self._name, self._patience_s):
            # To wait as long as it has asked for is no part of the contact.
            deadline = None if self._pace.is_narrow else deadline
            self._talk.greet(self._target_of("").origin, deadline)
            self._leave()
        if self._standing.is_doubted:
            self.is_proved = self._is_there(self._standing.good())

    # One question, until it is answered -------------------------------------------------------

    def _range(self, span: Span, file: Listed) -> messages.FileAnswer:
        """Fetch a span, once it is known that ranges of the file come."""
        if span.n_bytes == file.n_bytes:
            return self._fetched(span, file)
        talk = self._talk
        self._is_left_alone = True
        with self._standing.lanes.lane(file.path, lambda: talk.is_aborted) as has_other_failed:
            self._is_left_alone = False
            failures = self._standing.failures(file.path)
            if has_other_failed and failures.n:
                return messages.FileAnswer(Worth.LATER, failures.why)
            talk.on_bytes = lambda: self._standing.lanes.proved(file.path)
            try:
                answer = self._fetched(span, file)
            finally:
                talk.on_bytes = None
            if answer.worth is Worth.REFUSED:
                self._standing.refuse(file.path, answer.why)  # no other asks, and fails
            return answer

    def _fetched(self, span: Span, file: Listed) -> messages.FileAnswer:
        """Fetch a span; what has come of it is kept where a connection ends in between."""
        version = Version.of_tag(file.tag)
        target, mark = self._target_of(file.path), self._standing.mark(file.path)
        begins: list[int] = []
        why = self._standing.why_not(file.path, is_hashed=version.sha256 is not None)
        if why is not None:
            return messages.FileAnswer(Worth.REFUSED, why)

        def rest() -> AskRange:
            begins.append(self._talk.taken)
            begin, n_bytes = span.offset_bytes + self._talk.taken, span.n_bytes - self._talk.taken
            return AskRange(file.path, target, file.n_bytes, version, begin, n_bytes)

        answer = self._asked_for(file.path, rest, may_wait=True)
        if answer.worth is Worth.GOOD:
            self._standing.note(file.path, version, mark)
            # What came before a connection ended is not of this answer.
            return replace(answer, sha256=None) if begins[-1] else answer
        if answer.worth is Worth.CHANGED and version.sha256 is None:
            why = self._standing.note(file.path, answer.version, mark, version)
            if why is not None:
                return replace(answer, worth=Worth.REFUSED, why=why)
        return answer

    def _note(self, file: Listed, answer: messages.FileAnswer) -> str | None:
        """Note another version than was listed; return why, where versions alternate."""
        path = file.path
        was = Version.of_tag(file.tag)
        return self._standing.note(path, answer.version, self._standing.mark(path), was)

    def _asked_for(
        self,
        path: str,
        ask: Callable[[], messages.Event],
        *,
        may_wait: bool = False,
        others_first: bool = False,
    ) -> messages.FileAnswer:
        """Ask until there is an answer; a file that fails while others do not is refused.

        Parameters
        ----------
        path : str
        ask : callable
            Returns what the core is to ask.
        may_wait : bool
            It is left to the caller when to ask again, where that does not help at once.
        others_first : bool
            And so it is where nothing comes, before it is known whether others do.

        Raises
        ------
        TransferError
            The server is away, or busy.
        """
        if (refusal := self._refusal(path)) is not None and self._is_up(path):
            return refusal
        while True:
            taken, begun_s = self._talk.taken, time.monotonic()
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
                if self._talk.is_aborted:
                    if self._is_stuck:
                        self._standing.silent(path)
                    raise
            if self._talk.taken - taken >= RENEWED_BY_BYTES:
                continue  # it goes on from there
            is_quick = time.monotonic() - begun_s < self._timeout_s / 2
            if others_first and not is_quick:
                self._standing.failed(path, str(failure).removeprefix(f"{self._name}: "))
                return messages.FileAnswer(Worth.LATER, self._standing.failures(path).why)
            if (refusal := self._blame(path, failure, is_quick=is_quick)) is not None:
                return refusal
            failures = self._standing.failures(path)
            if may_wait and (failures.n > 1 or failure.status or not is_quick):
                return messages.FileAnswer(Worth.LATER, failures.why)

    def _refusal(self, path: str) -> messages.FileAnswer | None:
        """Return why a file is given up; None as long as it is not."""
        failures = self._standing.failures(path)
        return messages.FileAnswer(Worth.REFUSED, failures.text) if failures.are_too_many else None

    def _blame(self, path: str, failure: Failed, *, is_quick: bool) -> messages.FileAnswer | None:
        """Find out who has failed: the file, which is given up in the end, or the server.

        Parameters
        ----------
        path : str
        failure : Failed
        is_quick : bool
            Whether it showed at once; a connection that ends may be replaced.

        Returns
        -------
        FileAnswer or None
            None: ask once more.

        Raises
        ------
        TransferError
            The server is away, or busy.
        """
        why = str(failure).removeprefix(f"{self._name}: ")
        if failure.wait_s > self._patience_s:
            why += f"; patience_s is {self._patience_s:g}: {LATER_OR_LONGER}"
        n_failures = self._standing.failed(path, why)
        if failure.status:
            # Who asks for it is left alone, once; then it may be the file that asks so for ever.
            may_be_waited_for = failure.wait_s <= self._patience_s
            is_first = n_failures == 1 and failure.is_asked and may_be_waited_for
            if is_first or not self._is_up(path):
                self._pace.busy(failure.wait_s, failure.turn)
                raise failure
            if not may_be_waited_for:
                return messages.FileAnswer(Worth.REFUSED, self._standing.failures(path).why)
            if failure.status == TOO_MANY:
                self._pace.busy(0.0, failure.turn)  # not this file's fault: fewer at a time
        elif n_failures == 1 and is_quick:
            return None
        elif not self._is_up(path):
            raise failure
        if (refusal := self._refusal(path)) is not None:
            return refusal
        if not self._asked:
            wait_s = max(SHORT_S * 2**n_failures, min(failure.wait_s, BUSY_S))
            self._pace.pause(wait_s, lambda: self._talk.is_aborted)
        return None

    def _is_up(self, path: str) -> bool:
        """Return whether the server answers for another file."""
        return self._is_there(self._standing.witnesses(path))

    def _is_there(self, witnesses: Iterable[str]) -> bool:
        """Return whether the server answers for one of these files."""
        for other in witnesses:
            probe = partial(AskSize, other, self._target_of(other), is_probe=True)
            try:
                answer = self._in_turn(probe)
            except Failed:
                if self._talk.is_aborted:
                    return False
            else:
                if answer.worth is not Worth.UNREADABLE:
                    return True
        return False

    def _in_turn(self, ask: Callable[[], messages.Event]) -> messages.FileAnswer:
        talk = self._talk
        self._is_left_alone = True
        with self._pace.turn(self._name, self._patience_s, lambda: talk.is_aborted) as turn:
            self._is_left_alone = False
            try:
                answer = talk.exchange(ask())
            except Failed as error:
                error.turn = turn
                raise
            self._pace.went_well()
            self._leave()
            return answer

    def _leave(self) -> None:
        """Keep no connection where others wait for theirs."""
        if self._pace.is_narrow:
            self._talk.leave()


_VERDICTS = {
    Worth.CHANGED: Verdict.CHANGED,
    Worth.GONE: Verdict.CHANGED,  # the next question says so
    Worth.REFUSED: Verdict.REFUSED,
    Worth.LATER: Verdict.LATER,
    Worth.UNREADABLE: Verdict.UNREADABLE,
}
