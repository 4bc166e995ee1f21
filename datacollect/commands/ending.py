"""How a program of ours ends: each error as one message on standard error, and an exit code."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

from datacollect.commands.streams import note
from datacollect.errors import FULL, DatacollectError
from datacollect.leaving import FAILED, INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

STDERR = 2
TERMINATED = 143


def run_and_leave(run: Callable[[Sequence[str]], int]) -> NoReturn:
    """Run a program with the arguments that it was given, and leave with its exit code."""
    _keep_first_descriptors()
    for stream in (sys.stdout, sys.stderr):
        # File names and hosts may hold what the terminal's encoding lacks.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    # From here on an interruption would only disturb what is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def _keep_first_descriptors() -> None:
    """Have no file opened as standard input, output or error, where one of these is closed.

    Whatever a library or the system writes to standard error would be written into it. Where this
    host has no room for that, the command will say so by itself.
    """
    with suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) <= STDERR:
            pass
        os.close(number)


class Terminated(KeyboardInterrupt):
    """SIGTERM came: end as after Ctrl-C, and say so."""


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end what is under way as Ctrl-C does: what is finished is kept."""

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def saying_next(words: str) -> Iterator[None]:
    """Where what is under way is interrupted, end with what to do next."""
    try:
        yield
    except Terminated:
        note(f"terminated; {words}")
        raise SystemExit(TERMINATED) from None
    except KeyboardInterrupt:
        note(f"interrupted; {words}")
        raise SystemExit(INTERRUPTED) from None


def exit_code_of(error: BaseException) -> int:
    """Say on standard error what has ended a program; return the exit code."""
    if isinstance(error, DatacollectError):
        note(f"error: {error}")
        return error.exit_code
    # Loading a library may turn an interruption into an error of its own.
    if _stems_from_interruption(error):
        note("interrupted")
        return INTERRUPTED
    return _lacks_package(error) or _refused_by_system(error) or _internal_error(error)


def _stems_from_interruption(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _lacks_package(error: BaseException) -> int | None:
    """Say which package is to be installed, where that is all; None: the error is another."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    package = error.name.partition(".")[0]
    if package in (*sys.stdlib_module_names, __name__.partition(".")[0]):
        return None
    from datacollect.installation import command_for_package

    _print_in_full(error)
    command = command_for_package(package)
    note(f"error: this needs the package {package}, which is not installed; install it: {command}")
    return FAILED


def _refused_by_system(error: BaseException) -> int | None:
    """Say what this host refuses, where that is all; None: the error is another."""
    # The last two are what file systems over a network say.
    refusals = (*FULL, errno.EACCES, errno.ETIMEDOUT, errno.ESTALE)
    is_refused = isinstance(error, OSError) and error.errno in refusals
    if not is_refused and not isinstance(error, ImportError | MemoryError):
        return None
    _print_in_full(error)
    note(f"error: this host refuses: {type(error).__name__}: {error}; mend that, and try again")
    return FAILED


def _print_in_full(error: BaseException) -> None:
    if os.environ.get("DATACOLLECT_DEBUG"):
        import traceback

        note("".join(traceback.format_exception(error)).rstrip())


def _internal_error(error: BaseException) -> int:
    _print_in_full(error)
    note(
        f"error: internal error: {type(error).__name__}: {error}; please report it with the "
        "command and its files (DATACOLLECT_DEBUG=1 shows where it happened)"
    )
    return FAILED
