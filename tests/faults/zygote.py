"""A process that has imported the program, and makes copies of itself which run it.

A command line that imports everything again takes half a second; a copy begins at once, and what
it calls is what the program calls, without thousands of calls of imports. Run as a script it takes
requests on standard input, an object of JSON a line, and answers each with a line.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

POLL_S = 0.004
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
BEGINS_WHEN_TOLD = signal.SIGUSR1


def import_all(modules: list[str]) -> list[str]:
    """Import what a pull imports; return the modules that have started threads."""
    threaded, before = [], n_threads()
    for name in modules:
        if name not in sys.modules:
            with suppress(Exception):  # a pull that needs it says so
                importlib.import_module(name)
            threaded += [name] * (n_threads() - before)
            before = n_threads()
    return threaded


def take_requests(waiting) -> dict | None:
    """Answer requests; return None in the end, and in each copy what that copy has to do."""
    replies = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        if "fork" in request:
            pid = os.fork()
            if pid == 0:
                replies.close()
                return request["fork"]
            reply = {"pid": pid}
        elif "reap" in request:
            reply = {"status": reap(request["reap"], waiting(request["timeout_s"]))}
        else:
            reply = {"threaded": import_all(request["import"])}
            gc.freeze()
        try:
            replies.write(json.dumps(reply) + "\n")
            replies.flush()
        except BrokenPipeError:
            os._exit(1)  # who asked is gone
    return None


def n_threads() -> int:
    """Return how many threads this process has; 1 where nobody says so."""
    tasks = Path("/proc/self/task")
    return len([*tasks.iterdir()]) if tasks.is_dir() else 1


def reap(pid: int, waiting) -> int | None:
    """Return the exit code of a copy, negative for a signal; None if it goes on after a time."""
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if waiting.is_over():
            return None
        time.sleep(POLL_S)


def become(task: dict, shim) -> None:
    """Turn this copy into the program: its streams, its arguments, its fault."""
    os.setsid()
    with suppress(OSError, AttributeError):  # where the system knows of it
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
    for number, (path, flags) in enumerate(
        (
            (os.devnull, os.O_RDONLY),
            (task["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            (task["stderr"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        )
    ):
        fd = os.open(path, flags, 0o600)
        os.dup2(fd, number)
        os.close(fd)
    sys.argv = ["datacollect", *task["arguments"]]
    os.environ.update(task["environment"])
    if task["waits"]:
        signal.sigwait({BEGINS_WHEN_TOLD})
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {BEGINS_WHEN_TOLD})
    if task["fault"] is not None:
        shim.arm(task["fault"])


def main() -> None:
    """Serve until standard input ends; a copy leaves by the program's own exit."""
    # A copy may be told to begin before it waits to be told.
    signal.pthread_sigmask(signal.SIG_BLOCK, {BEGINS_WHEN_TOLD})
    # The wrappers stand before the program is imported: nothing binds what is beneath them.
    import shim
    from time_limits import Waiting

    # What lies beside this file is not the program's.
    sys.path = [folder for folder in sys.path if folder != str(Path(__file__).resolve().parent)]
    shim.install()
    import datacollect.__main__ as program

    task = take_requests(Waiting)
    if task is None:
        return
    try:
        become(task, shim)
    except BaseException:  # noqa: BLE001 - a copy must never go on as its parent
        traceback.print_exc()
        os._exit(99)
    program.main()


if __name__ == "__main__":
    main()
