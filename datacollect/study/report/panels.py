"""Panels: which points a picture shows, each with its interval and its number of connections."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.numbers.intervals import mean_interval
from datacollect.study.report.headings import axis_heading, heading
from datacollect.study.report.setting_runs import paired_ratio, storage_ratio
from datacollect.study.report.tables import finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

    from datacollect.study.report.folders import SweepFolder

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
    axis_words : mapping
        What axes are called, with their units, by name.
    """

    label: str
    where: Mapping[str, str]
    x: str
    series: str
    y: str
    over: str | None
    points: pd.DataFrame
    axis_words: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Label and what is held fixed, or what is shown where nothing is."""
        fixed = ", ".join(f"{axis} {label}" for axis, label in self.where.items())
        return f"({self.label}) {fixed or self.shown}"

    @property
    def shown(self) -> str:
        """Say what is drawn over what, in words without units, such as ``makespan by method``."""
        names = [
            self.axis_words.get(name, name).partition(",")[0] for name in (self.x, self.series)
        ]
        measure = heading(self.y).partition(",")[0]
        if self.over is not None:
            measure += f" over {self.over}'s"
        return f"{measure} by {' and '.join(dict.fromkeys(names))}"


def panels_of(sweep: SweepFolder) -> list[Panel]:
    """Return the pictures that the experiment asks for, or one for each combination.

    What a panel's ``where`` leaves open is not mixed: each label has a picture of its own. A
    series that was run with other labels only, such as direct where estimates are wrong, is shown
    by those.
    """
    wanted = list(sweep.tree["panels"]) or _default_panels(sweep)
    table = sweep.table[sweep.table["complete"]]
    found = [_lettered([*_panels(sweep, table, tree)]) for tree in wanted]
    return [panel for panels in found for panel in panels][:MOST_PANELS]


def _lettered(panels: Sequence[Panel]) -> list[Panel]:
    """Give each panel of one entry a label of its own: letters, or the file's with numbers."""
    shown = [panel for panel in panels if not panel.points.empty]
    if len(shown) == 1 and shown[0].label:
        return shown
    return [
        replace(panel, label=f"{panel.label}{number + 1}" if panel.label else letters(number))
        for number, panel in enumerate(shown)
    ]


def letters(number: int) -> str:
    """Return the letters of a panel, counted from 0.

    >>> letters(0), letters(25), letters(26), letters(53)
    ('a', 'z', 'aa', 'bb')
    """
    found = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        found = chr(ord("a") + rest) + found
    return found


def _default_panels(sweep: SweepFolder) -> list[dict[str, Any]]:
    """Methods, or whatever was paired, over the axis with most labels."""
    axes = sorted(sweep.axes, key=lambda axis: -len(axis.labels))
    series = next((axis for axis in axes if axis.name == "method"), None)
    series = series or next((axis for axis in axes if axis.paired), axes[-1] if axes else None)
    x = next((axis for axis in axes if axis is not series), series)
    if series is None or x is None:
        return []
    common: dict[str, Any] = {"where": {}, "y": "makespan_s", "over": None}
    return [{"label": "", "x": x.name, "series": series.name, **common}]


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
            axis_words={axis.name: axis_heading(axis) for axis in sweep.axes},
        )
        yield replace(panel, points=_points(sweep, table, panel))


def _points(sweep: SweepFolder, table: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for x in sweep.axis[panel.x].labels:
        # One axis alone: each of its labels stands once, over its own name.
        for series in [x] if panel.x == panel.series else sweep.axis[panel.series].labels:
            runs = _runs_at(sweep, table, panel, x, series)
            if runs.empty:
                continue
            if panel.over is None:
                interval = mean_interval(runs[panel.y])
            else:
                others = _runs_at(sweep, table, panel, x, panel.over)
                interval = (
                    storage_ratio(runs, others)
                    if panel.y == "storage_bytes"
                    else paired_ratio(runs, others, panel.y)
                )
            if interval.n == 0:
                continue
            rows.append(
                {
                    "series": series,
                    "x": x,
                    "connections": float(runs["connections"].mean()),
                    "n": interval.n,
                    "mean": interval.mean,
                    "low": interval.from_zero().low,
                    "high": interval.high,
                    "relative_half_width": finite(interval.relative_half_width),
                    "run": str(runs["key"].iloc[0]),
                }
            )
    return pd.DataFrame(rows)


def _runs_at(
    sweep: SweepFolder, table: pd.DataFrame, panel: Panel, x: str, series: str
) -> pd.DataFrame:
    wanted = {**panel.where, panel.x: x, panel.series: series}
    values = sweep.axis[panel.x].value(x), sweep.axis[panel.series].value(series)
    only = {**values[0].only, **values[1].only}
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
