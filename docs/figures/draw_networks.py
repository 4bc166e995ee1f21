"""Draw the figures that explain networks and limits: `python docs/figures/draw_networks.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Ellipse, FancyBboxPatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matplotlib.axes import Axes

Point = tuple[float, float]

FOLDER = Path(__file__).parent
INK, FAINT = "#222222", "#5A5A5A"
# Okabe and Ito, Color Universal Design, 2002.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
NODE_POINTS = 17.0  # diameter of a host


def main() -> None:
    """Write all figures beside this file."""
    # The same bytes at every run: no random ids, no date.
    mpl.rcParams.update({"svg.hashsalt": "datacollect", "svg.fonttype": "none", "font.size": 9})
    for name, draw in FIGURES.items():
        draw().savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


def limits() -> Figure:
    """What transfers share: links, a host's uplink and downlink, a shared bottleneck."""
    figure = Figure(figsize=(7.0, 2.7), facecolor="white", layout="constrained")
    axes = _panel(figure.subplots(), 8.6, 3.4)
    at = {"S1": (0.7, 2.8), "S2": (0.7, 0.9), "K": (3.9, 0.5), "D": (7.4, 2.1)}
    for tail, head in (("S1", "D"), ("S2", "D"), ("S2", "K"), ("K", "D")):
        _arc(axes, at[tail], at[head])
    for name, point in at.items():
        _node(axes, point, name)
    axes.add_patch(Ellipse((4.4, 2.02), 0.55, 1.35, fill=False, edgecolor=RED, linewidth=1.6))
    axes.text(4.4, 2.85, "shared bottleneck", ha="center", color=RED)
    axes.add_patch(Arc(at["S2"], 2.2, 2.0, theta1=-25, theta2=35, color=BLUE, linewidth=2))
    axes.text(1.85, 0.35, "uplink of S2", color=BLUE, ha="left")
    axes.add_patch(Arc(at["D"], 2.0, 1.9, theta1=155, theta2=232, color=GREEN, linewidth=2))
    axes.text(7.3, 1.15, "downlink of D", color=GREEN, ha="left")
    axes.text(2.2, 2.76, "link", color=INK, ha="center")
    return figure


def cuts() -> Figure:
    """The cuts of the example of `draw_times.pipelined`, and the instant that each allows."""
    figure = Figure(figsize=(7.0, 2.9), facecolor="white", layout="constrained")
    axes = _panel(figure.subplots(), 8.6, 3.7)
    at = {"S1": (1.4, 3.0), "S2": (1.4, 1.0), "K": (4.2, 0.6), "D": (7.3, 2.2)}
    for tail, head, rate in (
        ("S1", "D", "1"),
        ("S2", "D", "0.5"),
        ("S2", "K", "2"),
        ("K", "D", "2"),
    ):
        _arc(axes, at[tail], at[head], rate)
    for name, point in at.items():
        _node(axes, point, name)
    axes.text(0.95, 3.0, "4 MB", ha="right", va="center")
    axes.text(0.95, 1.0, "15 MB", ha="right", va="center")
    axes.add_patch(Arc(at["S2"], 2.6, 2.4, theta1=-50, theta2=60, color=RED, linewidth=2))
    axes.text(2.2, 0.0, "15 MB / 2.5 MB/s = 6 s: binds", color=RED, va="center")
    axes.add_patch(Arc(at["D"], 2.5, 2.7, theta1=140, theta2=250, color=FAINT, linestyle="--"))
    axes.text(6.95, 0.75, "19 MB / 3.5 MB/s\n= 5.43 s", color=FAINT, va="center")
    axes.add_patch(
        Arc(at["S1"], 1.9, 1.7, theta1=-50, theta2=25, color=FAINT, linestyle="--", linewidth=1)
    )
    axes.text(2.35, 3.4, "4 MB / 1 MB/s = 4 s", color=FAINT, va="center")
    axes.text(8.6, 3.5, "rates in MB/s", color=FAINT, ha="right", va="center")
    return figure


def networks() -> Figure:
    """One problem, S -> K -> D and S -> D, as the three networks that are solved."""
    figure = Figure(figsize=(7.4, 2.6), facecolor="white", layout="constrained")
    static, layered, expanded = figure.subplots(1, 3, width_ratios=(0.75, 1.3, 1.5))
    _static(_panel(static, 2.5, 3.2))
    _layered(_panel(layered, 4.4, 3.2))
    _expanded(_panel(expanded, 5.0, 3.2))
    return figure


def _static(axes: Axes) -> None:
    axes.set_title("constant bandwidths", size=9)
    at = {"S": (0.3, 2.5), "K": (1.2, 1.4), "D": (2.1, 0.3)}
    _arc(axes, at["S"], at["K"])
    _arc(axes, at["K"], at["D"])
    _arc(axes, at["S"], at["D"], bend=-0.45)
    for name, point in at.items():
        _node(axes, point, name)


def bistro() -> Figure:
    """What goes where when somebody hands in by a deadline."""
    figure = Figure(figsize=(7.0, 2.4), facecolor="white", layout="constrained")
    axes = _panel(figure.subplots(), 11.4, 3.8)
    boxes = {
        (1.1, 2.9): "person:\nfile, NAME.keep",
        (5.5, 2.9): "service: a log\nthat only grows",
        (10.1, 2.9): "witnesses: k of n\nmake a time",
        (1.1, 0.6): "receipt",
        (5.5, 0.6): "anybody",
    }
    for at, name in boxes.items():
        box = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": INK}
        axes.text(*at, name, ha="center", va="center", size=8, bbox=box, zorder=4)
    for tail, head, text, colour in (
        ((2.0, 3.1), (4.7, 3.1), "32 bytes, ticket", INK),
        ((4.7, 2.7), (2.0, 2.7), "acknowledgement, proof", BLUE),
        ((6.4, 3.1), (9.2, 3.1), "checkpoint", INK),
        ((9.2, 2.7), (6.4, 2.7), "signature, time", BLUE),
        ((1.1, 2.5), (1.1, 0.75), "", GREEN),
        ((1.4, 0.6), (5.1, 0.6), "with the event's file", GREEN),
    ):
        _arc(axes, tail, head, colour=colour)
        above = 0.08 if tail[0] < head[0] else -0.1
        side = "bottom" if above > 0 else "top"
        middle = ((tail[0] + head[0]) / 2, tail[1] + above)
        axes.text(*middle, text, ha="center", va=side, size=8, color=colour)
    return figure


def _layered(axes: Axes) -> None:
    axes.set_title("a copy per piece of time", size=9)
    _sink(axes, 0.1, 4.3)
    for piece, x in enumerate((0.5, 2.8)):
        source, relay, own = (x, 2.1), (x + 0.9, 1.3), (x, 2.8)
        _arc(axes, own, source)
        _arc(axes, source, relay)
        _arc(axes, source, (x, 0.07))
        _arc(axes, relay, (x + 0.9, 0.07))
        _node(axes, source, "S")
        _node(axes, relay, "K")
        _node(axes, own, "", colour=ORANGE)
        axes.text(x + 0.9, 2.1, f"piece {piece}", size=8, color=FAINT, ha="center", va="center")
    _arc(axes, (0.5, 2.8), (2.8, 2.8), colour=ORANGE)
    _arc(axes, (1.4, 1.3), (3.7, 1.3), colour=BLUE)
    axes.text(1.65, 2.87, "own data wait", size=8, color=ORANGE, ha="center", va="bottom")
    axes.text(2.1, 1.37, "storage", size=8, color=BLUE, ha="center", va="bottom")


def _expanded(axes: Axes) -> None:
    axes.set_title("a copy per slot boundary", size=9)
    _sink(axes, 0.1, 4.9)
    rows = {"S": 2.4, "K": 1.4}
    step = 1.4
    for boundary in range(3):
        x = 0.5 + step * boundary
        if boundary < 2:
            _arc(axes, (x, rows["S"]), (x + step, rows["S"]), colour=ORANGE)
            _arc(axes, (x, rows["K"]), (x + step, rows["K"]), colour=BLUE)
            _arc(axes, (x, rows["S"]), (x + step, rows["K"]))
        for y in rows.values():
            _arc(axes, (x, y), (x + step, 0.07))
        for name, y in rows.items():
            _node(axes, (x, y), name)
    for boundary in range(4):
        axes.text(0.5 + step * boundary, 2.85, f"{boundary}", size=8, color=FAINT, ha="center")


def _sink(axes: Axes, left: float, right: float) -> None:
    """Draw the destination as one wide node for all times."""
    box = FancyBboxPatch(
        (left + 0.1, 0.0),
        right - left - 0.2,
        0.26,
        "round,pad=0.05",
        facecolor="white",
        edgecolor=INK,
        linewidth=1.2,
    )
    axes.add_patch(box)
    axes.text((left + right) / 2, 0.13, "D", ha="center", va="center_baseline", size=8)


def _panel(axes: Axes, width: float, height: float) -> Axes:
    axes.set(xlim=(0, width), ylim=(-0.15, height), aspect="equal")
    axes.axis("off")
    return axes


def _node(axes: Axes, at: Point, name: str, *, colour: str = "white") -> None:
    small = not name
    axes.plot(
        *at,
        "o",
        markersize=6 if small else NODE_POINTS,
        color=colour,
        markeredgecolor=INK,
        markeredgewidth=0 if small else 1.2,
        zorder=3,
    )
    axes.text(*at, name, ha="center", va="center_baseline", size=8, zorder=4)


def _arc(
    axes: Axes, tail: Point, head: Point, text: str = "", *, bend: float = 0.0, colour: str = INK
) -> None:
    arrow = {
        "arrowstyle": "-|>",
        "connectionstyle": f"arc3,rad={bend}",
        "color": colour,
        "linewidth": 1.0,
        "shrinkA": NODE_POINTS / 2,
        "shrinkB": NODE_POINTS / 2 + 1,
    }
    axes.annotate("", head, tail, arrowprops=arrow, zorder=2)
    if text:
        # Not in the middle, where other arcs pass.
        x, y = (a + 0.55 * (b - a) for a, b in zip(tail, head, strict=True))
        box = {"facecolor": "white", "linewidth": 0, "pad": 1}
        axes.text(x, y, text, ha="center", va="center", size=8, bbox=box, zorder=3)


FIGURES: Mapping[str, Callable[[], Figure]] = {
    "limits": limits,
    "cuts": cuts,
    "networks": networks,
    "bistro": bistro,
}

if __name__ == "__main__":
    main()
