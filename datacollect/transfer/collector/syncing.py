"""Getting written files onto the disk: each by itself, or where they are many all at once."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

# About 1900 files a second can be synced one by one; a file system syncs all of them in one go.
MANY = 64


def sync_files(folder_fd: int, names: Collection[int]) -> None:
    """Make sure that files of a folder, and their names there, outlast a loss of power.

    Files that are gone need not.
    """
    if not names:
        return
    if len(names) > MANY and _syncfs(folder_fd):
        return
    for name in names:
        with suppress(FileNotFoundError):
            fd = os.open(str(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder_fd)
            try:
                os.fdatasync(fd)
            finally:
                os.close(fd)
    os.fsync(folder_fd)


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _syncfs(fd: int) -> bool:
    """Sync a whole file system; False where the system cannot."""
    syncfs = getattr(_libc(), "syncfs", None)
    if syncfs is None:
        return False
    if syncfs(fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return True
