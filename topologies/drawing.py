"""Topologies as pictures: domains as clusters, wires by kind, peering wires in front.

Uses matplotlib's objects, never pyplot and its global state: threads may draw at the same time.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.units import format_rate
from datacollect.topologies.layout import place_nodes
from datacollect.topologies.rules import NODE_KINDS, WIRE_KINDS

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from datacollect.numbers.arrays import FloatArray
    from datacollect.topologies.wiring import Wiring

SUFFIXES = (".png", ".svg", ".pdf")
# The same bytes at every run.
_NO_DATE: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
INK, FAINT = "#222222", "#5A5A5A"
DOTS_PER_INCH = 100

# Okabe and Ito, Color Universal Design, 2002, for what matters; grey for all else.
_WIRES: dict[str, dict[str, Any]] = {
    "peering": {"color": "#D55E00", "lw": 3.2, "zorder": 4},
    "transit": {"color": "#0072B2", "lw": 1.8, "zorder": 3},
    "transit-stub": {"color": "#6E8FA3", "lw": 1.0, "zorder": 2},
    "stub": {"color": "#9A9A9A", "lw": 0.9, "zorder": 2},
    "backbone": {"color": "#0072B2", "lw": 1.4, "zorder": 3},
    "access": {"color": "#009E73", "lw": 1.3, "zorder": 2},
}
_NODES: dict[str, dict[str, Any]] = {
    "transit": {"color": "#0072B2", "s": 330, "marker": "o"},
    "stub": {"color": "#5A5A5A", "s": 22, "marker": "o"},
    "router": {"color": "#0072B2", "s": 46, "marker": "o"},
    "external": {"color": "#BBBBBB", "s": 46, "marker": "o"},
    "host": {"color": "#009E73", "s": 62, "marker": "s"},
}
_IN_WORDS = {kind: f"{kind} nodes" for kind in NODE_KINDS} | {"router": "routers", "host": "hosts"}
# Nobody reads more names.
_MOST_NAMES, _MOST_PEERING_NAMES = 80, 4
_MARGIN = 0.5  # around the nodes of a domain


def topology_figure(topology: Wiring, title: str = "") -> Figure:
    """Draw a topology.

    Domains are shaded clusters; peering wires carry their name and rate. Nodes of transit domains
    and hosts are named, others where they are few; stub domains are named as a whole.

    Parameters
    ----------
    topology : Wiring
    title : str
        By default the numbers of nodes and wires.

    Returns
    -------
    matplotlib.figure.Figure
        12 inches wide or less. Artists are grouped: one collection per kind of wire and per kind
        of node, with ``gid`` such as ``"wires stub"`` and ``"nodes host"``.

    Examples
    --------
    >>> from datacollect.topologies import star
    >>> figure = topology_figure(star(5, rate_bytes_per_s=1e6, delay_s=0.01))
    >>> [c.get_gid() for c in figure.axes[0].collections]
    ['wires access', 'nodes router', 'nodes host']
    """
    from matplotlib.figure import Figure

    places = place_nodes(topology)
    room = np.array([2.4, 1.6])  # for names beside the outermost nodes
    low, high = places.min(axis=0) - room, places.max(axis=0) + room
    width, height = np.maximum(high - low, 4.0)
    inches = min(12.0 / width, 9.0 / height, 0.62)
    n_rows = -(-len(set(topology.wire_kinds) | set(topology.kinds)) // 4)
    page = (max(width * inches, 7.0), height * inches + 0.55 + 0.26 * n_rows)
    figure = Figure(figsize=page, dpi=DOTS_PER_INCH, facecolor="white")
    foot = (0.15 + 0.26 * n_rows) / page[1]
    axes = figure.add_axes((0.0, foot, 1.0, height * inches / page[1]))
    axes.set_axis_off()
    axes.set_aspect("equal")
    middle = (low + high) / 2
    axes.set_xlim(middle[0] - width / 2, middle[0] + width / 2)
    axes.set_ylim(middle[1] - height / 2, middle[1] + height / 2)
    _draw_clusters(axes, topology, places, inches)
    _draw_wires(axes, topology, places)
    _draw_nodes(axes, topology, places)
    _write_names(axes, topology, places)
    _write_around(figure, axes, title or _headline(topology))
    return figure


def save_figure(topology: Wiring, path: str | PathLike[str], title: str = "") -> None:
    """Draw a topology into a file: PNG, SVG or PDF by its suffix.

    Raises
    ------
    ProblemError
        Another suffix, or the file cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise ProblemError(
            f"{path}: a picture's name must end in {', '.join(SUFFIXES)}, got {path.suffix!r}"
        )
    figure = topology_figure(topology, title)
    try:
        figure.savefig(path, metadata=_NO_DATE.get(path.suffix.lower()))
    except OSError as error:
        raise ProblemError(f"{path}: cannot be written: {error.strerror}") from None


def _headline(topology: Wiring) -> str:
    text = f"{topology.n_nodes} nodes, {topology.n_wires} wires"
    return text + (f", {len(topology.hosts)} hosts" if topology.hosts else "")


def _draw_clusters(axes: Axes, topology: Wiring, places: FloatArray, inches: float) -> None:
    from matplotlib.patches import Polygon

    for domain, nodes in _clusters(topology).items():
        is_transit = topology.kinds[nodes[0]] == "transit"
        colour = "#E3EEF6" if is_transit else "#F0F0F0"
        margin = 2 * _MARGIN if is_transit else _MARGIN
        # The outline, wide and round at its corners, is the margin around the nodes.
        patch = Polygon(
            _outline(places[nodes]),
            closed=True,
            facecolor=colour,
            edgecolor=colour,
            lw=2 * margin * inches * 72,
            joinstyle="round",
            capstyle="round",
            zorder=0,
        )
        patch.set_gid(f"domain {domain}")
        axes.add_patch(patch)


def _outline(points: FloatArray) -> FloatArray:
    """Return the corners of the convex hull, shape (n_corners, 2).

    A. M. Andrew, "Another efficient algorithm for convex hulls in two dimensions", 1979.
    """
    ordered = sorted(map(tuple, points.tolist()))
    corners: list[tuple[float, ...]] = []
    for half in (ordered, ordered[::-1]):
        chain: list[tuple[float, ...]] = []
        for x, y in half:
            while len(chain) > 1:
                (x1, y1), (x2, y2) = chain[-2:]
                if (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1) > 0:
                    break
                chain.pop()
            chain.append((x, y))
        corners += chain[:-1]
    return np.array(corners)


def _clusters(topology: Wiring) -> dict[str, list[int]]:
    """Domains of several nodes, hosts apart."""
    members: dict[str, list[int]] = {}
    for i, (kind, domain) in enumerate(zip(topology.kinds, topology.domains, strict=True)):
        if domain and kind != "host":
            members.setdefault(domain, []).append(i)
    return {domain: nodes for domain, nodes in members.items() if len(nodes) > 1}


def _draw_wires(axes: Axes, topology: Wiring, places: FloatArray) -> None:
    from matplotlib.collections import LineCollection

    for kind in WIRE_KINDS:
        wires = topology.wires_of_kind(kind)
        if not len(wires):
            continue
        ends = places[np.column_stack([topology.wire_from[wires], topology.wire_to[wires]])]
        rates = topology.rate_bytes_per_s[wires]
        text = format_rate(float(rates.min()))
        if rates.max() > rates.min():
            text += f" to {format_rate(float(rates.max()))}"
        lines = LineCollection(
            list(ends), label=f"{kind}: {text} ({len(wires)})", capstyle="round", **_WIRES[kind]
        )
        lines.set_gid(f"wires {kind}")
        axes.add_collection(lines)


def _draw_nodes(axes: Axes, topology: Wiring, places: FloatArray) -> None:
    for kind in NODE_KINDS:
        nodes = [i for i, given in enumerate(topology.kinds) if given == kind]
        if not nodes:
            continue
        x, y = places[nodes].T
        dots = axes.scatter(
            x, y, label=f"{_IN_WORDS[kind]} ({len(nodes)})", linewidths=0.8, edgecolors="white",
            zorder=6, **_NODES[kind],
        )  # fmt: skip
        dots.set_gid(f"nodes {kind}")


def _write_names(axes: Axes, topology: Wiring, places: FloatArray) -> None:
    n_plain = sum(kind != "transit" for kind in topology.kinds)
    for i, (name, kind) in enumerate(zip(topology.names, topology.kinds, strict=True)):
        if kind == "transit" and len(name) <= 3:
            axes.text(
                float(places[i, 0]), float(places[i, 1]), name, size=8, weight="bold",
                color="white", ha="center", va="center_baseline", parse_math=False, zorder=7,
            )  # fmt: skip
        elif (
            kind == "transit"
            or n_plain <= _MOST_NAMES
            or (kind == "host" and len(topology.hosts) <= _MOST_NAMES)
        ):
            _name_node(axes, topology, places, i)
    if n_plain > _MOST_NAMES:
        _name_stub_domains(axes, topology, places)
    peering = topology.wires_of_kind("peering").tolist()
    if len(peering) <= _MOST_PEERING_NAMES:
        for wire in peering:
            _name_peering(axes, topology, places, wire)


def _name_node(axes: Axes, topology: Wiring, places: FloatArray, node: int) -> None:
    """Write a node's name on the side that its wires leave free."""
    from matplotlib.patheffects import withStroke

    others = [topology.index[name] for name in topology.neighbours(topology.names[node])]
    angle = _middle_of_widest_gap(places[others] - places[node])
    x, y = math.cos(angle), math.sin(angle)
    sideways = abs(x) > 0.8
    axes.annotate(
        topology.names[node],
        (float(places[node, 0]), float(places[node, 1])),
        (7 * x, 7 * y),
        textcoords="offset points",
        size=7.5,
        ha=("left" if x > 0 else "right") if sideways else "center",
        va="center_baseline" if sideways else ("bottom" if y > 0 else "top"),
        color=INK,
        parse_math=False,
        # A white rim: where many wires meet, names lie on them.
        path_effects=[withStroke(linewidth=2, foreground="white")],
        zorder=7,
    )


def _middle_of_widest_gap(directions: FloatArray) -> float:
    """Return the angle that is farthest from all directions; upwards where there is none."""
    if not len(directions):
        return math.pi / 2
    angles = np.sort(np.arctan2(directions[:, 1], directions[:, 0]))
    gaps = np.diff(angles, append=angles[0] + 2 * math.pi)
    widest = int(np.argmax(gaps))
    return float(angles[widest] + gaps[widest] / 2)


def _name_stub_domains(axes: Axes, topology: Wiring, places: FloatArray) -> None:
    clusters = _clusters(topology)
    if len(clusters) > _MOST_NAMES:
        return
    transit = np.array([kind == "transit" for kind in topology.kinds])
    for domain, nodes in clusters.items():
        if topology.kinds[nodes[0]] != "stub":
            continue
        # Outside, as seen from the nearest transit node, whose wire comes in on the other side.
        middle = places[nodes].mean(axis=0)
        gates = places[transit]
        outward = middle - gates[np.argmin(np.linalg.norm(gates - middle, axis=1))]
        outward /= np.linalg.norm(outward)
        reach = float(((places[nodes] - middle) @ outward).max()) + _MARGIN + 0.45
        spot = middle + reach * outward
        axes.text(
            float(spot[0]), float(spot[1]), domain, size=7.5, color=FAINT, va="center",
            ha="left" if outward[0] > 0.8 else "right" if outward[0] < -0.8 else "center",
            parse_math=False,
        )  # fmt: skip


def _name_peering(axes: Axes, topology: Wiring, places: FloatArray, wire: int) -> None:
    ends = places[[topology.wire_from[wire], topology.wire_to[wire]]]
    rate = format_rate(float(topology.rate_bytes_per_s[wire].min()))
    along = ends[1] - ends[0]
    flat = abs(along[0]) > abs(along[1])
    axes.annotate(
        f"{topology.wire_names[wire]}: {rate}",
        (float(ends[:, 0].mean()), float(ends[:, 1].mean())),
        (0, 6) if flat else (6, 0),
        textcoords="offset points",
        ha="center" if flat else "left",
        va="bottom" if flat else "center",
        size=9,
        weight="bold",
        color=_WIRES["peering"]["color"],
        parse_math=False,
        zorder=8,
    )


def _write_around(figure: Figure, axes: Axes, title: str) -> None:
    height = figure.get_size_inches()[1]
    figure.text(0.015, 1 - 0.12 / height, title, size=12, weight="bold", color=INK, va="top",
                parse_math=False)  # fmt: skip
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="lower left",
        ncols=4,
        fontsize=9,
        frameon=False,
        labelcolor=INK,
        markerscale=0.8,
        borderaxespad=0.3,
    )
