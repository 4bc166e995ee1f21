"""Numbers in sentences: each comes from a result, from the paper's claims, or from base.toml.

    python experiments/study_fields.py

In docs/study.md and docs/study_*.md a number in a sentence stands in a field:
`<!-- = figure3.summary over_coordinated method=direct flows=60 -->2.7<!-- . -->`. The first word
names where it comes from, what follows the column and a choice of rows; several rows give their
range. This script writes the text of all fields anew from experiments/results/study; a test
finds numbers that stand in none. It makes no number of its own.

| first word | the number is |
|---|---|
| `NAME.summary`, `.prediction`, `.across`, `.own`, `claims`, `readings` | a cell of that CSV |
| `paper` | one of the paper's numbers: those of its claims, in `PAPER` |
| `base` | a key of experiments/base.toml |
| `rule` | a constant by which `paper` judges, or `datacollect` makes intervals |
"""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import published_tables

if TYPE_CHECKING:
    import pandas as pd

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "study.md"
RESULTS = published_tables.RESULTS
FIELD = re.compile(r"<!-- = (?P<source>[^>]+?) -->(?P<text>.*?)<!-- \. -->", re.DOTALL)

# C.-F. Chou, Y.-C. Wan, W. C. Cheng, L. Golubchik, S. Khuller, "A Performance Study of a
# Large-Scale Data Collection Problem", WCW 2002, sections 3 and 4.
PAPER = {
    *("2", "2.56", "1.64", "1.46", "1.24", "1.37", "2.42", "1.73", "1.04"),
    *("37 %", "142 %", "46 %", "24 %", "4 %", "73 %", "2 %", "9 %", "95 %", "5 %"),
    *("5 MB", "7", "350 MB", "5 Mbit/s", "60", "152", "0", "20 %", "30 %", "50 %", "70 %"),
}

# How a value is written.
WAYS = {
    "number": lambda value: f"{value:.2g}",
    "three digits": lambda value: f"{value:.3g}",
    "inverse": lambda value: f"{1 / value:.2g}",
    "whole": lambda value: f"{value:.0f}",
    "percent": lambda value: f"{100 * value:.0f} %",
    "percent more": lambda value: f"{100 * (value - 1):.0f} %",
    "percent less": lambda value: f"{100 * (1 - value):.0f} %",
    "MB": lambda value: f"{value / 1e6:g} MB",
    "Mbit/s": lambda value: f"{8 * value / 1e6:g} Mbit/s",
}


def main() -> None:
    """Fill the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    for page in pages(options.page):
        text = page.read_text(encoding="utf-8")
        page.write_text(with_fields(text, options.results), encoding="utf-8")


def pages(first: Path = PAGE) -> list[Path]:
    """Return the study's first page and those that follow it."""
    return [first, *sorted(first.parent.glob(f"{first.stem}_*{first.suffix}"))]


def with_fields(text: str, results: Path = RESULTS) -> str:
    """Return a page with the text of its fields made anew."""

    def filled(found: re.Match[str]) -> str:
        return f"<!-- = {found['source']} -->{value_of(found['source'], results)}<!-- . -->"

    return FIELD.sub(filled, text)


def value_of(source: str, results: Path = RESULTS) -> str:
    """Return what a field says."""
    first, *words = shlex.split(source)
    choice = dict(word.split("=", 1) for word in words if "=" in word)
    names = [word for word in words if "=" not in word]
    way = choice.pop("as", "number")
    if first == "paper":
        number = " ".join(names)
        if number not in PAPER:
            raise ValueError(f"{source!r}: {number!r} is no number of the paper's claims")
        return number
    if first == "base":
        return WAYS[way](_at(tomllib.loads((HERE / "base.toml").read_text()), names[0]))
    if first == "rule":
        module, _, constant = names[0].rpartition(".")
        return WAYS[way](getattr(importlib.import_module(module), constant))
    name = f"{first.replace('.', '_')}.csv"
    return _of_results(source, published_tables.read(results, name), name, names[0], choice, way)


def _at(tree: Any, place: str) -> Any:
    for key in place.split("."):
        tree = tree[int(key)] if isinstance(tree, list) else tree[key]
    return tree


def _of_results(
    source: str,
    table: pd.DataFrame | None,
    file: str,
    column: str,
    choice: dict[str, str],
    way: str,
) -> str:
    """A cell, or the range of several; with its interval where `as=interval`."""
    if table is None:
        raise ValueError(f"{source!r}: {file} is not there")
    for name, labels in choice.items():
        # Labels may hold commas: alternatives stand between bars.
        table = table[table[name].isin(labels.split("|"))]
    table = table[table[column] != ""]
    if table.empty:
        raise ValueError(f"{source!r}: no such row in {file}")
    values = table[column].astype(float)
    if way == "interval":
        if len(table) > 1:
            raise ValueError(f"{source!r}: {len(table)} rows, an interval has one")
        write = WAYS["number"]
        named = f"{column}_low" in table
        ends = (f"{column}_low", f"{column}_high") if named else ("low", "high")
        low, high = (write(float(table[end].iloc[0])) for end in ends)
        return f"{write(values.iloc[0])} [{low}, {high}]"
    texts = list(dict.fromkeys((WAYS[way](values.min()), WAYS[way](values.max()))))
    if way == "percent less":
        texts.reverse()
    if len(texts) == 2 and texts[0].endswith(" %"):
        texts[0] = texts[0].removesuffix(" %")
    return " to ".join(texts)


if __name__ == "__main__":
    main()
