"""The inventory: all files of the folder that is served, in the order of their paths' bytes."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, TypeAlias

from datacollect.transfer.agent.files import closing
from datacollect.transfer.wire.messages import (
    PATH_BYTES,
    FileEntry,
    LeftOut,
    entry_line,
    last_line,
)
from datacollect.transfer.wire.patterns import matches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.transfer.agent.files import Folder

# A page ends after so many bytes, too.
PAGE_BYTES = 4 * 2**20

# A folder with more is listed so far, and says so: its names are sorted in memory.
MOST_NAMES = 2_000_000

NO_UTF_8 = "its name is not UTF-8; rename it"
NO_FILE = "neither a file nor a folder"
A_LINK = "a link; only what lies in the folder itself is served"
TOO_LONG = f"its path has more than {PATH_BYTES} bytes"
NOT_READABLE = "cannot be read"
TOO_MANY = f"the folder has more than {MOST_NAMES} names; divide it"

# A path and what is told of it.
Placed: TypeAlias = tuple[str, FileEntry | LeftOut]


class Inventory:
    """Pages of one walk through the folder; a walk goes on where the last page ended.

    Patterns leave out files, and what is no file only where a pattern could mean it.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._walk: Iterator[Placed] = iter(())
        self._at: tuple[str | None, tuple[str, ...] | None] | None = None

    def page(self, after: str | None, most: int, patterns: tuple[str, ...] | None) -> bytes:
        """Return the lines of a page, the last with where the next begins."""
        if self._at is None or self._at != (after, patterns):
            self._walk = walk(self._folder, after)
        lines: list[bytes] = []
        size, last = 0, after
        for place, entry in self._walk:
            last = place
            if matches(place, patterns):
                lines.append(entry_line(entry))
                size += len(lines[-1])
            if len(lines) == most or size >= PAGE_BYTES:
                break
        else:
            self._at = None
            return b"".join([*lines, last_line(None)])
        self._at = (last, patterns)
        return b"".join([*lines, last_line(last)])


def walk(folder: Folder, after: str | None = None) -> Iterator[Placed]:
    """Yield every file after a path, and what is left out; each with its place in the order.

    No folder is held open while others are walked through, and none is entered twice.
    """
    pending: list[tuple[str, str]] = [("", "")]  # what comes next, last first: path, kind
    while pending:
        path, kind = pending.pop()
        if kind:
            yield from _left_out(path, kind, after)
            continue
        if path and not path.endswith("/"):
            yield from _file(folder, path, after)
        # Of a folder before the place to go on from only its last part may matter.
        elif after is None or not path or path > after or after.startswith(path):
            pending += reversed(_inside(folder, path))


def _inside(folder: Folder, path: str) -> list[tuple[str, str]]:
    """Return what a folder holds, in order; folders end with a slash, which sorts them rightly."""
    rows: list[tuple[bytes, str, str]] = []
    try:
        with (
            closing(folder.open(path.rstrip("/"), os.O_RDONLY | os.O_DIRECTORY)) as number,
            os.scandir(number) as entries,
        ):
            for entry in entries:
                if len(rows) >= MOST_NAMES:
                    rows.append((b"\xff", path, TOO_MANY))
                    break
                rows.append(_row(path, entry))
    except OSError:
        return [(path, NOT_READABLE)]
    return [(place, kind) for _, place, kind in sorted(rows)]


def _row(path: str, entry: os.DirEntry[str]) -> tuple[bytes, str, str]:
    """Return the sort key, the path and why it is left out, if it is."""
    is_folder = entry.is_dir(follow_symlinks=False)
    place = path + entry.name + ("/" if is_folder else "")
    raw = os.fsencode(place)
    try:
        place.encode()
    except UnicodeEncodeError:
        # In the order of what is told, so that a page can begin after it.
        told = raw.decode(errors="backslashreplace")
        return told.encode(), told, NO_UTF_8
    if len(raw) > PATH_BYTES:
        return raw, place, TOO_LONG
    if is_folder or entry.is_file(follow_symlinks=False):
        return raw, place, ""
    return raw, place, A_LINK if entry.is_symlink() else NO_FILE


def _left_out(path: str, why: str, after: str | None) -> Iterator[Placed]:
    if after is None or path > after:
        yield path, LeftOut(path, why)


def _file(folder: Folder, path: str, after: str | None) -> Iterator[Placed]:
    if after is not None and path <= after:
        return
    try:
        found = folder.stat(path)
    except FileNotFoundError:
        return  # gone meanwhile
    except OSError:
        yield path, LeftOut(path, NOT_READABLE)
        return
    if stat.S_ISREG(found.st_mode):
        yield path, FileEntry(path, found.st_size, found.st_mtime_ns, found.st_ino)
    else:
        yield path, LeftOut(path, NO_FILE)
