"""Sixty experiments of all groups, chosen by hand, each about a second: everyday tests take some.

They are named by patterns, so that a site counts though its file was given another name: the call,
the kind, the error, and which of the site's calls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from faults.experiments import KILL, SHIM, STRACE, Experiment

if TYPE_CHECKING:
    from collections.abc import Sequence

RENAME, MKDIR, FSYNC = r"(rename|link)(at2?)?", r"mkdir(at)?", r"fsync|syncfs"
STAT = r"l?stat|newfstatat|statx"
STAGED = r"incoming/N|staged"
FIRST, MIDDLE, LAST = 0.0, 0.5, 1.0


@dataclass(frozen=True)
class Wanted:
    """An experiment by patterns.

    Attributes
    ----------
    call, kind : str
        Regular expressions; all of the call has to match, a part of the kind.
    error : str
    at : float
        Which of the places known: 0 the first, 1 the last.
    onward : bool
    """

    call: str
    kind: str
    error: str
    at: float = FIRST
    onward: bool = False

    def found_in(self, experiments: Sequence[Experiment], injector: str) -> Experiment | None:
        """Return the experiment that is meant; None if there is no such site."""
        meant = [
            experiment
            for experiment in experiments
            if experiment.injector == injector
            and experiment.error == self.error
            and experiment.onward == self.onward
            and re.fullmatch(self.call, experiment.call)
            and re.search(self.kind, experiment.kind)
        ]
        return meant[round(self.at * (len(meant) - 1))] if meant else None


@dataclass(frozen=True)
class Group:
    """Experiments of one kind, made with the calls of one target."""

    target: str
    injector: str
    wanted: tuple[Wanted, ...]


SAMPLE: dict[str, Group] = {
    "sockets": Group(
        "pull",
        STRACE,
        (
            Wanted("socket", "", "EMFILE"),
            Wanted("connect", "tcp", "ETIMEDOUT"),
            Wanted("read|recvfrom", "tcp", "ECONNRESET", MIDDLE),
            Wanted("read|recvfrom", "tcp", "END", LAST),
            Wanted("setsockopt", "tcp", "ENOBUFS"),
        ),
    ),
    "full disk": Group(
        "pull",
        STRACE,
        (
            Wanted(".*,.*", "the whole disk", "ENOSPC", FIRST, onward=True),
            Wanted(".*,.*", "the whole disk", "ENOSPC", 0.3, onward=True),
            Wanted(".*,.*", "the whole disk", "EDQUOT", MIDDLE, onward=True),
            Wanted(".*,.*", "the whole disk", "EIO", 0.7, onward=True),
            Wanted("pwrite64|write", STAGED, "ENOSPC", FIRST, onward=True),
        ),
    ),
    "state": Group(
        "pull",
        STRACE,
        (
            Wanted("pwrite64", "sqlite-wal", "ENOSPC", MIDDLE),
            Wanted("fdatasync", "sqlite-wal", "EIO"),
            Wanted("openat", r"\.sqlite$", "EROFS"),
            Wanted("fcntl", r"\.sqlite$", "ENOLCK", MIDDLE),
            Wanted("pwrite64", "sqlite-journal", "ENOSPC"),
        ),
    ),
    "files under way": Group(
        "pull",
        STRACE,
        (
            Wanted("openat", STAGED, "EMFILE", MIDDLE),
            Wanted("pwrite64|write", STAGED, "EIO", LAST),
            Wanted("fdatasync|fsync|syncfs", STAGED, "ENOSPC"),
            Wanted("close", STAGED, "EIO"),
            Wanted("read|pread.*", STAGED, "EIO"),
        ),
    ),
    "names": Group(
        "pull",
        STRACE,
        (
            Wanted(RENAME, "final", "EACCES"),
            Wanted(RENAME, "final", "EDQUOT", MIDDLE),
            Wanted(MKDIR, "final", "EROFS"),
            Wanted(FSYNC, "final", "EIO"),
            Wanted("unlink(at)?", "", "EIO"),
        ),
    ),
    "kills": Group(
        "pull",
        STRACE,
        (
            Wanted("pwrite64", "sqlite-wal", KILL, MIDDLE),
            Wanted(RENAME, "final", KILL, MIDDLE),
            Wanted("fdatasync|fsync|syncfs", STAGED, KILL),
            Wanted(FSYNC, "final", KILL, LAST),
            Wanted(MKDIR, "", KILL),
        ),
    ),
    "looking": Group(
        "pull",
        STRACE,
        (
            Wanted("flock", "lock", "ENOLCK"),
            Wanted("f?statfs", "", "EIO"),
            Wanted("getdents64", "", "EIO"),
            Wanted(STAT, STAGED, "EIO"),
            Wanted(STAT, "sqlite", "EACCES"),
        ),
    ),
    "threads, memory, waiting": Group(
        "pull",
        STRACE,
        (
            Wanted("clone3?", "", "EAGAIN"),
            Wanted("clone3?", "", "ENOMEM", FIRST, onward=True),
            Wanted("clone3?", "", "EAGAIN", LAST),
            Wanted("mprotect", "process", "ENOMEM"),
            Wanted("poll|ppoll|select", "tcp", "EINTR"),
        ),
    ),
    "going on": Group(
        "again",
        STRACE,
        (
            Wanted("pread.*|read", "sqlite", "EIO"),
            Wanted("pwrite64", "sqlite-wal", "ENOSPC"),
            Wanted(RENAME, "final", "EIO"),
            Wanted("openat", STAGED, "EMFILE"),
            Wanted("fdatasync|fsync", "", KILL, MIDDLE),
        ),
    ),
    "an agent": Group(
        "S1",
        STRACE,
        (
            Wanted("accept4", "", "EMFILE"),
            Wanted("read|pread.*", "served data", "EIO"),
            Wanted("openat2?", "served data", "EACCES", LAST),
            Wanted("write|sendto", "tcp", "ECONNRESET", LAST),
            Wanted("read|recvfrom", "tcp", KILL, LAST),
        ),
    ),
    "inside of Python": Group(
        "pull",
        SHIM,
        (
            Wanted(r"os\.open", "", "EMFILE", MIDDLE),
            Wanted(r"os\.f(data)?sync", "", "EIO"),
            Wanted(r"os\.(rename|replace|link)", "", "ENOSPC"),
            Wanted(r"socket\.connect", "", "ETIMEDOUT"),
            Wanted(r"thread\.start", "", "EAGAIN", MIDDLE),
        ),
    ),
    "SQLite and clock": Group(
        "pull",
        SHIM,
        (
            Wanted(r"sqlite\.xWrite", "", "FULL", MIDDLE),
            Wanted(r"sqlite\.xLock", "", "BUSY"),
            Wanted(r"sqlite\.xRead", "", "GARBAGE"),
            Wanted(r"sqlite\.xSync", "", "IOERR"),
            Wanted("clock", "", "-20 years", MIDDLE),
        ),
    ),
}
