"""The experiment: a scenario, the axes along which it varies, seeds and the precision wanted.

A *setting* is one point of the product of all axes that are not paired. A *way* is one point of
the product of the paired ones, mostly a method. All ways of a setting with one seed form a group:
they meet the same network, background and measurement, so that differences are paired.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.documents import document_name, read_tree
from datacollect.errors import ProblemError, nearest_hint
from datacollect.experiment_fields import (
    DATA,
    EXPERIMENT,
    EXPERIMENT_FORMAT,
    GRIDS,
    reject_impossible,
)
from datacollect.grid_problems import PROBLEM_FILE, TRUTH_FILE, Grids
from datacollect.kinds import shown_text, wrong
from datacollect.scenario import Scenario, naming

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

# Columns of the results that no axis can be called. An axis may be called method.
RESERVED = ("key", "seed", "engine")

# Places whose values name files: what counts in a hash is what is in them.
FILE_PLACES = ("problem", "truth_csv", "estimates.file", "topology.file")

_DRAWN = {"problem": PROBLEM_FILE, "truth_csv": TRUTH_FILE}

# More settings and ways than anybody waits for: a slip in the file.
MOST_RUNS_PER_SEED = 100_000


@dataclass(frozen=True)
class AxisValue:
    """One value of an axis: its label, and what it changes in the scenario.

    Attributes
    ----------
    label : str
    values : mapping
        From places to values, as `Scenario.with_values` takes them; None leaves a place out.
    only : mapping
        Labels that it is combined with, by axis; all labels of the axes that are not named.
    """

    label: str
    values: Mapping[str, Any]
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Axis:
    """One thing that varies."""

    name: str
    paired: bool
    values: tuple[AxisValue, ...]

    @property
    def labels(self) -> list[str]:
        """Labels of its values."""
        return [value.label for value in self.values]

    def value(self, label: str) -> AxisValue:
        """Return the value of a label."""
        return next(value for value in self.values if value.label == label)


@dataclass(frozen=True)
class Seeds:
    """How often each setting is drawn anew; seeds are added in whole batches."""

    first: int
    batch: int
    least: int
    most: int

    def numbers(self) -> list[int]:
        """Return after how many seeds precision is judged, increasing, the last `most`.

        >>> Seeds(first=1, batch=5, least=7, most=18).numbers()
        [10, 15, 18]
        """
        begin = -(-self.least // self.batch) * self.batch
        return [*(n for n in range(begin, self.most, self.batch)), self.most]

    def seeds(self, n: int) -> list[int]:
        """Return the first `n` seeds."""
        return list(range(self.first, self.first + n))


@dataclass(frozen=True)
class Precision:
    """Half-width over the mean, confidence, and the columns that must have it."""

    half_width: float
    confidence: float
    of: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Experiment:
    """A validated experiment file.

    Attributes
    ----------
    name : str
    title : str
        What it shows; may be empty.
    scenario : Scenario
        With all that the experiment changes for every run.
    engine : {"ns3", "fluid"}
    axes : tuple of Axis
    seeds : Seeds
    precision : Precision or None
    panels : tuple of dict
        What the report draws.
    grids : Grids or None
        What problems are drawn from, instead of a scenario with a topology.
    data : str
        Folder that stands for ``{data}`` in values; empty where none is given.

    Examples
    --------
    >>> experiment = Experiment.from_dict(
    ...     {
    ...         "engine": "fluid",
    ...         "seeds": {"least": 2, "batch": 2},
    ...         "axes": [
    ...             {"name": "rate", "key": "topology.rate_bytes_per_s", "values": [1e5, 1e6]},
    ...             {
    ...                 "name": "method",
    ...                 "key": "method.name",
    ...                 "paired": True,
    ...                 "values": ["direct", "coordinated"],
    ...             },
    ...         ],
    ...     },
    ...     scenario={
    ...         "topology": {"kind": "line", "n_nodes": 2, "rate_bytes_per_s": 1e6},
    ...         "hosts": {
    ...             "destination": {"at": "N0"},
    ...             "sources": [{"at": "N1", "backlog_bytes": 1_000_000}],
    ...         },
    ...     },
    ... )
    >>> experiment.settings(), experiment.ways()
    ([('100000',), ('1e+06',)], [('direct',), ('coordinated',)])
    """

    name: str
    title: str
    scenario: Scenario
    engine: str
    axes: tuple[Axis, ...]
    seeds: Seeds
    precision: Precision | None
    panels: tuple[Mapping[str, Any], ...] = ()
    grids: Grids | None = None
    data: str = ""

    @classmethod
    def from_file(
        cls, path: str | PathLike[str], *, data: str | PathLike[str] | None = None
    ) -> Experiment:
        """Read an experiment file: TOML or JSON.

        Parameters
        ----------
        path : path-like
        data : path-like, optional
            Folder that stands for ``{data}`` in values.

        Raises
        ------
        ProblemError
            The message names file, place, rule, value and remedy.
        """
        tree = read_tree(path)
        if isinstance(tree, dict) and "name" not in tree:
            tree = {"name": Path(path).stem, **tree}
        with naming(document_name(path)):
            return cls.from_dict(tree, folder=Path(path).parent, data=data)

    @classmethod
    def from_dict(
        cls,
        tree: Mapping[str, Any],
        folder: str | PathLike[str] | None = None,
        *,
        scenario: Scenario | Mapping[str, Any] | None = None,
        data: str | PathLike[str] | None = None,
    ) -> Experiment:
        """Build an experiment from the tree of an experiment file (see the docs, File formats).

        Parameters
        ----------
        tree : mapping
        folder : path-like, optional
            What file names are relative to; by default the working directory.
        scenario : Scenario or mapping, optional
            Instead of the file that the tree names.
        data : path-like, optional
            Folder that stands for ``{data}`` in values.

        Raises
        ------
        ProblemError
            The message names place, rule, value and remedy.
        """
        if not isinstance(tree, Mapping):
            raise wrong("", "must be a table of keys and values", tree)
        values = EXPERIMENT.read(tree, "")
        reject_impossible(values)
        seeds = dict(values["seeds"])
        seeds["most"] = seeds["least"] if seeds["most"] is None else seeds["most"]
        precision = values["precision"]
        grids = None
        if values["grids"] is not None:
            grids = _grids(values["grids"], Path(folder or "."))
        experiment = cls(
            name=values["name"],
            title=values["title"] or "",
            scenario=_base(values, Path(folder or "."), scenario),
            engine=values["engine"],
            axes=tuple(_axis(axis, i) for i, axis in enumerate(values["axes"])),
            seeds=Seeds(**seeds),
            precision=precision and Precision(**precision | {"of": tuple(precision["of"])}),
            panels=tuple(values["panels"]),
            grids=grids,
            data="" if data is None else str(Path(data).resolve()),
        )
        _check_axes(experiment)
        _check_panels(experiment)
        _check_runs(experiment)
        return experiment

    def setting_axes(self) -> list[Axis]:
        """Return the axes whose values make settings."""
        return [axis for axis in self.axes if not axis.paired]

    def paired_axes(self) -> list[Axis]:
        """Return the axes whose values meet the same network, run for run."""
        return [axis for axis in self.axes if axis.paired]

    def settings(self) -> list[tuple[str, ...]]:
        """Return the labels of every setting, in the file's order."""
        return _combinations(self.setting_axes())

    def ways(self) -> list[tuple[str, ...]]:
        """Return the labels of every run of a group, in the file's order."""
        return _combinations(self.paired_axes())

    def labels(self, setting: Sequence[str], way: Sequence[str]) -> dict[str, str]:
        """Return the label of every axis, by its name, in the file's order."""
        found = dict(zip((a.name for a in self.setting_axes()), setting, strict=True))
        found |= zip((a.name for a in self.paired_axes()), way, strict=True)
        return {axis.name: found[axis.name] for axis in self.axes}

    def scenario_of(self, setting: Sequence[str], way: Sequence[str], seed: int) -> Scenario:
        """Return the scenario of one run.

        Raises
        ------
        ProblemError
            The scenario breaks a rule with these values; the message names the run.
        """
        labels = self.labels(setting, way)
        changes = {"run.seed": seed, **self._changes(labels, of_grids=False)}
        with naming(f"run {shown_labels(labels)}, seed {seed}"):
            return self.scenario.with_values(changes)

    def grids_of(self, setting: Sequence[str]) -> Grids | None:
        """Return what the problems of a setting are drawn from, if they are."""
        if self.grids is None:
            return None
        labels = self.labels(setting, self.ways()[0])
        changes = self._changes(labels, of_grids=True)
        with naming(f"run {shown_labels(labels)}"):
            tree = GRIDS.read(self._with_data(self.grids.to_dict()) | changes, "grids")
            return _grids(tree, self.grids.folder)

    def _changes(self, labels: Mapping[str, str], *, of_grids: bool) -> dict[str, Any]:
        """What the labels change, in the grids or in the scenario."""
        changes: dict[str, Any] = {}
        for axis in self.axes:
            changes |= axis.value(labels[axis.name]).values
        start = "grids."
        return {
            place.removeprefix(start): self._with_data(value)
            for place, value in changes.items()
            if place.startswith(start) == of_grids
        }

    def _with_data(self, value: Any) -> Any:
        """Put the folder of data in."""
        if isinstance(value, str) and DATA in value:
            if not self.data:
                raise ProblemError(f"{value!r} needs the folder of data; name it with --data")
            return value.replace(DATA, self.data)
        if isinstance(value, Mapping):
            return {key: self._with_data(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._with_data(item) for item in value]
        return value

    def require_data(self) -> None:
        """Refuse to begin where a value needs the folder of data and there is none.

        Raises
        ------
        ProblemError
            The message names the value.
        """
        self._with_data([dict(value.values) for axis in self.axes for value in axis.values])
        if self.grids is not None:
            self._with_data(self.grids.to_dict())

    def with_seeds(self, most: int) -> Experiment:
        """Return it with other numbers of seeds at most."""
        least = min(self.seeds.least, most)
        if self.precision is not None and least < 2:
            raise ProblemError(f"the number of seeds must be >= 2 with a precision, got {most}")
        return replace(self, seeds=replace(self.seeds, least=least, most=most))

    def with_scale(self, scale: float) -> Experiment:
        """Return it with another factor on backlogs and probes."""
        return replace(self, scenario=self.scenario.with_values({"scale": scale}))

    def only(self, labels: Mapping[str, Sequence[str]]) -> Experiment:
        """Return the part with these labels, by axis.

        Raises
        ------
        ProblemError
            There is no such axis or label, or nothing is left.
        """
        axes = {axis.name: axis for axis in self.axes}
        for name, wanted in labels.items():
            if name not in axes:
                known = nearest_hint(name, axes) or f"; there are {', '.join(axes)}"
                raise ProblemError(f"only: no axis is called {name!r}{known}")
            for label in wanted:
                _require_label(axes[name], label, "only")
            if not wanted:
                raise ProblemError(f"only: no label of {name!r} is left; name one")
            values = tuple(v for v in axes[name].values if v.label in wanted)
            axes[name] = replace(axes[name], values=values)
        part = replace(self, axes=tuple(axes.values()))
        _require_some(part)
        return part

    def to_dict(self) -> dict[str, Any]:
        """Return all that it says, the scenario and every default written out."""
        precision = self.precision
        return {
            "format": EXPERIMENT_FORMAT,
            "name": self.name,
            "title": self.title,
            "engine": self.engine,
            "scenario": self.scenario.to_dict(),
            "grids": None if self.grids is None else self.grids.to_dict(),
            "seeds": vars(self.seeds),
            "precision": precision and {**vars(precision), "of": list(precision.of)},
            "axes": [
                {
                    "name": axis.name,
                    "paired": axis.paired,
                    "values": [
                        {"label": v.label, "set": dict(v.values), "only": dict(v.only)}
                        for v in axis.values
                    ],
                }
                for axis in self.axes
            ],
            "panels": [dict(panel) for panel in self.panels],
        }

    @property
    def sha256(self) -> str:
        """Hash of what its runs are: not of seeds, precision and panels, which may change."""
        tree = {k: v for k, v in self.to_dict().items() if k in ("name", "engine", "axes")}
        if self.grids is None:
            tree["scenario"] = by_content(self.scenario)
        else:
            grids = _grids(self._with_data(self.grids.to_dict()), self.grids.folder)
            tree |= {"scenario": self.scenario.to_dict(), "grids": grids.by_content()}
        return sha256_of(tree)


def sha256_of(tree: Any) -> str:
    """Hash a tree of JSON."""
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()


def by_content(scenario: Scenario) -> dict[str, Any]:
    """Return the scenario's tree with the hash of each file that it names instead of its name."""
    tree = scenario.to_dict()
    for place in FILE_PLACES:
        *tables, key = place.split(".")
        table = tree
        for name in tables:
            table = table.get(name, {})
        if key in table:
            table[key] = _content(scenario.folder / table[key], place)
    return tree


def _content(file: Path, place: str) -> str:
    from datacollect.documents import read_bytes

    with naming(place):
        data = read_bytes(file)
        digest = hashlib.sha256(data)
        if place == "problem" and isinstance(tree := read_tree(file), Mapping):
            links = tree.get("bandwidth_csv")
            if isinstance(links, str):
                digest.update(read_bytes(file.parent / links))
    return f"sha256:{digest.hexdigest()}"


def shown_labels(labels: Mapping[str, str]) -> str:
    """Return labels for people.

    >>> shown_labels({"flows": "20", "method": "direct"})
    "flows = '20', method = 'direct'"
    """
    return ", ".join(f"{axis} = {label!r}" for axis, label in labels.items()) or "without axes"


# What a file says -------------------------------------------------------------------------------


def _base(
    values: Mapping[str, Any], folder: Path, given: Scenario | Mapping[str, Any] | None
) -> Scenario:
    """Return the scenario with what the experiment changes for all runs."""
    named = [key for key in ("scenario", "grids") if values[key] is not None]
    if len(named) + (given is not None) != 1:
        got = " and ".join(named) or "neither"
        raise ProblemError(
            f"an experiment has either a scenario or grids, got {got}; name one of them"
        )
    if isinstance(given, Scenario):
        scenario = given
    elif given is not None:
        scenario = Scenario.from_dict(given, folder)
    elif values["grids"] is not None:
        scenario = Scenario.from_dict(_DRAWN | {"name": values["name"]}, folder)
    else:
        with naming("scenario"):
            scenario = Scenario.from_file(folder / values["scenario"])
    if values["engine"] == "ns3" and not scenario.has_topology:
        raise wrong("engine", 'must be "fluid" without a topology', "ns3", "add engine")
    changes = {**values["set"], **dict.fromkeys(values["without"])}
    if values["scale"] is not None:
        changes["scale"] = values["scale"]
    with naming("set"):
        return scenario.with_values(changes)


def _grids(values: Mapping[str, Any], folder: Path) -> Grids:
    columns, limits = tuple(values["columns"]), tuple(values["limits"])
    return Grids(**{**values, "columns": columns, "limits": limits}, folder=folder)


def _axis(values: Mapping[str, Any], number: int) -> Axis:
    key, place = values["key"], f"axes[{number}]"
    found = []
    for i, item in enumerate(values["values"]):
        where = f"{place}.values[{i}]"
        changes = {**item["set"], **dict.fromkeys(item["without"])}
        if item["value"] is not None:
            if key is None:
                raise ProblemError(f"{where}: the axis has no key that has values; add key")
            changes = {key: item["value"], **changes}
        elif key is not None:
            raise ProblemError(f"{where}: value is missing, for the axis' key {key!r}; add it")
        found.append(AxisValue(item["label"], changes, item["only"]))
    labels = [value.label for value in found]
    for i, label in enumerate(labels):
        if label in labels[:i]:
            raise wrong(f"{place}.values[{i}]", "must have a label of its own", label, "rename it")
    return Axis(values["name"], values["paired"], tuple(found))


def _combinations(axes: Sequence[Axis]) -> list[tuple[str, ...]]:
    """Labels of all combinations of the axes' values that may be combined."""
    found = []
    for values in product(*(axis.values for axis in axes)):
        labels = {axis.name: value.label for axis, value in zip(axes, values, strict=True)}
        if all(labels[name] in only for v in values for name, only in v.only.items()):
            found.append(tuple(labels.values()))
    return found


def _check_axes(experiment: Experiment) -> None:
    from datacollect.run_rows import COLUMNS

    names = [axis.name for axis in experiment.axes]
    for i, name in enumerate(names):
        place = f"axes[{i}].name"
        if name in names[:i]:
            raise wrong(place, "must be unique", name, "rename one")
        if name != "method" and (name in RESERVED or name in COLUMNS):
            raise wrong(place, "must not be a column of the results", name, "rename it")
    _check_only(experiment)
    n_runs = prod(len(axis.values) for axis in experiment.axes)
    if n_runs > MOST_RUNS_PER_SEED:
        raise ProblemError(
            f"axes: their product must be at most {MOST_RUNS_PER_SEED}, got {n_runs}; "
            "split the experiment"
        )


def _check_only(experiment: Experiment) -> None:
    axes = {axis.name: axis for axis in experiment.axes}
    for i, axis in enumerate(experiment.axes):
        for j, value in enumerate(axis.values):
            place = f"axes[{i}].values[{j}].only"
            for name, labels in value.only.items():
                _require_axis(axes, name, place)
                if axes[name].paired != axis.paired:
                    rule = "must name an axis that is paired too, or not paired either"
                    raise wrong(place, rule, name, "change paired")
                for label in labels:
                    _require_label(axes[name], label, f"{place}.{name}")
    _require_some(experiment)


def _require_some(experiment: Experiment) -> None:
    if not experiment.settings() or not experiment.ways():
        raise ProblemError("axes: no combination of labels is left; name more labels")


def _check_panels(experiment: Experiment) -> None:
    axes = {axis.name: axis for axis in experiment.axes}
    for i, panel in enumerate(experiment.panels):
        for key in ("x", "series"):
            _require_axis(axes, panel[key], f"panels[{i}].{key}")
        for name, label in panel["where"].items():
            _require_axis(axes, name, f"panels[{i}].where")
            _require_label(axes[name], label, f"panels[{i}].where.{name}")
        if panel["over"] is not None:
            _require_label(axes[panel["series"]], panel["over"], f"panels[{i}].over")


def _require_axis(axes: Mapping[str, Axis], name: Any, place: str) -> None:
    if name not in axes:
        known = nearest_hint(str(name), axes)[2:] or f"there are {', '.join(axes)}"
        raise wrong(place, "must name an axis", name, known)


def _require_label(axis: Axis, label: Any, place: str) -> None:
    if label not in axis.labels:
        listed = f"there are {', '.join(map(shown_text, axis.labels[:8]))}"
        known = nearest_hint(str(label), axis.labels)[2:] or listed
        raise wrong(place, f"must be a label of the axis {axis.name!r}", label, known)


def _check_runs(experiment: Experiment) -> None:
    """Refuse what the scenario refuses, in any combination."""
    # Files are not opened yet: a part of the experiment may do without the folder of data.
    anywhere = replace(experiment, data=experiment.data or DATA)
    seen: dict[str, str] = {}
    for setting in experiment.settings():
        grids = anywhere.grids_of(setting)
        for way in experiment.ways():
            scenario = anywhere.scenario_of(setting, way, experiment.seeds.first)
            tree = {"scenario": scenario.to_dict(), "grids": grids and grids.to_dict()}
            labels = shown_labels(anywhere.labels(setting, way))
            other = seen.setdefault(sha256_of(tree), labels)
            if other != labels:
                # Its results would count for both, or for neither.
                raise ProblemError(
                    f"axes: {other} and {labels} describe the same run; remove one, or change "
                    "what it sets"
                )
