"""Cost of cutting plans at the boundaries of a million files, and their distance from the best.

``python experiments/file_packing.py`` prints a table: a source with a million files of one kind,
and several routes of unequal rates to the destination. Each plan is compared with two bounds that
hold for its own instance: the same plan without files, which no plan with files can beat, and the
number of files that no route can take whole within the tolerance, which have to be split by any
plan. A second table has graphs of as many links as there are files.
"""

from __future__ import annotations

import argparse
from contextlib import suppress

import numpy as np
import timed_calls

import datacollect as dc
from datacollect.methods.finishing.file_cuts import files_split, with_cuts_at_files
from datacollect.problem.manifest import Files

N_FILES = 1_000_000
KINDS = (
    "of 1 MB each",
    "uniform to 10 MB",
    "lognormal, sigma 2",
    "one holds a third",
    "one in two empty",
)


def packed(problem: dc.Problem, whole: dc.Schedule) -> dc.Schedule:
    """Return the first shape of a plan that is valid."""
    for plan in with_cuts_at_files(problem, whole):
        with suppress(dc.ScheduleError):
            plan.check(problem)
            return plan
    raise AssertionError("the plan itself is not valid")


def sizes_of(kind: str, n_files: int, seed: int = 1) -> np.ndarray:
    """Return the sizes of files of one kind, in bytes."""
    rng = np.random.default_rng(seed)
    if kind == "of 1 MB each":
        return np.full(n_files, 1_000_000)
    if kind == "lognormal, sigma 2":
        return rng.lognormal(13, 2, n_files).astype(np.int64) + 1
    sizes = rng.integers(1, 10**7, n_files)
    if kind == "one holds a third":
        sizes[n_files // 2] = int(sizes.sum()) // 2
    if kind == "one in two empty":
        sizes[::2] = 0
    return sizes


def problem_of(sizes: np.ndarray, n_routes: int, seed: int = 1) -> dc.Problem:
    """Return a problem with a direct link and relays, all of different rates; files left out."""
    rates = np.random.default_rng(seed).lognormal(18, 0.7, n_routes)
    hosts = [dc.Host("S", int(sizes.sum())), *(dc.Host(f"K{i}") for i in range(1, n_routes))]
    links = [dc.Link("S", "D", rates[0])]
    for host, rate in zip(hosts[1:], rates[1:], strict=True):
        links += [dc.Link("S", host.name, rate), dc.Link(host.name, "D", 1.5 * rate)]
    return dc.Problem.from_hosts([*hosts, dc.Host("D")], links, "D")


def must_be_split(plan: dc.Schedule, sizes: np.ndarray, tolerance: float) -> int:
    """Return how many files exceed what any route takes, though its share grow by the tolerance."""
    first = plan.columns.hop == 0
    shares = np.bincount(plan.columns.route[first], plan.columns.n_bytes[first])
    return int((sizes > np.floor(shares.max() * (1 + tolerance))).sum())


def measured(kind: str, n_routes: int, n_files: int = N_FILES) -> dict[str, object]:
    """Plan without files and with them; return what packing took, and both gaps."""
    sizes = sizes_of(kind, n_files)
    problem = problem_of(sizes, n_routes)
    plan_s, whole = timed_calls.timed(dc.coordinated, problem)
    names = tuple(f"run/{i}.dat" for i in range(n_files))
    files = Files(names, sizes, ("",) * n_files)
    problem = problem.replace(manifest={"S": files})
    packing_s, plan = timed_calls.timed(packed, problem, whole)
    n_split, _ = files_split(problem, plan)
    return {
        "files": kind,
        "routes": plan.n_routes,
        "planning": plan_s,
        "packing": packing_s,
        "later": plan.makespan_s / whole.makespan_s - 1,
        "split": n_split,
        "least": must_be_split(whole, sizes, problem.file_tolerance),
    }


def packing_rows() -> list[dict[str, object]]:
    """Measure every kind of file with few routes and with many."""
    return [measured(kind, n_routes) for kind in KINDS for n_routes in (2, 8, 64)]


def graph_rows() -> list[tuple[str, str]]:
    """Measure graphs of a million links: to networkx, and what adding the edges takes there."""
    import networkx as nx

    n = 1001
    rates = np.random.default_rng(1).lognormal(16, 1, (n, n))
    problem = dc.Problem.from_matrix([f"h{i}" for i in range(n)], rates, [0] + [1] * (n - 1), "h0")
    ours_s, graph = min(
        (timed_calls.timed(problem.to_networkx) for _ in range(3)), key=lambda x: x[0]
    )
    edges = list(graph.edges(data=True))
    theirs_s = min(timed_calls.timed(nx.DiGraph().add_edges_from, edges)[0] for _ in range(3))
    return [
        (f"`Problem.to_networkx`, {problem.n_links} links", f"{ours_s:.2f} s"),
        ("`DiGraph.add_edges_from` of the same edges, ready", f"{theirs_s:.2f} s"),
    ]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    for note in timed_calls.notes():
        print(note)
    header = ("files", "routes", "planning", "packing", "later by", "split", "at least")
    rows = [
        (
            row["files"],
            row["routes"],
            timed_calls.in_words(row["planning"]),
            timed_calls.in_words(row["packing"]),
            f"{row['later']:.2g}",
            row["split"],
            row["least"],
        )
        for row in packing_rows()
    ]
    print("\n" + timed_calls.markdown(header, rows))
    print("\n" + timed_calls.markdown(("graph", "processor time"), graph_rows()))


if __name__ == "__main__":
    main()
