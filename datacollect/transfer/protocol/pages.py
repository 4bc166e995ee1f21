"""Pages of an agent's inventory: files, folders, what is left out; and their lines in JSON.

A page is a row of lines, each a JSON object: one for each file, folder or thing that is left out,
in the order of the paths' bytes, and a last one that says where the next page begins. Who reads a
page trusts none of it: a line that cannot be becomes something left out, by its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from json.encoder import encode_basestring
from typing import Any

from datacollect.errors import ProblemError
from datacollect.files.kinds import is_utf_8, shown
from datacollect.net.safe_text import safe_text
from datacollect.transfer.protocol.checked import (
    MOST_NAME_CHARACTERS,
    PATH_BYTES,
    is_path,
    is_time_ns,
    is_whole,
    json_body,
    name_text,
    parse_object,
)
from datacollect.transfer.protocol.file_names import why_not_written
from datacollect.transfer.protocol.source import LeftOut

# Of one page.
MOST_ENTRIES = 10_000

# Ranges with data that are listed of a file; with more, the file counts as one without holes.
MOST_EXTENTS = 1000
# Of one page: what a peer may have a reader keep in memory.
MOST_PAGE_EXTENTS = 100_000
# A path with every byte escaped, and all extents.
MOST_LINE_BYTES = 128 * 1024

MODE_STOP = 0o10000

MALFORMED = "malformed line in the list"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as an inventory lists it.

    Attributes
    ----------
    path : str
    n_bytes : int
    mtime_ns : int
        Time of the last change, nanoseconds since 1970.
    inode : int
        Number of the file at its host: another file under the same name has another.
    mode : int or None
        Permission bits, where they are listed. Who compares files compares them no more than holes.
    extents : tuple of (int, int), or None
        Offset and length of each range with data, where the file has holes; None: no holes.
    """

    path: str
    n_bytes: int
    mtime_ns: int
    inode: int
    mode: int | None = field(default=None, compare=False)
    extents: tuple[tuple[int, int], ...] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A folder as an inventory lists it: path, permission bits, time of the last change."""

    path: str
    mode: int | None
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class InventoryPage:
    """Some of an agent's files, in the order of their paths' bytes.

    Attributes
    ----------
    files : tuple of FileEntry
    left_out : tuple of LeftOut
    after : str or None
        What to ask for the next page; None: this is the last.
    folders : tuple of FolderEntry
        In the order of their paths' bytes with a slash behind.
    """

    files: tuple[FileEntry, ...]
    left_out: tuple[LeftOut, ...]
    after: str | None
    folders: tuple[FolderEntry, ...] = ()


def entry_line(entry: FileEntry | FolderEntry | LeftOut) -> bytes:
    r"""Return a line of an inventory, without what is not known.

    >>> entry_line(FileEntry("a", 5, 0, 1, mode=0o644))
    b'{"path":"a","bytes":5,"mtime_ns":0,"inode":1,"mode":420}\n'
    """
    if isinstance(entry, LeftOut):
        tree: dict[str, Any] = {"left_out": entry.name, "why": entry.why, "hex": entry.name_hex}
    elif isinstance(entry, FolderEntry):
        tree = {"folder": entry.path, "mode": entry.mode, "mtime_ns": entry.mtime_ns}
    else:
        return _file_line(entry)
    return json_body({key: value for key, value in tree.items() if value is not None}) + b"\n"


def _file_line(entry: FileEntry) -> bytes:
    """Return the line of a file, of which there may be millions: by hand, as `json_body` has it."""
    line = (
        f'{{"path":{encode_basestring(entry.path)},"bytes":{entry.n_bytes},'
        f'"mtime_ns":{entry.mtime_ns},"inode":{entry.inode}'
    )
    if entry.mode is not None:
        line += f',"mode":{entry.mode}'
    if entry.extents is not None:
        return line.encode() + b',"extents":' + json_body(entry.extents) + b"}\n"
    return line.encode() + b"}\n"


def last_line(after: str | None) -> bytes:
    """Return the last line of a page."""
    return json_body({"next": after}) + b"\n"


def parse_page(body: bytes) -> InventoryPage:
    """Return the page that an answer holds.

    Raises
    ------
    ProblemError
        It is not whole, or has too many lines. Lines that cannot be are left out by name.
    """
    # Counted before they are divided: each costs memory.
    n_lines = body.count(b"\n") + (not body.endswith(b"\n"))
    if n_lines > MOST_ENTRIES + 1:
        raise ProblemError(f"a page has at most {MOST_ENTRIES} lines, got {n_lines - 1}")
    *lines, last = body.removesuffix(b"\n").split(b"\n")
    after = _after_of(last)
    files: list[FileEntry] = []
    folders: list[FolderEntry] = []
    left_out: list[LeftOut] = []
    left_extents = MOST_PAGE_EXTENTS
    for i, line in enumerate(lines):
        entry = _entry_of(line, f"line {i + 1}", left_extents)
        if isinstance(entry, LeftOut):
            left_out.append(entry)
        elif isinstance(entry, FolderEntry):
            folders.append(entry)
        else:
            left_extents -= len(entry.extents or ())
            files.append(entry)
    return InventoryPage(tuple(files), tuple(left_out), after, tuple(folders))


def _after_of(line: bytes) -> str | None:
    try:
        tree = parse_object(line)
    except ProblemError:
        tree = {}
    if tree.keys() != {"next"}:
        raise ProblemError("the page of the inventory has no last line")
    after = tree["next"]
    if after is None:
        return None
    if not isinstance(after, str) or not is_utf_8(after) or len(after) > MOST_NAME_CHARACTERS:
        raise ProblemError(f"next must be a name or null, got {shown(after)}")
    return after


def _entry_of(line: bytes, place: str, most_extents: int) -> FileEntry | FolderEntry | LeftOut:
    """Return what a line lists; an entry that is left out for a line that cannot be read."""
    if len(line) > MOST_LINE_BYTES:
        return LeftOut(place, f"its line in the list has more than {MOST_LINE_BYTES} bytes")
    try:
        tree = parse_object(line)
    except ProblemError:
        return LeftOut(place, MALFORMED)
    key = next((key for key in ("left_out", "folder", "path") if key in tree), None)
    name = tree.get(key or "")
    if not isinstance(name, str):
        return LeftOut(place, MALFORMED)
    if key == "left_out":
        return _left_out(name, tree)
    if not is_path(name):
        return LeftOut(name_text(name), why_not_written(name) or "its path leads out of the folder")
    entry = _folder(name, tree) if key == "folder" else _file(name, tree, most_extents)
    return entry or LeftOut(name, MALFORMED)


def _left_out(name: str, tree: dict[str, Any]) -> LeftOut:
    why, raw = tree.get("why", ""), tree.get("hex")
    return LeftOut(
        name_text(name),
        safe_text(why) if isinstance(why, str) else MALFORMED,
        raw if isinstance(raw, str) and _is_hex(raw) else None,
    )


def _is_hex(text: str) -> bool:
    try:
        return len(text) <= 2 * (PATH_BYTES + 256) and bytes.fromhex(text).hex() == text
    except ValueError:
        return False


def _folder(path: str, tree: dict[str, Any]) -> FolderEntry | None:
    mode, mtime_ns = tree.get("mode"), tree.get("mtime_ns")
    if not _is_mode(mode) or not is_time_ns(mtime_ns):
        return None
    assert isinstance(mtime_ns, int)
    return FolderEntry(path, mode, mtime_ns)


def _file(path: str, tree: dict[str, Any], most_extents: int) -> FileEntry | None:
    n_bytes, mtime_ns, inode = (tree.get(key) for key in ("bytes", "mtime_ns", "inode"))
    mode, extents = tree.get("mode"), tree.get("extents")
    if not (is_whole(n_bytes) and is_whole(inode) and is_time_ns(mtime_ns) and _is_mode(mode)):
        return None
    assert isinstance(n_bytes, int)
    assert isinstance(mtime_ns, int)
    assert isinstance(inode, int)
    if extents is not None:
        if not _are_extents(extents, n_bytes):
            return None
        extents = tuple(map(tuple, extents)) if len(extents) <= most_extents else None
    return FileEntry(path, n_bytes, mtime_ns, inode, mode, extents)


def _is_mode(mode: object) -> bool:
    return mode is None or is_whole(mode, 0, MODE_STOP)


def _are_extents(rows: object, n_bytes: int) -> bool:
    """Return whether these are ranges of a file that follow each other."""
    if not isinstance(rows, list) or len(rows) > MOST_EXTENTS:
        return False
    if not all(isinstance(row, list) and len(row) == 2 and all(map(is_whole, row)) for row in rows):
        return False
    if any(length == 0 or offset + length > n_bytes for offset, length in rows):
        return False
    return all(one[0] + one[1] <= other[0] for one, other in pairwise(rows))
