"""Locks on files, by which a process shows that it is at work."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LOOKED_AT_S = 0.05
# NFS says the last one.
_ANOTHERS = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


def take_lock(number: int, within_s: float = LOOKED_AT_S) -> bool:
    """Take the lock of an open file for this process alone; whether it was to be had in time.

    Raises
    ------
    OSError
        Another process does not have it: the file system has no locks, or fails.
    """
    # Whoever looks whether it is taken has it for an instant.
    until_s = time.monotonic() + within_s
    while True:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _ANOTHERS:
                raise
            if time.monotonic() >= until_s:
                return False
            time.sleep(within_s / 20)
        else:
            return True


def is_locked(path: Path) -> bool:
    """Return whether another process has the lock of a file; no file and no locks: none has."""
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
