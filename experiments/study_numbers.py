"""Numbers in the study's sentences: each comes from a result, a rule, or from base.toml.

    python experiments/study_numbers.py

A sentence in docs/study*.md has a number by its name, as in `{{ claims.c1_direct }}`;
docs/tables/numbers.toml says where each comes from, and this script writes numbers.json beside it,
from which the documents are built. A test finds numbers that were typed. A source is, as in
`figure3.summary over_coordinated method=direct flows=60`, a word that names a table or the like,
then the column and a choice of rows; several rows give their range.

| first word | the number is |
|---|---|
| `NAME.summary`, `.prediction`, `.across`, `.own`, `claims`, `readings` | a cell of that CSV |
| `base` | a key of experiments/base.toml |
| `rule` | a constant by which `paper` judges, or `datacollect` makes intervals |
"""

from __future__ import annotations

import argparse
import importlib
import json
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import published_tables
from shown_tables import TABLES

if TYPE_CHECKING:
    import pandas as pd

HERE = Path(__file__).resolve().parent
SOURCES = TABLES / "numbers.toml"
NUMBERS = TABLES / "numbers.json"
RESULTS = published_tables.RESULTS

# How a value is written.
FORMATS = {
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
    """Write all numbers."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    write()


def write(results: Path = RESULTS, sources: Path = SOURCES, file: Path = NUMBERS) -> None:
    """Write all numbers, by the names that pages have for them."""
    file.write_text(json.dumps(numbers(results, sources), indent=1, ensure_ascii=False) + "\n")


def numbers(results: Path = RESULTS, sources: Path = SOURCES) -> dict[str, dict[str, str]]:
    """Return what each number says, by group and name."""
    named = tomllib.loads(sources.read_text(encoding="utf-8"))
    return {
        group: {name: value_of(source, results) for name, source in group_of.items()}
        for group, group_of in named.items()
    }


def value_of(source: str, results: Path = RESULTS) -> str:
    """Return what a number says."""
    first, *words = shlex.split(source)
    choice = dict(word.split("=", 1) for word in words if "=" in word)
    names = [word for word in words if "=" not in word]
    way = choice.pop("as", "number")
    if first == "base":
        return FORMATS[way](_at(tomllib.loads((HERE / "base.toml").read_text()), names[0]))
    if first == "rule":
        module, _, constant = names[0].rpartition(".")
        return FORMATS[way](getattr(importlib.import_module(module), constant))
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
        write = FORMATS["number"]
        named = f"{column}_low" in table
        ends = (f"{column}_low", f"{column}_high") if named else ("low", "high")
        low, high = (write(float(table[end].iloc[0])) for end in ends)
        return f"{write(values.iloc[0])} [{low}, {high}]"
    texts = list(dict.fromkeys((FORMATS[way](values.min()), FORMATS[way](values.max()))))
    if way == "percent less":
        texts.reverse()
    if len(texts) == 2 and texts[0].endswith(" %"):
        texts[0] = texts[0].removesuffix(" %")
    return " to ".join(texts)


if __name__ == "__main__":
    main()
