"""A schedule as one page to look around in, without a network: zoom, hover, a cursor in time.

Script, style and data are inside; the page forbids itself to fetch anything. The script is our
own: what the page needs is bars over time and arrows between hosts, and a library that draws
charts of all kinds would make every page some megabytes larger.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.files.units import format_bytes, format_duration, format_rate
from datacollect.pictures.axis import offsets
from datacollect.pictures.colours import HATCHES, look_of
from datacollect.pictures.graph import place_hosts
from datacollect.pictures.layout import peak_bytes_per_s
from datacollect.pictures.marks import MOST_BINDS, MOST_PERIODS, marks_of
from datacollect.pictures.moves import Moves, moves_of
from datacollect.pictures.picture import MAX_INSTANTS, picture_of
from datacollect.pictures.words import ORDER, headlines, role_of
from datacollect.pictures.writing import visible

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray
    from datacollect.pictures.marks import Marks
    from datacollect.pictures.picture import Area, Band, Picture
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# Changes of rates in a page: this many take some megabytes. Of more, rates are means over longer
# stretches, at least `FEWEST_INSTANTS`.
MOST_CHANGES, FEWEST_INSTANTS = 150_000, 90
# Points of a host's curve of storage.
MOST_POINTS = 400

SCRIPTS = ("page_words.js", "page_time.js", "page_graph.js", "page.js")

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src 'sha256-{script_hash}'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; \
base-uri 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
{lines}
</header>
<noscript><p>This page needs JavaScript. Without it, <code>datacollect plot</code> draws PNG, SVG
and PDF.</p></noscript>
<main></main>
<div id="hint" hidden></div>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def plot_page(problem: Problem, schedule: Schedule) -> str:
    """Return a schedule as one HTML page, which needs no network.

    Hosts over time, as in `plot_schedule`, to be zoomed (mouse, keys, buttons), with exact values
    under the pointer. A cursor in time draws who sends what to whom on a graph of hosts, a map
    where they say where they stand (`Host.latitude`, `Host.longitude`), and lists it as a table.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Of this problem.

    Returns
    -------
    str
        The page: some 30 kB, and a few megabytes at most. Of large plans it has the 25 busiest
        hosts over time, 300 hosts and 1500 flows on the graph, and rates as means over at least
        90 stretches of time; it says so.

    Raises
    ------
    ProblemError
        The schedule does not belong to the problem.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> page = plot_page(problem, dc.direct(problem))
    >>> "<title>10 B to D in 2 s</title>" in page, "https://" in page
    (True, False)
    """
    picture, moves = _few_enough(problem, schedule)
    title, lines = headlines(picture, problem, schedule)
    title, lines = visible(title), [visible(line) for line in lines]
    tree = _visible(page_tree(problem, schedule, picture, moves))
    text = json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    script = "".join(map(_asset, SCRIPTS))
    return _PAGE.format(
        title=html.escape(title),
        lines="\n".join(f'<p dir="auto">{html.escape(line)}</p>' for line in lines),
        style=_asset("page.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        # In a script nothing is escaped, but "</script>" and "<!--" would end or change it.
        data=text.replace("<", "\\u003c"),
    )


def _visible(tree: Any) -> Any:
    """Return a tree in which nothing is written that no eye sees, such as marks of direction."""
    if isinstance(tree, dict):
        return {visible(key): _visible(value) for key, value in tree.items()}
    if isinstance(tree, list):
        # Most lists are of numbers.
        return [x if isinstance(x, float | int) else _visible(x) for x in tree]
    return visible(tree) if isinstance(tree, str) else tree


def _few_enough(problem: Problem, schedule: Schedule) -> tuple[Picture, Moves]:
    """Return what is shown, with as many instants as a page may have changes of rates."""
    most = MAX_INSTANTS
    while True:
        picture = picture_of(problem, schedule, most)
        moves = moves_of(problem, schedule, picture.edges_s)
        areas = [a.bytes_per_s for band in picture.bands for a in (*band.sends, *band.receives)]
        n_changes = sum(len(_changes(rates)) // 2 for rates in [*areas, *moves.bytes_per_s])
        if n_changes <= MOST_CHANGES or most <= FEWEST_INSTANTS:
            return picture, moves
        most = max(most // 2, FEWEST_INSTANTS)


def page_tree(
    problem: Problem, schedule: Schedule, picture: Picture, moves: Moves
) -> dict[str, Any]:
    """Return what the page shows, as plain data.

    Rates are lists of a stretch's number and the rate from there on, in turn. Hosts of flows are
    numbers in the list of hosts, series numbers in that of series.
    """
    marks = marks_of(problem, schedule)
    series = {name: i for i, name in enumerate(picture.sources)}
    place = {host: i for i, host in enumerate(moves.hosts.tolist())}
    names = problem.names
    flows = [
        {
            "series": series.get(names[source], len(picture.sources) - 1),
            "source": names[source],
            "from": place[tail],
            "to": place[head],
            "rates": _changes(rates),
        }
        for source, tail, head, rates in zip(
            *(column.tolist() for column in (moves.source, moves.tail, moves.head)),
            moves.bytes_per_s,
            strict=True,
        )
    ]
    stored = _stored(schedule, picture)
    return {
        "begin_s": picture.begin_s,
        "end_s": picture.end_s,
        "bound_s": float(schedule.lower_bound_s),
        "deadline_s": schedule.deadline_s,
        "edges_s": picture.edges_s.tolist(),
        "total": format_bytes(problem.total_bytes),
        "clock": _clock(problem, picture),
        "series": [
            {
                "name": name,
                "colour": look.colour,
                "ink": look.ink,
                "hatch": HATCHES.index(look.hatch),
            }
            for i, name in enumerate(picture.sources)
            for look in [look_of(i, picture.n_sources)]
        ],
        "bands": [_band(problem, schedule, band, stored) for band in picture.bands],
        **_drawing(problem, moves, flows, stored),
        "flows": flows,
        "collected_bytes": [_short(x) for x in moves.collected_bytes.tolist()],
        "marks": _marks(marks, picture),
        "notes": _notes(picture, moves, marks),
    }


def _band(
    problem: Problem, schedule: Schedule, band: Band, stored: dict[str, Any]
) -> dict[str, Any]:
    words = [role_of(problem, schedule, band.name)]
    for areas, what in ((band.sends, "sends"), (band.receives, "receives")):
        if areas:
            words.append(f"{what} ≤ {format_rate(peak_bytes_per_s(areas))}")
    if len(band.stored_bytes):
        words.append(f"stores ≤ {format_bytes(float(band.stored_bytes.max()))}")
    return {
        "name": band.name,
        "words": "; ".join(word for word in words if word),
        "sends": [_area(area) for area in band.sends],
        "receives": [_area(area) for area in band.receives],
        "stored": stored.get(band.name, []) if band.shows_storage else [],
    }


def _area(area: Area) -> dict[str, Any]:
    return {"series": area.series, "peer": area.peer, "rates": _changes(area.bytes_per_s)}


def _drawing(
    problem: Problem, moves: Moves, flows: list[dict[str, Any]], stored: dict[str, Any]
) -> dict[str, Any]:
    hosts = moves.hosts.tolist()
    drawing = place_hosts(problem, hosts, [(flow["from"], flow["to"]) for flow in flows])
    sources = {problem.names[i] for i in np.unique(moves.source).tolist()}
    return {
        "hosts": [
            {
                "name": (name := problem.names[host]),
                "x": round(float(x), 5),
                "y": round(float(y), 5),
                "kind": "destination"
                if host == problem.destination_index
                else "source"
                if name in sources
                else "relay",
                "stored": stored.get(name, []),
            }
            for host, (x, y) in zip(hosts, drawing.at, strict=True)
        ],
        "is_map": drawing.is_map,
        "aspect": drawing.aspect,
        "off_map": list(drawing.off_map),
    }


def _stored(schedule: Schedule, picture: Picture) -> dict[str, Any]:
    """Return each host's curve of others' data stored: instants and bytes, in turn."""
    curves: dict[str, Any] = {}
    for name, curve in schedule.storage().groupby("host", sort=False):
        when_s = curve["time_s"].to_numpy(dtype=float)
        n_bytes = curve["stored_bytes"].to_numpy(dtype=float)
        if len(when_s) > MOST_POINTS:
            at_s = np.linspace(picture.begin_s, picture.end_s, MOST_POINTS)
            # At the end of the last of several points at one instant.
            when_s, n_bytes = at_s, np.interp(at_s, when_s, n_bytes)
        pairs = np.column_stack([when_s, np.maximum(n_bytes, 0.0)])
        curves[str(name)] = [x for at, amount in pairs.tolist() for x in (at, _short(amount))]
    return curves


def _marks(marks: Marks, picture: Picture) -> dict[str, Any]:
    periods = [at_s for at_s in marks.periods_s if at_s > picture.begin_s]
    return {
        "periods_s": periods if len(periods) <= MOST_PERIODS else [],
        "releases_s": marks.releases_s,
        "binds": [
            {"text": binding.text, "spans_s": [list(span) for span in binding.spans_s[:200]]}
            for binding in marks.binds[:MOST_BINDS]
        ],
    }


def _notes(picture: Picture, moves: Moves, marks: Marks) -> list[str]:
    notes = [ORDER]
    if len(picture.bands) < picture.n_hosts:
        notes.append(
            f"By time: the {len(picture.bands)} busiest of {picture.n_hosts} hosts that take part."
        )
    if len(moves.hosts) < moves.n_hosts:
        notes.append(
            f"On the graph: the {len(moves.hosts)} busiest of {moves.n_hosts} hosts that take part."
        )
    if len(moves.source) < moves.n_flows:
        notes.append(
            f"Of {moves.n_flows} flows (whose data go from where to where) the {len(moves.source)} "
            "with most data are here; what has been collected counts all."
        )
    if picture.mean_over_s is not None:
        notes.append(f"Rates are means over {format_duration(picture.mean_over_s)}.")
    if len(marks.periods_s) > MOST_PERIODS:
        notes.append(f"The forecast has {len(marks.periods_s) + 1} periods, too many to mark.")
    if len(marks.binds) > MOST_BINDS:
        notes.append(f"What binds: the longest {MOST_BINDS} of {len(marks.binds)} limits.")
    return [*notes, *([marks.binds_note] if marks.binds_note else [])]


def _clock(problem: Problem, picture: Picture) -> dict[str, Any] | None:
    if problem.clock is None:
        return None
    known = offsets(problem.clock, picture.end_s)
    if not known:
        return None
    zone = getattr(problem.clock.zone, "key", None) or problem.clock.text(0.0)[-6:]
    return {
        "epoch_s": problem.clock.moment(0.0).timestamp(),
        "offsets": [[at_s, ahead_s] for at_s, ahead_s in known],
        "zone": zone,
    }


def _changes(rates: FloatArray) -> list[float]:
    """Return where rates change, and to what, in turn; they begin with 0.

    >>> _changes(np.array([0.0, 5.0, 5.0, 0.0]))
    [1, 5.0, 3, 0.0]
    """
    at = np.flatnonzero(np.diff(rates, prepend=0.0))
    return [
        x
        for k, rate in zip(at.tolist(), rates[at].tolist(), strict=True)
        for x in (k, _short(rate))
    ]


def _short(value: float) -> float:
    """Seven digits: more than anybody reads, less than half of what JSON would write."""
    return float(f"{value:.7g}")


def _asset(name: str) -> str:
    return (files("datacollect.pictures") / name).read_text(encoding="utf-8")
