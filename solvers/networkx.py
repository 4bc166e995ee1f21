"""Solver `networkx`: pure Python, exact in integers of any size, slow; an independent opinion.

60 to 190 times slower than LEMON on minimum-cost flows over time-expanded graphs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from datacollect.solvers.checks import check_supply, check_terminals, unmet_supply

if TYPE_CHECKING:
    from datacollect.numbers.arrays import IntArray
    from datacollect.solvers.networks import FlowNetwork


class NetworkxFlow:
    """Flows by networkx: push-relabel and network simplex.

    Examples
    --------
    >>> from datacollect.solvers.networks import FlowNetwork
    >>> network = FlowNetwork(
    ...     3, np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([5, 4, 3]), np.array([1, 9, 1])
    ... )
    >>> NetworkxFlow().max_flow(network, 0, 2)
    array([3, 4, 3])
    >>> NetworkxFlow().min_cost_flow(network, np.array([4, 0, -4]))
    array([3, 1, 3])
    """

    name = "networkx"

    def max_flow(self, network: FlowNetwork, source: int, sink: int) -> IntArray:
        """Return a maximum flow, see `FlowSolver.max_flow`."""
        check_terminals(network, source, sink)
        # networkx has no maximum flow on multigraphs: join parallel arcs, share their flow out.
        order, first = _group_parallel(network)
        capacity = network.capacity[order].astype(np.int64)
        joined = np.add.reduceat(capacity, first) if len(first) else capacity
        tail, head = network.tail[order[first]], network.head[order[first]]
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(range(network.n_nodes))
        # Every arc gets a capacity: networkx takes a missing one for infinite.
        graph.add_weighted_edges_from(
            zip(tail.tolist(), head.tolist(), joined.tolist(), strict=True), weight="capacity"
        )
        _, flows = nx.maximum_flow(graph, source, sink)
        joined_flow = np.array(
            [flows[u][v] for u, v in zip(tail.tolist(), head.tolist(), strict=True)],
            dtype=np.int64,
        )
        flow = np.empty(network.n_arcs, dtype=np.int64)
        flow[order] = _share_out(joined_flow, capacity, first)
        return flow

    def min_cost_flow(self, network: FlowNetwork, supply: IntArray) -> IntArray:
        """Return the cheapest flow, see `FlowSolver.min_cost_flow`."""
        cost = check_supply(network, supply)
        graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
        graph.add_nodes_from(
            (node, {"demand": -units}) for node, units in enumerate(supply.tolist())
        )
        ends = list(zip(network.tail.tolist(), network.head.tolist(), strict=True))
        rows = zip(ends, network.capacity.tolist(), cost.tolist(), strict=True)
        for arc, ((u, v), capacity, unit_cost) in enumerate(rows):
            graph.add_edge(u, v, key=arc, capacity=capacity, weight=unit_cost)
        try:
            _, flows = nx.network_simplex(graph)
        except nx.NetworkXUnfeasible as error:
            raise unmet_supply(supply) from error
        return np.array([flows[u][v][arc] for arc, (u, v) in enumerate(ends)], dtype=np.int64)


def _group_parallel(network: FlowNetwork) -> tuple[IntArray, IntArray]:
    """Return an order that puts parallel arcs side by side, and where in it each pair starts."""
    pair = network.tail.astype(np.int64) * network.n_nodes + network.head
    order = np.argsort(pair, kind="stable")
    ordered = pair[order]
    is_first = np.ones(len(pair), dtype=bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(is_first)


def _share_out(joined_flow: IntArray, capacity: IntArray, first: IntArray) -> IntArray:
    """Fill parallel arcs one after another until their common flow is used up.

    >>> _share_out(np.array([7, 1]), np.array([5, 4, 3]), np.array([0, 2]))
    array([5, 2, 1])
    """
    sizes = np.diff(np.append(first, len(capacity)))
    # The running sum over all arcs may exceed 64 bits; it wraps around, and the difference within
    # a group, which fits, is right again.
    before = np.cumsum(capacity) - capacity
    before -= np.repeat(before[first], sizes)
    return np.clip(np.repeat(joined_flow, sizes) - before, 0, capacity)
