"""The layered network: constant pieces of time, joined by storage.

Between two instants at which something changes (a forecast's period begins, a backlog is
released) all capacities are constant, so one copy of the static network per piece, joined by
holdover arcs between copies, describes every fluid plan exactly; transit takes no time (Hajek
and Ogier, Networks 14, 1984; Fleischer, SIAM J. Optimization 12, 2001). Where nothing changes
there is one piece, and the layered network is the static one.

Within a piece rates are constant, hence what a host stores changes linearly: a limit that holds
at the boundaries holds in between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from datacollect.flow.network.pools import pools_by_host, pools_by_owner
from datacollect.numbers.arrays import FloatArray, IntArray, ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.flow.network.pools import Pool
    from datacollect.problem.problem import Problem


NO_LINK = -1


class Entries(NamedTuple):
    """At which node, and host, each parcel enters, and whose data it is; shape (n_parcels,)."""

    node: IntArray
    host: IntArray
    source: IntArray


@dataclass(frozen=True, eq=False)
class LayeredNetwork:
    """Nodes, arcs and supplies, all quantities in bytes and seconds.

    Attributes
    ----------
    n_nodes : int
    sink : int
        The destination, one node for all pieces.
    node_host : ndarray of int, shape (n_nodes,)
        The host that a node belongs to.
    tail, head : ndarray of int, shape (n_arcs,)
    rate_bytes_per_s : ndarray of float, shape (n_arcs,)
        An arc carries this much per second of its piece; infinite for holdover arcs.
    room_bytes : ndarray of float, shape (n_arcs,)
        What a holdover arc carries; infinite for arcs with a rate.
    piece : ndarray of int, shape (n_arcs,)
    link : ndarray of int, shape (n_arcs,)
        The problem's link that the arc stands for, or `NO_LINK`.
    starts_s : ndarray of float, shape (n_pieces,)
    pools : tuple of Pool
        Where data enter.
    stored : ndarray of bool, shape (n_arcs,)
        Holdover arcs of others' data.
    """

    n_nodes: int
    sink: int
    node_host: IntArray
    tail: IntArray
    head: IntArray
    rate_bytes_per_s: FloatArray
    room_bytes: FloatArray
    piece: IntArray
    link: IntArray
    stored: npt.NDArray[np.bool_]
    starts_s: FloatArray
    pools: tuple[Pool, ...]

    @property
    def n_arcs(self) -> int:
        """Number of arcs."""
        return len(self.tail)

    @property
    def n_pieces(self) -> int:
        """Number of pieces of time."""
        return len(self.starts_s)

    @cached_property
    def n_hosts(self) -> int:
        """Number of hosts: of nodes in each piece of time."""
        return int(self.node_host.max()) + 1

    def is_apart(self, node: int) -> bool:
        """Return whether own data wait at a node besides the hosts' own."""
        return node >= self.n_hosts * self.n_pieces

    @cached_property
    def pool_nodes(self) -> IntArray:
        """Nodes of the pools, shape (n_pools,)."""
        return np.array([pool.node for pool in self.pools], dtype=np.int64)

    @cached_property
    def pool_bytes(self) -> FloatArray:
        """Bytes of the pools, shape (n_pools,)."""
        return np.array([pool.n_bytes for pool in self.pools], dtype=float)

    @cached_property
    def entries(self) -> Entries:
        """Return where parcels enter, in the order of pools."""
        rows = [(p.node, p.host, parcel.source) for p in self.pools for parcel in p.parcels]
        return Entries(*np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy())

    @cached_property
    def unlimited(self) -> IntArray:
        """Arcs without a rate: those of storage."""
        return np.flatnonzero(np.isinf(self.rate_bytes_per_s))

    def capacity_bytes(self, lengths_s: FloatArray, arcs: IntArray | None = None) -> FloatArray:
        """Return what each arc, or each of `arcs`, carries when the pieces last this long."""
        if arcs is not None:
            rate, room = self.rate_bytes_per_s[arcs], self.room_bytes[arcs]
            limited = np.isfinite(rate)
            rate[~limited] = 0.0
            return np.where(limited, rate * lengths_s[self.piece[arcs]], room)
        rate = self.rate_bytes_per_s
        # An infinite rate in a piece of no length; and more than floats hold, which limits nothing.
        with np.errstate(invalid="ignore", over="ignore"):
            capacity = rate * (lengths_s[0] if len(lengths_s) == 1 else lengths_s[self.piece])
        capacity[self.unlimited] = self.room_bytes[self.unlimited]
        return capacity


def breakpoints_s(problem: Problem) -> FloatArray:
    """Instants at which capacities or supplies change, the first 0."""
    return np.unique(np.concatenate([problem.periods_s, problem.parcel_columns.release_s, [0.0]]))


def n_changes(starts_s: FloatArray, end_s: float) -> int:
    """Count the pieces of time that begin after 0 and before an instant.

    >>> n_changes(np.array([0.0, 3.0, 5.0]), end_s=5.0)
    1
    """
    return int(np.count_nonzero((starts_s > 0) & (starts_s < end_s)))


def full_lengths_s(starts_s: FloatArray, guard_s: float) -> FloatArray:
    """Return how long data move in each piece that another follows: until `guard_s` before that.

    Where pipelines drain, each hop begins and ends when floats can say it: as much earlier.
    """
    rounding_s = 4 * np.spacing(starts_s[1:]) if guard_s > 0 else 0.0
    return np.asarray(np.maximum(np.diff(starts_s) - guard_s - rounding_s, 0.0))


def lengths_until_s(starts_s: FloatArray, guard_s: float, end_s: float) -> FloatArray:
    """Return how long data move in each piece that begins before `end_s`, when the last one ends.

    >>> lengths_until_s(np.array([0.0, 3.0, 5.0]), guard_s=0.5, end_s=4.0)
    array([2.5, 1. ])
    """
    n_pieces = int(np.searchsorted(starts_s, end_s))
    lengths = np.append(full_lengths_s(starts_s, guard_s), np.inf)[:n_pieces]
    return np.asarray(np.minimum(lengths, end_s - starts_s[:n_pieces]))


def with_room_for_returns(problem: Problem) -> Problem | None:
    """Return the problem with more storage where data may return to their owner.

    Data held elsewhere are no others' data once they are back at their owner, and need no room
    there; a network with one kind of data cannot distinguish them. With room for all of them
    besides the others' nothing ends later: what does not end sooner is exact. None where nothing
    may return.
    """
    returns = np.zeros(problem.n_hosts)
    for parcel in problem.parcels:
        if parcel.host != parcel.source:
            returns[parcel.source] += parcel.n_bytes
    if not (np.isfinite(problem.storage_bytes) & (returns > 0)).any():
        return None
    return problem.replace(storage_bytes=problem.storage_bytes + returns)


def layered_network(problem: Problem, starts_s: Sequence[float] | FloatArray) -> LayeredNetwork:
    """Build the network for pieces that start at `starts_s` (a prefix of `breakpoints_s`)."""
    starts = np.asarray(starts_s, dtype=float)
    builder = _Builder(problem, starts)
    builder.add_links()
    builder.add_holdover()
    pools = builder.add_pools()
    return builder.finish(pools)


def nodes_in(network: LayeredNetwork, wide: LayeredNetwork) -> IntArray:
    """Return which nodes of a network with more pieces the nodes of one are.

    Nodes of hosts come first, piece by piece; then those of limits, piece by piece; then those in
    which own data wait, one for each pool.
    """
    nodes = np.arange(network.n_nodes)
    apart = [pool.node for pool in network.pools if network.is_apart(pool.node)]
    first_limit, first_apart = network.n_hosts * network.n_pieces, min(apart, default=len(nodes))
    nodes[first_limit:first_apart] += wide.n_hosts * wide.n_pieces - first_limit
    nodes[first_apart:] += wide.n_nodes - network.n_nodes
    return nodes


class _Builder:
    """Hands out node numbers and collects arcs, piece by piece."""

    def __init__(self, problem: Problem, starts_s: FloatArray) -> None:
        self.problem = problem
        self.starts_s = starts_s
        self.n = problem.n_hosts
        self.sink = problem.destination_index
        # One node for the destination: all layers' destination nodes are number `sink`.
        self.node_hosts = [np.tile(np.arange(self.n), len(starts_s))]
        self.n_nodes = self.n * len(starts_s)
        self.period = np.searchsorted(problem.periods_s, starts_s, side="right") - 1
        self.columns: list[tuple[IntArray, IntArray, FloatArray, FloatArray, IntArray, IntArray]]
        self.columns = []
        self.stored_rows: list[npt.NDArray[np.bool_]] = []

    def host_nodes(self, hosts: IntArray, piece: IntArray | int) -> IntArray:
        return np.where(hosts == self.sink, self.sink, hosts + piece * self.n)

    def new_nodes(self, hosts: IntArray) -> IntArray:
        nodes = self.n_nodes + np.arange(len(hosts))
        self.node_hosts.append(np.asarray(hosts, dtype=np.int64))
        self.n_nodes += len(hosts)
        return nodes

    def add(
        self,
        tail: IntArray,
        head: IntArray,
        piece: IntArray | int,
        *,
        rate: FloatArray | float = np.inf,
        room: FloatArray | float = np.inf,
        link: IntArray | int = NO_LINK,
        stored: bool = False,
    ) -> None:
        shape = tail.shape
        self.columns.append(
            (
                tail,
                head,
                np.broadcast_to(np.asarray(rate, dtype=float), shape),
                np.broadcast_to(np.asarray(room, dtype=float), shape),
                np.broadcast_to(np.asarray(piece, dtype=np.int64), shape),
                np.broadcast_to(np.asarray(link, dtype=np.int64), shape),
            )
        )
        self.stored_rows.append(np.full(shape, stored))

    def add_links(self) -> None:
        """Add a copy of the links in each piece, through extra nodes at finite limits of hosts.

        Arcs are in the order of pieces, within each those of limits before those of links.
        """
        problem = self.problem
        bandwidth = problem.bandwidth_bytes_per_s[self.period]
        usable = (bandwidth > 0) & (problem.link_from != self.sink)
        for shared, links in zip(problem.shared, problem.shared_links, strict=True):
            if shared.bandwidth_bytes_per_s == 0:
                usable[:, links] = False
        piece = np.repeat(np.arange(len(self.starts_s)), np.count_nonzero(usable, axis=1))
        link = np.flatnonzero(usable) - piece * problem.n_links
        first = len(self.columns)
        uplink, downlink = (
            limit[self.period]
            for limit in (problem.uplink_bytes_per_s, problem.downlink_bytes_per_s)
        )
        leaves, enters = self._add_gates(
            self._gates(uplink, problem.link_from[link], piece),
            self._gates(downlink, problem.link_to[link], piece),
            uplink,
            downlink,
        )
        tail, head = leaves[piece, problem.link_from[link]], enters[piece, problem.link_to[link]]
        self.add(tail, head, piece, rate=bandwidth[usable], link=link)
        self._sort_by_piece(first)

    def _gates(
        self, limit: FloatArray, ends: npt.NDArray[np.integer], piece: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Return pieces and hosts in which links end at a finite limit."""
        is_end = np.zeros(limit.shape, dtype=bool)
        is_end[piece, ends] = True
        at_piece, host = np.nonzero(is_end & np.isfinite(limit))
        return at_piece, host

    def _add_gates(
        self,
        up: tuple[IntArray, IntArray],
        down: tuple[IntArray, IntArray],
        uplink: FloatArray,
        downlink: FloatArray,
    ) -> tuple[IntArray, IntArray]:
        """Add nodes and arcs of limits; return the nodes at which links begin, and end."""
        pieces = np.arange(len(self.starts_s))[:, np.newaxis]
        leaves = self.host_nodes(np.arange(self.n), pieces)
        enters = leaves.copy()
        in_order = np.argsort(np.append(up[0], down[0]), kind="stable")
        gates = np.empty_like(in_order)
        gates[in_order] = self.new_nodes(np.append(up[1], down[1])[in_order])
        out_of, into = np.split(gates, [len(up[0])])
        if len(out_of):
            self.add(leaves[up], out_of, up[0], rate=uplink[up])
        if len(into):
            self.add(into, enters[down], down[0], rate=downlink[down])
        leaves[up], enters[down] = out_of, into
        return leaves, enters

    def _sort_by_piece(self, first: int) -> None:
        """Put the arcs from this column on in the order of pieces."""
        if len(self.columns) == first + 1 or len(self.starts_s) == 1:
            return
        tail, head, rate, room, piece, link = (
            np.concatenate(parts) for parts in zip(*self.columns[first:], strict=True)
        )
        order = np.argsort(piece, kind="stable")
        sorted_columns = (tail, head, rate, room, piece, link)
        del self.columns[first:], self.stored_rows[first:]
        tail, head, rate, room, piece, link = (column[order] for column in sorted_columns)
        self.add(tail, head, piece, rate=rate, room=room, link=link)

    def add_holdover(self) -> None:
        relays = np.flatnonzero(np.arange(self.n) != self.sink)
        relays = relays[self.problem.storage_bytes[relays] > 0]
        pieces = np.arange(len(self.starts_s) - 1)
        host, piece = np.tile(relays, len(pieces)), np.repeat(pieces, len(relays))
        self.add(
            self.host_nodes(host, piece),
            self.host_nodes(host, piece + 1),
            piece,
            room=self.problem.storage_bytes[host],
            stored=True,
        )

    def add_pools(self) -> tuple[Pool, ...]:
        if len(self.starts_s) == 1:
            return tuple(pools_by_host(self.problem))  # nothing is released late or stored
        pools = pools_by_owner(self.problem)
        nodes = iter(self._own_stores([pool for pool in pools if pool.is_own]))
        return tuple(replace(p, node=next(nodes)) if p.is_own else p for p in pools)

    def _own_stores(self, pools: Sequence[Pool]) -> list[int]:
        """Own data wait at the source without using its room for others' data.

        Waiting is free and has no limit: one node for all time, with an arc to the host's node in
        each piece from the release on. Returns the node of each pool.
        """
        if not pools:
            return []
        hosts = np.array([pool.host for pool in pools], dtype=np.int64)
        first = np.searchsorted(self.starts_s, [pool.release_s for pool in pools])
        counts = len(self.starts_s) - first
        stores = self.new_nodes(hosts)
        piece = ranges(first, counts)
        self.add(np.repeat(stores, counts), self.host_nodes(np.repeat(hosts, counts), piece), piece)
        return [int(node) for node in stores]

    def finish(self, pools: tuple[Pool, ...]) -> LayeredNetwork:
        tail, head, rate, room, piece, link = (
            np.concatenate(column) for column in zip(*self.columns, strict=True)
        )
        return LayeredNetwork(
            n_nodes=self.n_nodes,
            sink=self.sink,
            node_host=np.concatenate(self.node_hosts),
            tail=tail,
            head=head,
            rate_bytes_per_s=rate,
            room_bytes=room,
            piece=piece,
            link=link,
            stored=np.concatenate(self.stored_rows),
            starts_s=self.starts_s,
            pools=pools,
        )
