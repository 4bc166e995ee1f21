"""What was measured between hosts, as one page that needs no network."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.plotly_script import plotly_script
from datacollect.files.units import counted
from datacollect.measurement.outcomes import listed
from datacollect.measurement.probes.routes import answering, read_route
from datacollect.measurement.sample_store import DONE, samples_of
from datacollect.measurement.samples_to_problem import PROBE, line_through
from datacollect.measurement.series.changes import flag_changes
from datacollect.measurement.series.smoothing import smoothed
from datacollect.measurement.unlike import kinds_in_words, of_one_kind
from datacollect.pictures.colours import OTHERS, PALETTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from datacollect.numbers.arrays import FloatArray

# Of each series the newest, and of links those that fail most.
MOST_SAMPLES, MOST_BARS = 2000, 40
N_BINS = 24
MBIT_BYTES = 125_000.0

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
<p>{facts}</p>
<p><label>Link <select id="link"></select></label></p>
<main></main>
<script>{plotly}</script>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def watch_html(title: str, table: pd.DataFrame) -> str:
    """Return the page of a table of measurements.

    Rates and round trips of each link over time, broken where tests failed; the routers that links
    have in common; probes against tests with connections; how often which rate was measured, and
    how many tests failed.

    Parameters
    ----------
    title : str
    table : DataFrame
        As `datacollect.measurement.sample_store.read_parts` reads it.

    Raises
    ------
    ProblemError
        plotly, which draws, is not installed.
    """
    plotly = plotly_script()
    if plotly is None:
        raise ProblemError("the page needs plotly; install datacollect[measure]")
    table = table.sort_values("time_s", kind="stable")
    links = [_link(f"{a} → {b}", rows) for (a, b), rows in table.groupby(["from", "to"])]
    charts = [_map(table), _scatter(samples_of(table)), _rates(samples_of(table)), _success(table)]
    text = json.dumps(
        {"links": links, "charts": [chart for chart in charts if chart]}, allow_nan=False
    )
    first, last = _times(table["time_s"].iloc[[0, -1]])
    tests = counted(len(table), "test")
    return _PAGE.format(
        title=html.escape(title),
        facts=f"{tests} of {counted(len(links), 'link')}, from {first} to {last} UTC.",
        style=_asset("watch.css"),
        script=_asset("watch.js"),
        plotly=plotly,
        # In a script nothing is escaped, but "</script>" and "<!--" would end or change it.
        data=text.replace("<", "\\u003c"),
    )


def _link(name: str, rows: pd.DataFrame) -> dict[str, Any]:
    """Return the series of a link: rates by kind of test with their averages, and round trips."""
    is_rate = ~rows["tool"].isin(("ping", "trace"))
    tests = rows[is_rate].assign(kind=rows["tool"])
    tests = tests.assign(kind=kinds_in_words(tests))
    rates = []
    for number, (kind, of_kind) in enumerate(tests.groupby("kind")):
        colour = PALETTE[number % len(PALETTE)]
        newest = of_kind.tail(MOST_SAMPLES)
        rate = _numbers(newest, "bandwidth_bytes_per_s")
        line = _line(str(kind), newest["time_s"], rate / MBIT_BYTES, colour)
        rates += [line, _average(line), _changes(line, rate)]
    pings = rows[rows["tool"] == "ping"].tail(MOST_SAMPLES)
    rtt_s = _numbers(pings, "rtt_s")
    return {
        "name": name,
        "title": _text(name),
        "rates": [trace for trace in rates if trace["x"]],
        "rtt": [_line("ping", pings["time_s"], rtt_s * 1e3, PALETTE[0])],
    }


def _line(name: str, time_s: pd.Series, y: Any, colour: str) -> dict[str, Any]:
    """Return a line of plotly's, broken where a test failed."""
    return {
        "name": _text(name),
        "x": _times(time_s),
        "y": [None if np.isnan(value) else float(f"{value:.5g}") for value in y],
        "mode": "lines+markers",
        "line": {"color": colour, "width": 1},
        "marker": {"size": 4},
        "connectgaps": False,
    }


def _average(line: Mapping[str, Any]) -> dict[str, Any]:
    known = [(x, y) for x, y in zip(line["x"], line["y"], strict=True) if y is not None]
    return {
        "name": f"{line['name']}, average",
        "x": [x for x, _ in known],
        "y": smoothed([y for _, y in known]).round(5).tolist(),
        "mode": "lines",
        "line": {"color": line["line"]["color"], "width": 3, "dash": "dot"},
    }


def _changes(line: Mapping[str, Any], rate: Any) -> dict[str, Any]:
    flagged = flag_changes(rate)
    return {
        "name": f"{line['name']}, changed",
        "x": [line["x"][at] for at in flagged],
        "y": [line["y"][at] for at in flagged],
        "mode": "markers",
        "marker": {"color": "#D55E00", "size": 12, "symbol": "diamond-open"},
    }


def _map(table: pd.DataFrame) -> dict[str, Any] | None:
    """Return the graph of hosts and routers that answered, coloured by rate or round trip."""
    import networkx as nx

    traces = table[table["routers"].notna() & (table["ended"] == DONE)]
    if traces.empty:
        return None
    graph: nx.Graph[str] = nx.Graph()
    crossing: dict[str, set[tuple[str, str]]] = {}
    newest = traces.drop_duplicates(["from", "to"], keep="last")
    for tail, head, text in newest[["from", "to", "routers"]].itertuples(index=False):
        hops = [f"router {each}" for hop in read_route(text) for each in answering(hop)]
        nx.add_path(graph, [tail, *hops, head])
        for hop in hops:
            crossing.setdefault(hop, set()).add((tail, head))
    place = nx.spring_layout(graph, seed=0)
    lines = {
        axis: [each for a, b in graph.edges for each in (place[a][k], place[b][k], None)]
        for k, axis in enumerate("xy")
    }
    done = table[table["ended"] == DONE].groupby(["from", "to"])
    rates, trips = (
        _medians(done[column].median().dropna() * scale, crossing)
        for column, scale in (("bandwidth_bytes_per_s", 1 / MBIT_BYTES), ("rtt_s", 1e3))
    )
    hosts = [node for node in graph if node not in crossing]
    routers = {
        "x": [place[hop][0] for hop in crossing],
        "y": [place[hop][1] for hop in crossing],
        "text": [
            f"{_text(hop)}<br>{counted(len(pairs), 'link')}: "
            + listed([_arrow(pair) for pair in sorted(pairs)])
            for hop, pairs in crossing.items()
        ],
        "mode": "markers",
        "hoverinfo": "text",
        "marker": {"size": 11, "color": rates, "colorscale": "Viridis", "showscale": True},
    }
    buttons = [
        {"label": label, "method": "restyle", "args": [{"marker.color": [values]}, [1]]}
        for label, values in (("Mbit/s", rates), ("ms round trip", trips))
    ]
    named = {
        "x": [place[host][0] for host in hosts],
        "y": [place[host][1] for host in hosts],
        "text": [_text(host) for host in hosts],
        "mode": "markers+text",
        "textposition": "top center",
        "marker": {"size": 14, "symbol": "square", "color": "#222"},
    }
    hidden = {"visible": False}
    return {
        "title": "Routers that answered: medians of links that cross them",
        "data": [
            {**lines, "mode": "lines", "line": {"color": OTHERS}, "hoverinfo": "skip"},
            routers,
            named,
        ],
        "layout": {
            "showlegend": False,
            "xaxis": hidden,
            "yaxis": hidden | {"range": [-1.3, 1.3]},
            "updatemenus": [
                {
                    "type": "buttons",
                    "direction": "right",
                    "buttons": buttons,
                    "x": 0,
                    "xanchor": "left",
                    "y": 0,
                    "yanchor": "top",
                }
            ],
        },
    }


def _medians(
    by_pair: pd.Series, crossing: Mapping[str, set[tuple[str, str]]]
) -> list[float | None]:
    """Return for each router the median of the links that cross it, where any is known."""
    known = by_pair.to_dict()
    values = [[known[pair] for pair in pairs if pair in known] for pairs in crossing.values()]
    return [float(np.median(each)) if each else None for each in values]


def _scatter(samples: pd.DataFrame) -> dict[str, Any] | None:
    """Return means of tests with connections over those of probes, and the line through both."""
    is_probe = samples["kind"] == PROBE
    probes, tests = samples[is_probe], of_one_kind(samples[~is_probe]).samples
    pair, rate = ["from", "to"], "bandwidth_bytes_per_s"
    both = probes.groupby(pair)[[rate]].mean()
    both = both.join(tests.groupby(pair)[rate].mean().rename("tested"), how="inner") / MBIT_BYTES
    if both.empty:
        return None
    data: list[dict[str, Any]] = [
        {
            "name": "links",
            "x": both[rate].tolist(),
            "y": both["tested"].tolist(),
            "text": [_arrow(pair) for pair in both.index],
            "mode": "markers",
            "marker": {"color": PALETTE[0]},
        }
    ]
    if (line := line_through(probes, tests)) is not None:
        most = float(both[rate].max())
        data.append(
            {
                "name": f"{line.slope:.3g} x, R² {line.r_squared:.2f}",
                "x": [0, most],
                "y": [0, line.slope * most],
                "mode": "lines",
                "line": {"color": PALETTE[1]},
            }
        )
    return {
        "title": "Connections against packet pairs: means of links",
        "data": data,
        "layout": _axes("packet pairs, Mbit/s", "connections, Mbit/s"),
    }


def _rates(samples: pd.DataFrame) -> dict[str, Any] | None:
    """Return how often each tool measured which rate."""
    if samples.empty:
        return None
    log = samples["bandwidth_bytes_per_s"].astype(float).div(MBIT_BYTES).map(np.log10)
    edges = np.linspace(log.min() - 0.05, log.max() + 0.05, N_BINS + 1)
    middles = (10 ** ((edges[1:] + edges[:-1]) / 2)).tolist()
    data = [
        {
            "name": _text(str(tool)),
            "type": "bar",
            "x": [f"{middle:.3g}" for middle in middles],
            "y": np.histogram(of_tool, edges)[0].tolist(),
            "marker": {"color": PALETTE[number % len(PALETTE)]},
        }
        for number, (tool, of_tool) in enumerate(log.groupby(samples["kind"]))
    ]
    layout = _axes("Mbit/s", "tests")
    layout["xaxis"]["type"] = "category"
    return {"title": "How often which rate was measured", "data": data, "layout": layout}


def _success(table: pd.DataFrame) -> dict[str, Any]:
    """Return the part of each link's tests that went well, of those that fail most."""
    went_well = (table["ended"] == DONE).groupby([table["from"], table["to"]]).mean()
    worst = went_well.sort_values(kind="stable").head(MOST_BARS)
    layout = _axes("part of tests, %", "")
    layout["xaxis"]["range"] = [0, 100]
    layout["yaxis"] |= {"type": "category", "autorange": "reversed", "automargin": True}
    layout["height"] = 160 + 22 * len(worst)
    return {
        "title": "Tests that went well: the links that fail most first",
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "x": (100 * worst).round(1).tolist(),
                "y": [_arrow(pair) for pair in worst.index],
                "marker": {"color": PALETTE[0]},
            }
        ],
        "layout": layout,
    }


def _axes(x: str, y: str) -> dict[str, Any]:
    return {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}}}


def _numbers(rows: pd.DataFrame, column: str) -> FloatArray:
    """Return a column, NaN where a test failed."""
    return np.asarray(rows[column].where(rows["ended"] == DONE), dtype=float)


def _arrow(pair: Any) -> str:
    return _text(f"{pair[0]} → {pair[1]}")


def _text(text: str) -> str:
    """Return a text as plotly shows it: it takes tags for its own."""
    return html.escape(text, quote=False)


def _times(time_s: pd.Series) -> list[str]:
    import pandas as pd

    at = pd.to_datetime(time_s, unit="s").dt.round("ms")
    return [each.isoformat(sep=" ") for each in at]


def _asset(name: str) -> str:
    return (files("datacollect.pictures") / name).read_text(encoding="utf-8")
