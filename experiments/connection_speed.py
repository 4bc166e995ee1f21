"""Time to share connections out.

    python experiments/connection_speed.py

Full meshes of 100 and 300 hosts are timed beside coordinated without a budget: on the same mesh,
and with bottlenecks that links share, which is the general planner by linear programs. Then meshes
of 5 to 300 hosts where all have limits, whose capacities have to be divided.
"""

from __future__ import annotations

import time

import numpy as np

import datacollect as dc

REPEATS = 3


def mesh(n_hosts: int, *, shared: bool = False, limited: bool = False) -> dc.Problem:
    """A full mesh, a quarter of it sources, each link 2 to 20 times as wide as one connection."""
    rng = np.random.default_rng(1)
    rates = rng.lognormal(0, 1, (n_hosts, n_hosts)) * 1e6
    backlog = np.zeros(n_hosts, dtype=int)
    backlog[1 : 1 + n_hosts // 4] = rng.uniform(1, 10, n_hosts // 4) * 1e9
    names = [f"h{i}" for i in range(n_hosts)]
    capacity = None if shared else rates * rng.uniform(2, 20, rates.shape)
    problem = dc.Problem.from_matrix(names, rates, backlog, "h0", capacity_bytes_per_s=capacity)
    if limited:
        limits = rng.uniform(5, 20, (2, n_hosts)) * 1e6
        limits[1, 0] *= n_hosts / 10
        return problem.replace(uplink_bytes_per_s=limits[0], downlink_bytes_per_s=limits[1])
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
    print("hosts, with limits of all, connections: seconds (gap)")
    for n_hosts in (5, 8, 12, 100, 300):
        for connections in (8, n_hosts, 2 * n_hosts):
            took, plan = seconds(
                mesh(n_hosts, limited=True), connections=max(connections, n_hosts // 4)
            )
            print(f"{n_hosts}, {connections}: {took:.3f} ({plan.gap:.2f}), {plan.solver}")


if __name__ == "__main__":
    speed()
