# ruff: noqa: PTH104, PTH118, PTH120
"""A disk that keeps its promises and no more: what was not synced may be lost with the power.

Files lie on a real file system and are written at once; beside it stands what each write and each
change of a folder has replaced. Syncing a file, or a folder, forgets that. When the power fails
some of what is not forgotten is undone: any of the writes, and any change of a folder that no later
one builds on. SQLite writes through the same books, by a file system of its own (`DroppingVfs`).
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from pathlib import Path
from typing import Any

import apsw

SYSTEM = apsw.vfs_names()[0]


class PowerLoss(BaseException):
    """Everything stops here; no handler of errors sees it."""


class Disk:
    """Stands for the module `os` in what writes.

    Parameters
    ----------
    seed : int
        Of partial writes and of what is lost.
    folder : Path
        The file system; nothing outside it is touched.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(f"disk {seed}")
        self.folder = folder
        # After so many more operations the power fails; None: never.
        self.fails_after: int | None = None
        self.room_bytes: int | None = None
        self.partial_writes = False
        self.is_dead = False
        self._writes: dict[str, list[tuple[int, bytes]]] = {}
        self._changes: list[tuple[str, str, str, str]] = []
        # What files were like before their size, or their mode and time, were set.
        self._sizes: dict[str, int] = {}
        self._attributes: dict[str, tuple[int, int]] = {}
        self.open_fds: dict[int, str] = {}
        self._kept = folder / "kept"
        self._n_kept = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    # What writes call ------------------------------------------------------------------------

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        self._step()
        where = self._where(path, dir_fd)
        is_new = bool(flags & os.O_CREAT) and not os.path.lexists(where)
        fd = os.open(path, flags, mode, dir_fd=dir_fd)
        self.open_fds[fd] = where
        if is_new:
            self._changes.append(("made", os.path.dirname(where), where, ""))
        return fd

    def close(self, fd: int) -> None:
        os.close(fd)
        self.open_fds.pop(fd, None)

    def close_all(self) -> None:
        """What the kernel does for a process that is gone."""
        for fd in sorted(self.open_fds):
            os.close(fd)
        self.open_fds.clear()

    def mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        self._step()
        where = self._where(path, dir_fd)
        os.mkdir(path, mode, dir_fd=dir_fd)
        self._changes.append(("folder", os.path.dirname(where), where, ""))

    def pwrite(self, fd: int, data: Any, offset: int) -> int:
        self._step()
        n = len(data)
        if self.room_bytes is not None:
            if self.room_bytes == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            n = min(n, self.room_bytes)
            self.room_bytes -= n
        if self.partial_writes and n > 1 and self.random.random() < 0.3:
            n = self.random.randint(1, n - 1)
        where = self.open_fds[fd]
        with open(where, "rb", buffering=0) as file:  # noqa: PTH123 - as fast as can be
            self.note_write(where, offset, os.pread(file.fileno(), n, offset), n)
        return os.pwrite(fd, memoryview(data)[:n], offset)

    def ftruncate(self, fd: int, length: int) -> None:
        self._step()
        self._sizes.setdefault(self.open_fds[fd], os.fstat(fd).st_size)
        os.ftruncate(fd, length)

    def fchmod(self, fd: int, mode: int) -> None:
        self._step()
        self._note_attributes(fd)
        os.fchmod(fd, mode)

    def utime(self, fd: int, *, ns: tuple[int, int]) -> None:
        self._step()
        self._note_attributes(fd)
        os.utime(fd, ns=ns)

    def fdatasync(self, fd: int) -> None:
        self._step()
        self.synced(self.open_fds[fd])

    def fsync(self, fd: int) -> None:
        """As `fdatasync`; modes and times outlast it, too."""
        self.fdatasync(fd)
        self._attributes.pop(self.open_fds[fd], None)

    def sync_all(self, *_: Any) -> bool:
        self._step()
        self._forget()
        return True

    def rename(
        self,
        src: Any,
        dst: Any,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
    ) -> None:
        self._step()
        one, other = self._where(src, src_dir_fd), self._where(dst, dst_dir_fd)
        kept = self._keep(other)
        os.rename(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        for books in (self._writes, self._sizes, self._attributes):
            if one in books:
                books[other] = books.pop(one)
            else:
                books.pop(other, None)
        self._changes.append(("renamed", os.path.dirname(other), f"{one}\0{other}", kept))

    replace = rename

    def unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._step()
        os.unlink(path, dir_fd=dir_fd)

    # Books -----------------------------------------------------------------------------------

    def note_write(self, where: str, offset: int, before: bytes, n_bytes: int) -> None:
        """Remember what a write is about to replace."""
        self._writes.setdefault(where, []).append((offset, before.ljust(n_bytes, b"\0")))

    def synced(self, where: str) -> None:
        """A file, or a folder, is on disk."""
        self._writes.pop(where, None)
        self._sizes.pop(where, None)
        self._changes = [change for change in self._changes if change[1] != where]

    def goes_on(self) -> bool:
        """Count an operation; whether there is power for it."""
        try:
            self._step()
        except PowerLoss:
            return False
        return True

    def lose_power(self) -> None:
        """Undo some of what was not synced."""
        harsh = self.random.choice((0.0, 0.5, 1.0))
        self.is_dead = True
        for where, writes in self._writes.items():
            if Path(where).exists():
                for offset, before in reversed(writes):
                    if self.random.random() < harsh:
                        _write_at(where, offset, before)
        for where, size in self._sizes.items():
            if Path(where).exists() and self.random.random() < harsh:
                os.truncate(where, size)
        for where, (mode, mtime_ns) in self._attributes.items():
            if Path(where).exists() and self.random.random() < harsh:
                os.chmod(where, mode)  # noqa: PTH101 - as its neighbours
                os.utime(where, ns=(mtime_ns, mtime_ns))
        for what, _, where, kept in reversed(self._changes):
            if self.random.random() < harsh:
                _undo(what, where, kept)
        self._forget()

    def revive(self) -> None:
        """The power is back."""
        self.is_dead, self.fails_after = False, None
        shutil.rmtree(self._kept, ignore_errors=True)

    def _forget(self) -> None:
        for books in (self._writes, self._changes, self._sizes, self._attributes):
            books.clear()

    def _note_attributes(self, fd: int) -> None:
        found = os.fstat(fd)
        before = found.st_mode & 0o7777, found.st_mtime_ns
        self._attributes.setdefault(self.open_fds[fd], before)

    def _step(self) -> None:
        if self.is_dead:
            raise PowerLoss
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                self.is_dead = True
                raise PowerLoss

    def _where(self, path: Any, dir_fd: int | None) -> str:
        name = os.fspath(path)
        return name if dir_fd is None else os.path.join(self.open_fds[dir_fd], name)

    def _keep(self, where: str) -> str:
        if not os.path.lexists(where):
            return ""
        self._kept.mkdir(exist_ok=True)
        self._n_kept += 1
        kept = str(self._kept / str(self._n_kept))
        os.link(where, kept, follow_symlinks=False)
        return kept


def _write_at(where: str, offset: int, data: bytes) -> None:
    with Path(where).open("r+b") as file:
        file.seek(offset)
        file.write(data)


def _undo(what: str, where: str, kept: str) -> None:
    if what == "renamed":
        one, _, other = where.partition("\0")
        if os.path.lexists(other) and not os.path.lexists(one) and Path(one).parent.is_dir():
            os.rename(other, one)
            if kept:
                os.rename(kept, other)
    elif what == "made":
        Path(where).unlink(missing_ok=True)
    elif Path(where).is_dir() and not any(Path(where).iterdir()):
        Path(where).rmdir()


def files_below(folder: Path) -> dict[str, bytes]:
    """What lies in a folder, at any depth, by path within it."""
    return {
        str(Path(above, name).relative_to(folder)): Path(above, name).read_bytes()
        for above, _, names in os.walk(folder)
        for name in names
    }


class DroppingVfs(apsw.VFS):
    """Writes of SQLite, in the books of a disk."""

    def __init__(self, disk: Disk) -> None:
        self.name = f"dropping-{id(disk)}"
        self.disk = disk
        super().__init__(self.name, SYSTEM, makedefault=True)

    def xOpen(self, name: Any, flags: Any) -> Any:  # noqa: N802 - SQLite's name
        return _DroppingFile(self.disk, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802 - SQLite's name
        if self.disk.goes_on():
            super().xDelete(name, sync)


class _DroppingFile(apsw.VFSFile):
    """Without power it takes all and does nothing: no exception may cross SQLite."""

    def __init__(self, disk: Disk, name: Any, flags: Any) -> None:
        super().__init__(SYSTEM, name, flags)
        self._disk = disk
        self._where = None if name is None else (name if isinstance(name, str) else name.filename())

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        if not self._disk.goes_on():
            return
        if self._where is not None:
            before = self.xRead(len(data), offset)
            self._disk.note_write(self._where, offset, before, len(data))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's name
        if self._disk.goes_on():
            super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        if self._disk.goes_on() and self._where is not None:
            self._disk.synced(self._where)
