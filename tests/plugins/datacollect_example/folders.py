"""A kind of source: folders of this machine, such as a file system of another host's, mounted."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from datacollect.errors import TransferError
from datacollect.files.fields import Field, Table
from datacollect.files.kinds import Text
from datacollect.transfer.protocol.kind import SourceKind, Surroundings
from datacollect.transfer.protocol.patterns import matches
from datacollect.transfer.protocol.source import (
    Assurance,
    Confirmation,
    FetchResult,
    Known,
    Listed,
    Page,
    Reached,
    Segment,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from datacollect.net.deadline import Deadline


@dataclass(frozen=True)
class FolderEntry:
    """A folder, by the host that it is of."""

    name: str
    path: Path


class FolderSource:
    """The files of a folder; a `datacollect.transfer.protocol.source.Source`."""

    is_cut_by_file = True
    named: tuple[str, ...] = ()

    def __init__(self, entry: FolderEntry, around: Surroundings) -> None:
        self.name = entry.name
        self._path, self._patterns = entry.path, around.patterns

    def reach(self, deadline: Deadline) -> Reached:
        if not self._path.is_dir():
            raise TransferError(f"{self.name}: {self._path} is no folder; mount it")
        return Reached((), serves=True)

    def list(self, known: Known) -> Iterator[Page]:
        found = [path for path in self._path.rglob("*") if path.is_file()]
        listed = [_listed(self._path, path) for path in found]
        yield Page(
            sorted(
                (file for file in listed if matches(file.path, self._patterns)),
                key=lambda file: file.path.encode(),
            )
        )

    def open(self, relays: tuple[str, ...]) -> FolderPeer:
        return FolderPeer(self._path)

    def assurance(self, tags: Mapping[str | None, int]) -> Assurance | None:
        return None


class FolderPeer:
    """Reads segments of a folder's files; a `datacollect.transfer.protocol.source.Peer`."""

    is_proved = is_waiting = False

    def __init__(self, folder: Path) -> None:
        self.received_bytes = 0
        self._folder = folder
        self._asked: deque[Sequence[Segment]] = deque()

    def has_room(self, segments: Sequence[Segment]) -> bool:
        return len(self._asked) < 2

    def request(self, segments: Sequence[Segment]) -> None:
        self._asked.append(segments)

    def receive(self, buffer: memoryview) -> FetchResult:
        n_bytes = 0
        for span, file in self._asked.popleft():
            if self._changed(file):
                return FetchResult(n_bytes, Verdict.CHANGED, b"")
            with (self._folder / file.path).open("rb") as opened:
                opened.seek(span.offset_bytes)
                n_bytes += opened.readinto(buffer[n_bytes : n_bytes + span.n_bytes])
        self.received_bytes += n_bytes
        return FetchResult(n_bytes, Verdict.VERIFIED, blake3(buffer[:n_bytes]).digest())

    def confirm(self, segments: Sequence[Segment]) -> Confirmation:
        return Confirmation([span.file for span, file in segments if self._changed(file)])

    def digests(self, segments: Sequence[Segment]) -> list[bytes | None] | None:
        return None

    def abort(self, *, is_stuck: bool = False) -> None:
        self._asked.clear()

    def close(self) -> None:
        self._asked.clear()

    def _changed(self, file: Listed) -> bool:
        path = self._folder / file.path
        return not path.is_file() or _listed(self._folder, path) != file


def _listed(folder: Path, path: Path) -> Listed:
    about = path.stat()
    return Listed(
        path.relative_to(folder).as_posix(), about.st_size, about.st_mtime_ns, about.st_ino
    )


def _read(name: str, entry: Mapping[str, Any], base: Path) -> FolderEntry:
    return FolderEntry(name, base / entry["path"])


FOLDER = Table("the folder", "A folder.", (Field("path", Text(), "Where it is.", required=True),))
FOLDERS = SourceKind(FOLDER, "Folders of this machine, by name.", _read, FolderSource)
