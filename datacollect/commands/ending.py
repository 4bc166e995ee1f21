"""Ends a program of ours: each error as one message on standard error, and an exit code."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

from datacollect.commands.streams import complain
from datacollect.errors import FULL, DatacollectError
from datacollect.files.memory import is_memory_short
from datacollect.files.refusals import refusal_of
from datacollect.leaving import FAILED, INTERRUPTED, interruption_behind

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
def saying_next(words: Callable[[], str]) -> Iterator[None]:
    """End with what is kept, and what to do next, if what is under way is interrupted.

    Parameters
    ----------
    words : callable
        Looks what is kept, once it is asked, and says so.
    """
    try:
        yield
    except BaseException as error:
        interruption = interruption_behind(error)
        if interruption is None or isinstance(error, DatacollectError):
            raise
        is_sigterm = isinstance(interruption, Terminated)
        complain(f"{'terminated' if is_sigterm else 'interrupted'}; {words()}")
        raise SystemExit(TERMINATED if is_sigterm else INTERRUPTED) from None


def exit_code_of(error: BaseException) -> int:
    """Say on standard error what has ended a program; return the exit code."""
    if isinstance(error, DatacollectError):
        complain(f"error: {error}")
        return error.exit_code
    # Loading a library may turn an interruption into an error of its own.
    if interruption_behind(error) is not None:
        complain("interrupted")
        return INTERRUPTED
    return _lacks_package(error) or _refused_by_system(error) or _internal_error(error)


def _lacks_package(error: BaseException) -> int | None:
    """Say which package is to be installed, where that is all; None: the error is another."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    package = error.name
    # A part of a package that is there is added by no installation.
    if "." in package or package in (*sys.stdlib_module_names, __name__.partition(".")[0]):
        return None
    from datacollect.installation import command_for_package

    _print_in_full(error)
    command = command_for_package(package)
    complain(
        f"error: this needs the package {package}, which is not installed; install it: {command}"
    )
    return FAILED


def _refused_by_system(error: BaseException) -> int | None:
    """Say what this host refuses, where that is all; None: the error is another."""
    is_refused = isinstance(error, OSError) and error.errno in (*FULL, errno.EACCES)
    if not is_refused and not isinstance(error, ImportError) and not is_memory_short(error):
        return None
    _print_in_full(error)
    reason, remedy = refusal_of(error)
    if not is_memory_short(error):
        reason = f"{type(error).__name__}: {error}"
    complain(f"error: this host refuses: {reason}; {remedy or 'fix that'}, and try again")
    return FAILED


def _print_in_full(error: BaseException) -> None:
    if os.environ.get("DATACOLLECT_DEBUG"):
        import traceback

        complain("".join(traceback.format_exception(error)).rstrip())


def _internal_error(error: BaseException) -> int:
    _print_in_full(error)
    complain(
        f"error: internal error: {type(error).__name__}: {error}; please report it with the "
        "command and its files (DATACOLLECT_DEBUG=1 shows where it happened)"
    )
    return FAILED
