"""Errors of the operating system in words: the one table of them, and of their remedies.

Whoever writes a file asks here. Which of them are no mistake of the user's is in `errors.FULL`.
"""

from __future__ import annotations

import errno
import os
import resource
from typing import NamedTuple

from datacollect.files.memory import RAISE_IT, is_limited, is_memory_short, memory_words

MAKE_ROOM, MEND_DISK = "make room", "repair the disk"
# What a file system says that cannot do such a thing at all, of fsync(2) that it syncs nothing of
# this kind, as folders on mounts over a network. It says nothing about the data.
UNSUPPORTED = frozenset((errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS))


class Refusal(NamedTuple):
    """Error of the system, and what mends it; None where it is not known."""

    reason: str
    remedy: str | None

    def __str__(self) -> str:
        """Return both in one."""
        return self.reason if self.remedy is None else f"{self.reason}; {self.remedy}"


_REMEDIES = {
    errno.ENOSPC: MAKE_ROOM,
    errno.EDQUOT: f"{MAKE_ROOM}, or have the quota raised",
    errno.EFBIG: "raise `ulimit -f`, or take a folder where files may be as large",
    errno.EIO: MEND_DISK,
    errno.EROFS: "mount it for writing",
    errno.EACCES: "give this user permission to write there",
    errno.EPERM: "give this user permission to write there",
    errno.ESTALE: "mount it again",
    errno.ETIMEDOUT: "check the server that it is mounted from",
    errno.ENOLCK: "take a folder on a file system with locks",
    errno.ENFILE: "end programs that hold files open, or raise fs.file-max (sysctl)",
    **dict.fromkeys(UNSUPPORTED, "take a folder on another file system: this one cannot do that"),
}


def refusal_of(error: BaseException) -> Refusal:
    """Return what to say of an error of the system, or of one that memory is short.

    >>> print(refusal_of(OSError(errno.ENOSPC, "No space left on device")))
    No space left on device; make room
    >>> print(refusal_of(OSError(errno.EXDEV, "Invalid cross-device link")))
    Invalid cross-device link
    """
    if is_memory_short(error):
        return Refusal(
            memory_words(), RAISE_IT if is_limited() else "stop other programs that use memory"
        )
    number = getattr(error, "errno", None)
    if number == errno.EMFILE:
        return _of_descriptors()
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return Refusal(reason, None if number is None else _REMEDIES.get(number))


def refusal_of_number(number: int) -> Refusal:
    """Return what to say of an error by its number alone, as SQLite keeps it."""
    return refusal_of(OSError(number, os.strerror(number)))


def no_thread(error: BaseException) -> Refusal:
    """Return what to say where a thread cannot be begun: memory is short, or threads are."""
    if is_memory_short(error):
        return refusal_of(error)
    return Refusal(f"this host can start no more threads: {error}", "stop what uses them")


def _of_descriptors() -> Refusal:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_own = hard == resource.RLIM_INFINITY or hard > soft
    return Refusal(
        f"{os.strerror(errno.EMFILE)}: this process may have {soft}",
        "raise `ulimit -n`" if is_own else "have the hard limit raised (`ulimit -Hn`)",
    )
