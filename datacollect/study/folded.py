"""The Parquet files into which a sweep's parts are folded: its rows, and its documents.

``results.parquet`` has a row for each run, and in its metadata what was run: the key `METADATA` is
a JSON object of ``format`` and ``experiment``, which is what ``experiment.json`` says, but for what
distinguishes one folder from its copies; the command lines and versions of all starts are among it.
``documents.parquet`` has the texts that are kept beside rows, by name: ``runs/KEY.json`` is all
that is kept of a run in ns-3, ``probes/NAME.json`` a measurement.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.files.documents import written_durably
from datacollect.files.kinds import shown_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    import pandas as pd

ROWS_FILE, DOCUMENTS_FILE = "results.parquet", "documents.parquet"

# The key of our metadata, and the format of what stands there.
METADATA, RESULTS_FORMAT = b"datacollect", "datacollect-results/1"

# What distinguishes one folder from its copies, and shapes no result.
PRIVATE = ("token",)

# Texts are written this much at once: as much as is unpacked to read one of them.
GROUP_BYTES = 1 << 22


def write_table(file: Path, table: pd.DataFrame, experiment: Mapping[str, Any]) -> None:
    """Write rows, and what was run; the file that is there is replaced at once or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pa.Table.from_pandas(table, preserve_index=False)
    public = {key: value for key, value in experiment.items() if key not in PRIVATE}
    tree = {"format": RESULTS_FORMAT, "experiment": public}
    ours = {METADATA: json.dumps(tree, ensure_ascii=False).encode()}
    with written_durably(file) as beside:
        pq.write_table(
            found.replace_schema_metadata({**(found.schema.metadata or {}), **ours}),
            beside,
            compression="zstd",
        )


def read_table(file: Path) -> pd.DataFrame | None:
    """Read rows; a file that is damaged counts as absent."""
    import pandas as pd
    from pyarrow.lib import ArrowException

    try:
        return pd.read_parquet(file)
    except (OSError, ValueError, ArrowException):
        return None


def read_experiment(file: Path) -> Any:
    """Return what was run, as the file of rows says; None where it says nothing."""
    import pyarrow.parquet as pq
    from pyarrow.lib import ArrowException

    try:
        metadata = pq.read_schema(file).metadata or {}
        tree = json.loads(metadata[METADATA])
    except (OSError, ValueError, ArrowException, KeyError):
        return None
    return tree.get("experiment") if tree.get("format") == RESULTS_FORMAT else None


def write_documents(file: Path, documents: Iterable[tuple[str, str]]) -> None:
    """Write texts by name, few at a time; the file that is there may be among their sources."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("name", pa.string()), ("text", pa.string())])
    # Texts are found by their names, never by their contents.
    options = {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
    with written_durably(file) as beside, pq.ParquetWriter(beside, schema, **options) as writer:
        for group in _groups(documents):
            names, texts = zip(*group, strict=True)
            writer.write_table(pa.table([names, texts], schema=schema))


def read_documents(file: Path) -> Iterator[tuple[str, str]]:
    """Yield texts by name, few at a time; none where there is no such file.

    Raises
    ------
    ProblemError
        It is damaged; so do all that read texts.
    """
    if not file.exists():
        return
    with _opened(file) as found:
        for group in range(found.num_row_groups):
            yield from _pairs(found.read_row_group(group))


def read_document(file: Path, name: str) -> str | None:
    """Return one text; None where the file has none of this name."""
    if not file.exists():
        return None
    group = _groups_by_name(file, file.stat().st_mtime_ns).get(name)
    if group is None:
        return None
    with _opened(file) as found:
        return dict(_pairs(found.read_row_group(group))).get(name)


def names_of(file: Path) -> set[str]:
    """Return the names of all texts; none where there is no such file."""
    return set(_groups_by_name(file, file.stat().st_mtime_ns)) if file.exists() else set()


@lru_cache(maxsize=32)
def _groups_by_name(file: Path, _mtime_ns: int) -> dict[str, int]:
    """In which row group each text stands."""
    with _opened(file) as found:
        return {
            name: group
            for group in range(found.num_row_groups)
            for name in found.read_row_group(group, columns=["name"])["name"].to_pylist()
        }


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    import pyarrow.parquet as pq
    from pyarrow.lib import ArrowException

    try:
        with pq.ParquetFile(file) as found:
            yield found
    except (OSError, ValueError, ArrowException) as error:
        raise ProblemError(
            f"{file}: cannot be read as a sweep's documents: is it damaged? Put a copy in its "
            f"place, or remove it: measurements are made again ({shown_text(str(error))})"
        ) from None


def _pairs(table: Any) -> Iterator[tuple[str, str]]:
    return zip(table["name"].to_pylist(), table["text"].to_pylist(), strict=True)


def _groups(documents: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    group: list[tuple[str, str]] = []
    n_bytes = 0
    for name, text in documents:
        group.append((name, text))
        n_bytes += len(text)
        if n_bytes >= GROUP_BYTES:
            yield group
            group, n_bytes = [], 0
    if group:
        yield group
