"""Files and names that outlast a loss of power, as far as their file system promises that.

Some mounts know no sync of folders, or none at all, and say so (fsync(2): EINVAL and its like, see
`refusals.UNSUPPORTED`): that is a property of theirs, no failure. Any other error is one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from datacollect.files.refusals import UNSUPPORTED

if TYPE_CHECKING:
    from pathlib import Path

TRIED = ".sync"


def sync(fd: int, *, only_data: bool = False) -> bool:
    """Wait until an open file, or the names in an open folder, are on the disk.

    Parameters
    ----------
    fd : int
    only_data : bool, optional
        Whether times and modes need not be.

    Returns
    -------
    bool
        False where the file system does not know how.

    Raises
    ------
    OSError
        The disk has refused to keep what was written.
    """
    try:
        (os.fdatasync if only_data else os.fsync)(fd)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        return False
    return True


class Promise(NamedTuple):
    """Durability that a file system promises at a loss of power: of files, and of their names."""

    of_files: bool
    of_names: bool


def promise_of(folder_fd: int) -> Promise:
    """Try out what the file system of an open folder promises, with a file that is gone again.

    Raises
    ------
    OSError
        The disk is full, or fails.
    """
    flags = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(TRIED, flags, 0o600, dir_fd=folder_fd)
    try:
        of_files = sync(fd) and sync(fd, only_data=True)
    finally:
        os.close(fd)
        os.unlink(TRIED, dir_fd=folder_fd)
    return Promise(of_files, sync(folder_fd))


def synchronise(path: Path) -> bool:
    """Do the same for a file, or a folder, by its name."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return sync(fd)
    finally:
        os.close(fd)
