"""Path decomposition of flows through a time-expanded graph, without a loop over paths.

At every host what arrives first leaves first. Count the bytes that pass a host in the order in
which they come: the same count, in the order in which they go, says on which link each leaves. So
all data are followed at once, hop by hop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from datacollect.errors import ProblemError
from datacollect.flow.routes.path_table import Passing
from datacollect.flow.routes.routes import cut_at
from datacollect.solvers.networks import CAPACITY_SUM_LIMIT

if TYPE_CHECKING:
    from datacollect.flow.network.pools import Pool
    from datacollect.methods.slotted.graph import TimeExpandedGraph
    from datacollect.numbers.arrays import IntArray

Jobs: TypeAlias = "list[tuple[Pool, tuple[int, ...]]]"


@dataclass(frozen=True, eq=False)
class _Hop:
    """All data on their hop number k: where they were before, their arc, their bytes, their way.

    ``way`` numbers sequences of a pool and hosts; ``ways[i]`` is (way of the hop before, host).
    """

    before: IntArray
    arc: IntArray
    n_bytes: IntArray
    way: IntArray
    ways: IntArray


def slotted_pieces(graph: TimeExpandedGraph, flow: IntArray) -> tuple[Jobs, IntArray]:
    """Split a flow that empties all pools into jobs, and pieces for `slotted_transfers`.

    Parameters
    ----------
    graph : TimeExpandedGraph
    flow : ndarray of int64, shape (n_arcs,)

    Returns
    -------
    tuple of (list of (Pool, hosts), ndarray of shape (n_pieces, 4))
        Columns: job, hop, slot, bytes. Per job every hop moves the same number of bytes.
    """
    arcs = np.flatnonzero((flow > 0) & (graph.link >= 0))
    slot, amount = graph.slot[arcs], flow[arcs]
    sender, receiver = graph.node_host[graph.tail[arcs]], graph.node_host[graph.head[arcs]]
    if float(amount.sum(dtype=float)) >= CAPACITY_SUM_LIMIT:
        raise ProblemError(
            f"bytes times hops sum to {amount.sum(dtype=float):.3g}, limit 2**62; "
            "count in larger units"
        )
    pool, at_host, at_boundary, entering = _injections(graph, flow)
    relayed = np.flatnonzero(receiver != graph.sink)
    going = Passing.build(sender, amount, slot)
    # At the same boundary own data come first: others' have waited for nothing yet.
    coming = Passing.build(
        np.concatenate([at_host, receiver[relayed]]),
        np.concatenate([entering, amount[relayed]]),
        np.concatenate([at_boundary, slot[relayed] + 1]),
    )
    coming_begin, going_begin = coming.begins(), going.begins()
    relayed_begin = np.zeros(len(arcs), dtype=np.int64)
    relayed_begin[relayed] = coming_begin[len(pool) :]
    begin, n_bytes, way = coming_begin[: len(pool)], entering, pool
    hops: list[_Hop] = []
    at = np.arange(len(pool))
    while len(begin):
        row, event, part_begin, part_end = cut_at(going.bounds, begin, begin + n_bytes)
        arc = going.order[event]
        n_hosts = int(receiver.max()) + 1
        keys, number = np.unique(way[row] * n_hosts + receiver[arc], return_inverse=True)
        ways = np.stack(np.divmod(keys, n_hosts))
        hops.append(_Hop(at[row], arc, part_end - part_begin, number, ways))
        at = np.flatnonzero(receiver[arc] != graph.sink)
        begin = (relayed_begin[arc] + part_begin - going_begin[arc])[at]
        n_bytes, way = hops[-1].n_bytes[at], number[at]
    return _jobs_and_pieces(graph, hops, receiver, slot)


def _injections(
    graph: TimeExpandedGraph, flow: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Pool, host, boundary and bytes of what enters at hosts."""
    pool_of = np.full(graph.n_nodes, -1)
    own = [i for i, pool in enumerate(graph.pools) if pool.is_own]
    held = [i for i, pool in enumerate(graph.pools) if not pool.is_own]
    pool_of[[graph.pools[i].node for i in own]] = own
    arcs = np.flatnonzero((pool_of[graph.tail] >= 0) & (flow > 0))
    # Of a list without entries numpy makes floats, which round bytes beyond 2**53.
    held_host = np.array([graph.pools[i].host for i in held], dtype=np.int64)
    held_bytes = np.array([graph.pools[i].n_bytes for i in held], dtype=np.int64)
    return (
        np.concatenate([np.array(held, dtype=np.int64), pool_of[graph.tail[arcs]]]),
        np.concatenate([held_host, graph.node_host[graph.tail[arcs]]]),
        np.concatenate([np.zeros(len(held), np.int64), graph.slot[arcs]]),
        np.concatenate([held_bytes, flow[arcs]]),
    )


def _jobs_and_pieces(
    graph: TimeExpandedGraph, hops: list[_Hop], receiver: IntArray, slot: IntArray
) -> tuple[Jobs, IntArray]:
    """Trace back all that arrives at the destination."""
    jobs: Jobs = []
    tables = [np.zeros((0, 4), dtype=np.int64)]
    for last, hop in enumerate(hops):
        ends = np.flatnonzero(receiver[hop.arc] == graph.sink)
        ways, job = np.unique(hop.way[ends], return_inverse=True)
        job += len(jobs)
        jobs += [_job(graph, hops[: last + 1], way) for way in ways.tolist()]
        at = ends
        for k in range(last, -1, -1):
            columns = (job, np.full(len(at), k), slot[hops[k].arc[at]], hop.n_bytes[ends])
            tables.append(np.stack(columns, axis=1))
            at = hops[k].before[at]
    return jobs, np.concatenate(tables)


def _job(graph: TimeExpandedGraph, hops: list[_Hop], way: int) -> tuple[Pool, tuple[int, ...]]:
    """Pool and hosts of a way."""
    hosts: list[int] = []
    for hop in reversed(hops):
        way, host = hop.ways[:, way].tolist()
        hosts.append(host)
    pool = graph.pools[way]
    return pool, (pool.host, *reversed(hosts))
