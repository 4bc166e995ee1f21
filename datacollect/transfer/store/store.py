"""The store: data on disk, written, synced, recorded, renamed, in this order.

Pieces are written into unfinished files, in the file system in which they belong (`opening`). A
group of them is synced, then recorded in the state in one transaction; a file whose pieces are all
recorded is renamed to where it belongs, and its folder synced. Before it is synced for the last
time it gets its size, mode and time. So after a crash what is recorded is there, what has its final
name is whole and verified, and at most one group is fetched again. `arriving` does so; here is what
comes before and after.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from datacollect.files.durability import sync
from datacollect.transfer.protocol.file_names import STATE_FOLDER
from datacollect.transfer.protocol.patterns import ALL
from datacollect.transfer.protocol.source import BEGIN_BYTES, Copy, Known
from datacollect.transfer.store.arriving import Arriving
from datacollect.transfer.store.attributes import StoreOptions, finish_folder, is_as_placed
from datacollect.transfer.store.comparing import open_placed
from datacollect.transfer.store.folder.opening import Staging, open_folder, unusable
from datacollect.transfer.store.folder.paths import Folders, folding_of, names_in, remove_whole
from datacollect.transfer.store.listing import Listing
from datacollect.transfer.store.path_lookup import ABOUT_NAMES
from datacollect.transfer.store.places import Places
from datacollect.transfer.store.preparing import Preparing
from datacollect.transfer.store.room import SPARE_BYTES, why_no_room
from datacollect.transfer.store.source_check import compared_with_source
from datacollect.transfer.store.state.failures import CLOSED, disk_errors, passing_over
from datacollect.transfer.store.state.recording import PieceKey
from datacollect.transfer.store.state.state import FileState, State, remove_state
from datacollect.transfer.store.verifying import verified_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from datacollect.transfer.protocol.patterns import WantedFiles
    from datacollect.transfer.store.comparing import Digests
    from datacollect.transfer.store.folder.paths import Folding
    from datacollect.transfer.store.source_check import ComparedWithSource, Differing
    from datacollect.transfer.store.state.state import FileRow
    from datacollect.transfer.store.verifying import Verified, VerifyProgress

__all__ = ["PieceKey", "Store", "StoreOptions"]

DEFAULT = StoreOptions()
# The state of a start that only looks.
DRY_RUN = "dry-run.sqlite"


class Store(Arriving):
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
        super().__init__(folder, opened.root_fd, staging, state, options)

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
        """Begin to list a source."""
        return Listing(
            self.state,
            name,
            self._folding_for(name),
            wanted,
            keeps=self.options.keep,
            also=self._kept,
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

    def know(self, name: str) -> None:
        """Lay a source's new files out, and get ready for its pieces."""
        super().know(name)
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
            f"{name}/{path} cannot be written: {os.strerror(error.errno)}; mend that, and start "
            "the same command again"
        )

    def _preparing(self) -> Preparing:
        return Preparing(self._opened.root_fd, self.folder, self._staging, self.state, self.options)


def _read_at(fd: int, offset: int, n_bytes: int) -> bytes:
    return os.pread(fd, n_bytes, offset)
