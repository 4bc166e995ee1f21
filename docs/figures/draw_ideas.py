"""Draw the figures that explain one idea each: `python docs/figures/draw_ideas.py`.

They are narrow, so that a phone shows their letters as large as those of the text.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

import datacollect as dc
from datacollect import Host, Link, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matplotlib.axes import Axes

FOLDER = Path(__file__).parent
INK, FAINT = "#222222", "#5A5A5A"
# Okabe and Ito, Color Universal Design, 2002.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
WIDTH = 4.0  # inches


def main() -> None:
    """Write all figures beside this file."""
    # The same bytes at every run: no random ids, no date.
    mpl.rcParams.update({"svg.hashsalt": "datacollect", "svg.fonttype": "none", "font.size": 10})
    for name, draw in FIGURES.items():
        draw().savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


def relay() -> Figure:
    """A thin direct link, and a wide route over a relay: what each takes, as planned here."""
    links = [Link("S", "D", 10e6), Link("S", "K", 40e6), Link("K", "D", 40e6)]
    problem = Problem.from_hosts([Host("S", 60 * 10**9), Host("K"), Host("D")], links, "D")
    minutes = {
        "direct": dc.direct(problem).makespan_s / 60,
        "both routes": dc.coordinated(problem).makespan_s / 60,
    }
    figure = Figure(figsize=(WIDTH, 3.1), facecolor="white", layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(1.7, 1.0))
    _bare(above, 10, 5)
    at = {"S": (0.8, 0.8), "K": (5.0, 4.2), "D": (9.2, 0.8)}
    for link in links:
        (x0, y0), (x1, y1) = at[link.from_host], at[link.to_host]
        rate = float(link.bandwidth_bytes_per_s) / 1e6
        colour = FAINT if link.from_host == "S" and link.to_host == "D" else GREEN
        above.plot([x0, x1], [y0, y1], color=colour, linewidth=rate / 4, zorder=1)
        side = -0.25 if y0 == y1 else 0.25
        above.text(
            (x0 + x1) / 2 + (0.0 if y0 == y1 else (-0.4 if x0 < 2 else 0.4)),
            (y0 + y1) / 2 + side,
            f"{rate:g} MB/s",
            ha="center" if y0 == y1 else ("right" if x0 < 2 else "left"),
            va="top" if y0 == y1 else "bottom",
            color=colour,
        )
    _dots(above, at)
    above.text(0.2, -0.1, "60 GB", ha="left", va="top")
    for row, taken in enumerate(minutes.values()):
        below.barh(row, taken, color=(FAINT, GREEN)[row], height=0.6)
        below.text(taken + 1.5, row, f"{taken:.0f} min", va="center")
    below.set_yticks(range(len(minutes)), list(minutes))
    below.set_xlim(0, 130)
    below.invert_yaxis()
    below.set_xticks([])
    below.spines[["top", "right", "bottom"]].set_visible(False)
    return figure


def window() -> Figure:
    """A window is sent, then its acknowledgement is awaited: one round trip, then half of one."""
    figure = Figure(figsize=(WIDTH, 2.9), facecolor="white", layout="constrained")
    panels = figure.subplots(2, 1, sharex=True)
    for axes, rtt_ms, title in (
        (panels[0], 100.0, "one connection, round trip 100 ms: 5.2 Mbit/s"),
        (panels[1], 50.0, "over a relay halfway, 50 ms each: 10.5 Mbit/s"),
    ):
        axes.set_title(title, size=10, loc="left")
        sends_ms = 15.0
        for begin in range(0, 300, int(rtt_ms)):
            axes.barh(0, sends_ms, left=begin, color=BLUE, height=0.7)
            axes.annotate(
                "",
                (begin + rtt_ms, 0.0),
                (begin + sends_ms, 0.0),
                arrowprops={"arrowstyle": "->", "color": FAINT},
            )
        axes.set_yticks([])
        axes.set_ylim(-0.6, 0.6)
        axes.spines[["top", "right", "left"]].set_visible(False)
    panels[0].text(20, 0.12, "waits for ACK", color=FAINT, va="bottom", size=9)
    panels[0].text(1, -0.42, "64 KiB", color=BLUE, va="top", size=9)
    panels[1].set_xlim(0, 300)
    panels[1].set_xlabel("time, ms")
    return figure


def lease() -> Figure:
    """Two tests of one host at once measure half a wire each; with leases one waits."""
    figure = Figure(figsize=(WIDTH, 3.0), facecolor="white", layout="constrained")
    panels = figure.subplots(2, 1, sharex=True)
    tests = {"S1 → D": BLUE, "S2 → D": ORANGE}
    for axes, title, rows in (
        (panels[0], "without leases: each test sees half of D's line", ((0, 1, 0.5), (0, 1, 0.5))),
        (panels[1], "with leases: the second test waits, each sees it all", ((0, 1, 1), (1, 1, 1))),
    ):
        axes.set_title(title, size=10, loc="left")
        floor = 0.0
        for (name, colour), (begin, lasts, part) in zip(tests.items(), rows, strict=True):
            low = floor if begin == 0 else 0.0
            axes.bar(begin, part, lasts, low, align="edge", color=colour, edgecolor="white")
            axes.text(
                begin + lasts / 2,
                low + part / 2,
                f"{name}: {'50' if part < 1 else '100'} Mbit/s",
                ha="center",
                va="center",
                color="white" if colour == BLUE else INK,
                size=9,
            )
            floor += part
        axes.set_ylim(0, 1.02)
        axes.set_yticks([0, 1], ["0", "100"])
        axes.set_ylabel("Mbit/s")
        axes.set_xticks([])
        axes.spines[["top", "right"]].set_visible(False)
    panels[1].set_xlabel("time")
    panels[0].set_xlim(0, 2)
    return figure


def witness() -> Figure:
    """A log grows; a witness signs that each state begins with the one that it signed before."""
    figure = Figure(figsize=(WIDTH, 3.4), facecolor="white", layout="constrained")
    axes = _bare(figure.subplots(), 12, 7.4)
    for row, (size, time, text) in enumerate(
        ((3, "10:00", "signed: 3 entries"), (5, "10:05", "signed: the same 3, and 2 more"))
    ):
        y = 6.2 - 2.1 * row
        axes.text(0.0, y + 0.35, time, va="center", color=FAINT)
        for i in range(size):
            _entry(axes, 1.8 + i, y, "abcdefgh"[i], BLUE if i < 3 else GREEN)
        axes.text(1.8, y - 0.35, text, va="top", size=9)
    y = 2.0
    axes.text(0.0, y + 0.35, "10:10", va="center", color=FAINT)
    for i, letter in enumerate("axcdef"):
        _entry(axes, 1.8 + i, y, letter, RED if letter == "x" else (BLUE if i < 3 else GREEN))
    axes.text(
        1.8,
        y - 0.35,
        "refused: b was replaced, so this is not\nthe log that was signed",
        va="top",
        size=9,
        color=RED,
    )
    return figure


def _entry(axes: Axes, x: float, y: float, letter: str, colour: str) -> None:
    box = {"boxstyle": "square,pad=0.35", "facecolor": "white", "edgecolor": colour}
    axes.text(x + 0.35, y + 0.35, letter, ha="center", va="center", color=colour, bbox=box)


def _bare(axes: Axes, width: float, height: float) -> Axes:
    axes.set_xlim(0, width)
    axes.set_ylim(-0.8, height)
    axes.set_axis_off()
    return axes


def _dots(axes: Axes, at: Mapping[str, tuple[float, float]]) -> None:
    for name, (x, y) in at.items():
        axes.plot([x], [y], "o", markersize=19, color="white", markeredgecolor=INK, zorder=3)
        axes.text(x, y, name, ha="center", va="center", zorder=4)


FIGURES: Mapping[str, Callable[[], Figure]] = {
    "relay": relay,
    "window": window,
    "lease": lease,
    "witness": witness,
}

if __name__ == "__main__":
    main()
