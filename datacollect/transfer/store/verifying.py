"""Verification of finished files: read again, compared with the hashes recorded on arrival."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.transfer.protocol.file_names import STATE_FOLDER
from datacollect.transfer.store.comparing import open_placed
from datacollect.transfer.store.folder.looks import looks_of
from datacollect.transfer.store.folder.paths import Folders
from datacollect.transfer.store.state.hashes import is_part
from datacollect.transfer.store.state.reading import FileState, PlacedRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import TextIO

    from datacollect.transfer.store.state.reading import Reading

NOTED_IN = "verified.jsonl"
# How often progress is reported, and what was read is put on disk.
REPORT_S = 0.2


class VerifyProgress(NamedTuple):
    """Progress of verification: how much was read again, of how much."""

    n_files: int
    n_bytes: int
    all_files: int
    all_bytes: int


class Unsound(NamedTuple):
    """A file that is not as it came, and why."""

    number: int
    source: str
    path: str
    why: str


class Verified(NamedTuple):
    """Result of reading all again.

    Attributes
    ----------
    n_files, n_bytes : int
        That are as they came.
    altered, gone : list of Unsound
    unverifiable : list of Unsound
        Of which no hash of their own is known, or that cannot be read.
    """

    n_files: int
    n_bytes: int
    altered: list[Unsound]
    gone: list[Unsound]
    unverifiable: list[Unsound]

    @property
    def is_sound(self) -> bool:
        """Return whether nothing is altered or gone."""
        return not self.altered and not self.gone

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        wrong = {
            key: [{"source": each.source, "path": each.path, "why": each.why} for each in found]
            for key, found in (
                ("altered", self.altered),
                ("gone", self.gone),
                ("unverifiable", self.unverifiable),
            )
        }
        return {"files": self.n_files, "bytes": self.n_bytes, **wrong}


def is_as_recorded(fd: int, n_bytes: int, hashes: Sequence[tuple[int, int, bytes]]) -> bool | None:
    """Return whether an open file has the hashes of its parts.

    None where these do not cover all of it.
    """
    end = 0
    for offset, length, _ in hashes:
        if offset != end:
            return None
        end = offset + length
    if end != n_bytes:
        return None
    if os.fstat(fd).st_size != n_bytes:
        return False
    return all(is_part(fd, *each) for each in hashes)


def verified_files(
    folder: Path, state: Reading, report: Callable[[VerifyProgress], None] = lambda _: None
) -> Verified:
    """Read all files again that are done, and compare them with what came.

    What was read is noted in a file beside the state, as far as it can be; the next call goes on
    from there where this one does not come to its end.
    """
    root_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _Verifying(folder, root_fd, state, report).run()
    finally:
        os.close(root_fd)


class _Verifying:
    def __init__(
        self, folder: Path, root_fd: int, state: Reading, report: Callable[[VerifyProgress], None]
    ) -> None:
        self._state, self._report = state, report
        self._folders = Folders(root_fd)
        self._notes = _Notes(folder / STATE_FOLDER / NOTED_IN)
        self._found = Verified(0, 0, [], [], [])
        self._n_files = self._n_bytes = self._sound_files = self._sound_bytes = 0
        self._reported_s = 0.0
        done = [each.get(FileState.DONE, (0, 0)) for each in state.counts().values()]
        self._all = sum(n for n, _ in done), sum(n_bytes for _, n_bytes in done)

    def run(self) -> Verified:
        try:
            for number, name in self._state.source_names().items():
                for row in self._state.placed(number):
                    self._verify(name, row)
        finally:
            self._folders.close()
            self._notes.close()
        self._notes.remove()
        self._progress(0, 0, at_once=True)
        return self._found._replace(n_files=self._sound_files, n_bytes=self._sound_bytes)

    def _verify(self, name: str, row: PlacedRow) -> None:
        """Verify a file by the hashes of its parts."""
        try:
            with open_placed(self._folders, name, row.listed.path) as fd:
                if self._notes.has(row.number, fd):
                    self._sound(row, None)
                    return
                hashes = self._state.hashes_of(row.number)
                verdict = is_as_recorded(fd, row.listed.n_bytes, hashes)
                if verdict is None and os.fstat(fd).st_size == row.listed.n_bytes:
                    why = "not all of its hashes are known"
                    self._found.unverifiable.append(Unsound(row.number, name, row.listed.path, why))
                    self._progress(1, row.listed.n_bytes)
                elif verdict:
                    self._sound(row, fd)
                else:
                    self._altered(name, row)
        except FileNotFoundError:
            self._found.gone.append(Unsound(row.number, name, row.listed.path, "is not there"))
            self._progress(1, row.listed.n_bytes)
        except OSError as error:
            self._unreadable(name, row, error)

    def _sound(self, row: PlacedRow, fd: int | None) -> None:
        if fd is not None:
            self._notes.note(row.number, fd)
        self._sound_files += 1
        self._sound_bytes += row.listed.n_bytes
        self._progress(1, row.listed.n_bytes)

    def _altered(self, name: str, row: PlacedRow) -> None:
        why = "its hash differs from when it came"
        self._found.altered.append(Unsound(row.number, name, row.listed.path, why))
        self._progress(1, row.listed.n_bytes)

    def _unreadable(self, name: str, row: PlacedRow, error: OSError) -> None:
        why = f"cannot be read: {error.strerror}"
        self._found.altered.append(Unsound(row.number, name, row.listed.path, why))
        self._progress(1, row.listed.n_bytes)

    def _progress(self, n_files: int, n_bytes: int, *, at_once: bool = False) -> None:
        self._n_files += n_files
        self._n_bytes += n_bytes
        now_s = time.monotonic()
        if at_once or now_s >= self._reported_s + REPORT_S:
            self._reported_s = now_s
            self._notes.flush()
            self._report(VerifyProgress(self._n_files, self._n_bytes, *self._all))


class _Notes:
    """Files that were read and were sound, as they looked then: one line of JSON each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = dict(_lines(path))
        self._file: TextIO | None = None
        with suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8")

    def has(self, number: int, fd: int) -> bool:
        return self._known.get(number) == _looks(fd)

    def note(self, number: int, fd: int) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.write(json.dumps([number, *_looks(fd)]) + "\n")

    def flush(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def remove(self) -> None:
        with suppress(OSError):
            self._path.unlink()


def _looks(fd: int) -> tuple[int, ...]:
    return tuple(looks_of(os.fstat(fd)))


def _lines(path: Path) -> Iterator[tuple[int, tuple[int, ...]]]:
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            with suppress(ValueError, TypeError):
                number, *looks = json.loads(line)
                yield number, tuple(looks)
