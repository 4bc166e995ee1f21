"""The numbers of a report: means with intervals, ratios of paired runs, what plans promised.

Each row stands for all seeds of one combination of labels. Every table has a column of connection
counts, and a ratio to direct with as many connections where there are such runs: what more
connections gain is not what coordination gains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.intervals import Interval, mean_interval, ratio_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

    from datacollect.sweep_folders import SweepFolder

Labels = tuple[str, ...]

# What is compared with what: the column of the ratio, and in words.
REFERENCES = {
    "direct": "direct, one connection per source",
    "as_many": "direct with as many connections",
    "coordinated": "coordinated, the first in the file",
}

# A prediction is off where the interval of predicted over measured lies outside.
NEAR = 1.1

# Numbers of connections count as the same where they differ by this part at most.
AS_MANY = 0.1

# More pictures than anybody looks at: a panel's `where` leaves too much open.
MOST_PANELS = 60


@dataclass(frozen=True, eq=False)
class Panel:
    """One picture.

    Attributes
    ----------
    label : str
    where : mapping
        Label of each axis that does not vary in it and could.
    x, series : str
        Names of axes.
    y : str
        Column of the results.
    over : str or None
        Label of the series that the others are divided by, run for run.
    points : DataFrame
        Columns ``series``, ``x``, ``connections``, ``n``, ``mean``, ``low``, ``high``,
        ``relative_half_width``, ``run`` (key of the first seed's run).
    """

    label: str
    where: Mapping[str, str]
    x: str
    series: str
    y: str
    over: str | None
    points: pd.DataFrame

    @property
    def title(self) -> str:
        """Label and what is held fixed."""
        fixed = ", ".join(f"{axis} {label}" for axis, label in self.where.items())
        return f"({self.label}) {fixed}" if fixed else f"({self.label})"


def summary_table(sweep: SweepFolder) -> pd.DataFrame:
    """Return makespan, ratios, storage and background of each combination of labels.

    Ratios are geometric means over seeds of paired runs: this one's makespan over the reference's
    (`REFERENCES`), with the bounds of a 95 % interval. They are NaN where there is no such
    reference. ``tcp_over_direct`` is the same for the throughput of background TCP.
    """
    import pandas as pd

    rows = []
    for group in groups_of(sweep):
        for way, runs in group.ways.items():
            row: dict[str, Any] = {**group.labels(way), **_counts(runs)}
            row |= named("makespan_s", mean_interval(runs["makespan_s"]))
            row["relative_half_width"] = _finite(
                mean_interval(runs["makespan_s"]).relative_half_width
            )
            for name in REFERENCES:
                other = group.reference(way, name)
                row |= named(f"over_{name}", paired_ratio(runs, other, "makespan_s"))
            row |= named("storage_mean", mean_interval(runs["storage_mean"]))
            row["storage_max"] = float(runs["storage_max"].max())
            direct = group.reference(way, "direct")
            row |= named("tcp_over_direct", paired_ratio(runs, direct, "tcp_during_bytes_per_s"))
            row["cpu_s"] = float(runs["cpu_s"].sum())
            rows.append(row)
    return pd.DataFrame(rows)


def prediction_table(sweep: SweepFolder) -> pd.DataFrame:
    """Return predicted and measured makespans, and the wire that was busiest.

    ``predicted_over_measured`` is the geometric mean over seeds; ``is_off`` says that its 95 %
    interval lies further than 10 % from 1. ``busiest_wire`` is the wire that was the busiest in
    most runs, ``busiest_share`` in which part of them. ``over_as_many`` is the measured makespan
    over that of direct with as many connections.
    """
    import pandas as pd

    rows = []
    for group in groups_of(sweep):
        for way, runs in group.ways.items():
            ratio = ratio_interval(runs["predicted_s"], runs["makespan_s"])
            as_many = group.reference(way, "as_many")
            wires = runs.loc[runs["busiest_wire"] != "", "busiest_wire"].value_counts()
            rows.append(
                {
                    **group.labels(way),
                    **_counts(runs),
                    "predicted_s": float(runs["predicted_s"].mean()),
                    "makespan_s": float(runs["makespan_s"].mean()),
                    "lower_bound_s": float(runs["lower_bound_s"].mean()),
                    **named("over_as_many", paired_ratio(runs, as_many, "makespan_s")),
                    **named("predicted_over_measured", ratio),
                    "is_off": is_off(ratio),
                    "busiest_wire": "" if wires.empty else str(wires.index[0]),
                    "busiest_share": math.nan if wires.empty else int(wires.iloc[0]) / len(runs),
                }
            )
    return pd.DataFrame(rows)


def is_off(ratio: Interval) -> bool:
    """Whether predictions are wrong by more than 10 %, as far as the runs settle it.

    >>> is_off(Interval(0.5, 0.4, 0.6, 5)), is_off(Interval(0.95, 0.91, 1.0, 5))
    (True, False)
    """
    return ratio.is_known and (ratio.high < 1 / NEAR or ratio.low > NEAR)


def panels_of(sweep: SweepFolder) -> list[Panel]:
    """Return the pictures that the experiment asks for, or one for each combination.

    What a panel's ``where`` leaves open is not mixed: each label has a picture of its own. A
    series that was run with other labels only, such as direct where estimates are wrong, is shown
    by those.
    """
    wanted = list(sweep.tree["panels"]) or _default_panels(sweep)
    table = sweep.table[sweep.table["complete"]]
    found = [panel for tree in wanted for panel in _panels(sweep, table, tree)]
    return [panel for panel in found[:MOST_PANELS] if not panel.points.empty]


# One setting ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Group:
    """All runs of one setting.

    Attributes
    ----------
    sweep : SweepFolder
    setting : mapping
        Label of each axis that is not paired.
    paired : tuple of str
        Names of the paired axes.
    ways : dict
        Runs indexed by seed, by the labels of the paired axes.
    methods : dict
        What the scenario says in [method], likewise.
    """

    sweep: SweepFolder
    setting: Mapping[str, str]
    paired: tuple[str, ...]
    ways: dict[Labels, pd.DataFrame]  # indexed by seed
    methods: dict[Labels, Mapping[str, Any]]

    def labels(self, way: Labels) -> dict[str, str]:
        """Return the label of each axis, in the file's order."""
        found = {**self.setting, **dict(zip(self.paired, way, strict=True))}
        return {axis.name: found[axis.name] for axis in self.sweep.axes}

    def reference(self, way: Labels, name: str) -> pd.DataFrame | None:
        """Runs of the reference that differs least otherwise.

        Coordinated is the first of the file that is, so that variants are compared with it rather
        than each with itself. Direct with as many connections is the variant of direct whose mean
        number is nearest, where it is near enough (`are_as_many`).
        """
        own = self.methods[way]
        if name == "as_many" and own["name"] == "direct":
            return None
        candidates = [w for w, method in self.methods.items() if _is_reference(method, name)]
        if name == "as_many":
            candidates = [w for w in candidates if are_as_many(self.ways[w], self.ways[way])]
        if not candidates:
            return None
        axes = [self.sweep.axis[axis] for axis in self.paired]
        if name != "direct":
            axes = [axis for axis in axes if not axis.changes_method]
        at = [self.paired.index(axis.name) for axis in axes]

        def likeness(other: Labels) -> tuple[float, ...]:
            same = sum(way[i] == other[i] for i in at)
            if name == "coordinated":
                return (same,)
            theirs = self.methods[other]
            alike = sum(theirs.get(key) == value for key, value in own.items())
            if name == "direct":
                return same, alike
            apart = abs(_connections(self.ways[other]) - _connections(self.ways[way]))
            return same, -apart, theirs.get("streams_as") == own["name"], alike

        return self.ways[max(candidates, key=likeness)]


def _is_reference(method: Mapping[str, Any], name: str) -> bool:
    if name == "coordinated":
        return bool(method["name"] == "coordinated")
    if name == "direct":
        return is_plain_direct(method)
    return bool(method["name"] == "direct")


def are_as_many(some: pd.DataFrame, others: pd.DataFrame) -> bool:
    """Whether two methods' runs have the same number of connections, to 10 % of the means."""
    a, b = _connections(some), _connections(others)
    return abs(a - b) <= AS_MANY * max(a, b)


def _connections(runs: pd.DataFrame) -> float:
    return float(runs["connections"].mean())


def is_plain_direct(method: Mapping[str, Any]) -> bool:
    """Whether a method is direct over one connection per source.

    >>> is_plain_direct({"name": "direct"}), is_plain_direct({"name": "direct", "streams": 4})
    (True, False)
    """
    return (
        method["name"] == "direct"
        and method.get("streams", 1) == 1
        and not (method.get("streams_as") or method.get("total_streams"))
    )


def groups_of(sweep: SweepFolder) -> Iterator[Group]:
    """The settings that have been run, in the file's order."""
    paired = [axis for axis in sweep.axes if axis.paired]
    paired_names = [axis.name for axis in paired]
    unpaired_names = [axis.name for axis in sweep.axes if not axis.paired]
    found = dict(_by_labels(sweep.table, unpaired_names))
    for labels in sweep.settings():
        setting = tuple(labels.values())
        if setting not in found:
            continue
        runs = dict(_by_labels(found[setting], paired_names))
        ways: dict[Labels, pd.DataFrame] = {}
        methods: dict[Labels, Mapping[str, Any]] = {}
        for way in product(*(axis.labels for axis in paired)):
            if way in runs:
                ways[way] = runs[way].set_index("seed").sort_index()
                both = labels | dict(zip(paired_names, way, strict=True))
                methods[way] = {"name": "coordinated", **sweep.scenario(both).get("method", {})}
        yield Group(sweep, labels, tuple(paired_names), ways, methods)


def _by_labels(table: pd.DataFrame, names: list[str]) -> Iterator[tuple[Labels, pd.DataFrame]]:
    if not names:
        yield (), table
        return
    for key, rows in table.groupby(names, sort=False):
        yield tuple(map(str, key)), rows


def _counts(runs: pd.DataFrame) -> dict[str, Any]:
    return {
        "connections": float(runs["connections"].mean()),
        "seeds": int(runs["complete"].sum()),
        "incomplete": int((~runs["complete"]).sum()),
    }


def paired_ratio(above: pd.DataFrame, below: pd.DataFrame | None, column: str) -> Interval:
    """Return the ratio of two methods' runs, seed for seed; of nothing without a second."""
    if below is None or above.empty or below.empty:
        return ratio_interval([], [])
    both = above[[column]].assign(below=below[column]).dropna()
    return ratio_interval(both[column], both["below"])


def named(name: str, interval: Interval) -> dict[str, float]:
    """Return an interval as three columns: the mean by its name, and the bounds."""
    return {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.nan


# Panels -----------------------------------------------------------------------------------------


def _default_panels(sweep: SweepFolder) -> list[dict[str, Any]]:
    """Methods, or whatever was paired, over the axis with most labels."""
    axes = sorted(sweep.axes, key=lambda axis: -len(axis.labels))
    series = next((axis for axis in axes if axis.name == "method"), None)
    series = series or next((axis for axis in axes if axis.paired), axes[-1] if axes else None)
    x = next((axis for axis in axes if axis is not series), series)
    if series is None or x is None:
        return []
    common: dict[str, Any] = {"where": {}, "y": "makespan_s", "over": None}
    return [{"label": "a", "x": x.name, "series": series.name, **common}]


def _panels(sweep: SweepFolder, table: pd.DataFrame, tree: Mapping[str, Any]) -> Iterator[Panel]:
    where = {name: str(label) for name, label in tree["where"].items()}
    varies = {tree["x"], tree["series"]}
    left_open = [a for a in sweep.axes if a.name not in varies | set(where) and len(a.labels) > 1]
    for labels in product(*(axis.labels for axis in left_open)):
        fixed = where | dict(zip((axis.name for axis in left_open), labels, strict=True))
        panel = Panel(
            label=tree["label"],
            where=fixed,
            x=tree["x"],
            series=tree["series"],
            y=tree["y"],
            over=tree["over"],
            points=table,
        )
        yield replace(panel, points=_points(sweep, table, panel))


def _points(sweep: SweepFolder, table: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for x in sweep.axis[panel.x].labels:
        for series in sweep.axis[panel.series].labels:
            runs = _runs_at(sweep, table, panel, x, series)
            if runs.empty:
                continue
            if panel.over is None:
                interval = mean_interval(runs[panel.y])
            else:
                others = _runs_at(sweep, table, panel, x, panel.over)
                interval = paired_ratio(runs, others, panel.y)
            if interval.n == 0:
                continue
            rows.append(
                {
                    "series": series,
                    "x": x,
                    "connections": float(runs["connections"].mean()),
                    "n": interval.n,
                    "mean": interval.mean,
                    "low": interval.low,
                    "high": interval.high,
                    "relative_half_width": _finite(interval.relative_half_width),
                    "run": str(runs["key"].iloc[0]),
                }
            )
    return pd.DataFrame(rows)


def _runs_at(
    sweep: SweepFolder, table: pd.DataFrame, panel: Panel, x: str, series: str
) -> pd.DataFrame:
    wanted = {**panel.where, panel.x: x, panel.series: series}
    only = {**sweep.axis[panel.x].only[x], **sweep.axis[panel.series].only[series]}
    for name, labels in only.items():
        if len(labels) == 1:
            wanted[name] = labels[0]
    picked = np.ones(len(table), dtype=bool)
    for name, label in wanted.items():
        picked &= (table[name] == label).to_numpy()
    return table[picked].set_index("seed").sort_index()


def panels_table(panels: Sequence[Panel]) -> pd.DataFrame:
    """Return all that panels draw: a row for each point, and what it is."""
    import pandas as pd

    tables = []
    for panel in panels:
        table = panel.points.copy()
        over = "" if panel.over is None else panel.over
        where = ", ".join(f"{axis} {label}" for axis, label in panel.where.items())
        names = ("panel", "where", "x_axis", "series_axis", "y", "over")
        values = (panel.label, where, panel.x, panel.series, panel.y, over)
        for i, (name, value) in enumerate(zip(names, values, strict=True)):
            table.insert(i, name, value)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)
