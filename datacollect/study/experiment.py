"""The experiment: a scenario, the axes along which it varies, seeds and the precision wanted.

A *setting* is one point of the product of all axes that are not paired. A *treatment* is one point
of the product of the paired ones, mostly a method. All treatments of a setting with one seed form a
group: they meet the same network, background and measurement, so that differences are paired.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, naming
from datacollect.files.kinds import wrong
from datacollect.files.notebook import html_of_facts
from datacollect.files.units import counted
from datacollect.scenario.scenario import Scenario
from datacollect.study.axes import Axis, check_axes, require_axis, require_label, shown_labels
from datacollect.study.experiment_contents import ExperimentContents
from datacollect.study.fields import DATA, EXPERIMENT, reject_impossible
from datacollect.study.grids import PROBLEM_FILE, TRUTH_FILE, Grids
from datacollect.study.identity import sha256_of
from datacollect.study.seeds import Precision, Seeds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

_DRAWN = {"problem": PROBLEM_FILE, "truth_csv": TRUTH_FILE}


class Experiment(ExperimentContents):
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
