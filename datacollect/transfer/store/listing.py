"""Listing what sources hold: page by page into the state, each entry judged first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import TransferError
from datacollect.files.kinds import BYTES_STOP, shown
from datacollect.files.units import format_bytes
from datacollect.transfer.protocol.file_names import why_not_written
from datacollect.transfer.protocol.patterns import ALL, matches
from datacollect.transfer.protocol.source import UNCONFIRMED, LeftOut
from datacollect.transfer.store.state.holes import are_ranges
from datacollect.transfer.store.state.state import storable

if TYPE_CHECKING:
    from datacollect.transfer.protocol.patterns import WantedFiles
    from datacollect.transfer.protocol.source import Listed, ListedFolder, Page
    from datacollect.transfer.store.folder.paths import Folding
    from datacollect.transfer.store.state.state import State

# A source that lists more lies, or is to be collected in parts.
MOST_FILES = 20_000_000
MOST_LEFT_OUT = 100_000
# So many pages in a row that bring nothing are no list.
MOST_EMPTY_PAGES = 40_000
# No file system that is used for data holds larger files; a sparse one says any size.
LARGEST_FILE_BYTES = 2**44
REPEATED = "its source lists the name more than once; the first of them is collected, not this one"
_NUMBER_STOP = 2**63


class Listing:
    """Takes the listing of one source in.

    Parameters
    ----------
    state : State
    source : str
    folding : Folding
        Which names the destination's file system takes for the same.
    wanted : WantedFiles
        Which files of the source are.
    keeps : bool
        Whether verified files count that the source does not confirm.
    also : State, optional
        Another state that is told the same.

    Attributes
    ----------
    unconfirmed : list of LeftOut
        Files that are listed as they were known, and why the source did not confirm it.
    """

    def __init__(
        self,
        state: State,
        source: str,
        folding: Folding,
        wanted: WantedFiles = ALL,
        *,
        keeps: bool = False,
        also: State | None = None,
    ) -> None:
        self.unconfirmed: list[LeftOut] = []
        self._keeps = keeps
        self._source, self._folding, self._wanted = source, folding, wanted
        self._wants_all = wanted.is_all
        states = [state] if also is None else [state, also]
        self._told = [(each, each.source_id(source)) for each in states]
        self._last: bytes | None = None
        self._seen: dict[str, str] = {}
        self._unused = list(wanted.files or ())  # patterns that nothing has fitted yet
        self._n_files = self._n_left_out = self._n_folders = self._bytes = 0
        self._n_empty_pages = 0
        for each, number in self._told:
            each.begin_listing(number)

    def take(self, page: Page) -> None:
        """Take a page in.

        Raises
        ------
        TransferError
            Names are not sorted, there is more than can be, or pages bring nothing.
        """
        self._require_progress(page)
        files: list[Listed] = []
        left_out = [_storable(each) for each in page.left_out if self._wanted.may_matter(each.name)]
        for entry in page.files:
            is_repeated = self._is_repeated(entry)
            is_asked = self._wants_all or self._wanted.fits(entry.path)
            if not is_asked and not self._unused:
                continue
            why = self._why_left_out(entry) or (REPEATED if is_repeated else None)
            if self._unused and why is None:
                self._unused = [each for each in self._unused if not matches(entry.path, [each])]
            if not is_asked:
                continue
            if why is None:
                files.append(_sound(entry))
            else:
                left_out.append(_storable(LeftOut(entry.path, why)))
        folders: list[ListedFolder] = []
        for folder in page.folders:
            if folder.path and not self._wanted.may_hold(f"{folder.path}/"):
                continue
            why = why_not_written(folder.path) or _why_no_time(folder.mtime_ns)
            if why is None:
                folders.append(folder._replace(mode=_sound_mode(folder.mode)))
            else:
                left_out.append(_storable(LeftOut(folder.path, why)))
        self._n_files += len(files)
        self._n_left_out += len(left_out)
        self._n_folders += len(folders)
        self._bytes += sum(file.n_bytes for file in files)
        self._require_possible()
        unconfirmed = [_storable(e) for e in page.unconfirmed if self._wanted.fits(e.name)]
        self.unconfirmed += unconfirmed
        named = () if self._keeps else unconfirmed
        kept = [each._replace(why=f"{UNCONFIRMED}: {each.why}") for each in named]
        for state, number in self._told:
            state.add_page(number, files, left_out, folders, kept)

    def end(self) -> list[str]:
        """Compare it with what is known: the source is listed to its end.

        Returns
        -------
        list of str
            The patterns that nothing fits.
        """
        for state, number in self._told:
            state.end_listing(number, self._wanted)
        return self._unused

    def _require_progress(self, page: Page) -> None:
        is_empty = not (page.files or page.left_out or page.folders)
        self._n_empty_pages = self._n_empty_pages + 1 if is_empty else 0
        if self._n_empty_pages >= MOST_EMPTY_PAGES:
            raise TransferError(
                f"{self._source}: its inventory does not advance: {MOST_EMPTY_PAGES} pages in a "
                "row were empty"
            )

    def _is_repeated(self, entry: Listed) -> bool:
        """Return whether a name is that of the entry before; others must follow it.

        Of a list without order nobody could tell which names are new: it might have no end.
        """
        name = entry.path.encode(errors="surrogatepass")
        if self._last is not None and name < self._last:
            raise TransferError(
                f"{self._source}: its inventory must be sorted; "
                f"{shown(storable(entry.path))} is out of place"
            )
        is_repeated, self._last = name == self._last, name
        return is_repeated

    def _require_possible(self) -> None:
        n_names = max(self._n_files, self._n_folders)
        if n_names > MOST_FILES or self._n_left_out > MOST_LEFT_OUT:
            raise TransferError(
                f"{self._source}: it lists more than {MOST_FILES} files, or leaves out more than "
                f"{MOST_LEFT_OUT}; collect it in parts, by patterns in [sources.{self._source}]"
            )
        if self._bytes >= BYTES_STOP:
            raise TransferError(f"{self._source}: its files have more than 2**62 bytes in all")

    def _why_left_out(self, entry: Listed) -> str | None:
        why = why_not_written(entry.path)
        if why is not None:
            return why
        if not 0 <= entry.n_bytes <= LARGEST_FILE_BYTES:
            return (
                f"it has {entry.n_bytes} bytes; files are collected up to {LARGEST_FILE_BYTES} "
                f"bytes, {format_bytes(LARGEST_FILE_BYTES)}"
            )
        most_bytes = self._wanted.largest_bytes
        if most_bytes is not None and entry.n_bytes > most_bytes:
            return f"it has {entry.n_bytes} bytes, and largest_bytes is {most_bytes}"
        if not 0 <= entry.inode < _NUMBER_STOP:
            return f"its inode number, {entry.inode}, must be below 2**63"
        return _why_no_time(entry.mtime_ns) or self._why_taken(entry.path)

    def _why_taken(self, path: str) -> str | None:
        if not self._folding.any:
            return None
        key = self._folding.key(path)
        other = self._seen.setdefault(key, path)
        if other == path:
            return None
        return f"the destination's file system treats it as {shown(other)}, which comes first"


def _why_no_time(mtime_ns: int | None) -> str | None:
    """Return why a time cannot be noted: its seconds must fit into 64 bits."""
    if mtime_ns is None or -_NUMBER_STOP <= mtime_ns // 10**9 < _NUMBER_STOP:
        return None
    return "the time of its last change lies further away than 2**63 seconds"


def _sound(entry: Listed) -> Listed:
    """Return a file with what is optional left out where it cannot be."""
    mode, extents, tag = _sound_mode(entry.mode), entry.extents, entry.tag
    if extents is None and tag is None and mode == entry.mode:
        return entry
    if extents is not None and not are_ranges(extents, entry.n_bytes):
        extents = None
    tag = None if tag is None else storable(tag)
    return entry._replace(mode=mode, extents=extents, tag=tag)


def _sound_mode(mode: int | None) -> int | None:
    return mode if mode is not None and 0 <= mode <= 0o7777 else None


def _storable(entry: LeftOut) -> LeftOut:
    return LeftOut(storable(entry.name), storable(entry.why), entry.name_hex)
