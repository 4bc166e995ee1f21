"""Faults inside of Python: in a copy of the process, calls of the standard library fail.

It takes the place of a tracer where none may trace, and makes what no tracer can: SQLite's own
errors, garbage in its files, threads that do not start, clocks that jump. `install` puts wrappers
in place, which do nothing until `arm` says which call fails: by its caller in the program, counted
over all threads. Nothing here is imported by the program.
"""

from __future__ import annotations

import atexit
import builtins
import errno
import fcntl
import functools
import io
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import Any

OS_CALLS = (
    *("open", "read", "pread", "preadv", "write", "pwrite", "pwritev", "ftruncate", "truncate"),
    *("lseek",),
    *("posix_fallocate", "fsync", "fdatasync", "mkdir", "makedirs", "unlink", "rmdir", "rename"),
    *("replace", "link", "stat", "lstat", "fstat", "statvfs", "fstatvfs", "scandir", "listdir"),
    *("chmod", "fchmod", "utime"),
)
SOCKET_CALLS = (
    *("connect", "bind", "send", "sendall", "sendto", "recv", "recv_into", "recvfrom", "recvmsg"),
    "do_handshake",
)
# Called by whoever has something synced: that is who a call counts for.
BETWEEN = "/files/durability.py"
DAY_S = 86_400.0
JUMPS_S = {"+1 day": DAY_S, "-1 day": -DAY_S, "-20 years": -20 * 365 * DAY_S}
END, KILL, SHORT, TLS, GARBAGE = "END", "SIGKILL", "SHORT", "TLS", "GARBAGE"
_open, _write, _close = os.open, os.write, os.close


class _Armed:
    """Call that fails, and how often each was called."""

    def __init__(self) -> None:
        self.fault: dict[str, Any] | None = None
        self.package = ""
        self.counts: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.shift_s = 0.0
        self.inside = threading.local()

    def hit(self, call: str, kind: str | None = None) -> str | None:
        """Count a call; return the error it is to fail with."""
        fault = self.fault
        if fault is None or getattr(self.inside, "on", False):
            return None
        if "record" not in fault and fault["call"] != call:
            return None
        self.inside.on = True
        try:
            kind = self._caller() if kind is None else kind
            if kind is None:
                return None
            site = f"{call}|{kind}"
            with self.lock:
                self.counts[site] += 1
                n = self.counts[site]
            if "record" in fault or fault["kind"] != kind:
                return None
            if not (n == fault["n"] or (fault["onward"] and n > fault["n"])):
                return None
            self._note(fault, site, n)
            return fault["error"]
        finally:
            self.inside.on = False

    def _caller(self) -> str | None:
        """Return the file and function of the program that made this call; None for nobody."""
        frame = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.endswith(BETWEEN):
                frame = frame.f_back
                continue
            if file.startswith(self.package):
                name = file[len(self.package) :].rpartition("/")[2]
                return f"{name}:{frame.f_code.co_name}"
            if file.startswith("<frozen importlib"):
                return None  # an import, which has experiments of its own
            frame = frame.f_back
        return None

    def _note(self, fault: dict[str, Any], site: str, n: int) -> None:
        fd = _open(fault["hits"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        _write(fd, f"{site}|{n}\n".encode())
        _close(fd)

    def write_counts(self) -> None:
        """Leave what was counted in the file that was named for it."""
        self.inside.on = True
        fd = _open(self.fault["record"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        _write(fd, json.dumps(self.counts).encode())
        _close(fd)


ARMED = _Armed()


def arm(fault: dict[str, Any]) -> None:
    """Let a call fail from now on, or count calls for a record."""
    import datacollect

    ARMED.package = os.path.dirname(datacollect.__file__) + "/"  # noqa: PTH120
    if fault.get("call", "sqlite").startswith("sqlite"):
        _install_sqlite()
    ARMED.fault = fault
    if "record" in fault:
        atexit.register(ARMED.write_counts)


def install() -> None:
    """Put the wrappers in place; they are transparent until one is armed."""
    for name in OS_CALLS:
        if hasattr(os, name):
            real = getattr(os, name)
            wrapper = _wrapped(f"os.{name}", real, name)
            for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
                able |= {wrapper} if real in able else set()
            setattr(os, name, wrapper)
    fcntl.flock = _wrapped("os.flock", fcntl.flock, "flock")
    # Paths are opened by the one name, text files by the other.
    io.open = builtins.open = _wrapped("os.open", io.open, "open")
    for name in SOCKET_CALLS:
        for kind in (socket.socket, ssl.SSLSocket):
            if name in vars(kind) or (kind is socket.socket and hasattr(kind, name)):
                setattr(kind, name, _wrapped(f"socket.{name}", getattr(kind, name), name))
    # The one since Python 3.13, the other before.
    for name in ("_start_joinable_thread", "_start_new_thread"):
        if hasattr(threading, name):
            setattr(threading, name, _wrapped("thread.start", getattr(threading, name), "thread"))
    starts = subprocess.Popen._execute_child
    subprocess.Popen._execute_child = _wrapped("process.start", starts, "process")
    real_time, real_time_ns = time.time, time.time_ns

    def shifted_time() -> float:
        _jump()
        return real_time() + ARMED.shift_s

    def shifted_time_ns() -> int:
        _jump()
        return real_time_ns() + int(ARMED.shift_s * 1e9)

    time.time, time.time_ns = shifted_time, shifted_time_ns


def _jump() -> None:
    error = ARMED.hit("clock", "wall") if ARMED.fault is not None else None
    if error is not None and ARMED.shift_s == 0.0:
        ARMED.shift_s = JUMPS_S[error]


def _wrapped(call: str, real, name: str):
    """Return a call that fails when its turn has come."""

    @functools.wraps(real, updated=())
    def wrapper(*args, **kwargs):
        if ARMED.fault is not None and (error := ARMED.hit(call)) is not None:
            if error == SHORT:  # some of the bytes are written, and it says so
                return real(args[0], memoryview(args[1])[:1], *args[2:], **kwargs)
            return _fail(error, name)
        return real(*args, **kwargs)

    return wrapper


def _fail(error: str, name: str):
    if error == KILL:
        os.kill(os.getpid(), signal.SIGKILL)
    if error == END:
        return 0 if name == "recv_into" else b""
    if error == TLS:
        raise ssl.SSLError(1, "[SSL: DECRYPTION_FAILED] an injected fault")
    if name == "thread":
        raise RuntimeError("can't start new thread")
    number = getattr(errno, error)
    if name in SOCKET_CALLS and error == "ETIMEDOUT":
        raise TimeoutError(number, os.strerror(number))
    raise OSError(number, os.strerror(number))


def _install_sqlite() -> None:
    """Put a file system of ours between SQLite and its files."""
    import apsw

    base = apsw.vfs_names()[0]
    errors = {
        "FULL": apsw.FullError,
        "IOERR": apsw.IOError,
        "BUSY": apsw.BusyError,
        "READONLY": apsw.ReadOnlyError,
        "CORRUPT": apsw.CorruptError,
        "CANTOPEN": apsw.CantOpenError,
        "NOMEM": apsw.NoMemError,
    }

    def failing(call: str, kind: str) -> bool:
        """Raise what is to be raised; return whether what is read is to be garbage."""
        error = ARMED.hit(f"sqlite.{call}", kind)
        if error is None:
            return False
        if error == KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        if error == GARBAGE:
            return True
        raise errors[error](f"{error}: an injected fault")

    class File(apsw.VFSFile):
        def __init__(self, name, flags):
            super().__init__(base, name, flags)
            path = name.filename() if hasattr(name, "filename") else str(name)
            self.kind = _kind(path)

        def excepthook(self, *_):
            pass

        def xRead(self, amount, offset):  # noqa: N802 - SQLite's name
            data = super().xRead(amount, offset)
            return bytes(b ^ 0xA5 for b in data) if failing("xRead", self.kind) else data

        def xWrite(self, data, offset):  # noqa: N802
            failing("xWrite", self.kind)
            return super().xWrite(data, offset)

        def xSync(self, flags):  # noqa: N802
            failing("xSync", self.kind)
            return super().xSync(flags)

        def xTruncate(self, size):  # noqa: N802
            failing("xTruncate", self.kind)
            return super().xTruncate(size)

        def xFileSize(self):  # noqa: N802
            failing("xFileSize", self.kind)
            return super().xFileSize()

        def xLock(self, level):  # noqa: N802
            failing("xLock", self.kind)
            return super().xLock(level)

    class Files(apsw.VFS):
        def __init__(self):
            super().__init__("faults", base, makedefault=True)

        def excepthook(self, *_):
            pass

        def xOpen(self, name, flags):  # noqa: N802
            path = name.filename() if hasattr(name, "filename") else str(name)
            failing("xOpen", _kind(path))
            return File(name, flags)

        def xDelete(self, path, sync):  # noqa: N802
            failing("xDelete", _kind(path))
            return super().xDelete(path, sync)

        def xAccess(self, path, flags):  # noqa: N802
            failing("xAccess", _kind(path))
            return super().xAccess(path, flags)

    ARMED.files = Files()  # it is gone when nobody holds it


def _kind(path: str) -> str:
    for end in ("-wal", "-journal", "-shm"):
        if path.endswith(end):
            return end[1:]
    return "database"
