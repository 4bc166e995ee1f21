"""Public solvers on whole networks and programs: what planning is compared with.

Networks and programs are made beforehand, as arrays: what is measured is handing them to a solver
and solving.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    import datacollect as dc
    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.methods.slotted.graph import TimeExpandedGraph

# A linear solver may take this long on the clock: much, since the machine may be busy.
TIME_LIMIT_S = 60.0

# A program's rates are fractions of all data in this many seconds: numbers near 1.
UNIT_S = 1000.0

# Capacities that are no whole bytes are widened by this part and rounded up, so that rounding does
# not keep the last byte back.
SLACK = 1e-12


# Maximum flow: one proves that all data can arrive in time -------------------------------------


@dataclass
class MaxFlow:
    """A maximum flow of all data from a source of their own, ready for OR-Tools."""

    tail: np.ndarray
    head: np.ndarray
    capacity: np.ndarray
    source: int
    sink: int

    @classmethod
    def within(cls, network: LayeredNetwork, end_s: float) -> MaxFlow:
        """All that can arrive until `end_s`, at the rates of each piece of time."""
        lengths = np.diff([*network.starts_s, end_s])
        total = sum(pool.n_bytes for pool in network.pools)
        capacity = np.minimum(network.capacity_bytes(lengths), total)
        return cls.build(network, np.ceil(capacity * (1 + SLACK)).astype(np.int64))

    @classmethod
    def in_slots(cls, graph: TimeExpandedGraph) -> MaxFlow:
        """All that can arrive by store and forward."""
        return cls.build(graph, graph.capacity_bytes)

    @classmethod
    def build(cls, network: LayeredNetwork | TimeExpandedGraph, capacity: np.ndarray) -> MaxFlow:
        entry = np.array([pool.node for pool in network.pools])
        n_bytes = np.array([pool.n_bytes for pool in network.pools])
        source = network.n_nodes
        return cls(
            np.append(network.tail, np.full_like(entry, source)).astype(np.int32),
            np.append(network.head, entry).astype(np.int32),
            np.append(capacity, n_bytes),
            source,
            network.sink,
        )

    def solve(self) -> int:
        """Return how many bytes arrive."""
        from ortools.graph.python.max_flow import SimpleMaxFlow

        solver = SimpleMaxFlow()
        solver.add_arcs_with_capacity(self.tail, self.head, self.capacity)
        status = solver.solve(self.source, self.sink)
        assert status == SimpleMaxFlow.OPTIMAL, status
        return solver.optimal_flow()


# Minimum-cost flow through the whole time-expanded graph -----------------------------------------


def cheapest_by_ortools(graph: TimeExpandedGraph, cost: np.ndarray) -> int:
    """Return the least cost of moving everything."""
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    solver = SimpleMinCostFlow()
    arcs = solver.add_arcs_with_capacity_and_unit_cost(
        graph.tail.astype(np.int32), graph.head.astype(np.int32), graph.capacity_bytes, cost
    )
    supply = np.zeros(graph.n_nodes, dtype=np.int64)
    for pool in graph.pools:
        supply[pool.node] += pool.n_bytes
        supply[graph.sink] -= pool.n_bytes
    solver.set_nodes_supplies(np.arange(graph.n_nodes, dtype=np.int32), supply)
    status = solver.solve()
    assert status == SimpleMinCostFlow.OPTIMAL, status
    flow = solver.flows(arcs)
    # In Python's integers: the sum may exceed 64 bits.
    moved = flow > 0
    return sum(n * c for n, c in zip(flow[moved].tolist(), cost[moved].tolist(), strict=True))


def cheapest_by_networkx(network: object) -> int:
    """Return the least cost of a DiGraph with demands, capacities and weights."""
    import networkx as nx

    return nx.network_simplex(network)[0]


# The earliest end as one linear program with all links -----------------------------------------


@dataclass
class ConcurrentFlow:
    """The largest share of all data that can arrive per `UNIT_S`, with host and shared limits.

    A column per link (its rate) and one for the share; rows: what leaves a host less what enters
    it is its part of the share, what leaves or enters is limited, shared bottlenecks are.

    Source: maximum concurrent flow with one sink (Shahrokhi and Matula, J. ACM 37, 1990).
    """

    matrix: csr_array
    row_lower: np.ndarray
    row_upper: np.ndarray
    upper: np.ndarray

    @classmethod
    def build(cls, problem: dc.Problem) -> ConcurrentFlow:
        from scipy.sparse import coo_array

        n, m = problem.n_hosts, problem.n_links
        unit = problem.total_bytes / UNIT_S
        usable = np.flatnonzero(problem.link_from != problem.destination_index)
        tail, head = problem.link_from[usable], problem.link_to[usable]
        held = problem.backlog_bytes / problem.total_bytes
        sources = np.flatnonzero(held)
        # What arrives at the destination follows from all other balances, its row is left open.
        limits = np.append(problem.uplink_bytes_per_s[0], problem.downlink_bytes_per_s[0])
        room = np.append(limits, [shared.bandwidth_bytes_per_s for shared in problem.shared])
        entries = [
            (tail, usable, np.ones(len(usable))),
            (head, usable, -np.ones(len(usable))),
            (sources, np.full(len(sources), m), -held[sources]),
            (n + tail, usable, np.ones(len(usable))),
            (2 * n + head, usable, np.ones(len(usable))),
        ]
        for number, links in enumerate(problem.shared_links):
            entries.append((np.full(len(links), 3 * n + number), links, np.ones(len(links))))
        rows, columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
        open_end = np.where(np.arange(n) == problem.destination_index, np.inf, 0.0)
        rates = np.where(
            problem.link_from == problem.destination_index, 0.0, problem.bandwidth_bytes_per_s[0]
        )
        shape = (n + len(room), m + 1)
        return cls(
            coo_array((values, (rows, columns)), shape=shape).tocsr(),
            np.append(-open_end, np.full(len(room), -np.inf)),
            np.append(open_end, room / unit),
            np.append(rates / unit, np.inf),
        )

    def end_by_glop(self) -> float | None:
        """Return the earliest end in seconds; None when the time limit passed."""
        from ortools.linear_solver.python.model_builder_helper import (
            ModelBuilderHelper,
            ModelSolverHelper,
            SolveStatus,
        )
        from scipy.sparse import csr_matrix

        model, n_columns = ModelBuilderHelper(), len(self.upper)
        model.fill_model_from_sparse_data(
            np.zeros(n_columns),
            self.upper,
            self._cost(),
            self.row_lower,
            self.row_upper,
            csr_matrix(self.matrix),
        )
        solver = ModelSolverHelper("glop")
        solver.set_time_limit_in_seconds(TIME_LIMIT_S)
        solver.solve(model)
        if solver.status() != SolveStatus.OPTIMAL:
            assert solver.status() in (SolveStatus.NOT_SOLVED, SolveStatus.FEASIBLE)
            return None
        return UNIT_S / solver.variable_values()[-1]

    def end_by_highs(self) -> float | None:
        """Return the earliest end in seconds; None when the time limit passed."""
        from scipy.optimize import linprog

        is_equal = self.row_lower == self.row_upper
        equal = np.flatnonzero(is_equal)
        limited = np.flatnonzero(~is_equal & np.isfinite(self.row_upper))
        found = linprog(
            self._cost(),
            A_eq=self.matrix[equal],
            b_eq=self.row_upper[equal],
            A_ub=self.matrix[limited],
            b_ub=self.row_upper[limited],
            bounds=np.column_stack([np.zeros(len(self.upper)), self.upper]),
            method="highs",
            options={"time_limit": TIME_LIMIT_S},
        )
        if found.status == 1:
            return None
        assert found.status == 0, found.message
        return UNIT_S / found.x[-1]

    def _cost(self) -> np.ndarray:
        return np.append(np.zeros(len(self.upper) - 1), -1.0)
