"""Names of files that others list: which can be written, and how, without leaving the folder."""

from __future__ import annotations

import errno
import os
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.errors import TransferError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The collector's own, in the destination folder.
STATE_FOLDER = ".datacollect"

LONGEST_NAME_BYTES, LONGEST_PATH_BYTES, DEEPEST = 255, 4000, 200
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def why_not_written(path: str) -> str | None:
    r"""Return why a listed path cannot be written as it is; None where it can.

    Examples
    --------
    >>> why_not_written("run7/a.tar") is None
    True
    >>> why_not_written("a/../../etc/passwd")
    "its name holds '..'"
    >>> why_not_written("a\0b")
    'its name holds a NUL character'
    """
    try:
        n_bytes = len(path.encode())
    except UnicodeEncodeError:
        return "its name is not Unicode text"
    if "\0" in path:
        return "its name holds a NUL character"
    if path.startswith("/"):
        return "its name is absolute"
    if n_bytes > LONGEST_PATH_BYTES:
        return f"its name has {n_bytes} bytes, more than {LONGEST_PATH_BYTES}"
    parts = path.split("/")
    if len(parts) > DEEPEST:
        return f"it lies {len(parts)} folders deep, more than {DEEPEST}"
    return next((why for part in parts if (why := _why_not_part(part))), None)


def _why_not_part(part: str) -> str | None:
    if part in ("", ".", ".."):
        return f"its name holds {part!r}" if part else "its name holds an empty part"
    if unicodedata.normalize("NFKC", part).casefold() == STATE_FOLDER:
        return f"{STATE_FOLDER} is the collector's own name"
    if len(part.encode()) > LONGEST_NAME_BYTES:
        return f"a part of its name has more than {LONGEST_NAME_BYTES} bytes"
    return None


@dataclass(frozen=True)
class Folding:
    """Which names a file system takes for the same.

    Attributes
    ----------
    case : bool
        Whether ``A`` is ``a``.
    form : bool
        Whether a letter with its accent is the letter followed by the accent.
    """

    case: bool = False
    form: bool = False

    def key(self, path: str) -> str:
        r"""Return what names have in common that are one file.

        >>> Folding(case=True).key("Read.Me"), Folding(form=True).key("e\u0301") == "\u00e9"
        ('read.me', True)
        """
        if self.form:
            path = unicodedata.normalize("NFC", path)
        return path.casefold() if self.case else path

    @property
    def any(self) -> bool:
        """Whether two names may be one file at all."""
        return self.case or self.form


def folding_of(folder_fd: int) -> Folding:
    """Try out which names the file system of an open folder takes for the same."""
    return Folding(
        case=_is_one(folder_fd, ".folding-a", ".folding-A"),
        form=_is_one(folder_fd, ".folding-\u00e9", ".folding-e\u0301"),
    )


def _is_one(folder_fd: int, name: str, other: str) -> bool:
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600, dir_fd=folder_fd))
    try:
        os.stat(other, dir_fd=folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    finally:
        os.unlink(name, dir_fd=folder_fd)
    return True


class Folders:
    """Folders below one folder, opened step by step without following links.

    Keeps the folder that was used last open: files come sorted. Not for several threads.

    Parameters
    ----------
    root_fd : int
        Of the folder that nothing leaves.
    """

    def __init__(self, root_fd: int) -> None:
        self._root_fd = root_fd
        self._parts: tuple[str, ...] = ()
        self._fds: list[int] = []
        self.changed: set[tuple[str, ...]] = set()

    def open(self, parts: tuple[str, ...], *, make: bool) -> int:
        """Return the descriptor of a folder, which stays this object's.

        Raises
        ------
        OSError
            It is not there, or no folder: a link is none.
        """
        common = 0
        while common < min(len(parts), len(self._parts)) and parts[common] == self._parts[common]:
            common += 1
        self._shrink(common)
        for depth in range(common, len(parts)):
            fd = self._enter(parts[depth], parts[:depth], make)
            self._fds.append(fd)
            self._parts = parts[: depth + 1]
        return self._fds[-1] if self._fds else self._root_fd

    def _enter(self, name: str, above: tuple[str, ...], make: bool) -> int:
        parent = self._fds[-1] if self._fds else self._root_fd
        if make:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=parent)
                self.changed.add(above)
        return os.open(name, FOLDER_FLAGS, dir_fd=parent)

    def sync(self) -> None:
        """Make sure that names in all folders that were changed outlast a loss of power."""
        for parts in sorted(self.changed):
            os.fsync(self.open(parts, make=False))
        self.changed.clear()

    def close(self) -> None:
        """Close all."""
        self._shrink(0)

    def _shrink(self, depth: int) -> None:
        while len(self._fds) > depth:
            os.close(self._fds.pop())
        self._parts = self._parts[:depth]


def place(folders: Folders, from_fd: int, name: str, source: str, path: str) -> str | None:
    """Rename a whole file to where it belongs; return why it cannot be there, or None.

    Parameters
    ----------
    folders : Folders
    from_fd : int
        Of the folder in which the file lies under `name`.
    name, source, path : str

    Raises
    ------
    OSError
        What is wrong has nothing to do with the name.
    """
    *above, last = (source, *path.split("/"))
    try:
        fd = folders.open(tuple(above), make=True)
        os.rename(name, last, src_dir_fd=from_fd, dst_dir_fd=fd)
    except OSError as error:
        if error.errno in _ABOUT_NAMES:
            return f"{source}/{path} cannot be written: {os.strerror(error.errno)}"
        raise
    folders.changed.add(tuple(above))
    return None


_ABOUT_NAMES = (
    errno.ENOTDIR,
    errno.ELOOP,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.EINVAL,
    errno.EILSEQ,
    errno.ENOTEMPTY,
    errno.EEXIST,
)


def size_there(folders: Folders, source: str, path: str) -> int | None:
    """Return the size of a file that has its final name; None where there is none."""
    *above, last = (source, *path.split("/"))
    try:
        fd = folders.open(tuple(above), make=False)
        found = os.stat(last, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return None
    return found.st_size if _is_regular(found.st_mode) else None


def _is_regular(mode: int) -> bool:
    return (mode & 0o170000) == 0o100000


def names_in(folder_fd: int) -> Iterator[str]:
    """Yield the names in an open folder."""
    with os.scandir(folder_fd) as entries:
        yield from (entry.name for entry in entries)


def not_written(error: Exception, folder: Path) -> TransferError:
    """Return what to say where the destination folder cannot be written."""
    reason = getattr(error, "strerror", None) or str(error)
    return TransferError(
        f"{folder}: cannot be written: {reason}; nothing verified is lost: make room, or mend the "
        "disk, and start the same command again"
    )
