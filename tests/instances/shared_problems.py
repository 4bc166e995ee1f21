"""Problems with shared bottlenecks, drawn at random, and their earliest ends."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
from hypothesis import assume
from instances.strategies import FEATURES, problems, some_of

import datacollect as dc
from datacollect.flow.optimum import fluid_optimum
from datacollect.problem.hosts import Host, SharedBottleneck
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


@st.composite
def shared_problems(draw, most_hosts: int = 4) -> Problem:
    """Any mix of constraints with one to ten shared bottlenecks."""
    problem = draw(problems(FEATURES - {"shared"}, most_hosts))
    assume(problem.n_links > 0 and problem.total_bytes > 0)
    names = problem.names
    ends = zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
    pairs = [(names[a], names[b]) for a, b in ends]
    unit = float(max(problem.bandwidth_bytes_per_s.max() / 6, 1.0))
    shared = [
        SharedBottleneck(f"wire{i}", draw(st.integers(1, 12)) * unit / 4, draw(some_of(pairs)))
        for i in range(draw(st.integers(1, 10)))
    ]
    return problem.replace(shared=shared)


def random_mesh(n: int, seed: int, n_shared: int) -> Problem:
    """A full mesh with host limits; shared bottlenecks of random links, many into D."""
    rng = np.random.default_rng(seed)
    bandwidth = rng.lognormal(0.0, 1.0, (n, n)) * 1e6
    backlog = np.where(rng.random(n) < 0.4, rng.integers(1e8, 1e9, n), 0)
    backlog[:2] = 0, 10**9
    problem = Problem.from_matrix([f"h{i}" for i in range(n)], bandwidth, backlog, "h0")
    pairs = [*zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)]
    shared = []
    for i in range(n_shared):
        chosen = [(a, b) for a, b in pairs if rng.random() < (0.4 if b == 0 else 0.05)]
        chosen = chosen or pairs[-1:]
        rate = sum(bandwidth[a, b] for a, b in chosen) * rng.uniform(0.05, 0.3)
        shared.append(SharedBottleneck(f"w{i}", rate, [(f"h{a}", f"h{b}") for a, b in chosen]))
    typical = bandwidth.mean() * n / 2
    return problem.replace(
        shared=shared,
        uplink_bytes_per_s=typical * rng.uniform(0.2, 1.5, n),
        downlink_bytes_per_s=typical * rng.uniform(0.2, 1.5, n),
    )


def wide_mesh(seed: int) -> Problem:
    """Bandwidths over nine orders of magnitude, backlogs from a megabyte to a petabyte."""
    rng = np.random.default_rng(seed)
    problem = random_mesh(int(rng.integers(5, 12)), seed, n_shared=4)
    n = problem.n_hosts
    bandwidth = 10.0 ** rng.uniform(0, 9, problem.n_links)
    shared = [
        replace(one, bandwidth_bytes_per_s=bandwidth[members].sum() * 10.0 ** rng.uniform(-3, 0))
        for one, members in zip(problem.shared, problem.shared_links, strict=True)
    ]
    held = (10.0 ** rng.uniform(6, 15, n)).astype(np.int64)
    return problem.replace(
        bandwidth_bytes_per_s=bandwidth[None, :],
        backlog_bytes=np.where(problem.backlog_bytes > 0, held, 0),
        shared=shared,
        uplink_bytes_per_s=10.0 ** rng.uniform(3, 9, n),
        downlink_bytes_per_s=10.0 ** rng.uniform(3, 9, n),
    )


def few_bytes_among_terabytes(seed: int) -> Problem:
    """Bandwidths over nine and backlogs over twelve orders of magnitude, in two periods."""
    n, rng = 12, np.random.default_rng(seed)
    bandwidth = 10 ** rng.uniform(0, 9, (2, n, n))
    held = [int(10 ** rng.uniform(0, 15)) if i else 0 for i in range(n)]
    pairs = [(i, j) for i in range(1, n) for j in range(n) if i != j]
    return Problem.from_hosts(
        [Host(f"h{i}", n_bytes) for i, n_bytes in enumerate(held)],
        [dc.Link(f"h{i}", f"h{j}", bandwidth[:, i, j].tolist()) for i, j in pairs],
        "h0",
        periods_s=[0.0, 3600.0],
        shared=[SharedBottleneck("w", 1e8, [(f"h{i}", "h0") for i in range(1, n)])],
    )


def shared_end(problem: Problem, solver: str = "auto"):
    end = fluid_optimum(problem, Budget(solver)).shared_end
    assert end is not None
    return end
