"""What has come, on disk: written, synced, recorded, renamed, in this order.

Pieces are written into files below ``.datacollect/incoming``. A group of them is synced, then
recorded in the state in one transaction; a file whose pieces are all recorded is renamed to where
it belongs, and its folder synced. So after a crash what is recorded is there, what has its final
name is whole and verified, and at most one group is fetched again.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.errors import NotWrittenError, ProblemError
from datacollect.transfer.collector.checking import Checks
from datacollect.transfer.collector.paths import (
    FOLDER_FLAGS,
    STATE_FOLDER,
    Folders,
    folding_of,
    names_in,
    not_written,
    place,
    size_there,
)
from datacollect.transfer.collector.pieces import piece_range, touched, whole_files
from datacollect.transfer.collector.state import FileState, State
from datacollect.transfer.collector.syncing import sync_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from datacollect.transfer.collector.checking import Check
    from datacollect.transfer.collector.pieces import Layout, Span
    from datacollect.transfer.collector.state import Listed

# A group is recorded after so long or so many bytes, and writers wait at the most.
GROUP_S, GROUP_BYTES, MOST_UNRECORDED_BYTES = 0.5, 64 * 2**20, 224 * 2**20


class Segment(NamedTuple):
    """A span of a file that is to be read, with all that its source needs to know."""

    span: Span
    file: Listed


class PieceKey(NamedTuple):
    """A piece of a source."""

    source: str
    piece: int


@dataclass
class _Source:
    number: int
    layout: Layout
    row_of: dict[int, int]
    is_live: np.ndarray  # by row: waited for
    left: np.ndarray  # by row: pieces that are not recorded
    taken: set[int] = field(default_factory=set)  # pieces written or recorded


class Store:
    """A destination folder and its state, held by one process at a time.

    Parameters
    ----------
    folder : Path
    tell : callable, optional
        Called by the committing thread with recorded pieces, or with what went wrong.

    Raises
    ------
    ProblemError
        The folder cannot be made or written, or another pull is at work in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._root_fd, self._state_fd, self._lock_fd = _opened(folder)
        self._incoming_fd = _sub_folder(self._state_fd, "incoming")
        self.folding = folding_of(self._state_fd)
        self.state = State(folder / STATE_FOLDER / "state.sqlite")
        self._sources: dict[str, _Source] = {}
        self._folders = Folders(self._root_fd)
        self._checks = Checks(self._incoming_fd, self._checked)
        self._cond = threading.Condition()
        self._pending: list[tuple[PieceKey, bytes, list[int], int]] = []
        self._pending_bytes = self._unrecorded_bytes = 0
        self._first_pending_s = 0.0
        self._whole: list[tuple[str, int]] = []
        self._failure: Exception | None = None
        self._ends = False
        self._thread: threading.Thread | None = None

    # Before and after -------------------------------------------------------------------------

    def close(self) -> None:
        """Record what can be, and let others have the folder."""
        self.stop()
        self._checks.close()
        self._folders.close()
        self.state.close()
        for fd in (self._incoming_fd, self._state_fd, self._root_fd, self._lock_fd):
            os.close(fd)

    def mend(self) -> int:
        """Bring the state in line with what lies in the folder, after a crash or a hand's work.

        Returns
        -------
        int
            How many files were there before, and are to be fetched again.
        """
        lost_files = 0
        there = set(names_in(self._incoming_fd))
        for number, name in self.state.source_names().items():
            lost, done = [], []
            lost += [
                row.number
                for row in self.state.files_in(number, FileState.DONE)
                if size_there(self._folders, name, row.listed.path) != row.listed.n_bytes
            ]
            recorded = set(self.state.recorded(number))
            layout = self.state.layout(number)
            begun = set(layout.files[touched(layout, recorded)].tolist())
            all_recorded = whole_files(layout, recorded)
            for row in self.state.files_in(number, FileState.WAITING):
                if row.number in begun and str(row.number) not in there:
                    size = size_there(self._folders, name, row.listed.path)
                    if row.number in all_recorded and size == row.listed.n_bytes:
                        done.append((row.number, FileState.DONE, None))
                    else:
                        lost.append(row.number)
            self.state.settle(done)
            self.state.again(lost)
            lost_files += len(lost)
        return lost_files

    def know(self, source: str, layout: Layout) -> None:
        """Get ready for the pieces of a source, whose listing is complete."""
        number = self.state.source_id(source)
        waiting = {row.number: row for row in self.state.files_in(number, FileState.WAITING)}
        recorded = self.state.recorded(number)
        row_of = {file: row for row, file in enumerate(layout.files.tolist())}
        is_live = np.array([file in waiting for file in layout.files.tolist()], dtype=bool)
        is_recorded = np.zeros(len(layout.pieces) + 1, dtype=np.int64)
        is_recorded[np.array(recorded, dtype=np.int64) + 1] = 1
        before = np.cumsum(is_recorded)
        first, last = piece_range(layout)
        left = (last - first) - (before[last] - before[first])
        known = _Source(number, layout, row_of, is_live, left, set(recorded))
        empty = [file for file, row in waiting.items() if row.listed.n_bytes == 0]
        for file in empty:
            os.close(self._open_incoming(file))
        whole = [*layout.files[is_live & (left == 0)].tolist(), *empty]
        with self._cond:
            self._sources[source] = known
            self._whole += [(source, file) for file in whole]
            self._cond.notify_all()

    def clean(self) -> None:
        """Take away what was begun and is not waited for any more."""
        live = {
            str(row.number)
            for number in self.state.source_names()
            for row in self.state.files_in(number, FileState.WAITING)
        }
        for name in set(names_in(self._incoming_fd)) - live:
            with suppress(OSError):
                os.unlink(name, dir_fd=self._incoming_fd)

    def free_bytes(self) -> int:
        """Return how much room the file system has for us."""
        found = os.fstatvfs(self._root_fd)
        return found.f_bavail * found.f_frsize

    def begun_bytes(self) -> int:
        """Return how much of the room is taken by what was begun before."""
        total = 0
        for name in names_in(self._incoming_fd):
            with suppress(OSError):
                total += os.stat(name, dir_fd=self._incoming_fd).st_blocks * 512
        return total

    # Pieces -----------------------------------------------------------------------------------

    def known_sources(self) -> list[str]:
        """Return the sources that pieces may come from."""
        return sorted(self._sources)

    def layout(self, source: str) -> Layout:
        """Return how a source's files lie end to end."""
        return self._sources[source].layout

    def settle_rest(self) -> None:
        """Let files that need no more pieces, such as empty ones, have their names."""
        self.start(lambda _, __: None)
        self.stop()
        self._require_sound()

    def needed(self, source: str) -> list[int]:
        """Return the pieces of a source that are to be fetched."""
        known = self._sources[source]
        rows = np.flatnonzero(known.is_live).tolist()
        wanted = {piece for row in rows for piece in known.layout.pieces_of(row)}
        return sorted(wanted - known.taken)

    def segments(self, key: PieceKey) -> list[Segment]:
        """Return what to read for a piece: the parts of files that are still waited for."""
        known = self._sources[key.source]
        spans = [
            span for span in known.layout.spans(key.piece) if known.is_live[known.row_of[span.file]]
        ]
        files = self.state.file_rows([span.file for span in spans])
        return [Segment(span, files[span.file]) for span in spans]

    def put(self, key: PieceKey, spans: Sequence[Span], data: memoryview, digest: bytes) -> bool:
        """Write a verified piece; whether it was not there yet. Waits where too much is unrecorded.

        Raises
        ------
        TransferError
            The disk is full, or broken.
        """
        known = self._sources[key.source]
        with self._cond:
            while self._unrecorded_bytes > MOST_UNRECORDED_BYTES and self._failure is None:
                self._cond.wait(1.0)
            self._require_sound()
            if key.piece in known.taken:
                return False
            known.taken.add(key.piece)
            self._unrecorded_bytes += len(data)
        try:
            self._write(known, spans, data)
        except OSError as error:
            self._fail(error)
            raise not_written(error, self.folder) from error
        with self._cond:
            is_first = not self._pending
            if is_first:
                self._first_pending_s = time.monotonic()
            files = [span.file for span in spans]
            self._pending.append((key, digest, files, len(data)))
            self._pending_bytes += len(data)
            # Who records is woken to wait for the group's time, and where it is large enough.
            if is_first or self._is_due():
                self._cond.notify_all()
        return True

    def retire(self, source: str, files: Iterable[int], why: str) -> None:
        """Wait no more for files of a source: they are missing, unless they are listed again."""
        known = self._sources[source]
        with self._cond:
            live = [file for file in files if known.is_live[known.row_of[file]]]
            known.is_live[[known.row_of[file] for file in live]] = False
        self.state.settle([(file, FileState.MISSING, why) for file in live])

    def set_aside(self, file: int, why: str) -> None:
        """Note why a file cannot be had now; what has come of it is kept."""
        self.state.settle([(file, FileState.WAITING, why)])

    def pieces_of(self, source: str, file: int) -> tuple[int, ...]:
        """Return all pieces of a file."""
        known = self._sources[source]
        return tuple(known.layout.pieces_of(known.row_of[file]))

    def abandon(self, source: str, piece: int, why: str) -> None:
        """Give the files of a piece up."""
        files = [span.file for span in self._sources[source].layout.spans(piece)]
        self.retire(source, files, why)

    def _write(self, known: _Source, spans: Sequence[Span], data: memoryview) -> None:
        at = 0
        for span in spans:
            part = data[at : at + span.n_bytes]
            at += span.n_bytes
            fd = self._open_incoming(span.file)
            try:
                offset = span.offset_bytes
                while part:
                    n = os.pwrite(fd, part, offset)
                    part, offset = part[n:], offset + n
            finally:
                os.close(fd)

    def _open_incoming(self, file: int) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(str(file), flags, 0o644, dir_fd=self._incoming_fd)

    # Recording --------------------------------------------------------------------------------

    def start(self, tell: Callable[[list[PieceKey], Exception | None], None]) -> None:
        """Begin to record what is written, in a thread."""
        self._ends = False
        self._thread = threading.Thread(
            target=self._record_all, args=(tell,), name="store", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Record all that was written, then end."""
        with self._cond:
            self._ends = True
            self._cond.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _record_all(self, tell: Callable[[list[PieceKey], Exception | None], None]) -> None:
        while True:
            with self._cond:
                while not self._is_due():
                    if self._ends and not (
                        self._pending or self._whole or self._checks.n_under_way
                    ):
                        return
                    self._cond.wait(self._patience_s())
                group, self._pending, self._pending_bytes = self._pending, [], 0
                whole, self._whole = self._whole, []
            try:
                self._record(group, whole)
            except Exception as error:  # noqa: BLE001 - handed on
                self._fail(error)
                wrapped = not_written(error, self.folder) if isinstance(error, OSError) else error
                tell([], wrapped)
                return
            with self._cond:
                self._unrecorded_bytes -= sum(n for *_, n in group)
                self._cond.notify_all()
            tell([key for key, *_ in group], None)

    def _is_due(self) -> bool:
        if self._ends:
            return bool(self._pending or self._whole)
        if not self._pending:
            return bool(self._whole)
        age_s = time.monotonic() - self._first_pending_s
        return age_s >= GROUP_S or self._pending_bytes >= GROUP_BYTES

    def _patience_s(self) -> float | None:
        if not self._pending:
            return None
        return max(0.0, self._first_pending_s + GROUP_S - time.monotonic())

    def _record(
        self, group: list[tuple[PieceKey, bytes, list[int], int]], whole: list[tuple[str, int]]
    ) -> None:
        touched = {file for _, _, files, _ in group for file in files}
        sync_files(self._incoming_fd, touched | {file for _, file in whole})
        self.state.record(
            (self._sources[key.source].number, key.piece, digest) for key, digest, _, _ in group
        )
        for key, _, _, _ in group:
            whole += self._count(key)
        if whole:
            self._finish(whole)

    def _count(self, key: PieceKey) -> list[tuple[str, int]]:
        """Take a recorded piece off its files; return those that are whole now."""
        known = self._sources[key.source]
        whole = []
        for span in known.layout.spans(key.piece):
            row = known.row_of[span.file]
            known.left[row] -= 1
            if known.left[row] == 0 and known.is_live[row]:
                whole.append((key.source, span.file))
        return whole

    def _finish(self, whole: list[tuple[str, int]]) -> None:
        files = self.state.file_rows([file for _, file in whole])
        settled: list[tuple[int, FileState, str | None]] = []
        with self._cond:
            whole = [each for each in whole if not self._checks.take(*each, files[each[1]])]
        for source, file in sorted(whole, key=lambda w: (w[0], files[w[1]].path)):
            why = self._checks.verdicts.pop(file, None) or place(
                self._folders, self._incoming_fd, str(file), source, files[file].path
            )
            settled.append((file, FileState.MISSING if why else FileState.DONE, why))
        self._folders.sync()
        os.fsync(self._incoming_fd)
        self.state.settle(settled)
        with self._cond:
            for source, file in whole:
                known = self._sources[source]
                if file in known.row_of:
                    known.is_live[known.row_of[file]] = False

    def _checked(self, check: Check) -> None:
        """Hear from the thread that checks: the file can be finished now."""
        with self._cond:
            self._whole.append((check.source, check.file))
            self._checks.n_under_way -= 1
            self._cond.notify_all()

    def _fail(self, error: Exception) -> None:
        with self._cond:
            self._failure = error
            self._cond.notify_all()

    def _require_sound(self) -> None:
        if self._failure is not None:
            raise not_written(self._failure, self.folder)


def _opened(folder: Path) -> tuple[int, int, int]:
    """Open the folder, its state's folder, and hold the lock."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        state = _sub_folder(root, STATE_FOLDER)
        lock = os.open(
            "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=state
        )
    except OSError as error:
        raise NotWrittenError(
            f"{folder}: is no folder to write to: {error.strerror}; name another with --into",
            error.errno,
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        for fd in (lock, state, root):
            os.close(fd)
        raise ProblemError(
            f"{folder}: another pull is at work there; wait for its end, or name another folder"
        ) from None
    return root, state, lock


def _sub_folder(parent_fd: int, name: str) -> int:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent_fd)
    return os.open(name, FOLDER_FLAGS, dir_fd=parent_fd)
