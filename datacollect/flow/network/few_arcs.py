"""Flows through a large network over few of its arcs, proved optimal on all of them.

A flow uses few arcs: at most one per node beyond those that it fills (Ford and Fulkerson, Flows
in Networks, 1962). So solve on some arcs, look at all others once, add those that could help,
and repeat until none could:

- a maximum flow on some arcs is one on all as soon as no absent arc crosses its minimum cut;
- a cheapest flow on some arcs is one on all as soon as node potentials give no absent arc a
  negative reduced cost (column generation; Dantzig and Wolfe, Operations Research 8, 1960).

Both are exact, whichever arcs come first; a good first choice saves rounds. Networks here are
arrays, not `FlowNetwork`: their rules are checked on what is handed to solvers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.flow.network.best_arcs import best_per_tail
from datacollect.solvers.networks import FlowNetwork, source_side

if TYPE_CHECKING:
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.solvers.networks import FlowSolver


# Arcs that each node may add in the first round; twice as many in each later one.
FIRST_PER_NODE = 4

# Distance of nodes without a path to the sink: more than any path costs.
UNREACHED = 2**61


@dataclass(frozen=True, eq=False)
class SupplyNetwork:
    """Arcs with whole capacities, supplies at nodes, and one sink that takes them all.

    Attributes
    ----------
    n_nodes, sink : int
    tail, head : ndarray of int, shape (n_arcs,)
    capacity : ndarray of int64, shape (n_arcs,)
        Sums at a node stay below 2**62.
    supply : ndarray of int64, shape (n_nodes,)
        Units that enter at each node; >= 0, and 0 at the sink.
    """

    n_nodes: int
    sink: int
    tail: IntArray
    head: IntArray
    capacity: IntArray
    supply: IntArray


def largest_flow(
    network: SupplyNetwork, solver: FlowSolver, active: BoolArray
) -> tuple[IntArray, BoolArray | None]:
    """Return a flow that takes as much of the supplies to the sink as all arcs can carry.

    Parameters
    ----------
    network : SupplyNetwork
    solver : FlowSolver
    active : ndarray of bool, shape (n_arcs,)
        Arcs to begin with; those that were added are marked on return.

    Returns
    -------
    tuple of (ndarray of int64, ndarray of bool or None)
        Units per arc; and the supplies' side of a minimum cut, None if no supply is left behind.

    Examples
    --------
    Without its second arc the network has no path to the sink; the cut shows that it is missing.

    >>> from datacollect.solvers.choice import load_flow_solver
    >>> network = SupplyNetwork(
    ...     3, 2, np.array([0, 1]), np.array([1, 2]), np.array([7, 5]), np.array([6, 0, 0])
    ... )
    >>> flow, cut = largest_flow(network, load_flow_solver("auto"), np.array([True, False]))
    >>> flow, cut
    (array([5, 5]), array([ True,  True, False]))
    """
    most = FIRST_PER_NODE
    entries = np.flatnonzero(network.supply)
    while True:
        arcs = np.flatnonzero(active)
        part = _from_one_source(network, entries, arcs)
        found = solver.max_flow(part, network.n_nodes, network.sink)
        flow = np.zeros(len(network.tail), dtype=np.int64)
        flow[arcs] = found[: len(arcs)]
        if (found[len(arcs) :] == network.supply[entries]).all():
            return flow, None
        cut = source_side(part, found, network.n_nodes)[:-1]
        crossing = np.flatnonzero(cut[network.tail] & ~cut[network.head])
        crossing = crossing[~active[crossing] & (network.capacity[crossing] > 0)]
        if len(crossing) == 0:
            return flow, cut
        tail, width = network.tail[crossing], network.capacity[crossing]
        active[crossing[best_per_tail(tail, width, most, network.n_nodes)]] = True
        most *= 2


def suffice(network: SupplyNetwork, solver: FlowSolver, arcs: IntArray) -> bool:
    """Say whether some arcs, by their numbers, carry all supplies to the sink.

    A maximum flow says so many times as fast as a cheapest flow that is not there.

    >>> from datacollect.solvers.choice import load_flow_solver
    >>> network = SupplyNetwork(
    ...     2, 1, np.array([0, 0]), np.array([1, 1]), np.array([4, 9]), np.array([6, 0])
    ... )
    >>> solver = load_flow_solver("auto")
    >>> [suffice(network, solver, np.array([arc])) for arc in (0, 1)]
    [False, True]
    """
    return cut_behind(network, solver, arcs) is None


def cut_behind(network: SupplyNetwork, solver: FlowSolver, arcs: IntArray) -> BoolArray | None:
    """Return the supplies' side of a minimum cut if some arcs do not carry all supplies."""
    entries = np.flatnonzero(network.supply)
    part = _from_one_source(network, entries, arcs)
    found = solver.max_flow(part, network.n_nodes, network.sink)
    if (found[len(arcs) :] == network.supply[entries]).all():
        return None
    return source_side(part, found, network.n_nodes)[:-1]


def _from_one_source(network: SupplyNetwork, entries: IntArray, arcs: IntArray) -> FlowNetwork:
    """Return some arcs, and behind them one to each node with a supply from a node more."""
    return FlowNetwork(
        network.n_nodes + 1,
        np.concatenate([network.tail[arcs], np.full(len(entries), network.n_nodes)]),
        np.concatenate([network.head[arcs], entries]),
        np.concatenate([network.capacity[arcs], network.supply[entries]]),
    )


def cheapest_flow(
    network: SupplyNetwork, cost: IntArray, solver: FlowSolver, active: BoolArray
) -> IntArray:
    """Return the cheapest flow that takes all supplies to the sink.

    Parameters
    ----------
    network : SupplyNetwork
    cost : ndarray of int64, shape (n_arcs,)
        Per unit, >= 0; a path's sum stays below 2**60.
    solver : FlowSolver
    active : ndarray of bool, shape (n_arcs,)
        Arcs to begin with; those that were added are marked on return. Best if they carry all
        supplies, as those of `largest_flow` do.

    Returns
    -------
    ndarray of int64, shape (n_arcs,)
        Units per arc.

    Raises
    ------
    InfeasibleError
        No flow takes all supplies to the sink.

    Examples
    --------
    Two paths, for 1 and for 5 per unit; the cheap one carries 4 of 6 and is not known at first.

    >>> from datacollect.solvers.choice import load_flow_solver
    >>> network = SupplyNetwork(
    ...     2, 1, np.array([0, 0]), np.array([1, 1]), np.array([4, 9]), np.array([6, 0])
    ... )
    >>> cost, active = np.array([1, 5]), np.array([False, True])
    >>> cheapest_flow(network, cost, load_flow_solver("auto"), active)
    array([4, 2])
    """
    most = FIRST_PER_NODE
    balance = network.supply.copy()
    balance[network.sink] -= int(network.supply.sum())
    while True:
        arcs = np.flatnonzero(active)
        part = FlowNetwork(
            network.n_nodes,
            network.tail[arcs],
            network.head[arcs],
            network.capacity[arcs],
            cost[arcs],
        )
        try:
            found = solver.min_cost_flow(part, balance)
        except InfeasibleError:
            if len(arcs) == len(active):
                raise
            _, cut = largest_flow(network, solver, active)
            if cut is not None:
                raise
            continue
        flow = np.zeros(len(network.tail), dtype=np.int64)
        flow[arcs] = found
        attractive, path_cost = _attractive(network, cost, part, found, active)
        if len(attractive) == 0:
            return flow
        tail = network.tail[attractive]
        active[attractive[best_per_tail(tail, -path_cost, most, network.n_nodes)]] = True
        most *= 2


def _attractive(
    network: SupplyNetwork, cost: IntArray, part: FlowNetwork, found: IntArray, active: BoolArray
) -> tuple[IntArray, FloatArray]:
    """Absent arcs that shorten some node's cheapest path to the sink, and what that path costs.

    Of equal paths the widest seems the cheapest, by less than a unit.
    """
    if active.all():
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    distance = distance_to(network.sink, part, found)
    path_cost = distance[network.head]
    path_cost += cost
    arcs = np.flatnonzero((path_cost < distance[network.tail]) & ~active & (network.capacity > 0))
    widest = network.capacity[arcs] / max(int(network.capacity[arcs].max(initial=1)), 1)
    return arcs, path_cost[arcs] - widest / 2


def distance_to(sink: int, network: FlowNetwork, flow: IntArray) -> IntArray:
    """Return the cost of the cheapest residual path from each node to the sink.

    Node potentials: after a cheapest flow no residual arc has a negative reduced cost. `UNREACHED`
    where there is no path.
    """
    distance = np.full(network.n_nodes, UNREACHED, dtype=np.int64)
    distance[sink] = 0
    return shortened(distance, network, flow)


def shortened(distance: IntArray, network: FlowNetwork, flow: IntArray) -> IntArray:
    """Lower what paths from nodes cost, until no residual arc of a flow leads to a cheaper one.

    Bellman and Ford's method, all arcs at once. `distance` is changed, and returned.
    """
    assert network.cost is not None
    forward, backward = np.flatnonzero(flow < network.capacity), np.flatnonzero(flow > 0)
    tail = np.concatenate([network.tail[forward], network.head[backward]])
    head = np.concatenate([network.head[forward], network.tail[backward]])
    cost = np.concatenate([network.cost[forward], -network.cost[backward]])
    order = np.argsort(tail, kind="stable")
    tail, head, cost = tail[order], head[order], cost[order]
    first = np.flatnonzero(np.diff(tail, prepend=-1))
    nodes = tail[first]
    for _ in range(network.n_nodes if len(nodes) else 0):
        best = np.minimum.reduceat(cost + distance[head], first)
        best[best > UNREACHED // 2] = UNREACHED  # with a negative cost it is as far
        nearer = best < distance[nodes]
        if not nearer.any():
            break
        distance[nodes[nearer]] = best[nearer]
    return distance
