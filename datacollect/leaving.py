"""Exit of programs with their exit code, whatever streams, threads and interruptions do.

Nothing but the standard library is imported here: whoever interrupts while a program is loaded is
told so in one line.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

FAILED, INTERRUPTED = 3, 130
# What the dynamic loader says where a process gets no more addresses.
NO_SEGMENT = "failed to map segment"


def leave_with(load: Callable[[], Callable[[], NoReturn]]) -> NoReturn:
    """Load a program, run it, and leave with its exit code.

    Parameters
    ----------
    load : callable
        Imports what the program needs, and returns what runs it and leaves.
    """
    sys.unraisablehook = _unraisable
    sys.excepthook = _printed
    code: list[int] = []
    # Registered first, it is called last, after whatever cleans up.
    atexit.register(_leave_beside_threads, code)
    try:
        _run(load)
    except SystemExit as end:
        code += [end.code] if isinstance(end.code, int) else []
        raise
    finally:
        _drop_what_cannot_be_told()


def _run(load: Callable[[], Callable[[], NoReturn]]) -> NoReturn:
    try:
        _keep_streams_apart()
        run_and_leave = load()
    except (KeyboardInterrupt, Exception) as error:
        if interruption_behind(error) is not None:
            _say_interrupted()
            sys.exit(INTERRUPTED)
        # Too many open files, a disk that fails, an installation that is not whole.
        if not isinstance(error, OSError | ImportError | MemoryError):
            raise
        is_memory = isinstance(error, MemoryError) or NO_SEGMENT in str(error)
        remedy = "memory is short: raise `ulimit -v`" if is_memory else "fix that"
        _say(f"error: datacollect cannot be loaded: {type(error).__name__} {error}; {remedy}")
        sys.exit(FAILED)
    try:
        run_and_leave()
    except KeyboardInterrupt:
        _say_interrupted()
    sys.exit(INTERRUPTED)


def interruption_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the interruption that an error stems from.

    What is loaded may turn one into an error of its own: packages in C++ say "initialization
    failed", and Python before 3.12 says that a descriptor could not be named.

    >>> try:
    ...     raise RuntimeError from KeyboardInterrupt()
    ... except RuntimeError as error:
    ...     interruption_behind(error)
    KeyboardInterrupt()
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return error
        error = error.__cause__ or error.__context__
    return None


def _leave_beside_threads(code: list[int]) -> None:
    """End at once where threads go on, as those that are connecting still.

    They would run on while OpenSSL and Python take themselves apart, and end the program by a
    signal, whatever its exit code was.
    """
    if code and threading.active_count() > 1:
        _drop_what_cannot_be_told()
        os._exit(code[0])


def _drop_what_cannot_be_told() -> None:
    """Forget what the standard streams do not take; of standard output this was said already.

    Python writes it once more on its way out, and where that fails makes the exit code 120.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            setattr(sys, name, None)
            with suppress(OSError):  # too many open files
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _keep_streams_apart() -> None:
    """Occupy the places of closed streams: a file opened there would get what is meant for them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _unraisable(mishap: sys.UnraisableHookArgs) -> None:
    """End the program by an interruption that Python can only ignore, as in destructors."""
    if issubclass(mishap.exc_type, KeyboardInterrupt):
        _say_interrupted()
        os._exit(INTERRUPTED)
    sys.__unraisablehook__(mishap)


def _printed(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """End the program by an interruption that C code only prints, as where it imports modules."""
    if issubclass(kind, KeyboardInterrupt):
        _say_interrupted()
        os._exit(INTERRUPTED)
    sys.__excepthook__(kind, error, traceback)


def _say_interrupted() -> None:
    _say("interrupted")


def _say(text: str) -> None:
    if sys.stderr is not None:
        with suppress(OSError):  # nobody can be told
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
