"""Attributes of files that are kept: permission bits and the time of the last change."""

from __future__ import annotations

import errno
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.transfer.store.state.reading import Stamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.transfer.protocol.source import Listed

# File systems that keep no modes, files of another owner, times beyond what is kept: all others
# are trouble with the disk.
_NOT_KEPT = {
    errno.EPERM,
    errno.EACCES,
    errno.EINVAL,
    errno.EOVERFLOW,
    errno.ENOTSUP,
    errno.ENOSYS,
}


@dataclass(frozen=True)
class StoreOptions:
    """Options for putting files into the destination folder.

    Attributes
    ----------
    overwrite : bool
        Whether files replace what is there already and is not a file of ours, unaltered.
    keep : bool
        Whether verified files count though their source does not confirm them any more.
    modes, times : bool
        Whether files and folders get the permission bits and the times that they have at their
        source.
    """

    overwrite: bool = False
    keep: bool = False
    modes: bool = True
    times: bool = True


def file_mode(mode: int) -> int:
    """Return the permission bits that a file gets here: nothing set-id, its owner reads and writes.

    >>> oct(file_mode(0o4444))
    '0o644'
    """
    return mode & 0o777 | 0o600


def folder_mode(mode: int) -> int:
    """Return the permission bits that a folder gets here: its owner may do everything.

    >>> oct(folder_mode(0o2555))
    '0o755'
    """
    return mode & 0o777 | 0o700


def finish_file(fd: int, listed: Listed, options: StoreOptions) -> tuple[Stamp, int | None]:
    """Give a whole file its mode and time; return what it looks like then, and the mode it got."""
    set_mode = None
    if options.modes and listed.mode is not None:
        with _unkept():
            os.fchmod(fd, file_mode(listed.mode))
            set_mode = listed.mode
    if options.times and listed.is_timed:
        set_time(fd, listed.mtime_ns)
    return stamp_of(os.fstat(fd)), set_mode


def set_time(fd: int, mtime_ns: int) -> None:
    """Set the time of the last change, as far as the file system takes it."""
    with _unkept():
        os.utime(fd, ns=(time.time_ns(), mtime_ns))


def finish_folder(fd: int, mode: int | None, mtime_ns: int | None, options: StoreOptions) -> bool:
    """Give a folder its mode and time; whether anything had to be set."""
    found = os.fstat(fd)
    is_changed = False
    if options.modes and mode is not None and found.st_mode & 0o7777 != folder_mode(mode):
        with _unkept():
            os.fchmod(fd, folder_mode(mode))
            is_changed = True
    if options.times and mtime_ns is not None and found.st_mtime_ns != mtime_ns:
        set_time(fd, mtime_ns)
        is_changed = True
    return is_changed


def stamp_of(found: os.stat_result) -> Stamp:
    """Return what a file looks like."""
    return Stamp(found.st_size, found.st_mtime_ns)


def is_as_placed(found: os.stat_result, placed: Stamp) -> bool:
    """Return whether a file looks as it did when it got its name."""
    return found.st_size == placed.n_bytes and placed.mtime_ns in (None, found.st_mtime_ns)


@contextmanager
def _unkept() -> Iterator[None]:
    """Pass over modes and times that a file system does not take."""
    try:
        yield
    except OverflowError:
        return
    except OSError as error:
        if error.errno not in _NOT_KEPT:
            raise
