"""Files of one draft on the destination's disk: taken apart, safely named, listed beside them.

A folder holds them all, and a list of them that no person's file can be called like. It gets its
name once all of it is on the disk: a draft is there as a whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import unicodedata
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from datacollect.bistro.formats.log.file_list import Frames
from datacollect.files.durability import synchronise

if TYPE_CHECKING:
    from pathlib import Path

LIST = ".files.json"
FORMAT = "datacollect-files/1"
MOST_NAME_CHARACTERS = 60
# Of a name that is shown, and names nothing: as many as file systems have bytes for one.
_MOST_GIVEN_CHARACTERS = 255
# What all systems can write, and no program takes for more than a name.
_UNSAFE = re.compile(r"[^\w.,'()@+ -]")
_BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class SetFile:
    """One file of several.

    Attributes
    ----------
    name : str
        As its person calls it.
    file : str
        Where it lies, below the folder of the list.
    n_bytes : int
    sha256 : str
        Hexadecimal.
    """

    name: str
    file: str
    n_bytes: int
    sha256: str


def safe_name(name: object) -> str:
    r"""Return what a file may be called that a person has named so.

    >>> [safe_name(each) for each in ("return 2026.pdf", "../../etc/passwd", "..\\x\n", 7)]
    ['return 2026.pdf', 'passwd', 'x_', 'file']
    """
    if not isinstance(name, str):
        return "file"
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name))[-1]
    return _UNSAFE.sub("_", last)[-MOST_NAME_CHARACTERS:].strip(". ") or "file"


def given_name(name: object) -> str:
    r"""Return what a person has named a file, as it may be shown: on one line, without folders.

    >>> [given_name(each) for each in ("Étude: 1/2 é?.pdf", "C:\\a*b\n.txt", 7)]
    ['2 é?.pdf', 'a*b_.txt', '']
    """
    if not isinstance(name, str):
        return ""
    last = re.split(r"[/\\]", name)[-1][-_MOST_GIVEN_CHARACTERS:]
    return "".join(each if each.isprintable() else "_" for each in last)


class SafePaths:
    """Where files may lie that a person has named so, no two in one place.

    Some systems take two names for one that differ in case alone, or in how letters are composed:
    what would collide lies in a numbered folder of its own, without its other folders: all names
    together make no more folders than they have, and one for each that collides.

    >>> paths = SafePaths()
    >>> [paths.of(name) for name in ("a/x.txt", "A/X.txt", "é", "a")]
    ['a/x.txt', '2/X.txt', 'é', '3/a']
    """

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()
        # The next is above all that were tried: names that are made to collide cost no more.
        self._last = 1

    def of(self, name: str) -> str:
        """Return the place of one more file."""
        path = "/".join(map(safe_name, name.split("/")))
        folded, n = path.casefold(), 1
        while not self._is_free(placed := _numbered(folded, n)):
            n = self._last = self._last + 1
        self._files.add(placed)
        self._folders.update(_above(placed))
        return _numbered(path, n)

    def _is_free(self, placed: str) -> bool:
        is_other = placed in self._files or placed in self._folders
        return not is_other and self._files.isdisjoint(_above(placed))


def _numbered(path: str, n: int) -> str:
    return path if n == 1 else f"{n}/{path.rpartition('/')[2]}"


def take_apart(body: BinaryIO, count: int, into: Path) -> bytes:
    """Write all files of a body into a new folder, durably, and the list of them; return that.

    Parameters
    ----------
    body : binary file
        Read from where it stands; it has been checked.
    count : int
        How many files it has.
    into : Path
        Made; whatever happens, nobody takes it for a whole one before it gets its name.

    Raises
    ------
    OSError
        The disk is full, or fails.
    """
    writing = _Writing(into)
    frames = Frames(count, writing.begin, writing.take)
    try:
        while block := body.read(_BLOCK_BYTES):
            frames.update(block)
        frames.end()
    finally:
        writing.close()
    files = writing.written()
    told = {"format": FORMAT, "files": [asdict(each) for each in files]}
    data = (json.dumps(told, ensure_ascii=False, indent=1) + "\n").encode()
    (into / LIST).write_bytes(data)
    # Behind all the writing, the first sync does most of the work of the others.
    folders = {into}
    for each in files:
        synchronise(into / each.file)
        folders |= {into / part for part in _above(each.file)}
    for path in (into / LIST, *folders):
        synchronise(path)
    return data


def name_folder(beside: Path, path: Path) -> None:
    """Give a whole folder its name, durably, in the place of one that is there.

    Raises
    ------
    OSError
        As renaming does.
    """
    old = beside.with_name(f"{beside.name}.old.tmp")
    if path.exists():
        path.rename(old)
    beside.rename(path)
    synchronise(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def remove_left(path: Path) -> None:
    """Remove what a killed process has left: a file, or a folder that was to become one.

    Raises
    ------
    OSError
        It cannot be removed.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def read_set(path: Path) -> tuple[SetFile, ...] | None:
    """Return the files that a list names; None: it is damaged.

    Raises
    ------
    OSError
        It cannot be read.
    """
    try:
        tree: Any = json.loads(path.read_bytes())
        found = tuple(SetFile(**each) for each in tree["files"])
        is_one = tree["format"] == FORMAT and all(map(_is_set_file, found))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if is_one else None


def _is_set_file(one: SetFile) -> bool:
    parts = str(one.file).split("/")
    is_below = all(part == safe_name(part) for part in parts)
    return is_below and type(one.n_bytes) is int and len(bytes.fromhex(one.sha256)) == 32


def _above(file: str) -> list[str]:
    return [file[:at] for at, letter in enumerate(file) if letter == "/"]


class _Writing:
    """Writes files as a body names them."""

    def __init__(self, into: Path) -> None:
        self._into, self._paths = into, SafePaths()
        self._files: list[tuple[str, str, int, Any]] = []
        self._out: BinaryIO | None = None
        into.mkdir()

    def begin(self, name: str, n_bytes: int) -> None:
        self.close()
        file = self._paths.of(name)
        path = self._into / file
        path.parent.mkdir(parents=True, exist_ok=True)
        self._out = path.open("xb")
        self._files.append((name, file, n_bytes, hashlib.sha256()))

    def take(self, data: bytes) -> None:
        assert self._out is not None
        self._out.write(data)
        self._files[-1][3].update(data)

    def close(self) -> None:
        if self._out is not None:
            self._out.close()
            self._out = None

    def written(self) -> list[SetFile]:
        return [SetFile(name, file, n, code.hexdigest()) for name, file, n, code in self._files]
