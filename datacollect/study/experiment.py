"""The experiment: a scenario, the axes along which it varies, seeds and the precision wanted.

A *setting* is one point of the product of all axes that are not paired. A *way* is one point of
the product of the paired ones, mostly a method. All ways of a setting with one seed form a group:
they meet the same network, background and measurement, so that differences are paired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.documents import document_name, read_tree
from datacollect.errors import ProblemError, naming
from datacollect.kinds import wrong
from datacollect.scenario.scenario import Scenario
from datacollect.study.axes import (
    Axis,
    changes_of,
    check_axes,
    combinations,
    labels_by_axis,
    paired,
    part_of,
    require_axis,
    require_label,
    shown_labels,
    unpaired,
)
from datacollect.study.fields import (
    DATA,
    EXPERIMENT,
    EXPERIMENT_FORMAT,
    GRIDS,
    reject_impossible,
)
from datacollect.study.grids import PROBLEM_FILE, TRUTH_FILE, Grids
from datacollect.study.identity import by_content, sha256_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from datacollect.study.axes import Labels

_DRAWN = {"problem": PROBLEM_FILE, "truth_csv": TRUTH_FILE}


@dataclass(frozen=True)
class Seeds:
    """How often each setting is drawn anew; seeds are added in whole batches."""

    first: int
    batch: int
    least: int
    most: int
    chosen: tuple[int, ...] | None = None

    def numbers(self) -> list[int]:
        """Return after how many seeds precision is judged, increasing, the last `most`.

        >>> Seeds(first=1, batch=5, least=7, most=18).numbers()
        [10, 15, 18]
        """
        begin = -(-self.least // self.batch) * self.batch
        return [*(n for n in range(begin, self.most, self.batch)), self.most]

    def seeds(self, n: int) -> list[int]:
        """Return the first `n` seeds.

        >>> Seeds(1, 5, 5, 5).seeds(3), Seeds(1, 5, 5, 5, chosen=(2, 9, 4, 7, 8)).seeds(3)
        ([1, 2, 3], [2, 9, 4])
        """
        if self.chosen is not None:
            return list(self.chosen[:n])
        return list(range(self.first, self.first + n))

    def to_dict(self) -> dict[str, Any]:
        """Return what an experiment file says of them."""
        chosen = {} if self.chosen is None else {"chosen": list(self.chosen)}
        numbers = {"first": self.first, "batch": self.batch}
        return {**numbers, "least": self.least, "most": self.most, **chosen}


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
        """Build an experiment from the tree of an experiment file.

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
        seeds["chosen"] = None if seeds["chosen"] is None else tuple(seeds["chosen"])
        precision = values["precision"]
        grids = None
        if values["grids"] is not None:
            grids = Grids.from_fields(values["grids"], Path(folder or "."))
        experiment = cls(
            name=values["name"],
            title=values["title"] or "",
            scenario=_base(values, Path(folder or "."), scenario),
            engine=values["engine"],
            axes=tuple(Axis.from_fields(a, f"axes[{i}]") for i, a in enumerate(values["axes"])),
            seeds=Seeds(**seeds),
            precision=precision and Precision(**precision | {"of": tuple(precision["of"])}),
            panels=tuple(values["panels"]),
            grids=grids,
            data="" if data is None else str(Path(data).resolve()),
        )
        check_axes(experiment.axes)
        _check_panels(experiment)
        _check_runs(experiment)
        return experiment

    def setting_axes(self) -> list[Axis]:
        """Return the axes whose values make settings."""
        return unpaired(self.axes)

    def paired_axes(self) -> list[Axis]:
        """Return the axes whose values meet the same network, run for run."""
        return paired(self.axes)

    def settings(self) -> list[Labels]:
        """Return the labels of every setting, in the file's order."""
        return combinations(self.setting_axes())

    def ways(self) -> list[Labels]:
        """Return the labels of every run of a group, in the file's order."""
        return combinations(self.paired_axes())

    def labels(self, setting: Sequence[str], way: Sequence[str]) -> dict[str, str]:
        """Return the label of every axis, by its name, in the file's order."""
        return labels_by_axis(self.axes, setting, way)

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
            return Grids.from_fields(tree, self.grids.folder)

    def _changes(self, labels: Mapping[str, str], *, of_grids: bool) -> dict[str, Any]:
        """What the labels change, in the grids or in the scenario."""
        start = "grids."
        return {
            place.removeprefix(start): self._with_data(value)
            for place, value in changes_of(self.axes, labels).items()
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
        chosen = self.seeds.chosen
        if chosen is not None and most > len(chosen):
            raise ProblemError(
                f"the number of seeds must be <= {len(chosen)}, as seeds.chosen has, got {most}"
            )
        if self.precision is not None and least < 2:
            raise ProblemError(f"the number of seeds must be >= 2 with a precision, got {most}")
        return replace(self, seeds=replace(self.seeds, least=least, most=most))

    def with_scale(self, scale: float) -> Experiment:
        """Return it with another factor on backlogs, and on probes that have none of their own."""
        return replace(self, scenario=self.scenario.with_values({"scale": scale}))

    def with_probe_scale(self, scale: float) -> Experiment:
        """Return it with another factor on probes alone."""
        return replace(self, scenario=self.scenario.with_values({"probe_scale": scale}))

    def only(self, labels: Mapping[str, Sequence[str]]) -> Experiment:
        """Return the part with these labels, by axis.

        Raises
        ------
        ProblemError
            There is no such axis or label, or nothing is left.
        """
        return replace(self, axes=part_of(self.axes, labels))

    def with_axes(self, axes: Sequence[Axis]) -> Experiment:
        """Return it with other axes.

        Raises
        ------
        ProblemError
            They cannot be told apart, or two combinations of their labels describe the same run.
        """
        changed = replace(self, axes=tuple(axes))
        check_axes(changed.axes)
        _check_runs(changed)
        return changed

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
            "seeds": self.seeds.to_dict(),
            "precision": precision and {**vars(precision), "of": list(precision.of)},
            "axes": [axis.to_dict() for axis in self.axes],
            "panels": [dict(panel) for panel in self.panels],
        }

    @property
    def sha256(self) -> str:
        """Hash of what its runs are: not of seeds, precision and panels, which may change."""
        tree = {k: v for k, v in self.to_dict().items() if k in ("name", "engine", "axes")}
        if self.grids is None:
            tree["scenario"] = by_content(self.scenario)
        else:
            grids = Grids.from_fields(self._with_data(self.grids.to_dict()), self.grids.folder)
            tree |= {"scenario": self.scenario.to_dict(), "grids": grids.by_content()}
        return sha256_of(tree)


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
    changes |= {k: values[k] for k in ("scale", "probe_scale") if values[k] is not None}
    with naming("set"):
        return scenario.with_values(changes)


def _check_panels(experiment: Experiment) -> None:
    axes = {axis.name: axis for axis in experiment.axes}
    for i, panel in enumerate(experiment.panels):
        for key in ("x", "series"):
            require_axis(axes, panel[key], f"panels[{i}].{key}")
        for name, label in panel["where"].items():
            require_axis(axes, name, f"panels[{i}].where")
            require_label(axes[name], label, f"panels[{i}].where.{name}")
        if panel["over"] is not None:
            require_label(axes[panel["series"]], panel["over"], f"panels[{i}].over")


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
