"""Output streams: answers go to standard output, notes and complaints to standard error."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import NotWrittenError, ProblemError
from datacollect.files.refusals import refusal_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# What a shell reports of a program that wrote into a closed pipe.
CLOSED_PIPE_EXIT_CODE = 141


def emit(text: str) -> None:
    """Write a line, or several, to standard output; end quietly where nobody reads any more."""
    if sys.stdout is None:  # started with >&-
        raise ProblemError(
            "standard output: is closed; open it, or send it to /dev/null if nobody reads it"
        )
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError as error:
        # Python flushes once more on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise SystemExit(CLOSED_PIPE_EXIT_CODE) from None
        message = f"standard output: cannot be written: {refusal_of(error)}"
        raise NotWrittenError(message, error.errno) from None


@dataclass(frozen=True)
class Loudness:
    """Amount that a command says beside its answer and its errors.

    Attributes
    ----------
    quiet : bool
        Nothing at all.
    lines : bool
        How far it is, by a line now and then, where no terminal is.
    verbose : int
        1: stages with their times; 2: all that the log has.
    """

    quiet: bool = False
    lines: bool = True
    verbose: int = 0


_loudness = [Loudness()]


def loudness() -> Loudness:
    """Return how much the command that runs is to say."""
    return _loudness[-1]


@contextmanager
def as_loud_as(wanted: Loudness) -> Iterator[None]:
    """Write these words."""
    _loudness.append(wanted)
    try:
        yield
    finally:
        _loudness.pop()


def note(text: str) -> None:
    """Write a line that nobody has to read to standard error, unless a command is to be quiet."""
    if not loudness().quiet:
        complain(text)


def complain(text: str) -> None:
    """Write a line to standard error; where that is closed or full, nobody can be told."""
    with suppress(OSError):
        if sys.stderr is not None:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()


def emit_json(tree: Mapping[str, Any]) -> None:
    """Write one JSON object to standard output; numbers that JSON lacks become null."""
    emit(json.dumps(_finite(tree), ensure_ascii=False, allow_nan=False, indent=2))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


@contextmanager
def without_logs() -> Iterator[None]:
    """Keep Dask's loggers from standard error: what goes wrong, commands say themselves.

    Not with -v, which asks for logs.
    """
    if loudness().verbose:
        yield
        return
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)
