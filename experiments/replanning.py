"""Changes that replanning makes, and its time, next to planning from scratch.

    python experiments/replanning.py [--hosts 100 300 1000] [--repeats 5] [-o FILE.csv]
    python experiments/replanning.py --table

The problems of planning_speed.py. At half the plan's makespan the data lie where the plan says; all
bandwidths change at random, each by up to a part, up or down. Times are process times from objects
in memory (problem, plan, progress) to the schedule, medians of the repetitions; ratios are medians
of one over the other within a repetition, so that a busy machine slows both. The first plan gets a
problem of which nothing is remembered; later ones get that problem with new bandwidths, of which
what the first plan found out about hosts and links is still known.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from shown_tables import show
from synthetic_problems import (
    forecast_mesh,
    limited_mesh,
    mesh_problem,
    shared_at_random,
    shared_by_regions,
)
from timed_calls import timed

import datacollect as dc
from datacollect.methods.replanning.replan import old_use

if TYPE_CHECKING:
    from collections.abc import Callable

RESULTS = Path(__file__).resolve().parent / "results/replanning.csv"
PARTS = (0.01, 0.05, 0.1)
SEED = 1


@dataclass(frozen=True)
class Case:
    """A kind of problem and its sizes; ``slots`` is how many the lower bound takes, 0 for none."""

    what: str
    make: Callable[[int], dc.Problem]
    hosts: tuple[int, ...]
    slots: int = 0


CASES = (
    Case("full mesh, host limits", limited_mesh, (100, 300, 1000)),
    Case("10 regions share ways to the destination", shared_by_regions, (100, 300, 1000)),
    Case("10 bottlenecks shared at random", shared_at_random, (100, 300, 1000)),
    Case("10 periods, storage limits", forecast_mesh, (100, 300)),
    Case("full mesh, 100 slots", mesh_problem, (100, 300), slots=100),
    Case("full mesh, 20 slots", mesh_problem, (1000,), slots=20),
    Case("full mesh, host limits, 100 slots", limited_mesh, (100,), slots=100),
    Case("10 periods, storage limits, 100 slots", forecast_mesh, (100,), slots=100),
    Case("10 regions, 100 slots", shared_by_regions, (30,), slots=100),
    Case("full mesh", mesh_problem, (100, 300, 1000, 3000)),
)


def row(case: Case, n_hosts: int, part: float, repeats: int) -> dict[str, object]:
    """Plan, let half of the time pass, change bandwidths, plan again in both ways."""
    problem = case.make(n_hosts)
    slot_s = dc.lower_bound(problem)[0] / case.slots if case.slots else None
    plan = dc.coordinated(problem, slot_s=slot_s, settle_ties=False)
    half_s = plan.makespan_s / 2
    at_s = half_s if slot_s is None else slot_s * round(half_s / slot_s)
    progress = dc.Progress.from_schedule(problem, plan, at_s)
    factor = np.random.default_rng(SEED).uniform(1 - part, 1 + part, problem.n_links)
    bandwidth = problem.bandwidth_bytes_per_s * factor
    remaining = dc.remaining_problem(problem.replace(bandwidth_bytes_per_s=bandwidth), progress)
    times = []
    scratch = anew = plan
    for _ in range(repeats):
        first_s, _ = timed(
            lambda new: dc.coordinated(new, slot_s=slot_s, settle_ties=False),
            dataclasses.replace(problem),
        )
        scratch_s, scratch = timed(
            lambda now: dc.coordinated(
                dc.remaining_problem(now, progress), slot_s=slot_s, settle_ties=False
            ),
            problem.replace(bandwidth_bytes_per_s=bandwidth),
        )
        replan_s, anew = timed(
            lambda now: dc.replan(now, plan, progress),
            problem.replace(bandwidth_bytes_per_s=bandwidth),
        )
        times.append((first_s, scratch_s, replan_s))
    return {
        "what": case.what,
        "hosts": n_hosts,
        "change": part,
        "first_plan_s": median(t[0] for t in times),
        "replan_s": median(t[2] for t in times),
        "replan_over_first": median(t[2] / t[0] for t in times),
        "replan_over_scratch": median(t[2] / t[1] for t in times),
        "moved_by_scratch": moved(remaining, plan, progress, scratch),
        "moved_by_replan": moved(remaining, plan, progress, anew),
        "makespan_over_bound": anew.makespan_s / anew.lower_bound_s,
        "transfers_over_first": anew.n_transfers / plan.n_transfers,
    }


def moved(
    remaining: dc.Problem, plan: dc.Schedule, progress: dc.Progress, schedule: dc.Schedule
) -> float:
    """What goes over links beyond what the plan would still send there, per byte that remains."""
    before = np.zeros(remaining.n_links)
    old, new = old_use(remaining, plan, progress.at_s), old_use(remaining, schedule, 0.0)
    before[old.links] = old.n_bytes.sum(axis=0)
    more = new.n_bytes.sum(axis=0) - before[new.links]
    return float(np.maximum(more, 0).sum()) / remaining.total_bytes


HEADINGS = (
    *("what", "hosts", "change", "moved, from scratch", "moved, replanned", "makespan / T\\*"),
    *("transfers / first plan", "first plan, ms", "time / first plan", "time / from scratch"),
)


def line(row: dict[str, object]) -> str:
    """Return a row of the table in the docs; what is read from a file is text."""
    number = {key: float(row[key]) for key in row if key not in ("what", "hosts")}
    cells = (
        row["what"],
        row["hosts"],
        f"{number['change']:.0%}",
        f"{number['moved_by_scratch']:.1%}",
        f"{number['moved_by_replan']:.1%}",
        f"{number['makespan_over_bound']:.4f}",
        f"{number['transfers_over_first']:.1f}",
        f"{number['first_plan_s'] * 1e3:.{0 if number['first_plan_s'] >= 0.01 else 1}f}",
        f"{number['replan_over_first']:.2f}",
        f"{number['replan_over_scratch']:.2f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Measure all rows and write them as CSV, and as the table of the docs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--hosts", type=int, nargs="+", help="only these sizes")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="write the table; measure nothing")
    arguments = parser.parse_args()
    if not arguments.table:
        rows = []
        for case in CASES:
            for n_hosts in case.hosts:
                if arguments.hosts and n_hosts not in arguments.hosts:
                    continue
                for part in PARTS:
                    rows.append(row(case, n_hosts, part, arguments.repeats))
                    print(line(rows[-1]), flush=True)
        with arguments.output.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    show("replanning", table(arguments.output))


def table(results: Path) -> str:
    """Return the table of the docs."""
    with results.open(newline="", encoding="utf-8") as file:
        lines = [line(row) for row in csv.DictReader(file)]
    head = (f"| {' | '.join(HEADINGS)} |", f"|---{'|--:' * (len(HEADINGS) - 1)}|")
    return "\n".join((*head, *lines))


if __name__ == "__main__":
    main()
