"""Panels as pictures, readable in black and white: markers, hatches, line styles, error bars.

Uses matplotlib's objects, never pyplot and its global state.
"""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.study.report.headings import heading

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from datacollect.numbers.arrays import FloatArray
    from datacollect.study.report.panels import Panel

# Dark and light by turns, so that neighbours differ in grey too; Okabe and Ito 2002 but the first.
COLOURS = (
    "#222222",
    "#E69F00",
    "#0072B2",
    "#882255",
    "#56B4E9",
    "#009E73",
    "#D55E00",
    "#CC79A7",
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++", "oo", "**")
MOST_STYLES = len(MARKERS)
MOST_BARS = 48

LINE_CHART, BAR_CHART, DOT_CHART = "lines", "bars", "dots"


def value_words(panel: Panel) -> str:
    """Return what a panel's values are, for its axis."""
    words = heading(panel.y)
    if panel.over is None:
        return words
    return f"{words.partition(',')[0]}, over {panel.over}'s (ratio)"


def axis_words(panel: Panel, name: str) -> str:
    """Return what an axis of a panel is called, with its unit."""
    return panel.axis_words.get(name, name)


def chart_kind(panels: Sequence[Panel]) -> str:
    """Return how panels of one group are drawn: lines over numbers, else bars, else dots."""
    xs, series = _labels(panels, "x"), _labels(panels, "series")
    if len(series) > MOST_STYLES or len(xs) * len(series) > MOST_BARS:
        return DOT_CHART
    return LINE_CHART if len(xs) > 1 and all(map(_is_number, xs)) else BAR_CHART


def panel_groups(panels: Sequence[Panel]) -> list[list[Panel]]:
    """Return panels that belong on one page: the same axes and the same measure."""
    groups: dict[tuple[Any, ...], list[Panel]] = {}
    for panel in panels:
        groups.setdefault((panel.x, panel.series, panel.y, panel.over), []).append(panel)
    return list(groups.values())


def draw_panels(panels: Sequence[Panel], title: str) -> Figure:
    """Draw a group of panels with one legend.

    Parameters
    ----------
    panels : sequence of Panel
        Of one group (`panel_groups`).
    title : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    kind = chart_kind(panels)
    marks = _labels(panels, "series")
    rows_of = "x"
    if kind == DOT_CHART and len(marks) > MOST_STYLES:
        marks, rows_of = _labels(panels, "x"), "series"
    lines = _labels(panels, rows_of)
    # Six panels as in the paper: two beside each other.
    n_columns = 2 if len(panels) in (4, 6) and kind != DOT_CHART else min(len(panels), 3)
    n_rows = math.ceil(len(panels) / n_columns)
    height = 0.8 + 0.2 * len(lines) if kind == DOT_CHART else 2.8
    figure = Figure(
        figsize=(max(5.2, 4.2 * n_columns), n_rows * height + 0.9), layout="constrained"
    )
    grid = figure.subplots(n_rows, n_columns, squeeze=False, sharex="all", sharey="all")
    for axes, panel in zip(grid.flat, panels, strict=False):
        if kind == DOT_CHART:
            _draw_dots(axes, panel, marks, lines, rows_of)
        elif kind == LINE_CHART:
            _draw_lines(axes, panel, marks)
        else:
            _draw_bars(axes, panel, marks, lines)
        axes.set_title(panel.title, fontsize=9, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
    # One scale for all, so that panels compare. Each panel's own would end at the first's.
    most = 1.05 * max(panel.points[["mean", "high"]].max().max() for panel in panels)
    limits = (0, most if most > 0 else 1)
    grid[0, 0].set(**{"xlim" if kind == DOT_CHART else "ylim": limits})
    _label_axes(grid, panels, kind, rows_of)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    figure.suptitle(title, fontsize=10)
    if panels[0].x == panels[0].series:
        return figure  # the labels of the axis say it all
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        title=axis_words(panels[0], panels[0].series if rows_of == "x" else panels[0].x),
        title_fontsize=8,
        loc="outside lower center",
        ncols=min(len(labels), max(2, 2 * n_columns)),
        frameon=False,
        fontsize=8,
        handlelength=3.5,
    )
    return figure


def picture_bytes(figure: Figure, suffix: str) -> bytes:
    """Return a figure as a file, the same for the same numbers; `suffix` is png or svg."""
    import matplotlib as mpl

    file = io.BytesIO()
    metadata = {"Date": None} if suffix == "svg" else {"Software": None}
    with mpl.rc_context({"svg.hashsalt": "datacollect", "svg.fonttype": "none"}):
        figure.savefig(file, format=suffix, dpi=130, metadata=metadata)
    return file.getvalue()


def _labels(panels: Sequence[Panel], column: str) -> list[str]:
    """Labels that occur, in the order of the experiment's file."""
    found: dict[str, None] = {}
    for panel in panels:
        found |= dict.fromkeys(panel.points[column])
    return list(found)


def _is_number(label: str) -> bool:
    try:
        return math.isfinite(float(label))
    except ValueError:
        return False


def _errors(points: pd.DataFrame) -> FloatArray:
    """Lengths of error bars below and above, shape (2, n); none where there is no interval."""
    below = points["mean"] - points["low"]
    above = points["high"] - points["mean"]
    lengths: FloatArray = np.array([below, above], dtype=np.float64)
    lengths[np.isnan(lengths)] = 0.0
    return lengths


def _draw_lines(axes: Axes, panel: Panel, marks: Sequence[str]) -> None:
    xs = [float(x) for x in panel.points["x"]]
    step = 0.008 * (max(xs) - min(xs))
    for i, name in enumerate(marks):
        points = panel.points[panel.points["series"] == name]
        # Side by side: error bars on top of each other cannot be distinguished.
        shift = step * (i - (len(marks) - 1) / 2)
        axes.errorbar(
            points["x"].astype(float) + shift,
            points["mean"],
            _errors(points),
            color=COLOURS[i],
            marker=MARKERS[i],
            markerfacecolor=COLOURS[i] if i % 2 == 0 else "white",
            linestyle=LINES[i],
            linewidth=1.2,
            markersize=5,
            capsize=2.5,
            label=name,
        )
    axes.set_xticks(sorted(set(xs)))


def _draw_bars(axes: Axes, panel: Panel, marks: Sequence[str], xs: Sequence[str]) -> None:
    # Where series are the labels below, each has one place of its own.
    beside = 1 if panel.x == panel.series else len(marks)
    width = 0.8 / beside
    for i, name in enumerate(marks):
        points = panel.points[panel.points["series"] == name]
        shift = width * (i % beside - (beside - 1) / 2)
        at = np.array([xs.index(x) for x in points["x"]]) + shift
        # Black hatches show in print on pale ground only.
        axes.bar(
            at,
            points["mean"],
            width,
            color=_pale(COLOURS[i]),
            hatch=HATCHES[i],
            edgecolor="black",
            linewidth=0.7,
            label=name,
        )
        axes.errorbar(
            at, points["mean"], _errors(points), fmt="none", ecolor="black", capsize=2.5, lw=1.2
        )
    axes.set_xticks(range(len(xs)), xs, fontsize=8, rotation=30 if len(xs) > 6 else 0)


def _draw_dots(
    axes: Axes, panel: Panel, marks: Sequence[str], rows: Sequence[str], rows_of: str
) -> None:
    marks_of = "series" if rows_of == "x" else "x"
    for i, name in enumerate(marks[:MOST_STYLES]):
        points = panel.points[panel.points[marks_of] == name]
        shift = 0.6 * ((i + 0.5) / len(marks) - 0.5)
        axes.errorbar(
            points["mean"],
            [rows.index(label) + shift for label in points[rows_of]],
            xerr=_errors(points),
            color=COLOURS[i],
            marker=MARKERS[i],
            markerfacecolor=COLOURS[i] if i % 2 == 0 else "white",
            linestyle="none",
            linewidth=1,
            markersize=4.5,
            capsize=2,
            label=name if rows_of == "x" else f"{panel.x} {name}",
        )
    axes.set_yticks(range(len(rows)), rows, fontsize=7.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", linewidth=0.3, color="#BBBBBB")


def _label_axes(grid: Any, panels: Sequence[Panel], kind: str, rows_of: str) -> None:
    panel = panels[0]
    x = axis_words(panel, panel.x)
    across = value_words(panel) if kind == DOT_CHART else x
    rows = x if rows_of == "x" else axis_words(panel, panel.series)
    upwards = rows if kind == DOT_CHART else value_words(panel)
    n_rows, n_columns = grid.shape
    for i, row in enumerate(grid):
        row[0].set_ylabel(upwards, fontsize=8)
        for j, axes in enumerate(row):
            axes.tick_params(labelsize=8 if kind != DOT_CHART else 7.5)
            # The lowest in its column that is not left empty.
            if i == n_rows - 1 or (i + 1) * n_columns + j >= len(panels):
                axes.set_xlabel(across, fontsize=8)
                axes.tick_params(labelbottom=True)


def _pale(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return (1 + red) / 2, (1 + green) / 2, (1 + blue) / 2
