"""Simulated sources: what they hold, how they change, lie and fail, and sessions with them."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from blake3 import blake3
from simulated.clocks import AgentClock, SimulatedNetwork

from datacollect.errors import TransferError
from datacollect.transfer.protocol.messages import (
    AS_LISTED,
    CHANGED,
    FileEntry,
    ReadAnswer,
    WireConfirmation,
)
from datacollect.transfer.protocol.source import LeftOut, Listed, Page
from datacollect.transfer.sources.agent.peer import AgentPeer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.net.tickets import Ticket
    from datacollect.transfer.protocol.messages import AgentFacts, Read

UNREADABLE = 2
PAGE_FILES = 3
NAMES = ("a.bin", "b/c.bin", "b/d e.bin", "b/d/e/f.bin", "g.bin", "h/é.bin", "z.bin", "empty")
HOSTILE = ("../out", "/abs", "b//c", ".datacollect/state.sqlite", "b/./c", "nul\0", "x" * 300)


@dataclass(frozen=True)
class Trouble:
    """Probabilities of troubles for each answer, and their times."""

    refused: float = 0.0
    reset: float = 0.0
    corrupt: float = 0.0
    unreadable: float = 0.0
    stuck: float = 0.0
    changes: int = 0
    hostile_names: bool = False


TROUBLES = (
    Trouble(),
    Trouble(refused=0.1, reset=0.05),
    Trouble(reset=0.02, corrupt=0.05),
    Trouble(changes=1),
    Trouble(changes=1, unreadable=0.02, reset=0.02),
    Trouble(stuck=0.05, reset=0.02),
    Trouble(hostile_names=True, refused=0.3, corrupt=0.02),
)


class Source:
    """A host's files, now and before."""

    def __init__(
        self, name: str, draws: random.Random, trouble: Trouble, *, is_small: bool = False
    ) -> None:
        self.name, self.draws, self.trouble = name, draws, trouble
        self.versions: dict[str, list[tuple[FileEntry, bytes]]] = {}
        self.clock_ns = 10**18
        self.is_up = True
        self.clock, self.first_byte_s = AgentClock(name), 0.0
        self._network = SimulatedNetwork(lambda: SimulatedSession(self))
        for path in draws.sample(NAMES, draws.randint(1, 3 if is_small else len(NAMES))):
            sizes = (1, 700, 1024, 2500) if is_small else (1, 700, 1024, 5000, 20_000)
            size = 0 if path == "empty" else draws.choice(sizes)
            self.write(path, size)

    def write(self, path: str, size: int) -> None:
        """Write a file again."""
        self.clock_ns += 1
        inode = 1 + len(self.versions)
        data = self.draws.randbytes(size)
        entry = FileEntry(path, size, self.clock_ns, inode)
        self.versions.setdefault(path, []).append((entry, data))

    def change_something(self) -> None:
        """A file gets other bytes, while it is fetched or not."""
        path = self.draws.choice(sorted(self.versions))
        self.write(path, max(1, len(self.current(path)[1]) + self.draws.choice((-1, 0, 500))))

    def current(self, path: str) -> tuple[FileEntry, bytes]:
        """What the file is now."""
        return self.versions[path][-1]

    def is_some_version(self, path: str, data: bytes) -> bool:
        """Whether the file has ever been this."""
        return any(data == known for _, known in self.versions.get(path, ()))

    def pages(self) -> Iterator[Page]:
        """The list, as an agent's is taken in; perhaps with names that lead elsewhere."""
        entries = [self.current(path)[0] for path in self.versions]
        if self.trouble.hostile_names:
            entries += [FileEntry(path, 10, 1, 999) for path in HOSTILE]
        entries.sort(key=lambda entry: entry.path.encode())
        for first in range(0, len(entries), PAGE_FILES):
            files = [
                Listed(entry.path, entry.n_bytes, entry.mtime_ns, entry.inode)
                for entry in entries[first : first + PAGE_FILES]
            ]
            yield Page(files, (LeftOut("pipe", "is not a regular file"),) if first == 0 else ())

    apart = False

    def begin_start(self) -> None:
        """Agents forget nothing between two starts."""

    def listed(self, known: object) -> Iterator[Page]:
        """The inventory; what is known changes nothing."""
        return self.pages()

    def peer(self) -> AgentPeer:
        """A session with its agent."""
        return AgentPeer(*self._network.open(self.name, (), None))

    def as_listed(self, listed: Listed) -> bytes:
        """What a file was when it was listed."""
        for entry, data in self.versions[listed.path]:
            if (entry.n_bytes, entry.mtime_ns) == (listed.n_bytes, listed.mtime_ns):
                return data
        raise AssertionError(f"{listed} was never so")

    def may_have_sent(self, listed: Listed, offset_bytes: int, part: bytes) -> bool:
        """Whether a part may be recorded: only what is as it was listed."""
        return self.as_listed(listed)[offset_bytes:][: len(part)] == part

    def read(self, read: Read) -> tuple[bytes, int]:
        """The bytes that a request names, and whether they are as listed."""
        parts = []
        for segment in read.segments:
            entry, data = self.current(segment.file.path)
            if entry != segment.file:
                return b"", CHANGED
            parts.append(data[segment.offset_bytes : segment.offset_bytes + segment.n_bytes])
        return b"".join(parts), AS_LISTED


@dataclass
class SimulatedSession:
    """Session with an agent as its thread sees it; time is the driver's."""

    source: Source
    received_bytes: int = 0
    is_aborted: bool = False
    asked: deque[Read] = field(default_factory=deque)
    ticket: Ticket | None = None

    def agent(self, deadline: object) -> AgentFacts:
        return self.source.clock.facts()

    def has_room(self, read: Read) -> bool:
        return len(self.asked) < 8

    def send_read(self, read: Read, ticket: str | None = None) -> None:
        assert read.segments, "a request for nothing"
        assert all(segment.n_bytes > 0 for segment in read.segments)
        self._require_alive()
        if ticket is not None:
            self.ticket = self.source.clock.ticket_of(ticket)
        self.asked.append(read)

    def receive_into(self, buffer: memoryview) -> ReadAnswer:
        self._require_alive()
        assert self.ticket is not None
        self.source.clock.judge(self.ticket)
        read, trouble, draws = self.asked.popleft(), self.source.trouble, self.source.draws
        data, status = self.source.read(read)
        if draws.random() < trouble.reset:
            cut = draws.randint(0, len(data))
            buffer[:cut] = data[:cut]
            self.received_bytes += cut
            raise TransferError("the connection failed: reset in the middle of an answer")
        if status != AS_LISTED:
            return ReadAnswer(0, status, b"", WireConfirmation())
        digest = blake3(data).digest()
        buffer[: len(data)] = data
        self.received_bytes += len(data)
        if draws.random() < trouble.corrupt:
            at = draws.randrange(len(data))
            buffer[at] ^= 1 << draws.randrange(8)
        elif draws.random() < trouble.unreadable:
            buffer[: len(data)] = bytes(len(data))
            return ReadAnswer(len(data), UNREADABLE, blake3(bytes(len(data))).digest(), _NOTHING)
        return ReadAnswer(len(data), AS_LISTED, digest, _NOTHING)

    def confirm(self, files: list[FileEntry], ticket: str | None = None) -> WireConfirmation:
        self._require_alive()
        gone = [f.path for f in files if f.path not in self.source.versions]
        changed = [
            f.path
            for f in files
            if f.path in self.source.versions and self.source.current(f.path)[0] != f
        ]
        return WireConfirmation(tuple(changed), tuple(gone))

    def abort(self) -> None:
        self.is_aborted = True

    def close(self) -> None:
        self.is_aborted = True

    def _require_alive(self) -> None:
        if self.is_aborted or not self.source.is_up:
            raise TransferError("the connection failed: reset by peer")


_NOTHING = WireConfirmation()
