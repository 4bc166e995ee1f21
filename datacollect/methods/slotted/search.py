"""The fewest slots, on the few arcs of the time-expanded graph that matter.

A plan uses few of the links times slots. A maximum flow on some of them that empties all pools
proves that a number of slots suffices. If it does not, every path that could carry more crosses its
minimum cut: arcs that cross are added, and when there are none left the number of slots is too
small.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from datacollect.flow.network.best_arcs import best_per_tail
from datacollect.flow.paths import fluid_paths
from datacollect.methods.slotted.graph import TimeExpansion
from datacollect.methods.timing.slots import slots_until
from datacollect.methods.timing.tolerances import SAME_SUM
from datacollect.solvers.choice import takes_large_networks
from datacollect.solvers.networks import FlowNetwork, source_side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.flow.optimum import FluidOptimum
    from datacollect.flow.routes.routes import PathFlow
    from datacollect.methods.slotted.graph import TimeExpandedGraph
    from datacollect.numbers.arrays import BoolArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget


# Up to this many arcs (links times slots) all are used at once: quicker than choosing.
ALL_ARCS = 20_000
# With LEMON so many; and more where hosts have few links: up to so many links per host of 100 hosts
# in one slot, and fewer the more slots and the more hosts there are. In a full mesh half as many:
# few arcs hold more of a plan there. Fitted to 167 networks and judged on 119 others, by
# `experiments/slotted_choice.py` of commit bbdf1d00.
ALL_ARCS_LEMON = 8_000
LINKS_PER_HOST = 85
FEWER_BY_SLOTS = 0.4
FEWER_BY_HOSTS = 0.5
# Beyond what was measured few arcs are safer: memory grows with all.
MOST_ALL_ARCS = 1_000_000
# The same for linear programs.
ALL_ARCS_SHARED = 1_000

# A graph, and a flow through it that empties all pools.
Found: TypeAlias = "tuple[PartialGraph, IntArray]"


@dataclass(frozen=True, eq=False)
class PartialGraph:
    """A time-expanded graph of which only some arcs of links are built.

    Attributes
    ----------
    expansion : TimeExpansion
    keys : ndarray of int64
        ``slot * n_links + link`` of the arcs that are built, sorted.
    graph : TimeExpandedGraph
    """

    expansion: TimeExpansion
    keys: IntArray
    graph: TimeExpandedGraph

    @classmethod
    def build(cls, expansion: TimeExpansion, keys: IntArray) -> PartialGraph:
        """Build the graph with the arcs of `keys` (sorted)."""
        slot, link = np.divmod(keys, max(expansion.n_links, 1))
        return cls(expansion, keys, expansion.graph(link, slot))

    @classmethod
    def in_all_slots(cls, expansion: TimeExpansion, links: IntArray) -> PartialGraph:
        """Build the graph with `links` in all slots in which they carry anything."""
        keys = [
            slot * expansion.n_links + links[expansion.carried_bytes(slot)[links] > 0]
            for slot in range(expansion.n_slots)
        ]
        return cls.build(expansion, np.concatenate(keys))

    @property
    def is_complete(self) -> bool:
        """Return whether all arcs are built."""
        slots = range(self.expansion.n_slots)
        every = sum(np.count_nonzero(self.expansion.carried_bytes(slot)) for slot in slots)
        return len(self.keys) == every

    def absent(self, keys: IntArray) -> BoolArray:
        """Mark those of `keys` whose arcs are not built."""
        absent: BoolArray = np.append(self.keys, -1)[np.searchsorted(self.keys, keys)] != keys
        return absent

    def extended(self, more: IntArray) -> PartialGraph:
        """Return the graph with more arcs."""
        return PartialGraph.build(self.expansion, np.union1d(self.keys, more))


def partial_graph(
    problem: Problem, slot_s: float, n_slots: int, links: IntArray, exits: IntArray | None = None
) -> PartialGraph:
    """Return the graph with `links` in all slots in which they carry anything.

    ``exits`` are hosts from which data count as arrived after the last slot.
    """
    expansion = TimeExpansion(problem, slot_s, n_slots)
    if exits is not None:
        expansion.add_exits(exits)
    return PartialGraph.in_all_slots(expansion, links)


def first_links(problem: Problem, optimum: FluidOptimum, n_slots: int, budget: Budget) -> IntArray:
    """Choose links to begin with: those of a fluid plan, and from each host a next hop.

    Where links times slots are few, all links: quicker than choosing.
    """
    if all_at_once(problem, n_slots, budget, is_planned=optimum.plan is not None):
        return np.arange(problem.n_links)
    return links_of_paths(problem, fluid_paths(problem, optimum, 0.0, budget).paths)


def all_at_once(
    problem: Problem, n_slots: int, budget: Budget, *, is_planned: bool = False
) -> bool:
    """Say whether to begin with all links in all slots.

    `is_planned` says that a fluid plan is known: its links are few, and there for nothing.
    """
    n_arcs = problem.n_links * n_slots
    if problem.shared:
        return n_arcs <= ALL_ARCS_SHARED
    if not takes_large_networks(budget.flow_solver().name):
        return n_arcs <= ALL_ARCS
    if n_arcs <= ALL_ARCS_LEMON:
        return True
    if is_planned or n_arcs > MOST_ALL_ARCS:
        return False
    links_per_host = problem.n_links / problem.n_hosts
    density = links_per_host / max(problem.n_hosts - 1, 1)
    many: float = n_slots**FEWER_BY_SLOTS * (problem.n_hosts / 100) ** FEWER_BY_HOSTS
    return links_per_host * (1 + density**2) <= LINKS_PER_HOST / many


def links_of_paths(problem: Problem, paths: Sequence[PathFlow]) -> IntArray:
    """Return the links that paths take, and from each host a next hop."""
    pairs = np.array([pair for path in paths for pair in pairwise(path.hosts)], dtype=np.int64)
    planned = problem.link_indices(pairs[:, 0], pairs[:, 1])
    return np.union1d(planned, _next_hops(problem))


def _next_hops(problem: Problem) -> IntArray:
    """From each host the widest of its links that begin a shortest path to the destination."""
    rate = problem.bandwidth_bytes_per_s.max(axis=0)
    reached = np.zeros(problem.n_hosts, dtype=bool)
    reached[problem.destination_index] = True
    chosen = [np.zeros(0, dtype=np.int64)]
    while True:
        next_to = reached[problem.link_to] & ~reached[problem.link_from] & (rate > 0)
        links = np.flatnonzero(next_to)
        if len(links) == 0:
            return np.concatenate(chosen)
        tails = problem.link_from[links]
        chosen.append(links[best_per_tail(tails, rate[links], 1, problem.n_hosts)])
        reached[tails] = True


def may_suffice(expansion: TimeExpansion) -> bool:
    """Say whether all could arrive if every host that data can have reached had enough of them.

    A quick test before any flow: nothing comes from a relay before data have got there, and in
    one slot no more than it has room for. False proves that the slots are too few.

    Examples
    --------
    Nothing leaves the relay in slot 0, and 3 bytes in every later one.

    >>> import datacollect as dc
    >>> bandwidth = [[0, 9.0, 0], [0, 0, 3.0], [0, 0, 0]]
    >>> problem = dc.Problem.from_matrix(["S", "K", "D"], bandwidth, [6, 0, 0], "D")
    >>> [may_suffice(TimeExpansion(problem, 1.0, n_slots)) for n_slots in (2, 3)]
    [False, True]
    """
    problem, n_slots = expansion.problem, expansion.n_slots
    reached = np.full(problem.n_hosts, n_slots)  # the first boundary at which data can be there
    for pool in expansion.pools:
        released = slots_until(pool.release_s, expansion.slot_s)
        reached[pool.host] = min(reached[pool.host], released)
    last_links = np.flatnonzero(problem.link_to == expansion.sink)
    last_hosts = problem.link_from[last_links]
    room = problem.storage_bytes.copy()
    room[[pool.host for pool in expansion.pools if pool.is_own]] = np.inf  # own data need none
    arriving = 0.0
    for slot in range(n_slots):
        sending = reached <= slot
        sent = np.minimum(expansion.carried_bytes(slot)[last_links], room[last_hosts])
        arriving += sent[sending[last_hosts]].sum(dtype=float)
        not_yet = reached > slot + 1
        if not_yet.any():
            links = expansion.links_between(slot, sending, not_yet)
            reached[problem.link_to[links]] = slot + 1
    return bool(arriving >= sum(pool.n_bytes for pool in expansion.pools) * (1 - SAME_SUM))


def saturating(part: PartialGraph, budget: Budget) -> Found | None:
    """Return a graph, and a flow through it that empties all pools; None if none does."""
    while True:
        graph = part.graph
        supply = np.array([pool.n_bytes for pool in graph.pools], dtype=np.int64)
        nodes = np.array([pool.node for pool in graph.pools], dtype=np.int64)
        source = graph.n_nodes
        network = FlowNetwork(
            graph.n_nodes + 1,
            np.concatenate([graph.tail, np.full(len(nodes), source)]),
            np.concatenate([graph.head, nodes]),
            np.concatenate([graph.capacity_bytes, supply]),
        )
        flow = budget.flow_solver().max_flow(network, source, graph.sink)
        if int(flow[graph.n_arcs :].sum()) == int(supply.sum()):
            return part, flow[: graph.n_arcs]
        more = _across_cut(part, network, flow)
        if len(more) == 0:
            return None
        part = part.extended(more)


def _across_cut(part: PartialGraph, network: FlowNetwork, flow: IntArray) -> IntArray:
    """Keys of absent arcs across the minimum cut; none proves that the flow is maximum."""
    reached = source_side(network, flow, network.n_nodes - 1)
    backwards = FlowNetwork(network.n_nodes, network.head, network.tail, network.capacity)
    arriving = source_side(backwards, flow, part.graph.sink)
    # What leads directly to nodes with a next hop helps at once. Nodes in between, that neither
    # data reach nor have a next hop, matter only where that is not enough.
    direct = _crossing(part, reached, arriving)
    return direct if len(direct) else _crossing(part, reached, ~reached)


def _crossing(part: PartialGraph, begins: BoolArray, ends: BoolArray) -> IntArray:
    """Keys of absent arcs that lead from nodes that `begins` marks to those that `ends` marks."""
    expansion = part.expansion
    by_slot = [np.zeros(0, dtype=np.int64)]
    for slot in range(expansion.n_slots):
        leaves, enters = begins[expansion.leaves[slot]], ends[expansion.enters[slot]]
        if leaves.any() and enters.any():
            links = expansion.links_between(slot, leaves, enters)
            by_slot.append(slot * expansion.n_links + links)
    keys = np.concatenate(by_slot)
    return keys[part.absent(keys)]
