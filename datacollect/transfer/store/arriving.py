"""Pieces of known sources: what is needed, writing what arrives, and recording it.

`store` says in which order, and why.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from blake3 import blake3

from datacollect.files.durability import sync
from datacollect.transfer.protocol.source import Segment
from datacollect.transfer.store.attributes import finish_file
from datacollect.transfer.store.checking import Checks
from datacollect.transfer.store.folder.paths import remove_whole
from datacollect.transfer.store.folder.syncing import sync_files
from datacollect.transfer.store.places import Places
from datacollect.transfer.store.state.failures import not_written
from datacollect.transfer.store.state.holes import is_hole, written_parts
from datacollect.transfer.store.state.pieces import piece_range
from datacollect.transfer.store.state.recording import PieceKey, PieceRecorder, Written
from datacollect.transfer.store.state.state import FileState, Settled, SpanHash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from datacollect.transfer.protocol.source import Listed, Span
    from datacollect.transfer.store.attributes import StoreOptions
    from datacollect.transfer.store.checking import Check
    from datacollect.transfer.store.folder.opening import Staging
    from datacollect.transfer.store.state.pieces import Layout
    from datacollect.transfer.store.state.state import Stamp, State


@dataclass
class _Source:
    number: int
    layout: Layout
    row_of: dict[int, int]
    is_live: np.ndarray  # by row: waited for
    left: np.ndarray  # by row: pieces that are not recorded
    sparse: set[int]  # files with holes
    taken: set[int] = field(default_factory=set)  # pieces written or recorded


class Arriving:
    """What comes into a destination folder.

    Parameters
    ----------
    folder : Path
    root_fd : int
    staging : Staging
    state : State
    options : StoreOptions
    """

    def __init__(
        self, folder: Path, root_fd: int, staging: Staging, state: State, options: StoreOptions
    ) -> None:
        self.folder, self.state, self.options = folder, state, options
        self._staging = staging
        self._sources: dict[str, _Source] = {}
        self._cuts: dict[str, tuple[int, bool]] = {}
        self._put_off: dict[str, str] = {}
        self._stamps: dict[int, tuple[Stamp, int | None]] = {}
        self._books = threading.RLock()  # what is recorded, and what is known of sources, agree
        self._places = Places(root_fd, state, options)
        self._checks = Checks(staging.of, self._checked)
        self._recorder = PieceRecorder(folder, self._carry_on, lambda: self._checks.is_busy)
        self._n_writing, self._is_closed = 0, False

    # Sources ----------------------------------------------------------------------------------

    def know(self, name: str) -> None:
        """Lay a source's new files out, and get ready for its pieces."""
        piece_bytes, apart = self._cuts[name]
        with self._books:
            number = self.state.source_id(name)
            layout = self.state.lay_new_files(number, piece_bytes, apart=apart)
            known = self._known(number, layout)
            empty = [file for file, size, _ in self.state.waited_for(number) if size == 0]
            whole = [*layout.files[known.is_live & (known.left == 0)].tolist(), *empty]
            self._put_off.pop(name, None)
            with self._recorder.cond:  # what is being written stays taken
                if (before := self._sources.get(name)) is not None:
                    known.taken |= before.taken
                self._sources[name] = known
        self._recorder.add_whole((name, file) for file in whole)

    def _known(self, number: int, layout: Layout) -> _Source:
        waiting = {file: has_holes for file, _, has_holes in self.state.waited_for(number)}
        recorded = self.state.recorded(number)
        files = layout.files.tolist()
        is_recorded = np.zeros(len(layout.pieces) + 1, dtype=np.int64)
        is_recorded[np.array(recorded, dtype=np.int64) + 1] = 1
        before = np.cumsum(is_recorded)
        first, last = piece_range(layout)
        return _Source(
            number,
            layout,
            {file: row for row, file in enumerate(files)},
            np.array([file in waiting for file in files], dtype=bool),
            (last - first) - (before[last] - before[first]),
            {file for file, has_holes in waiting.items() if has_holes},
            set(recorded),
        )

    def put_off(self, name: str, why: str) -> None:
        """Let a source's files wait, with the reason."""
        with self._books:
            self.state.put_off(self.state.source_id(name), why)
            self._put_off[name] = why
            if name in self._sources:
                self._sources[name].is_live[:] = False

    def put_off_sources(self) -> dict[str, str]:
        """Return the sources that were put off, and why."""
        return dict(self._put_off)

    # Pieces -----------------------------------------------------------------------------------

    def known_sources(self) -> list[str]:
        """Return the sources that pieces may come from."""
        return sorted(self._sources)

    def layout(self, source: str) -> Layout:
        """Return how a source's files lie end to end."""
        return self._sources[source].layout

    def settle_remaining(self) -> None:
        """Let files that need no more pieces, such as empty ones, have their names."""
        self.start(lambda _, __: None)
        self.stop()
        self._recorder.require_sound()

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
        StoreError
            The disk is full, or broken.
        """
        recorder = self._recorder
        with recorder.cond:
            recorder.wait_for_room()
            known = self._sources[key.source]
            if self._is_closed:
                return False
            if key.piece in known.taken:
                return False
            known.taken.add(key.piece)
            recorder.announce(len(data))
            self._n_writing += 1
        try:
            hashes = self._write(key.source, known, spans, data, digest)
        except OSError as error:
            recorder.fail(error)
            raise not_written(error, self.folder) from error
        finally:
            with recorder.cond:
                self._n_writing -= 1
                if self._is_closed:
                    recorder.cond.notify_all()
        recorder.add(Written(key, digest, hashes, len(data)))
        return True

    def retire(self, source: str, files: Iterable[int], why: str) -> None:
        """Wait no more for files of a source: they are missing, unless they are listed again."""
        self.unreadable(source, [(file, why) for file in files])

    def unreadable(self, source: str, files: Iterable[tuple[int, str]]) -> None:
        """Wait no more for files of a source, each for its own reason."""
        with self._books:
            known = self._sources[source]
            live = [(file, why) for file, why in files if known.is_live[known.row_of[file]]]
            known.is_live[[known.row_of[file] for file, _ in live]] = False
            self.state.settle(Settled(file, FileState.MISSING, why) for file, why in live)

    def set_aside(self, file: int, why: str) -> None:
        """Note why a file cannot be had now, unless all of it came by another session."""
        with self._books:
            if self.state.still_waiting([file]):
                self.state.settle([Settled(file, FileState.WAITING, why)])

    def pieces_of(self, source: str, file: int) -> tuple[int, ...]:
        """Return all pieces of a file."""
        known = self._sources[source]
        return tuple(known.layout.pieces_of(known.row_of[file]))

    def files_of(self, source: str, pieces: Iterable[int]) -> set[int]:
        """Return the files that have parts in some pieces."""
        layout = self._sources[source].layout
        return {span.file for piece in pieces for span in layout.spans(piece)}

    def abandon(self, source: str, piece: int, why: str) -> None:
        """Give the files of a piece up."""
        files = [span.file for span in self._sources[source].layout.spans(piece)]
        self.retire(source, files, why)

    def _write(
        self,
        source: str,
        known: _Source,
        spans: Sequence[Span],
        data: memoryview,
        digest: bytes,
    ) -> list[SpanHash]:
        """Write a piece's parts; return their hashes. Small files get mode and time at once."""
        files = self.state.file_rows([span.file for span in spans if span.offset_bytes == 0])
        folder_fd, at, hashes = self._staging.of(source), 0, []
        for span in spans:
            part = data[at : at + span.n_bytes]
            at += span.n_bytes
            own = digest if len(spans) == 1 and len(digest) == 32 else blake3(part).digest()
            hashes.append(SpanHash(*span, own))
            fd = _open_unfinished(folder_fd, span.file)
            try:
                if span.file in known.sparse:
                    _write_sparse(fd, part, span.offset_bytes)
                else:
                    _write_all(fd, part, span.offset_bytes)
                    listed = files.get(span.file)
                    if listed is not None and listed.n_bytes == span.n_bytes:
                        self._stamps[span.file] = finish_file(fd, listed, self.options)
            finally:
                os.close(fd)
        return hashes

    # Recording --------------------------------------------------------------------------------

    @property
    def _failure(self) -> Exception | None:
        return self._recorder.failure

    def start(self, report: Callable[[list[PieceKey], Exception | None], None]) -> None:
        """Begin to record what is written, in a thread."""
        self._recorder.start(report)

    def look(self) -> None:
        """Raise `StoreError` where nothing can be recorded any more."""
        self._recorder.look()

    def stop(self, *, at_once: bool = False) -> None:
        """Record all that was written, then end; `at_once`: whole files are not waited for."""
        if at_once:
            self._checks.cancel()
        self._recorder.stop()

    def _keep_writers_out(self) -> None:
        """Let nobody write any more, and wait for those who do: they have the folder open."""
        with self._recorder.cond:
            self._is_closed = True
            self._recorder.cond.wait_for(lambda: self._n_writing == 0)

    def _carry_on(self, group: list[Written], whole: list[tuple[str, int]]) -> None:
        """Sync and record a group, and give the files names that are whole then."""
        with self._books:
            counted = [each for written in group for each in self._count(written.key)]
            waiting = self.state.still_waiting([file for _, file in (*whole, *counted)])
            whole = [each for each in dict.fromkeys((*whole, *counted)) if each[1] in waiting]
            files = self.state.file_rows([file for _, file in whole])
            self._finish_unfinished(whole, files)
            touched: dict[int, set[int]] = {}
            for written in group:
                at = touched.setdefault(self._staging.of(written.key.source), set())
                at.update(span.file for span in written.spans)
            for source, file in whole:
                touched.setdefault(self._staging.of(source), set()).add(file)
            is_whole = {file for _, file in whole}
            for fd, names in touched.items():
                sync_files(fd, names, is_whole)
            self.state.record(
                ((self._sources[w.key.source].number, w.key.piece, w.digest) for w in group),
                (span for written in group for span in written.spans),
                (Settled(n, FileState.WAITING, None, *self._stamps[n]) for _, n in whole),
            )
            if whole:
                self._give_names(whole, files)

    def _count(self, key: PieceKey) -> list[tuple[str, int]]:
        """Take a piece off its files; return those that are whole with it."""
        known = self._sources[key.source]
        whole = []
        for span in known.layout.spans(key.piece):
            row = known.row_of[span.file]
            known.left[row] -= 1
            if known.left[row] == 0 and known.is_live[row]:
                whole.append((key.source, span.file))
        return whole

    def _finish_unfinished(self, whole: list[tuple[str, int]], files: dict[int, Listed]) -> None:
        """Give whole files their size, mode and time, unless they have them."""
        for source, file in whole:
            if file in self._stamps:
                continue
            listed = files[file]
            # One of which anything has come is there, or it is lost.
            is_made = listed.n_bytes == 0 or listed.extents == ()
            fd = _open_unfinished(self._staging.of(source), file, make=is_made)
            try:
                if listed.extents is not None:
                    os.ftruncate(fd, listed.n_bytes)
                self._stamps[file] = finish_file(fd, listed, self.options)
            finally:
                os.close(fd)

    def _give_names(self, whole: list[tuple[str, int]], files: dict[int, Listed]) -> None:
        with self._recorder.cond:
            whole = [each for each in whole if not self._checks.take(*each, files[each[1]])]
        settled, used = [], {self._staging.of(source) for source, _ in whole}
        for source, file in sorted(whole, key=lambda w: (w[0], files[w[1]].path)):
            settled.append(self._give_name(source, file, files[file]))
        self._places.folders.sync()
        for fd in used:
            sync(fd)
        self.state.settle(settled)
        for source, file in whole:
            self._stamps.pop(file, None)
            known = self._sources[source]
            if file in known.row_of:
                known.is_live[known.row_of[file]] = False
            with suppress(OSError):
                remove_whole(self._staging.of(source), f"replaced-{file}")

    def _give_name(self, source: str, file: int, listed: Listed) -> Settled:
        why = self._checks.verdicts.pop(file, None)
        if why is not None:
            return Settled(file, FileState.MISSING, why)
        place = self._staging.of(source), str(file)
        number = self._sources[source].number
        why = self._places.place(number, source, listed.path, listed.n_bytes, place)
        if why is not None:
            return Settled(file, FileState.KEPT, why)
        return Settled(file, FileState.DONE, None, *self._stamps[file])

    def _checked(self, check: Check) -> None:
        """Hear from the thread that checks: the file can be finished now."""
        self._recorder.add_whole([(check.source, check.file)])
        with self._recorder.cond:
            self._checks.n_under_way -= 1
            self._recorder.cond.notify_all()


def _open_unfinished(folder_fd: int, file: int, *, make: bool = True) -> int:
    flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if make else 0)
    return os.open(str(file), flags, 0o644, dir_fd=folder_fd)


def _write_all(fd: int, data: memoryview, offset: int) -> None:
    while data:
        n = os.pwrite(fd, data, offset)
        data, offset = data[n:], offset + n


def _write_sparse(fd: int, data: memoryview, offset: int) -> None:
    """Write what is not zeros; zeros too, where something else was written before."""
    at = 0
    for begin, end in (*written_parts(data, offset), (len(data), len(data))):
        if begin > at and not is_hole(fd, offset + at, begin - at):
            begin = at
        _write_all(fd, data[begin:end], offset + begin)
        at = end
