"""Solvers whose calls are timed: how large a program was, who solved it, how long that took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.files.stages import solving

if TYPE_CHECKING:
    from datacollect.numbers.arrays import IntArray
    from datacollect.solvers.lemon import LemonRestarts
    from datacollect.solvers.networks import FlowNetwork, FlowSolver
    from datacollect.solvers.programs import LinearProgram, LinearSolution, LinearSolver


class TimedFlow:
    """A flow solver whose calls are reported to `datacollect.files.stages`."""

    def __init__(self, solver: FlowSolver) -> None:
        self._solver = solver

    @property
    def name(self) -> str:
        """See `FlowSolver.name`."""
        return self._solver.name

    def max_flow(self, network: FlowNetwork, source: int, sink: int) -> IntArray:
        """See `FlowSolver.max_flow`."""
        with solving(lambda: self.name, network.n_arcs, f"a maximum flow {_size(network)}"):
            return self._solver.max_flow(network, source, sink)

    def min_cost_flow(self, network: FlowNetwork, supply: IntArray) -> IntArray:
        """See `FlowSolver.min_cost_flow`."""
        with solving(lambda: self.name, network.n_arcs, f"a cheapest flow {_size(network)}"):
            return self._solver.min_cost_flow(network, supply)


class TimedRestarts:
    """Cheapest flows on one network, each call reported to `datacollect.files.stages`."""

    def __init__(self, flows: LemonRestarts) -> None:
        self._flows = flows

    def min_cost_flow(
        self, capacity: IntArray, cost: IntArray, supply: IntArray
    ) -> tuple[IntArray, IntArray]:
        """See `LemonRestarts.min_cost_flow`."""
        n_arcs = len(capacity)
        words = f"a cheapest flow over {n_arcs} arcs among {len(supply)} nodes"
        with solving(lambda: self._flows.name, n_arcs, words):
            return self._flows.min_cost_flow(capacity, cost, supply)


class TimedLinear:
    """A linear solver whose calls are reported to `datacollect.files.stages`."""

    def __init__(self, solver: LinearSolver) -> None:
        self._solver = solver

    @property
    def name(self) -> str:
        """See `LinearSolver.name`."""
        return self._solver.name

    def solve(self, program: LinearProgram, time_limit_s: float | None = None) -> LinearSolution:
        """See `LinearSolver.solve`."""
        words = f"a linear program of {program.n_rows} rows and {program.n_columns} columns"
        with solving(lambda: self.name, len(program.values), words):
            return self._solver.solve(program, time_limit_s)


def _size(network: FlowNetwork) -> str:
    return f"over {network.n_arcs} arcs among {network.n_nodes} nodes"
