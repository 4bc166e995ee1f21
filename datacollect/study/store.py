"""The folder of a sweep: what was run, what failed, and nothing half written.

::

    experiment.json     the experiment with every default, its file, its hash, the folder's token,
                        command line and versions of every start
    parts/*.rows        while it runs: rows and failures, as processes append them
    parts/*.documents   likewise all that is kept of single runs in ns-3
    probes/             likewise measurements, shared by the runs of a setting
    results.parquet     all rows, sorted by key; what was run, in its metadata
    documents.parquet   all that is kept of single runs in ns-3, and measurements
    failed.jsonl        why runs failed

Parts and measurements are folded into the files below them when a sweep ends. Each of these is
written beside its place, and then moved there; only then goes what it was made of. Whoever is
killed in between leaves rows twice, never lost: each key counts once. Whoever reads opens the parts
before the files, so that what is folded meanwhile is seen.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.documents import write_atomically, written_durably
from datacollect.scenario.outcome_files import plain_tree
from datacollect.study.columns import COLUMNS
from datacollect.study.folded import (
    DOCUMENTS_FILE,
    ROWS_FILE,
    names_of,
    read_documents,
    read_experiment,
    read_table,
    write_documents,
    write_table,
)
from datacollect.study.kept_runs import (
    DOCUMENTS,
    FAILURE,
    ROW,
    ROWS,
    document_of_run,
    kept_document,
    kept_row,
    parts_of,
)
from datacollect.study.parts import Record, append, part_file, read_line, records_of, remove
from datacollect.study.rows import RUN_FORMAT, table_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd

EXPERIMENT_FILE, FAILED_FILE = "experiment.json", "failed.jsonl"

FOLDERS = ("parts", "probes")


@dataclass(frozen=True, eq=False)
class KeptRuns:
    """Runs in the folder of a sweep.

    Attributes
    ----------
    table : DataFrame
        A row for each run, sorted by key.
    failures : tuple of dict
        key, labels, seed and reason of each run that failed, and was not made since.
    unreadable : tuple of str
        Files, and lines of parts, that are damaged: their runs are not in the table.
    """

    table: pd.DataFrame
    failures: tuple[dict[str, Any], ...]
    unreadable: tuple[str, ...]


@dataclass(frozen=True)
class RunStore:
    """The folder of a sweep.

    Attributes
    ----------
    folder : Path
    sha256 : str
        Of the experiment and of the versions that its results depend on, as they were when the
        folder was made: more labels on its axes do not change it.
    axes : tuple of str
        Names of the axes.
    token : str
        Drawn when the folder was made: a folder elsewhere has another.
    """

    folder: Path
    sha256: str
    axes: tuple[str, ...]
    token: str = ""

    @property
    def probes(self) -> Path:
        """Folder of measurements while a sweep runs."""
        return self.folder / "probes"

    def is_here(self) -> bool:
        """Return whether this machine sees the folder.

        This one, not a copy, nor one of the same name.
        """
        return (experiment_in(self.folder) or {}).get("token") == self.token

    # What is kept while a sweep runs --------------------------------------------------------

    def write_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep the rows of runs."""
        self._append(ROWS, [Record(ROW, _text(row)) for row in rows])

    def write_run(self, document: Mapping[str, Any]) -> None:
        """Keep all of a run in ns-3: its row, and what the row came from."""
        row = document["row"]
        name = document_of_run(row["key"])
        text = json.dumps(plain_tree(document), allow_nan=False, ensure_ascii=False)
        self._append(DOCUMENTS, [Record(name, text)])  # first: a row says that its run is kept
        self.write_rows([row])

    def write_failure(self, failure: Mapping[str, Any]) -> None:
        """Keep why a run failed: key, labels, seed, reason."""
        self._append(ROWS, [Record(FAILURE, _text(failure))])

    def row_from(
        self, key: str, labels: Mapping[str, str], others: Sequence[Path] = ()
    ) -> dict[str, Any] | None:
        """Return the row of a run in ns-3 that is here, or in other sweeps' folders.

        From there it is copied; of published rows there is no more than the row. It has the labels
        that are given.
        """
        for folder in (self.folder, *others):
            found = kept_row(folder, key)
            if found is None:
                continue
            own = labels.get("method", found["method"])
            row = {**labels, **{c: found[c] for c in COLUMNS}, "method": own}
            if folder != self.folder:
                document = kept_document(folder, key) or {}
                self.write_run({"format": RUN_FORMAT, **document, "row": row})
            return row
        return None

    def borrow_probes(self, others: Sequence[Path]) -> None:
        """Unpack the measurements that were folded, and copy those of other sweeps' folders."""
        for folder in (self.folder, *others):
            for name, text in measurements_in(folder):
                own = self.probes / name
                if not own.exists():
                    write_atomically(own, text.encode())

    # What there is --------------------------------------------------------------------------

    def document(self, key: str) -> dict[str, Any] | None:
        """Return all that is kept of a run in ns-3; None where there is none that can be read."""
        return kept_document(self.folder, key)

    def measurements(self) -> dict[str, str]:
        """Return measurements by their files' names."""
        return dict(measurements_in(self.folder))

    def read(self) -> KeptRuns:
        """Return rows and failures, whether the sweep runs, was killed, or has ended."""
        import pandas as pd

        columns = [*(axis for axis in self.axes if axis not in COLUMNS), *COLUMNS]
        added, unreadable = self._records()  # before the file into which they may be folded
        tables = []
        if (self.folder / ROWS_FILE).exists():
            table = read_table(self.folder / ROWS_FILE)
            if table is not None and set(columns) <= set(table.columns):
                tables.append(table[columns])
            else:
                unreadable.append(ROWS_FILE)
        rows = [json.loads(record.text) for record in added if record.name == ROW]
        if rows or not tables:
            tables.append(table_of(rows, self.axes))
        found = pd.concat(tables) if len(tables) > 1 else tables[0]
        found = found.drop_duplicates("key").sort_values("key", ignore_index=True)
        return KeptRuns(found, self._failures(added, found), tuple(unreadable))

    # When it ends ---------------------------------------------------------------------------

    def fold(self) -> pd.DataFrame:
        """Fold parts and measurements into the files that stay; return all rows.

        Raises
        ------
        ProblemError
            A file cannot be written, or the one of rows not be read: all is as it was.
        """
        sizes = {
            file: file.stat().st_size for kind in (ROWS, DOCUMENTS) for file in self._parts(kind)
        }
        measured = sorted(self.probes.glob("*.json"))
        self._fold_documents(measured)
        kept = self.read()
        self.require_rows(kept)
        write_table(self.folder / ROWS_FILE, kept.table, experiment_in(self.folder) or {})
        with written_durably(self.folder / FAILED_FILE) as beside:
            beside.write_text("".join(f"{_text(failure)}\n" for failure in kept.failures), "utf-8")
        for file, n_bytes in sizes.items():
            remove(file, n_bytes)
        for file in measured:
            file.unlink(missing_ok=True)
        return kept.table

    def require_rows(self, kept: KeptRuns) -> None:
        """Refuse to go on where the file of all rows is damaged: it would be written over."""
        if ROWS_FILE in kept.unreadable:
            raise ProblemError(
                f"{self.folder / ROWS_FILE}: cannot be read as a sweep's rows: is it damaged? "
                "Put a copy in its place, or remove it: runs that are kept nowhere else are run "
                "again"
            )

    def _fold_documents(self, measured: Sequence[Path]) -> None:
        file = self.folder / DOCUMENTS_FILE
        lines = {
            record.name: (part, line)
            for part in self._parts(DOCUMENTS)
            for line, record in records_of(part)
            if record is not None
        }
        new = {*lines, *(f"probes/{one.name}" for one in measured)}
        if not new:
            return

        def documents() -> Iterator[tuple[str, str]]:
            yield from (found for found in read_documents(file) if found[0] not in new)
            for part, line in lines.values():
                if (record := read_line(part, line)) is not None:
                    yield record.name, record.text
            for one in measured:
                yield f"probes/{one.name}", one.read_text("utf-8")

        write_documents(file, documents())

    # ----------------------------------------------------------------------------------------

    def _append(self, kind: str, records: Sequence[Record]) -> None:
        append(part_file(self.folder / "parts", kind), records)

    def _parts(self, kind: str) -> list[Path]:
        return parts_of(self.folder, kind)

    def _records(self) -> tuple[list[Record], list[str]]:
        """Rows and failures in parts, and the lines that are damaged."""
        records, damaged = [], []
        for file in self._parts(ROWS):
            for line, record in records_of(file):
                if record is None:
                    damaged.append(f"parts/{file.name}, line {line.number}")
                else:
                    records.append(record)
        return records, damaged

    def _failures(self, added: Iterable[Record], table: pd.DataFrame) -> tuple[dict[str, Any], ...]:
        file = self.folder / FAILED_FILE
        texts = file.read_text("utf-8").splitlines() if file.exists() else []
        texts += [record.text for record in added if record.name == FAILURE]
        made = set(table[[*self.axes, "seed"]].itertuples(index=False, name=None))
        runs = {
            (*(one["labels"].get(a) for a in self.axes), one["seed"]): one
            for one in map(json.loads, texts)
        }
        return tuple(one for run, one in runs.items() if run not in made)


def experiment_in(folder: Path) -> dict[str, Any] | None:
    """Return what a folder says was run; None where it says nothing that can be read.

    Published rows have no file of their own for it.
    """
    file = folder / EXPERIMENT_FILE
    try:
        tree = json.loads(file.read_bytes())
    except FileNotFoundError:
        tree = read_experiment(folder / ROWS_FILE)
    except (OSError, ValueError):
        return None
    return tree if isinstance(tree, dict) else None


def _text(tree: Mapping[str, Any]) -> str:
    """Return JSON in one line; numbers keep their last digit, and NaN is NaN."""
    return json.dumps(tree, ensure_ascii=False, default=np.generic.item)


def measurements_in(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the measurements in a folder by their files' names."""
    for file in (folder / "probes").glob("*.json"):
        with suppress(FileNotFoundError):  # folded meanwhile into the file below
            yield file.name, file.read_text("utf-8")
    file = folder / DOCUMENTS_FILE
    if any(name.startswith("probes/") for name in names_of(file)):
        for name, text in read_documents(file):
            if name.startswith("probes/"):
                yield name.removeprefix("probes/"), text
