"""The folder that an agent serves: nothing is opened that lies outside, or is reached by a link."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from datacollect.transfer.wire.messages import (
    AS_LISTED,
    CHANGED,
    CUT_SHORT,
    Confirmation,
    FileEntry,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from datacollect.transfer.wire.messages import Segment

# linux/openat2.h; the number is the same on all of Linux' architectures but Alpha.
_SYS_OPENAT2 = 437
_NO_MAGIC_LINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08

# Never wait for a pipe's other end, never take a terminal, pass nothing on to children.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

# What the kernel answers where openat2 is not to be had: too old, or kept away by a sandbox.
_NO_OPENAT2 = (errno.ENOSYS, errno.EPERM)


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


class Folder:
    """A folder whose files are opened by relative paths, beneath it, and without any link.

    Parameters
    ----------
    path : Path
    use_openat2 : bool
        Let the kernel see to it; otherwise, and where the kernel cannot, each part of a path is
        opened by itself.
    """

    def __init__(self, path: Path, *, use_openat2: bool = True) -> None:
        self._number = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._syscall = _syscall() if use_openat2 else None

    def close(self) -> None:
        """Let go of it."""
        os.close(self._number)

    def open(self, path: str, flags: int = _FLAGS) -> int:
        """Return a new file descriptor; raise OSError.

        Parameters
        ----------
        path : str
            Relative, without ``.`` and ``..``; ``""`` is the folder itself.
        flags : int
            As `os.open`'s.
        """
        if path == "":
            return os.open(".", flags, dir_fd=self._number)
        if self._syscall is not None:
            try:
                return self._openat2(path, flags)
            except OSError as error:
                if error.errno not in _NO_OPENAT2:
                    raise
        return self._by_parts(path, flags)

    def stat(self, path: str) -> os.stat_result:
        """Return what the file is, without opening it in earnest; raise OSError."""
        with closing(self.open(path, os.O_PATH | os.O_CLOEXEC)) as number:
            return os.fstat(number)

    def state_of(self, file: FileEntry) -> int | None:
        """Return whether a file is `AS_LISTED` or `CHANGED`; None: it is gone."""
        try:
            found = self.stat(file.path)
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        return AS_LISTED if is_as_listed(found, file) else CHANGED

    def confirm(self, files: Iterable[FileEntry]) -> Confirmation:
        """Return which of the files are no more as they were listed."""
        states = [(file.path, self.state_of(file)) for file in files]
        return Confirmation(
            changed=tuple(dict.fromkeys(path for path, state in states if state == CHANGED)),
            gone=tuple(dict.fromkeys(path for path, state in states if state is None)),
        )

    def _openat2(self, path: str, flags: int) -> int:
        assert self._syscall is not None
        how = _OpenHow(flags, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGIC_LINKS)
        number = self._syscall(
            ctypes.c_long(_SYS_OPENAT2),
            ctypes.c_int(self._number),
            ctypes.c_char_p(os.fsencode(path)),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if number < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        return int(number)

    def _by_parts(self, path: str, flags: int) -> int:
        *folders, name = path.split("/")
        if {"", ".", ".."} & {*folders, name}:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
        number = os.dup(self._number)
        try:
            for folder in folders:
                inner = os.open(
                    folder,
                    os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC,
                    dir_fd=number,
                )
                os.close(number)
                number = inner
            opened = os.open(name, flags | os.O_NOFOLLOW, dir_fd=number)
        finally:
            os.close(number)
        # Together with O_PATH a link itself is opened.
        if flags & os.O_PATH and stat.S_ISLNK(os.fstat(opened).st_mode):
            os.close(opened)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        return opened


class SegmentReader:
    """Reads segments one after another, as many bytes as were asked for whatever happens.

    Attributes
    ----------
    status : int
        `AS_LISTED`, `CHANGED` or `CUT_SHORT`, once all is read.
    """

    def __init__(self, folder: Folder, segments: Sequence[Segment]) -> None:
        self.status = AS_LISTED
        self._folder = folder
        self._segments = segments

    def blocks(self, buffer: memoryview) -> Iterator[memoryview]:
        """Yield the bytes in blocks, each in the buffer, which the next overwrites."""
        filled = 0
        for segment in self._segments:
            left, offset = segment.n_bytes, segment.offset_bytes
            with self._opened(segment.file) as number:
                while left:
                    part = buffer[filled : filled + left]
                    n_bytes = self._read(number, part, offset)
                    filled, left, offset = filled + n_bytes, left - n_bytes, offset + n_bytes
                    if filled == len(buffer):
                        yield buffer
                        filled = 0
        if filled:
            yield buffer[:filled]

    @contextmanager
    def _opened(self, file: FileEntry) -> Iterator[int | None]:
        """Open a file, compare it with the list before and after; None: it is not to be had."""
        try:
            number = self._folder.open(file.path)
        except OSError:
            self.status = CUT_SHORT
            yield None
            return
        try:
            self._compare(number, file)
            yield number
            self._compare(number, file)
        finally:
            os.close(number)

    def _compare(self, number: int, file: FileEntry) -> None:
        if not is_as_listed(os.fstat(number), file):
            self.status = max(self.status, CHANGED)

    def _read(self, number: int | None, part: memoryview, offset: int) -> int:
        """Fill some of the part, with zeros where there is nothing to be read."""
        try:
            n_bytes = 0 if number is None else os.preadv(number, [part], offset)
        except OSError:
            n_bytes = 0
        if n_bytes:
            return n_bytes
        self.status = CUT_SHORT
        part[:] = bytes(len(part))
        return len(part)


def is_as_listed(found: os.stat_result, file: FileEntry) -> bool:
    """Whether this is the very file that was listed, unchanged in size and time."""
    return stat.S_ISREG(found.st_mode) and (found.st_size, found.st_mtime_ns, found.st_ino) == (
        file.n_bytes,
        file.mtime_ns,
        file.inode,
    )


@contextmanager
def closing(number: int) -> Iterator[int]:
    """Close a file descriptor at the end."""
    try:
        yield number
    finally:
        os.close(number)


def _syscall() -> ctypes._FuncPointer | None:
    try:
        return ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return None
