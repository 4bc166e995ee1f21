"""Tables that people open in spreadsheets: no text of others becomes a formula, or two cells.

A quote goes before what a spreadsheet would take for a formula, at the beginning of a cell and
behind what may separate cells for it: in many countries that is a semicolon. Read back, it goes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from datacollect.files.documents import write_owned, written_durably

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

# What begins a formula, for some in its wide form; quotes before it are such as we have put there.
_FORMULA = r"'*\s*[=+\-@\uff1d\uff0b\uff0d\uff20]"
_BEGINS = re.compile(rf"(^|[;\t\r\n])(?={_FORMULA})")
_QUOTED = re.compile(rf"(^|[;\t\r\n])'(?={_FORMULA})")
# Some take each of these for a separator, whatever the others are.
_MAY_SEPARATE = re.compile(r"[,;\t\r\n\"]|^\s|\s$")
# Nearly all cells are such, and rows of such: nothing more is to be looked at.
_PLAIN = r"(?:\w(?:[\w ./:@'()+-]*\w)?)?"
_BETWEEN = "\x1f"
_PLAIN_CELL = re.compile(_PLAIN)
_PLAIN_ROW = re.compile(f"{_PLAIN}(?:{_BETWEEN}{_PLAIN})*", re.ASCII)


def plain_cell(text: str) -> str:
    """Keep spreadsheets from taking somebody's text for a formula.

    >>> plain_cell("=1+1"), plain_cell("Ann"), plain_cell("a;@b"), plain_cell("'t Hooft")
    ("'=1+1", 'Ann', "a;'@b", "'t Hooft")
    """
    return _BEGINS.sub(r"\1'", text)


def text_of_cell(cell: str) -> str:
    """Return the text that was written as a plain cell.

    >>> text_of_cell(plain_cell("=1+1")), text_of_cell(plain_cell("'=x"))
    ('=1+1', "'=x")
    """
    return _QUOTED.sub(r"\1", cell) if "'" in cell else cell


def table_text(header: Sequence[str], rows: Iterable[Sequence[str | int]]) -> str:
    """Return a table with commas; texts are plain cells.

    >>> print(table_text(("person", "late_s"), [("Ann; Bob", -3)]), end="")
    person,late_s
    "Ann; Bob",-3
    """
    return "".join(f"{_line(row)}\n" for row in (header, *rows))


def _line(row: Sequence[str | int]) -> str:
    line = _BETWEEN.join(map(str, row))
    if line.count(_BETWEEN) == len(row) - 1 and _PLAIN_ROW.fullmatch(line):
        return line.replace(_BETWEEN, ",")
    return ",".join(map(_written, row))


def _written(value: str | int) -> str:
    if isinstance(value, int):
        return str(value)
    if _PLAIN_CELL.fullmatch(value):
        return value
    cell = plain_cell(value)
    return '"' + cell.replace('"', '""') + '"' if _MAY_SEPARATE.search(cell) else cell


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[str | int]]) -> None:
    """Write a table durably, for its owner's eyes alone.

    Raises
    ------
    NotWrittenError
        It cannot be written.
    """
    with written_durably(path) as beside:
        write_owned(beside, table_text(header, rows).encode(), mode=0o600)
