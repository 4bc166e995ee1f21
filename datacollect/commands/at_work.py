"""Set-up of commands that may take long: their loudness, and how they are interrupted."""

from __future__ import annotations

import inspect
import logging
import time
import warnings
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeAlias

import typer

from datacollect.commands.console import note_text
from datacollect.commands.ending import ending_on_sigterm, saying_next
from datacollect.commands.last_steps import note_last_steps
from datacollect.commands.next_steps import next_steps
from datacollect.commands.streams import Loudness, as_loud_as
from datacollect.errors import DatacollectWarning, ProblemError
from datacollect.files.memory import require_libraries
from datacollect.files.stages import LOG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from datacollect.commands.next_steps import Given

    Steps: TypeAlias = Callable[[str, Given], Callable[[], str]]

LEVELS = (None, logging.INFO, logging.DEBUG)

Verbose = Annotated[
    int,
    typer.Option(
        "-v",
        "--verbose",
        count=True,
        show_default=False,
        help="Also show what happens and how long it takes; -vv: all log messages.",
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="Show no progress: only errors and the answer.")
]
_OPTIONS = [
    inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value, annotation=kind)
    for name, value, kind in (("verbose", 0, Verbose), ("quiet", False, Quiet))
]


def at_work(
    command: Callable[..., Any], *, logs: bool = True, steps: Steps = next_steps
) -> Callable[..., Any]:
    """Return a command with -v and --quiet, which says what to do next where it is interrupted.

    Parameters
    ----------
    command : callable
        A function for typer.
    logs : bool
        False: with -vv the command shows a log of its own.
    steps : callable
        Looks what is there before the command begins; returns what says what to do next.
    """

    @wraps(command)
    def run(*, verbose: int, quiet: bool, **given: Any) -> Any:
        if verbose and quiet:
            raise ProblemError("-v and --quiet cannot be combined; give one of them")
        verbose = min(verbose, len(LEVELS) - 1)
        level = LEVELS[verbose] if logs or verbose == 1 else None
        loud = Loudness(quiet, lines=not given.get("as_json"), verbose=verbose)
        words = steps(command.__name__, given)
        require_libraries()
        with (
            as_loud_as(loud),
            _logged(level),
            _noting_warnings(),
            ending_on_sigterm(),
            saying_next(words),
        ):
            code = command(**given)
            if not code:
                note_last_steps(command.__name__, given)
            return code

    signature = inspect.signature(command, eval_str=True)
    parameters = list(signature.parameters.values())
    at = next((i for i, each in enumerate(parameters) if each.name == "as_json"), len(parameters))
    # typer reads both.
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*parameters[:at], *_OPTIONS, *parameters[at:]]
    )
    run.__annotations__ = {**command.__annotations__, "verbose": Verbose, "quiet": Quiet}
    return run


@contextmanager
def _noting_warnings() -> Iterator[None]:
    """Write what the library warns of as notes, each once: not a category and a line of source."""
    noted: set[str] = set()
    with warnings.catch_warnings():
        show = warnings.showwarning

        def noting(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, DatacollectWarning):
                show(message, category, filename, lineno, file, line)
            elif (text := str(message)) not in noted:
                noted.add(text)
                note_text(f"note: {text}")

        warnings.simplefilter("always", DatacollectWarning)
        warnings.showwarning = noting
        yield


@contextmanager
def _logged(level: int | None) -> Iterator[None]:
    """Write what is logged from a level on to standard error; None: nothing."""
    if level is None:
        yield
        return
    handler, before = _Notes(), LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(level)
    try:
        yield
    finally:
        LOG.setLevel(before)
        LOG.removeHandler(handler)


class _Notes(logging.Handler):
    """Writes each line of the log with the seconds since the command has begun."""

    def __init__(self) -> None:
        super().__init__()
        self._begun_s = time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        note_text(f"{time.monotonic() - self._begun_s:.1f} s: {record.getMessage()}")
