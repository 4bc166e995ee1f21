"""What commands write: lines and JSON to standard output, notes to standard error."""

from __future__ import annotations

import json
import math
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from datacollect.errors import NotWrittenError, ProblemError

if TYPE_CHECKING:
    from collections.abc import Mapping

# What a shell reports of a program that wrote into a closed pipe.
CLOSED_PIPE_EXIT_CODE = 141


def emit(text: str) -> None:
    """Write a line, or several, to standard output; end quietly where nobody reads any more."""
    if sys.stdout is None:  # started with >&-
        raise ProblemError(
            "standard output: is closed; open it, or send it to /dev/null where nobody reads it"
        )
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError as error:
        # Python flushes once more on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise SystemExit(CLOSED_PIPE_EXIT_CODE) from None
        message = f"standard output: cannot be written: {error.strerror}"
        raise NotWrittenError(message, error.errno) from None


def note(text: str) -> None:
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
