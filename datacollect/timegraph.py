"""The time-expanded graph: hosts times slots, for store-and-forward plans.

A copy of every host per slot boundary; an arc of a link leads from its sender at the slot's start
to its receiver at the slot's end; holdover arcs lead from a boundary to the next (Ford and
Fulkerson, Operations Research 6, 1958). A flow through it is a schedule in slots, and back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError
from datacollect.layered import NO_LINK
from datacollect.pools import pools_by_owner
from datacollect.slots import (
    SLOT_ROUNDING,
    require_slots,
    slot_bandwidth_bytes_per_s,
    slots_until,
    whole_slot_bytes,
)

if TYPE_CHECKING:
    import networkx as nx

    from datacollect.pools import Pool
    from datacollect.problem import Problem

IntArray: TypeAlias = npt.NDArray[np.int64]

# About 150 bytes of memory an arc, solver included: 6 GB.
MOST_ARCS = 40_000_000


# Costs stay below this over the square of the number of nodes: what 64-bit solvers bear.
COST_RANGE = 2**62


@dataclass(frozen=True, eq=False)
class TimeExpandedGraph:
    """Arcs with whole bytes of capacity; boundary t is the instant ``t * slot_s``.

    Attributes
    ----------
    slot_s : float
    n_slots : int
    n_nodes : int
    sink : int
        The destination, one node for all boundaries.
    node_host, node_boundary : ndarray of int, shape (n_nodes,)
        Host and boundary of each node.
    node_kind : ndarray of str, shape (n_nodes,)
        ``"host"``, ``"arrivals"`` (before a storage limit), ``"own"`` (a source's own data),
        ``"uplink"`` or ``"downlink"`` (host limits).
    tail, head : ndarray of int, shape (n_arcs,)
    capacity_bytes : ndarray of int64, shape (n_arcs,)
    slot : ndarray of int, shape (n_arcs,)
        The slot of a link's arc; for other arcs the boundary or slot they belong to.
    link : ndarray of int, shape (n_arcs,)
        The problem's link that the arc stands for, or -1.
    stored : ndarray of bool, shape (n_arcs,)
        Holdover arcs of others' data.
    pools : tuple of Pool
        Where data enter.
    """

    slot_s: float
    n_slots: int
    n_nodes: int
    sink: int
    node_host: IntArray
    node_boundary: IntArray
    node_kind: npt.NDArray[np.str_]
    tail: IntArray
    head: IntArray
    capacity_bytes: IntArray
    slot: IntArray
    link: IntArray
    stored: npt.NDArray[np.bool_]
    pools: tuple[Pool, ...]

    @property
    def n_arcs(self) -> int:
        """Number of arcs."""
        return len(self.tail)

    def to_networkx(self, problem: Problem) -> nx.DiGraph[tuple[str, int, str]]:
        """Return a DiGraph with nodes (host, boundary, kind).

        Arcs carry ``capacity`` (bytes) and ``slot``; nodes carry ``demand`` as networkx's
        ``network_simplex`` reads it: negative where data enter.
        """
        import networkx as nx

        labels = [
            (problem.names[host], boundary, str(kind))
            for host, boundary, kind in zip(
                self.node_host.tolist(), self.node_boundary.tolist(), self.node_kind, strict=True
            )
        ]
        graph: nx.DiGraph[tuple[str, int, str]] = nx.DiGraph(
            slot_s=self.slot_s, sink=labels[self.sink]
        )
        graph.add_nodes_from(labels, demand=0)
        for pool in self.pools:
            graph.nodes[labels[pool.node]]["demand"] -= pool.n_bytes
            graph.nodes[labels[self.sink]]["demand"] += pool.n_bytes
        graph.add_edges_from(
            (labels[tail], labels[head], {"capacity": capacity, "slot": slot})
            for tail, head, capacity, slot in zip(
                self.tail.tolist(),
                self.head.tolist(),
                self.capacity_bytes.tolist(),
                self.slot.tolist(),
                strict=True,
            )
        )
        return graph


def time_expanded_graph(problem: Problem, slot_s: float, n_slots: int) -> TimeExpandedGraph:
    """Build the time-expanded graph of a problem.

    Parameters
    ----------
    problem : Problem
        Shared bottlenecks are no network structure and not part of the graph, but links whose
        bottleneck carries less than a byte per slot are left out.
    slot_s : float
        Length of a slot in seconds.
    n_slots : int
        Number of slots.

    Raises
    ------
    ProblemError
        The graph would not fit in memory, or a number is out of range.

    Notes
    -----
    In every slot a link carries its bandwidth times ``slot_s``, rounded down to whole bytes; a
    slot that straddles two periods has the lower bandwidth. Data released inside a slot can leave
    in the next. A storage limit counts what is at a host at slot boundaries.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> graph = dc.time_expanded_graph(problem, slot_s=1.0, n_slots=2)
    >>> graph.capacity_bytes[graph.link >= 0].tolist()
    [5, 5]
    """
    if not (0 < slot_s < np.inf and n_slots >= 1):
        raise ProblemError(f"slot_s must be > 0 and n_slots >= 1, got {slot_s} and {n_slots}")
    require_slots(n_slots)
    n_arcs = (problem.n_links + 2 * problem.n_hosts) * n_slots
    if n_arcs > MOST_ARCS:
        raise ProblemError(
            f"the time-expanded graph of {problem.n_links} links and {n_slots} slots would have "
            f"{n_arcs:.2g} arcs, at most {MOST_ARCS:.2g} fit; use a longer slot or a pipelined plan"
        )
    builder = _Builder(problem, slot_s, n_slots)
    for slot in range(n_slots):
        builder.add_links(slot)
    builder.add_holdover()
    return builder.finish()


def slot_costs(graph: TimeExpandedGraph) -> IntArray:
    """Cost per byte of each arc: arrival slot first, then hops, then slots in storage.

    One path's weights are in strict order as long as solvers bear the numbers; on very large
    graphs the weights of storage and hops shrink to the smallest that still prefer less.
    """
    most_hops = min(graph.n_slots, int(graph.node_host.max(initial=0)) + 1)
    hop = graph.n_slots + 1
    arrival = hop * (most_hops + 1)
    if arrival * (graph.n_slots + 1) >= COST_RANGE // max(graph.n_nodes, 1) ** 2:
        hop, arrival = 2, 8
    cost = np.where(graph.link >= 0, hop, 0) + graph.stored
    arrives = (graph.head == graph.sink) & (graph.link >= 0)
    cost[arrives] += arrival * graph.slot[arrives]
    return cost.astype(np.int64)


class _Builder:
    """Hands out node numbers and collects arcs."""

    def __init__(self, problem: Problem, slot_s: float, n_slots: int) -> None:
        self.problem, self.slot_s, self.n_slots = problem, slot_s, n_slots
        self.n = problem.n_hosts
        self.sink = problem.destination_index
        self.most = max(problem.total_bytes, 1)
        self.n_nodes = 0
        self.nodes: list[tuple[IntArray, IntArray, str]] = []
        self.columns: list[tuple[IntArray, ...]] = []
        hosts = np.arange(self.n)
        limited = np.isfinite(problem.storage_bytes)
        limited[self.sink] = False
        boundaries = range(n_slots + 1)
        self.host_node = np.stack([self._new(hosts, b, "host") for b in boundaries])
        self.host_node[:, self.sink] = self.sink
        self.limited = np.flatnonzero(limited)
        # Others' data enter a limited host here, and pass its storage limit to be at `host_node`.
        self.entry_node = self.host_node.copy()
        for boundary in boundaries:
            self.entry_node[boundary, self.limited] = self._new(self.limited, boundary, "arrivals")

    def _new(self, hosts: IntArray, boundary: int, kind: str) -> IntArray:
        nodes = self.n_nodes + np.arange(len(hosts))
        self.nodes.append((hosts, np.full(len(hosts), boundary), kind))
        self.n_nodes += len(hosts)
        return nodes

    def _add(
        self,
        tail: IntArray,
        head: IntArray,
        capacity: IntArray | int,
        slot: int,
        *,
        link: IntArray | int = NO_LINK,
        stored: int = 0,
    ) -> None:
        parts = (tail, head, capacity, slot, link, stored)
        self.columns.append(
            tuple(np.broadcast_to(np.asarray(part, dtype=np.int64), tail.shape) for part in parts)
        )

    def add_links(self, slot: int) -> None:
        problem = self.problem
        rate = slot_bandwidth_bytes_per_s(problem, slot, self.slot_s)
        carried = whole_slot_bytes(rate, self.slot_s, self.most)
        for shared, links in zip(problem.shared, problem.shared_links, strict=True):
            if shared.bandwidth_bytes_per_s * self.slot_s * (1 + SLOT_ROUNDING) < 1:
                carried[links] = 0
        used = np.flatnonzero((carried > 0) & (problem.link_from != self.sink))
        sender, receiver = problem.link_from[used], problem.link_to[used]
        tail = self._limited(self.host_node[slot], problem.uplink_bytes_per_s, sender, slot, "up")
        head = self._limited(
            self.entry_node[slot + 1], problem.downlink_bytes_per_s, receiver, slot, "down"
        )
        self._add(tail, head, carried[used], slot, link=used)

    def _limited(
        self,
        node_of: IntArray,
        limit: npt.NDArray[np.float64],
        hosts: npt.NDArray[np.integer],
        slot: int,
        which: str,
    ) -> IntArray:
        """Return the nodes at which links end, behind arcs for finite host limits."""
        limited = np.unique(hosts[np.isfinite(limit[hosts])]).astype(np.int64)
        ends: IntArray = node_of[hosts]
        if len(limited) == 0:
            return ends
        gates = self._new(limited, slot, f"{which}link")
        inner = node_of[limited]
        tail, head = (inner, gates) if which == "up" else (gates, inner)
        self._add(tail, head, whole_slot_bytes(limit[limited], self.slot_s, self.most), slot)
        gate_of = np.full(self.n, -1, dtype=np.int64)
        gate_of[limited] = gates
        return np.asarray(np.where(gate_of[hosts] >= 0, gate_of[hosts], ends))

    def add_holdover(self) -> None:
        """Let others' data wait, within the storage limit of every boundary."""
        keepers = np.flatnonzero(np.arange(self.n) != self.sink)
        room = np.minimum(self.problem.storage_bytes[self.limited], self.most).astype(np.int64)
        for boundary in range(self.n_slots + 1):
            if len(self.limited):
                entry = self.entry_node[boundary, self.limited]
                self._add(entry, self.host_node[boundary, self.limited], room, boundary)
            if boundary < self.n_slots:
                tail = self.host_node[boundary, keepers]
                self._add(
                    tail, self.entry_node[boundary + 1, keepers], self.most, boundary, stored=1
                )

    def _pools(self) -> list[Pool]:
        return [
            replace(
                pool,
                node=self._own_chain(pool.host, pool.release_s)
                if pool.is_own
                else int(self.entry_node[0, pool.host]),
            )
            for pool in pools_by_owner(self.problem)
        ]

    def _own_chain(self, host: int, release_s: float) -> int:
        """Own data wait at the source outside its room for others' data, until they leave."""
        first = min(slots_until(release_s, self.slot_s), self.n_slots)
        chain = np.concatenate(
            [self._new(np.array([host]), b, "own") for b in range(first, self.n_slots + 1)]
        )
        boundaries = np.arange(first, self.n_slots + 1)
        self._add(chain[:-1], chain[1:], self.most, first)
        self._add(chain, self.host_node[boundaries, host], self.most, first)
        return int(chain[0])

    def finish(self) -> TimeExpandedGraph:
        pools = self._pools()
        tail, head, capacity, slot, link, stored = (
            np.concatenate(column) for column in zip(*self.columns, strict=True)
        )
        hosts, boundaries, kinds = zip(*self.nodes, strict=True)
        return TimeExpandedGraph(
            slot_s=self.slot_s,
            n_slots=self.n_slots,
            n_nodes=self.n_nodes,
            sink=self.sink,
            node_host=np.concatenate(hosts),
            node_boundary=np.concatenate(boundaries),
            node_kind=np.repeat(np.array(kinds), [len(h) for h in hosts]),
            tail=tail,
            head=head,
            capacity_bytes=capacity,
            slot=slot,
            link=link,
            stored=stored.astype(bool),
            pools=tuple(pools),
        )
