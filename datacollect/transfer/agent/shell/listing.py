"""The inventory: all files of the served folder, in the order of their paths' bytes."""

from __future__ import annotations

import os
import stat
import time
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from datacollect.files.kinds import shown
from datacollect.transfer.agent.shell.files import closing, extents_of, inode_of, words_of
from datacollect.transfer.protocol.checked import NUMBER_STOP
from datacollect.transfer.protocol.messages import (
    PATH_BYTES,
    FileEntry,
    FolderEntry,
    LeftOut,
    entry_line,
    last_line,
)
from datacollect.transfer.protocol.patterns import could_hold, matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from datacollect.transfer.agent.shell.files import Folder

# A page also ends after this many bytes, or this time: whoever waits for it has a time-out. One
# that is empty ends earlier: that the place gets on, more than once a second, is a sign of life.
PAGE_BYTES = 4 * 2**20
PAGE_S, EMPTY_PAGE_S = 2.0, 0.5

# A folder with more is listed so far, and says so: its names are sorted in memory.
MOST_NAMES = 2_000_000

NO_UTF_8 = "its name is not UTF-8; rename it"
NO_FILE = "neither a file nor a folder"
A_LINK = "a link to {}; only what lies in the folder itself is served"
TOO_LONG = f"its path has more than {PATH_BYTES} bytes"
NOT_READABLE = "cannot be read: {}"
TOO_MANY = f"the folder has more than {MOST_NAMES} names; divide it"
NO_SIZE = "its size is reported as 0 bytes, but it has some; copy it elsewhere, and serve the copy"
NO_TIME = "its time of change lies before 1678 or after 2262; a newer collector accepts it"

Entry: TypeAlias = FileEntry | FolderEntry | LeftOut

# Names of a folder that are looked at before a page may end.
NAMES_AT_ONCE = 16

# A name that only patterns fit that fit every name.
_SOME_NAME = "\0"


class FolderInventory:
    """Pages of one walk through the folder; a walk goes on where the last page ended.

    Patterns leave out files, and what is no file only where a pattern could mean it. A folder is
    listed where a pattern means all that lies in it, or before the first listed thing in it.

    Parameters
    ----------
    folder : Folder
    clock : callable
        Returns seconds, and never jumps.
    """

    def __init__(self, folder: Folder, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = folder, clock
        self._walk: Iterator[Step] = iter(())
        # Where the last page ended; a walk goes on only from there.
        self._at: tuple[str | None, tuple[str, ...] | None, bool] | None = None
        self._carried: tuple[str, list[Entry]] | None = None
        # What is listed with the next place that is reached.
        self._late: list[Entry] = []
        self._unlisted: list[FolderEntry] = []

    def page(
        self,
        after: str | None,
        most: int,
        patterns: tuple[str, ...] | None,
        *,
        detail: bool = False,
    ) -> bytes:
        """Return the lines of a page, the last with where the next begins.

        Parameters
        ----------
        after : str or None
            Where the page before ended; None: from the beginning.
        most : int
            How many lines, and the last.
        patterns : tuple of str or None
            Which files; None: all.
        detail : bool
            With modes, folders, holes, and times of any size.
        """
        if self._at is None or self._at != (after, patterns, detail):
            self._walk = walk(self._folder, after, patterns, detail=detail)
            self._carried, self._unlisted, self._late = None, [], []
        begun_s = self._clock()
        lines: list[bytes] = []
        size, last = 0, after
        for place, entries, is_reached in self._places(patterns):
            if lines and len(lines) + len(entries) > most:
                self._carried = place, entries
                break
            if is_reached:
                last = place if last is None else max(last, place)
            lines += map(entry_line, entries)
            size += sum(map(len, lines[len(lines) - len(entries) :]))
            if self._clock() >= begun_s + (PAGE_S if lines else EMPTY_PAGE_S):
                last = last if is_reached else _further(last, place)
                break
            if len(lines) >= most or size >= PAGE_BYTES:
                break
        else:
            self._at = None
            return b"".join([*lines, last_line(None)])
        self._at = (last, patterns, detail)
        return b"".join([*lines, last_line(last)])

    def _places(self, patterns: tuple[str, ...] | None) -> Iterator[tuple[str, list[Entry], bool]]:
        """Yield the places that come next, what is listed at each, and whether it is reached."""
        if self._carried is not None:
            (place, entries), self._carried = self._carried, None
            yield place, entries, True
        for place, entry, is_reached in self._walk:
            listed = self._listed(place, entry, patterns)
            if is_reached:
                late, self._late = self._late, []
                yield place, late + listed, True
            else:
                self._late += listed
                yield place, [], False
        if self._late:
            late, self._late = self._late, []
            yield "", late, False

    def _listed(
        self, place: str, entry: Entry | None, patterns: tuple[str, ...] | None
    ) -> list[Entry]:
        """Return what is listed at a place: not folders that hold nothing listed."""
        self._unlisted = [
            folder for folder in self._unlisted if place.startswith(f"{folder.path}/")
        ]
        if entry is None:
            return []
        listed: list[Entry] = [*self._unlisted, entry]
        if isinstance(entry, FolderEntry) and not matches(f"{entry.path}/{_SOME_NAME}", patterns):
            self._unlisted.append(entry)
            return []
        self._unlisted = []
        return listed


def walk(
    folder: Folder,
    after: str | None = None,
    patterns: tuple[str, ...] | None = None,
    *,
    detail: bool = False,
) -> Iterator[Step]:
    """Yield all places after a path, in order, and what is to be listed at each, if anything.

    No folder is held open while others are walked through, and none is entered twice; nothing is
    looked at that patterns leave out. That a folder cannot be read to its end is listed after its
    place, and again where a walk goes on within it.
    """
    pending: list[str | _Odd] = [""]  # what comes next, last first; folders end with a slash
    while pending:
        row = pending.pop()
        place = row if isinstance(row, str) else row.place
        is_ahead = after is None or place > after
        if not isinstance(row, str):
            if is_ahead:
                yield Step(place, _odd(folder, row, patterns, detail=detail))
        elif place and not place.endswith("/"):
            if is_ahead:
                wanted = matches(place, patterns)
                yield Step(place, _file(folder, place, detail=detail) if wanted else None)
        elif place and not could_hold(place, patterns):
            if is_ahead:
                yield Step(place, None)
        # Of a folder before the place to go on from only its last part may matter.
        elif is_ahead or not place or (after or "").startswith(place):
            inside: list[str | _Odd] = []
            for step in _enter(folder, place, inside):
                if isinstance(step.entry, FolderEntry):
                    if is_ahead and place:
                        yield step if detail else Step(place, None)
                else:
                    yield step
            pending += reversed(inside)


def _further(last: str | None, place: str) -> str:
    r"""Return a place to go on from, further on than the last, before anything in a folder.

    >>> _further(None, ""), _further("c/x", "d/"), _further("d/", "d/"), _further("d/m", "d/")
    ('', 'd/', 'd/\x00', 'd/m\x00')
    """
    return place if last is None or last < place else last + "\0"


class Step(NamedTuple):
    """A place in the order of paths, and what is listed there, if anything.

    ``is_reached``: or whether what lies there is still being looked at.
    """

    place: str
    entry: Entry | None
    is_reached: bool = True


class _Odd(NamedTuple):
    """Something that is left out already by its name or kind; a link says later where it leads."""

    place: str
    why: str
    raw: bytes | None = None


def _enter(folder: Folder, place: str, rows: list[str | _Odd]) -> Iterator[Step]:
    """Fill rows with what a folder holds, in order; yield what is listed of the folder itself."""
    path = place.removesuffix("/")
    why_lost = None if path else folder.why_lost()
    if why_lost is not None:
        yield Step(place, LeftOut(".", why_lost), is_reached=False)
        return
    try:
        with closing(folder.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as number:
            found = os.fstat(number)
            yield Step(place, FolderEntry(path, stat.S_IMODE(found.st_mode), found.st_mtime_ns))
            with os.scandir(number) as entries:
                for entry in entries:
                    if len(rows) >= MOST_NAMES:
                        yield Step(place, LeftOut(place or ".", TOO_MANY), is_reached=False)
                        break
                    rows.append(_row(place, entry))
                    # To know of each what it is may take a while, too.
                    if len(rows) % NAMES_AT_ONCE == 0:
                        yield Step(place, None, is_reached=False)
    except OSError as error:
        # What has been seen of it so far is listed all the same.
        left_out = LeftOut(place or ".", NOT_READABLE.format(words_of(error)))
        yield Step(place, left_out, is_reached=False)
    rows.sort(key=lambda row: row if isinstance(row, str) else row.place)


def _row(parent: str, entry: os.DirEntry[str]) -> str | _Odd:
    """Return the place of what a folder holds, and why it is left out, if it is."""
    try:
        is_folder = entry.is_dir(follow_symlinks=False)
        is_file = entry.is_file(follow_symlinks=False)
    except OSError as error:
        is_folder, is_file, why = False, False, NOT_READABLE.format(words_of(error))
    else:
        why = A_LINK if entry.is_symlink() else NO_FILE
    place = parent + entry.name + ("/" if is_folder else "")
    try:
        n_bytes = len(place.encode())
    except UnicodeEncodeError:
        raw = os.fsencode(place)
        # Where it is listed, so that a page can begin after it; another may have this very name.
        return _Odd(raw.decode(errors="backslashreplace") + "\0", NO_UTF_8, raw)
    if n_bytes > PATH_BYTES:
        return _Odd(place, TOO_LONG)
    return place if is_folder or is_file else _Odd(place, why)


def _odd(
    folder: Folder, row: _Odd, patterns: tuple[str, ...] | None, *, detail: bool
) -> LeftOut | None:
    name, why = row.place.removesuffix("\0"), row.why
    is_wanted = could_hold(name, patterns) if name.endswith("/") else matches(name, patterns)
    if not is_wanted:
        return None
    if why == A_LINK:
        try:
            why = A_LINK.format(shown(folder.target_of(name)))
        except FileNotFoundError:
            return None  # gone meanwhile
        except OSError as error:
            why = NOT_READABLE.format(words_of(error))
    raw = row.raw.hex() if row.raw is not None and detail else None
    return LeftOut(name, why, raw)


def _file(folder: Folder, path: str, *, detail: bool) -> FileEntry | LeftOut | None:
    """Open a file as if to read it: whether that is allowed is known only then."""
    try:
        with closing(folder.open(path)) as number:
            found = os.fstat(number)
            if not stat.S_ISREG(found.st_mode):
                return LeftOut(path, NO_FILE)
            if found.st_size == 0 and os.pread(number, 1, 0):
                found = os.fstat(number)  # it has grown meanwhile, or the kernel makes it up
                if found.st_size == 0:
                    return LeftOut(path, NO_SIZE)
            extents = extents_of(number, found) if detail else None
    except FileNotFoundError:
        return None  # gone meanwhile
    except OSError as error:
        return LeftOut(path, NOT_READABLE.format(words_of(error)))
    if not detail and not -NUMBER_STOP <= found.st_mtime_ns < NUMBER_STOP:
        return LeftOut(path, NO_TIME)
    mode = stat.S_IMODE(found.st_mode) if detail else None
    return FileEntry(path, found.st_size, found.st_mtime_ns, inode_of(found), mode, extents)
