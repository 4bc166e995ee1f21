"""Syncing of written files to the disk: each by itself, or many at once."""

from __future__ import annotations

import ctypes
import errno
import os
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from datacollect.files.durability import sync
from datacollect.files.refusals import UNSUPPORTED

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Sequence

    from datacollect.transfer.store.folder.paths import Folders

# About 1900 files a second can be synced one by one; a file system syncs all of them in one go.
MANY = 64


def sync_files(folder_fd: int, names: Collection[int], whole: Container[int] = frozenset()) -> None:
    """Make sure that files of a folder, and their names there, outlast a loss of power.

    Files that are gone need not. Of those that are `whole` modes and times do, too. Many are synced
    by one ``syncfs``, which puts all that was written to the file system before, data, sizes and
    names, on disk, as an ``fsync`` of each would. From Linux 5.8 on it reports any write that has
    failed since the folder was opened; before, it could be silent of such, and is not used.
    """
    if not names:
        return
    if len(names) > MANY and _syncfs(folder_fd):
        return
    for name in names:
        # One that is gone, or no file any more, is found out before it gets its name.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            fd = os.open(str(name), flags, dir_fd=folder_fd)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ELOOP):
                raise
            continue
        try:
            sync(fd, only_data=name not in whole)
        finally:
            os.close(fd)
    sync(folder_fd)


def sync_placed(folders: Folders, source: str, paths: Sequence[str]) -> None:
    """Make sure that files under their final names outlast a loss of power."""
    if len(paths) > MANY and _syncfs(folders.open((source,), make=False)):
        return
    for path in paths:
        *above, last = (source, *path.split("/"))
        folder_fd = folders.open(tuple(above), make=False)
        fd = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder_fd)
        try:
            sync(fd)
        finally:
            os.close(fd)
        folders.changed.add(tuple(above))
    folders.sync()


def tells_failures(release: str) -> bool:
    """Return whether ``syncfs`` of this kernel reports writes that failed (syncfs(2), 2020).

    >>> [tells_failures(text) for text in ("5.7.19", "5.8.0-rc1", "6.18", "4.19.0-27-amd64", "?")]
    [False, True, True, False, False]
    """
    found = re.match(r"(\d+)\.(\d+)", release)
    return found is not None and (int(found[1]), int(found[2])) >= (5, 8)


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _syncfs(fd: int) -> bool:
    """Sync a whole file system; False where the system cannot, or would not report failures."""
    syncfs = getattr(_libc(), "syncfs", None)
    if syncfs is None or not tells_failures(os.uname().release):
        return False
    if syncfs(fd) != 0:
        number = ctypes.get_errno()
        if number in UNSUPPORTED:
            return False
        raise OSError(number, os.strerror(number))
    return True
