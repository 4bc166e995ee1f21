"""Collect from cloud regions: what relays gain, with and without the machines' own limits.

    python experiments/cloud_regions.py DATA_FOLDER

DATA_FOLDER holds ``skyplane/grid_2022-11.csv``: bandwidth between 71 cloud regions, one machine
each, measured in November 2022 by the Skyplane project (Jain et al., "Skyplane: Optimizing
Transfer Cost and Throughput Using Cloud-Aware Overlays", NSDI 2023; Apache-2.0). The measurements
are not part of this repository. All 71 regions may relay.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from cloud_grids import (
    ALL,
    AWS,
    COLOURS,
    DESTINATION,
    DOWNLINK_GBIT_PER_S,
    FIGURES,
    LIMITS,
    REPOSITORY,
    UPLINK_GBIT_PER_S,
    WORKLOADS,
    per_host,
    plans_of,
    problem_of,
    read_grid,
    write_rows,
)
from shown_tables import show

import datacollect as dc
from datacollect.files.units import BITS_PER_BYTE, format_bytes

if TYPE_CHECKING:
    import pandas as pd

RESULTS = REPOSITORY / "experiments/results/cloud_regions.csv"
# The file of each table in the docs.
TABLES = {AWS: "cloud_regions_aws", ALL: "cloud_regions_all"}


@dataclass(frozen=True)
class Row:
    """One method in one case; a row of the results."""

    workload: str
    limits: str
    method: str
    makespan_s: float
    lower_bound_s: float
    over_lower_bound: float
    n_routes: int
    busiest_relay: str  # the one that forwards for most sources
    sources_there: int
    peak_storage_bytes: int  # at the relay that stores most
    plan_time_s: float
    bottleneck_kind: str
    bottleneck: str


def facts(grid: pd.DataFrame) -> list[str]:
    """Say what was measured, in sentences that the docs quote."""
    names = list(grid.index)
    gbit_per_s = grid.to_numpy() * BITS_PER_BYTE / 1e9
    into = gbit_per_s[:, names.index(DESTINATION)]
    allowed = np.minimum.outer(
        per_host(names, UPLINK_GBIT_PER_S), per_host(names, DOWNLINK_GBIT_PER_S)
    )
    beyond = grid.to_numpy() > allowed
    google = np.array([name.startswith("gcp:") for name in names])
    within_google = int(beyond[np.ix_(google, google)].sum())
    carried = f"carry {into.sum():.0f} Gbit/s together, from {into[into > 0].min():.2f}"
    faster = f"{int(beyond.sum())} pairs were measured faster than the machines' limits allow"
    return [
        f"{len(names)} regions, {int((gbit_per_s > 0).sum())} ordered pairs.",
        f"The {int((into > 0).sum())} links into {DESTINATION} {carried} to {into.max():.2f} each.",
        f"{faster}, {within_google} of them between two regions of Google.",
    ]


def rows_of(workload: str, limits: str, plans: list[dc.Schedule]) -> list[Row]:
    """Describe the plans of one case."""
    return [
        Row(
            workload=workload,
            limits=limits,
            method=plan.method,
            makespan_s=plan.makespan_s,
            lower_bound_s=plan.lower_bound_s,
            over_lower_bound=plan.makespan_s / plan.lower_bound_s,
            n_routes=plan.n_routes,
            busiest_relay=busiest_relay(plan)[0],
            sources_there=busiest_relay(plan)[1],
            peak_storage_bytes=max(plan.peak_storage_bytes.values(), default=0),
            plan_time_s=plan.plan_time_s,
            bottleneck_kind=plan.bottleneck.kind,
            bottleneck=plan.bottleneck.text,
        )
        for plan in plans
    ]


def busiest_relay(plan: dc.Schedule) -> tuple[str, int]:
    """Return the relay that forwards for most sources, and for how many; ("", 0) without."""
    served = {(relay, route.source) for route in plan.routes for relay in route.hosts[1:-1]}
    count = Counter(relay for relay, _ in served)
    return min(count.items(), key=lambda item: (-item[1], item[0]), default=("", 0))


def markdown_table(rows: list[Row], workload: str) -> str:
    """Write the results for one workload as the docs show them: a line per case and method."""
    header = (
        "limits",
        "method",
        "makespan",
        "× lower bound",
        "routes",
        "busiest relay: sources",
        "most stored",
        "planned in",
    )
    lines = [f"| {' | '.join(header)} |", "|---|---|--:|--:|--:|---|--:|--:|"]
    for row in rows:
        cells = (
            row.limits,
            row.method,
            f"{row.makespan_s:.4g} s",
            f"{row.over_lower_bound:.3f}",
            str(row.n_routes),
            f"{row.busiest_relay}: {row.sources_there}" if row.busiest_relay else "–",
            format_bytes(row.peak_storage_bytes),
            f"{1000 * row.plan_time_s:.1f} ms",
        )
        if row.workload == workload:
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


# Pictures -----------------------------------------------------------------------------------


def draw_bars(rows: list[Row], path: Path) -> None:
    """Draw makespans of all cases as bars; a line marks each lower bound."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    for axes, workload in zip(figure.subplots(1, 2, sharey=True), WORKLOADS, strict=True):
        for i, limits in enumerate(LIMITS):
            case = [r for r in rows if (r.workload, r.limits) == (workload, limits)]
            for j, row in enumerate(case):
                y = i + 0.26 * (j - 1)
                label = row.method if i == 0 else None
                axes.barh(y, row.makespan_s, 0.24, color=COLOURS[row.method], label=label)
                axes.text(row.makespan_s, y, f" {row.makespan_s:.4g}", va="center", fontsize=8)
            bound_s = case[0].lower_bound_s
            label = "lower bound" if i == 0 else None
            axes.plot([bound_s] * 2, [i - 0.42, i + 0.42], color="black", lw=1.2, label=label)
        axes.set_title(workload, fontsize=10)
        axes.set_xlabel("makespan, seconds")
        axes.margins(x=0.2)
        axes.spines[["top", "right"]].set_visible(False)
    axes = figure.axes[0]
    axes.set_ylabel("limits")
    axes.set_yticks(range(len(LIMITS)), [name.replace(", ", ",\n") for name in LIMITS])
    axes.invert_yaxis()
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data_folder", type=Path, help="holds skyplane/grid_2022-11.csv")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    parser.add_argument("--figures", type=Path, default=FIGURES)
    arguments = parser.parse_args()
    path = arguments.data_folder / "skyplane/grid_2022-11.csv"
    if not path.is_file():
        parser.error(f"{path}: no such file; DATA_FOLDER must hold Skyplane's measurements")
    arguments.figures.mkdir(parents=True, exist_ok=True)
    grid = read_grid(path)
    print("\n".join(facts(grid)) + "\n")
    plans_of(problem_of(grid, AWS, "per machine"))  # imports are not planning
    rows: list[Row] = []
    for workload in WORKLOADS:
        for limits in LIMITS:
            problem = problem_of(grid, workload, limits)
            plans = plans_of(problem)
            rows += rows_of(workload, limits, plans)
            print(f"{workload}, limits: {limits}: {plans[0].bottleneck.text}")
            if (workload, limits) == (AWS, "per machine, links at a quarter"):
                dc.save_plot(problem, plans[-1], arguments.figures / "cloud_schedule.png")
    for workload in WORKLOADS:
        show(TABLES[workload], markdown_table(rows, workload))
    write_rows(rows, arguments.output)
    draw_bars(rows, arguments.figures / "cloud_makespans.png")


if __name__ == "__main__":
    main()
