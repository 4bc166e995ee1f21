"""The fastest solver for each task, composed of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datacollect.flow import FlowNetwork, FlowSolver, IntArray


class AutoFlow:
    """The fastest installed solver for each of the two tasks.

    OR-Tools' push-relabel code is the fastest for maximum flows, LEMON's network simplex for
    minimum-cost flows: 2 to 20 times faster than OR-Tools' cost scaling on time-expanded graphs.

    Attributes
    ----------
    name : str
        What is used, for example ``"ortools+lemon"``.
    """

    def __init__(self, max_flow_solver: FlowSolver, min_cost_solver: FlowSolver) -> None:
        self._max_flow_solver = max_flow_solver
        self._min_cost_solver = min_cost_solver
        self.name = "+".join(dict.fromkeys((max_flow_solver.name, min_cost_solver.name)))

    def max_flow(self, network: FlowNetwork, source: int, sink: int) -> IntArray:
        """See `FlowSolver.max_flow`."""
        return self._max_flow_solver.max_flow(network, source, sink)

    def min_cost_flow(self, network: FlowNetwork, supply: IntArray) -> IntArray:
        """See `FlowSolver.min_cost_flow`."""
        return self._min_cost_solver.min_cost_flow(network, supply)
