"""The cheapest flow through a time-expanded graph of which few arcs are built.

A flow that is cheapest on some arcs is cheapest on all if there are prices of data at nodes under
which no absent arc is attractive: the optimality conditions of linear programs. Attractive arcs
are added until there are none (column generation; Ford and Fulkerson, Management Science 5, 1958).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.flow.network.arc_copies import with_copies
from datacollect.flow.network.few_arcs import UNREACHED
from datacollect.methods.slotted.graph import slot_costs
from datacollect.numbers.arrays import FloatArray, IntArray, ranges
from datacollect.solvers.networks import FlowNetwork

if TYPE_CHECKING:
    from datacollect.flow.network.preference import Costs
    from datacollect.methods.slotted.graph import TimeExpandedGraph
    from datacollect.methods.slotted.search import Found, PartialGraph
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget


# A round lets in this many arcs per node: more rounds on small graphs, or fewer on large ones.
NEW_ARCS_PER_NODE = 2


@dataclass(frozen=True, eq=False)
class Discount:
    """Bytes that cost less than others on the same arc, as those that an old plan sends there.

    Attributes
    ----------
    keys : ndarray of int64
        ``slot * n_links + link`` of the arcs, sorted.
    n_bytes : ndarray of int64
        How many on each.
    less : int
        So much less each costs.
    """

    keys: IntArray
    n_bytes: IntArray
    less: int


class Priced(NamedTuple):
    """A graph with costs; its last arcs are second copies of the arcs `copies`, at less cost."""

    graph: TimeExpandedGraph
    cost: IntArray
    copies: IntArray


def priced(part: PartialGraph, costs: Costs, discount: Discount | None) -> Priced:
    """Return the graph and its costs, with a copy of each arc of which some bytes cost less."""
    graph = part.graph
    cost = slot_costs(costs, graph)
    if discount is None or len(discount.keys) == 0:
        return Priced(graph, cost, np.zeros(0, dtype=np.int64))
    # Arcs of links come first, in the order of their keys.
    position = np.minimum(np.searchsorted(discount.keys, part.keys), len(discount.keys) - 1)
    copies = np.flatnonzero(discount.keys[position] == part.keys)
    within = np.minimum(discount.n_bytes[position[copies]], graph.capacity_bytes[copies])
    capacity = graph.capacity_bytes.copy()
    capacity[copies] -= within
    graph = replace(
        graph,
        tail=np.append(graph.tail, graph.tail[copies]),
        head=np.append(graph.head, graph.head[copies]),
        capacity_bytes=np.append(capacity, within),
        slot=np.append(graph.slot, graph.slot[copies]),
        link=np.append(graph.link, graph.link[copies]),
        stored=np.append(graph.stored, graph.stored[copies]),
    )
    return Priced(graph, np.append(cost, cost[copies] - discount.less), copies)


def cheapest(
    part: PartialGraph, costs: Costs, budget: Budget, discount: Discount | None = None
) -> Found:
    """Return a graph, and a flow through it that empties all pools and is cheapest on all arcs.

    Raises
    ------
    InfeasibleError
        No flow on the arcs that are built empties all pools.
    """
    while True:
        graph, cost, copies = priced(part, costs, discount)
        flow = least_cost_flow(graph, graph.capacity_bytes, cost, budget)
        if part.is_complete:
            break
        price = node_prices(graph, cost, flow)
        more, worth = attractive(part, costs, price)
        if len(more) == 0:
            break
        part = part.extended(most_worth(part, more, worth))
    return part, with_copies(flow, part.graph.n_arcs, copies)


def least_cost_flow(
    graph: TimeExpandedGraph, capacity_bytes: IntArray, cost: IntArray, budget: Budget
) -> IntArray:
    """Return the cheapest flow on the arcs that are built."""
    supply = np.zeros(graph.n_nodes, dtype=np.int64)
    for pool in graph.pools:
        supply[pool.node] += pool.n_bytes
        supply[graph.sink] -= pool.n_bytes
    used = np.flatnonzero(capacity_bytes > 0)
    network = FlowNetwork(
        graph.n_nodes, graph.tail[used], graph.head[used], capacity_bytes[used], cost[used]
    )
    flow = np.zeros(graph.n_arcs, dtype=np.int64)
    flow[used] = budget.flow_solver().min_cost_flow(network, supply)
    return flow


def node_prices(graph: TimeExpandedGraph, cost: IntArray, flow: IntArray) -> IntArray:
    """Price data at each node: the least cost of a path to the sink in the residual network.

    Where no path is left, any price does that is high enough; the lowest such prices make the
    fewest arcs attractive.
    """
    forward, backward = flow < graph.capacity_bytes, flow > 0
    tail = np.concatenate([graph.tail[forward], graph.head[backward]])
    head = np.concatenate([graph.head[forward], graph.tail[backward]])
    residual = _Residual.build(graph.n_nodes, tail, head, np.append(cost[forward], -cost[backward]))
    price = np.full(graph.n_nodes, UNREACHED)
    price[graph.sink] = 0
    residual.relax(price, np.array([graph.sink]))
    lost = price == UNREACHED
    if lost.any():
        price[lost] = int(price[~lost].max()) + int(cost.max(initial=0)) + 1
        residual.relax(price, np.flatnonzero(lost))
    return price


class _Residual:
    """Arcs sorted by head, to find shortest paths backwards from the sink."""

    def __init__(self, first: IntArray, tail: IntArray, cost: IntArray) -> None:
        self.first, self.tail, self.cost = first, tail, cost

    @classmethod
    def build(cls, n_nodes: int, tail: IntArray, head: IntArray, cost: IntArray) -> _Residual:
        order = np.argsort(head, kind="stable")
        first = np.searchsorted(head[order], np.arange(n_nodes + 1))
        return cls(first, tail[order], cost[order])

    def relax(self, distance: IntArray, changed: IntArray) -> None:
        """Lower distances until no arc shortens one (Bellman-Ford; no cycle is negative)."""
        while len(changed):
            begin, count = self.first[changed], np.diff(self.first)[changed]
            arcs = ranges(begin, count)
            found = np.repeat(distance[changed], count) + self.cost[arcs]
            nodes = self.tail[arcs]
            shorter = found < distance[nodes]
            nodes = nodes[shorter]
            np.minimum.at(distance, nodes, found[shorter])
            changed = np.unique(nodes)


def attractive(
    part: PartialGraph,
    costs: Costs,
    price: IntArray | FloatArray,
    tolls: FloatArray | None = None,
) -> tuple[IntArray, FloatArray]:
    """Find absent arcs that lead from a price to one that is lower by more than the arc costs.

    Parameters
    ----------
    part : PartialGraph
    costs : Costs
    price : ndarray, shape (n_nodes,)
        Of data at each node.
    tolls : ndarray of float, shape (n_shared, n_slots), optional
        Per byte that passes a shared bottleneck; >= 0.

    Returns
    -------
    tuple of (ndarray of int64, ndarray of float)
        Keys, and what each arc promises: gain per byte times bytes that it carries.
    """
    expansion = part.expansion
    problem = expansion.problem
    relays = np.arange(problem.n_hosts) != expansion.sink
    least = costs.link.min() if len(costs.link) else 0
    keys, worth = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for slot in range(expansion.n_slots):
        carried = expansion.carried_bytes(slot)
        enters = expansion.enters[slot]
        # As in slot_costs: behind a limited downlink, what arrives pays at its gate.
        arrival = np.where(enters == expansion.sink, costs.arrival[slot], 0)
        behind = price[enters] + np.where(relays, costs.stored[slot], arrival)
        before = price[expansion.leaves[slot]]
        # Only from the dear to the cheap: often few links, and cheap to tell.
        dear, cheap = before > behind.min() + least, behind < before.max() - least
        links = expansion.links_between(slot, dear, cheap)
        gain = before[problem.link_from[links]] - behind[problem.link_to[links]]
        gain = gain - costs.link[links]
        if tolls is not None:
            gain = gain - _toll_of_links(problem, tolls[:, slot])[links]
        links, gain = links[gain > 0], gain[gain > 0]
        keys.append(slot * expansion.n_links + links)
        worth.append(gain.astype(float) * carried[links])
    found = np.concatenate(keys)
    absent = part.absent(found)
    return found[absent], np.concatenate(worth)[absent]


def _toll_of_links(problem: Problem, tolls: FloatArray) -> FloatArray:
    """Return what a byte on each link pays at all shared bottlenecks together."""
    toll = np.zeros(problem.n_links)
    for members, price in zip(problem.shared_links, tolls.tolist(), strict=True):
        toll[members] += price
    return toll


def most_worth(part: PartialGraph, keys: IntArray, worth: FloatArray) -> IntArray:
    """Return the keys that promise most, a few per node."""
    most = NEW_ARCS_PER_NODE * part.graph.n_nodes
    return keys[np.argpartition(-worth, most)[:most]] if len(keys) > most else keys
