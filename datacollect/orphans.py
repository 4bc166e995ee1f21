"""Child processes that end with their parent, however that ends.

Nobody tells a child whose parent is killed. So the parent keeps one end of a pipe open as long as
it lives; the kernel closes it, and that ends the child. Linux ends it by a signal, whatever it
does: solvers hold Python's lock for hours, and no thread gets its turn. `PR_SET_PDEATHSIG` would
end it with the *thread* that has started it, while the parent goes on; a pipe does not, and says
also of a parent that has ended before the child looks. Programs of others do not look: one is left
behind by a parent that is killed in the instant between starting it and asking the kernel.

Nothing but the standard library is imported here.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from pathlib import Path

# What a process leaves with whose parent is gone.
ORPHANED = 1


def end_with_parent() -> None:
    """End this process when its parent has ended: one that `multiprocessing` has spawned."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    end_when_closed(parent.sentinel)


def end_when_closed(pipe: int) -> None:
    """End this process when nobody has the other end of a pipe any more that carries nothing."""
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    _have_ended(os.getpid(), pipe)
    if _is_closed(pipe):  # before the kernel was asked to tell
        os._exit(ORPHANED)
    threading.Thread(target=_wait, args=(pipe,), name="waits for the parent", daemon=True).start()


@contextmanager
def held_pipe() -> Generator[int]:
    """Lend the end of a pipe that a child is given; the other is open within, while we live."""
    theirs, ours = os.pipe()
    try:
        yield theirs
    finally:
        os.close(ours)
        os.close(theirs)


def run_program(
    command: Sequence[str], folder: Path, timeout_s: float | None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program in a folder, without input; on Linux it ends with us, however we end.

    Raises
    ------
    TimeoutExpired
        It was ended.
    """
    with (
        held_pipe() as pipe,
        subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[pipe],
        ) as process,
    ):
        try:
            _have_ended(process.pid, pipe)
            out, errors = process.communicate(timeout=timeout_s)
        except BaseException:
            process.kill()
            raise
        return subprocess.CompletedProcess(command, process.returncode, out, errors)


@contextmanager
def running_program(command: Sequence[str]) -> Generator[subprocess.Popen[str]]:
    """Run a program whose output is read as text; it ends with the block, and on Linux with us."""
    with (
        held_pipe() as pipe,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[pipe],
        ) as process,
    ):
        try:
            _have_ended(process.pid, pipe)
            yield process
        finally:
            process.kill()


def begun_program(
    command: Sequence[str], pipe: int, log: IO[bytes], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Begin a program whose output is read; on Linux it ends with whoever holds the pipe's end.

    Parameters
    ----------
    command : sequence of str
    pipe : int
        What `held_pipe` has lent.
    log : file
        Takes what it writes to standard error.
    environment : mapping of str to str

    Raises
    ------
    OSError
        This host cannot.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        env=environment,
        pass_fds=[pipe],
        # Ctrl-C is for the parent, who ends them in order.
        start_new_session=True,
    )
    _have_ended(process.pid, pipe)
    return process


def _have_ended(pid: int, pipe: int) -> None:
    """Have the kernel send SIGIO, which ends a process, when the other end is closed."""
    if sys.platform == "linux":  # others ignore the signal where it is not handled
        fcntl.fcntl(pipe, fcntl.F_SETOWN, pid)
        fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)


def _is_closed(pipe: int, timeout_ms: int | None = 0) -> bool:
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return bool(poll.poll(timeout_ms))


def _wait(pipe: int) -> None:
    if _is_closed(pipe, None):
        os._exit(ORPHANED)
