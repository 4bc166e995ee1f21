"""Slotted plans from all arcs at once beside those from few: which is faster, and what is chosen.

    python experiments/slotted_choice.py [--repeats 4] [--fitted]

Prints a table in Markdown, docs/tables/speed_slotted_choice.md, of the networks in which the two ways
differ most, and how often the choice is slower than the better way: of 119 networks that the choice
was not fitted to, or with --fitted of the 167 that it was. Processor time of whole plans, the best of
each pair's repetitions; a quarter of the hosts sends; in meshes one of them has nine tenths of all
data, or each has 1 to 10 GB.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial
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
    from collections.abc import Callable, Iterator

HEAD = "| network | hosts | links per host | slots | few arcs | all arcs | chosen ÷ better |"
N_SHOWN = 18


@dataclass(frozen=True)
class Sizes:
    """Sizes of networks, and numbers of slots, of each family."""

    meshes: tuple[int, ...]
    mesh_slots: tuple[int, ...]
    sparse: tuple[int, ...]
    parts: tuple[float, ...]
    sparse_slots: tuple[int, ...]
    overlays: tuple[int, ...]
    overlay_slots: tuple[int, ...]


FITTED = Sizes(
    (8, 10, 12, 16, 20, 24, 30, 40, 60),
    (10, 20, 40, 80, 160, 300),
    (30, 60, 100, 200, 300),
    (0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7),
    (10, 20, 50, 100),
    (50, 100, 200),
    (20, 50, 100),
)
OTHERS = Sizes(
    (9, 11, 14, 18, 22, 27, 35, 50),
    (15, 30, 60, 120, 240),
    (45, 80, 150, 250),
    (0.025, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6),
    (15, 35, 75),
    (70, 140),
    (30, 70),
)


def sparse_mesh(n_hosts: int, part: float) -> dc.Problem:
    """Leave a part of a full mesh's links, drawn at random, and one from each host on a ring."""
    problem = one_big_holder(n_hosts)
    names, bandwidth, _ = mesh(n_hosts)
    kept = np.random.default_rng(1).random(bandwidth.shape) < part
    kept[np.arange(1, n_hosts), np.arange(n_hosts - 1)] = True
    return dc.Problem.from_matrix(names, bandwidth * kept, problem.backlog_bytes, "h0")


def cases(sizes: Sizes) -> Iterator[tuple[str, Callable[[], dc.Problem], int]]:
    """Yield each network's name, what builds it, and its number of slots."""
    for n_hosts in sizes.meshes:
        for n_slots in sizes.mesh_slots:
            if 4000 < n_hosts * (n_hosts - 1) * n_slots < 150_000:
                yield "full mesh", partial(one_big_holder, n_hosts), n_slots
                yield "full mesh, like sources", partial(mesh_problem, n_hosts), n_slots
    for n_hosts in sizes.sparse:
        for part in sizes.parts:
            for n_slots in sizes.sparse_slots:
                if part * n_hosts >= 3 and 8000 < n_hosts**2 * part * n_slots < 200_000:
                    name = f"sparse mesh, {100 * part:g} %"
                    yield name, partial(sparse_mesh, n_hosts, part), n_slots
    for n_hosts in sizes.overlays:
        for n_slots in sizes.overlay_slots:
            yield "sparse overlay, degree 8", partial(sparse_overlay, n_hosts), n_slots
            yield "geometric overlay", partial(geometric_overlay, n_hosts), n_slots


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
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--fitted", action="store_true")
    options = parser.parse_args()
    ratios, rows = [], []
    for what, build, n_slots in cases(FITTED if options.fitted else OTHERS):
        problem = build()
        best = best_s(problem, dc.lower_bound(problem)[0] / n_slots, options.repeats)
        is_planned = fluid_optimum(problem, Budget()).plan is not None
        chosen_s = best[search.all_at_once(problem, n_slots, Budget(), is_planned=is_planned)]
        times = (f"{1000 * best[every]:.3g} ms" for every in (False, True))
        degree, ratio = problem.n_links / problem.n_hosts, chosen_s / min(best.values())
        columns = (what, problem.n_hosts, f"{degree:.1f}", n_slots, *times, f"{ratio:.2f}")
        rows.append((max(best.values()) / min(best.values()), columns))
        ratios.append(ratio)
    print(HEAD)
    print("| --- | --: | --: | --: | --: | --: | --: |")
    for _, columns in sorted(rows, key=lambda row: -row[0])[:N_SHOWN]:
        print("|", " | ".join(map(str, columns)), "|")
    slower = sum(ratio > 1.1 for ratio in ratios)
    print()
    print(
        f"Of {len(ratios)} networks the choice is slower than 1.1 of the better way in {slower},"
        f" {max(ratios):.2f} at most; on average it takes {np.mean(ratios):.3f} of it."
    )


if __name__ == "__main__":
    main()
