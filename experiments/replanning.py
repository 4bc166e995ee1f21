"""How much planning anew changes, and how long it takes, next to planning from scratch.

    python experiments/replanning.py [--hosts 100 300 1000] [--repeats 5] [-o FILE.csv]

Full meshes with and without host limits, as in planning_speed.py. At half the plan's makespan the
data lie where the plan says; all bandwidths change at random, each by up to a part, up or down.
Times are process times from objects in memory (problem, plan, progress) to the schedule, medians
of the repetitions; ratios are medians of one over the other within a repetition, so that a busy
machine slows both. Every call gets a problem of which nothing is remembered yet.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from planning_speed import limited_mesh, mesh_problem

import datacollect as dc
from datacollect.replanning import old_use

if TYPE_CHECKING:
    from collections.abc import Callable

RESULTS = Path(__file__).resolve().parent / "results/replanning.csv"
KINDS = {"full mesh, host limits": limited_mesh, "full mesh": mesh_problem}
PARTS = (0.01, 0.05, 0.1)
SEED = 1


def row(what: str, n_hosts: int, part: float, repeats: int) -> dict[str, object]:
    """Plan, let half of the time pass, change bandwidths, plan anew in both ways."""
    problem = KINDS[what](n_hosts)
    plan = dc.coordinated(problem)
    progress = dc.Progress.from_schedule(problem, plan, plan.makespan_s / 2)
    factor = np.random.default_rng(SEED).uniform(1 - part, 1 + part, problem.n_links)
    bandwidth = problem.bandwidth_bytes_per_s * factor
    changed = problem.replace(bandwidth_bytes_per_s=bandwidth)
    remaining = dc.remaining_problem(changed, progress)
    times = []
    scratch = anew = plan
    for _ in range(repeats):
        first_s, _ = timed(dc.coordinated, problem, problem.bandwidth_bytes_per_s)
        scratch_s, scratch = timed(
            lambda now: dc.coordinated(dc.remaining_problem(now, progress)), problem, bandwidth
        )
        replan_s, anew = timed(lambda now: dc.replan(now, plan, progress), problem, bandwidth)
        times.append((first_s, scratch_s, replan_s))
    return {
        "what": what,
        "hosts": n_hosts,
        "change": part,
        "first_plan_s": median(t[0] for t in times),
        "replan_over_first": median(t[2] / t[0] for t in times),
        "replan_over_scratch": median(t[2] / t[1] for t in times),
        "moved_by_scratch": moved(remaining, plan, progress, scratch),
        "moved_by_replan": moved(remaining, plan, progress, anew),
        "makespan_over_bound": anew.makespan_s / anew.lower_bound_s,
        "transfers_over_first": anew.n_transfers / plan.n_transfers,
    }


def timed(
    work: Callable[[dc.Problem], dc.Schedule], problem: dc.Problem, bandwidth: np.ndarray
) -> tuple[float, dc.Schedule]:
    """Plan once for these bandwidths; return process time and result."""
    fresh = problem.replace(bandwidth_bytes_per_s=bandwidth)
    began = time.process_time()
    result = work(fresh)
    return time.process_time() - began, result


def moved(
    remaining: dc.Problem, plan: dc.Schedule, progress: dc.Progress, schedule: dc.Schedule
) -> float:
    """What goes over links beyond what the plan would still send there, per byte that remains."""
    before = np.zeros(remaining.n_links)
    old, new = old_use(remaining, plan, progress.at_s), old_use(remaining, schedule, 0.0)
    before[old.links] = old.n_bytes.sum(axis=0)
    more = new.n_bytes.sum(axis=0) - before[new.links]
    return float(np.maximum(more, 0).sum()) / remaining.total_bytes


def main() -> None:
    """Measure all rows, print them as a table for the docs, write them as CSV."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows = []
    headings = (
        *("what", "hosts", "change", "moved, from scratch", "moved, anew", "makespan / T\\*"),
        *("transfers / first plan", "time / first plan", "time / from scratch"),
    )
    print(f"| {' | '.join(headings)} |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for what in KINDS:
        for n_hosts in arguments.hosts:
            for part in PARTS:
                found = row(what, n_hosts, part, arguments.repeats)
                rows.append(found)
                print(
                    f"| {what} | {n_hosts} | {part:.0%} | {found['moved_by_scratch']:.1%} "
                    f"| {found['moved_by_replan']:.1%} | {found['makespan_over_bound']:.4f} "
                    f"| {found['transfers_over_first']:.1f} "
                    f"| {found['replan_over_first']:.2f} | {found['replan_over_scratch']:.2f} |",
                    flush=True,
                )
    with arguments.output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
