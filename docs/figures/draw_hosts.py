"""Draw how parts of hosts grow, and which of them binds: `python docs/figures/draw_hosts.py`.

From the numbers of `datacollect/simulation/hosts/tables.py`: those of 2003, and growth a year.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from datacollect.simulation.hosts.tables import GROWTH, MACHINES, MEBI, UDP

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLDER = Path(__file__).parent
BASE_YEAR = 2003
YEARS = np.linspace(1980, 2020, 401)
DIABLO = MACHINES["diablo"]
# Mib/s in 2003, growth a year, colour. The common network card of that year had 1 Gbit/s.
LINES = {
    "network, 1 Gbit/s in 2003": (1e9 / MEBI, GROWTH["network"], "#0072b2"),
    "processor, packets of 1472 B": (
        DIABLO.limit_mibit_per_s(UDP),
        GROWTH["processor"],
        "#d55e00",
    ),
    "memory, two copies": (4.0 * DIABLO.copy_mib_per_s, GROWTH["memory bandwidth"], "#009e73"),
}
# What the paper says: until when each binds.
PAPER = ((1980, 1995, 0), (1995, 2007, 1), (2007, 2020, 2))


def main() -> None:
    """Write the figure beside this file."""
    # The same bytes at every run: no random ids, no date.
    mpl.rcParams.update({"svg.hashsalt": "datacollect", "svg.fonttype": "none"})
    figure = Figure(figsize=(7.5, 5.2), layout="constrained")
    rates, strips = figure.subplots(2, 1, height_ratios=(5, 1), sharex=True)
    draw_rates(rates)
    draw_strips(strips)
    figure.savefig(FOLDER / "host_growth.svg", metadata={"Date": None})


def rate_of(start: float, growth: float) -> np.ndarray:
    """Return a part's rate by year, Mib/s."""
    return start * (1 + growth) ** (YEARS - BASE_YEAR)


def draw_rates(axes: Axes) -> None:
    """Draw each part's rate, and what was measured of it."""
    for name, (start, growth, colour) in LINES.items():
        label = f"{name} (+{growth:.0%} a year)"
        axes.plot(YEARS, rate_of(start, growth), "--", color=colour, label=label)
    for machine in MACHINES.values():
        values = (machine.limit_mibit_per_s(UDP), 4.0 * machine.copy_mib_per_s)
        for value, (_, _, colour) in zip(values, list(LINES.values())[1:], strict=True):
            axes.plot(machine.year, value, "o", color=colour, markersize=5)
        axes.plot(machine.year, machine.measured[UDP], "kx", markersize=6)
    axes.plot([], [], "ko", markersize=5, label="each alone, measured")
    axes.plot([], [], "kx", markersize=6, label="UDP, measured")
    axes.set_yscale("log")
    axes.set_ylim(1e-2, 1e8)
    axes.set_ylabel("Mb/s (2^20 bits)")
    axes.legend(loc="upper left", frameon=False, fontsize=9)
    title = "Extrapolated from 2003 by constant growth: dashed lines were not measured"
    axes.set_title(title, fontsize=10)


def draw_strips(axes: Axes) -> None:
    """Draw which part binds, as the paper says and by the lines above."""
    colours = [colour for _, _, colour in LINES.values()]
    names = ("network", "processor", "memory")
    least = np.argmin([rate_of(start, growth) for start, growth, _ in LINES.values()], axis=0)
    changes = [0, *(np.flatnonzero(np.diff(least)) + 1), len(YEARS) - 1]
    ours = [(YEARS[begin], YEARS[end], int(least[begin])) for begin, end in pairwise(changes)]
    for row, spans in enumerate((PAPER, ours)):
        for begin, end, part in spans:
            axes.barh(row, end - begin, left=begin, height=0.8, color=colours[part])
            axes.text(
                *((begin + end) / 2, row, names[part]),
                ha="center",
                va="center",
                color="white",
                fontsize=9,
            )
    axes.set_yticks((0, 1), ("binds: paper", "these lines"))
    axes.invert_yaxis()
    axes.set_xlim(1980, 2020)


if __name__ == "__main__":
    main()
