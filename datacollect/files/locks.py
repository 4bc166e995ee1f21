"""Locks on files, by which a process shows that it is at work."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# NFS says the last one.
_ANOTHERS = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


def take_lock(number: int) -> bool:
    """Take the lock of an open file for this process alone; whether it was to be had.

    Raises
    ------
    OSError
        Another process does not have it: the file system has no locks, or fails.
    """
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _ANOTHERS:
            return False
        raise
    return True


def is_locked(path: Path) -> bool:
    """Whether another process has the lock of a file; no file and no locks: none has."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _ANOTHERS
    finally:
        os.close(number)
    return False
