"""The time-expanded graph: hosts times slots, for store-and-forward plans.

A copy of every host per slot boundary; an arc of a link leads from its sender at the slot's start
to its receiver at the slot's end; holdover arcs lead from a boundary to the next (Ford and
Fulkerson, Operations Research 6, 1958). A flow through it is a schedule in slots, and back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError
from datacollect.files.units import counted
from datacollect.files.with_units import DURATION, in_units, in_whole
from datacollect.flow.network.layered import NO_LINK
from datacollect.flow.network.pools import pools_by_owner
from datacollect.flow.network.preference import arc_costs
from datacollect.methods.timing.slots import (
    require_slots,
    slot_bandwidth_bytes_per_s,
    slot_bandwidth_row,
    slot_limits_bytes_per_s,
    slots_until,
    whole_slot_bytes,
)
from datacollect.methods.timing.tolerances import SLOT_ROUNDING
from datacollect.numbers.arrays import BoolArray, IntArray, ranges

if TYPE_CHECKING:
    import networkx as nx

    from datacollect.files.quantities import Seconds
    from datacollect.flow.network.pools import Pool
    from datacollect.flow.network.preference import Costs
    from datacollect.problem.problem import Problem


# About 150 bytes of memory an arc, solver included: 6 GB.
MOST_ARCS = 40_000_000

# To look up a link by its ends takes about as long as to pass this many links by.
LOOKED_UP = 20


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

    def __repr__(self) -> str:
        slots, nodes = counted(self.n_slots, "slot"), counted(self.n_nodes, "node")
        return f"<TimeExpandedGraph: {slots} of {self.slot_s:g} s, {nodes}, {self.n_arcs} arcs>"

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


def time_expanded_graph(problem: Problem, slot_s: Seconds, n_slots: int) -> TimeExpandedGraph:
    """Build the time-expanded graph of a problem.

    Parameters
    ----------
    problem : Problem
        Shared bottlenecks are no network structure and not part of the graph, but links whose
        bottleneck carries less than a byte per slot are left out.
    slot_s : float or str
        Length of a slot in seconds, or as a text: ``"5 min"``.
    n_slots : int
        Number of slots.

    Returns
    -------
    TimeExpandedGraph
        Nodes are hosts at slot boundaries, arcs links in slots and data that wait.

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
    n_slots = in_whole(n_slots, "n_slots")
    require_slots(n_slots)
    _require_memory((problem.n_links + 2 * problem.n_hosts) * n_slots, problem, n_slots)
    expansion = TimeExpansion(problem, in_units(slot_s, DURATION, "slot_s"), n_slots)
    return expansion.graph(*expansion.all_arcs())


def _require_memory(n_arcs: int, problem: Problem, n_slots: int) -> None:
    if n_arcs > MOST_ARCS:
        raise ProblemError(
            f"the time-expanded graph of {problem.n_hosts} hosts, {problem.n_links} links and "
            f"{n_slots} slots would have {n_arcs:.2g} arcs, at most {MOST_ARCS:.2g} fit; use a "
            "longer slot or a pipelined plan"
        )


def slot_costs(costs: Costs, graph: TimeExpandedGraph) -> IntArray:
    """Cost per byte of each arc.

    Storage counts at slot boundaries: what arrives at a relay is there at one, and at one more for
    every slot in which it waits. Else two relays could pass data to and fro for free.

    Parameters
    ----------
    costs : Costs
        Of `datacollect.flow.network.preference.path_costs`, for the graph's slots.
    graph : TimeExpandedGraph
    """
    relayed = (graph.link >= 0) & (graph.node_host[graph.head] != graph.sink)
    last = len(costs.stored) - 1
    arriving = np.where(relayed, costs.stored[np.minimum(graph.slot, last)], 0)
    return arc_costs(costs, graph, graph.slot) + arriving


class TimeExpansion:
    """All nodes of a time-expanded graph and all arcs but those of links.

    Nodes and other arcs are few, links times slots are many: a plan needs few of them. `graph`
    adds those that are asked for; node numbers do not depend on which these are.

    Parameters
    ----------
    problem : Problem
    slot_s : float
    n_slots : int

    Attributes
    ----------
    leaves, enters : ndarray of int, shape (n_slots, n_hosts)
        Where the arcs of a slot that lead out of a host begin, and those that lead to it end.
    pools : tuple of Pool
        Where data enter.

    Examples
    --------
    >>> import numpy as np
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> expansion = TimeExpansion(problem, slot_s=1.0, n_slots=3)
    >>> expansion.carried_bytes(2).tolist()
    [5]
    >>> graph = expansion.graph(link=np.array([0]), slot=np.array([2]))
    >>> graph.slot[graph.link >= 0].tolist()
    [2]
    """

    def __init__(self, problem: Problem, slot_s: float, n_slots: int) -> None:
        if not (0 < slot_s < np.inf and n_slots >= 1):
            raise ProblemError(f"slot_s must be > 0 and n_slots >= 1, got {slot_s} and {n_slots}")
        require_slots(n_slots)
        _require_memory(2 * problem.n_hosts * n_slots, problem, n_slots)
        self.problem, self.slot_s, self.n_slots = problem, slot_s, n_slots
        self.n_hosts = problem.n_hosts
        self.sink = problem.destination_index
        self.most = max(problem.total_bytes, 1)
        self.n_nodes = 0
        self._nodes: list[tuple[IntArray, IntArray, str]] = []
        self._columns: list[tuple[IntArray, ...]] = []
        self._carried = self._carried_by_slot()
        limited = np.isfinite(problem.storage_bytes)
        limited[self.sink] = False
        self._add_hosts(np.flatnonzero(limited))
        self.leaves, self.enters = self.host_node[:-1].copy(), self.entry_node[1:].copy()
        for slot in range(n_slots):
            self._add_gates(slot)
        self._add_holdover(np.flatnonzero(limited))
        self.pools = tuple(self._pools())

    @property
    def n_links(self) -> int:
        """Number of links, with an arc each in every slot in which they carry anything."""
        return self.problem.n_links

    def carried_bytes(self, slot: int) -> IntArray:
        """Whole bytes that each link carries in a slot; shape (n_links,)."""
        return self._carried[slot]

    def links_between(self, slot: int, senders: BoolArray, receivers: BoolArray) -> IntArray:
        """Return the links that carry anything in a slot from some hosts to others, sorted.

        Parameters
        ----------
        slot : int
        senders, receivers : ndarray of bool, shape (n_hosts,)
        """
        problem = self.problem
        tails, heads = np.flatnonzero(senders), np.flatnonzero(receivers)
        if LOOKED_UP * len(tails) * len(heads) < problem.n_links:
            pairs = np.repeat(tails, len(heads)), np.tile(heads, len(tails))
            links = problem.link_indices(*pairs)
            links = links[links >= 0]
        else:
            links = np.flatnonzero(senders[problem.link_from] & receivers[problem.link_to])
        return links[self.carried_bytes(slot)[links] > 0]

    def _carried_by_slot(self) -> list[IntArray]:
        """Return what links carry, one array for all slots that touch the same periods."""
        problem = self.problem
        known: dict[tuple[int, ...], IntArray] = {}
        by_slot = []
        for slot in range(self.n_slots):
            periods = tuple(slot_bandwidth_row(problem, slot, self.slot_s).tolist())
            if periods not in known:
                rate = slot_bandwidth_bytes_per_s(problem, slot, self.slot_s)
                known[periods] = self._usable_bytes(rate)
            by_slot.append(known[periods])
        return by_slot

    def _usable_bytes(self, rate_bytes_per_s: npt.NDArray[np.float64]) -> IntArray:
        """Whole bytes per slot; none out of the destination or through a wire without room."""
        problem = self.problem
        carried = whole_slot_bytes(rate_bytes_per_s, self.slot_s, self.most)
        for shared, links in zip(problem.shared, problem.shared_links, strict=True):
            if shared.bandwidth_bytes_per_s * self.slot_s * (1 + SLOT_ROUNDING) < 1:
                carried[links] = 0
        carried[problem.link_from == self.sink] = 0
        return carried

    def all_arcs(self) -> tuple[IntArray, IntArray]:
        """Links and slots of all arcs that carry anything."""
        links = [np.flatnonzero(self.carried_bytes(slot)) for slot in range(self.n_slots)]
        slots = np.repeat(np.arange(self.n_slots), [len(used) for used in links])
        return np.concatenate(links), slots

    def graph(self, link: IntArray, slot: IntArray) -> TimeExpandedGraph:
        """Build the graph that has these arcs of links: ``link[i]`` in ``slot[i]``.

        Slots must be sorted.

        Raises
        ------
        ProblemError
            The graph would not fit in memory.
        """
        _require_memory(len(link), self.problem, self.n_slots)
        bounds = np.searchsorted(slot, np.arange(self.n_slots + 1))
        carried = [
            self.carried_bytes(k)[link[begin:end]]
            for k, (begin, end) in enumerate(pairwise(bounds))
        ]
        fixed = [np.concatenate(column) for column in zip(*self._columns, strict=True)]
        tail = self.leaves[slot, self.problem.link_from[link]]
        head = self.enters[slot, self.problem.link_to[link]]
        of_links = [tail, head, np.concatenate(carried), slot, link, np.zeros(len(link), np.int64)]
        tail, head, capacity, slot, link, stored = (
            np.concatenate(parts) for parts in zip(of_links, fixed, strict=True)
        )
        hosts, boundaries, kinds = zip(*self._nodes, strict=True)
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
            pools=self.pools,
        )

    def add_exits(self, hosts: IntArray) -> None:
        """Let data that are at `hosts` after the last slot count as arrived."""
        hosts = hosts[hosts != self.sink]
        own = [pool.node for pool in self.pools if pool.is_own and pool.host in hosts]
        nodes = np.append(self.host_node[-1, hosts], np.array(own, dtype=np.int64))
        self._add(nodes, np.full(len(nodes), self.sink), self.most, self.n_slots)

    def _new(self, hosts: IntArray, boundary: IntArray | int, kind: str) -> IntArray:
        nodes = self.n_nodes + np.arange(len(hosts))
        self._nodes.append((hosts, np.broadcast_to(boundary, hosts.shape), kind))
        self.n_nodes += len(hosts)
        return nodes

    def _add(
        self,
        tail: IntArray,
        head: IntArray,
        capacity: IntArray | int,
        slot: IntArray | int,
        *,
        stored: int = 0,
    ) -> None:
        parts = (tail, head, capacity, slot, NO_LINK, stored)
        # There may be millions of small ones: filling is several times as fast as broadcasting.
        self._columns.append(tuple(np.full(tail.shape, part, dtype=np.int64) for part in parts))

    def _add_hosts(self, limited: IntArray) -> None:
        hosts, boundaries = np.arange(self.n_hosts), np.arange(self.n_slots + 1)
        shape = (len(boundaries), len(hosts))
        nodes = self._new(np.tile(hosts, shape[0]), np.repeat(boundaries, shape[1]), "host")
        self.host_node = nodes.reshape(shape)
        self.host_node[:, self.sink] = self.sink
        # Others' data enter a limited host here, and pass its storage limit to be at `host_node`.
        self.entry_node = self.host_node.copy()
        if len(limited):
            shape = (len(boundaries), len(limited))
            entries = np.tile(limited, shape[0]), np.repeat(boundaries, shape[1])
            self.entry_node[:, limited] = self._new(*entries, "arrivals").reshape(shape)

    def _add_gates(self, slot: int) -> None:
        """Put arcs for finite host limits before what leaves, and behind what enters."""
        problem = self.problem
        uplink, downlink = slot_limits_bytes_per_s(problem, slot, self.slot_s)
        for limit, ends, ends_of, kind in (
            (uplink, problem.link_from, self.leaves, "uplink"),
            (downlink, problem.link_to, self.enters, "downlink"),
        ):
            limited = np.flatnonzero(np.isfinite(limit))
            if len(limited) == 0:
                continue
            in_use = np.zeros(self.n_hosts, dtype=bool)
            in_use[ends[self.carried_bytes(slot) > 0]] = True
            limited = limited[in_use[limited]]
            gates = self._new(limited, slot, kind)
            inner = ends_of[slot, limited]
            tail, head = (inner, gates) if kind == "uplink" else (gates, inner)
            self._add(tail, head, whole_slot_bytes(limit[limited], self.slot_s, self.most), slot)
            ends_of[slot, limited] = gates

    def _add_holdover(self, limited: IntArray) -> None:
        """Let others' data wait, within the storage limit of every boundary."""
        keepers = np.flatnonzero(np.arange(self.n_hosts) != self.sink)
        boundaries = np.arange(self.n_slots + 1)
        tail, head = self.host_node[:-1, keepers].ravel(), self.entry_node[1:, keepers].ravel()
        self._add(tail, head, self.most, np.repeat(boundaries[:-1], len(keepers)), stored=1)
        if len(limited):
            room = np.minimum(self.problem.storage_bytes[limited], self.most).astype(np.int64)
            tail, head = self.entry_node[:, limited].ravel(), self.host_node[:, limited].ravel()
            slots = np.repeat(boundaries, len(limited))
            self._add(tail, head, np.tile(room, len(boundaries)), slots)

    def _pools(self) -> list[Pool]:
        """Own data wait outside their source's room for others' data, until they leave."""
        pools = pools_by_owner(self.problem)
        own = [pool for pool in pools if pool.is_own]
        hosts = np.array([pool.host for pool in own], dtype=np.int64)
        first = np.array(
            [min(slots_until(pool.release_s, self.slot_s), self.n_slots) for pool in own],
            dtype=np.int64,
        )
        nodes = self._new(hosts, first, "own")
        waits = self.n_slots - first
        boundaries = ranges(first, waits)
        leaving = self.host_node[boundaries, np.repeat(hosts, waits)]
        self._add(np.repeat(nodes, waits), leaving, self.most, boundaries)
        own_nodes = iter(nodes.tolist())
        return [
            replace(
                pool,
                node=next(own_nodes) if pool.is_own else int(self.entry_node[0, pool.host]),
            )
            for pool in pools
        ]
