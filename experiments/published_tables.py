"""The study's published tables: CSV texts by name, all in one file that a person can read.

`results/study/tables.txt` has each table below a line with its name, `-- figure3_summary.csv --`
(the format is Go's txtar). What is read most lies beside it as it is: `claims.csv`, `readings.csv`
and `sweeps.csv`. A report's folder has every table as a file of its own, and is read the same way.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).resolve().parent / "results" / "study"
FILE = "tables.txt"
ALONE = ("claims.csv", "readings.csv", "sweeps.csv")
NAME = re.compile(r"^-- (?P<name>\S+) --\n", re.MULTILINE)


def texts_in(folder: Path) -> dict[str, str]:
    """Return the tables that lie in one file, by name."""
    if not (folder / FILE).exists():
        return {}
    _, *parts = NAME.split((folder / FILE).read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def text_of(folder: Path, name: str) -> str | None:
    """Return a table's text; None where there is none."""
    if (folder / name).exists():
        return (folder / name).read_text(encoding="utf-8")
    return texts_in(folder).get(name)


def read(folder: Path, name: str) -> pd.DataFrame | None:
    """Return a table whose labels stay text; None where there is none."""
    text = text_of(folder, name)
    return (
        None if text is None else pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    )


def keep(folder: Path, name: str, text: str) -> None:
    """Publish a table in place of the one that was called so."""
    if name in ALONE:
        (folder / name).write_text(text, encoding="utf-8")
        return
    texts = {**texts_in(folder), name: text if text.endswith("\n") else f"{text}\n"}
    lines = [f"-- {own} --\n{texts[own]}" for own in sorted(texts)]
    (folder / FILE).write_text("".join(lines), encoding="utf-8")
