"""The folder that feeds are kept in: the few operations on its files that a receiver needs."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from datacollect.files.durability import name_durably, sync, synchronise

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MOST_VECTORS = 1000  # below what any system takes at once
MOST_READ_BYTES = 2**20
# What the system holds in memory as one piece, at most: where a part that is let go of ends within
# such a piece, that stays until the next time.
PIECE_BYTES = 4 * 2**20
FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC
# What file systems without second names say, among them some of other hosts.
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class Disk(Protocol):
    """Files of one folder, by name. All methods raise OSError."""

    def exists(self, name: str) -> bool:
        """Return whether there is such a file."""

    def size(self, name: str) -> int | None:
        """Return how many bytes a file has; None: there is none."""

    def read(self, name: str) -> bytes | None:
        """Return what a small file holds; None: there is none."""

    def write(self, name: str, offset: int, blocks: Sequence[memoryview | bytes]) -> None:
        """Write at a place of a file, which is made where there is none."""

    def truncate(self, name: str, n_bytes: int) -> None:
        """Give a file, made where there is none, so many bytes."""

    def sync(self, name: str, *, done_bytes: int = 0) -> None:
        """Wait until what was written into a file is on the disk, and has that name there.

        What lies below `done_bytes` is not written again.
        """

    def put(self, name: str, data: bytes) -> None:
        """Replace a small file, wholly or not at all; then it is on the disk."""

    def rename(self, name: str, to: str) -> None:
        """Give a file another name that nothing has; then it is on the disk."""


class Folder:
    """A folder of this host; its files stay open until `close`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: dict[str, int] = {}
        # Of each file, up to where it does not have to stay in memory.
        self._let_go: dict[str, int] = {}

    def exists(self, name: str) -> bool:
        """Return whether there is such a file, whatever it is."""
        return os.path.lexists(self._path / name)

    def size(self, name: str) -> int | None:
        """Return how many bytes a file has."""
        try:
            return (self._path / name).lstat().st_size
        except FileNotFoundError:
            return None

    def read(self, name: str) -> bytes | None:
        """Return what a small file holds."""
        try:
            # Of a named pipe nobody waits for who writes into it.
            fd = os.open(self._path / name, os.O_RDONLY | os.O_NONBLOCK | FLAGS)
        except FileNotFoundError:
            return None
        with os.fdopen(fd, "rb") as file:
            return file.read(MOST_READ_BYTES) if _is_regular(fd) else b""

    def write(self, name: str, offset: int, blocks: Sequence[memoryview | bytes]) -> None:
        """Write at a place of a file."""
        fd, left = self._fd(name), list(blocks)
        while left:
            n_bytes = os.pwritev(fd, left[:MOST_VECTORS], offset)
            offset += n_bytes
            while left and n_bytes >= len(left[0]):
                n_bytes -= len(left.pop(0))
            if n_bytes:  # the disk has no room for more, which the next call says
                left[0] = left[0][n_bytes:]

    def truncate(self, name: str, n_bytes: int) -> None:
        """Give a file so many bytes."""
        os.ftruncate(self._fd(name), n_bytes)

    def sync(self, name: str, *, done_bytes: int = 0) -> None:
        """Wait until what was written into a file is on the disk."""
        fd = self._fd(name)
        sync(fd, only_data=True)
        self._let_go_of(name, done_bytes)
        # Somebody may have taken it away: what was written into it is of no use then.
        if not os.path.samestat(os.fstat(fd), (self._path / name).lstat()):
            raise FileNotFoundError(errno.ENOENT, "another file has its name", name)

    def put(self, name: str, data: bytes) -> None:
        """Replace a small file."""
        beside = self._path / f".{name}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(beside, flags, 0o644), "wb") as file:
            file.write(data)
        name_durably(beside, self._path / name)

    def rename(self, name: str, to: str) -> None:
        """Give a file another name; what has got that one meanwhile stays."""
        old, new = self._path / name, self._path / to
        try:
            os.link(old, new, follow_symlinks=False)
        except FileExistsError:
            # Unless it has got it already, and was stopped before it had lost the other one.
            if not (old.exists() and new.exists() and old.samefile(new)):
                self._rename_over_claim(old, new)
                return
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            self._rename_over_claim(old, new)
            return
        old.unlink()
        synchronise(self._path)

    def _rename_over_claim(self, old: Path, new: Path) -> None:
        """Give a file a name where its file system knows no second ones, as FAT does.

        First an empty file has the name, so that nothing else gets it. Before that, another one
        beside says so: whoever is stopped in between knows the empty one for his own.
        """
        beside = self._path / f".{old.name}.naming"
        has_begun = beside.exists()
        if not has_begun and os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, "something has its name", new.name)
        flags = os.O_WRONLY | os.O_CREAT | FLAGS
        if not has_begun:
            os.close(os.open(beside, flags, 0o644))
            synchronise(self._path)
        try:
            os.close(os.open(new, flags | os.O_EXCL, 0o644))
        except FileExistsError:
            if not has_begun or self.size(new.name):
                beside.unlink()
                raise
        old.replace(new)
        beside.unlink()
        synchronise(self._path)

    def close(self) -> None:
        """Close what is open; again does nothing."""
        while self._open:
            _, fd = self._open.popitem()
            with suppress(OSError):
                os.close(fd)

    def used_bytes(self) -> int:
        """Return how much all files of the folder hold."""
        used_bytes = 0
        with os.scandir(self._path) as entries:
            for each in entries:
                with suppress(FileNotFoundError):  # it has gone since, as one that is replaced
                    used_bytes += each.stat(follow_symlinks=False).st_size
        return used_bytes

    def _let_go_of(self, name: str, done_bytes: int) -> None:
        """Have memory for what comes: a feed of days would take that of all other programs.

        Pages that are used again cost less than new ones, too.
        """
        before, stop = self._let_go.get(name, 0), done_bytes // mmap.PAGESIZE * mmap.PAGESIZE
        if stop <= before:
            return
        self._let_go[name] = stop
        begin = max(before - PIECE_BYTES, 0)
        with suppress(OSError):  # some file systems have nothing of the kind
            os.posix_fadvise(self._fd(name), begin, stop - begin, os.POSIX_FADV_DONTNEED)

    def _fd(self, name: str) -> int:
        if name not in self._open:
            fd = os.open(self._path / name, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | FLAGS, 0o644)
            if not _is_regular(fd):
                os.close(fd)
                raise FileExistsError(errno.EEXIST, "something that is no file has its name", name)
            self._open[name] = fd
            synchronise(self._path)  # its name
        return self._open[name]


def _is_regular(fd: int) -> bool:
    return stat.S_ISREG(os.fstat(fd).st_mode)
