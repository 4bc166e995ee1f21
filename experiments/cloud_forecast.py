"""Collect from cloud regions for a day while bandwidths change, with little room at relays.

    python experiments/cloud_forecast.py DATA_FOLDER

The collections of ``cloud_regions.py``, on the regions that were measured both in January and in
November 2022, with a forecast: 24 periods of an hour in which every link's bandwidth moves
linearly from what it was in January to what it was in November. The last period lasts for ever.
Relays hold at most 50 GB of others' data. Besides the backlogs there, which are collected within
the first hours, a hundred times as much: work for a day.

DATA_FOLDER holds ``skyplane/grid_2022-01.csv`` and ``skyplane/grid_2022-11.csv`` (Skyplane project,
Apache-2.0), which are not part of this repository.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from cloud_grids import (
    ALL,
    AWS,
    COLOURS,
    DESTINATION,
    FIGURES,
    LIMITS,
    REPOSITORY,
    plans_of,
    problem_of,
    read_grid,
    write_rows,
)
from shown_tables import show

import datacollect as dc
from datacollect.files.units import BITS_PER_BYTE, BYTES_PER_GB, format_bytes, format_duration

if TYPE_CHECKING:
    import pandas as pd

RESULTS = REPOSITORY / "experiments/results/cloud_forecast.csv"

N_PERIODS, PERIOD_S = 24, 3600.0
STORAGE_BYTES = 50 * BYTES_PER_GB

# Name of a collection: its backlogs, times a factor.
WORKLOADS = {
    "16 AWS regions, 100 GB each": (AWS, 1),
    "all other regions, 10 GB each": (ALL, 1),
    "16 AWS regions, 10 TB each": (AWS, 100),
    "all other regions, 1 TB each": (ALL, 100),
}
DRAWN = ("16 AWS regions, 10 TB each", "per machine, links at a quarter")

MOST_HOURS_DRAWN = 48.0


@dataclass(frozen=True)
class Row:
    """One method in one case; a row of the results."""

    workload: str
    limits: str
    method: str
    makespan_s: float
    lower_bound_s: float
    over_lower_bound: float
    november_s: float  # the same method's makespan if bandwidth were November's all the time
    n_routes: int
    n_transfers: int
    peak_storage_bytes: int  # at the relay that stores most
    plan_time_s: float
    bottleneck: str


def common_grids(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read January's and November's bandwidth between the regions that both have."""
    january, november = (read_grid(folder / f"skyplane/grid_2022-{m}.csv") for m in ("01", "11"))
    names = [name for name in november.index if name in january.index]
    return january.loc[names, names], november.loc[names, names]


def forecast_problem(
    january: pd.DataFrame, november: pd.DataFrame, workload: str, limits: str
) -> dc.Problem:
    """Build one case."""
    backlogs, factor = WORKLOADS[workload]
    last = problem_of(november, backlogs, limits)
    part = LIMITS[limits][1]
    share = np.linspace(0.0, 1.0, N_PERIODS)[:, np.newaxis, np.newaxis]
    bandwidth = ((1 - share) * january.to_numpy() + share * november.to_numpy()) * part
    return dc.Problem.from_matrix(
        list(november.index),
        bandwidth,
        last.backlog_bytes * factor,
        DESTINATION,
        periods_s=PERIOD_S * np.arange(N_PERIODS),
        storage_bytes=STORAGE_BYTES,
        uplink_bytes_per_s=last.uplink_bytes_per_s,
        downlink_bytes_per_s=last.downlink_bytes_per_s,
    )


def facts(january: pd.DataFrame, november: pd.DataFrame) -> list[str]:
    """Say what the forecast is, in sentences that the docs quote."""
    into = [float(grid[DESTINATION].sum()) * BITS_PER_BYTE / 1e9 for grid in (january, november)]
    both = (january.to_numpy() > 0) & (november.to_numpy() > 0)
    ratio = november.to_numpy()[both] / january.to_numpy()[both]
    moved = f"{int((np.abs(ratio - 1) > 0.2).sum())} of {int(both.sum())} pairs"
    carried = f"carried {into[0]:.0f} Gbit/s together in January and {into[1]:.0f} in November"
    return [
        f"{len(november)} regions were measured in both months.",
        f"The links into {DESTINATION} {carried}.",
        f"{moved} moved by more than 20 % either way.",
    ]


def november_only(problem: dc.Problem) -> dc.Problem:
    """Keep the last period's bandwidths alone."""
    last = problem.bandwidth_bytes_per_s[-1:]
    return problem.replace(periods_s=np.zeros(1), bandwidth_bytes_per_s=last)


def rows_of(
    workload: str, limits: str, problem: dc.Problem
) -> tuple[list[Row], dict[str, dc.Schedule]]:
    """Plan one case; describe the plans."""
    plans = {plan.method: plan for plan in plans_of(problem)}
    constant = {plan.method: plan for plan in plans_of(november_only(problem))}
    rows = [
        Row(
            workload=workload,
            limits=limits,
            method=name,
            makespan_s=plan.makespan_s,
            lower_bound_s=plan.lower_bound_s,
            over_lower_bound=plan.makespan_s / plan.lower_bound_s,
            november_s=constant[name].makespan_s,
            n_routes=plan.n_routes,
            n_transfers=plan.n_transfers,
            peak_storage_bytes=max(plan.peak_storage_bytes.values(), default=0),
            plan_time_s=plan.plan_time_s,
            bottleneck=plan.bottleneck.text,
        )
        for name, plan in plans.items()
    ]
    return rows, plans


def markdown_table(rows: list[Row]) -> str:
    """Write the results as the docs show them."""
    header = (
        "collection, limits",
        "method",
        "makespan",
        "× lower bound",
        "November all day",
        "routes",
        "most stored",
    )
    lines = [f"| {' | '.join(header)} |", "|---|---|--:|--:|--:|--:|--:|"]
    for row in rows:
        cells = (
            f"{row.workload}; {row.limits}" if row.method == "direct" else "",
            row.method,
            format_duration(row.makespan_s),
            f"{row.over_lower_bound:.4g}",
            format_duration(row.november_s),
            str(row.n_routes),
            format_bytes(row.peak_storage_bytes),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def collected(plan: dc.Schedule, time_s: np.ndarray) -> np.ndarray:
    """Return the bytes that have reached the destination by each instant."""
    table = plan.transfers
    last = table[table["to"] == plan.destination]
    start, finish = last["start_s"].to_numpy(), last["finish_s"].to_numpy()
    done = (time_s[:, np.newaxis] - start) / (finish - start)
    return np.clip(done, 0.0, 1.0) @ last["bytes"].to_numpy()


def draw_day(plans: dict[str, dc.Schedule], title: str, path: Path) -> None:
    """Draw what has arrived, and what relays store, over the hours."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    end_s = max(plan.makespan_s for plan in plans.values())
    styles = {"direct": ":", "best-path": "--", "coordinated": "-"}
    for name, plan in plans.items():
        # A transfer's rate is constant within a period, so this misses nothing that can be seen.
        time_s = np.linspace(0.0, plan.makespan_s, 400)
        arrived = collected(plan, time_s) / 1e12
        look = {"color": COLOURS[name], "ls": styles[name]}
        left.plot(time_s / 3600, arrived, label=f"{name}, {plan.makespan_s / 3600:.1f} h", **look)
    left.axvline(plans["coordinated"].lower_bound_s / 3600, color="0.6", lw=0.8)
    left.set(xlabel="hours", ylabel="TB collected", xlim=(0, min(end_s / 3600, MOST_HOURS_DRAWN)))
    left.legend(frameon=False, loc="lower right")
    stored = plans["coordinated"].storage()
    largest = stored.groupby("host")["stored_bytes"].max().nlargest(4)
    for host, line in zip(largest.index, ("-", "--", "-.", ":"), strict=False):
        curve = stored[stored["host"] == host]
        hours, held = curve["time_s"] / 3600, curve["stored_bytes"] / 1e9
        right.plot(hours, held, line, lw=1.2, label=host)
    right.axhline(STORAGE_BYTES / 1e9, color="black", lw=0.8)
    right.text(0, STORAGE_BYTES / 1e9, " limit of each relay", va="bottom", fontsize=8)
    right.set(xlabel="hours", ylabel="GB of others' data, coordinated")
    right.legend(frameon=False, fontsize=8, loc="center right")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data_folder", type=Path, help="holds skyplane/grid_2022-*.csv")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    parser.add_argument("--figures", type=Path, default=FIGURES)
    arguments = parser.parse_args()
    if not (arguments.data_folder / "skyplane/grid_2022-01.csv").is_file():
        parser.error(f"{arguments.data_folder}: holds no skyplane/grid_2022-01.csv")
    january, november = common_grids(arguments.data_folder)
    print("\n".join(facts(january, november)) + "\n")
    rows: list[Row] = []
    for workload in WORKLOADS:
        for limits in LIMITS:
            problem = forecast_problem(january, november, workload, limits)
            found, plans = rows_of(workload, limits, problem)
            rows += found
            coordinated = found[-1]
            print(f"{workload}, {limits}: {coordinated.bottleneck}")
            print(f"  {coordinated.n_transfers} transfers in {coordinated.plan_time_s:.2f} s")
            if (workload, limits) == DRAWN:
                path = arguments.figures / "cloud_forecast.png"
                draw_day(plans, f"{workload}; {limits}", path)
    show("cloud_forecast", markdown_table(rows))
    write_rows(rows, arguments.output)


if __name__ == "__main__":
    main()
