"""Paths for pools of few bytes among very many: data that are hardly a unit of a flow.

Flows are counted in whole units in 64 bits, so of 2**62 bytes a unit is some bytes. What is less
than some units goes where a unit has room, even over a link that carries a byte in all. It is sent
again by the fewest hops where its bytes have room.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.network.layered import NO_LINK
from datacollect.flow.network.tolerances import SURELY
from datacollect.flow.routes.routes import PathFlow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.flow.quickest.cheapest import CheapestFlow
    from datacollect.numbers.arrays import FloatArray

# A pool of fewer units than this is tiny, if a unit is more than this part of a byte.
TINY_UNITS, COARSE_BYTES = 64, 1 / 64


def without_tiny_pools(found: CheapestFlow, paths: Sequence[PathFlow]) -> Sequence[PathFlow]:
    """Return the paths, those of tiny pools replaced by one each that has room."""
    unit_bytes, network = found.unit_bytes, found.network
    if unit_bytes < COARSE_BYTES:
        return paths
    tiny = [
        number
        for number, pool in enumerate(network.pools)
        if pool.n_bytes < TINY_UNITS * unit_bytes
    ]
    capacity = network.capacity_bytes(found.lengths_s)
    room = capacity - found.flow_bytes
    limited = network.room_bytes < np.inf
    room = np.where(limited, room, np.maximum(room, SURELY * capacity))
    again = {number: _path_of(found, number, room) for number in tiny}
    new = [path for path in again.values() if path is not None]
    return [path for path in paths if again.get(path.pool) is None] + new


def _path_of(found: CheapestFlow, number: int, room_bytes: FloatArray) -> PathFlow | None:
    """Find the path with the fewest hops over arcs that have room; None where there is none."""
    network = found.network
    pool = network.pools[number]
    arcs = np.flatnonzero(room_bytes >= pool.n_bytes)
    arcs = arcs[np.argsort(network.tail[arcs], kind="stable")]
    bounds = np.searchsorted(network.tail[arcs], np.arange(network.n_nodes + 1))
    came_by: dict[int, int] = {}
    hops = {pool.node: 0}
    queue = deque([(0, pool.node)])
    while queue:
        n_hops, node = queue.popleft()
        if n_hops > hops[node]:
            continue
        for arc in arcs[bounds[node] : bounds[node + 1]].tolist():
            head, is_hop = int(network.head[arc]), int(network.link[arc] != NO_LINK)
            if n_hops + is_hop < hops.get(head, network.n_nodes):
                hops[head], came_by[head] = n_hops + is_hop, arc
                queue.append((n_hops + 1, head)) if is_hop else queue.appendleft((n_hops, head))
    if network.sink not in came_by:
        return None
    walk, node = [], network.sink
    while node != pool.node:
        walk.append(came_by[node])
        node = int(network.tail[came_by[node]])
    links = [arc for arc in reversed(walk) if network.link[arc] != NO_LINK]
    hosts = (*[int(network.node_host[network.tail[arc]]) for arc in links], network.sink)
    units = max(round(pool.n_bytes / found.unit_bytes), 1)
    return PathFlow(number, hosts, tuple(int(network.piece[arc]) for arc in links), units)
