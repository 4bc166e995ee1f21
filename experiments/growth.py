"""Growth of planning time with hosts, links, slots and periods.

    python experiments/growth.py [--repeats 3] [-o FILE.csv] [--figure FILE.png]
    python experiments/growth.py --table

Each point is measured in a process of its own after a warm-up: the median of repetitions, in
seconds of processor time, each on a fresh problem. The exponents are those of straight lines in
logarithms, by least squares through each series' largest points. --table writes the table of
docs/speed.md and draws the figure from the results and measures nothing.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import timed_calls
from shown_tables import show
from synthetic_problems import forecast_mesh, limited_mesh, mesh_problem, sparse_overlay
from timed_calls import in_words, timed

import datacollect as dc

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results/growth.csv"
FIGURE = HERE.parent / "docs/figures/growth.png"

COLUMNS = ("series", "size", "hosts", "links", "repeats", "median_s", "peak_memory_mb")

# Small sizes show what every call costs; growth is read from this many of the largest.
N_FITTED = 3

SLOTTED_HOSTS = 100
FORECAST_HOSTS = 100
LINKS_PER_HOST = 8


class Series(NamedTuple):
    """Series of problems that grow, and how they are drawn.

    ``prepare`` takes the size and returns a problem and the options to plan it with.
    """

    what: str
    prepare: Callable[[int], tuple[dc.Problem, dict[str, float]]]
    sizes: tuple[int, ...]
    marker: str
    line: str
    colour: str


def hosts(size: int) -> tuple[dc.Problem, dict[str, float]]:
    return limited_mesh(size), {}


def links(size: int) -> tuple[dc.Problem, dict[str, float]]:
    return sparse_overlay(size // LINKS_PER_HOST), {}


def slots(size: int) -> tuple[dc.Problem, dict[str, float]]:
    problem = mesh_problem(SLOTTED_HOSTS)
    return problem, {"slot_s": dc.lower_bound(problem)[0] / size}


def periods(size: int) -> tuple[dc.Problem, dict[str, float]]:
    return forecast_mesh(FORECAST_HOSTS, size), {}


# Colours of Okabe and Ito, Color Universal Design, 2002; markers tell series apart without.
SERIES = {
    "hosts": Series(
        "full mesh with host limits", hosts, (30, 100, 300, 1000, 3000), "o", "-", "#0072B2"
    ),
    "links": Series(
        "sparse overlay of degree 8",
        links,
        (800, 2400, 8000, 24_000, 80_000, 240_000),
        "s",
        "--",
        "#D55E00",
    ),
    "slots": Series(
        f"{SLOTTED_HOSTS} hosts, full mesh",
        slots,
        (10, 30, 100, 300, 1000),
        "^",
        "-.",
        "#009E73",
    ),
    "periods": Series(
        f"{FORECAST_HOSTS} hosts, full mesh, storage limits",
        periods,
        (1, 3, 10, 30, 100),
        "D",
        ":",
        "black",
    ),
}


def point(name: str, size: int, repeats: int) -> dict[str, object]:
    """Measure one point."""
    series = SERIES[name]
    warm_up, options = series.prepare(series.sizes[0])
    dc.coordinated(warm_up, **options)
    problem, options = series.prepare(size)
    seconds = [
        timed(lambda: dc.coordinated(problem.replace(), **options))[0] for _ in range(repeats)
    ]
    return {
        "hosts": problem.n_hosts,
        "links": problem.n_links,
        "median_s": median(seconds),
        "peak_memory_mb": timed_calls.peak_memory_mb(),
    }


def exponent(sizes: np.ndarray, seconds: np.ndarray) -> tuple[float, float]:
    """Fit ``seconds = factor * size**exponent`` to the largest sizes; return exponent and factor.

    >>> exponent(np.array([1.0, 10.0, 100.0, 1000.0]), np.array([5.0, 2.0, 200.0, 20000.0]))
    (2.0, 0.02)
    """
    slope, intercept = np.polyfit(np.log(sizes[-N_FITTED:]), np.log(seconds[-N_FITTED:]), 1)
    return round(float(slope), 10), round(float(np.exp(intercept)), 10)


def curves(rows: list[dict[str, str]]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return sizes and seconds of each series."""
    points = {}
    for name in SERIES:
        own = [row for row in rows if row["series"] == name]
        points[name] = tuple(
            np.array([float(row[key]) for row in own]) for key in ("size", "median_s")
        )
    return points


def table(rows: list[dict[str, str]]) -> str:
    """Lay out the table."""
    cells = []
    for name, (sizes, seconds) in curves(rows).items():
        low, high = sizes[-N_FITTED], sizes[-1]
        memory = max(float(row["peak_memory_mb"]) for row in rows if row["series"] == name)
        cells.append(
            (
                name,
                SERIES[name].what,
                f"{exponent(sizes, seconds)[0]:.2f}",
                f"{low:.0f} … {high:.0f}",
                f"{in_words(seconds[-N_FITTED])} … {in_words(seconds[-1])}",
                f"{memory:.0f} MB",
            )
        )
    header = "number of", "in", "exponent", "from … to", "median", "peak memory"
    return timed_calls.markdown(header, cells, n_left=2)


def draw(rows: list[dict[str, str]], path: Path) -> None:
    """Draw all series in logarithms, with the fitted lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 5.4), layout="constrained")
    axes = figure.subplots()
    for name, (sizes, seconds) in curves(rows).items():
        series = SERIES[name]
        slope, factor = exponent(sizes, seconds)
        label = f"{name}$^{{\\,{slope:.2f}}}$  ({series.what})"
        look = {"color": series.colour, "marker": series.marker, "mfc": "white", "ms": 6}
        axes.plot(sizes, seconds, ls="", zorder=3, **look)
        fitted = sizes[-N_FITTED:]
        axes.plot(fitted, factor * fitted**slope, series.line, color=series.colour, lw=1.4)
        axes.plot([], [], ls=series.line, lw=1.4, label=label, **look)
    axes.set(xscale="log", yscale="log", xlabel="number of periods, slots, hosts or links")
    axes.set_ylabel("time to plan, seconds")
    axes.grid(color="0.9", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize=9,
        handlelength=3.5,
        title="seconds grow with",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="write and draw; measure nothing")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, help="the results, CSV")
    parser.add_argument("--figure", type=Path, default=FIGURE)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        print(json.dumps(point(*json.loads(arguments.task))))
        return
    if arguments.repeats < 1:
        parser.error(f"--repeats must be >= 1, got {arguments.repeats}")
    if not arguments.table:
        notes, rows = timed_calls.notes(), []
        for name, series in SERIES.items():
            for size in series.sizes:
                row = {"series": name, "size": size, "repeats": arguments.repeats}
                task = [name, size, arguments.repeats]
                rows.append(row | timed_calls.in_own_process(__file__, task))
                print(name, size, in_words(rows[-1]["median_s"]), flush=True)
        timed_calls.write(notes, COLUMNS, rows, arguments.output)
    notes, rows = timed_calls.read(arguments.output)
    draw(rows, arguments.figure)
    show("growth_notes", timed_calls.block(notes))
    show("growth", table(rows))


if __name__ == "__main__":
    main()
