"""The fluid optimum with shared bottlenecks: a linear program on the layered network.

A capacity that arbitrary links share breaks the network structure, so the earliest end is the
optimum of a linear program: minimise the length of the last piece of time, subject to
conservation at every node, each arc's capacity and each shared bottleneck's. A second program
keeps that length and takes as few hops as possible.

Flows are fractions of all data and the length is relative to the optimum without shared
bottlenecks, which is a lower bound: coefficients stay near 1 whatever the units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.bottleneck import linear_bottleneck
from datacollect.errors import InfeasibleError
from datacollect.flow import LinearProgram
from datacollect.layered import NO_LINK, layered_network

if TYPE_CHECKING:
    from datacollect.budget import Budget
    from datacollect.flow import LinearSolution
    from datacollect.layered import LayeredNetwork
    from datacollect.problem import Problem
    from datacollect.quickest import Quickest
    from datacollect.schedule import Bottleneck

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]

# The second program may end this much later (relative): both are solved to about 1e-9.
LENGTH_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class SharedQuickest:
    """The earliest end with shared bottlenecks, a flow that attains it, and what binds."""

    network: LayeredNetwork
    lengths_s: FloatArray
    flow_bytes: FloatArray
    bottleneck: Bottleneck
    solver: str

    @property
    def makespan_s(self) -> float:
        """The end of the last piece."""
        return float(self.network.starts_s[-1] + self.lengths_s[-1])


@dataclass(frozen=True, eq=False)
class _Model:
    """The linear program of one network, with what is needed to read its solution.

    Columns: one per arc (fraction of all data), then the last piece's length in `unit_s`.
    Rows: conservation per node, capacity per arc of the last piece, then shared bottlenecks.
    """

    network: LayeredNetwork
    program: LinearProgram
    unit_s: float
    total_bytes: float
    arc_rows: IntArray  # arcs whose capacity is a row, in order of rows
    shared_of_row: IntArray  # shared bottleneck of each of the last rows


def quickest_shared(
    problem: Problem, starts_s: FloatArray, guard_s: float, relaxed: Quickest, budget: Budget
) -> SharedQuickest:
    """Find the earliest end; `relaxed` is the optimum without shared bottlenecks.

    Raises
    ------
    InfeasibleError
        Shared bottlenecks and forecasts together let some data never arrive.
    """
    full = np.maximum(np.diff(starts_s) - guard_s, 0.0)
    solver = budget.linear_solver()
    for n_pieces in range(relaxed.network.n_pieces, len(starts_s) + 1):
        network = relaxed.network
        if n_pieces > network.n_pieces:
            network = layered_network(problem, starts_s[:n_pieces])
        longest = np.inf if n_pieces == len(starts_s) else float(full[n_pieces - 1])
        unit = relaxed.lengths_s[-1] if n_pieces == relaxed.network.n_pieces else 0.0
        unit = float(unit) or (longest if np.isfinite(longest) else 1.0)
        model = _model(problem, network, full[: n_pieces - 1], unit, longest)
        try:
            first = solver.solve(model.program, time_limit_s=budget.remaining_s())
        except InfeasibleError:
            continue
        best = _fewest_hops(model, first, budget)
        lengths = np.append(full[: n_pieces - 1], first.x[-1] * unit)
        return SharedQuickest(
            network,
            lengths,
            np.maximum(best.x[:-1], 0.0) * model.total_bytes,
            _bottleneck(problem, model, first),
            solver.name,
        )
    raise InfeasibleError(
        "shared bottlenecks and forecasts together let some data never arrive at "
        f"{problem.destination!r}; raise a shared bottleneck or the last period's bandwidth",
        problem.sources,
    )


def _model(
    problem: Problem, network: LayeredNetwork, full_s: FloatArray, unit_s: float, longest_s: float
) -> _Model:
    total = float(problem.total_bytes)
    n_arcs, last = network.n_arcs, network.n_pieces - 1
    in_last = (network.piece == last) & np.isfinite(network.rate_bytes_per_s)
    arc_rows = np.flatnonzero(in_last)
    fixed = network.capacity_bytes(np.append(full_s, 0.0)) / total
    upper = np.append(np.where(in_last, 1.0, np.minimum(fixed, 1.0)), longest_s / unit_s)
    supply = np.zeros(network.n_nodes)
    for pool in network.pools:
        supply[pool.node] += pool.n_bytes / total
    kept = np.delete(np.arange(network.n_nodes), network.sink)
    row_of_node = np.full(network.n_nodes, -1)
    row_of_node[kept] = np.arange(len(kept))
    entries = _Entries()
    arcs = np.arange(n_arcs)
    leaves, enters = row_of_node[network.tail] >= 0, row_of_node[network.head] >= 0
    entries.add(row_of_node[network.tail[leaves]], arcs[leaves], 1.0)
    entries.add(row_of_node[network.head[enters]], arcs[enters], -1.0)
    first_row = len(kept)
    rows = first_row + np.arange(len(arc_rows))
    entries.add(rows, arc_rows, 1.0)
    entries.add(rows, n_arcs, -network.rate_bytes_per_s[arc_rows] * unit_s / total)
    first_row += len(arc_rows)
    right_side: list[float] = []
    shared_of_row: list[int] = []
    lengths = np.append(full_s, unit_s)
    for number, members in enumerate(problem.shared_links):
        bandwidth = problem.shared[number].bandwidth_bytes_per_s
        users = np.flatnonzero(np.isin(network.link, members) & (network.link != NO_LINK))
        for piece in np.unique(network.piece[users]).tolist():
            row = first_row + len(right_side)
            entries.add(row, users[network.piece[users] == piece], 1.0)
            room = bandwidth * lengths[piece] / total
            if piece == last:
                entries.add(row, np.array([n_arcs]), -room)
            right_side.append(0.0 if piece == last else room)
            shared_of_row.append(number)
    capacity = np.concatenate([np.zeros(len(arc_rows)), right_side])
    cost = np.zeros(n_arcs + 1)
    cost[-1] = 1.0
    rows_of, columns_of, values_of = entries.columns()
    program = LinearProgram(
        cost=cost,
        lower=np.zeros(n_arcs + 1),
        upper=upper,
        row_lower=np.concatenate([supply[kept], np.full(len(capacity), -np.inf)]),
        row_upper=np.concatenate([supply[kept], capacity]),
        rows=rows_of,
        columns=columns_of,
        values=values_of,
    )
    return _Model(
        network, program, unit_s, total, arc_rows, np.array(shared_of_row, dtype=np.int64)
    )


class _Entries:
    """Collects a sparse matrix by blocks."""

    def __init__(self) -> None:
        self.blocks: list[tuple[npt.NDArray[np.generic], ...]] = []

    def add(
        self, rows: IntArray | int, columns: IntArray | int, values: FloatArray | float
    ) -> None:
        self.blocks.append(
            tuple(np.broadcast_arrays(np.asarray(rows), np.asarray(columns), np.asarray(values)))
        )

    def columns(self) -> tuple[IntArray, IntArray, FloatArray]:
        rows, columns, values = (np.concatenate(parts) for parts in zip(*self.blocks, strict=True))
        return rows.astype(np.int64), columns.astype(np.int64), values.astype(float)


def _fewest_hops(model: _Model, first: LinearSolution, budget: Budget) -> LinearSolution:
    """Keep the length; take as few hops as possible, then as little storage."""
    network, program = model.network, model.program
    cost = np.where(network.link != NO_LINK, 1.0, 0.0)
    cost[network.stored] = 1.0 / (1 + network.n_pieces)
    upper = program.upper.copy()
    upper[-1] = first.x[-1] * (1 + LENGTH_SLACK)
    try:
        return budget.linear_solver().solve(
            replace(program, cost=np.append(cost, 0.0), upper=upper),
            time_limit_s=budget.remaining_s(),
        )
    except InfeasibleError:
        return first  # the length was at the edge of the solver's tolerance; its flow attains it


def _bottleneck(problem: Problem, model: _Model, solution: LinearSolution) -> Bottleneck:
    """Read what binds from the dual values: each is seconds saved per unit of capacity."""
    network = model.network
    dual = np.abs(solution.row_dual)
    tight = dual > 1e-7 * max(float(dual.max(initial=0.0)), 1e-300)
    n_nodes, n_arcs = network.n_nodes - 1, len(model.arc_rows)
    shared = sorted(set(model.shared_of_row[tight[n_nodes + n_arcs :]].tolist()))
    arcs = model.arc_rows[tight[n_nodes : n_nodes + n_arcs]]
    rows = [pool.node - (pool.node > network.sink) for pool in network.pools]
    pools = [pool for pool, row in zip(network.pools, rows, strict=True) if tight[row]]
    return linear_bottleneck(problem, network, shared, arcs, pools)
