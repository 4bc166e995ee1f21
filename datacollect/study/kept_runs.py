"""Single runs in ns-3 as folders keep them, looked for by key: each file is read once.

Files change while sweeps run. What was read of one counts until its size or time is another.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from datacollect.study.folded import DOCUMENTS_FILE, ROWS_FILE, read_document, read_table
from datacollect.study.parts import RecordLine, read_line, records_of
from datacollect.study.rows import rows_by_key

if TYPE_CHECKING:
    from pathlib import Path

# Kinds of parts, and the names of records in those of rows.
ROWS, DOCUMENTS = "rows", "documents"
ROW, FAILURE = "row", "failure"


def document_of_run(key: str) -> str:
    """Return the name of what is kept of a run."""
    return f"runs/{key}.json"


def parts_of(folder: Path, kind: str) -> list[Path]:
    """Return the parts of a kind."""
    return sorted((folder / "parts").glob(f"*.{kind}"))


def kept_row(folder: Path, key: str) -> dict[str, Any] | None:
    """Return the row of a run; None where there is none that can be read."""
    for file in parts_of(folder, ROWS):
        if row := _rows_of_part(file, _version_of(file)).get(key):
            return row
    file = folder / ROWS_FILE
    return _rows_of_table(file, _version_of(file)).get(key)


def kept_document(folder: Path, key: str) -> dict[str, Any] | None:
    """Return all that is kept of a run; None where nothing can be read."""
    name = document_of_run(key)
    for file in parts_of(folder, DOCUMENTS):
        line = _lines_by_name(file, _version_of(file)).get(name)
        record = None if line is None else read_line(file, line)
        if record is not None:
            return _tree(record.text)
    text = read_document(folder / DOCUMENTS_FILE, name)
    return None if text is None else _tree(text)


def _tree(text: str) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(text)
    return tree


def _version_of(file: Path) -> tuple[int, int]:
    """Size and time of a file; of one that is gone, or not there yet, zeros."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=256)
def _rows_of_part(file: Path, _version: tuple[int, int]) -> dict[str, dict[str, Any]]:
    records = (record for _, record in records_of(file) if record is not None)
    rows = [json.loads(record.text) for record in records if record.name == ROW]
    return {row["key"]: row for row in rows}


@lru_cache(maxsize=64)
def _rows_of_table(file: Path, version: tuple[int, int]) -> dict[str, dict[str, Any]]:
    table = read_table(file) if any(version) else None
    return {} if table is None else rows_by_key(table)


@lru_cache(maxsize=256)
def _lines_by_name(file: Path, _version: tuple[int, int]) -> dict[str, RecordLine]:
    return {record.name: line for line, record in records_of(file) if record is not None}
