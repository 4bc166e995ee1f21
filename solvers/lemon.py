"""LEMON's network simplex through the package `pylmcf` (extra ``fast``).

2 to 20 times faster than OR-Tools on minimum-cost flows over time-expanded graphs (LEMON:
Dezső, Jüttner and Kovács, 2011). Exact in 64-bit integers. It holds Python's interpreter lock
until it ends, and nothing can interrupt it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from pylmcf import Graph

from datacollect.errors import SolverError
from datacollect.solvers.checks import check_supply, check_terminals, unmet_supply

if TYPE_CHECKING:
    from datacollect.numbers.arrays import IntArray
    from datacollect.solvers.networks import FlowNetwork

# Node potentials are path costs plus an artificial cost of 2**62 and must stay below 2**63.
_POTENTIAL_LIMIT = 2**61

# Up to this many arcs per node, as in time-expanded graphs, a list of candidates finds entering
# arcs up to 8 times faster than LEMON's block search; on denser networks it is slower.
SPARSE = 8

# The same of networks over many pieces of time, measured with 10 to 24 hosts.
SPARSE_OVER_PERIODS = 16

# A basis is repaired for this part of what a new beginning takes at most: beyond that a repair may
# take fifty times as long.
REPAIR_BUDGET = 0.1


class LemonFlow:
    """Flows by LEMON.

    Examples
    --------
    >>> from datacollect.solvers.networks import FlowNetwork
    >>> network = FlowNetwork(
    ...     3, np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([5, 4, 3]), np.array([1, 9, 1])
    ... )
    >>> LemonFlow().max_flow(network, 0, 2)
    array([3, 4, 3])
    >>> LemonFlow().min_cost_flow(network, np.array([4, 0, -4]))
    array([3, 1, 3])
    """

    name = "lemon"

    def max_flow(self, network: FlowNetwork, source: int, sink: int) -> IntArray:
        """Return a maximum flow, see `FlowSolver.max_flow`.

        LEMON has no negative costs, so the usual arc back from sink to source is turned around:
        as much as any cut could carry enters at the source, arcs are free, and one more arc from
        source to sink takes at a cost of 1 per unit whatever does not fit through the network.
        """
        check_terminals(network, source, sink)
        leaving = int(network.capacity[network.tail == source].sum())
        arriving = int(network.capacity[network.head == sink].sum())
        limit = min(leaving, arriving)
        if limit == 0:
            return np.zeros(network.n_arcs, dtype=np.int64)
        supply = np.zeros(network.n_nodes, dtype=np.int64)
        supply[source], supply[sink] = limit, -limit
        cost = np.zeros(network.n_arcs + 1, dtype=np.int64)
        cost[-1] = 1
        flow = _solve(
            supply,
            np.append(network.tail, source),
            np.append(network.head, sink),
            np.append(network.capacity, limit),
            cost,
        )
        return flow[:-1]

    def min_cost_flow(self, network: FlowNetwork, supply: IntArray) -> IntArray:
        """Return the cheapest flow, see `FlowSolver.min_cost_flow`."""
        cost = check_supply(network, supply)
        if not supply.any():
            return np.zeros(network.n_arcs, dtype=np.int64)
        _check_costs(cost, network.n_nodes)
        return _solve(supply, network.tail, network.head, network.capacity, cost)


class LemonRestarts:
    """Cheapest flows on one network whose capacities, costs and supplies change.

    Each begins at the basis that the last one ended with: where little has changed, that takes a
    small part of the time. Not for several threads at once.

    Parameters
    ----------
    n_nodes : int
    tail, head : ndarray of int, shape (n_arcs,)

    Examples
    --------
    >>> flows = LemonRestarts(3, np.array([0, 0, 1]), np.array([1, 2, 2]))
    >>> cost, supply = np.array([1, 9, 1]), np.array([4, 0, -4])
    >>> for capacity in (np.array([5, 4, 3]), np.array([5, 4, 2])):
    ...     flow, potential = flows.min_cost_flow(capacity, cost, supply)
    ...     print(flow, potential[2] - potential[0])
    [3 1 3] 9
    [2 2 2] 9
    """

    name = LemonFlow.name

    def __init__(
        self, n_nodes: int, tail: npt.NDArray[np.integer], head: npt.NDArray[np.integer]
    ) -> None:
        self._n_nodes = n_nodes
        self._order = np.argsort(tail.astype(np.int64) * n_nodes + head, kind="stable")
        self._tail, self._head = _int64(tail[self._order]), _int64(head[self._order])
        self._graph: Graph | None = None

    def min_cost_flow(
        self, capacity: IntArray, cost: IntArray, supply: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Return the cheapest flow, and node potentials that prove it.

        Of an arc with room left cost + potential of the tail - potential of the head is >= 0; of
        one with flow <= 0.

        Raises
        ------
        InfeasibleError
            No flow meets the supplies.
        SolverError
            Costs are too large.
        """
        _check_costs(cost, self._n_nodes)
        graph = self._graph or _graph(
            self._n_nodes, self._tail, self._head, sparse=SPARSE_OVER_PERIODS
        )
        graph.set_warm_repair_budget(REPAIR_BUDGET)
        self._graph = None  # where it fails it has no basis to go on from
        _run(graph, supply, capacity[self._order], cost[self._order])
        self._graph = graph
        flow = np.empty_like(capacity)
        flow[self._order] = np.asarray(graph.result(), dtype=np.int64)
        return flow, np.asarray(graph.potentials(), dtype=np.int64)


def _check_costs(cost: IntArray, n_nodes: int) -> None:
    if len(cost) and int(cost.max()) * n_nodes >= _POTENTIAL_LIMIT:
        raise SolverError(
            f"lemon: costs up to {cost.max()} on {n_nodes} nodes must stay below "
            "2**61 / n_nodes; count costs in larger units"
        )


def _graph(
    n_nodes: int,
    tail: npt.NDArray[np.integer],
    head: npt.NDArray[np.integer],
    sparse: int = SPARSE,
) -> Graph:
    graph = Graph(n_nodes, _int64(tail), _int64(head))
    graph.set_pivot_rule("candidate_list" if len(tail) <= sparse * n_nodes else "block_search")
    return graph


def _run(graph: Graph, supply: IntArray, capacity: IntArray, cost: IntArray) -> None:
    graph.set_node_supply(_int64(supply))
    graph.set_edge_costs(_int64(cost))
    graph.set_edge_capacities(_int64(capacity))
    try:
        graph.solve()
    except RuntimeError as error:
        if "INFEASIBLE" in str(error):
            raise unmet_supply(supply) from error
        raise SolverError(f"lemon: {error}; choose 'ortools'") from error


def _solve(
    supply: IntArray,
    tail: npt.NDArray[np.integer],
    head: npt.NDArray[np.integer],
    capacity: IntArray,
    cost: IntArray,
) -> IntArray:
    """Run the network simplex; arcs come and go in the caller's order."""
    key = tail.astype(np.int64) * len(supply) + head
    order: IntArray | None = None
    if (key[1:] < key[:-1]).any():
        # Sorting a million arcs takes about as long as solving: only where needed.
        order = np.argsort(key, kind="stable")
        tail, head, capacity, cost = tail[order], head[order], capacity[order], cost[order]
    graph = _graph(len(supply), tail, head)
    _run(graph, supply, capacity, cost)
    result = np.asarray(graph.result(), dtype=np.int64)
    if order is None:
        return result
    flow = np.empty_like(result)
    flow[order] = result
    return flow


def _int64(values: npt.NDArray[np.integer]) -> IntArray:
    # pylmcf takes contiguous arrays of exactly this type.
    return np.ascontiguousarray(values, dtype=np.int64)
