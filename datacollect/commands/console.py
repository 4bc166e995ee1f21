"""Output of the command line: tables, facts, progress. Pretty on a terminal, plain when piped."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import threading
import time
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, TextIO

from datacollect.commands.streams import complain, emit, emit_json, loudness, note
from datacollect.files.stages import listening, stage
from datacollect.files.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from datacollect.numbers.pace import Pace

# Commands find here all that writes; what needs the standard library alone lies in `streams`.
__all__ = [
    "amounts_shown",
    "complain",
    "complain_text",
    "emit",
    "emit_facts",
    "emit_json",
    "emit_table",
    "emit_text",
    "is_watched",
    "lines_written",
    "note",
    "note_text",
    "on_terminal",
    "progress_shown",
    "rich_console",
    "working",
]

# Progress shows once something takes longer.
PATIENCE_S = 1.0

# How often words are written again that may change more often.
RARELY_S = 0.2

# How often a line is written where nobody watches a terminal: rarely, for it may be a log.
LINE_S = 60.0

# Columns of text do not get narrower.
LEAST_COLUMN = 12
# But for tables with so many of them that they would not fit otherwise.
BARE_COLUMN = 4


def note_text(text: str) -> None:
    """Write a sentence as `note` does, broken into lines that fit."""
    note(_wrapped(text, 0))


def complain_text(text: str) -> None:
    """Write a sentence as `complain` does, broken into lines that fit."""
    complain(_wrapped(text, 0))


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
    lines, gap = _folded(list(headings), clean, align)
    if not lines:
        emit("\n\n".join("\n".join(_record(headings, row)) for row in clean))
    elif on_terminal(sys.stdout):
        emit(_rich_table(lines, align, gap))
    else:
        emit("\n".join(_plain_lines([line for row in lines for line in row], align, gap)))


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
    """Show on standard error that something is going on, once it takes a while, and how far it is.

    On a terminal at once; elsewhere by a line now and then. With ``-v`` its time is shown.
    """
    far = _HowFar(what)
    with stage(what):
        if not is_watched():
            yield
        elif not on_terminal(sys.stderr):
            with listening(far.note), lines_written(far.line):
                yield
        else:
            with _turning(far):
                yield


class _HowFar:
    """Progress of something whose steps may be counted."""

    def __init__(self, what: str) -> None:
        self._what, self._begun_s = what, time.monotonic()
        self._steps = ""
        self._pace: Pace | None = None

    def note(self, done: int, everything: int, unit: str) -> None:
        """Note how many steps are done."""
        from datacollect.numbers.pace import Pace, left_words, percent_words, two_digits

        if not done or self._pace is None:
            self._pace = Pace()
        self._pace.note(time.monotonic(), done)
        parts = [f"{percent_words(done, everything)}: {done} of {everything} {unit}"]
        if self._pace.rate and done < everything:
            parts.append(f"{two_digits(60 * self._pace.rate)} a minute")
            parts += filter(None, [left_words(self._pace.left_s(everything - done))])
        self._steps = ", ".join(parts) if everything else ""

    def line(self) -> str:
        """Return it for a log."""
        so_far = f"{format_duration(round(time.monotonic() - self._begun_s))} so far"
        return f"{self._what}: {', '.join(filter(None, [self._steps, so_far]))}"

    def words(self) -> str:
        """Return it for a terminal."""
        return f"{self._what} … {self._steps}".rstrip()


@contextmanager
def _turning(far: _HowFar) -> Iterator[None]:
    """Show on a terminal how far something is, beside what turns, once it takes a while."""
    from rich.status import Status

    status = Status(far.words(), console=rich_console(sys.stderr))

    def note_step(done: int, everything: int, unit: str) -> None:
        far.note(done, everything, unit)
        status.update(far.words())

    timer = threading.Timer(PATIENCE_S, status.start)
    timer.daemon = True
    timer.start()
    try:
        with listening(note_step):
            yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


@contextmanager
def progress_shown() -> Iterator[Callable[[str], None]]:
    """Yield what shows how far something is, in one line of standard error.

    On a terminal the line is replaced each time; elsewhere one is written now and then.
    """
    if not is_watched():
        yield lambda _: None
        return
    if on_terminal(sys.stderr):
        from rich.live import Live

        with Live(console=rich_console(sys.stderr), transient=True) as live:
            yield live.update
        return
    last = [""]
    with lines_written(lambda: last[0]):
        yield lambda text: last.__setitem__(0, text)


def amounts_shown(show: Callable[[str], None]) -> Callable[[int, int, int, int], None]:
    """Return what shows how many files and bytes are done, of how many; it may come often."""
    from datacollect.numbers.pace import Pace, amount_words

    pace, next_s = Pace(), 0.0

    def tell(n_files: int, n_bytes: int, all_files: int, all_bytes: int) -> None:
        nonlocal next_s
        now_s = time.monotonic()
        if now_s >= next_s:
            pace.note(now_s, n_bytes)
            show(", ".join(amount_words(n_bytes, all_bytes, n_files, all_files, pace)))
            next_s = now_s + RARELY_S

    return tell


@contextmanager
def lines_written(words: Callable[[], str]) -> Iterator[None]:
    """Write a line to standard error every `LINE_S` while something goes on."""
    over = threading.Event()

    def tell() -> None:
        while not over.wait(LINE_S):
            if line := words():
                note(line)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def is_watched() -> bool:
    """Tell whether how far something is goes anywhere."""
    return not loudness().quiet and (loudness().lines or on_terminal(sys.stderr))


def on_terminal(stream: TextIO | None) -> bool:
    """Tell whether somebody watches a stream, which may be closed, on more than a dumb terminal.

    There, rich would show no progress at all; lines now and then are shown everywhere.
    """
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def rich_console(stream: TextIO) -> Console:
    """Return rich's view of a stream, which shows text as it is."""
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False, emoji=False)


def _rich_table(rows: Sequence[Sequence[Sequence[str]]], align: str, gap: int) -> str:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    def cells(lines: Sequence[Sequence[str]]) -> list[Text]:
        return [Text("\n".join(column).rstrip("\n")) for column in zip(*lines, strict=True)]

    # Of the blanks between columns the box is one; none outside: much has to be in 80 columns.
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, gap - 1, 0, 0), pad_edge=False)
    for heading, side in zip(cells(rows[0]), align, strict=True):
        table.add_column(heading, justify="right" if side == ">" else "left", no_wrap=True)
    for row in rows[1:]:
        table.add_row(*cells(row))
    console = rich_console(sys.stdout)
    with console.capture() as capture:
        console.print(table)
    return capture.get().strip("\n")


def _folded(
    headings: Sequence[str], rows: Sequence[Sequence[str]], align: str
) -> tuple[list[list[list[str]]], int]:
    """Fold headings, then the widest cells of text, until rows fit; numbers stay whole.

    Words are broken only where neither folding between them nor a smaller gap helps.

    Returns
    -------
    lines : list of list of list of str
        The lines of each row, headings first, and their cells; none where nothing makes them fit.
    gap : int
        Blanks between columns.
    """
    columns = [[row[i] for row in rows] for i in range(len(headings))]
    words = [_longest([heading]) for heading in headings]
    cells = [max(map(len, column), default=0) for column in columns]
    in_cells = [max(pair) for pair in zip(words, map(_longest, columns), strict=True)]
    whole = [max(len(h), n) for h, n in zip(headings, cells, strict=True)]

    def least(most: int) -> list[int]:
        return [max(word, min(most, n)) for word, n in zip(words, whole, strict=True)]

    # What columns of text cannot get narrower than: comfortably, then barely.
    for gap, text in (
        (2, in_cells),
        (1, in_cells),
        (2, least(LEAST_COLUMN)),
        (2, least(BARE_COLUMN)),
    ):
        bounds = [
            n if side == "<" else max(word, number)
            for side, n, word, number in zip(align, text, words, cells, strict=True)
        ]
        room = shutil.get_terminal_size().columns - gap * (len(headings) - 1)
        widths = _narrowed(whole, bounds, room)
        if sum(widths) <= room:
            return [_lines_of(row, widths) for row in (headings, *rows)], gap
    return [], 2


def _longest(texts: Sequence[str]) -> int:
    return max((len(word) for text in texts for word in text.split()), default=0)


def _narrowed(whole: Sequence[int], bounds: Sequence[int], room: int) -> list[int]:
    """Return widths for the room, as far as the bounds let them."""
    widths = list(whole)
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda i: (widths[i] - bounds[i], widths[i]))
        if widths[widest] <= bounds[widest]:
            break
        widths[widest] -= 1
    return widths


def _lines_of(row: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    cells = [
        textwrap.wrap(cell, width, break_on_hyphens=False) or [""]
        for cell, width in zip(row, widths, strict=True)
    ]
    return [list(line) for line in zip_longest(*cells, fillvalue="")]


def _record(headings: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    """Write a row as a block: where even folded cells do not fit beside each other."""
    indent = min(max(map(len, headings)), shutil.get_terminal_size().columns // 3) + 2
    for heading, cell in zip(headings, row, strict=True):
        yield _wrapped(f"{heading:<{indent - 2}}  {cell}", indent, break_long_words=True)


def _plain_lines(rows: Sequence[Sequence[str]], align: str, gap: int) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, align, widths, strict=True)
        yield (" " * gap).join(f"{cell:{side}{width}}" for cell, side, width in cells).rstrip()


def _wrapped(text: str, indent: int, *, break_long_words: bool = False) -> str:
    # Piped too: 80 columns unless COLUMNS says otherwise. Programs read --json.
    width = shutil.get_terminal_size().columns
    return textwrap.fill(
        _one_line(text),
        max(width, indent + 20),
        subsequent_indent=" " * indent,
        break_long_words=break_long_words,
        break_on_hyphens=False,
    )


def _one_line(text: str) -> str:
    """Escape control characters: names of hosts are others' text, and may not steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
