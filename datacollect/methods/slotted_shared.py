"""Slotted plans with shared bottlenecks: a linear program on the time-expanded graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.errors import InfeasibleError
from datacollect.flow import FlowNetwork, LinearProgram
from datacollect.slots import whole_slot_bytes
from datacollect.timegraph import slot_costs

if TYPE_CHECKING:
    from datacollect.budget import Budget
    from datacollect.problem import Problem
    from datacollect.timegraph import TimeExpandedGraph

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]

# Solvers meet constraints to about this part of all data.
SOLVER_TOLERANCE = 1e-9


def cheapest_shared(problem: Problem, graph: TimeExpandedGraph, budget: Budget) -> IntArray | None:
    """Return the cheapest flow that empties all pools, None if there is none.

    The program's optimum may split bytes. A network flow within its arcs, each rounded up to a
    whole byte, exists and is whole (flows on integer capacities are integral), so a shared
    bottleneck is exceeded by less than a byte per arc.
    """
    total = float(problem.total_bytes)
    cost = slot_costs(graph)
    try:
        solution = budget.linear_solver().solve(
            _program(problem, graph, cost, total), time_limit_s=budget.remaining_s()
        )
    except InfeasibleError:
        return None
    carried = np.maximum(solution.x, 0.0) * total
    noise = SOLVER_TOLERANCE * total
    try:
        # What should be whole may be a hair more; a tenth of a byte never matters.
        return _whole_flow(graph, cost, carried - min(noise, 0.1), budget)
    except InfeasibleError:
        return _whole_flow(graph, cost, carried + noise, budget)


def _whole_flow(
    graph: TimeExpandedGraph, cost: IntArray, room_bytes: FloatArray, budget: Budget
) -> IntArray:
    """Return the cheapest flow of whole bytes within `room_bytes`, rounded up."""
    room = np.ceil(np.minimum(room_bytes, graph.capacity_bytes)).astype(np.int64)
    used = np.flatnonzero(room > 0)
    supply = np.zeros(graph.n_nodes, dtype=np.int64)
    for pool in graph.pools:
        supply[pool.node] += pool.n_bytes
        supply[graph.sink] -= pool.n_bytes
    network = FlowNetwork(graph.n_nodes, graph.tail[used], graph.head[used], room[used], cost[used])
    flow = np.zeros(graph.n_arcs, dtype=np.int64)
    flow[used] = budget.flow_solver().min_cost_flow(network, supply)
    return flow


def _program(
    problem: Problem, graph: TimeExpandedGraph, cost: IntArray, total: float
) -> LinearProgram:
    """Fractions of all data per arc; rows: conservation per node, shared bottlenecks per slot."""
    arcs = np.arange(graph.n_arcs)
    leaves, enters = graph.tail != graph.sink, graph.head != graph.sink
    rows = [graph.tail[leaves], graph.head[enters]]
    columns = [arcs[leaves], arcs[enters]]
    values = [np.ones(int(leaves.sum())), -np.ones(int(enters.sum()))]
    right_side: list[float] = []
    for bottleneck, members in zip(problem.shared, problem.shared_links, strict=True):
        rate = np.array([bottleneck.bandwidth_bytes_per_s])
        room = float(whole_slot_bytes(rate, graph.slot_s, problem.total_bytes)[0]) / total
        users = np.flatnonzero((graph.link >= 0) & np.isin(graph.link, members))
        slots, row = np.unique(graph.slot[users], return_inverse=True)
        rows.append(graph.n_nodes + len(right_side) + row)
        columns.append(users)
        values.append(np.ones(len(users)))
        right_side += [room] * len(slots)
    supply = np.zeros(graph.n_nodes)
    for pool in graph.pools:
        supply[pool.node] += pool.n_bytes / total
    open_side = np.full(len(right_side), -np.inf)
    return LinearProgram(
        cost=cost / max(int(cost.max(initial=1)), 1),
        lower=np.zeros(graph.n_arcs),
        upper=np.minimum(graph.capacity_bytes / total, 1.0),
        row_lower=np.concatenate([supply, open_side]),
        row_upper=np.concatenate([supply, np.array(right_side)]),
        rows=np.concatenate(rows).astype(np.int64),
        columns=np.concatenate(columns).astype(np.int64),
        values=np.concatenate(values),
    )
