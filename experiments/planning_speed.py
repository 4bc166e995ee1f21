"""How long planning takes, as a ratio to one maximum flow on the same links.

    python experiments/planning_speed.py [--hosts 100 300 1000 3000] [--repeats 5] [-o FILE.csv]

Every row is measured in a process of its own, so that its peak memory is its own, and after a
warm-up, so that imports do not count. Each repetition plans a fresh problem (the fluid optimum is
remembered per problem) and then runs the reference: building and solving one static maximum flow
with OR-Tools, by its bulk calls, on the same links with capacity bandwidth × lower bound. The
ratio is the median over repetitions of one over the other, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import os
import platform
import resource
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, TypeVar

# Heavy modules are imported by the measured processes only: a process starts with the peak
# memory of its parent.
if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    import datacollect as dc

Result = TypeVar("Result")

RESULTS = Path(__file__).resolve().parent / "results/planning_speed.csv"

HOSTS = (100, 300, 1000, 3000)
SEED = 1

# What to expect on two cores of 2023: orientation, nothing asserts it.
TARGETS_S = {100: 0.015, 300: 0.04, 1000: 0.6, 3000: 8.0}


# Problems -----------------------------------------------------------------------------------


def mesh(n_hosts: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Draw a full mesh: lognormal(0, 1) MB/s; a quarter of the hosts hold 1 to 10 GB."""
    import numpy as np

    rng = np.random.default_rng(SEED)
    bandwidth = rng.lognormal(0.0, 1.0, (n_hosts, n_hosts)) * 1e6
    sources = rng.choice(np.arange(1, n_hosts), n_hosts // 4, replace=False)
    backlog = np.zeros(n_hosts, dtype=np.int64)
    backlog[sources] = rng.integers(10**9, 10**10, len(sources))
    return [f"h{i}" for i in range(n_hosts)], bandwidth, backlog


def mesh_problem(n_hosts: int) -> dc.Problem:
    """Build a full mesh; host 0 collects."""
    import datacollect as dc

    return dc.Problem.from_matrix(*mesh(n_hosts), "h0")


def one_big_holder(n_hosts: int) -> dc.Problem:
    """Give one source nine tenths of all data: its own links bind, or nearly so."""
    problem = mesh_problem(n_hosts)
    backlog = problem.backlog_bytes.copy()
    largest = int(backlog.argmax())
    backlog[largest] = 9 * (backlog.sum() - backlog[largest])
    return problem.replace(backlog_bytes=backlog)


def limited_mesh(n_hosts: int) -> dc.Problem:
    """Limit what hosts send and receive to a half of what their links carry, 0.5 to 1.5 times."""
    import numpy as np

    problem = mesh_problem(n_hosts)
    rng = np.random.default_rng(SEED)
    typical = problem.bandwidth_bytes_per_s.mean() * n_hosts / 2
    return problem.replace(
        uplink_bytes_per_s=typical * rng.uniform(0.5, 1.5, n_hosts),
        downlink_bytes_per_s=typical * rng.uniform(0.5, 1.5, n_hosts),
    )


def sparse_overlay(n_hosts: int) -> dc.Problem:
    """Let every host have links to eight others, drawn at random."""
    import numpy as np

    import datacollect as dc

    rng = np.random.default_rng(SEED)
    sources = rng.choice(np.arange(1, n_hosts), n_hosts // 4, replace=False)
    backlog = np.zeros(n_hosts, dtype=np.int64)
    backlog[sources] = rng.integers(10**9, 10**10, len(sources))
    # Offsets around the ring, no two alike: no self links, no link twice.
    offset = np.array([rng.choice(n_hosts - 1, 8, replace=False) + 1 for _ in range(n_hosts)])
    tail = np.repeat(np.arange(n_hosts), 8)
    unlimited = np.full(n_hosts, np.inf)
    return dc.Problem(
        names=tuple(f"h{i}" for i in range(n_hosts)),
        destination="h0",
        backlog_bytes=backlog,
        release_s=np.zeros(n_hosts),
        storage_bytes=unlimited,
        uplink_bytes_per_s=unlimited,
        downlink_bytes_per_s=unlimited,
        link_from=tail.astype(np.int32),
        link_to=((tail + offset.ravel()) % n_hosts).astype(np.int32),
        bandwidth_bytes_per_s=rng.lognormal(0.0, 1.0, (1, len(tail))) * 1e6,
    )


WITHOUT_PYLMCF = "full mesh, host limits, without pylmcf"
SPARSE = "sparse overlay, degree 8"
PROBLEMS = {
    "full mesh": mesh_problem,
    "full mesh, one host holds 90 %": one_big_holder,
    "full mesh, host limits": limited_mesh,
    WITHOUT_PYLMCF: limited_mesh,
    SPARSE: sparse_overlay,
}


# Measurements, each in a process of its own -------------------------------------------------


def timed(call: Callable[..., Result], *arguments, **options) -> tuple[float, Result]:
    """Return the seconds that a call takes, and what it returns."""
    gc.collect()
    began = time.perf_counter()
    result = call(*arguments, **options)
    return time.perf_counter() - began, result


def peak_memory_mb() -> float:
    """Return the most memory that this process has used so far, in 10^6 bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def static_max_flow(problem: dc.Problem, within_s: float) -> None:
    """Build and solve a maximum flow of all data over links of capacity bandwidth × time."""
    import numpy as np
    from ortools.graph.python.max_flow import SimpleMaxFlow

    total = float(problem.total_bytes)
    capacity = np.minimum(problem.bandwidth_bytes_per_s[0] * within_s, total).astype(np.int64)
    sources = np.flatnonzero(problem.backlog_bytes).astype(np.int32)
    solver = SimpleMaxFlow()
    solver.add_arcs_with_capacity(problem.link_from, problem.link_to, capacity)
    solver.add_arcs_with_capacity(
        np.full_like(sources, problem.n_hosts), sources, problem.backlog_bytes[sources]
    )
    assert solver.solve(problem.n_hosts, problem.destination_index) == SimpleMaxFlow.OPTIMAL


def planning(what: str, hosts: int, repeats: int) -> dict[str, object]:
    """Plan, pipelined, beside the static maximum flow."""
    import datacollect as dc

    for build in (mesh_problem, limited_mesh):  # import all that either way of planning needs
        small = build(12)
        static_max_flow(small, dc.coordinated(small).lower_bound_s)
    solver = "ortools" if what == WITHOUT_PYLMCF else "auto"
    problem = PROBLEMS[what](hosts)
    plan, peak_mb, seconds, reference = None, 0.0, [], []
    for _ in range(repeats):
        fresh = problem.replace()
        taken_s, plan = timed(dc.coordinated, fresh, solver=solver)
        seconds.append(taken_s)
        peak_mb = peak_mb or peak_memory_mb()  # before the first reference
        reference.append(timed(static_max_flow, fresh, plan.lower_bound_s)[0])
    target = TARGETS_S.get(hosts) if what == "full mesh" else None
    aims = [] if target is None else [f"{target:g} s"]
    aims += ["ratio <= 5"] if target and hosts >= 300 else []
    aims += ["3 GB"] if target and hosts == 3000 else []
    return {
        "links": problem.n_links,
        "median_ratio": median(a / b for a, b in zip(seconds, reference, strict=True)),
        "median_s": median(seconds),
        "reference": "OR-Tools max-flow",
        "reference_median_s": median(reference),
        "over_lower_bound": plan.makespan_s / plan.lower_bound_s,
        "hops": max(route.n_hops for route in plan.routes),
        "routes": plan.n_routes,
        "peak_memory_mb": peak_mb,
        "target": ", ".join(aims),
    }


def construction(_what: str, hosts: int, repeats: int) -> dict[str, object]:
    """Build a problem from a matrix in memory, beside a copy of the matrix."""
    import datacollect as dc

    names, bandwidth, backlog = mesh(hosts)
    mesh_problem(4)
    problem, peak_mb, seconds, reference = None, 0.0, [], []
    for _ in range(repeats):
        problem = None  # one at a time in memory
        taken_s, problem = timed(dc.Problem.from_matrix, names, bandwidth, backlog, "h0")
        seconds.append(taken_s)
        peak_mb = peak_mb or peak_memory_mb()
        reference.append(timed(bandwidth.copy)[0])
    return {
        "links": problem.n_links,
        "median_ratio": median(a / b for a, b in zip(seconds, reference, strict=True)),
        "median_s": median(seconds),
        "reference": "copy of the matrix",
        "reference_median_s": median(reference),
        "peak_memory_mb": peak_mb,
        "target": "1 s, 500 MB" if hosts == 3000 else "",
    }


def slotted(_what: str, hosts: int, repeats: int) -> dict[str, object]:
    """Plan in about twenty slots, beside networkx on the same time-expanded graph."""
    import networkx as nx

    import datacollect as dc
    from datacollect.timegraph import slot_costs

    problem = mesh_problem(hosts)
    slot_s = dc.lower_bound(problem)[0] / 18
    plan = dc.coordinated(problem, slot_s=slot_s)  # warm-up too
    graph = dc.time_expanded_graph(problem, slot_s, round(plan.makespan_s / slot_s))
    network = graph.to_networkx(problem)
    labels = list(network.nodes)
    for tail, head, cost in zip(graph.tail, graph.head, slot_costs(graph).tolist(), strict=True):
        network.edges[labels[tail], labels[head]]["weight"] = cost
    seconds, reference = [], []
    for _ in range(repeats):
        fresh = problem.replace()
        seconds.append(timed(dc.coordinated, fresh, slot_s=slot_s)[0])
        reference.append(timed(nx.network_simplex, network)[0])
    return {
        "links": graph.n_arcs,
        "median_ratio": median(a / b for a, b in zip(seconds, reference, strict=True)),
        "median_s": median(seconds),
        "reference": "networkx network_simplex",
        "reference_median_s": median(reference),
        "over_lower_bound": plan.makespan_s / plan.lower_bound_s,
        "hops": max(route.n_hops for route in plan.routes),
        "routes": plan.n_routes,
        "peak_memory_mb": peak_memory_mb(),
    }


COMMANDS = {
    "datacollect --help": ("from datacollect.cli import main; main()", "--help"),
    "import datacollect": ("import datacollect",),
    "import datacollect, name coordinated": ("import datacollect; datacollect.coordinated",),
}


def start_up(what: str, _hosts: int, repeats: int) -> dict[str, object]:
    """Start Python with a command, beside Python alone."""

    def run(*command: str) -> float:
        command = (sys.executable, "-c", *command)
        return timed(subprocess.run, command, check=True, stdout=subprocess.DEVNULL)[0]

    run(*COMMANDS[what])
    seconds, reference = [], []
    for _ in range(repeats):
        seconds.append(run(*COMMANDS[what]))
        reference.append(run("pass"))
    return {
        "median_ratio": median(a / b for a, b in zip(seconds, reference, strict=True)),
        "median_s": median(seconds),
        "reference": "python -c pass",
        "reference_median_s": median(reference),
        "target": "0.3 s" if what == "datacollect --help" else "",
    }


# All of them --------------------------------------------------------------------------------


def rows_to_measure(hosts: list[int]) -> list[tuple[str, str, int]]:
    """List what is measured: function, problem, hosts."""
    rows = [("planning", what, n) for what in list(PROBLEMS)[:3] for n in hosts]
    return [
        *rows,
        ("planning", WITHOUT_PYLMCF, min(1000, max(hosts))),
        ("planning", SPARSE, 10_000),
        ("construction", "problem from a matrix", max(hosts)),
        ("slotted", "full mesh, 19 slots", 16),
        *(("start_up", what, 0) for what in COMMANDS),
    ]


def measure(function: str, what: str, hosts: int, repeats: int) -> dict[str, object]:
    """Measure one row in a process of its own."""
    task = json.dumps([function, what, hosts, repeats])
    done = subprocess.run(
        [sys.executable, __file__, "--task", task], check=True, stdout=subprocess.PIPE, text=True
    )
    return {"what": what, "hosts": hosts or "", "repeats": repeats, **json.loads(done.stdout)}


def written(value: object) -> str:
    """Write a cell of the results: three digits are plenty."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def machine() -> str:
    """Describe the machine without naming it."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory_gb:.0f} GB of memory, "
        f"{platform.system()}, load {os.getloadavg()[0]:.1f} at the start"
    )


def versions() -> str:
    """List versions of what was measured."""
    found = [f"Python {platform.python_version()}"]
    for package in ("datacollect", "numpy", "ortools", "pylmcf", "networkx"):
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            found.append(f"{package} not installed")
    return ", ".join(found)


def write(rows: list[dict[str, object]], notes: list[str], path: Path) -> None:
    """Write notes as comments, then the table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {note}\n" for note in notes)
        # The first row, a planned mesh, has all columns.
        writer = csv.DictWriter(file, list(rows[0]), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: written(value) for key, value in row.items()} for row in rows)


def line(row: dict[str, object]) -> str:
    """Write a row of the table as docs/speed.md shows it."""

    def seconds(key: str) -> str:
        value = float(str(row[key]))
        return f"{1000 * value:.3g} ms" if value < 1 else f"{value:.3g} s"

    memory = row.get("peak_memory_mb", "")
    over = row.get("over_lower_bound", "")
    cells = (
        row["what"],
        row["hosts"],
        f"{row['median_ratio']:.2f}",
        seconds("median_s"),
        f"{seconds('reference_median_s')} ({row['reference']})",
        f"{over:.4f}" if over else "",
        f"{memory:.0f} MB" if memory else "",
        row.get("target", ""),
    )
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=list(HOSTS), metavar="N")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        function, what, hosts, repeats = json.loads(arguments.task)
        print(json.dumps(globals()[function](what, hosts, repeats)))
        return
    if min(arguments.hosts) < 8 or arguments.repeats < 1:
        parser.error("--hosts must be at least 8 each, --repeats at least 1")
    notes = [
        f"command: python {shlex.join(sys.argv)}",
        f"date: {datetime.now(UTC).date()}",
        f"machine: {machine()}",
        f"versions: {versions()}",
    ]
    print("\n".join(notes))
    print("\n| what | hosts | ratio | median | reference | × lower bound | peak memory | target |")
    print("|---|--:|--:|--:|--:|--:|--:|---|")
    rows = []
    for task in rows_to_measure(arguments.hosts):
        rows.append(measure(*task, arguments.repeats))
        print(line(rows[-1]), flush=True)
    write(rows, notes, arguments.output)


if __name__ == "__main__":
    main()
