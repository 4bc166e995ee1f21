"""The store: data on disk, written, synced, recorded, renamed, in this order.

Pieces are written into unfinished files, in the file system in which they belong (`opening`). A
group of them is synced, then recorded in the state in one transaction; a file whose pieces are all
recorded is renamed to where it belongs, and its folder synced. Before it is synced for the last
time it gets its size, mode and time. So after a crash what is recorded is there, what has its final
name is whole and verified, and at most one group is fetched again.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections import Counter, deque
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from blake3 import blake3

from datacollect.files.durability import sync
from datacollect.transfer.protocol.file_names import STATE_FOLDER
from datacollect.transfer.protocol.patterns import ALL
from datacollect.transfer.protocol.source import BEGIN_BYTES, Copy, Known, Segment
from datacollect.transfer.store.attributes import (
    StoreOptions,
    finish_file,
    finish_folder,
    is_as_placed,
)
from datacollect.transfer.store.comparing import open_placed
from datacollect.transfer.store.folder.opening import Staging, open_folder, unusable
from datacollect.transfer.store.folder.paths import Folders, folding_of, names_in, remove_whole
from datacollect.transfer.store.folder.syncing import sync_files
from datacollect.transfer.store.incoming.checking import Checks
from datacollect.transfer.store.incoming.rereading import Rereading
from datacollect.transfer.store.incoming.unfinished import Unfinished
from datacollect.transfer.store.listing import Listing
from datacollect.transfer.store.path_lookup import ABOUT_NAMES
from datacollect.transfer.store.places import Places
from datacollect.transfer.store.preparing import Preparing
from datacollect.transfer.store.room import SPARE_BYTES, why_no_room
from datacollect.transfer.store.source_check import compared_with_source
from datacollect.transfer.store.state.failures import CLOSED, disk_errors, not_written, passing_over
from datacollect.transfer.store.state.holes import is_hole, written_parts
from datacollect.transfer.store.state.pieces import piece_range, pieces_of_rows, recorded_bytes
from datacollect.transfer.store.state.recording import PieceKey, PieceRecorder, WrittenPiece
from datacollect.transfer.store.state.state import FileState, Settled, SpanHash, State, remove_state
from datacollect.transfer.store.verifying import verified_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from datacollect.transfer.protocol.patterns import WantedFiles
    from datacollect.transfer.protocol.source import Listed, Span
    from datacollect.transfer.store.comparing import Digests
    from datacollect.transfer.store.folder.paths import Folding
    from datacollect.transfer.store.incoming.checking import Check
    from datacollect.transfer.store.source_check import ComparedWithSource, Differing, Range
    from datacollect.transfer.store.state.pieces import Layout
    from datacollect.transfer.store.state.state import FileRow, Stamp
    from datacollect.transfer.store.verifying import Verified, VerifyProgress

    ReadAt: TypeAlias = Callable[[int, int], bytes]

__all__ = ["PieceKey", "Store", "StoreOptions"]

DEFAULT = StoreOptions()
# The state of a start that only looks.
DRY_RUN = "dry-run.sqlite"
# A file that is not as it was written so many times is given up: somebody else writes to it.
MOST_LOST = 3


@dataclass
class _Source:
    number: int
    layout: Layout
    row_of: dict[int, int]
    is_live: np.ndarray  # by row: waited for
    left: np.ndarray  # by row: pieces of which its part is not recorded
    sparse: set[int]  # files with holes
    taken: set[int]  # pieces written or recorded
    come: set[int]  # pieces recorded
    partly: dict[int, set[int]]  # pieces that have come, and files whose parts of them have not
    n_lost: Counter[int] = field(default_factory=Counter)  # how often a file was not as written

    def is_whole(self, file: int) -> bool:
        """Return whether all parts of a file are recorded."""
        row = self.row_of.get(file)
        return row is None or self.left[row] == 0

    def is_partly_wanted(self, piece: int) -> bool:
        """Return whether a file that is waited for lacks its part of a piece that has come."""
        return any(self.is_live[self.row_of[file]] for file in self.partly.get(piece, ()))

    def piece_at(self, file: int, offset: int) -> int:
        """Return the piece in which a part of a file lies."""
        at = int(self.layout.starts[self.row_of[file]]) + offset
        return bisect_right(self.layout.pieces, at) - 1


class LostBytes(NamedTuple):
    """Bytes of an unfinished file that were altered, and have to come again."""

    source: str
    path: str
    n_bytes: int


class Store:
    """A destination folder and its state, held by one process at a time.

    Parameters
    ----------
    folder : Path
    options : StoreOptions, optional
    is_dry : bool, optional
        Only look: all is noted in a copy of the state, which goes in the end. What sources list is
        kept.

    Raises
    ------
    ProblemError
        The folder cannot be made or written, or another pull is at work in it.
    StoreError
        The disk is full, or fails.
    """

    def __init__(
        self, folder: Path, options: StoreOptions = DEFAULT, *, is_dry: bool = False
    ) -> None:
        if is_dry:  # what is adopted keeps the modes and times that it has
            options = replace(options, modes=False, times=False)
        with ExitStack() as undo:
            opened = open_folder(folder)
            undo.callback(opened.close)
            try:
                staging = Staging(opened.root_fd, opened.state_fd)
                undo.callback(staging.close)
                self.folding = folding_of(opened.state_fd)
            except OSError as error:
                raise unusable(folder, error) from None
            path = folder / STATE_FOLDER / "state.sqlite"
            state = State(path, synced=staging.promises[""].of_files)
            undo.callback(state.close)
            self._kept = state if is_dry else None
            if is_dry:
                state = state.copied_to(folder / STATE_FOLDER / DRY_RUN)
            undo.pop_all()
        self._opened = opened
        self._seeds: dict[str, dict[int, Differing]] = {}
        self.folder, self.state, self.options = folder, state, options
        self._staging = staging
        self._sources: dict[str, _Source] = {}
        self._cuts: dict[str, tuple[int, bool]] = {}
        self._put_off: dict[str, str] = {}
        self._stamps: dict[int, tuple[Stamp, int | None]] = {}
        self._books = threading.RLock()  # what is recorded, and what is known of sources, agree
        self._places = Places(opened.root_fd, state, options)
        self._checks = Checks(staging.of, self._checked)
        self._recorder = PieceRecorder(folder, self._carry_on, self._is_busy)
        self._unfinished = Unfinished(staging.of)
        self._rereading = Rereading(
            self._unfinished,
            self._what_of,
            self._note_reread,
            self._recorder.fail,
        )
        self._lost: deque[LostBytes] = deque()
        self._doubted: set[tuple[str, int]] = set()
        self._noted: set[int] = set()  # files of which the state says how they were left
        self._n_writing, self._is_closed, self._awaits_rereads = 0, False, False

    # Sources ----------------------------------------------------------------------------------

    def know(self, name: str) -> None:
        """Lay a source's new files out, and get ready for its pieces."""
        self._lay_out(name)
        seeds = self._seeds.pop(name, {})
        if self._kept is not None or not seeds:
            return
        folders, number = Folders(self._opened.root_fd), self.state.source_id(name)
        try:
            for file, old in seeds.items():
                with (
                    disk_errors(self.folder),
                    passing_over(ABOUT_NAMES),
                    suppress(FileNotFoundError),
                    open_placed(folders, name, old.path) as fd,
                ):
                    # What was read, and is as it was then.
                    stamps = self.state.stamps(number, old.path)
                    if any(is_as_placed(os.fstat(fd), stamp) for stamp in stamps):
                        self.seed(name, file, old.equal, partial(_read_at, fd))
        finally:
            folders.close()

    def _lay_out(self, name: str) -> None:
        piece_bytes, apart = self._cuts[name]
        with self._books:
            number = self.state.source_id(name)
            layout = self.state.lay_new_files(number, piece_bytes, apart=apart)
            known = self._known(name, number, layout)
            empty = [file for file, size, _ in self.state.waited_for(number) if size == 0]
            whole = [*layout.files[known.is_live & (known.left == 0)].tolist(), *empty]
            self._put_off.pop(name, None)
            with self._recorder.cond:  # what is being written stays taken
                if (before := self._sources.get(name)) is not None:
                    known.taken |= before.taken - known.partly.keys()
                    known.n_lost = before.n_lost
                self._sources[name] = known
            self._rereading.add(self._begun(name, known))
        self._recorder.add_whole((name, file) for file in whole)

    def _known(self, name: str, number: int, layout: Layout) -> _Source:
        waiting = {file: has_holes for file, _, has_holes in self.state.waited_for(number)}
        recorded = set(self.state.recorded(number))
        files = layout.files.tolist()
        is_recorded = np.zeros(len(layout.pieces) + 1, dtype=np.int64)
        is_recorded[np.array(sorted(recorded), dtype=np.int64) + 1] = 1
        before = np.cumsum(is_recorded)
        first, last = piece_range(layout)
        left = (last - first) - (before[last] - before[first])
        row_of = {file: row for row, file in enumerate(files)}
        is_live = np.array([file in waiting for file in files], dtype=bool)
        # A piece may have come for other files alone: what counts is the hash of the own part.
        come, partly = self.state.parts_bytes(number), dict[int, set[int]]()
        should = recorded_bytes(layout, recorded)
        for file in waiting.keys() & row_of.keys():
            row = row_of[file]
            if should[row] == come.get(file, (0, 0))[0]:
                continue
            parts = {offset for offset, _, _ in self.state.hashes_of(file)}
            for piece in layout.pieces_of(row):
                offset = max(0, int(layout.pieces[piece] - layout.starts[row]))
                if piece in recorded and offset not in parts:
                    partly.setdefault(piece, set()).add(file)
                    left[row] += 1
        sparse = {file for file, has_holes in waiting.items() if has_holes}
        taken = recorded - partly.keys()
        told = self.state.looks(number)
        for file, (_, n_bytes) in come.items():
            if n_bytes and file in waiting:
                self._unfinished.take_over(name, file, told.get(file))
        self._noted |= told.keys()
        return _Source(number, layout, row_of, is_live, left, sparse, taken, recorded, partly)

    def _begun(self, name: str, known: _Source) -> Iterator[tuple[str, int]]:
        """Yield the files of a source that are doubted."""
        for file in known.layout.files[known.is_live].tolist():
            if self._unfinished.is_doubted(file):
                yield name, file

    def seed(self, name: str, file: int, equal: Sequence[Range], read: ReadAt) -> None:
        """Take parts of a file from what lies under its name, which are known to be right.

        Nobody fetches from the source yet.

        Parameters
        ----------
        name : str
        file : int
        equal : sequence of Range
            Parts that are right, in their order.
        read : callable
            Takes offset and bytes; returns what lies there.
        """
        known = self._sources[name]
        for piece in known.layout.pieces_of(known.row_of[file]):
            if piece in known.taken:
                continue
            spans = [segment.span for segment in self.segments(PieceKey(name, piece))]
            if any(span.file != file or not _covers(equal, span) for span in spans):
                continue
            data = b"".join(read(span.offset_bytes, span.n_bytes) for span in spans)
            if len(data) != sum(span.n_bytes for span in spans):
                continue
            digest = blake3(data).digest()
            with self._books:
                known.taken.add(piece)
                hashes = self._write(name, known, spans, memoryview(data), digest)
                self._carry_on([WrittenPiece(PieceKey(name, piece), digest, hashes, len(data))], [])

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

    # What lies there unfinished ---------------------------------------------------------------

    @property
    def n_rereads(self) -> int:
        """Return how many unfinished files are still to be read again before they can be used."""
        return self._rereading.n_left

    def take_lost(self) -> list[LostBytes]:
        """Return what was found not to be there any more since this was asked before."""
        lost = []
        with suppress(IndexError):
            while True:
                lost.append(self._lost.popleft())
        return lost

    def _sound(self, files: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """Return the files that are not doubted; the others are read again once all is recorded."""
        sound = self._rereading.sound(files)
        if len(sound) == len(files):
            return sound
        doubted = set(files) - set(sound)
        for _, file in doubted:  # judged, and given its mode and time, once it is known to be right
            self._stamps.pop(file, None)
            self._checks.verdicts.pop(file, None)
        self._doubted |= doubted
        return sound

    def _what_of(self, file: int) -> tuple[Listed, list[tuple[int, int, bytes]]]:
        """Return an unfinished file and its parts; what is being recorded is among them."""
        with self._books:
            return self.state.file_rows([file])[file], self.state.hashes_of(file)

    def _note_reread(
        self, source: str, file: int, path: str, wrong: Sequence[tuple[int, int]]
    ) -> None:
        """Note what an unfinished file holds: what does not fit is to be fetched again."""
        with self._books:
            known = self._sources[source]
            if wrong:
                self._note_lost(known, source, file, path, wrong)
            else:
                self.state.note_looks(self._looks([file]))
            if known.is_whole(file):
                self._recorder.add_whole([(source, file)])
            # Last: whoever waits for rereads sees then what is to be fetched again.
            self._rereading.is_noted(source, file)
        with self._recorder.cond:
            self._recorder.cond.notify_all()

    def _note_lost(
        self, known: _Source, source: str, file: int, path: str, wrong: Sequence[tuple[int, int]]
    ) -> None:
        """Have parts of a file fetched again; the books are held."""
        self.state.forget_parts(file, [offset for offset, _ in wrong])
        self._lost.append(LostBytes(source, path, sum(n_bytes for _, n_bytes in wrong)))
        known.n_lost[file] += 1
        known.left[known.row_of[file]] += len(wrong)
        with self._recorder.cond:
            for offset, _ in wrong:
                piece = known.piece_at(file, offset)
                known.partly.setdefault(piece, set()).add(file)
                known.taken.discard(piece)
        if known.n_lost[file] >= MOST_LOST:
            self.unreadable(source, [(file, _DISTURBED)])

    def _looks(self, files: Iterable[int]) -> list[tuple[int, str | None]]:
        """Return how unfinished files were left, as far as the state has to be told."""
        found = [(file, self._unfinished.told(file)) for file in files]
        found = [each for each in found if each[1] is not None or each[0] in self._noted]
        self._noted |= {file for file, told in found if told is not None}
        return found

    def _is_busy(self) -> bool:
        """Return whether files may become whole without another piece.

        Where all has failed, none does.
        """
        if self._failure is not None:
            return False
        return self._checks.is_busy or (self._awaits_rereads and self.n_rereads > 0)

    def needed(self, source: str) -> list[int]:
        """Return the pieces of a source that are to be fetched."""
        known = self._sources[source]
        wanted = set(pieces_of_rows(known.layout, known.is_live).tolist()) - known.taken
        partly = wanted & known.partly.keys()
        return sorted(wanted - {piece for piece in partly if not known.is_partly_wanted(piece)})

    def segments(self, key: PieceKey) -> list[Segment]:
        """Return what to read for a piece: the parts of files that are still waited for."""
        known = self._sources[key.source]
        only = known.partly.get(key.piece)
        spans = [
            span
            for span in known.layout.spans(key.piece)
            if known.is_live[known.row_of[span.file]] and (only is None or span.file in only)
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
        recorder.add(WrittenPiece(key, digest, hashes, len(data)))
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
        at, hashes = 0, []
        for span in spans:
            part = data[at : at + span.n_bytes]
            at += span.n_bytes
            own = digest if len(spans) == 1 and len(digest) == 32 else blake3(part).digest()
            hashes.append(SpanHash(*span, own))
            with self._unfinished.writing(source, span.file) as fd:
                if span.file in known.sparse:
                    _write_sparse(fd, part, span.offset_bytes)
                else:
                    _write_all(fd, part, span.offset_bytes)
                    listed = files.get(span.file)
                    if listed is not None and listed.n_bytes == span.n_bytes:
                        self._stamps[span.file] = finish_file(fd, listed, self.options)
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

    def stop(self, *, at_once: bool = False, rereads: bool = True) -> None:
        """Record all that was written, then end.

        `at_once`: whole files are not waited for that are checked; not `rereads`: nor are those
        that are read again.
        """
        if at_once:
            self._checks.cancel()
        self._awaits_rereads = rereads and not at_once
        self._recorder.stop()
        self._awaits_rereads = False

    def _keep_writers_out(self) -> None:
        """Let nobody write any more, and wait for those who do: they have the folder open."""
        with self._recorder.cond:
            self._is_closed = True
            self._recorder.cond.wait_for(lambda: self._n_writing == 0)

    def _carry_on(self, group: list[WrittenPiece], whole: list[tuple[str, int]]) -> None:
        """Sync and record a group, and give the files names that are whole then."""
        with self._books:
            counted = [each for written in group for each in self._count(written)]
            candidates = dict.fromkeys((*whole, *counted))
            waiting = self.state.still_waiting([file for _, file in candidates])
            whole = [
                (source, file)
                for source, file in candidates
                if file in waiting and self._sources[source].is_whole(file)
            ]
            whole = self._sound(whole)
            files = self.state.file_rows([file for _, file in whole])
            self._finish_unfinished(whole, files)
            whole = self._sound(whole)
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
                self._looks({span.file for written in group for span in written.spans} - is_whole),
            )
            if whole:
                self._give_names(whole, files)
            doubted, self._doubted = self._doubted, set()
            self._rereading.add(doubted)

    def _count(self, written: WrittenPiece) -> list[tuple[str, int]]:
        """Take the parts of a piece off their files; return those that are whole with it."""
        source, piece = written.key
        known = self._sources[source]
        files = [span.file for span in written.spans]
        # Asked for twice, where a file's part was lost after the first time: others' count once.
        missing = known.partly.get(piece, set()) if piece in known.come else set(files)
        whole = []
        for file in files:
            if file not in missing:
                continue
            missing.discard(file)
            row = known.row_of[file]
            known.left[row] -= 1
            if known.left[row] == 0 and known.is_live[row]:
                whole.append((source, file))
        known.come.add(piece)
        if not missing:
            known.partly.pop(piece, None)
        else:  # lost after this piece was asked for: it has to come once more
            with self._recorder.cond:
                known.taken.discard(piece)
        return whole

    def _finish_unfinished(self, whole: list[tuple[str, int]], files: dict[int, Listed]) -> None:
        """Give whole files their size, mode and time, unless they have them."""
        for source, file in whole:
            if file in self._stamps:
                continue
            listed = files[file]
            with self._unfinished.writing(source, file) as fd:
                if self._unfinished.is_doubted(file):
                    continue
                if listed.extents is not None:
                    os.ftruncate(fd, listed.n_bytes)
                stamp, set_mode = finish_file(fd, listed, self.options)
            self._stamps[file] = stamp, set_mode
            if stamp.n_bytes != listed.n_bytes:
                self._unfinished.doubt(file)

    def _give_names(self, whole: list[tuple[str, int]], files: dict[int, Listed]) -> None:
        with self._recorder.cond:
            whole = [each for each in whole if not self._checks.take(*each, files[each[1]])]
        for each in whole:
            self._unfinished.look_again(*each)
        whole = self._sound(whole)
        settled, used = [], {self._staging.of(source) for source, _ in whole}
        for source, file in sorted(whole, key=lambda w: (w[0], files[w[1]].path)):
            settled.append(self._give_name(source, file, files[file]))
        self._places.folders.sync()
        for fd in used:
            sync(fd)
        self.state.settle(settled)
        self.state.note_looks((file, None) for _, file in whole if file in self._noted)
        for source, file in whole:
            self._stamps.pop(file, None)
            self._unfinished.forget(file)
            known = self._sources[source]
            if file in known.row_of:
                known.is_live[known.row_of[file]] = False
            with suppress(OSError):
                remove_whole(self._staging.of(source), f"replaced-{file}")

    def _give_name(self, source: str, file: int, listed: Listed) -> Settled:
        why, state = self._checks.verdicts.pop(file, None), FileState.MISSING
        if why is None:
            place = self._staging.of(source), str(file)
            number = self._sources[source].number
            why = self._places.place(number, source, listed.path, listed.n_bytes, place)
            state = FileState.KEPT
        if why is not None:
            self.state.forget_stamp(file)
            return Settled(file, state, why)
        return Settled(file, FileState.DONE, None, *self._stamps[file])

    def _checked(self, check: Check) -> None:
        """Hear from the thread that checks: the file can be finished now."""
        self._recorder.add_whole([(check.source, check.file)])
        with self._recorder.cond:
            self._checks.n_under_way -= 1
            self._recorder.cond.notify_all()

    # Before and after -------------------------------------------------------------------------

    def close(self) -> None:
        """Record what can be, and let others have the folder."""
        with ExitStack() as closing:
            closing.callback(self._opened.close)
            closing.callback(self._staging.close)
            if self._kept is not None:
                closing.callback(self._kept.close)
                closing.callback(remove_state, self.folder / STATE_FOLDER / DRY_RUN)
            closing.callback(self.state.close)
            closing.callback(self._places.close)
            closing.callback(self._checks.close)
            closing.callback(self._rereading.close)
            closing.callback(self._keep_writers_out)
            closing.callback(lambda: self.stop(rereads=False))

    def unpromised(self) -> dict[str, str]:
        """Return what of this folder may not outlast a loss of power, and why, by place."""
        return {
            str(self.folder / source): "names" if promise.of_files else "files and names"
            for source, promise in list(self._staging.promises.items())
            if not (promise.of_files and promise.of_names)
        }

    def mend(self) -> int:
        """Bring the state in line with what lies in the folder, after a crash or a hand's work.

        Returns
        -------
        int
            How many files were there before, and are to be fetched again.
        """
        with disk_errors(self.folder):
            return self._preparing().mend()

    def verify(self, report: Callable[[VerifyProgress], None] = lambda _: None) -> Verified:
        """Read all that is done again; what is not as it came is to be fetched again.

        Raises
        ------
        StoreError
            The disk fails.
        """
        with disk_errors(self.folder):
            found = verified_files(self.folder, self.state, report)
            self.state.again([each.number for each in found.altered + found.gone])
            return found

    def listing(self, name: str, wanted: WantedFiles = ALL) -> Listing:
        """Begin to list a source.

        Of what a dry run lists the kept state is told as well, unless it is of another collection:
        what that one does not want is neither gone nor wanted no more.
        """
        kept = self._kept
        if kept is not None and kept.n_starts() and not kept.is_listed_for(name, wanted):
            kept = None
        return Listing(
            self.state,
            name,
            self._folding_for(name),
            wanted,
            keeps=self.options.keep,
            also=kept,
        )

    def note_wanted(self, names: Iterable[str]) -> None:
        """Note which sources are wanted, for whoever asks after a first start that only looked."""
        if self._kept is not None and self._kept.n_starts() == 0:
            for name in names:
                self._kept.set_wanted(name, True)

    def known(self, name: str) -> Known:
        """Return what is known of a source's files, and how to look at verified copies of them."""
        return Known(self.state.known_files(name), lambda path: self._copy_of(name, path))

    def _copy_of(self, name: str, path: str) -> Copy | None:
        """Return the copy of a file that lies where it was placed, as it was; None: there is none.

        Nor is there one where the user wants whatever the source has.
        """
        stamps = self.state.stamps(self.state.source_id(name), path)
        if not stamps or self.options.overwrite:
            return None
        folders = Folders(self._opened.root_fd)
        try:
            with open_placed(folders, name, path) as fd:
                found = os.fstat(fd)
                if not any(is_as_placed(found, stamp) for stamp in stamps):
                    return None
                return Copy(found.st_size, os.pread(fd, BEGIN_BYTES, 0))
        except OSError:
            return None
        finally:
            folders.close()

    def _folding_for(self, name: str) -> Folding:
        """Return which names are one file where a source's files lie, as far as can be tried."""
        with suppress(OSError):  # what is wrong there its places will say
            if self._staging.is_apart(name):
                return folding_of(self._staging.of(name))
        return self.folding

    def prepare(self, name: str, piece_bytes: int, *, apart: bool) -> list[FileRow]:
        """Judge the places of a source's files, which is listed to its end, before a byte moves.

        Files that cannot be placed are settled, with reason and remedy.

        Parameters
        ----------
        name : str
        piece_bytes : int
            How its files are to be cut.
        apart : bool
            Whether no piece may be of two files.

        Returns
        -------
        list of FileRow
            Files whose place is taken by one of the same size, which may be them: to be compared.
        """
        self._cuts[name] = piece_bytes, apart
        with disk_errors(self.folder):
            return self._preparing().prepare(name)

    def compare(
        self,
        name: str,
        rows: Sequence[FileRow],
        digests: Digests,
        go_on: Callable[[], None] = lambda: None,
    ) -> None:
        """Compare files that lie where those of a source belong, and adopt what is equal.

        `digests` returns the BLAKE3 of segments at the source, None for those that it cannot tell;
        None in all where it hashes nothing. `go_on` is called between parts of files, and ends it
        by raising something.
        """
        self._preparing().compare(name, rows, digests, go_on)

    def check_with_source(
        self, name: str, digests: Digests, go_on: Callable[[], None] = lambda: None
    ) -> ComparedWithSource:
        """Compare a source's files that are done with the source; what differs is fetched again.

        What is right of such a file is taken from what lies there, once its source is known.

        Raises
        ------
        StoreError
            The disk fails.
        TransferError
            The source does not answer.
        """
        number = self.state.source_id(name)
        root_fd = self._opened.root_fd
        found = compared_with_source(root_fd, self.state, number, name, digests, go_on)
        numbers = self.state.again([each.number for each in found.differing])
        pairs = zip(numbers, found.differing, strict=True)
        self.state.forget_holes([number for number, each in pairs if each.filled])
        self._seeds[name] = dict(zip(numbers, found.differing, strict=True))
        return found

    def why_no_room(self, name: str, spare_bytes: int = SPARE_BYTES) -> str | None:
        """Return why what a source needs does not fit beside what known ones need, or None."""
        with disk_errors(self.folder):
            others = [other for other in self._sources if other not in self._put_off]
            return why_no_room(self.folder, self.state, self._staging, name, others, spare_bytes)

    def clean(self) -> None:
        """Take away what was begun and is not waited for any more."""
        if self._kept is not None:
            return
        with disk_errors(self.folder):
            there = [(fd, set(names_in(fd))) for fd in self._staging.all()]
            # Asked afterwards: what is begun meanwhile is not among the names.
            live = {
                str(row.number)
                for number in self.state.source_names()
                for row in self.state.files_in(number, FileState.WAITING)  # asked for or not
            }
            for fd, names in there:
                for name in names - live:
                    with suppress(OSError):
                        remove_whole(fd, name)

    def finish(self, name: str) -> None:
        """Make a source's empty folders, and give all of them their modes and times."""
        number = self.state.source_id(name)
        folders, whys = Folders(self._opened.root_fd), {}
        with disk_errors(self.folder):
            try:
                for path, mode, mtime_ns in self.state.folders(number):
                    try:
                        fd = folders.open((name, *path.split("/")), make=True)
                        if finish_folder(fd, mode, mtime_ns, self.options):
                            sync(fd)
                    except OSError as error:
                        whys[path] = self._places_why(number, name, path, error)
                folders.sync()
            finally:
                folders.close()
        self.state.refuse_folders(number, whys)

    def _places_why(self, number: int, name: str, path: str, error: OSError) -> str:
        """Return why a folder cannot be made, or be given what it has at its source."""
        places = Places(self._opened.root_fd, self.state, self.options)
        try:
            taken = places.taken(number, name, f"{path}/.", 0)
        finally:
            places.close()
        if taken is not None:
            return taken.why
        if error.errno not in CLOSED:
            raise error
        return (
            f"{name}/{path} cannot be written: {os.strerror(error.errno)}; fix that, and start "
            "the same command again"
        )

    def _preparing(self) -> Preparing:
        return Preparing(self._opened.root_fd, self.folder, self._staging, self.state, self.options)


def _read_at(fd: int, offset: int, n_bytes: int) -> bytes:
    return os.pread(fd, n_bytes, offset)


def _covers(equal: Sequence[Range], span: Span) -> bool:
    """Return whether parts that follow each other hold all of a span."""
    at, end = span.offset_bytes, span.offset_bytes + span.n_bytes
    for offset, n_bytes in equal:
        if offset <= at < offset + n_bytes:
            at = offset + n_bytes
    return at >= end


_DISTURBED = (
    "what had arrived of it was found altered, three times: another program writes to the "
    "folder .datacollect; stop it, and start the same command again"
)


# Into larger pages of its cache Linux writes at a tenth of the speed where it has given such memory
# back to the host of a virtual machine.
_WRITTEN_AT_ONCE_BYTES = 256 * 1024


def _write_all(fd: int, data: memoryview, offset: int) -> None:
    while data:
        n = os.pwrite(fd, data[:_WRITTEN_AT_ONCE_BYTES], offset)
        data, offset = data[n:], offset + n


def _write_sparse(fd: int, data: memoryview, offset: int) -> None:
    """Write what is not zeros; zeros too, where something else was written before."""
    at = 0
    for begin, end in (*written_parts(data, offset), (len(data), len(data))):
        if begin > at and not is_hole(fd, offset + at, begin - at):
            begin = at
        _write_all(fd, data[begin:end], offset + begin)
        at = end
