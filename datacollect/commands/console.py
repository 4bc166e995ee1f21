"""What the command line shows: tables, facts, progress. Pretty on a terminal, plain when piped."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
import threading
from contextlib import contextmanager, suppress
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TextIO

from datacollect.errors import NotWrittenError, ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

# Progress shows once something takes longer.
PATIENCE_S = 1.0

# Columns of text do not get narrower, even where a table is then too wide.
LEAST_COLUMN = 12

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


def note_text(text: str) -> None:
    """Write a sentence to standard error, broken into lines that fit."""
    note(_wrapped(text, 0))


def emit_json(tree: Mapping[str, Any]) -> None:
    """Write one JSON object to standard output; numbers that JSON lacks become null."""
    emit(json.dumps(_finite(tree), ensure_ascii=False, allow_nan=False, indent=2))


def emit_table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: str = "") -> None:
    """Write a table.

    Parameters
    ----------
    headings : sequence of str
    rows : sequence of sequence of str
    right : str
        For each column ``"<"`` or ``">"``: where it is aligned; left if absent.
    """
    align = right.ljust(len(headings), "<")
    clean = [[_one_line(cell) for cell in row] for row in rows]
    if on_terminal(sys.stdout):
        emit(_rich_table(headings, clean, align))
    else:
        emit("\n".join(_plain_lines(_folded([list(headings), *clean], align), align)))


def emit_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Write names and values, the values below each other."""
    indent = max(len(name) for name, _ in facts) + 2
    for name, value in facts:
        emit(_wrapped(f"{name:<{indent}}{value}", indent))


def emit_text(text: str, indent: int = 0) -> None:
    """Write a sentence, broken into lines that fit."""
    emit(_wrapped(text, indent))


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal's standard error that something is going on, once it takes a while."""
    if not on_terminal(sys.stderr):
        yield
        return
    from rich.status import Status

    status = Status(f"{what} …", console=rich_console(sys.stderr))
    timer = threading.Timer(PATIENCE_S, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def on_terminal(stream: TextIO | None) -> bool:
    """Tell whether somebody watches a stream, which may be closed."""
    return stream is not None and stream.isatty()


def rich_console(stream: TextIO) -> Console:
    """Return rich's view of a stream, which shows text as it is."""
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False, emoji=False)


def _rich_table(headings: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> str:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    # Two blanks between columns, none outside: as much as can be in 80 columns.
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    for heading, side in zip(headings, align, strict=True):
        if side == ">":
            table.add_column(Text(heading), justify="right", no_wrap=True)
        else:
            table.add_column(Text(heading), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = rich_console(sys.stdout)
    with console.capture() as capture:
        console.print(table)
    return capture.get().strip("\n")


def _folded(rows: Sequence[Sequence[str]], align: str) -> list[list[str]]:
    """Fold the widest cells of text into several lines, until rows fit; numbers stay whole."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = [i for i, side in enumerate(align) if side == "<"]
    room = shutil.get_terminal_size().columns - 2 * (len(widths) - 1)
    while texts and sum(widths) > room:
        widest = max(texts, key=lambda i: widths[i])
        if widths[widest] <= LEAST_COLUMN:
            break
        widths[widest] -= 1
    lines: list[list[str]] = []
    for row in rows:
        cells = [
            textwrap.wrap(cell, width, break_on_hyphens=False) or [""] if i in texts else [cell]
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines += [list(line) for line in zip_longest(*cells, fillvalue="")]
    return lines


def _plain_lines(rows: Sequence[Sequence[str]], align: str) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, align, widths, strict=True)
        yield "  ".join(f"{cell:{side}{width}}" for cell, side, width in cells).rstrip()


def _wrapped(text: str, indent: int) -> str:
    # Piped too: 80 columns unless COLUMNS says otherwise. Programs read --json.
    width = shutil.get_terminal_size().columns
    return textwrap.fill(
        _one_line(text),
        max(width, indent + 20),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _one_line(text: str) -> str:
    """Escape control characters: names of hosts are others' text, and may not steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
