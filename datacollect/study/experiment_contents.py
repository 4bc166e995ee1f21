"""Contents of an experiment, and what follows: settings, treatments, runs' scenarios.

`datacollect.study.experiment` reads it from files and checks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from datacollect.errors import ProblemError, naming
from datacollect.problem.with_units import in_whole
from datacollect.renamed import Renamed, renamed_argument
from datacollect.study.axes import (
    Axis,
    changes_of,
    combinations,
    labels_by_axis,
    paired,
    part_of,
    shown_labels,
    unpaired,
)
from datacollect.study.fields import DATA, EXPERIMENT_FORMAT, GRIDS
from datacollect.study.grids import Grids
from datacollect.study.identity import by_content, sha256_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.files.choices import Engine
    from datacollect.scenario.scenario import Scenario
    from datacollect.study.axes import Labels
    from datacollect.study.seeds import Precision, Seeds


@dataclass(frozen=True, eq=False)
class ExperimentContents:
    """The attributes of a `datacollect.study.experiment.Experiment`, and what follows from them."""

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

    ways = Renamed("treatments")

    @renamed_argument("way", "treatment")
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

    @renamed_argument("way", "treatment")
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
