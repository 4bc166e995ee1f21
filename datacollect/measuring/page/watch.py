"""Page of measurements between hosts, one file that needs no network."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.plotly_script import plotly_script
from datacollect.files.units import counted
from datacollect.installation import command_for_extra
from datacollect.measurement.sample_store import DONE, samples_of
from datacollect.measurement.series.changes import flag_changes
from datacollect.measurement.series.smoothing import smoothed
from datacollect.measurement.unlike import kinds_in_words, of_one_kind
from datacollect.measuring.operator.pings import PING
from datacollect.measuring.operator.tools import light_tools
from datacollect.measuring.page.router_map import MBIT_BYTES, plotly_text, router_map
from datacollect.measuring.results.samples_to_problem import PROBE, line_through
from datacollect.pictures.colours import PALETTE
from datacollect.pictures.live_views import LiveView

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from datacollect.measuring.page.router_map import Providers
    from datacollect.numbers.arrays import FloatArray

# Of each series the newest, and of links those that fail most.
MOST_SAMPLES, MOST_BARS = 2000, 40
N_BINS = 24

_BODY = """<p id="facts"></p>
<section id="live" aria-label="Now" hidden>
<p id="state" role="status">not connected yet</p>
<ul id="tests" aria-label="Tests that run"></ul>
<p><label>Interfaces of <select id="host"></select></label></p>
<p id="why"></p>
<div id="counters" class="chart"></div>
</section>
<p><label>Link <select id="link"></select></label></p>
<main></main>"""

_POLICY = (
    "default-src 'none'; script-src {script}; style-src 'self' 'unsafe-inline'; "
    "img-src data: blob:; connect-src {connect}; base-uri 'none'; form-action 'none'"
)
_LIVE_POLICY = _POLICY.format(script="'self'", connect="'self'") + "; frame-ancestors 'none'"


def watch_html(title: str, table: pd.DataFrame, providers: Providers | None = None) -> str:
    """Return the page of a table of measurements.

    Rates and round trips of each link over time, broken where tests failed; the routers that links
    have in common; probes against tests with connections; how often which rate was measured, and
    how many tests failed.

    Parameters
    ----------
    title : str
    table : DataFrame
        As `datacollect.measurement.sample_store.read_parts` reads it.
    providers : mapping, optional
        As `datacollect.measuring.page.router_map.read_providers` reads it.

    Raises
    ------
    ProblemError
        plotly, which draws, is not installed.
    """
    policy = _POLICY.format(script="'unsafe-inline'", connect="'none'")
    # In a script nothing is escaped, but "</script>" and "<!--" would end or change it.
    data = json.dumps(watch_tree(table, providers or {}), allow_nan=False).replace("<", "\\u003c")
    texts = [*WATCH_VIEW.scripts().values()]
    tags = [f"<script>{text}</script>" for text in texts]
    # Before what reads it.
    tags.insert(-1, f'<script type="application/json" id="data">{data}</script>')
    style = "".join(WATCH_VIEW.styles().values())
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>'
    return WATCH_VIEW.page(title, head, "\n".join(tags))


def _plotly() -> dict[str, str]:
    plotly = plotly_script()
    if plotly is None:
        raise ProblemError(f"the page needs plotly: {command_for_extra('measure')}")
    return {"plotly.js": plotly}


WATCH_VIEW = LiveView(
    "measurements",
    "datacollect.measuring.page",
    _BODY,
    "watch.css",
    "watch.js",
    _LIVE_POLICY,
    _plotly,
)


def watch_tree(table: pd.DataFrame, providers: Providers) -> dict[str, Any]:
    """Return what the page shows of a table: ``facts``, ``links`` and ``charts``."""
    table = table.sort_values("time_s", kind="stable")
    if table.empty:
        return {"facts": "No tests so far.", "links": [], "charts": []}
    links = [_link(f"{a} → {b}", rows) for (a, b), rows in table.groupby(["from", "to"])]
    samples = samples_of(table)
    charts = (router_map(table, providers), _scatter(samples), _rates(samples), _success(table))
    first, last = _times(table["time_s"].iloc[[0, -1]].round())
    tests = counted(len(table), "test")
    return {
        "facts": f"{tests} of {counted(len(links), 'link')}, from {first} to {last} UTC.",
        "links": links,
        "charts": [chart for chart in charts if chart],
    }


def _link(name: str, rows: pd.DataFrame) -> dict[str, Any]:
    """Return the series of a link: rates by kind of test with their averages, and round trips."""
    is_rate = ~rows["tool"].isin(light_tools())
    tests = rows[is_rate].assign(kind=rows["tool"])
    tests = tests.assign(kind=kinds_in_words(tests))
    rates = []
    for number, (kind, of_kind) in enumerate(tests.groupby("kind")):
        colour = PALETTE[number % len(PALETTE)]
        newest = of_kind.tail(MOST_SAMPLES)
        rate = _numbers(newest, "bandwidth_bytes_per_s")
        line = _line(str(kind), newest["time_s"], rate / MBIT_BYTES, colour)
        rates += [line, _average(line), _changes(line, rate)]
    pings = rows[rows["tool"] == PING.name].tail(MOST_SAMPLES)
    rtt_s = _numbers(pings, "rtt_s")
    return {
        "name": name,
        "title": plotly_text(name),
        "rates": [trace for trace in rates if trace["x"]],
        "rtt": [_line(PING.name, pings["time_s"], rtt_s * 1e3, PALETTE[0])],
    }


def _line(name: str, time_s: pd.Series, y: Any, colour: str) -> dict[str, Any]:
    """Return a line of plotly's, broken where a test failed."""
    return {
        "name": plotly_text(name),
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
            "name": plotly_text(str(tool)),
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
    return plotly_text(f"{pair[0]} → {pair[1]}")


def _times(time_s: pd.Series) -> list[str]:
    import pandas as pd

    at = pd.to_datetime(time_s, unit="s").dt.round("ms")
    return [each.isoformat(sep=" ") for each in at]
