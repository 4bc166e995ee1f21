"""Ways below the destination folder: opened step by step, without ever leaving it."""

from __future__ import annotations

import errno
import os
import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from datacollect.files.durability import sync

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Folding:
    """Names that a file system takes for the same.

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
        """Return whether two names may be one file at all."""
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
    """Folders below one folder, opened step by step without following links or leaving its disk.

    Keeps the folder that was used last open: files come sorted. Not for several threads.

    Parameters
    ----------
    root_fd : int
        Of the folder that nothing leaves. Each folder directly in it may be a file system of its
        own; below it no other begins.
    """

    def __init__(self, root_fd: int) -> None:
        self._root_fd = root_fd
        self._parts: tuple[str, ...] = ()
        self._fds: list[int] = []
        self._mount: Mount | None = None  # of the first folder of those that are open
        self.changed: set[tuple[str, ...]] = set()

    def open(self, parts: tuple[str, ...], *, make: bool) -> int:
        """Return the descriptor of a folder, which stays this object's.

        Raises
        ------
        OSError
            It is not there, or no folder: a link is none. Its `filename` says which of the parts.
        """
        common = 0
        while common < min(len(parts), len(self._parts)) and parts[common] == self._parts[common]:
            common += 1
        self._shrink(common)
        for depth in range(common, len(parts)):
            try:
                self._fds.append(self._enter(parts[depth], parts[:depth], make))
            except OSError as error:
                error.filename = "/".join(parts[: depth + 1])
                raise
            self._parts = parts[: depth + 1]
        return self._fds[-1] if self._fds else self._root_fd

    def _enter(self, name: str, above: tuple[str, ...], make: bool) -> int:
        parent = self._fds[-1] if self._fds else self._root_fd
        is_made = False
        if make:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=parent)
                self.changed.add(above)
                is_made = True
        fd = os.open(name, FOLDER_FLAGS, dir_fd=parent)
        try:
            if not above:
                self._mount = mount_of(fd)
            elif not is_made and self._mount is not None and mount_of(fd).is_other(self._mount):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        except OSError:
            os.close(fd)
            raise
        return fd

    def why_closed(self) -> str | None:
        """Return why nothing can be placed in the folder that was reached last; None: it can.

        Also where `open` has failed: what it reached then is what a new folder would be made in.
        """
        fd = self._fds[-1] if self._fds else self._root_fd
        if os.access(".", os.W_OK | os.X_OK, dir_fd=fd, effective_ids=True):
            return None
        number = errno.EROFS if os.fstatvfs(fd).f_flag & os.ST_RDONLY else errno.EACCES
        which = "/".join(self._parts) or "the destination folder"
        return f"{which} cannot be written: {os.strerror(number)}"

    def sync(self) -> None:
        """Make sure that names in all folders that were changed outlast a loss of power."""
        for parts in sorted(self.changed):
            # One that is gone meanwhile has nothing to lose.
            with suppress(FileNotFoundError, NotADirectoryError):
                sync(self.open(parts, make=False))
        self.changed.clear()

    def close(self) -> None:
        """Close all."""
        self._shrink(0)

    def _shrink(self, depth: int) -> None:
        while len(self._fds) > depth:
            with suppress(OSError):  # nothing was written by it
                os.close(self._fds.pop())
        self._parts = self._parts[:depth]


class Mount(NamedTuple):
    """File system of an open folder, and which of its mounts; 0: not known."""

    device: int
    number: int

    def is_other(self, other: Mount) -> bool:
        """Return whether a file cannot be renamed from one to the other."""
        known = self.number and other.number
        return self.device != other.device or bool(known and self.number != other.number)


def mount_of(fd: int) -> Mount:
    """Return where an open folder lies."""
    number = 0
    with suppress(OSError), Path(f"/proc/self/fdinfo/{fd}").open("rb") as file:
        found = re.search(rb"^mnt_id:\s*(\d+)", file.read(), re.MULTILINE)
        number = int(found[1]) if found else 0
    return Mount(os.fstat(fd).st_dev, number)


def sub_folder(parent_fd: int, name: str) -> int:
    """Open a folder in another, made where it is absent, for nobody else's eyes."""
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent_fd)
    return os.open(name, FOLDER_FLAGS, dir_fd=parent_fd)


def remove_whole(folder_fd: int, name: str) -> None:
    """Take a file away, or a folder with all that lies in it; no link is followed, no mount."""
    try:
        os.unlink(name, dir_fd=folder_fd)
    except (IsADirectoryError, PermissionError):
        fd = os.open(name, FOLDER_FLAGS, dir_fd=folder_fd)
        try:
            if mount_of(fd).is_other(mount_of(folder_fd)):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
            for inner in list(names_in(fd)):
                remove_whole(fd, inner)
        finally:
            os.close(fd)
        os.rmdir(name, dir_fd=folder_fd)


def names_in(folder_fd: int) -> Iterator[str]:
    """Yield the names in an open folder."""
    with os.scandir(folder_fd) as entries:
        yield from (entry.name for entry in entries)
