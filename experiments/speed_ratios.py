"""How long planning takes beside an older version: ratios of measured rows.

    python experiments/speed_ratios.py OLD.csv NEW.csv

Both files are of planning_speed.py, or of growth.py, written with -o by either version on one idle
machine. Prints a line for each kind of row: how many, and the median and range of new over old.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import measuring
import numpy as np

KINDS = ("section", "series")


def ratios(old: list[dict[str, str]], new: list[dict[str, str]]) -> dict[str, list[float]]:
    """Return new over old median seconds, by kind of row.

    Raises
    ------
    ValueError
        The two do not have the same rows.
    """
    if [_what(row) for row in old] != [_what(row) for row in new]:
        raise ValueError("the files must have the same rows, in the same order")
    found: dict[str, list[float]] = {}
    for before, after in zip(old, new, strict=True):
        ratio = float(after["median_s"]) / float(before["median_s"])
        found.setdefault(_what(before)[0], []).append(ratio)
    return found


def _what(row: dict[str, str]) -> tuple[str, ...]:
    keys = (*KINDS, "what", "reference", "hosts", "links", "slots", "size")
    return tuple(row[key] for key in keys if key in row)


def table(found: dict[str, list[float]]) -> str:
    """Return the lines of a table in Markdown."""
    lines = ["| rows | number | new over old |", "| --- | --: | --: |"]
    for kind, values in found.items():
        spread = f" ({min(values):.2f} … {max(values):.2f})" if len(values) > 1 else ""
        lines.append(f"| {kind} | {len(values)} | {np.median(values):.2f}{spread} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    given = parser.parse_args()
    (_, old), (_, new) = (measuring.read(path) for path in (given.old, given.new))
    print(table(ratios(old, new)))


if __name__ == "__main__":
    main()
