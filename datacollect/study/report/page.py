"""A report as one page that needs no network: charts, tables, single runs on a click.

Scripts and data are inside; the page forbids itself to fetch anything.
"""

from __future__ import annotations

import html
import json
import math
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from datacollect.study.report.figures import (
    COLOURS,
    DOT_CHART,
    MOST_STYLES,
    axis_words,
    chart_kind,
    value_words,
)
from datacollect.study.report.headings import headings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacollect.study.report.cells import Cells
    from datacollect.study.report.folders import SweepFolder
    from datacollect.study.report.own import SweepReport
    from datacollect.study.report.panels import Panel
    from datacollect.study.report.verdicts import Verdicts

# Of single runs: how many in a page, and how many transfers and hosts of each.
MOST_RUNS, MOST_BARS, MOST_HOSTS = 150, 400, 10

_INTRODUCTION = (
    "Mean values have 95 % confidence intervals in brackets (Student's t, as far as it is not "
    "below 0). Ratios are geometric means over seeds of paired runs, with the same network and "
    "background for both (Student's t of logarithms; from 5 pairs on with the studentised "
    "bootstrap, the wider of both). No order is claimed where an interval holds 1. More TCP "
    "connections alone make a collection faster: compare at equal numbers of connections."
)

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<main></main>
<h2>How to read it</h2>
<p>{introduction}</p>
<dialog id="run" aria-label="Single run"></dialog>
<script>{plotly}</script>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def page_html(
    title: str,
    claims: Mapping[str, Any],
    sweeps: Sequence[Mapping[str, Any]],
    runs: Mapping[str, Mapping[str, Any]],
    plotly: str,
) -> str:
    """Return the page.

    Parameters
    ----------
    title : str
    claims : mapping
        As `claims_tree` makes it.
    sweeps : sequence of mapping
        As `sweep_tree` makes them.
    runs : mapping
        As `run_tree` makes them, by key.
    plotly : str
        Script.
    """
    tree = {
        "claims": dict(claims),
        "sweeps": list(sweeps),
        "runs": dict(runs),
        "colours": list(COLOURS),
    }
    text = json.dumps(tree, ensure_ascii=False, allow_nan=False)
    return _PAGE.format(
        title=html.escape(title),
        introduction=html.escape(_INTRODUCTION),
        style=_asset("page.css"),
        script=_asset("page.js"),
        plotly=plotly,
        # In a script nothing is escaped, but "</script>" and "<!--" would end or change it.
        data=text.replace("<", "\\u003c"),
    )


def claims_tree(verdicts: Verdicts, cells: Cells) -> dict[str, Any]:
    """Return what the page shows of a hook's claims, whose table is `cells`."""
    return {
        **vars(cells),
        "title": verdicts.title,
        "shown": [list(column) for column in verdicts.shown.items()],
    }


def sweep_tree(
    sweep: SweepFolder,
    facts: Sequence[tuple[str, str]],
    panels: Sequence[Panel],
    tables: Mapping[str, Cells],
    report: SweepReport,
    runs: Sequence[str],
) -> dict[str, Any]:
    """Return what the page shows of a sweep.

    Parameters
    ----------
    sweep : SweepFolder
    facts : sequence of tuple
        Names and values.
    panels : sequence of Panel
    tables : mapping
        ``own``, ``figure``, ``summary`` and ``prediction``; ``across`` where several settings
        were run.
    report : SweepReport
        What is said of the sweep first.
    runs : sequence of str
        Keys of the runs that the page holds.
    """
    kept = "Runs of the fluid engine are kept as rows only: no schedules."
    if sweep.engine == "ns3":
        kept = f"The first seed of a setting; {len(runs)} of {len(sweep.table)} runs are here."
    return {
        "name": sweep.name,
        "title": str(sweep.tree.get("title") or ""),
        "facts": [list(fact) for fact in facts],
        "panels": [_panel_tree(panel) for panel in panels],
        "base": report.own.base,
        "own_axes": list(report.own.axes),
        "chance": report.chance.words,
        "tables": {
            name: {**vars(cells), "headings": headings(cells.columns, sweep.axis)}
            for name, cells in tables.items()
        },
        "runs": list(runs),
        "runs_note": kept,
    }


def run_tree(sweep: SweepFolder, key: str) -> dict[str, Any] | None:
    """Return what the page shows of a run; None where its document cannot be read."""
    document = sweep.document(key)
    if document is None or not {"row", "schedule", "storage"} <= set(document):
        return None
    row, schedule = document["row"], document["schedule"]
    labels = ", ".join(f"{axis.name} {row[axis.name]}" for axis in sweep.axes)
    bars = merged_transfers(schedule)
    left_out = len(bars) - MOST_BARS
    curves = sorted(document["storage"].items(), key=lambda item: -max(item[1]["others_bytes"]))
    return {
        "title": f"{sweep.name}: {labels}, seed {row['seed']}",
        "facts": [
            ["makespan, s", _number(row["makespan_s"])],
            ["predicted, s", _number(row["predicted_s"])],
            ["lower bound, s", _number(row["lower_bound_s"])],
            ["connections", str(row["connections"])],
            ["busiest wire", str(row["busiest_wire"])],
            ["binds in the plan", str(schedule.get("bottleneck") or "–")],
            ["key", key],
        ],
        "bars": sorted(bars, key=lambda bar: -bar["bytes"])[:MOST_BARS],
        "left_out": f" ({left_out} small transfers left out)" if left_out > 0 else "",
        "storage": dict(curves[:MOST_HOSTS]),
    }


def merged_transfers(schedule: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return transfers with source, route, link, times and bytes; what touches becomes one.

    Examples
    --------
    >>> merged_transfers(
    ...     {
    ...         "routes": [["S", ["S", "D"]]],
    ...         "transfers": {
    ...             "route": [0, 0],
    ...             "hop": [0, 0],
    ...             "n_bytes": [5, 7],
    ...             "start_s": [0.0, 1.0],
    ...             "finish_s": [1.0, 2.0],
    ...         },
    ...     }
    ... )  # doctest: +NORMALIZE_WHITESPACE
    [{'source': 'S', 'route': 'S → D', 'link': 'S → D', 'bytes': 12, 'start_s': 0.0,
      'finish_s': 2.0}]
    """
    columns = schedule["transfers"]
    names = ("route", "hop", "start_s", "finish_s", "n_bytes")
    found: list[dict[str, Any]] = []
    last: tuple[int, int] | None = None
    for route, hop, start_s, finish_s, n_bytes in sorted(
        zip(*(columns[name] for name in names), strict=True)
    ):
        if last == (route, hop) and math.isclose(found[-1]["finish_s"], start_s, abs_tol=1e-6):
            found[-1]["finish_s"] = finish_s
            found[-1]["bytes"] += n_bytes
            continue
        last = route, hop
        source, hosts = schedule["routes"][route]
        found.append(
            {
                "source": source,
                "route": " → ".join(hosts),
                "link": f"{hosts[hop]} → {hosts[hop + 1]}",
                "bytes": n_bytes,
                "start_s": start_s,
                "finish_s": finish_s,
            }
        )
    return found


def _panel_tree(panel: Panel) -> dict[str, Any]:
    kind, x, points = chart_kind([panel]), panel.x, panel.points
    series = panel.series
    if kind == DOT_CHART and points["series"].nunique() > MOST_STYLES:
        # As in the picture: a row for each series.
        points = points.rename(columns={"x": "series", "series": "x"})
        points = points.assign(series=[f"{panel.x} {label}" for label in points["series"]])
        x, series = panel.series, panel.x
    names = ("series", "x", "connections", "n", "mean", "low", "high", "run")
    rows = zip(*(points[name].tolist() for name in names), strict=True)
    return {
        "title": panel.title,
        "shown": panel.shown,
        "kind": kind,
        "x": axis_words(panel, x),
        "series": axis_words(panel, series),
        "value": value_words(panel),
        "points": [dict(zip(names, map(_plain, row), strict=True)) for row in rows],
    }


def _plain(value: Any) -> Any:
    """Six digits as in the CSV; JSON has no NaN."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def _number(value: Any) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.4g}"


def _asset(name: str) -> str:
    return (files("datacollect.study.report") / name).read_text(encoding="utf-8")
