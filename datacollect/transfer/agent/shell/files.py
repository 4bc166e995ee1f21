"""The served folder: opens nothing that lies outside, or is reached by a link."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from datacollect.transfer.protocol.messages import (
    AS_LISTED,
    CHANGED,
    CUT_SHORT,
    FileEntry,
    WireConfirmation,
)
from datacollect.transfer.protocol.pages import MOST_EXTENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from datacollect.transfer.protocol.messages import WireSegment

# linux/openat2.h; the number is the same on all of Linux' architectures but Alpha.
_SYS_OPENAT2 = 437
_NO_MAGIC_LINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08

# Never wait for a pipe's other end, never take a terminal, pass nothing on to children.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

# What the kernel answers where there is no such file, or none that may be reached by this path.
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV)

# Numbers of files travel as whole numbers below 2^63; some file systems have higher ones.
INODE_STOP = 2**63

# Files of a session of which is remembered why they could not be read.
MOST_FAILURES = 10_000

# What the kernel answers where openat2 is not to be had: too old, or kept away by a sandbox.
_NO_OPENAT2 = (errno.ENOSYS, errno.EPERM)

# What st_blocks counts in.
BLOCK_UNIT_BYTES = 512

REMEDY = "put it back, or restart the agent"

ENDS_EARLY = "it ends before the size that it was listed with"


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


# Made once: an inventory opens a million files.
_NUMBER_OF_OPENAT2 = ctypes.c_long(_SYS_OPENAT2)
_SIZE_OF_HOW = ctypes.c_size_t(ctypes.sizeof(_OpenHow))


@lru_cache
def _how(flags: int) -> ctypes.Array[_OpenHow]:
    """Return how to open something beneath a folder, as the kernel wants to have it told."""
    return (_OpenHow * 1)(_OpenHow(flags, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGIC_LINKS))


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
        self._path = path
        self._number = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._identity = _identity(os.fstat(self._number))
        self._syscall = _syscall() if use_openat2 else None

    def close(self) -> None:
        """Let go of it."""
        os.close(self._number)

    def why_lost(self) -> str | None:
        """Return why it is not the folder any more that its path leads to; None: it is.

        A disk that was mounted there since, or taken away, leaves behind a folder that looks
        empty; so does whoever removes the folder.
        """
        try:
            found = self._path.stat()
        except PermissionError:
            return None  # the way there is closed to the agent, which is inside already
        except OSError as error:
            return f"the folder that is served is lost: {words_of(error)}; {REMEDY}"
        if _identity(found) != self._identity:
            return f"the folder that is served was replaced; {REMEDY}"
        return None

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

    def target_of(self, path: str) -> str:
        """Return where a link leads, as it says; raise OSError."""
        folder, _, name = path.rpartition("/")
        with closing(self.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as number:
            return os.readlink(name, dir_fd=number)

    def state_of(self, file: FileEntry) -> int | None:
        """Return whether a file is `AS_LISTED` or `CHANGED`, None: it is gone; raise OSError."""
        try:
            found = self.stat(file.path)
        except OSError as error:
            if error.errno in _GONE:
                return None
            raise
        if not stat.S_ISREG(found.st_mode):
            return None
        return AS_LISTED if is_as_listed(found, file) else CHANGED

    def stale(self, files: Iterable[FileEntry]) -> WireConfirmation:
        """Return which of the files have changed or gone; unreadable ones are found by reading."""
        changed: dict[str, None] = {}
        gone: dict[str, None] = {}
        for file in files:
            with suppress(OSError):
                state = self.state_of(file)
                if state != AS_LISTED:
                    (gone if state is None else changed)[file.path] = None
        return WireConfirmation(tuple(changed), tuple(gone))

    def confirm(
        self, files: Iterable[FileEntry], failures: Mapping[str, str] | None = None
    ) -> WireConfirmation:
        """Return which of the files are no more as they were listed, or cannot be read.

        Parameters
        ----------
        files : iterable of FileEntry
        failures : mapping of str to str
            Why files could not be read before, by path.
        """
        changed: dict[str, None] = {}
        gone: dict[str, None] = {}
        unreadable: dict[str, str] = {}
        for file in files:
            try:
                state = self.state_of(file)
                if state == AS_LISTED:
                    os.close(self.open(file.path))
            except OSError as error:
                unreadable[file.path] = words_of(error)
                continue
            if state is None:
                gone[file.path] = None
            elif state == CHANGED:
                changed[file.path] = None
            elif failures and file.path in failures:
                unreadable[file.path] = failures[file.path]
        return WireConfirmation(tuple(changed), tuple(gone), tuple(unreadable.items()))

    def _openat2(self, path: str, flags: int) -> int:
        assert self._syscall is not None
        how = _how(flags)
        number = self._syscall(
            _NUMBER_OF_OPENAT2,
            ctypes.c_int(self._number),
            ctypes.c_char_p(os.fsencode(path)),
            how,
            _SIZE_OF_HOW,
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
    failures : dict of str to str
        Why files could not be read to their end when that was tried last, by path; those that were
        known before, and what this reading has found.
    """

    def __init__(
        self,
        folder: Folder,
        segments: Sequence[WireSegment],
        failures: dict[str, str] | None = None,
    ) -> None:
        self.status = AS_LISTED
        self.failures = {} if failures is None else failures
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
                    n_bytes = self._read(number, part, offset, segment.file.path)
                    filled, left, offset = filled + n_bytes, left - n_bytes, offset + n_bytes
                    if filled == len(buffer):
                        yield buffer
                        filled = 0
        if filled:
            yield buffer[:filled]

    @contextmanager
    def _opened(self, file: FileEntry) -> Iterator[int | None]:
        """Open a file, compare it with the list before and after; None: it is not to be had."""
        self.failures.pop(file.path, None)
        try:
            number = self._folder.open(file.path)
        except OSError as error:
            self._fails(file.path, words_of(error))
            yield None
            return
        try:
            self._compare(number, file)
            yield number
            self._compare(number, file)
        finally:
            os.close(number)

    def _compare(self, number: int, file: FileEntry) -> None:
        try:
            found = os.fstat(number)
        except OSError as error:
            self._fails(file.path, words_of(error))
            return
        if not is_as_listed(found, file):
            self.status = max(self.status, CHANGED)

    def _read(self, number: int | None, part: memoryview, offset: int, path: str) -> int:
        """Fill some of the part, with zeros where nothing can be read."""
        if number is not None:
            try:
                n_bytes = os.preadv(number, [part], offset)
            except OSError as error:
                self._fails(path, words_of(error))
            else:
                if n_bytes:
                    return n_bytes
                self._fails(path, ENDS_EARLY)
        part[:] = bytes(len(part))
        return len(part)

    def _fails(self, path: str, why: str) -> None:
        """Remember why a file cannot be read; of too many, of the last."""
        self.status = CUT_SHORT
        if len(self.failures) >= MOST_FAILURES:
            del self.failures[next(iter(self.failures))]
        self.failures.setdefault(path, why)


def is_as_listed(found: os.stat_result, file: FileEntry) -> bool:
    """Return whether this is the very file that was listed, unchanged in size and time."""
    return stat.S_ISREG(found.st_mode) and (
        (found.st_size, found.st_mtime_ns, inode_of(found))
        == (file.n_bytes, file.mtime_ns, file.inode)
    )


def inode_of(found: os.stat_result) -> int:
    """Return the number of a file as it travels."""
    return found.st_ino % INODE_STOP


def words_of(error: OSError) -> str:
    """Return why something cannot be read, in the system's words."""
    return os.strerror(error.errno) if error.errno else str(error)


def extents_of(number: int, found: os.stat_result) -> tuple[tuple[int, int], ...] | None:
    """Return offset and length of each range of an open file that holds data.

    None: it has no holes, more ranges than are listed, or its file system does not report them.
    """
    n_bytes = found.st_size
    if found.st_blocks * BLOCK_UNIT_BYTES >= n_bytes:
        return None
    ranges: list[tuple[int, int]] = []
    at = 0
    while at < n_bytes and len(ranges) <= MOST_EXTENTS:
        try:
            start = os.lseek(number, at, os.SEEK_DATA)
            at = min(os.lseek(number, start, os.SEEK_HOLE), n_bytes)
        except OSError as error:
            if error.errno != errno.ENXIO:  # it does not know of holes
                return None
            break  # nothing but a hole is left
        if start < at:
            ranges.append((start, at - start))
    if len(ranges) > MOST_EXTENTS or ranges == [(0, n_bytes)]:
        return None
    return tuple(ranges)


@contextmanager
def closing(number: int) -> Iterator[int]:
    """Close a file descriptor at the end."""
    try:
        yield number
    finally:
        os.close(number)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _syscall() -> ctypes._FuncPointer | None:
    try:
        return ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return None
