"""Tables as text: what separates their columns, which columns have names, and their rows.

Spreadsheets and programs write the same table differently. What has one meaning only is
read: commas, semicolons or tabs, a first line ``sep=;``, an unnamed column that only counts the
rows, empty columns at the end, the header once more where files were joined. What can be read in
two meanings is refused, with what to write.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.files.kinds import shown, shown_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import pandas as pd

    from datacollect.numbers.arrays import IntArray

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}

# Spreadsheets write the first, people the others.
_SAID = re.compile(r"sep=(.)[ \t]*(\r\n|\r|\n)", re.IGNORECASE)
_EMPTY_LINES = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))*")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_COUNT = re.compile(r"\s*\d*\s*", re.ASCII)
# How pandas names a column without a name, once it has read and written a table again.
_UNNAMED = re.compile(r"\s*(Unnamed: \d+(\.\d+)?)?\s*", re.ASCII)

# Below this Arrow's import takes longer than reading row by row.
LARGE_BYTES = 200_000

LONGEST_NUMBER = 40
_DIGITS_AND_COMMAS = re.compile(r"\s*[+-]?\d+(,\d+)+(\.\d+)?\s*", re.ASCII)


@dataclass(frozen=True, eq=False)
class TextTable:
    """The text of a table, with the names of its columns.

    Attributes
    ----------
    name : str
        The file's name, for messages.
    text : str
    header : tuple of str
        Names of the columns that have one.
    separator : str
        What separates columns.
    skipped_lines : int
        Lines before the header.
    kept : tuple of int or None
        Places of the columns that have a name; None where all have.
    ends_in_text : bool
        Whether the last column holds any text: it may end with what separates columns.
    """

    name: str
    text: str
    header: tuple[str, ...]
    separator: str = ","
    skipped_lines: int = 0
    kept: tuple[int, ...] | None = None
    ends_in_text: bool = False

    @property
    def is_plain(self) -> bool:
        """Return whether the text is the header and the rows, column by column, and no more."""
        return not self.skipped_lines and self.kept is None

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Line and named fields of each row; lines without anything are passed over.

        Raises
        ------
        ProblemError
            A row has more or fewer fields than the header.
        """
        for line, row in self.all_fields():
            yield line, row if self.kept is None else [row[i] for i in self.kept]

    def texts(self) -> tuple[IntArray, pd.DataFrame]:
        """Return the line of each row, and the texts of the columns; large tables by Arrow."""
        import numpy as np
        import pandas as pd

        frame = _read_usual(self) if len(self.text) >= LARGE_BYTES else None
        if frame is not None:
            return np.arange(2, len(frame) + 2), frame
        pairs = list(self.rows())
        lines = np.array([line for line, _ in pairs], dtype=np.int64)
        rows = [row for _, row in pairs]
        return lines, pd.DataFrame(rows, columns=list(self.header), dtype=str)

    def place(self, row: int) -> str:
        """Return file and line of a row, counted from 0."""
        line = next(line for i, (line, _) in enumerate(self.rows()) if i == row)
        return f"{self.name}, line {line}"

    def _remedy(self, lacks: bool) -> str:
        """Say what is to be done with a line of too few fields, or of too many."""
        if lacks:
            return "complete the line, or remove it where it is no row, or was cut off"
        separators = SEPARATORS.get(self.separator, shown(self.separator))
        return f"names that hold {separators} stand in double quotes"

    def all_fields(self) -> Iterator[tuple[int, list[str]]]:
        """Line and fields of each row, those of columns without a name too."""
        stream = io.StringIO(self.text, newline="")
        reader = csv.reader(stream, delimiter=self.separator, strict=True)
        line = 1
        try:
            for _ in range(self.skipped_lines):
                next(reader)
            header = next(reader)
            n_fields, line = len(header), reader.line_num + 1
            for row in reader:
                if len(row) == n_fields + 1 and not row[-1] and not self.ends_in_text:
                    row = row[:-1]  # a separator at the end of this line only
                if row and row != header and any(row):
                    if len(row) != n_fields:
                        raise ProblemError(
                            f"{self.name}, line {line}: must have {n_fields} fields like the "
                            f"header, got {len(row)}; {self._remedy(len(row) < n_fields)}"
                        )
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            quotes = "close double quotes, and double those within names"
            remedy = quotes if '"' in self.text else "is this a table?"
            raise ProblemError(
                f"{self.name}, line {line}: not a CSV file: {error}; {remedy}"
            ) from None


def open_table(
    text: str, name: str, example: str, *, texts: Collection[str] = (), is_secret: bool = False
) -> TextTable:
    r"""Find out what separates a table's columns, and what they are called.

    Parameters
    ----------
    text : str
    name : str
        The file's name, for messages.
    example : str
        A header, such as ``"from,to,time_s,..."``, for who has none.
    texts : collection of str
        Columns that hold any text, such as paths, which may end with a comma.
    is_secret : bool
        Whether no message may show what the file holds.

    Raises
    ------
    ProblemError
        There is no header, a name is given twice, or what separates columns can be read in two
        ways.

    Examples
    --------
    >>> table = open_table("sep=;\n;from;to\n0;S;D\n", "links.csv", "from,to")
    >>> table.header, list(table.rows())
    (('from', 'to'), [(3, ['S', 'D'])])
    """
    before = _EMPTY_LINES.match(text) if text.strip() else None
    begins = before.end() if before else 0
    stated = _SAID.match(text, begins)
    separator = stated[1] if stated else None
    begins = stated.end() if stated else begins
    skipped_lines = len(text[:begins].splitlines())
    where = f"{name}, line {1 + skipped_lines}"
    lines = text[begins:]
    if separator is None:
        separator = _separator(lines, where)
    header = _first_row(lines, separator, where)
    if not any(header):
        raise ProblemError(
            f"{where}: must be a header, got an empty line; begin with a line like {example}"
        )
    unnamed = [i for i, column in enumerate(header) if _UNNAMED.fullmatch(column)]
    names = [column for i, column in enumerate(header) if i not in unnamed]
    for column in names:
        if names.count(column) > 1:
            said = "a column" if is_secret else f"column {shown_text(column)}"
            raise ProblemError(f"{where}: {said} given twice; keep one")
    kept = tuple(i for i in range(len(header)) if i not in unnamed) if unnamed else None
    ends_in_text = header[-1].strip() in texts
    table = TextTable(name, text, tuple(names), separator, skipped_lines, kept, ends_in_text)
    if unnamed:
        _reject_unnamed(table, unnamed, is_secret=is_secret)
    return table


def _read_usual(table: TextTable) -> pd.DataFrame | None:
    """Read a table with Arrow; None where anything is unusual, and lines would not be rows."""
    text = table.text
    is_usual = table.is_plain and '"' not in text and not re.search(r"\n\r?\n|\r(?!\n)", text)
    if not is_usual:
        return None
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    try:
        read = arrow_csv.read_csv(
            io.BytesIO(text.encode()),
            parse_options=arrow_csv.ParseOptions(delimiter=table.separator),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(table.header, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid:
        return None
    frame = read.to_pandas()
    # A row of nothing, or the header once more.
    first = frame.iloc[:, 0]
    return None if first.isin(["", table.header[0]]).any() else frame


def number_hint(text: str) -> str:
    """Say what to write in place of a number that holds commas; ``""`` where it holds none.

    >>> number_hint("1,500"), number_hint("0,5"), number_hint("1,500,000")
    ('; write 1500 or 1.500', '; write 0.5', '; write 1500000')
    """
    if len(text) > LONGEST_NUMBER or not _DIGITS_AND_COMMAS.fullmatch(text):
        return ""
    digits = text.strip()
    whole = re.fullmatch(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", digits)
    if digits.count(",") > 1 or "." in digits:
        return f"; write {digits.replace(',', '')}" if whole else ""
    point = digits.replace(",", ".")
    return f"; write {digits.replace(',', '')} or {point}" if whole else f"; write {point}"


def _separator(text: str, where: str) -> str:
    """Return the one character that separates the header's columns."""
    fitting = [one for one in SEPARATORS if len(_first_row(text, one, where)) > 1]
    if len(fitting) > 1:
        names = " and ".join(SEPARATORS[one] for one in fitting)
        raise ProblemError(
            f"{where}: the header has {names}; say which separate its columns by a line before "
            f"it, such as sep={fitting[0]}"
        )
    return fitting[0] if fitting else ","


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a text with what ends each, as far as they are wanted, without a copy."""
    return (found[0] for found in _LINE.finditer(text))


def _first_row(text: str, separator: str, where: str) -> list[str]:
    try:
        return next(csv.reader(_lines(text), delimiter=separator), [])
    except csv.Error as error:
        raise ProblemError(f"{where}: not a CSV file: {error}; is this a table?") from None


def _reject_unnamed(table: TextTable, unnamed: Sequence[int], *, is_secret: bool) -> None:
    """Refuse columns without a name that hold anything but a count of the rows."""
    for line, row in table.all_fields():
        for i in unnamed:
            # The first column may count; elsewhere a number might be a measurement.
            if row[i] and not (i == 0 and _COUNT.fullmatch(row[i])):
                held = "something" if is_secret else shown(row[i])
                raise ProblemError(
                    f"{table.name}, line {1 + table.skipped_lines}: column {i + 1} has no name, "
                    f"and line {line} has {held} in it; name it in the header, or remove it"
                )
