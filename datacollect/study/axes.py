"""Axes: what varies in an experiment, by which labels, and which labels go together.

Experiment files and the folders of sweeps describe the same axes: both are read into these.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.kinds import shown_text, wrong
from datacollect.study.columns import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Labels: TypeAlias = tuple[str, ...]

# More settings and treatments than can be run: a slip in the file.
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
    """One thing that varies.

    Attributes
    ----------
    name : str
    paired : bool
        Its values meet the same network, run for run.
    values : tuple of AxisValue
    """

    name: str
    paired: bool
    values: tuple[AxisValue, ...]

    @property
    def labels(self) -> list[str]:
        """Labels of its values, in the file's order."""
        return [value.label for value in self.values]

    @property
    def changes_method(self) -> bool:
        """Return whether its values differ in the method, or in how it is carried out."""
        return any(place.split(".")[0] == "method" for v in self.values for place in v.values)

    def value(self, label: str) -> AxisValue:
        """Return the value of a label."""
        return next(value for value in self.values if value.label == label)

    def to_dict(self) -> dict[str, Any]:
        """Return all that it says."""
        values = [
            {"label": v.label, "set": dict(v.values), "only": dict(v.only)} for v in self.values
        ]
        return {"name": self.name, "paired": self.paired, "values": values}

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> Axis:
        """Return the axis that `to_dict` wrote, in the folder of a sweep."""
        values = tuple(
            AxisValue(value["label"], value.get("set", {}), value.get("only", {}))
            for value in tree["values"]
        )
        return cls(tree["name"], bool(tree["paired"]), values)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], place: str) -> Axis:
        """Return the axis that an experiment file describes, as `fields.AXIS` reads it.

        Raises
        ------
        ProblemError
            A value lacks a key or a label of its own.
        """
        key = fields["key"]
        found = []
        for i, item in enumerate(fields["values"]):
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
                rule = "must have a label of its own"
                raise wrong(f"{place}.values[{i}]", rule, label, "rename it")
        return cls(fields["name"], fields["paired"], tuple(found))


# Axes together ----------------------------------------------------------------------------------


def unpaired(axes: Sequence[Axis]) -> list[Axis]:
    """Return the axes whose values make settings."""
    return [axis for axis in axes if not axis.paired]


def paired(axes: Sequence[Axis]) -> list[Axis]:
    """Return the axes whose values meet the same network, run for run."""
    return [axis for axis in axes if axis.paired]


def combinations(axes: Sequence[Axis]) -> list[Labels]:
    """Return the labels of all combinations of the axes' values that may be combined.

    >>> direct = AxisValue("direct", {}, only={"error": ["none"]})
    >>> method = Axis("method", True, (direct, AxisValue("coordinated", {})))
    >>> error = Axis("error", True, (AxisValue("none", {}), AxisValue("+70 %", {})))
    >>> combinations([method, error])
    [('direct', 'none'), ('coordinated', 'none'), ('coordinated', '+70 %')]
    """
    found = []
    for values in product(*(axis.values for axis in axes)):
        labels = {axis.name: value.label for axis, value in zip(axes, values, strict=True)}
        if all(labels[name] in only for v in values for name, only in v.only.items()):
            found.append(tuple(labels.values()))
    return found


def labels_by_axis(
    axes: Sequence[Axis], setting: Sequence[str], treatment: Sequence[str]
) -> dict[str, str]:
    """Return the label of every axis, by its name, in the file's order.

    Parameters
    ----------
    axes : sequence of Axis
    setting, treatment : sequence of str
        Labels of the axes that are not paired, and of those that are.
    """
    found = dict(zip((axis.name for axis in unpaired(axes)), setting, strict=True))
    found |= zip((axis.name for axis in paired(axes)), treatment, strict=True)
    return {axis.name: found[axis.name] for axis in axes}


def changes_of(axes: Sequence[Axis], labels: Mapping[str, str]) -> dict[str, Any]:
    """Return what labels change in the scenario, by place; of two axes the later one counts."""
    changes: dict[str, Any] = {}
    for axis in axes:
        changes |= axis.value(labels[axis.name]).values
    return changes


def part_of(axes: Sequence[Axis], labels: Mapping[str, Sequence[str]]) -> tuple[Axis, ...]:
    """Return the axes with these labels only, by name.

    Raises
    ------
    ProblemError
        There is no such axis or label, or nothing is left.
    """
    part = {axis.name: axis for axis in axes}
    for name, wanted in labels.items():
        if name not in part:
            known = nearest_hint(name, part) or f"; there are {', '.join(part)}"
            raise ProblemError(f"only: no axis is called {name!r}{known}")
        for label in wanted:
            require_label(part[name], label, "only")
        if not wanted:
            raise ProblemError(f"only: no label of {name!r} is left; name one")
        values = tuple(v for v in part[name].values if v.label in wanted)
        part[name] = replace(part[name], values=values)
    _require_some(tuple(part.values()))
    return tuple(part.values())


def shown_labels(labels: Mapping[str, str]) -> str:
    """Return labels for people.

    >>> shown_labels({"flows": "20", "method": "direct"})
    "flows = '20', method = 'direct'"
    """
    return ", ".join(f"{axis} = {label!r}" for axis, label in labels.items()) or "without axes"


# Rules ------------------------------------------------------------------------------------------


def check_axes(axes: Sequence[Axis]) -> None:
    """Reject axes that cannot be distinguished, or that give too many runs.

    Raises
    ------
    ProblemError
        The message names place, rule, value and remedy.
    """
    names = [axis.name for axis in axes]
    for i, name in enumerate(names):
        place = f"axes[{i}].name"
        if name in names[:i]:
            raise wrong(place, "must be unique", name, "rename one")
        # Of all columns an axis may have the method's: its labels then stand there.
        if name != "method" and name in COLUMNS:
            raise wrong(place, "must not be a column of the results", name, "rename it")
    _check_only(axes)
    n_runs = prod(len(axis.values) for axis in axes)
    if n_runs > MOST_RUNS_PER_SEED:
        raise ProblemError(
            f"axes: their product must be at most {MOST_RUNS_PER_SEED}, got {n_runs}; "
            "split the experiment"
        )


def _check_only(axes: Sequence[Axis]) -> None:
    by_name = {axis.name: axis for axis in axes}
    for i, axis in enumerate(axes):
        for j, value in enumerate(axis.values):
            place = f"axes[{i}].values[{j}].only"
            for name, labels in value.only.items():
                require_axis(by_name, name, place)
                if by_name[name].paired != axis.paired:
                    rule = "must name an axis that is paired too, or not paired either"
                    raise wrong(place, rule, name, "change paired")
                for label in labels:
                    require_label(by_name[name], label, f"{place}.{name}")
    _require_some(axes)


def _require_some(axes: Sequence[Axis]) -> None:
    if not combinations(unpaired(axes)) or not combinations(paired(axes)):
        raise ProblemError("axes: no combination of labels is left; name more labels")


def require_axis(axes: Mapping[str, Axis], name: Any, place: str) -> None:
    """Refuse what is no axis' name; suggest the nearest, or list them."""
    if name not in axes:
        known = nearest_hint(str(name), axes)[2:] or f"there are {', '.join(axes)}"
        raise wrong(place, "must name an axis", name, known)


def listed_labels(labels: Iterable[str]) -> str:
    """Write labels as a list that `chosen_labels` reads: those with commas in double quotes.

    >>> listed_labels(["direct, as many", "best-path"])
    '"direct, as many",best-path'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(labels)
    return text.getvalue()


def chosen_labels(axes: Sequence[Axis], text: str) -> tuple[str, list[str]]:
    """Read ``AXIS=LABEL,LABEL``, in which names may hold what separates them.

    A text that is a label as a whole is that label; else commas separate, and labels that hold
    commas stand in double quotes.

    Raises
    ------
    ProblemError
        There is no such axis, or the text can be read in two ways.

    Examples
    --------
    >>> axis = Axis("x=y", False, (AxisValue("a, b", {}), AxisValue("c", {})))
    >>> chosen_labels([axis], "x=y=a, b"), chosen_labels([axis], 'x=y=c,"a, b"')
    (('x=y', ['a, b']), ('x=y', ['c', 'a, b']))
    """
    fitting = [axis for axis in axes if text.startswith(f"{axis.name}=")]
    if not fitting:
        name, equals, _ = text.partition("=")
        known = nearest_hint(name, [axis.name for axis in axes]) if equals else ""
        known = known or f"; there are {', '.join(axis.name for axis in axes)}"
        raise ProblemError(f"--only must be AXIS=LABEL,LABEL, got {text!r}{known}")
    axis = max(fitting, key=lambda one: len(one.name))
    rest = text[len(axis.name) + 1 :]
    parts = next(csv.reader([rest], skipinitialspace=True), [])
    if rest not in axis.labels:
        return axis.name, parts
    if len(parts) > 1 and set(parts) <= set(axis.labels):
        raise ProblemError(
            f"--only {text!r} may be one label or {len(parts)}; write "
            f"{axis.name}={listed_labels([rest])} or {axis.name}="
            + ",".join(f'"{part}"' for part in parts)
        )
    return axis.name, [rest]


def require_label(axis: Axis, label: Any, place: str) -> None:
    """Refuse what is no label of an axis; suggest the nearest, or list them."""
    if label not in axis.labels:
        listed = f"there are {listed_labels(map(shown_text, axis.labels[:8]))}"
        known = nearest_hint(str(label), axis.labels)[2:] or listed
        raise wrong(place, f"must be a label of the axis {axis.name!r}", label, known)
