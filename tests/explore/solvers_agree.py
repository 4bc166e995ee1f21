"""Solvers against HiGHS, with proofs of their own, on degenerate programs and networks."""

from __future__ import annotations

import random

import numpy as np
from judges.flow_proofs import balances, cheapest_cost, has_negative_cycle, network_of, total_cost
from judges.linear_proofs import INF, assert_optimal, disagreement, program_of

from datacollect.errors import InfeasibleError
from datacollect.solvers.choice import load_flow_solver

LINEAR, FLOW = ("ortools", "pulp"), ("ortools", "networkx", "lemon")


def case(seed: int) -> str | None:
    """Have every solver solve a program or a flow; most vertices are those of many bases."""
    rng = random.Random(f"solvers {seed}")
    return _program(rng) if rng.random() < 0.6 else _flow(rng)


def _program(rng: random.Random) -> str | None:
    """Few different numbers, rows twice, sides of 0: ties everywhere."""
    n_columns, n_rows = rng.randint(1, 12), rng.randint(0, 10)
    rows = [[rng.choice([0, 0, 0, 1, 1, -1]) for _ in range(n_columns)] for _ in range(n_rows)]
    rows += [list(rng.choice(rows)) for _ in range(rng.randint(0, 4))] if rows else []
    lower = np.array([rng.choice([0, 0, 0, -1]) for _ in range(n_columns)], dtype=float)
    upper = lower + [rng.choice([0, 1, 1, 2, INF]) for _ in range(n_columns)]
    row_lower = np.array([rng.choice([0, 0, -1, -2, 1]) for _ in rows], dtype=float)
    row_upper = row_lower + [rng.choice([0, 0, 1, 3, INF]) for _ in rows]
    cost = [rng.choice([0, 1, 1, 2, -1]) for _ in range(n_columns)]
    program = program_of(cost, lower, upper, row_lower, row_upper, rows)
    return disagreement(program, LINEAR, assert_optimal)


def _flow(rng: random.Random) -> str | None:
    """Costs and capacities of few values, arcs in parallel, supplies that just fit."""
    n_nodes = rng.randint(2, 8)
    arcs = []
    for _ in range(rng.randint(1, 24)):
        tail = rng.randrange(n_nodes)
        head = (tail + rng.randint(1, n_nodes - 1)) % n_nodes
        arcs.append((tail, head, rng.choice([0, 1, 1, 2, 5]), rng.choice([0, 1, 1, 2])))
    network = network_of(n_nodes, arcs)
    supply = np.zeros(n_nodes, dtype=np.int64)
    for _ in range(rng.randint(0, 3)):
        a, b, n = rng.randrange(n_nodes), rng.randrange(n_nodes), rng.randint(1, 3)
        supply[a] += n
        supply[b] -= n
    expected = cheapest_cost(network, supply)
    for name in FLOW:
        try:
            flow = load_flow_solver(name).min_cost_flow(network, supply)
        except InfeasibleError:
            if expected is not None:
                return f"{name}: infeasible, expected {expected}"
            continue
        if expected is None or abs(total_cost(network, flow) - expected) > 1e-6:
            return f"{name}: {total_cost(network, flow)}, expected {expected}"
        assert balances(network, flow) == supply.tolist()
        assert not has_negative_cycle(network, flow)
    return None
