"""Time to plan, beside public solvers on the same networks.

    python experiments/planning_speed.py [--repeats 5] [-o FILE.csv]
    python experiments/planning_speed.py --table

Every row is measured in a process of its own, so that its peak memory is its own, and after a
warm-up, so that imports do not count. Each repetition plans a fresh problem (the fluid optimum is
remembered per problem) and then runs the reference; seconds are processor time, and the ratio is
the median of planning over the median of the reference. The reference is told the optimum, or
finds it: either way its answer is compared with the plan's. --table writes the tables of
docs/speed.md, docs/tables/speed_*.md, from the results and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from math import isclose
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import reference_solvers
import timed_calls
from shown_tables import show
from slotted_references import SLOTTED_REFERENCES, slots_of
from speed_tables import tables
from synthetic_problems import (
    forecast_mesh,
    geometric_overlay,
    limited_mesh,
    mesh,
    mesh_problem,
    one_big_holder,
    shared_at_random,
    shared_by_regions,
    sparse_overlay,
)
from timed_calls import in_words, timed

import datacollect as dc
from datacollect.flow.network.preference import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable

RESULTS = Path(__file__).resolve().parent / "results/planning_speed.csv"

PROBLEMS = {
    "full mesh": mesh_problem,
    "full mesh, one host holds 90 %": one_big_holder,
    "full mesh, host limits": limited_mesh,
    "full mesh, host limits, without pylmcf": limited_mesh,
    "10 regions share ways to the destination": shared_by_regions,
    "10 bottlenecks shared at random": shared_at_random,
    "sparse overlay, degree 8": sparse_overlay,
    "geometric overlay, interior cuts": geometric_overlay,
    "10 periods, storage limits": forecast_mesh,
}
MESH, HOLDER, LIMITS, WITHOUT_PYLMCF, REGIONS, RANDOM, SPARSE, GEOMETRIC, FORECAST = PROBLEMS

# Enough hosts for every kind of problem, and few enough to plan in no time.
WARM_UP_HOSTS = 40

COMMANDS = {
    "datacollect --help": ("from datacollect.commands.main import main; main()", "--help"),
    "import datacollect": ("import datacollect",),
    "import datacollect, name coordinated": ("import datacollect; datacollect.coordinated",),
}

COLUMNS = (
    "section",
    "what",
    "hosts",
    "slots",
    "arcs",
    "repeats",
    "ratio",
    "median_s",
    "reference",
    "reference_median_s",
    "reference_repeats",
    "reference_stopped",
    "over_lower_bound",
    "hops",
    "routes",
    "peak_memory_mb",
    "target",
)


class Task(NamedTuple):
    """A row of the results: what to measure, beside which reference.

    ``slots`` is how many the lower bound takes, ``prefer`` a slotted plan's preference; targets are
    for two cores of 2023, and nothing asserts them.
    """

    measurement: str
    what: str
    hosts: int = 0
    reference: str = ""
    slots: int = 0
    repeats: int = 1
    reference_repeats: int = 1
    target: str = ""
    prefer: str = DEFAULT


def tasks(repeats: int) -> list[Task]:
    """List all rows."""

    def task(*arguments, **options) -> Task:
        return Task(*arguments, **{"repeats": repeats, "reference_repeats": repeats} | options)

    mesh_targets = {
        100: "15 ms",
        300: "40 ms, ratio <= 5",
        1000: "0.6 s, ratio <= 5",
        3000: "8 s, ratio <= 5, 3 GB",
    }
    shared_targets = {100: "30 ms", 300: "0.15 s", 1000: "1.5 s, 10 times"}
    rows = [task("planning", MESH, n, target=target) for n, target in mesh_targets.items()]
    rows += [task("planning", what, n) for what in (HOLDER, LIMITS) for n in mesh_targets]
    rows += [
        task("planning", WITHOUT_PYLMCF, 1000),
        task("planning", SPARSE, 10_000),
        task("planning", GEOMETRIC, 100),
        task("planning", GEOMETRIC, 1000),
        task("planning", GEOMETRIC, 10_000, target="4 s"),
        task("bound", FORECAST, 300),
        task("planning", FORECAST, 300, target="0.5 s"),
    ]
    rows += [
        task("shared", what, n, solver, reference_repeats=1 if n > 100 else repeats, target=target)
        for what in (REGIONS, RANDOM)
        for n, target in shared_targets.items()
        for solver in ("GLOP", "HiGHS")
    ]
    one_reference, once = {"reference_repeats": 1}, {"repeats": 1, "reference_repeats": 1}
    alone = {"repeats": 1, "reference_repeats": 0}
    rows += [
        task("slotted", MESH, 16, "networkx", 18),
        task("slotted", MESH, 100, "OR-Tools", 100, target="0.15 s", **one_reference),
        task("slotted", MESH, 100, "textbook", 100, target="30 times", **one_reference),
        task("slotted", MESH, 100, "OR-Tools", 100, prefer="earliest-arrival", **one_reference),
        task("slotted", MESH, 100, "textbook", 100, prefer="earliest-arrival", **one_reference),
        task("slotted", MESH, 300, "max-flow", 100, target="1.5 s", **one_reference),
        task("slotted", MESH, 1000, "max-flow", 20, target="0.8 s", **one_reference),
        task("slotted", SPARSE, 100, "OR-Tools", 500, **once),
        task("slotted", GEOMETRIC, 100, "OR-Tools", 500, **once),
        task("slotted", MESH, 300, "none", 500, target="60 s, 1 GB", **alone),
    ]
    rows += [
        task("construction", "problem from a matrix", 3000, target="1 s, 500 MB"),
        task("start_up", "datacollect --help", target="0.3 s"),
        *(task("start_up", what) for what in list(COMMANDS)[1:]),
    ]
    return rows


# Measurements -----------------------------------------------------------------------------------


def beside(
    task: Task,
    plan: Callable[[], object],
    prepare: Callable[[object], Callable[[], object]],
) -> tuple[object, dict[str, object]]:
    """Measure both in turn; `prepare` is given the plan and returns what to compare with.

    A reference that returns None was stopped before it was done.
    """
    seconds, others, stopped = [], [], False
    result, reference, peak_mb = None, None, 0.0
    for repetition in range(task.repeats):
        taken_s, result = timed(plan)
        seconds.append(taken_s)
        peak_mb = peak_mb or timed_calls.peak_memory_mb()  # before the first reference
        if repetition < task.reference_repeats:
            reference = reference or prepare(result)
            taken_s, answer = timed(reference)
            others.append(taken_s)
            stopped |= answer is None
    row = {"median_s": median(seconds), "peak_memory_mb": peak_mb}
    if others:
        row["reference_median_s"] = median(others)
        row["ratio"] = row["median_s"] / row["reference_median_s"]
        row["reference_stopped"] = "yes" if stopped else ""
    return result, row


def shape(plan: dc.Schedule) -> dict[str, object]:
    """Describe a plan."""
    return {
        "over_lower_bound": plan.makespan_s / plan.lower_bound_s,
        "hops": max(route.n_hops for route in plan.routes),
        "routes": plan.n_routes,
    }


def planning(task: Task) -> dict[str, object]:
    """Plan, pipelined, beside one maximum flow of all data within the lower bound."""
    solver = "ortools" if task.what == WITHOUT_PYLMCF else "auto"
    small = PROBLEMS[task.what](WARM_UP_HOSTS)
    one_max_flow(small, dc.coordinated(small, solver=solver).lower_bound_s)()
    problem = PROBLEMS[task.what](task.hosts)
    plan, row = beside(
        task,
        lambda: dc.coordinated(problem.replace(), solver=solver),
        lambda plan: one_max_flow(problem, plan.lower_bound_s),
    )
    return {"arcs": problem.n_links, "reference": "OR-Tools max-flow"} | row | shape(plan)


def bound(task: Task) -> dict[str, object]:
    """Find the lower bound alone, beside the same maximum flow."""
    small = PROBLEMS[task.what](WARM_UP_HOSTS)
    one_max_flow(small, dc.lower_bound(small)[0])()
    problem = PROBLEMS[task.what](task.hosts)
    _, row = beside(
        task,
        lambda: dc.lower_bound(problem.replace())[0],
        lambda end_s: one_max_flow(problem, end_s),
    )
    what = f"{task.what}, lower bound only"
    return {"what": what, "arcs": problem.n_links, "reference": "OR-Tools max-flow"} | row


def one_max_flow(problem: dc.Problem, end_s: float) -> Callable[[], int]:
    """Prepare a maximum flow on all links in all periods that begin before `end_s`."""
    from datacollect.flow.network.layered import breakpoints_s, layered_network

    starts = breakpoints_s(problem)
    network = layered_network(problem, starts[starts < end_s])
    flow = reference_solvers.MaxFlow.within(network, end_s)

    def solve() -> int:
        arrived = flow.solve()
        assert arrived == problem.total_bytes, (arrived, problem.total_bytes)
        return arrived

    return solve


def shared(task: Task) -> dict[str, object]:
    """Plan with shared bottlenecks, beside one linear program that finds the lower bound."""
    build, name = reference_solvers.ConcurrentFlow.build, f"end_by_{task.reference.lower()}"
    small = PROBLEMS[task.what](WARM_UP_HOSTS)
    dc.coordinated(small)
    problem = PROBLEMS[task.what](task.hosts)

    def prepare(plan: dc.Schedule) -> Callable[[], float | None]:
        getattr(build(small), name)()  # imports do not count
        program = build(problem)

        def solve() -> float | None:
            end_s = getattr(program, name)()
            assert end_s is None or isclose(end_s, plan.lower_bound_s, rel_tol=1e-7)
            return end_s

        return solve

    plan, row = beside(task, lambda: dc.coordinated(problem.replace()), prepare)
    reference = f"{task.reference}, lower bound only"
    return {"arcs": problem.n_links, "reference": reference} | row | shape(plan)


def slotted(task: Task) -> dict[str, object]:
    """Plan in slots, beside a flow on the whole time-expanded graph; the optimum must be equal."""
    small = PROBLEMS[task.what](WARM_UP_HOSTS)
    dc.coordinated(small, slot_s=dc.lower_bound(small)[0] / 4)
    problem = PROBLEMS[task.what](task.hosts)
    slot_s = dc.lower_bound(problem)[0] / task.slots
    reference, prepare = SLOTTED_REFERENCES[task.reference]
    plan, row = beside(
        task,
        lambda: dc.coordinated(problem.replace(), slot_s=slot_s, prefer=task.prefer),
        lambda plan: prepare(problem, plan, task.prefer),
    )
    slots = {"slots": slots_of(plan), "arcs": problem.n_links * slots_of(plan)}
    what = task.what if task.prefer == DEFAULT else f"{task.what}, {task.prefer}"
    return {"what": what, "reference": reference} | slots | row | shape(plan)


def construction(task: Task) -> dict[str, object]:
    """Build a problem from a matrix in memory, beside a copy of the matrix."""
    names, bandwidth, backlog = mesh(task.hosts)
    mesh_problem(4)
    problem, row = beside(
        task,
        lambda: dc.Problem.from_matrix(names, bandwidth, backlog, "h0"),
        lambda _: bandwidth.copy,
    )
    return {"arcs": problem.n_links, "reference": "copy of the matrix"} | row


def start_up(task: Task) -> dict[str, object]:
    """Start Python with a command, beside Python alone."""

    def run(*command: str) -> float:
        command = (sys.executable, "-c", *command)
        before_s = timed_calls.children_s()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return timed_calls.children_s() - before_s

    run(*COMMANDS[task.what])
    seconds, others = [], []
    for _ in range(task.repeats):
        seconds.append(run(*COMMANDS[task.what]))
        others.append(run("pass"))
    return {
        "ratio": median(seconds) / median(others),
        "median_s": median(seconds),
        "reference": "python -c pass",
        "reference_median_s": median(others),
    }


MEASUREMENTS = {
    "planning": planning,
    "bound": bound,
    "shared": shared,
    "slotted": slotted,
    "construction": construction,
    "start_up": start_up,
}


def measure(task: Task) -> dict[str, object]:
    """Measure one row in a process of its own."""
    described = task._asdict() | {"section": task.measurement}
    row = {key: value or "" for key, value in described.items() if key in COLUMNS}
    return row | timed_calls.in_own_process(__file__, task)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--table", action="store_true", help="write tables; measure nothing")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, help="the results, CSV")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        task = Task(*json.loads(arguments.task))
        print(json.dumps(MEASUREMENTS[task.measurement](task)))
        return
    if arguments.repeats < 1:
        parser.error(f"--repeats must be >= 1, got {arguments.repeats}")
    if not arguments.table:
        notes, rows = timed_calls.notes(), []
        for task in tasks(arguments.repeats):
            rows.append(measure(task))
            seconds = in_words(rows[-1]["median_s"])
            print(rows[-1]["what"], task.hosts or "", task.reference, seconds, flush=True)
        timed_calls.write(notes, COLUMNS, rows, arguments.output)
    notes, rows = timed_calls.read(arguments.output)
    for name, text in {"speed_notes": timed_calls.block(notes), **tables(rows)}.items():
        show(name, text)


if __name__ == "__main__":
    main()
