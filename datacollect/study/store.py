"""The folder of a sweep: what was run, what failed, and nothing half written.

::

    experiment.json     the experiment with every default, its file, its hash, the folder's token
    runs/KEY.json       one run in ns-3: row, scenario, schedule, storage over time
    shards/KEY.parquet  rows of many fluid runs
    failed/KEY.json     why a run failed
    probes/             measurements, shared by the runs of a setting
    results.parquet     all rows, sorted by key
    results.csv.gz      the same as a repository keeps it, where a report or another sweep reads it

Every file is written beside its place and then moved there. A reader takes what can be read and
leaves out the rest, which is run again.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import secrets
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.files.documents import write_atomically
from datacollect.files.stages import counting
from datacollect.scenario.outcome_files import plain_tree
from datacollect.study.axes import Axis
from datacollect.study.columns import COLUMNS, FLAG, LATER, REAL, WHOLE
from datacollect.study.growth import grown_axes
from datacollect.study.identity import sha256_of
from datacollect.study.rows import RUN_FORMAT, table_of, with_later

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from os import PathLike
    from typing import TextIO

    import pandas as pd

    from datacollect.study.experiment import Experiment

# Rows as a repository keeps them (`datacollect.study.report.published`).
ROWS_FILE = "results.csv.gz"

# What measurements end in there, after their names here.
PACKED = ".gz"

FOLDERS = ("runs", "shards", "failed", "probes")


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
        """Folder of measurements."""
        return self.folder / "probes"

    def is_here(self) -> bool:
        """Whether this machine sees the folder: this one, not a copy, nor one of the same name."""
        tree = _read_json(self.folder / "experiment.json")
        return tree is not None and tree.get("token") == self.token

    def write_run(self, key: str, document: Mapping[str, Any]) -> None:
        """Keep a run."""
        text = json.dumps(plain_tree(document), allow_nan=False, ensure_ascii=False)
        write_atomically(self._run_file(key), text.encode())

    def row(self, key: str) -> dict[str, Any] | None:
        """Return the row of a run in ns-3 as it was kept; None where none can be read."""
        return _read_row(self._run_file(key))

    def document(self, key: str) -> dict[str, Any] | None:
        """Return all that is kept of a run in ns-3; None where there is none that can be read."""
        return _read_json(self._run_file(key))

    def row_from(
        self, key: str, labels: Mapping[str, str], others: Sequence[Path] = ()
    ) -> dict[str, Any] | None:
        """Return the row of a run in ns-3 that is here, or in other sweeps' folders.

        From there it is copied; of published rows there is no more than the row. It has the labels
        that are given.
        """
        for folder in (self.folder, *others):
            file = folder / "runs" / f"{key}.json"
            found = _read_row(file) or _published_rows(folder).get(key)
            if found is None:
                continue
            own = labels.get("method", found["method"])
            row = {**labels, **{c: found[c] for c in COLUMNS}, "method": own}
            if folder != self.folder:
                self.write_run(key, {"format": RUN_FORMAT, **(_read_json(file) or {}), "row": row})
            return row
        return None

    def borrow_probes(self, others: Sequence[Path]) -> None:
        """Copy the measurements of other sweeps' folders, published ones too."""
        for other in others:
            if not (other / "experiment.json").exists():
                raise ProblemError(f"reuse: {other} is no folder of a sweep; name one")
            for file in (other / "probes").glob("*.json*"):
                own = self.probes / file.name.removesuffix(PACKED)
                found = None if own.exists() else _read_bytes(file)
                if found is not None:
                    write_atomically(own, found)

    def write_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep the rows of many runs in one file."""
        keys = sorted(row["key"] for row in rows)
        file = self.folder / "shards" / f"{sha256_of(keys)}.parquet"
        write_atomically(file, _parquet(table_of(rows, self.axes)))

    def write_failure(self, key: str, failure: Mapping[str, Any]) -> None:
        """Keep why a run failed: reason, labels, seed."""
        text = json.dumps(failure, ensure_ascii=False, indent=2)
        write_atomically(self.folder / "failed" / f"{key}.json", text.encode())

    def forget_failure(self, key: str) -> None:
        """Remove the note of a run that failed before."""
        (self.folder / "failed" / f"{key}.json").unlink(missing_ok=True)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of all runs that can be read, each key once."""
        found = {}
        for row in (*self._rows_of_runs(), *self._rows_of_shards()):
            found[row["key"]] = row
        return list(found.values())

    def table(self) -> tuple[pd.DataFrame, int]:
        """Return the rows of all runs, and how many files cannot be read, as a reader needs them.

        The sweep may be running or have been killed: what its table lacks is read from the files
        of single runs and shards.
        """
        import pandas as pd

        columns = [*(axis for axis in self.axes if axis not in COLUMNS), *COLUMNS]
        needed = set(columns) - set(LATER)
        tables, n_unreadable = [], 0
        published = self.folder / ROWS_FILE
        for file in (self._table_file, published, *self._files("shards", "parquet")):
            read = read_rows if file == published else read_parquet
            table = read(file) if file.exists() else None
            if table is not None and needed <= set(table.columns):
                tables.append(with_later(table)[columns])
            elif file.exists():
                n_unreadable += 1
        known = {key for table in tables for key in table["key"]}
        rows = []
        single = [file for file in self._files("runs", "json") if file.stem not in known]
        with counting(len(single), "files of runs") as step:
            for file in single:
                row = _read_row(file)
                if row is None or not needed <= set(row):
                    n_unreadable += 1
                else:
                    rows.append(row)
                step()
        if rows or not tables:
            tables.append(table_of(rows, self.axes))
        found = pd.concat(tables) if len(tables) > 1 else tables[0]
        return found.drop_duplicates("key").sort_values("key", ignore_index=True), n_unreadable

    def failures(self) -> list[dict[str, Any]]:
        """Return why runs failed."""
        trees = map(_read_json, self._files("failed", "json"))
        return [tree for tree in trees if tree is not None and "reason" in tree]

    def write_results(self, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
        """Write the table of all rows, and return it."""
        table = table_of(rows, self.axes)
        write_atomically(self._table_file, _parquet(table))
        return table

    @property
    def _table_file(self) -> Path:
        return self.folder / "results.parquet"

    def _files(self, name: str, suffix: str) -> list[Path]:
        return sorted((self.folder / name).glob(f"*.{suffix}"))

    def _run_file(self, key: str) -> Path:
        return self.folder / "runs" / f"{key}.json"

    def _rows_of_runs(self) -> Iterator[dict[str, Any]]:
        for file in self._files("runs", "json"):
            row = _read_row(file)
            if row is not None:
                yield row

    def _rows_of_shards(self) -> Iterator[dict[str, Any]]:
        for file in self._files("shards", "parquet"):
            table = read_parquet(file)
            if table is not None:
                for row in table.to_dict("records"):
                    yield {str(name): value for name, value in row.items()}


@contextmanager
def opened(
    experiment: Experiment, folder: str | PathLike[str], versions: Mapping[str, str], file: str = ""
) -> Iterator[RunStore]:
    """Hold the folder of an experiment for one sweep; make it where there is none.

    Dying lets go of it, too. ``file`` is where the experiment was read from. Where the folder has
    labels of the axes that the experiment has not, it keeps them (`datacollect.study.growth`).

    Raises
    ------
    ProblemError
        It holds another experiment, another sweep holds it, or it cannot be written.
    """
    root = Path(folder)
    _before(root, experiment, versions)
    make_folder(root, "results", FOLDERS)
    with _lock(root):
        found, grown = _before(root, experiment, versions)
        token = found.get("token") or secrets.token_hex(8)
        sha256 = _sha256(grown, versions)
        first = found.get("first_sha256") or found.get("sha256") or sha256
        hashes = {"sha256": sha256, "first_sha256": first}
        own = {"versions": dict(versions), **hashes, "token": token, "file": file}
        text = json.dumps(grown.to_dict() | own, indent=2, ensure_ascii=False)
        write_atomically(root / "experiment.json", f"{text}\n".encode())
        yield RunStore(root, first, tuple(axis.name for axis in grown.axes), token)


def make_folder(folder: Path, what: str, inner: Iterable[str] = ("",)) -> None:
    """Make a folder that users name, and folders in it, if need be.

    Raises
    ------
    ProblemError
        It cannot be made.
    """
    try:
        for name in inner:
            (folder / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ProblemError(
            f"{folder}: the folder of {what} cannot be made: {error.strerror}; name another"
        ) from None


def _before(
    root: Path, experiment: Experiment, versions: Mapping[str, str]
) -> tuple[dict[str, Any], Experiment]:
    """What a folder says of its experiment, {} where there is none, and both together."""
    file = root / "experiment.json"
    found = _read_json(file)
    if found is None and file.exists():
        raise ProblemError(f"{file}: cannot be read as JSON; sweep into another folder")
    if found is None or found.get("sha256") == _sha256(experiment, versions):
        return found or {}, experiment
    try:
        axes = tuple(Axis.from_dict(axis) for axis in found["axes"])
    except (KeyError, TypeError):
        raise ProblemError(f"{file}: names no axes; sweep into another folder") from None
    # All else is the same where the folder's own axes make the folder's own hash.
    if found.get("sha256") != _sha256(replace(experiment, axes=axes), versions):
        raise ProblemError(f"{root}: {_what_differs(found, experiment, versions)}")
    try:
        return found, experiment.with_axes(grown_axes(axes, experiment.axes))
    except ProblemError as error:
        raise ProblemError(
            f"{root}: the folder holds results of other axes: {error}; or sweep into another "
            f"folder, with --reuse {root}"
        ) from None


def _sha256(experiment: Experiment, versions: Mapping[str, str]) -> str:
    return sha256_of({"experiment": experiment.sha256, "versions": dict(versions)})


def _lock(folder: Path) -> TextIO:
    """Hold the folder; closing what is returned lets go of it."""
    import fcntl

    file = (folder / ".lock").open("w", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise ProblemError(
            f"{folder}: another sweep is running in this folder; wait for it, or end it"
        ) from None
    return file


def read_parquet(file: Path) -> pd.DataFrame | None:
    """Read a table; one that is damaged counts as absent."""
    import pandas as pd
    from pyarrow.lib import ArrowException

    try:
        return pd.read_parquet(file)
    except (OSError, ValueError, ArrowException):
        return None


def read_rows(file: Path) -> pd.DataFrame | None:
    """Read rows that were published; a file that is damaged counts as absent."""
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


@lru_cache(maxsize=32)
def _published_rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Return rows that were published in a folder, by key; none where there are none."""
    table = read_rows(folder / ROWS_FILE) if (folder / ROWS_FILE).exists() else None
    if table is None or not set(COLUMNS) - set(LATER) <= set(table.columns):
        return {}
    rows = with_later(table).to_dict("records")
    return {row["key"]: {str(name): value for name, value in row.items()} for row in rows}


def _read_bytes(file: Path) -> bytes | None:
    """Read a file, unpacked; one that is damaged counts as absent."""
    try:
        return gzip.decompress(file.read_bytes()) if file.suffix == PACKED else file.read_bytes()
    except (OSError, EOFError, zlib.error):
        return None


def _what_differs(
    before: Mapping[str, Any], experiment: Experiment, versions: Mapping[str, str]
) -> str:
    remedy = "sweep into another folder"
    if before.get("name") != experiment.name:
        return (
            f"the folder holds results of the experiment {before.get('name')!r}, not "
            f"{experiment.name!r}; {remedy}"
        )
    old = before.get("versions") or {}
    for name in sorted({*old, *versions}):
        if old.get(name) != versions.get(name):
            return (
                f"the folder holds results of {name} {old.get(name, 'none')}, here is "
                f"{versions.get(name, 'none')}; {remedy}, or install that version"
            )
    old, new = before, json.loads(json.dumps(experiment.to_dict()))
    parts = [part for part in ("engine", "scenario", "grids") if old.get(part) != new[part]]
    return (
        f"the folder holds results of another experiment of the name {experiment.name!r}: "
        f"{' and '.join(parts) or 'the files that it names'} differ; {remedy}"
    )


def _read_json(file: Path) -> dict[str, Any] | None:
    """Read an object; a file that is damaged counts as absent."""
    try:
        tree = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    return tree if isinstance(tree, dict) else None


def _read_row(file: Path) -> dict[str, Any] | None:
    """Read the row of a run; a file that is damaged, or of another run, counts as absent."""
    tree = _read_json(file)
    row = None if tree is None or tree.get("format") != RUN_FORMAT else tree.get("row")
    if not isinstance(row, dict) or row.get("key") != file.stem:
        return None
    return {name: math.nan if value is None else value for name, value in row.items()}


def _parquet(table: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()
