"""Whole numbers of connections: how near to the best of all, and how long planning takes.

    python experiments/connection_rounding.py [--problems 60]

Small problems are planned with `coordinated(problem, connections=N)` and compared with all possible
numbers (`tests/judges/all_allocations.py`). Large ones, full meshes of 100 and 300 hosts, are timed
beside coordinated without a budget: on the same mesh, and with bottlenecks that links share, which
is the general planner by linear programs.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import datacollect as dc

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from judges.all_allocations import fastest  # the tests' oracle

REPEATS = 3


def small(seed: int) -> tuple[dc.Problem, dict, dict[str, int], int]:
    """Two or three sources, at times a relay, on congested links."""
    rng = np.random.default_rng(seed)
    n_sources = int(rng.integers(2, 4))
    relay = n_sources == 2 and bool(rng.integers(2))
    names = [f"S{i}" for i in range(n_sources)] + ["K"] * relay + ["D"]
    data = {f"S{i}": int(x) for i, x in enumerate(rng.uniform(1, 10, n_sources) * 1e7)}
    links = {
        (a, b): (float(rng.lognormal(1, 1)) * 1e6, int(rng.integers(0, 30)), np.inf)
        for a in names
        for b in names
        if a not in (b, "D")
    }
    most = int(rng.integers(n_sources, 7 if len(names) > 3 else 9))
    problem = dc.Problem.from_hosts(
        [dc.Host(name, data.get(name, 0)) for name in names],
        [
            dc.Link(a, b, capacity / (1 + others), competitors=others)
            for (a, b), (capacity, others, _) in links.items()
        ],
        "D",
    )
    return problem, links, data, most


def mesh(n_hosts: int, *, shared: bool = False) -> dc.Problem:
    """A full mesh, a quarter of it sources, each link 2 to 20 times as wide as one connection."""
    rng = np.random.default_rng(1)
    rates = rng.lognormal(0, 1, (n_hosts, n_hosts)) * 1e6
    backlog = np.zeros(n_hosts, dtype=int)
    backlog[1 : 1 + n_hosts // 4] = rng.uniform(1, 10, n_hosts // 4) * 1e9
    names = [f"h{i}" for i in range(n_hosts)]
    capacity = None if shared else rates * rng.uniform(2, 20, rates.shape)
    problem = dc.Problem.from_matrix(names, rates, backlog, "h0", capacity_bytes_per_s=capacity)
    if not shared:
        return problem
    pairs = [(a, b) for a in names for b in names if a != b]
    wire = rng.integers(0, 10, len(pairs))
    wires = [
        dc.SharedBottleneck(
            f"w{i}", 1e6 * n_hosts / 40, [pairs[j] for j in np.flatnonzero(wire == i)]
        )
        for i in range(10)
    ]
    return problem.replace(shared=wires)


def seconds(problem: dc.Problem, **options: int) -> tuple[float, dc.Schedule]:
    """Median processor time of planning, each time from a problem that nobody has looked at."""
    took = []
    for _ in range(REPEATS):
        fresh = problem.replace(backlog_bytes=problem.backlog_bytes)
        began = time.process_time()
        plan = dc.coordinated(fresh, **options)
        took.append(time.process_time() - began)
    return float(np.median(took)), plan


def rounding(n_problems: int) -> None:
    ratios, bounds, direct = [], [], []
    for seed in range(n_problems):
        problem, links, data, most = small(seed)
        plan = dc.coordinated(problem, connections=most, chunk_s=0.0)
        best_s = fastest(links, data, "D", most, hops=3)
        ratios.append(plan.makespan_s / best_s)
        bounds.append(plan.lower_bound_s / best_s)
        direct.append(fastest(links, data, "D", most, hops=1) / plan.makespan_s)
    print(f"{n_problems} problems against all numbers of connections")
    print(f"plan over best: mean {np.mean(ratios):.4f}, worst {max(ratios):.4f}")
    print(f"bound over best: mean {np.mean(bounds):.3f}, most {max(bounds):.3f}")
    print(f"direct's best over plan: mean {np.mean(direct):.3f}, least {min(direct):.3f}")


def speed() -> None:
    dc.coordinated(mesh(10), connections=20)  # what is imported once
    dc.coordinated(mesh(10, shared=True))
    print("hosts, connections: seconds (gap); without a budget; with shared bottlenecks, without")
    for n_hosts in (100, 300):
        plain, _ = seconds(mesh(n_hosts))
        general, _ = seconds(mesh(n_hosts, shared=True))
        for connections in (n_hosts // 4, n_hosts):
            took, plan = seconds(mesh(n_hosts), connections=connections)
            print(
                f"{n_hosts}, {connections}: {took:.3f} ({plan.gap:.2f}); {plain:.4f} "
                f"({took / plain:.0f} times); {general:.3f} ({took / general:.1f} times)"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=60)
    rounding(parser.parse_args().problems)
    speed()
