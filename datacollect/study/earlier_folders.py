"""Folders of sweeps as earlier versions made them: read, and never written.

::

    runs/KEY.json       one run in ns-3: row, scenario, schedule, storage over time
    shards/KEY.parquet  rows of many fluid runs
    failed/KEY.json     why a run failed
    results.csv.gz      rows as a repository kept them
    probes/NAME.json.gz measurements as a repository kept them
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from datacollect.study.columns import COLUMNS, FLAG, REAL, WHOLE
from datacollect.study.folded import read_table
from datacollect.study.rows import RUN_FORMAT, rows_by_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    import pandas as pd

PUBLISHED_FILE = "results.csv.gz"

# What measurements end in that a repository kept.
PACKED = ".gz"


def tables_in(folder: Path) -> Iterator[tuple[str, pd.DataFrame | None]]:
    """Yield the tables of rows by their files' names; None for one that is damaged."""
    if (folder / PUBLISHED_FILE).exists():
        yield PUBLISHED_FILE, read_published(folder / PUBLISHED_FILE)
    for file in sorted((folder / "shards").glob("*.parquet")):
        yield f"shards/{file.name}", read_table(file)


def rows_in(folder: Path, known: Collection[str]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield the rows of single runs whose keys are not known; None for one that is damaged."""
    for file in sorted((folder / "runs").glob("*.json")):
        if file.stem not in known:
            yield f"runs/{file.name}", row_in(folder, file.stem)


def row_in(folder: Path, key: str) -> dict[str, Any] | None:
    """Return the row of a single run; a file that is damaged, or of another run, has none."""
    row = (document_in(folder, key) or {}).get("row")
    if not isinstance(row, dict) or row.get("key") != key:
        return None
    return {name: math.nan if value is None else value for name, value in row.items()}


def document_in(folder: Path, key: str) -> dict[str, Any] | None:
    """Return all that is kept of a run in ns-3; None where nothing can be read."""
    tree = _read_json(folder / "runs" / f"{key}.json")
    return None if tree is None or tree.get("format") != RUN_FORMAT else tree


def failures_in(folder: Path) -> list[dict[str, Any]]:
    """Return why runs failed."""
    trees = map(_read_json, sorted((folder / "failed").glob("*.json")))
    return [tree for tree in trees if tree is not None and "reason" in tree]


def measurements_in(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield measurements that were packed, by name; those that are damaged are left out."""
    for file in sorted((folder / "probes").glob(f"*.json{PACKED}")):
        try:
            text = gzip.decompress(file.read_bytes()).decode()
        except (OSError, EOFError, ValueError, zlib.error):
            continue
        yield file.name.removesuffix(PACKED), text


def read_published(file: Path) -> pd.DataFrame | None:
    """Read rows that a repository kept; a file that is damaged counts as absent."""
    import pandas as pd

    try:
        # As text first: labels may look like numbers, and numbers keep their last digit.
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
        for column, kind in COLUMNS.items():
            if column in table and kind == REAL:
                table[column] = table[column].replace("", "nan").map(float)
            elif column in table and kind == WHOLE:
                table[column] = table[column].map(int)
            elif column in table and kind == FLAG:
                table[column] = table[column] == "True"
    except (OSError, ValueError, EOFError):
        return None
    return table


def published_row(folder: Path, key: str) -> dict[str, Any] | None:
    """Return a row that a repository kept; None where there is none."""
    file = folder / PUBLISHED_FILE
    return _published_rows(file, file.stat().st_mtime_ns).get(key) if file.exists() else None


@lru_cache(maxsize=32)
def _published_rows(file: Path, _mtime_ns: int) -> dict[str, dict[str, Any]]:
    table = read_published(file)
    return {} if table is None else rows_by_key(table)


def _read_json(file: Path) -> dict[str, Any] | None:
    try:
        tree = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    return tree if isinstance(tree, dict) else None
