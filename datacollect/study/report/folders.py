"""Folders of sweeps as a reader takes them: what was to be run, and the table of what was.

A sweep may still be running, or may have been killed: rows are read from its parts, too, and what
is damaged is left out and counted.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.scenario.places import put
from datacollect.study.axes import Axis, changes_of, combinations, labels_by_axis, paired, unpaired
from datacollect.study.fields import DATA, EXPERIMENT_FORMAT
from datacollect.study.folded import ROWS_FILE, read_experiment
from datacollect.study.starts import sweep_command
from datacollect.study.store import EXPERIMENT_FILE, RunStore, experiment_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    import pandas as pd

    from datacollect.study.axes import Labels

NEEDED = ("name", "engine", "scenario", "axes", "panels", "sha256")


@dataclass(frozen=True, eq=False)
class SweepFolder:
    """One sweep.

    Attributes
    ----------
    store : RunStore
    name : str
        For files and headings; unique among the sweeps of a report.
    tree : mapping
        ``experiment.json``.
    axes : tuple of Axis
    table : DataFrame
        A row for each run: the axes, then ``datacollect.study.columns.COLUMNS``; sorted by key.
    unreadable : tuple of str
        Files of runs, and lines of parts, that are damaged or of another format.
    failures : tuple of mapping
        Why runs failed.
    """

    store: RunStore
    name: str
    tree: Mapping[str, Any]
    axes: tuple[Axis, ...]
    table: pd.DataFrame
    unreadable: tuple[str, ...]
    failures: tuple[Mapping[str, Any], ...]

    @property
    def n_unreadable(self) -> int:
        """Return how many of them there are."""
        return len(self.unreadable)

    @property
    def folder(self) -> Path:
        """Return where it is."""
        return self.store.folder

    @cached_property
    def axis(self) -> dict[str, Axis]:
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

    def settings(self) -> list[Labels]:
        """Return the labels of every setting, in the file's order."""
        return combinations(unpaired(self.axes))

    def treatments(self) -> list[Labels]:
        """Return the labels of every run of a setting and seed, in the file's order."""
        return combinations(paired(self.axes))

    def labels(self, setting: Labels, treatment: Labels) -> dict[str, str]:
        """Return the label of every axis, by its name, in the file's order."""
        return labels_by_axis(self.axes, setting, treatment)

    def scenario(self, labels: Mapping[str, str]) -> dict[str, Any]:
        """Return the scenario of a run with these labels, seed apart.

        As it was written, not read again: folders of earlier versions stay readable.
        """
        tree = copy.deepcopy(dict(self.tree["scenario"]))
        for place, value in changes_of(self.axes, labels).items():
            put(tree, place, value)
        return tree

    def command(self, n_seeds: int) -> str:
        """Return what runs its settings with a number of seeds; DATA is the folder of data."""
        tree = self.tree
        run = {
            axis.name: [label for label in axis.labels if (self.table[axis.name] == label).any()]
            for axis in self.axes
        }
        needs_data = DATA in json.dumps([tree["axes"], tree.get("grids")])
        return sweep_command(
            tree.get("file") or f"{tree['name']}.toml",
            self.folder,
            scale=self.scale,
            probe_scale=tree["scenario"].get("probe_scale"),
            seeds=n_seeds,
            only={a.name: run[a.name] for a in self.axes if len(run[a.name]) < len(a.labels)},
            data="DATA" if needs_data else None,
        )

    def document(self, key: str) -> dict[str, Any] | None:
        """Return what is kept of a run in ns-3; None where nothing can be read."""
        return self.store.document(key)


def read_sweeps(directory: str | PathLike[str]) -> list[SweepFolder]:
    """Read a sweep's folder, or all sweeps right below a folder, sorted by name.

    Raises
    ------
    ProblemError
        There is no folder, no sweep in it, or a sweep without a single finished run.
    """
    root = Path(directory)
    if not root.is_dir():
        reason = "is not a folder" if root.exists() else "no such folder"
        raise ProblemError(f"{root}: {reason}; name the folder of a sweep, or one that holds some")
    folders = [root] if _is_sweep(root) else sorted(filter(_is_sweep, root.iterdir()))
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
            "start the same sweep again: it continues"
        )
    return _with_own_names(sweeps)


def axes_of(folder: str | PathLike[str]) -> tuple[Axis, ...]:
    """Return the axes of the sweep in a folder, with all labels that it ever had."""
    return _axes_in(_experiment_tree(Path(folder)))


def _is_sweep(folder: Path) -> bool:
    """Return whether a folder is one of a sweep, or of published rows that say what was run."""
    return (folder / EXPERIMENT_FILE).exists() or read_experiment(folder / ROWS_FILE) is not None


def _axes_in(tree: Mapping[str, Any]) -> tuple[Axis, ...]:
    return tuple(Axis.from_dict(axis) for axis in tree["axes"])


def _read(folder: Path) -> SweepFolder:
    tree = _experiment_tree(folder)
    axes = _axes_in(tree)
    names = tuple(axis.name for axis in axes)
    store = RunStore(folder, tree["sha256"], names)
    kept = store.read()
    return SweepFolder(store, tree["name"], tree, axes, kept.table, kept.unreadable, kept.failures)


def _experiment_tree(folder: Path) -> Mapping[str, Any]:
    file, tree = folder / EXPERIMENT_FILE, experiment_in(folder)
    if tree is None:
        # Not with --reuse: who cannot read it does not know whose runs these are.
        raise ProblemError(
            f"{file}: cannot be read as JSON; is it cut short? Sweep into another folder"
        )
    if tree.get("format") != EXPERIMENT_FORMAT:
        raise ProblemError(
            f"{file}: format must be {EXPERIMENT_FORMAT!r}, got {tree.get('format')!r}; name the "
            "folder of a sweep"
        )
    missing = [key for key in NEEDED if key not in tree]
    if missing:
        raise ProblemError(
            f"{file}: {', '.join(missing)} missing; name a folder that `datacollect sweep` made"
        )
    return tree


def _with_own_names(sweeps: list[SweepFolder]) -> list[SweepFolder]:
    """Call sweeps of the same experiment by their folders, and those in a folder NAME_MORE too."""
    names = [sweep.name for sweep in sweeps]
    return [
        replace(sweep, name=own)
        if names.count(sweep.name) > 1 or own.startswith(f"{sweep.name}_")
        else sweep
        for sweep in sweeps
        for own in [sweep.folder.absolute().name]
    ]
