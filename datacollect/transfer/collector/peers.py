"""The other end of a session: what is asked of it, and what its answers are worth."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from datacollect.errors import TransferError
from datacollect.transfer.collector.messages import Verdict
from datacollect.transfer.wire.messages import AS_LISTED, CHANGED, FileEntry, Read
from datacollect.transfer.wire.messages import Segment as WireSegment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.transfer.collector.state import Listed
    from datacollect.transfer.collector.store import Segment
    from datacollect.transfer.wire.session import SourceSession


class Answer(NamedTuple):
    """What came of a request: the bytes are in the buffer."""

    n_bytes: int
    verdict: Verdict
    digest: bytes
    why: str = ""


class Peer(Protocol):
    """A source at the other end of a session. All but `abort` is for one thread."""

    @property
    def received_bytes(self) -> int:
        """All bytes so far, also of the answer that is under way."""

    def has_room(self, segments: Sequence[Segment]) -> bool:
        """Whether it may be asked for segments before an answer is received."""

    def request(self, segments: Sequence[Segment]) -> None:
        """Ask for segments; answers come in the order of requests."""

    def receive(self, buffer: memoryview) -> Answer:
        """Wait for the next answer."""

    def ask(self, segments: Sequence[Segment]) -> tuple[list[int], list[int]]:
        """Return which files (by number) have changed, and which are gone; nothing is under way."""

    def abort(self) -> None:
        """Let whatever is under way fail at once; from any thread."""

    def close(self) -> None:
        """End."""


class AgentPeer:
    """An agent, by its session and the ticket for its files."""

    def __init__(self, session: SourceSession, ticket: str | None) -> None:
        # The first request brings the ticket: to judge it again would cost a signature's check.
        self._session, self._ticket = session, ticket
        self._asked: deque[Sequence[Segment]] = deque()
        self._prepared: tuple[Sequence[Segment], Read] | None = None

    @property
    def received_bytes(self) -> int:
        """All bytes so far."""
        return self._session.received_bytes

    def has_room(self, segments: Sequence[Segment]) -> bool:
        """Whether it may be asked for segments before an answer is received."""
        return self._session.has_room(self._read_of(segments))

    def request(self, segments: Sequence[Segment]) -> None:
        """Ask for segments."""
        self._session.send_read(self._read_of(segments), self._ticket)
        self._ticket = None
        self._asked.append(segments)

    def receive(self, buffer: memoryview) -> Answer:
        """Wait for the next answer, and compare the source's hash with our own."""
        from blake3 import blake3

        segments = self._asked.popleft()
        n_bytes = sum(span.n_bytes for span, _ in segments)
        answer = self._session.receive_into(buffer[:n_bytes])
        if answer.status != AS_LISTED:
            verdict = Verdict.CHANGED if answer.status == CHANGED else Verdict.UNREADABLE
            return Answer(answer.n_bytes, verdict, b"")
        if answer.n_bytes != n_bytes:
            raise TransferError(f"asked for {n_bytes} bytes, got {answer.n_bytes}")
        digest = blake3(buffer[:n_bytes]).digest()
        verdict = Verdict.VERIFIED if digest == answer.blake3 else Verdict.CORRUPT
        return Answer(n_bytes, verdict, digest)

    def ask(self, segments: Sequence[Segment]) -> tuple[list[int], list[int]]:
        """Return which files have changed, and which are gone."""
        numbers = {file.path: span.file for span, file in segments}
        found = self._session.confirm([_entry(file) for _, file in segments], self._ticket)
        self._ticket = None
        changed = [numbers[path] for path in found.changed if path in numbers]
        gone = [numbers[path] for path in found.gone if path in numbers]
        return changed, gone

    def _read_of(self, segments: Sequence[Segment]) -> Read:
        """Return the request for segments, made once for the question whether there is room."""
        if self._prepared is None or self._prepared[0] is not segments:
            self._prepared = segments, _read(segments)
        return self._prepared[1]

    def abort(self) -> None:
        """Let whatever is under way fail at once."""
        self._session.abort()

    def close(self) -> None:
        """End."""
        self._session.close()


def _read(segments: Sequence[Segment]) -> Read:
    return Read(
        tuple(WireSegment(_entry(file), span.offset_bytes, span.n_bytes) for span, file in segments)
    )


def _entry(file: Listed) -> FileEntry:
    return FileEntry(file.path, file.n_bytes, file.mtime_ns, file.inode)
