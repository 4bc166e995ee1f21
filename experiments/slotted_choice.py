"""Slotted plans from all arcs at once beside those from few: which is faster, and what is chosen.

    python experiments/slotted_choice.py [--repeats 5]

Prints a table in Markdown, docs/tables/speed_slotted_choice.md: processor time of whole plans, the
best of each pair's repetitions, a quarter of the hosts sending; in meshes one of them has nine
tenths of all data, or each has 1 to 10 GB. The last column is what is chosen over the better.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
from synthetic_problems import geometric_overlay, mesh, mesh_problem, one_big_holder, sparse_overlay
from timed_calls import timed

import datacollect as dc
from datacollect.flow.optimum import fluid_optimum
from datacollect.methods.slotted import search
from datacollect.solvers.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = "| network | hosts | links per host | slots | few arcs | all arcs | chosen ÷ better |"


def sparse_mesh(n_hosts: int, part: float) -> dc.Problem:
    """Leave a part of a full mesh's links, drawn at random, and one from each host on a ring."""
    problem = one_big_holder(n_hosts)
    names, bandwidth, _ = mesh(n_hosts)
    kept = np.random.default_rng(1).random(bandwidth.shape) < part
    kept[np.arange(1, n_hosts), np.arange(n_hosts - 1)] = True
    return dc.Problem.from_matrix(names, bandwidth * kept, problem.backlog_bytes, "h0")


CASES: tuple[tuple[str, Callable[[], dc.Problem], int], ...] = (
    ("full mesh", lambda: one_big_holder(10), 300),
    ("full mesh", lambda: one_big_holder(16), 20),
    ("full mesh", lambda: one_big_holder(16), 200),
    ("full mesh", lambda: one_big_holder(30), 20),
    ("full mesh", lambda: one_big_holder(30), 50),
    ("full mesh", lambda: one_big_holder(100), 20),
    ("full mesh, like sources", lambda: mesh_problem(24), 40),
    ("full mesh, like sources", lambda: mesh_problem(40), 20),
    ("sparse mesh, 30 %", lambda: sparse_mesh(60, 0.3), 20),
    ("sparse mesh, 3 %", lambda: sparse_mesh(100, 0.03), 100),
    ("sparse mesh, 10 %", lambda: sparse_mesh(100, 0.1), 20),
    ("sparse mesh, 30 %", lambda: sparse_mesh(100, 0.3), 20),
    ("sparse mesh, 50 %", lambda: sparse_mesh(100, 0.5), 20),
    ("sparse mesh, 5 %", lambda: sparse_mesh(200, 0.05), 20),
    ("sparse mesh, 3 %", lambda: sparse_mesh(300, 0.03), 20),
    ("sparse mesh, 2 %", lambda: sparse_mesh(500, 0.02), 15),
    ("sparse overlay, degree 8", lambda: sparse_overlay(100), 100),
    ("geometric overlay", lambda: geometric_overlay(100), 100),
)


def best_s(problem: dc.Problem, slot_s: float, repeats: int) -> dict[bool, float]:
    """Measure plans from few arcs and from all in turn; return the best of each."""
    best = {False: np.inf, True: np.inf}
    for _ in range(repeats):
        for every, before_s in best.items():
            with patch.object(search, "all_at_once", lambda *_, every=every, **__: every):
                taken_s, _ = timed(lambda: dc.coordinated(problem.replace(), slot_s=slot_s))
            best[every] = min(before_s, taken_s)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    print(HEAD)
    print("| --- | --: | --: | --: | --: | --: | --: |")
    for what, build, n_slots in CASES:
        problem = build()
        best = best_s(problem, dc.lower_bound(problem)[0] / n_slots, repeats)
        is_planned = fluid_optimum(problem, Budget()).plan is not None
        chosen_s = best[search.all_at_once(problem, n_slots, Budget(), is_planned=is_planned)]
        times = (f"{1000 * best[every]:.3g} ms" for every in (False, True))
        degree, ratio = problem.n_links / problem.n_hosts, chosen_s / min(best.values())
        columns = (what, problem.n_hosts, f"{degree:.1f}", n_slots, *times, f"{ratio:.2f}")
        print("|", " | ".join(map(str, columns)), "|", flush=True)


if __name__ == "__main__":
    main()
