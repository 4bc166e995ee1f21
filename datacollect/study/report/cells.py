"""Tables as text: what stands in a report's CSV files, and the same on its page."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Cells:
    """A table as text: what stands in the CSV, and on the page.

    Attributes
    ----------
    file : str
        Name of the CSV.
    columns : list of str
    rows : list of list of str
        Numbers with six digits; empty where there is none.
    """

    file: str
    columns: list[str]
    rows: list[list[str]]

    def to_csv(self) -> str:
        """Return the text of the CSV."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()


def cells_of(table: pd.DataFrame, file: str) -> Cells:
    r"""Return a table as text.

    >>> import pandas as pd
    >>> cells_of(pd.DataFrame({"n": [1, 2], "s": [2 / 3, float("nan")]}), "a.csv").to_csv()
    'n,s\n1,0.666667\n2,\n'
    """
    columns = [[_cell(value) for value in table[name].tolist()] for name in table.columns]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return Cells(file, [str(name) for name in table.columns], rows)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value)
