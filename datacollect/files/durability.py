"""Files and names that outlast a loss of power, as far as their file system promises that.

Some mounts know no sync of folders, or none at all, and say so (fsync(2): EINVAL and its like, see
`refusals.UNSUPPORTED`): that is a property of theirs, no failure. Any other error is one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from datacollect.files.refusals import UNSUPPORTED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TRIED = ".sync"


def sync(fd: int, *, only_data: bool = False, is_required: bool = False) -> bool:
    """Wait until an open file, or the names in an open folder, are on the disk.

    Parameters
    ----------
    fd : int
    only_data : bool, optional
        Whether times and modes need not be.
    is_required : bool, optional
        Whether a file system that does not know how is one that fails: what others were promised
        could be lost.

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
        if is_required or error.errno not in UNSUPPORTED:
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


def synchronise(path: Path, *, is_required: bool = False) -> bool:
    """Do the same for a file, or a folder, by its name."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return sync(fd, is_required=is_required)
    finally:
        os.close(fd)


def name_durably(
    beside: Path,
    path: Path,
    *,
    fd: int | None = None,
    folders: Sequence[Path] | None = None,
    is_new: bool = False,
    is_required: bool = False,
) -> None:
    """Give a whole file that was written elsewhere its name: first its bytes are on the disk.

    Parameters
    ----------
    beside : Path
        Where it was written, in the same file system.
    path : Path
    fd : int, optional
        The file as it was written, where it is open still.
    folders : sequence of Path, optional
        Whose names are on the disk, too, when this returns; by default that of `path`. None of them
        where the caller has more to name first.
    is_new : bool, optional
        Whether nothing may be there; `beside` stays, too.
    is_required : bool, optional
        As `sync` takes it.

    Raises
    ------
    OSError
        The disk has refused to keep it, or something is there.
    """
    if fd is None:
        synchronise(beside, is_required=is_required)
    else:
        sync(fd, is_required=is_required)
    if is_new:
        os.link(beside, path)
    else:
        beside.replace(path)
    for folder in (path.parent,) if folders is None else folders:
        synchronise(folder, is_required=is_required)
