"""Folders of sweeps as a reader takes them: what was to be run, and the table of what was.

A sweep may still be running, or may have been killed: rows that its table lacks are read from the
files of single runs and shards, and a file cut short is left out and counted.
"""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.experiment_fields import DATA, EXPERIMENT_FORMAT
from datacollect.run_rows import COLUMNS, table_of
from datacollect.run_store import RunStore, read_parquet

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd

NEEDED = ("name", "engine", "scenario", "axes", "panels", "sha256")


@dataclass(frozen=True)
class ReadAxis:
    """An axis, as the folder of a sweep says.

    Attributes
    ----------
    name : str
    paired : bool
        Its values met the same network, run for run.
    changes : mapping
        What each label changes in the scenario, by place; in the file's order.
    only : mapping
        For each label, the labels of other axes that it was combined with.
    """

    name: str
    paired: bool
    changes: Mapping[str, Mapping[str, Any]]
    only: Mapping[str, Mapping[str, list[str]]]

    @property
    def labels(self) -> list[str]:
        """Labels, in the file's order."""
        return list(self.changes)

    @property
    def changes_method(self) -> bool:
        """Whether its values differ in the method, or in how it is carried out."""
        return any(place.split(".")[0] == "method" for c in self.changes.values() for place in c)


@dataclass(frozen=True, eq=False)
class SweepFolder:
    """One sweep.

    Attributes
    ----------
    folder : Path
    name : str
        For files and headings; unique among the sweeps of a report.
    tree : mapping
        ``experiment.json``.
    axes : tuple of ReadAxis
    table : DataFrame
        A row for each run: the axes, then ``datacollect.run_rows.COLUMNS``; sorted by key.
    n_unreadable : int
        Files of runs that are cut short or of another format.
    failures : tuple of mapping
        Why runs failed.
    """

    folder: Path
    name: str
    tree: Mapping[str, Any]
    axes: tuple[ReadAxis, ...]
    table: pd.DataFrame
    n_unreadable: int
    failures: tuple[Mapping[str, Any], ...]

    @cached_property
    def axis(self) -> dict[str, ReadAxis]:
        """The axes by name."""
        return {axis.name: axis for axis in self.axes}

    @property
    def engine(self) -> str:
        """Engine of all runs."""
        return str(self.tree["engine"])

    @property
    def scale(self) -> float:
        """Factor on backlogs and probes."""
        return float(self.tree["scenario"].get("scale", 1.0))

    def settings(self) -> list[dict[str, str]]:
        """Return the labels of every setting, in the file's order."""
        axes = [axis for axis in self.axes if not axis.paired]
        found = []
        for values in product(*(axis.labels for axis in axes)):
            labels = dict(zip((axis.name for axis in axes), values, strict=True))
            only = [axis.only[labels[axis.name]] for axis in axes]
            if all(labels[name] in some for table in only for name, some in table.items()):
                found.append(labels)
        return found

    def scenario(self, labels: Mapping[str, str]) -> dict[str, Any]:
        """Return the scenario of a run with these labels, seed apart."""
        tree = copy.deepcopy(dict(self.tree["scenario"]))
        for name, label in labels.items():
            for place, value in self.axis[name].changes[label].items():
                _put(tree, place, value)
        return tree

    def command(self, n_seeds: int) -> str:
        """Return what runs its settings with a number of seeds; DATA is the folder of data."""
        tree = self.tree
        words = ["datacollect", "sweep", tree.get("file") or f"{tree['name']}.toml"]
        words += ["-o", str(self.folder), "--scale", f"{self.scale:g}", "--seeds", str(n_seeds)]
        for axis in self.axes:
            run = [label for label in axis.labels if (self.table[axis.name] == label).any()]
            if len(run) < len(axis.labels):
                # As CSV: labels with commas stand in double quotes.
                labels = ",".join(f'"{label}"' if "," in label else label for label in run)
                words += ["--only", f"{axis.name}={labels}"]
        data = ["--data", "DATA"] if DATA in json.dumps([tree["axes"], tree.get("grids")]) else []
        return " ".join([*map(shlex.quote, words), *data])

    def document(self, key: str) -> dict[str, Any] | None:
        """Return what is kept of a run in ns-3; None where there is nothing that can be read."""
        try:
            tree = json.loads((self.folder / "runs" / f"{key}.json").read_bytes())
        except (OSError, ValueError):
            return None
        return tree if isinstance(tree, dict) else None


def read_sweeps(directory: str | PathLike[str]) -> list[SweepFolder]:
    """Read a sweep's folder, or all sweeps right below a folder, sorted by name.

    Raises
    ------
    ProblemError
        There is no folder, no sweep in it, or a sweep without a single finished run.
    """
    root = Path(directory)
    if not root.is_dir():
        reason = "is no folder" if root.exists() else "no such folder"
        raise ProblemError(f"{root}: {reason}; name the folder of a sweep, or one that holds some")
    if (root / "experiment.json").exists():
        folders = [root]
    else:
        folders = sorted(f.parent for f in root.glob("*/experiment.json"))
    if not folders:
        what = "the folder is empty" if not any(root.iterdir()) else "no experiment.json in it"
        raise ProblemError(
            f"{root}: {what}, nor in a folder right below; `datacollect sweep EXPERIMENT.toml -o "
            f"{root}` makes one"
        )
    sweeps = [_read(folder) for folder in folders]
    if all(sweep.table.empty for sweep in sweeps):
        failed = sum(len(sweep.failures) for sweep in sweeps)
        unreadable = sum(sweep.n_unreadable for sweep in sweeps)
        raise ProblemError(
            f"{root}: no run is finished ({failed} failed, {unreadable} files cannot be read); "
            "start the same sweep again: it goes on"
        )
    return _with_own_names(sweeps)


def _read(folder: Path) -> SweepFolder:
    tree = _experiment_tree(folder / "experiment.json")
    axes = tuple(_axis(axis) for axis in tree["axes"])
    names = tuple(axis.name for axis in axes)
    store = RunStore(folder, tree["sha256"], names)
    table, n_unreadable = _all_rows(store)
    return SweepFolder(
        folder, tree["name"], tree, axes, table, n_unreadable, tuple(store.failures())
    )


def _experiment_tree(file: Path) -> Mapping[str, Any]:
    try:
        tree = json.loads(file.read_bytes())
    except (OSError, ValueError):
        raise ProblemError(
            f"{file}: cannot be read as JSON; is it cut short? Sweep into another folder, with "
            f"--reuse {file.parent}"
        ) from None
    if not isinstance(tree, Mapping) or tree.get("format") != EXPERIMENT_FORMAT:
        got = tree.get("format") if isinstance(tree, Mapping) else type(tree).__name__
        raise ProblemError(
            f"{file}: format must be {EXPERIMENT_FORMAT!r}, got {got!r}; name the folder of a sweep"
        )
    missing = [key for key in NEEDED if key not in tree]
    if missing:
        raise ProblemError(
            f"{file}: {', '.join(missing)} missing; name a folder that `datacollect sweep` made"
        )
    return tree


def _axis(tree: Mapping[str, Any]) -> ReadAxis:
    values = {value["label"]: value for value in tree["values"]}
    return ReadAxis(
        name=tree["name"],
        paired=bool(tree["paired"]),
        changes={label: value.get("set", {}) for label, value in values.items()},
        only={label: value.get("only", {}) for label, value in values.items()},
    )


def _all_rows(store: RunStore) -> tuple[pd.DataFrame, int]:
    """The table on disk and what it lacks yet; how many files cannot be read."""
    import pandas as pd

    columns = [*(axis for axis in store.axes if axis not in COLUMNS), *COLUMNS]
    tables, n_unreadable = [], 0
    files = [store.folder / "results.parquet", *sorted((store.folder / "shards").glob("*.parquet"))]
    for file in files:
        table = read_parquet(file) if file.exists() else None
        if table is not None and set(columns) <= set(table.columns):
            tables.append(table[columns])
        elif file.exists():
            n_unreadable += 1
    known = {key for table in tables for key in table["key"]}
    rows = []
    for file in sorted((store.folder / "runs").glob("*.json")):
        if file.stem in known:
            continue
        row = store.row(file.stem)
        if row is None or not set(columns) <= set(row):
            n_unreadable += 1
        else:
            rows.append(row)
    if rows or not tables:
        tables.append(table_of(rows, store.axes))
    found = pd.concat(tables) if len(tables) > 1 else tables[0]
    return found.drop_duplicates("key").sort_values("key", ignore_index=True), n_unreadable


def _put(tree: dict[str, Any], place: str, value: Any) -> None:
    """Change one place; None takes it out."""
    *tables, key = place.split(".")
    for name in tables:
        tree = tree.setdefault(name, {})
    if value is None:
        tree.pop(key, None)
    else:
        tree[key] = value


def _with_own_names(sweeps: list[SweepFolder]) -> list[SweepFolder]:
    """Call sweeps of the same experiment by their folders."""
    names = [sweep.name for sweep in sweeps]
    return [
        replace(sweep, name=sweep.folder.resolve().name) if names.count(sweep.name) > 1 else sweep
        for sweep in sweeps
    ]
