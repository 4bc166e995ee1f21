"""The experiment: a scenario, the axes along which it varies, seeds and the precision wanted.

A *setting* is one point of the product of all axes that are not paired. A *treatment* is one point
of the product of the paired ones, mostly a method. All treatments of a setting with one seed form a
group: they meet the same network, background and measurement, so that differences are paired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from datacollect.errors import ProblemError, naming
from datacollect.files.kinds import wrong
from datacollect.files.notebook import html_of_facts
from datacollect.files.units import counted
from datacollect.files.with_units import in_whole
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
from datacollect.study.fields import DATA, EXPERIMENT, EXPERIMENT_FORMAT, GRIDS, reject_impossible
from datacollect.study.grids import PROBLEM_FILE, TRUTH_FILE, Grids
from datacollect.study.identity import by_content, sha256_of
from datacollect.study.seeds import Precision, Seeds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from datacollect.files.choices import Engine
    from datacollect.study.axes import Labels

_DRAWN = {"problem": PROBLEM_FILE, "truth_csv": TRUTH_FILE}


@dataclass(frozen=True, eq=False)
class Experiment:
    """A validated experiment file.

    Attributes
    ----------
    name : str
        For messages and results.
    title : str
        What it shows; may be empty.
    scenario : Scenario
        With all that the experiment changes for every run.
    engine : {"ns3", "fluid"}
        Of all runs.
    axes : tuple of Axis
        Along which runs differ.
    seeds : Seeds
        How often each setting is drawn again.
    precision : Precision or None
        How narrow intervals must become; None: as many seeds as there are.
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
    >>> experiment.settings(), experiment.treatments()
    ([('100000',), ('1e+06',)], [('direct',), ('coordinated',)])
    """

    name: str
    title: str
    scenario: Scenario
    engine: Engine
    axes: tuple[Axis, ...]
    seeds: Seeds
    precision: Precision | None
    panels: tuple[Mapping[str, Any], ...] = ()
    grids: Grids | None = None
    data: str = ""

    def setting_axes(self) -> list[Axis]:
        """Return the axes whose values make settings.

        Returns
        -------
        list of Axis

        Examples
        --------
        >>> import datacollect as dc
        >>> axis = {"name": "limit", "key": "run.time_limit_s", "values": [60, 90]}
        >>> experiment = dc.Experiment.from_dict(
        ...     {"engine": "fluid", "axes": [axis]}, scenario={"problem": "upload.toml"}
        ... )
        >>> [axis.name for axis in experiment.setting_axes()]
        ['limit']
        """
        return unpaired(self.axes)

    def paired_axes(self) -> list[Axis]:
        """Return the axes whose values meet the same network, run for run.

        Returns
        -------
        list of Axis

        Examples
        --------
        >>> import datacollect as dc
        >>> axis = {"name": "method", "key": "method.name", "values": ["direct", "coordinated"]}
        >>> experiment = dc.Experiment.from_dict(
        ...     {"engine": "fluid", "axes": [axis | {"paired": True}]},
        ...     scenario={"problem": "upload.toml"},
        ... )
        >>> [axis.name for axis in experiment.paired_axes()]
        ['method']
        """
        return paired(self.axes)

    def settings(self) -> list[Labels]:
        """Return every setting.

        Returns
        -------
        list of tuple of str
            Labels of the axes that make settings, in the file's order.

        Examples
        --------
        >>> import datacollect as dc
        >>> axis = {"name": "limit", "key": "run.time_limit_s", "values": [60, 90]}
        >>> experiment = dc.Experiment.from_dict(
        ...     {"engine": "fluid", "axes": [axis]}, scenario={"problem": "upload.toml"}
        ... )
        >>> experiment.settings()
        [('60',), ('90',)]
        """
        return combinations(self.setting_axes())

    def treatments(self) -> list[Labels]:
        """Return every run of a group: one setting with one seed.

        Returns
        -------
        list of tuple of str
            Labels of the paired axes, in the file's order.

        Examples
        --------
        >>> import datacollect as dc
        >>> axis = {"name": "method", "key": "method.name", "values": ["direct", "coordinated"]}
        >>> experiment = dc.Experiment.from_dict(
        ...     {"engine": "fluid", "axes": [axis | {"paired": True}]},
        ...     scenario={"problem": "upload.toml"},
        ... )
        >>> experiment.treatments()
        [('direct',), ('coordinated',)]
        """
        return combinations(self.paired_axes())

    def labels(self, setting: Sequence[str], treatment: Sequence[str]) -> dict[str, str]:
        """Return the label of every axis.

        Parameters
        ----------
        setting : sequence of str
            A label of each axis that makes settings, as `settings` lists them.
        treatment : sequence of str
            A label of each paired axis, as `treatments` lists them.

        Returns
        -------
        dict of str to str
            By the axes' names, in the file's order.

        Examples
        --------
        >>> import datacollect as dc
        >>> axis = {"name": "limit", "key": "run.time_limit_s", "values": [60, 90]}
        >>> experiment = dc.Experiment.from_dict(
        ...     {"engine": "fluid", "axes": [axis]}, scenario={"problem": "upload.toml"}
        ... )
        >>> experiment.labels(['90'], [])
        {'limit': '90'}
        """
        return labels_by_axis(self.axes, setting, treatment)

    def scenario_of(self, setting: Sequence[str], treatment: Sequence[str], seed: int) -> Scenario:
        """Return the scenario of one run.

        Parameters
        ----------
        setting : sequence of str
            A label of each axis that makes settings, as `settings` lists them.
        treatment : sequence of str
            A label of each paired axis, as `treatments` lists them.
        seed : int
            Its ``run.seed``.

        Returns
        -------
        Scenario

        Raises
        ------
        ProblemError
            The scenario breaks a rule with these values; the message names the run.

        Examples
        --------
        >>> import datacollect as dc
        >>> axis = {"name": "limit", "key": "run.time_limit_s", "values": [60, 90]}
        >>> experiment = dc.Experiment.from_dict(
        ...     {"engine": "fluid", "axes": [axis]}, scenario={"problem": "upload.toml"}
        ... )
        >>> experiment.scenario_of(['90'], [], seed=3).section("run")["seed"]
        3
        """
        labels = self.labels(setting, treatment)
        changes = {"run.seed": seed, **self._changes(labels, of_grids=False)}
        with naming(f"run {shown_labels(labels)}, seed {seed}"):
            return self.scenario.with_values(changes)

    def grids_of(self, setting: Sequence[str]) -> Grids | None:
        """Return what the problems of a setting are drawn from.

        Parameters
        ----------
        setting : sequence of str
            A label of each axis that makes settings, as `settings` lists them.

        Returns
        -------
        Grids or None
            None where a scenario says what is collected.

        Raises
        ------
        ProblemError
            The grids break a rule with these values, or need the folder of data.

        Examples
        --------
        >>> import datacollect as dc
        >>> axis = {"name": "limit", "key": "run.time_limit_s", "values": [60, 90]}
        >>> experiment = dc.Experiment.from_dict(
        ...     {"engine": "fluid", "axes": [axis]}, scenario={"problem": "upload.toml"}
        ... )
        >>> experiment.grids_of(['90']) is None
        True
        """
        if self.grids is None:
            return None
        labels = self.labels(setting, self.treatments()[0])
        changes = self._changes(labels, of_grids=True)
        with naming(f"run {shown_labels(labels)}"):
            tree = GRIDS.read(self._with_data(self.grids.to_dict()) | changes, "grids")
            return Grids.from_fields(tree, self.grids.folder)

    def _changes(self, labels: Mapping[str, str], *, of_grids: bool) -> dict[str, Any]:
        """Return what the labels change, in the grids or in the scenario."""
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

        Examples
        --------
        >>> import datacollect as dc
        >>> axis = {"name": "limit", "key": "run.time_limit_s", "values": [60, 90]}
        >>> experiment = dc.Experiment.from_dict(
        ...     {"engine": "fluid", "axes": [axis]}, scenario={"problem": "upload.toml"}
        ... )
        >>> experiment.require_data()
        """
        self._with_data([dict(value.values) for axis in self.axes for value in axis.values])
        if self.grids is not None:
            self._with_data(self.grids.to_dict())

    def with_seeds(self, most: int) -> Self:
        """Return it with another number of seeds at most.

        Parameters
        ----------
        most : int
            For each setting; with a precision at least 2.

        Returns
        -------
        Experiment

        Raises
        ------
        ProblemError
            There are fewer chosen seeds, or too few for a precision.

        Examples
        --------
        >>> import datacollect as dc
        >>> axis = {"name": "limit", "key": "run.time_limit_s", "values": [60, 90]}
        >>> experiment = dc.Experiment.from_dict(
        ...     {"engine": "fluid", "axes": [axis]}, scenario={"problem": "upload.toml"}
        ... )
        >>> experiment.with_seeds(1).seeds.most
        1
        """
        most = in_whole(most, "most")
        least = min(self.seeds.least, most)
        chosen = self.seeds.chosen
        if chosen is not None and most > len(chosen):
            raise ProblemError(
                f"the number of seeds must be <= {len(chosen)}, as seeds.chosen has, got {most}"
            )
        if self.precision is not None and least < 2:
            raise ProblemError(f"the number of seeds must be >= 2 with a precision, got {most}")
        return replace(self, seeds=replace(self.seeds, least=least, most=most))

    def with_scale(self, scale: float) -> Self:
        """Return it with another factor on backlogs, and on probes that have none of their own.

        Parameters
        ----------
        scale : float
            Above 0.

        Returns
        -------
        Experiment

        Raises
        ------
        ProblemError
            The scenario breaks a rule with it.

        Examples
        --------
        >>> import datacollect as dc
        >>> axis = {"name": "limit", "key": "run.time_limit_s", "values": [60, 90]}
        >>> experiment = dc.Experiment.from_dict(
        ...     {"engine": "fluid", "axes": [axis]}, scenario={"problem": "upload.toml"}
        ... )
        >>> experiment.with_scale(0.1).scenario.section("method")["name"]
        'coordinated'
        """
        return replace(self, scenario=self.scenario.with_values({"scale": scale}))

    def with_probe_scale(self, scale: float) -> Self:
        """Return it with another factor on probes alone.

        Parameters
        ----------
        scale : float
            Above 0.

        Returns
        -------
        Experiment

        Raises
        ------
        ProblemError
            The scenario breaks a rule with it, or has no probes.

        Examples
        --------
        >>> import datacollect as dc
        >>> axis = {"name": "limit", "key": "run.time_limit_s", "values": [60, 90]}
        >>> experiment = dc.Experiment.from_dict(
        ...     {"engine": "fluid", "axes": [axis]}, scenario={"problem": "upload.toml"}
        ... )
        >>> experiment.with_probe_scale(0.1)
        Traceback (most recent call last):
        datacollect.errors.ProblemError: ...
        """
        return replace(self, scenario=self.scenario.with_values({"probe_scale": scale}))

    def only(self, labels: Mapping[str, Sequence[str]]) -> Self:
        """Return a part of it.

        Parameters
        ----------
        labels : mapping of str to sequence of str
            From names of axes to the labels to keep; axes that are not named keep all.

        Returns
        -------
        Experiment

        Raises
        ------
        ProblemError
            There is no such axis or label, or nothing is left.

        Examples
        --------
        >>> import datacollect as dc
        >>> axis = {"name": "limit", "key": "run.time_limit_s", "values": [60, 90]}
        >>> experiment = dc.Experiment.from_dict(
        ...     {"engine": "fluid", "axes": [axis]}, scenario={"problem": "upload.toml"}
        ... )
        >>> experiment.only({'limit': ['90']}).settings()
        [('90',)]
        """
        return replace(self, axes=part_of(self.axes, labels))

    def to_dict(self) -> dict[str, Any]:
        """Return all that it says, the scenario and every default written out.

        Returns
        -------
        dict
            What TOML or JSON can say, but for values that are absent, which are None.

        Examples
        --------
        >>> import datacollect as dc
        >>> axis = {"name": "limit", "key": "run.time_limit_s", "values": [60, 90]}
        >>> experiment = dc.Experiment.from_dict(
        ...     {"engine": "fluid", "axes": [axis]}, scenario={"problem": "upload.toml"}
        ... )
        >>> experiment.to_dict()["engine"]
        'fluid'
        """
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

    @classmethod
    def from_file(
        cls, path: str | PathLike[str], *, data: str | PathLike[str] | None = None
    ) -> Experiment:
        """Read an experiment file: TOML or JSON.

        Parameters
        ----------
        path : path-like
            What it names is relative to it.
        data : path-like, optional
            Folder that stands for ``{data}`` in values.

        Returns
        -------
        Experiment

        Raises
        ------
        ProblemError
            The message names file, place, rule, value and remedy.

        Examples
        --------
        >>> import datacollect as dc
        >>> dc.Experiment.from_file("nowhere.toml")
        Traceback (most recent call last):
        datacollect.errors.ProblemError: nowhere.toml: no such file; check the path
        """
        return EXPERIMENT.from_file(path, partial(cls.from_dict, data=data))

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
            What TOML or JSON say.
        folder : path-like, optional
            What file names are relative to; by default the working directory.
        scenario : Scenario or mapping, optional
            Instead of the file that the tree names.
        data : path-like, optional
            Folder that stands for ``{data}`` in values.

        Returns
        -------
        Experiment

        Raises
        ------
        ProblemError
            The message names place, rule, value and remedy.

        Examples
        --------
        >>> import datacollect as dc
        >>> experiment = dc.Experiment.from_dict(
        ...     {
        ...         "engine": "fluid",
        ...         "seeds": {"least": 2, "batch": 2},
        ...         "axes": [
        ...             {"name": "limit", "key": "run.time_limit_s", "values": [60, 90]},
        ...             {
        ...                 "name": "method",
        ...                 "key": "method.name",
        ...                 "paired": True,
        ...                 "values": ["direct", "coordinated"],
        ...             },
        ...         ],
        ...     },
        ...     scenario={"problem": "upload.toml"},
        ... )
        >>> len(experiment.settings()) * len(experiment.treatments())
        4
        """
        values = EXPERIMENT.read(tree)
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

    def __repr__(self) -> str:
        return (
            f"<Experiment {self.name!r}: {counted(len(self.settings()), 'setting')} in "
            f"{counted(len(self.treatments()), 'treatment')}, {self.engine}, at most "
            f"{counted(self.seeds.most, 'seed')} each>"
        )

    def _repr_html_(self) -> str:
        """Show the experiment in a notebook."""
        axes = [(f"axis {axis.name}", ", ".join(axis.labels)) for axis in self.axes]
        most = f"at most {self.seeds.most}"
        return html_of_facts(
            f"Experiment {self.name}", [("engine", self.engine), *axes, ("seeds", most)]
        )

    def with_axes(self, axes: Sequence[Axis]) -> Experiment:
        """Return it with other axes.

        Parameters
        ----------
        axes : sequence of Axis
            Along which runs are to differ.

        Returns
        -------
        Experiment
            All else is as it was.

        Raises
        ------
        ProblemError
            They cannot be distinguished, or two combinations of their labels describe the same run.

        Examples
        --------
        >>> import datacollect as dc
        >>> axis = {"name": "limit", "key": "run.time_limit_s", "values": [60, 90]}
        >>> experiment = dc.Experiment.from_dict(
        ...     {"engine": "fluid", "axes": [axis]}, scenario={"problem": "upload.toml"}
        ... )
        >>> experiment.with_axes([]).settings()
        [()]
        """
        changed = replace(self, axes=tuple(axes))
        check_axes(changed.axes)
        _check_runs(changed)
        return changed


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
        for treatment in experiment.treatments():
            scenario = anywhere.scenario_of(setting, treatment, experiment.seeds.first)
            tree = {"scenario": scenario.to_dict(), "grids": grids and grids.to_dict()}
            labels = shown_labels(anywhere.labels(setting, treatment))
            other = seen.setdefault(sha256_of(tree), labels)
            if other != labels:
                # Its results would count for both, or for neither.
                raise ProblemError(
                    f"axes: {other} and {labels} describe the same run; remove one, or change "
                    "what it sets"
                )
