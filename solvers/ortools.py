"""OR-Tools: maximum flow and minimum-cost flow.

Maximum flow is push-relabel (Goldberg and Tarjan, 1988), minimum-cost flow cost scaling
(Goldberg, 1997), both in exact 64-bit integers. Arcs go in and flows come out as whole arrays:
one call per arc would take longer than solving.

The flow solvers of OR-Tools 9.15 hold Python's interpreter lock until they end, and nothing can
interrupt them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from ortools.graph.python.max_flow import SimpleMaxFlow
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from datacollect.errors import SolverError
from datacollect.solvers.checks import check_supply, check_terminals, unmet_supply

if TYPE_CHECKING:
    from datacollect.numbers.arrays import IntArray
    from datacollect.solvers.networks import FlowNetwork


class OrToolsFlow:
    """Flows by OR-Tools.

    Examples
    --------
    >>> from datacollect.solvers.networks import FlowNetwork
    >>> network = FlowNetwork(
    ...     3, np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([5, 4, 3]), np.array([1, 9, 1])
    ... )
    >>> OrToolsFlow().max_flow(network, 0, 2)
    array([3, 4, 3])
    >>> OrToolsFlow().min_cost_flow(network, np.array([4, 0, -4]))
    array([3, 1, 3])
    """

    name = "ortools"

    def max_flow(self, network: FlowNetwork, source: int, sink: int) -> IntArray:
        """Return a maximum flow, see `FlowSolver.max_flow`."""
        check_terminals(network, source, sink)
        solver = SimpleMaxFlow()
        arcs = solver.add_arcs_with_capacity(
            network.tail.astype(np.int32),
            network.head.astype(np.int32),
            network.capacity.astype(np.int64),
        )
        status = solver.solve(source, sink)
        if status != SimpleMaxFlow.OPTIMAL:
            raise _flow_failure(network, str(status.name))
        return np.asarray(solver.flows(arcs), dtype=np.int64)

    def min_cost_flow(self, network: FlowNetwork, supply: IntArray) -> IntArray:
        """Return the cheapest flow, see `FlowSolver.min_cost_flow`."""
        cost = check_supply(network, supply)
        solver = SimpleMinCostFlow()
        arcs = solver.add_arcs_with_capacity_and_unit_cost(
            network.tail.astype(np.int32),
            network.head.astype(np.int32),
            network.capacity.astype(np.int64),
            cost.astype(np.int64),
        )
        nodes = np.flatnonzero(supply)
        solver.set_nodes_supplies(nodes.astype(np.int32), supply[nodes].astype(np.int64))
        status = solver.solve()
        # The status comes first: reading flows after INFEASIBLE ends the whole process.
        if status == SimpleMinCostFlow.INFEASIBLE:
            raise unmet_supply(supply)
        if status != SimpleMinCostFlow.OPTIMAL:
            raise _flow_failure(network, str(status.name))
        return np.asarray(solver.flows(arcs), dtype=np.int64)


_FLOW_REMEDIES = {
    "BAD_COST_RANGE": "costs are too large for 64 bits (about 2**63 / n_nodes**2 at most); "
    "count costs in larger units or choose 'networkx'",
    "BAD_CAPACITY_RANGE": "capacities and supplies at one node sum beyond 64 bits; "
    "count in larger units",
    "POSSIBLE_OVERFLOW": "capacities at one node sum beyond 64 bits; count in larger units",
}


def _flow_failure(network: FlowNetwork, status: str) -> SolverError:
    remedy = _FLOW_REMEDIES.get(status, "choose another solver, for example 'networkx'")
    return SolverError(
        f"ortools ended with {status} on {network.n_nodes} nodes and {network.n_arcs} arcs: "
        f"{remedy}"
    )
