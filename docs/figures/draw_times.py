"""Draw the figures that explain times: `python docs/figures/draw_times.py`.

Every bar is a transfer of a schedule that is planned here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

import datacollect as dc
from datacollect import Host, Link, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes

    from datacollect import Schedule

FOLDER = Path(__file__).parent
MB = 10**6
INK, FAINT, GROUND = "#222222", "#5A5A5A", "#E8E8E8"
# Okabe and Ito, Color Universal Design, 2002.
COLOUR_OF = {"S1": "#0072B2", "S2": "#E69F00", "K": "#009E73"}
BAR = 0.68  # height of a row's bars together; a row is 1 high
NAMES_AT = -0.75  # where names of slots and pieces stand


def main() -> None:
    """Write all figures beside this file."""
    # The same bytes at every run: no random ids, no date.
    mpl.rcParams.update({"svg.hashsalt": "datacollect", "svg.fonttype": "none", "font.size": 9})
    for name, draw in FIGURES.items():
        draw().savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


def pipelined() -> Figure:
    """Constant bandwidths and a chunk of half a second."""
    problem = Problem.from_hosts(
        [Host("S1", 4 * MB), Host("S2", 15 * MB), Host("K"), Host("D")],
        [
            Link("S1", "D", 1e6),
            Link("S2", "D", 0.5e6),
            Link("S2", "K", 2e6),
            Link("K", "D", 2e6),
        ],
        "D",
    )
    plan = dc.coordinated(problem, chunk_s=0.5)
    plan.check(problem)
    figure, (axes,) = _canvas([2.6])
    row = _transfers(axes, plan, ["S1 → D", "S2 → D", "S2 → K", "K → D"])
    _bound_and_makespan(axes, plan)
    axes.set_ylim(3.8, -0.85)
    _span(axes, 0.0, 0.5, row["S2 → K"] + 0.5, "chunk", beside=True)
    _note(axes, 0.52, row["K → D"] + 0.5, "start 0.5 s")
    _note(axes, 5.92, row["K → D"] + 0.5, "finish 6.5 s: completion time of S2", align="right")
    _note(axes, 5.92, row["S1 → D"] - 0.5, "finish 6 s: completion time of S1", align="right")
    return figure


def periods() -> Figure:
    """A release, a forecast, and pipelines that drain before rates change."""
    problem = Problem.from_hosts(
        [Host("S1", 8 * MB), Host("S2", 7 * MB, release_s=2.0), Host("K"), Host("D")],
        [Link("S1", "D", [1e6, 2e6]), Link("S2", "K", 2e6), Link("K", "D", [2e6, 1.5e6])],
        "D",
        periods_s=[0.0, 4.0],
    )
    plan = dc.coordinated(problem, chunk_s=0.25)
    plan.check(problem)
    figure, (bandwidth, axes) = _canvas([1.1, 2.2])
    _forecast(bandwidth, {"S1 → D": [1, 2], "K → D": [2, 1.5]}, 4.0)
    row = _transfers(axes, plan, ["S1 → D", "S2 → K", "K → D"])
    _bound_and_makespan(axes, plan)
    for start_s in (2.0, 4.0):
        axes.axvspan(start_s - 0.25, start_s, color=GROUND, zorder=0)
        axes.axvline(start_s, color=FAINT, linewidth=0.8)
    for start_s, end_s, name in ((0, 2, "piece 0"), (2, 4, "piece 1"), (4, 6.58, "piece 2")):
        _span(axes, start_s, end_s, NAMES_AT, name)
    _pointer(axes, "release of S2, 2 s", (1.98, row["S2 → K"]), (0.25, row["S2 → K"]))
    _pointer(axes, "guard, 0.25 s", (1.87, row["K → D"]), (0.25, row["K → D"]))
    _span(axes, 2.0, 3.75, row["S2 → K"] + 0.5, "window")
    return figure


def slotted() -> Figure:
    """Slots of a second, with a release, a period and stored data."""
    problem = Problem.from_hosts(
        [
            Host("S1", 4 * MB, release_s=0.4),
            Host("S2", 6 * MB),
            Host("K", 3 * MB, storage_bytes=3 * MB),
            Host("D"),
        ],
        [Link("S1", "D", 1e6), Link("S2", "K", 2e6), Link("K", "D", [1e6, 3e6])],
        "D",
        periods_s=[0.0, 2.5],
    )
    plan = dc.coordinated(problem, slot_s=1.0)
    plan.check(problem)
    figure, (axes, store) = _canvas([2.4, 1.5])
    row = _transfers(axes, plan, ["S1 → D", "S2 → K", "K → D"])
    _bound_and_makespan(axes, plan)
    for boundary in range(6):
        for panel in (axes, store):
            panel.axvline(boundary, color=GROUND, linewidth=1.0, zorder=0)
    for slot in range(5):
        _span(axes, slot, slot + 1, NAMES_AT, f"slot {slot}")
    _pointer(axes, "release, 0.4 s", (0.4, row["S1 → D"] + 0.3), (0.1, row["S1 → D"] - 0.2))
    axes.axvline(2.5, ymax=0.85, color=FAINT, linewidth=1.0, linestyle=":")
    _note(axes, 2.55, row["K → D"] + 0.5, "period 1 begins")
    _stored(store, plan)
    return figure


def _canvas(heights: Sequence[float]) -> tuple[Figure, Sequence[Axes]]:
    """Return panels above each other that share the axis of time."""
    figure = Figure(figsize=(7.0, sum(heights) + 0.5), facecolor="white", layout="constrained")
    grid = figure.subplots(len(heights), 1, squeeze=False, sharex=True, height_ratios=heights)
    panels: list[Axes] = grid[:, 0].tolist()
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("time (s)")
    return figure, panels


def _transfers(axes: Axes, plan: Schedule, links: Sequence[str]) -> dict[str, float]:
    """Draw transfers in a row per link, as high as their share of the link's highest use."""
    row = {link: float(i) for i, link in enumerate(links)}
    use = plan.link_use()
    most = use.groupby(use["from"] + " → " + use["to"])["bytes_per_s"].max()
    table = plan.transfers.sort_values(["finish_s", "source"])
    floor: dict[tuple[str, float], float] = {}
    for each in table.to_dict("records"):
        link = f"{each['from']} → {each['to']}"
        length_s = each["finish_s"] - each["start_s"]
        height = BAR * each["bytes"] / length_s / float(most[link])
        # Transfers at the same time on one link stand on each other.
        below = floor.get((link, each["finish_s"]), 0.0)
        floor[link, each["finish_s"]] = below + height
        y = row[link] + BAR / 2 - below - height / 2
        colour = COLOUR_OF[each["source"]]
        axes.barh(y, length_s, height, each["start_s"], color=colour, edgecolor="white")
        axes.text(
            each["start_s"] + length_s / 2,
            y,
            f"{each['source']}, {each['bytes'] / MB:.3g} MB",
            ha="center",
            va="center_baseline",
            color=INK if each["source"] == "S2" else "white",
            size=7.5 if height > 0.2 else 6.5,
        )
    axes.set_yticks(list(row.values()), list(row))
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(links) - 0.25, -1.05)
    axes.set_xlim(0, plan.makespan_s * 1.16)
    return row


def _bound_and_makespan(axes: Axes, plan: Schedule) -> None:
    for time_s, name, line, align in (
        (plan.lower_bound_s, "lower bound", "--", "right"),
        (plan.makespan_s, "makespan", "-", "left"),
    ):
        axes.axvline(time_s, color=INK, linewidth=1.0, linestyle=line)
        axes.text(
            time_s,
            1.03,
            f"{name} {time_s:.3g} s",
            ha=align,
            size=8,
            transform=axes.get_xaxis_transform(),
        )


def _forecast(axes: Axes, rates: Mapping[str, Sequence[float]], change_s: float) -> None:
    for (link, (before, after)), style in zip(rates.items(), ("-", "--"), strict=True):
        times = [0, change_s, change_s, 2 * change_s]
        axes.plot(times, [before, before, after, after], style, color=INK, label=link)
    axes.set(ylim=(0, 2.7), yticks=[0, 1, 2], ylabel="MB/s")
    axes.legend(loc="lower left", ncols=2, frameon=False, borderpad=0)
    _span(axes, 0.0, change_s, 2.45, "period 0")
    _span(axes, change_s, 7.6, 2.45, "period 1")


def _stored(axes: Axes, plan: Schedule) -> None:
    """Draw what lies at K: others' data, its own, and its limit."""
    table = plan.storage().query("host == 'K'")
    axes.plot(table["time_s"], table["stored_bytes"] / MB, "o-", color=COLOUR_OF["S2"], ms=4)
    leaving = plan.transfers.query("source == 'K'").sort_values("start_s")
    times, left = [0.0], [float(leaving["bytes"].sum()) / MB]
    for each in leaving.to_dict("records"):
        times += [each["start_s"], each["finish_s"]]
        left += [left[-1], left[-1] - each["bytes"] / MB]
    axes.plot(times, left, "--", color=COLOUR_OF["K"], linewidth=1.2)
    axes.axhline(3.0, color=INK, linewidth=0.8)
    axes.set(ylim=(0, 3.6), yticks=range(4), ylabel="MB at K")
    _note(axes, 4.95, 3.25, "storage_bytes of K", align="right")
    _note(axes, 0.1, 1.5, "others’ data: count", colour="#8A5F00")
    _note(axes, 0.8, 2.5, "K’s own data: do not count", colour="#00694D")


def _span(
    axes: Axes, start_s: float, end_s: float, y: float, text: str, *, beside: bool = False
) -> None:
    """Draw a dimension line with its name on or beside it."""
    arrow = {"arrowstyle": "<->", "color": INK, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (end_s, y), (start_s, y), arrowprops=arrow)
    x, align = (end_s + 0.08, "left") if beside else ((start_s + end_s) / 2, "center")
    box = {"facecolor": "white", "linewidth": 0, "pad": 1}
    axes.text(x, y, text, ha=align, va="center", size=8, bbox=box)


def _pointer(axes: Axes, text: str, to: tuple[float, float], at: tuple[float, float]) -> None:
    """Write at one place and point to another."""
    arrow = {"arrowstyle": "->", "color": FAINT, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
    axes.annotate(text, to, at, arrowprops=arrow, size=8, color=FAINT, va="center")


def _note(
    axes: Axes, x: float, y: float, text: str, *, align: str = "left", colour: str = FAINT
) -> None:
    axes.text(x, y, text, ha=align, va="center", size=8, color=colour)


FIGURES: Mapping[str, Callable[[], Figure]] = {
    "pipelined": pipelined,
    "periods": periods,
    "slotted": slotted,
}

if __name__ == "__main__":
    main()
