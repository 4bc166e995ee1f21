"""Path decomposition with few hops: data that have come far go on by few hops.

A flow on arcs splits into paths in many manners. Where data of two hosts meet, those that have come
by more hops go on by the arc with fewer hops left. That changes neither arcs nor bytes, only how
long the longest pipeline is, which is what delays a plan: by a chunk for each hop.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.flow.network.layered import NO_LINK
from datacollect.flow.routes.path_table import PathTable
from datacollect.flow.routes.routes import PathFlow, decompose
from datacollect.flow.routes.through_time import paths_through_time
from datacollect.numbers.arrays import ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.numbers.arrays import IntArray

# A relay is one hop more: pipelines of two hops are the shortest where data pass any relay.
SHORT = 2

# Walks over arcs pass each piece of time in which data wait: in more pieces than this, none is
# walked over.
MOST_WALKED = 64


def short_paths(network: LayeredNetwork, units: IntArray) -> Sequence[PathFlow]:
    """Split a flow into paths whose pipelines are as short as is found.

    Parameters
    ----------
    network : LayeredNetwork
    units : ndarray of int64, shape (n_arcs,)
        A cheapest flow: it has no cycles.
    """
    if network.n_pieces > MOST_WALKED:
        table = paths_through_time(network, units)
        if table is not None:
            return table
    paths = decompose(network, network.piece, units)
    if longest_chain(paths) <= SHORT:
        return paths
    others = _far_first(network, units)
    return others if others is not None and longest_chain(others) < longest_chain(paths) else paths


def longest_chain(paths: Sequence[PathFlow]) -> int:
    """Most hops that a path takes within one piece of time."""
    table = PathTable.of(paths)
    begins = np.ones(len(table.pieces), dtype=bool)
    position = ranges(np.zeros_like(table.n_hops), table.n_hops)
    begins[1:] = (position[1:] == 0) | (table.pieces[1:] != table.pieces[:-1])
    runs = np.diff(np.append(np.flatnonzero(begins), len(begins)))
    return int(runs.max(initial=0))


class _Part(NamedTuple):
    """Units of a pool at a node, the hops that they have made in this piece of time, and all."""

    chain: int
    pool: int
    amount: int
    arcs: tuple[int, ...]


def _far_first(network: LayeredNetwork, units: IntArray) -> list[PathFlow] | None:
    """Send on from each node what has come far by what is near; None where the flow has a cycle."""
    used = np.flatnonzero(units > 0)
    tail, head = network.tail[used].tolist(), network.head[used].tolist()
    leaving: defaultdict[int, list[int]] = defaultdict(list)
    for arc, node in enumerate(tail):
        leaving[node].append(arc)
    order = _in_order(tail, head, leaving)
    if order is None:
        return None
    # How many hops an arc adds to a pipeline: none where data wait for another piece of time.
    hop = (network.link[used] != NO_LINK).astype(int).tolist()
    waits = (network.piece[used] != _piece_after(network, used)).tolist()
    hops_left = _hops_left(order, head, leaving, hop, waits)
    left, parts = units[used].tolist(), _entering(network, units, used)
    arrived: list[_Part] = []
    for node in order:
        if node == network.sink:
            arrived += parts.pop(node, [])
            continue
        arcs = sorted(
            leaving[node], key=lambda arc: 0 if waits[arc] else hop[arc] + hops_left[head[arc]]
        )
        for part in sorted(parts.pop(node, []), key=lambda part: -part.chain):
            amount = part.amount
            while amount > 0 and arcs:
                arc = arcs[0]
                moved = min(amount, left[arc])
                chain = 0 if waits[arc] else part.chain + hop[arc]
                on = _Part(chain, part.pool, moved, (*part.arcs, arc))
                parts.setdefault(head[arc], []).append(on)
                amount, left[arc] = amount - moved, left[arc] - moved
                if not left[arc]:
                    arcs.pop(0)
    return [_path(network, used, part) for part in arrived]


def _piece_after(network: LayeredNetwork, arcs: IntArray) -> IntArray:
    """Return in which piece of time data are after an arc."""
    after = network.piece[arcs].copy()
    after[network.stored[arcs]] += 1
    return after


def _in_order(tail: list[int], head: list[int], leaving: dict[int, list[int]]) -> list[int] | None:
    """Order nodes so that arcs lead onward; None where they lead round in a cycle."""
    coming: defaultdict[int, int] = defaultdict(int)
    for node in head:
        coming[node] += 1
    queue = deque(node for node in dict.fromkeys(tail) if not coming[node])
    order = []
    while queue:
        node = queue.popleft()
        order.append(node)
        for arc in leaving.get(node, ()):
            coming[head[arc]] -= 1
            if not coming[head[arc]]:
                queue.append(head[arc])
    return order if len(order) == len({*tail, *head}) else None


def _hops_left(
    order: list[int],
    head: list[int],
    leaving: dict[int, list[int]],
    hop: list[int],
    waits: list[bool],
) -> dict[int, int]:
    """Return the most hops that data at a node may have yet to make in this piece of time."""
    hops_left: dict[int, int] = {}
    for node in reversed(order):
        counts = (
            0 if waits[arc] else hop[arc] + hops_left[head[arc]] for arc in leaving.get(node, ())
        )
        hops_left[node] = max(counts, default=0)
    return hops_left


def _entering(network: LayeredNetwork, units: IntArray, used: IntArray) -> dict[int, list[_Part]]:
    """Return what each pool lets in: what leaves its node beyond what comes in."""
    entering = np.zeros(network.n_nodes, dtype=np.int64)
    np.add.at(entering, network.tail[used], units[used])
    np.subtract.at(entering, network.head[used], units[used])
    return {
        pool.node: [_Part(0, number, int(entering[pool.node]), ())]
        for number, pool in enumerate(network.pools)
    }


def _path(network: LayeredNetwork, used: IntArray, part: _Part) -> PathFlow:
    arcs = used[list(part.arcs)]
    hops = arcs[network.link[arcs] != NO_LINK]
    hosts = (*network.node_host[network.tail[hops]].tolist(), network.sink)
    return PathFlow(part.pool, hosts, tuple(network.piece[hops].tolist()), part.amount)
