"""Session with an agent: requests, and what its responses are worth."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

from datacollect.errors import RefusedError, TransferError
from datacollect.transfer.protocol.messages import (
    AS_LISTED,
    CHANGED,
    HASHES,
    FileEntry,
    Read,
    WireSegment,
)
from datacollect.transfer.protocol.source import Confirmation, FetchResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from datacollect.transfer.protocol.source import Listed, Segment
    from datacollect.transfer.sources.agent.network import Admission
    from datacollect.transfer.sources.agent.session import SourceSession

NO_REASON = "its source gives no reason"


@contextmanager
def judging(refused: Callable[[RefusedError], TransferError]) -> Iterator[None]:
    """Raise what a refusal comes to instead of it: it may be about the agent's time alone."""
    try:
        yield
    except RefusedError as error:
        raise refused(error) from error


class AgentPeer:
    """An agent, by its session and what lets that in to its files.

    Parameters
    ----------
    session : SourceSession
    admission : Admission
    features : sequence of str
        What the agent can do besides what all of them can.
    """

    def __init__(
        self, session: SourceSession, admission: Admission, features: Sequence[str] = ()
    ) -> None:
        self._session, self._admission, self._features = session, admission, features
        self._is_admitted = False
        self._asked: deque[Sequence[Segment]] = deque()
        self._prepared: tuple[Sequence[Segment], Read] | None = None

    @property
    def received_bytes(self) -> int:
        """All bytes so far."""
        return self._session.received_bytes

    @property
    def is_proved(self) -> bool:
        """Say no: an agent is not asked for another file when a session opens."""
        return False

    @property
    def is_waiting(self) -> bool:
        """Return whether limits keep it from receiving; what is asked for is asked at once."""
        return self._session.is_waiting

    def has_room(self, segments: Sequence[Segment]) -> bool:
        """Return whether it may be asked for segments before an answer is received."""
        return self._session.has_room(self._read_of(segments))

    def request(self, segments: Sequence[Segment]) -> None:
        """Ask for segments."""
        self._session.send_read(self._read_of(segments), self._ticket())
        self._is_admitted = True
        self._asked.append(segments)

    def receive(self, buffer: memoryview) -> FetchResult:
        """Wait for the next answer, and compare the source's hash with our own."""
        from blake3 import blake3

        segments = self._asked.popleft()
        n_bytes = sum(span.n_bytes for span, _ in segments)
        with judging(self._admission.refused):
            answer = self._session.receive_into(buffer[:n_bytes])
        if answer.status != AS_LISTED:
            verdict = Verdict.CHANGED if answer.status == CHANGED else Verdict.UNREADABLE
            return FetchResult(answer.n_bytes, verdict, b"")
        if answer.n_bytes != n_bytes:
            raise TransferError(
                f"the agent was asked for {n_bytes} bytes, but answered with {answer.n_bytes}"
            )
        digest = blake3(buffer[:n_bytes]).digest()
        verdict = Verdict.VERIFIED if digest == answer.blake3 else Verdict.CORRUPT
        return FetchResult(n_bytes, verdict, digest)

    def confirm(self, segments: Sequence[Segment]) -> Confirmation:
        """Return which files have changed, are gone, or cannot be read."""
        numbers = {file.path: span.file for span, file in segments}
        with judging(self._admission.refused):
            found = self._session.confirm([_entry(file) for _, file in segments], self._ticket())
        self._is_admitted = True
        return Confirmation(
            [numbers[path] for path in found.changed if path in numbers],
            [numbers[path] for path in found.gone if path in numbers],
            [
                (numbers[path], f"cannot be read at its source: {why.strip() or NO_REASON}")
                for path, why in found.unreadable
                if path in numbers
            ],
        )

    def digests(self, segments: Sequence[Segment]) -> list[bytes | None] | None:
        """Return the BLAKE3 of each segment at the agent, where it can compute it."""
        if HASHES not in self._features:
            return None
        with judging(self._admission.refused):
            found = self._session.digests(_read(segments), self._ticket())
        self._is_admitted = True
        return list(found)

    def abort(self, *, is_stuck: bool = False) -> None:
        """Let whatever is under way fail at once."""
        self._session.abort()

    def close(self) -> None:
        """End."""
        self._session.close()

    def _ticket(self) -> str | None:
        """Return the ticket for the first request: to judge it again costs a signature's check."""
        return None if self._is_admitted else self._admission.ticket()

    def _read_of(self, segments: Sequence[Segment]) -> Read:
        """Return the request for segments, made once for the question whether there is room."""
        if self._prepared is None or self._prepared[0] is not segments:
            self._prepared = segments, _read(segments)
        return self._prepared[1]


def _read(segments: Sequence[Segment]) -> Read:
    return Read(
        tuple(WireSegment(_entry(file), span.offset_bytes, span.n_bytes) for span, file in segments)
    )


def _entry(file: Listed) -> FileEntry:
    return FileEntry(file.path, file.n_bytes, file.mtime_ns, file.inode)
