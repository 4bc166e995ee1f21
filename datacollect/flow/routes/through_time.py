"""Paths through many pieces of time, without a walk over the pieces in which data only wait.

What waits at a host is a queue: what comes in an earlier piece of time goes in an earlier one.
Count the units that come to a host in the order of time, and those that go: the same count says by
which link each goes on, however long it has waited. So all are followed at once, hop by hop, in a
time that grows with hops alone. Walks over arcs, as `decompose` takes them, pass each piece.

Within a piece data that have come by few hops go on by those links that have many hops before
them: pipelines become as short as that makes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.flow.network.layered import NO_LINK
from datacollect.flow.routes.path_table import Passing, PathTable, joined, traced
from datacollect.flow.routes.routes import cut_at
from datacollect.solvers.networks import CAPACITY_SUM_LIMIT

if TYPE_CHECKING:
    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.numbers.arrays import IntArray


class _Hops(NamedTuple):
    """Moves over links: from which host to which, in which piece, how many units."""

    tail: IntArray
    head: IntArray
    piece: IntArray
    units: IntArray


class _Entries(NamedTuple):
    """Entries from pools: at which host, in which piece, how many units."""

    pool: IntArray
    host: IntArray
    piece: IntArray
    units: IntArray


def paths_through_time(network: LayeredNetwork, units: IntArray) -> PathTable | None:
    """Split a flow into paths from pools to the sink; None where it must be walked over.

    That is where units go round in one piece of time, never arrive, or are too many to count.

    Parameters
    ----------
    network : LayeredNetwork
    units : ndarray of int64, shape (n_arcs,)

    Returns
    -------
    PathTable or None
        Sorted by pool.
    """
    arcs = np.flatnonzero((units > 0) & (network.link != NO_LINK))
    if float(units[arcs].sum(dtype=float)) >= CAPACITY_SUM_LIMIT:
        return None
    hops = _Hops(
        network.node_host[network.tail[arcs]],
        network.node_host[network.head[arcs]],
        network.piece[arcs],
        units[arcs],
    )
    entries, ranks = _entries(network, units, hops), _ranks(network, hops)
    return None if entries is None or ranks is None else _followed(network, hops, entries, *ranks)


def _entries(network: LayeredNetwork, units: IntArray, hops: _Hops) -> _Entries | None:
    """Return what enters at hosts; None unless all that comes to a host goes, then or later."""
    n_hosts, n_pieces = _size(network)
    n_places = n_hosts * n_pieces
    nodes = np.array([pool.node for pool in network.pools], dtype=np.int64)
    host = np.array([pool.host for pool in network.pools], dtype=np.int64)
    used = np.flatnonzero(units > 0)
    surplus = np.zeros(network.n_nodes, dtype=np.int64)
    np.add.at(surplus, network.tail[used], units[used])
    np.subtract.at(surplus, network.head[used], units[used])
    entering = surplus[nodes]
    surplus[nodes] = surplus[network.sink] = 0
    if surplus.any() or (entering < 0).any():
        return None
    # At a host, in a piece, there enters what goes or is kept beyond what comes or was kept.
    into = np.zeros(n_places, dtype=np.int64)
    kept = np.flatnonzero(network.stored & (units > 0))
    keeper = network.piece[kept] * n_hosts + network.node_host[network.tail[kept]]
    np.add.at(into, hops.piece * n_hosts + hops.tail, hops.units)
    np.add.at(into, keeper, units[kept])
    onward = hops.head != network.sink
    np.subtract.at(into, (hops.piece * n_hosts + hops.head)[onward], hops.units[onward])
    np.subtract.at(into, keeper + n_hosts, units[kept])
    # What is held enters where it lies, in the first piece; own data whenever they leave.
    is_own = nodes >= n_places if n_pieces > 1 else np.zeros(len(nodes), dtype=bool)
    np.subtract.at(into, host[~is_own], entering[~is_own])
    place = np.flatnonzero(into)
    pool_of = np.full(n_hosts, -1)
    pool_of[host[is_own]] = np.flatnonzero(is_own)
    own = pool_of[place % n_hosts]
    if (into[place] < 0).any() or (own < 0).any():
        return None
    held = np.flatnonzero(~is_own & (entering > 0))
    return _Entries(
        np.append(held, own),
        np.append(host[held], place % n_hosts),
        np.append(np.zeros_like(held), place // n_hosts),
        np.append(entering[held], into[place]),
    )


def _size(network: LayeredNetwork) -> tuple[int, int]:
    return int(network.node_host.max()) + 1, network.n_pieces


def _ranks(network: LayeredNetwork, hops: _Hops) -> tuple[IntArray, IntArray] | None:
    """Return for each hop the most hops of its piece up to it, and from it on, itself included.

    None where hops of one piece lead round.
    """
    n_hosts, n_pieces = _size(network)
    tail, head = hops.piece * n_hosts + hops.tail, hops.piece * n_hosts + hops.head
    onward = hops.head != network.sink
    upto = _longest(tail[onward], head[onward], n_hosts, n_hosts * n_pieces)
    beyond = _longest(head[onward], tail[onward], n_hosts, n_hosts * n_pieces)
    if upto is None or beyond is None:
        return None
    return upto[tail] + 1, np.where(onward, beyond[head], 0) + 1


def _longest(tail: IntArray, head: IntArray, most: int, n_nodes: int) -> IntArray | None:
    """Return the most arcs of a path to each node; None where arcs lead round."""
    length = np.zeros(n_nodes, dtype=np.int64)
    for _ in range(most):
        longer = length[tail] >= length[head]
        if not longer.any():
            return length
        np.maximum.at(length, head[longer], length[tail[longer]] + 1)
    return None


def _followed(
    network: LayeredNetwork, hops: _Hops, entries: _Entries, upto: IntArray, beyond: IntArray
) -> PathTable:
    most = int(network.node_host.max()) + 2
    onward = np.flatnonzero(hops.head != network.sink)
    going = Passing.build(hops.tail, hops.units, hops.piece * most + most - 1 - beyond)
    coming = Passing.build(
        np.append(entries.host, hops.head[onward]),
        np.append(entries.units, hops.units[onward]),
        np.append(entries.piece * most, hops.piece[onward] * most + upto[onward]),
    )
    coming_begin = coming.begins()
    begin = coming_begin[: len(entries.pool)]
    # So much further on stands, at the next host, what goes by a hop.
    shift = np.zeros(len(hops.tail), dtype=np.int64)
    shift[onward] = coming_begin[len(entries.pool) :] - going.begins()[onward]
    arrives = hops.head == network.sink
    end, at = begin + entries.units, entries.pool
    steps: list[tuple[IntArray, IntArray]] = []
    found: list[PathTable] = []
    while len(begin):
        row, interval, begin, end = cut_at(going.bounds, begin, end)
        hop = going.order[interval]
        steps.append((at[row], hop))
        there = np.flatnonzero(arrives[hop])
        found.append(_table(hops, *traced(steps, there), (end - begin)[there], network.sink))
        at = np.flatnonzero(~arrives[hop])
        begin, end = begin[at] + shift[hop[at]], end[at] + shift[hop[at]]
    table = joined(found)
    return table.at(np.argsort(table.pool, kind="stable"))


def _table(hops: _Hops, pool: IntArray, rows: IntArray, units: IntArray, sink: int) -> PathTable:
    """Return paths by their hops, a row each."""
    n_rows, width = rows.shape
    hosts = np.append(hops.tail[rows], np.full((n_rows, 1), sink), axis=1)
    pieces = hops.piece[rows]
    return PathTable(pool, units, np.full(n_rows, width), hosts.ravel(), pieces.ravel())
