"""Preparation of the folder: what lies there is compared with the state and with the sources."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from datacollect.files.durability import sync
from datacollect.transfer.store.attributes import file_mode, is_as_placed, stamp_of
from datacollect.transfer.store.comparing import Adopted, Comparing, open_placed
from datacollect.transfer.store.folder.paths import names_in
from datacollect.transfer.store.folder.syncing import sync_placed
from datacollect.transfer.store.path_lookup import PathFound, PathKind
from datacollect.transfer.store.places import Places, Taken
from datacollect.transfer.store.state.failures import CLOSED, disk_errors, passing_over
from datacollect.transfer.store.state.state import FileRow, FileState, Settled
from datacollect.transfer.store.verifying import is_as_recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from datacollect.transfer.store.attributes import StoreOptions
    from datacollect.transfer.store.comparing import Digests
    from datacollect.transfer.store.folder.opening import Staging
    from datacollect.transfer.store.state.reading import PlacedRow
    from datacollect.transfer.store.state.state import State

# So many files are settled, or adopted, at a time.
GROUP = 1000


# As long as nothing better is known.
_NOT_COMPARED = (
    "exists already, and was not compared with its source's file; start the same command again"
)


class Preparing:
    """Judges what lies in the destination folder.

    Parameters
    ----------
    root_fd : int
    folder : Path
    staging : Staging
    state : State
    options : StoreOptions
    """

    def __init__(
        self,
        root_fd: int,
        folder: Path,
        staging: Staging,
        state: State,
        options: StoreOptions,
    ) -> None:
        self._root_fd, self._folder = root_fd, folder
        self._staging, self._state, self._options = staging, state, options
        self._places = Places(root_fd, state, options)

    # After a crash, or a hand's work ----------------------------------------------------------

    def mend(self) -> int:
        """Bring the state in line with what lies in the folder; return how many files were lost."""
        try:
            return sum(
                self._mend_done(number, name) + self._mend_begun(number, name)
                for number, name in self._state.source_names().items()
            )
        finally:
            self._places.close()

    def _mend_done(self, number: int, name: str) -> int:
        settled, lost = [], []
        for row in self._state.placed(number):
            found = self._places.look(name, row.listed.path)
            if found.stat is not None and found.kind is PathKind.FILE:
                is_same = found.at == f"{name}/{row.listed.path}"
                if is_same and is_as_placed(found.stat, row.placed):
                    if row.placed.mtime_ns is None:  # an old state did not note it
                        stamp = stamp_of(found.stat)
                        settled.append(Settled(row.number, FileState.DONE, None, stamp))
                    continue
            after = self._after_change(number, name, row, found)
            if after is None:
                lost.append(row.number)
            else:
                settled.append(after)
        self._state.settle(settled)
        self._state.again(lost)
        return len(lost)

    def _after_change(
        self, number: int, name: str, row: PlacedRow, found: PathFound
    ) -> Settled | None:
        """Return what is to become of a file that is not as it was placed; None: fetched again."""
        path, n_bytes = row.listed.path, row.listed.n_bytes
        if found.kind is PathKind.FILE and found.at == f"{name}/{path}":
            with suppress(OSError), open_placed(self._places.folders, name, path) as fd:
                hashes = self._state.hashes_of(row.number)
                if is_as_recorded(fd, n_bytes, hashes):
                    stamp = stamp_of(os.fstat(fd))
                    return Settled(row.number, FileState.DONE, None, stamp, row.set_mode)
        if row.is_gone:
            return Settled(row.number, FileState.OLD)
        if found.kind is PathKind.NOTHING or self._options.overwrite:
            return None
        taken = self._places.taken(number, name, path, n_bytes)
        return None if taken is None else Settled(row.number, FileState.KEPT, taken.why)

    def _mend_begun(self, number: int, name: str) -> int:
        """Find out which unfinished files are there no more: they have their names, or are lost."""
        there: set[str] = set()
        with passing_over(CLOSED):
            there = set(names_in(self._staging.of(name)))
        whole = self._state.about_to_be_placed(number)
        parts = self._state.parts_bytes(number)
        begun = {file for file, (_, data_bytes) in parts.items() if data_bytes}
        if not begun and not whole:
            return 0
        settled, lost = [], []
        for row in self._state.unplaced(number):
            file, stamp = row.number, whole.get(row.number)
            is_begun = file in begun or stamp is not None
            if row.state is not FileState.WAITING or not is_begun or str(file) in there:
                continue
            found = self._places.look(name, row.path)
            is_file = found.kind is PathKind.FILE and found.at == f"{name}/{row.path}"
            if is_file and found.stat and stamp is not None and is_as_placed(found.stat, stamp):
                settled.append(Settled(file, FileState.DONE, None, stamp_of(found.stat)))
            elif file in begun:
                lost.append(file)
        self._state.settle(settled)
        self._state.again(lost)
        return len(lost)

    # Places -----------------------------------------------------------------------------------

    def prepare(self, name: str) -> list[FileRow]:
        """Judge all places of a source; return the files to be compared with what is there."""
        number = self._state.source_id(name)
        settled, free, to_compare = [], [], []
        why_closed, why_shared = self._why_closed(name), self._why_shared(name)
        free_folder: str | None = None  # not there, and may be made
        try:
            for row in self._state.unplaced(number):
                folder = row.path.rpartition("/")[0]
                taken = None if why_shared is None else Taken(why_shared)
                if taken is None and folder != free_folder:
                    taken = self._places.taken(number, name, row.path, row.n_bytes)
                    is_free = taken is None and self._places.is_absent(name, folder)
                    free_folder = folder if is_free else None
                if taken is not None and taken.may_equal:
                    to_compare.append(row.number)
                why = why_closed if taken is None else taken.why
                if taken is not None and taken.may_equal:
                    why = f"{name}/{row.path} {_NOT_COMPARED}"
                if why is not None:
                    settled.append(Settled(row.number, FileState.KEPT, why))
                elif row.state is FileState.KEPT:
                    free.append(row.number)
            self._state.settle(settled)
            self._state.release(free)
            self._apply_modes(number, name)
        finally:
            self._places.close()
        found = self._state.file_rows(to_compare)
        return [FileRow(number, found[number]) for number in to_compare]

    def _why_closed(self, name: str) -> str | None:
        """Return why nothing at all can be placed for a source."""
        try:
            self._staging.of(name)
        except OSError as error:
            if error.errno not in CLOSED:
                raise
            reason = os.strerror(error.errno or 0)
            return (
                f"{name} is a file system of its own, and its unfinished files cannot be written "
                f"there: {reason}; fix that, and start the same command again"
            )
        return None

    def _why_shared(self, name: str) -> str | None:
        """Return why a source's folder is not its own, but that of one that comes before it."""
        for other in (each.name for each in self._state.wanted() if each.name < name):
            with suppress(FileNotFoundError):
                one, two = (
                    os.stat(source, dir_fd=self._root_fd, follow_symlinks=False)
                    for source in (name, other)
                )
                if os.path.samestat(one, two):
                    return (
                        f"{name} is the folder {other} here, which is another source's, mounted "
                        "twice: unmount it, or mount another one there"
                    )
        return None

    def _apply_modes(self, number: int, name: str) -> None:
        """Give files that are done the modes that they have at their source by now."""
        if not self._options.modes:
            return
        settled = []
        for row in self._state.placed(number):
            mode = row.listed.mode
            if row.is_gone or mode is None or mode == row.set_mode:
                continue
            path = row.listed.path
            with passing_over(CLOSED), open_placed(self._places.folders, name, path) as fd:
                os.fchmod(fd, file_mode(mode))
                sync(fd)
                settled.append(Settled(row.number, FileState.DONE, None, row.placed, mode))
        self._state.settle(settled)

    # Comparing --------------------------------------------------------------------------------

    def compare(
        self, name: str, rows: Sequence[FileRow], digests: Digests, go_on: Callable[[], None]
    ) -> None:
        """Adopt the files that are what a source has; keep and name others, or have them fetched.

        Raises
        ------
        StoreError
            The disk fails.
        TransferError
            The source does not answer; what was compared by then stands.
        """
        number = self._state.source_id(name)
        comparing = Comparing(self._places.folders, name, self._options, digests, go_on)
        adopted: list[Adopted] = []
        try:
            for row, found in comparing.all(rows):
                if isinstance(found, Adopted):
                    adopted.append(found)
                    if len(adopted) >= GROUP:
                        self._adopt(name, adopted)
                        adopted = []
                elif self._options.overwrite:
                    self._state.release([row.number])
                else:
                    why = self._why_kept(number, name, row, found)
                    self._state.settle([Settled(row.number, FileState.KEPT, why)])
        finally:
            try:
                self._adopt(name, adopted)
            finally:
                self._places.close()

    def _why_kept(self, number: int, name: str, row: FileRow, besides: str) -> str:
        with disk_errors(self._folder):
            taken = self._places.taken(number, name, row.listed.path, row.listed.n_bytes)
        if taken is None:
            return besides or "what was in its place is gone; start the same command again"
        return f"{taken.why} ({besides})" if besides else taken.why

    def _adopt(self, name: str, adopted: list[Adopted]) -> None:
        """Make sure that files are on disk, then note that they are there."""
        if not adopted:
            return
        with disk_errors(self._folder):
            sync_placed(self._places.folders, name, [each.row.listed.path for each in adopted])
        self._state.record([], (span for each in adopted for span in each.hashes))
        self._state.settle(
            Settled(each.row.number, FileState.DONE, None, each.stamp, each.set_mode)
            for each in adopted
        )
