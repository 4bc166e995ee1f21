"""Routes over a topology, for simulators: computed once, the same everywhere.

Routers forward by destination: one table says for each node and destination which wire to take.
Among shortest routes the wire with the lowest index is taken, so the table depends on the
topology alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.topologies.rules import component_labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from datacollect.numbers.arrays import FloatArray, IndexArray, IntArray
    from datacollect.topologies.wiring import Wiring

WEIGHTS = ("hops", "delay")
# Delays are compared in whole nanoseconds: sums are exact, and ties are ties on every machine.
NANOSECONDS_PER_S = 1e9
# Whole numbers below this are exact as floats.
_EXACT = 2.0**53


@dataclass(frozen=True, eq=False)
class Routes:
    """Forwarding tables of all nodes towards some destinations.

    Attributes
    ----------
    topology : Wiring
    destinations : tuple of str
    next_wire : ndarray of int32, shape (n_destinations, n_nodes)
        Index of the wire that a node sends on towards the destination; -1 at the destination.

    Examples
    --------
    >>> from datacollect.topologies import line
    >>> routes = line(4, rate_bytes_per_s=1e6, delay_s=0.01).shortest_routes()
    >>> routes.path("N0", "N2"), round(routes.delay_s("N0", "N2"), 3)
    (('N0', 'N1', 'N2'), 0.02)
    """

    topology: Wiring
    destinations: tuple[str, ...]
    next_wire: IndexArray

    def path(self, from_node: str, to_node: str) -> tuple[str, ...]:
        """Return the nodes that packets visit, both ends included."""
        return tuple(self.topology.names[i] for i in self._steps(from_node, to_node)[1])

    def wires(self, from_node: str, to_node: str) -> tuple[int, ...]:
        """Return the indices of the wires that packets take, in order."""
        return tuple(self._steps(from_node, to_node)[0])

    def directed_wires(self, from_node: str, to_node: str) -> tuple[tuple[int, int], ...]:
        """Return each wire with its direction: the row and column of `rate_bytes_per_s`."""
        wires, nodes = self._steps(from_node, to_node)
        tail = self.topology.wire_from
        return tuple(
            (wire, int(tail[wire] != node)) for wire, node in zip(wires, nodes[:-1], strict=True)
        )

    def delay_s(self, from_node: str, to_node: str) -> float:
        """Return the propagation time one way."""
        return float(self.topology.delay_s[list(self.wires(from_node, to_node))].sum())

    def rate_bytes_per_s(self, from_node: str, to_node: str) -> float:
        """Return the rate of the slowest wire of the route; infinite from a node to itself."""
        rates = [
            self.topology.rate_bytes_per_s[at] for at in self.directed_wires(from_node, to_node)
        ]
        return float(min(rates, default=np.inf))

    @cached_property
    def _row(self) -> Mapping[str, int]:
        return {name: i for i, name in enumerate(self.destinations)}

    def _steps(self, from_node: str, to_node: str) -> tuple[list[int], list[int]]:
        if to_node not in self._row:
            self.topology.node_index(to_node)
            raise ProblemError(
                f"no routes to {to_node!r} were computed; name it among the destinations of "
                "shortest_routes" + nearest_hint(to_node, self.destinations)
            )
        table = self.next_wire[self._row[to_node]]
        tail, head = self.topology.wire_from, self.topology.wire_to
        here = self.topology.node_index(from_node)
        wires: list[int] = []
        nodes = [here]
        while table[here] >= 0:
            wire = int(table[here])
            here = int(head[wire] if tail[wire] == here else tail[wire])
            wires.append(wire)
            nodes.append(here)
        return wires, nodes


def shortest_routes(
    topology: Wiring,
    destinations: Iterable[str] | None = None,
    *,
    weight: str = "hops",
    hot_potato: bool = False,
) -> Routes:
    """Compute the route from every node to each destination.

    Parameters
    ----------
    topology : Wiring
    destinations : iterable of str, optional
        Names of nodes; all nodes by default.
    weight : {"hops", "delay"}
        What is shortest: the number of wires, or their delays, in whole nanoseconds, and where
        these tie the number of wires. Remaining ties go to the wire with the lowest index.
    hot_potato : bool
        Peering wires cut the topology into regions, each run by someone of its own, who hands a
        packet for another region over at the nearest peering wire that leads there, whatever the
        way beyond. A packet crosses as few regions as possible. Routes are then in general not
        the shortest, and differ there and back.

    Raises
    ------
    ProblemError
        Unknown names or weight; hot-potato routing without peering wires, or where a region is
        connected around a peering wire.

    References
    ----------
    R. Teixeira, A. Shaikh, T. Griffin, J. Rexford, "Dynamics of hot-potato routing in IP
    networks", ACM SIGMETRICS 2004.

    Examples
    --------
    >>> from datacollect.topologies import two_domains
    >>> topology = two_domains(hosts_a=("D", "K"), hosts_b=("S0", "S1"))
    >>> topology.shortest_routes().path("S1", "D")
    ('S1', 'B1', 'A1', 'A0', 'D')
    """
    names = topology.names if destinations is None else tuple(destinations)
    targets = np.array([topology.node_index(name) for name in names], dtype=np.int64)
    if len(set(names)) < len(names):
        raise ProblemError(f"destinations must differ, got {list(names)}")
    cost = _costs(topology, weight)
    if hot_potato:
        next_wire = _hot_potato(topology, cost, targets)
    else:
        _, next_wire = _tables(topology, cost, targets, np.ones(topology.n_wires, dtype=bool))
    next_wire.flags.writeable = False
    return Routes(topology, names, next_wire)


def regions(topology: Wiring) -> IntArray:
    """Return for each node its region: what stays connected without the peering wires.

    Regions are counted from 0, by their first node.
    """
    inside = ~_is_peering(topology)
    return component_labels(topology.n_nodes, topology.wire_from[inside], topology.wire_to[inside])


def _is_peering(topology: Wiring) -> npt.NDArray[np.bool_]:
    return np.array([kind == "peering" for kind in topology.wire_kinds], dtype=bool)


def _costs(topology: Wiring, weight: str) -> FloatArray:
    """Return what a route adds up, as whole numbers > 0, shape (n_wires,)."""
    if weight not in WEIGHTS:
        raise ProblemError(
            f"weight must be 'hops' or 'delay', got {weight!r}" + nearest_hint(str(weight), WEIGHTS)
        )
    if weight == "hops":
        return np.ones(topology.n_wires)
    # A route has fewer wires than there are nodes: they decide only where delays tie.
    cost: FloatArray = np.round(topology.delay_s * NANOSECONDS_PER_S) * topology.n_nodes + 1
    if cost.sum() >= _EXACT:
        longest = int(np.argmax(topology.delay_s))
        raise ProblemError(
            f"wire {topology.wire_names[longest]!r}: delay_s is too long to compare routes "
            f"exactly, got {topology.delay_s[longest]:g}; use weight='hops'"
        )
    return cost


def _tables(
    topology: Wiring, cost: FloatArray, targets: IntArray, usable: npt.NDArray[np.bool_]
) -> tuple[FloatArray, IndexArray]:
    """Distances to targets and next wires, shape (n_targets, n_nodes), over usable wires only.

    Unreachable: infinite and -1.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    wires = np.flatnonzero(usable)
    a, b = topology.wire_from[wires], topology.wire_to[wires]
    n = topology.n_nodes
    graph = coo_array((cost[wires], (a, b)), shape=(n, n)).tocsr()
    distance = np.atleast_2d(dijkstra(graph, directed=False, indices=targets))
    tail, head, wire = np.concatenate([a, b]), np.concatenate([b, a]), np.tile(wires, 2)
    next_wire = np.full((len(targets), n), topology.n_wires, dtype=np.int32)
    for row, far in zip(next_wire, distance, strict=True):
        on_a_shortest = np.isfinite(far[tail]) & (far[head] + cost[wire] == far[tail])
        np.minimum.at(row, tail[on_a_shortest], wire[on_a_shortest].astype(np.int32))
    next_wire[next_wire == topology.n_wires] = -1
    return distance, next_wire


def _hot_potato(topology: Wiring, cost: FloatArray, targets: IntArray) -> IndexArray:
    region = regions(topology)
    peering = np.flatnonzero(_is_peering(topology))
    _reject_unfit_peering(topology, region, peering)
    tail = np.concatenate([topology.wire_from[peering], topology.wire_to[peering]])
    head = np.concatenate([topology.wire_to[peering], topology.wire_from[peering]])
    exits = sorted(zip(np.tile(peering, 2).tolist(), tail.tolist(), head.tolist(), strict=True))
    gates = np.unique(tail)
    all_targets = np.unique(np.concatenate([targets, gates]))
    distance, inside = _tables(topology, cost, all_targets, ~_is_peering(topology))
    row_of = {int(node): row for row, node in enumerate(all_targets)}
    n_crossed = _region_hops(region, tail, head)

    next_wire = np.empty((len(targets), topology.n_nodes), dtype=np.int32)
    for there in np.unique(region[targets]).tolist():
        leave = np.full(topology.n_nodes, -1, dtype=np.int32)
        nearest = np.full(topology.n_nodes, np.inf)
        for wire, gate, beyond in exits:
            here = region[gate]
            if n_crossed[region[beyond], there] + 1 != n_crossed[here, there]:
                continue
            far = distance[row_of[gate]]  # infinite outside the gate's region
            nearer = far < nearest  # ties: the wire with the lowest index came first
            nearest[nearer] = far[nearer]
            leave[nearer] = inside[row_of[gate]][nearer]
            if nearer[gate]:
                leave[gate] = wire
        for row in np.flatnonzero(region[targets] == there).tolist():
            within = inside[row_of[int(targets[row])]]
            next_wire[row] = np.where(region == there, within, leave)
    return next_wire


def _region_hops(region: IntArray, tail: IndexArray, head: IndexArray) -> FloatArray:
    """Peering wires that a packet crosses from region to region at least."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    n = int(region.max()) + 1
    graph = coo_array((np.ones(len(tail)), (region[tail], region[head])), shape=(n, n)).tocsr()
    hops: FloatArray = shortest_path(graph, unweighted=True)
    return hops


def _reject_unfit_peering(topology: Wiring, region: IntArray, peering: IntArray) -> None:
    if not len(peering):
        raise ProblemError(
            "hot-potato routing needs peering wires, got none; "
            "mark them with kind='peering', or route without hot_potato"
        )
    for wire in peering.tolist():
        if region[topology.wire_from[wire]] == region[topology.wire_to[wire]]:
            raise ProblemError(
                f"wire {topology.wire_names[wire]!r}: hot-potato routing needs peering wires that "
                "separate regions, but its ends are connected without any peering wire; remove "
                "the way around, or route without hot_potato"
            )
