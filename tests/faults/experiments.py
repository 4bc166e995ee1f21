"""Experiments: one fault each, by the call, its kind, and its count in the thread."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from faults.sites import Record

TARGETS = ("pull", "again", "S1", "R")
STRACE, SHIM, IMPORTS = "strace", "shim", "imports"
KILL, END, NOTHING, SLOW = "SIGKILL", "END", "NOTHING", "SLOW"
SLOW_S = 2.5

# The calls by group, for tables; calls of the shim are below.
GROUPS: dict[str, tuple[str, ...]] = {
    "sockets": (
        *("socket", "connect", "sendto", "sendmsg", "recvfrom", "recvmsg", "setsockopt"),
        *("getsockopt", "getsockname", "getpeername", "shutdown", "bind", "listen", "accept4"),
        "splice",
    ),
    "reading": ("read", "pread64", "preadv", "preadv2", "getdents64", "lseek", "sendfile"),
    "writing": ("write", "pwrite64", "pwritev", "pwritev2", "writev", "ftruncate", "fallocate"),
    "opening": ("openat", "openat2", "open", "dup", "fcntl", "flock", "close"),
    "looking": ("fstat", "newfstatat", "stat", "lstat", "statx", "statfs", "fstatfs", "access"),
    "naming": (
        *("mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2"),
        *("link", "linkat", "fchmod", "fchmodat", "chmod", "utimensat", "fchown"),
    ),
    "syncing": ("fsync", "fdatasync", "syncfs", "sync_file_range", "msync"),
    "memory and threads": ("mmap", "mprotect", "mremap", "clone3", "clone"),
    "waiting": ("poll", "ppoll", "select", "epoll_create1", "epoll_ctl", "epoll_wait", "eventfd2"),
}
_DISK = ("ENOSPC", "EIO", "EDQUOT", "EROFS")
_LOOK = ("EIO", "EACCES")
_NAME = ("ENOSPC", "EIO", "EACCES", "EROFS", "EDQUOT")
ERRORS: dict[str, tuple[str, ...]] = {
    "socket": ("EMFILE", "ENOBUFS", "EACCES"),
    "connect": ("ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH", "EADDRNOTAVAIL"),
    "sendto": ("ECONNRESET", "EPIPE", "ETIMEDOUT"),
    "sendmsg": ("ECONNRESET", "EPIPE", "ETIMEDOUT"),
    "recvfrom": ("ECONNRESET", "ETIMEDOUT", END, KILL),
    "recvmsg": ("ECONNRESET", "ETIMEDOUT", END),
    "setsockopt": ("ENOBUFS", "EINVAL"),
    "getsockopt": ("ENOBUFS",),
    "getsockname": ("ENOBUFS",),
    "getpeername": ("ENOTCONN",),
    "shutdown": ("ENOTCONN",),
    "bind": ("EADDRINUSE", "EACCES"),
    "listen": ("EADDRINUSE",),
    "accept4": ("EMFILE", "ECONNABORTED", "ENOBUFS"),
    "splice": ("ECONNRESET", "EIO", "ENOMEM", END),
    "read": ("EIO", "EACCES"),
    "pread64": ("EIO", "EACCES"),
    "preadv": ("EIO",),
    "preadv2": ("EIO", "EOPNOTSUPP"),
    "sendfile": ("EIO", "ECONNRESET"),
    "getdents64": ("EIO", "EACCES"),
    "lseek": ("EIO", "EINVAL"),
    "write": (*_DISK, KILL),
    "writev": (*_DISK, KILL),
    "pwrite64": (*_DISK, KILL, SLOW),
    "pwritev": (*_DISK, KILL),
    "pwritev2": (*_DISK, KILL),
    "ftruncate": (*_DISK, KILL),
    "fallocate": (*_DISK, "EOPNOTSUPP"),
    "openat": ("EMFILE", *_NAME, KILL),
    "openat2": ("EMFILE", "EIO", "EACCES", "ENOSYS"),
    "open": ("EMFILE", *_NAME),
    "dup": ("EMFILE",),
    "fcntl": ("ENOLCK", "EIO", "EINTR"),
    "flock": ("ENOLCK", "EIO"),
    "close": ("EIO", "ENOSPC", "EDQUOT", KILL),
    "fstat": _LOOK,
    "newfstatat": _LOOK,
    "stat": _LOOK,
    "lstat": _LOOK,
    "statx": _LOOK,
    "access": _LOOK,
    "statfs": ("EIO", "ENOSYS"),
    "fstatfs": ("EIO", "ENOSYS"),
    "mkdir": (*_NAME, KILL),
    "mkdirat": (*_NAME, KILL),
    "unlink": ("EIO", "EACCES", "EROFS", KILL),
    "unlinkat": ("EIO", "EACCES", "EROFS", KILL),
    "rmdir": ("EIO", "EACCES", "EROFS"),
    "rename": (*_NAME, KILL),
    "renameat": (*_NAME, KILL),
    "renameat2": (*_NAME, KILL),
    "link": (*_NAME, KILL),
    "linkat": (*_NAME, KILL),
    "fchmod": ("EPERM", "EIO", "EROFS", KILL),
    "fchmodat": ("EPERM", "EIO", "EROFS", KILL),
    "chmod": ("EPERM", "EIO", "EROFS", KILL),
    "utimensat": ("EPERM", "EIO", "EROFS", KILL),
    "fchown": ("EPERM", "EIO"),
    "fsync": ("EIO", "ENOSPC", "EDQUOT", "EINVAL", KILL, SLOW),
    "fdatasync": ("EIO", "ENOSPC", "EDQUOT", "EINVAL", KILL, SLOW),
    "syncfs": ("EIO", "ENOSPC", "EDQUOT", "ENOSYS", KILL),
    "sync_file_range": ("EIO", "ENOSPC"),
    "msync": ("EIO",),
    "mmap": ("ENOMEM",),
    "mprotect": ("ENOMEM",),
    "mremap": ("ENOMEM",),
    "clone3": ("EAGAIN", "ENOMEM", KILL),
    "clone": ("EAGAIN", "ENOMEM", KILL),
    "poll": ("EINTR", "ENOMEM", NOTHING),
    "ppoll": ("EINTR", "ENOMEM", NOTHING),
    "select": ("EINTR", "ENOMEM"),
    "epoll_create1": ("EMFILE", "ENOMEM"),
    "epoll_ctl": ("ENOMEM", "ENOSPC"),
    "epoll_wait": ("EINTR",),
    "eventfd2": ("EMFILE", "ENOMEM"),
}
# Reads and writes of a socket fail otherwise than those of a file, and may end.
ON_SOCKETS: dict[str, tuple[str, ...]] = {
    "read": ("ECONNRESET", "ETIMEDOUT", END, KILL),
    "write": ("ECONNRESET", "EPIPE", "ETIMEDOUT"),
    "writev": ("ECONNRESET", "EPIPE", "ETIMEDOUT"),
    "fcntl": ("EINVAL",),
    "close": (),  # nothing lies behind it that could fail
}
# Once more errors where the thing is of no use to whoever would wait: what fails for good.
ONWARD = frozenset({"ENOSPC", "EIO", "EMFILE", "EROFS", "ENOMEM", "EAGAIN", "ECONNREFUSED"})
# A disk that is full, or broken, refuses all of these.
FULL_DISK = "write,pwrite64,pwritev,ftruncate,fallocate,fsync,fdatasync,mkdirat,mkdir,renameat"
# What is read before a pull begins is the same at every start; tables would drown in it.
UNINTERESTING = ("import", "dev or proc", "stdin", "system file")
# These are only read: opening them needs no room.
ONLY_READ = re.compile(r"served data|\.(toml|pem|csv|key)$")
NEEDS_NO_ROOM = ("EMFILE", "EIO", "EACCES")

SHIM_ERRORS: dict[str, tuple[str, ...]] = {
    "thread.start": ("EAGAIN",),
    "process.start": ("EAGAIN", "ENOENT"),
    "clock": ("+1 day", "-1 day", "-20 years"),
    "sqlite.xOpen": ("CANTOPEN", "IOERR", "FULL"),
    "sqlite.xRead": ("IOERR", "GARBAGE", "CORRUPT", "NOMEM"),
    "sqlite.xWrite": ("FULL", "IOERR", "READONLY", KILL),
    "sqlite.xSync": ("IOERR", "FULL"),
    "sqlite.xTruncate": ("IOERR", "FULL"),
    "sqlite.xFileSize": ("IOERR",),
    "sqlite.xLock": ("BUSY", "IOERR"),
    "sqlite.xDelete": ("IOERR",),
    "sqlite.xAccess": ("IOERR",),
}
SHIM_OS: dict[str, tuple[str, ...]] = {
    "open": ("EMFILE", "ENOSPC", "EACCES", "EROFS", "EIO"),
    "read": ("EIO",),
    "pread": ("EIO",),
    "preadv": ("EIO",),
    "write": ("ENOSPC", "EIO", "SHORT"),
    "pwrite": ("ENOSPC", "EIO", "EDQUOT", "SHORT"),
    "pwritev": ("ENOSPC", "EIO", "EDQUOT"),
    "ftruncate": ("ENOSPC", "EIO"),
    "truncate": ("ENOSPC", "EIO"),
    "posix_fallocate": ("ENOSPC", "EOPNOTSUPP"),
    "fsync": ("EIO", "ENOSPC", "EOPNOTSUPP", KILL),
    "fdatasync": ("EIO", "ENOSPC", "EOPNOTSUPP", KILL),
    "mkdir": ("ENOSPC", "EACCES", "EROFS"),
    "makedirs": ("ENOSPC",),
    "unlink": ("EIO", "EACCES"),
    "rmdir": ("EIO",),
    "rename": ("ENOSPC", "EIO", "EACCES", KILL),
    "replace": ("ENOSPC", "EIO", "EACCES", KILL),
    "link": ("ENOSPC", "EIO"),
    "stat": ("EIO", "EACCES"),
    "lstat": ("EIO",),
    "fstat": ("EIO",),
    "statvfs": ("EIO", "ENOSYS"),
    "fstatvfs": ("EIO",),
    "scandir": ("EIO", "EACCES", "EMFILE"),
    "listdir": ("EIO", "EACCES", "EMFILE"),
    "chmod": ("EPERM", "EROFS"),
    "fchmod": ("EPERM", "EROFS"),
    "utime": ("EPERM", "EROFS"),
    "lseek": ("EINVAL",),
    "flock": ("ENOLCK", "EIO"),
}
SHIM_SOCKET: dict[str, tuple[str, ...]] = {
    "connect": ("ECONNREFUSED", "ETIMEDOUT", "EMFILE"),
    "bind": ("EADDRINUSE", "EACCES"),
    "send": ("ECONNRESET", "EPIPE"),
    "sendto": ("ECONNREFUSED", "ENOBUFS", "EPERM"),
    "recvfrom": ("ECONNREFUSED",),
    "recvmsg": ("ECONNREFUSED", "ENOBUFS"),
    "sendall": ("ECONNRESET", "EPIPE"),
    "recv": ("ECONNRESET", END),
    "recv_into": ("ECONNRESET", END),
    "do_handshake": ("ECONNRESET", "TLS"),
}


@dataclass(frozen=True)
class Experiment:
    """One failing call.

    Attributes
    ----------
    target : str
        Whose call: ``pull``, ``again`` (a pull that goes on), or the name of an agent.
    injector : str
        ``strace``, ``shim`` or ``imports``.
    call, kind : str
        The site.
    error : str
    n : int
        The how manieth call.
    onward : bool
        Whether all after it fail, too.
    paths : tuple of str
        What the tracer filters by.
    """

    target: str
    injector: str
    call: str
    kind: str
    error: str
    n: int
    onward: bool = False
    paths: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return what names it in a file of results."""
        n = f"{self.n}{'+' if self.onward else ''}"
        return f"{self.target}|{self.injector}|{self.call}|{self.kind}|{self.error}|{n}"

    @property
    def pair(self) -> tuple[str, ...]:
        """Return what is tried once where time is short: the site and the error."""
        return (self.target, self.injector, self.call, self.kind, self.error)

    @property
    def group(self) -> str:
        """Return the group of its call, for tables."""
        if self.injector == IMPORTS:
            return "imports"
        if self.injector == SHIM:
            first = self.call.partition(".")[0]
            names = {"os": "Python's os", "socket": "Python's sockets", "thread": "thread start"}
            return names.get(first, {"sqlite": "SQLite's files"}.get(first, first))
        if "," in self.call:
            return "the whole disk"
        if self.kind.startswith("tcp"):
            return "sockets" if self.call != "poll" else "waiting"
        return next((group for group, calls in GROUPS.items() if self.call in calls), "other")

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> Experiment:
        """Return what `to_dict` made plain data of."""
        return cls(**{**tree, "paths": tuple(tree["paths"])})


def errors_of(call: str, kind: str) -> tuple[str, ...]:
    """Return how a call of a site is made to fail."""
    if kind in UNINTERESTING:
        return ()
    if kind.startswith(("tcp", "unix")) and call in ON_SOCKETS:
        return ON_SOCKETS[call]
    if kind in ("pipe", "anon_inode") and not call.startswith("epoll"):
        return ()  # nothing lies behind them that could fail
    if kind in ("stdout", "stderr") and call != "write":
        return ()  # Python asks what they are before the program begins
    if call.startswith("open") and ONLY_READ.search(kind):
        return NEEDS_NO_ROOM
    return ERRORS.get(call, ())


def traced(target: str, record: Record, places: int) -> Iterator[Experiment]:
    """Yield the experiments of a record for a tracer: each site, error, some places."""
    for site in record.places:
        paths = tuple(sorted(record.filters[site]))
        for error in errors_of(site.call, site.kind):
            chosen = record.chosen(site, places)
            for n in chosen:
                yield Experiment(
                    target, STRACE, site.call, site.kind, error, n, onward=False, paths=paths
                )
            for n in chosen[: 1 + len(chosen) // 3] if error in ONWARD else ():
                yield Experiment(
                    target, STRACE, site.call, site.kind, error, n, onward=True, paths=paths
                )
    if target in ("pull", "again"):
        calls = ",".join(c for c in FULL_DISK.split(",") if any(s.call == c for s in record.places))
        for error in ("ENOSPC", "EIO", "EROFS", "EDQUOT"):
            for n in sorted({1, 2, 3, 5, 8, 12, 17, 23, 30, 40, 60, 90}):
                yield Experiment(target, STRACE, calls, "the whole disk", error, n, onward=True)


def shimmed(target: str, counts: Mapping[str, int], places: int) -> Iterator[Experiment]:
    """Yield the experiments of what the shim has counted in a clean run."""
    for site, total in counts.items():
        call, _, kind = site.partition("|")
        family, _, name = call.partition(".")
        tables = {"os": SHIM_OS, "socket": SHIM_SOCKET}
        errors = tables[family].get(name, ()) if family in tables else SHIM_ERRORS.get(call, ())
        for error in errors:
            chosen = sorted({max(1, round(total * i / places)) for i in range(1, places + 1)} | {1})
            for n in chosen[:places]:
                yield Experiment(target, SHIM, call, kind, error, n)
            if error in ONWARD | {"FULL", "IOERR", "READONLY", "BUSY"}:
                yield Experiment(target, SHIM, call, kind, error, chosen[0], onward=True)


def importing(n_calls: int, n_samples: int) -> Iterator[Experiment]:
    """Yield experiments with what the program reads of itself before and while it pulls."""
    for i in range(n_samples):
        n = 1 + round(i * (n_calls - 1) / max(1, n_samples - 1))
        for error in ("EMFILE", "EIO"):
            yield Experiment("pull", IMPORTS, "openat", "import", error, n)


def one_of_each_pair(experiments: Iterable[Experiment]) -> list[Experiment]:
    """Return the first experiment of each site and error."""
    found: dict[tuple[str, ...], Experiment] = {}
    for experiment in experiments:
        found.setdefault(experiment.pair, experiment)
    return [*found.values()]


def one_of_each_site(experiments: Iterable[Experiment]) -> list[Experiment]:
    """Return the first experiment of each site and error, whatever its target."""
    found: dict[tuple[str, ...], Experiment] = {}
    for experiment in experiments:
        found.setdefault(experiment.pair[1:], experiment)
    return [*found.values()]
