"""Paths by the thousand: as columns, and from a flow to paths without a loop over them.

At every node what comes first leaves first. Count the units that pass a node in the order in which
they come: the same count, in the order in which they go, says by which arc each leaves. So all are
followed at once, arc by arc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np

from datacollect.flow.network.layered import NO_LINK
from datacollect.flow.routes.routes import PathFlow, cut_at, decompose, whole_bytes, without_loop
from datacollect.numbers.arrays import FloatArray, IntArray, ranges
from datacollect.solvers.networks import CAPACITY_SUM_LIMIT

if TYPE_CHECKING:
    from datacollect.flow.routes.routes import Expanded
    from datacollect.numbers.arrays import BoolArray


# Paths through more arcs than this are followed one by one: a flow with a cycle has no end.
LONGEST_WALK = 64


@dataclass(frozen=True, eq=False)
class PathTable(Sequence[PathFlow]):
    """Paths as columns; what belongs to hops is laid end to end, path after path.

    Attributes
    ----------
    pool : ndarray of int64, shape (n_paths,)
    amount : ndarray, shape (n_paths,)
    n_hops : ndarray of int64, shape (n_paths,)
    hosts : ndarray of int64, shape (n_hops.sum() + n_paths,)
    pieces : ndarray of int64, shape (n_hops.sum(),)
    """

    pool: IntArray
    amount: IntArray | FloatArray
    n_hops: IntArray
    hosts: IntArray
    pieces: IntArray

    @classmethod
    def of(cls, paths: Sequence[PathFlow]) -> PathTable:
        """Return the paths as columns; a table as it is."""
        if isinstance(paths, PathTable):
            return paths
        return cls(
            np.array([path.pool for path in paths], dtype=np.int64),
            np.array([path.amount for path in paths]),
            np.array([len(path.pieces) for path in paths], dtype=np.int64),
            np.array([host for path in paths for host in path.hosts], dtype=np.int64),
            np.array([piece for path in paths for piece in path.pieces], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.pool)

    @overload
    def __getitem__(self, index: int) -> PathFlow: ...
    @overload
    def __getitem__(self, index: slice) -> list[PathFlow]: ...
    def __getitem__(self, index: int | slice) -> PathFlow | list[PathFlow]:
        return self._rows[index]

    @cached_property
    def _rows(self) -> list[PathFlow]:
        """The paths one by one."""
        hosts, pieces = self.hosts.tolist(), self.pieces.tolist()
        rows, first = [], 0
        columns = self.pool.tolist(), self.n_hops.tolist(), self.amount.tolist()
        for i, (pool, n_hops, amount) in enumerate(zip(*columns, strict=True)):
            end = first + n_hops
            path_hosts = tuple(hosts[first + i : end + i + 1])
            rows.append(PathFlow(pool, path_hosts, tuple(pieces[first:end]), amount))
            first = end
        return rows

    @staticmethod
    def padded(flat: IntArray, counts: IntArray) -> IntArray:
        """Lay what is end to end in rows of equal length, with -1 behind.

        >>> PathTable.padded(np.array([7, 8, 9]), np.array([1, 2]))
        array([[ 7, -1],
               [ 8,  9]])
        """
        width = int(counts.max(initial=0))
        rows = np.full((len(counts), width), -1)
        rows[np.arange(width) < counts[:, np.newaxis]] = flat
        return rows

    def routes(self, n_hosts: int) -> tuple[list[list[int]], IntArray]:
        """Return sequences of hosts, each once, and which of them each path takes."""
        rows = self.padded(self.hosts, self.n_hops + 1)
        width = rows.shape[1]
        if (n_hosts + 1) ** width < 2**62:
            digits = (n_hosts + 1) ** np.arange(width, dtype=np.int64)
            _, first, taken = np.unique((rows + 1) @ digits, return_index=True, return_inverse=True)
        else:
            _, first, taken = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        counts = (self.n_hops[first] + 1).tolist()
        routes = [row[:n] for row, n in zip(rows[first].tolist(), counts, strict=True)]
        return routes, taken.ravel()

    def at(self, rows: IntArray) -> PathTable:
        """Return some paths, in that order."""
        n_hops = self.n_hops[rows]
        begins = np.cumsum(self.n_hops) - self.n_hops
        return PathTable(
            self.pool[rows],
            self.amount[rows],
            n_hops,
            self.hosts[ranges(begins[rows] + rows, n_hops + 1)],
            self.pieces[ranges(begins[rows], n_hops)],
        )


def path_table(network: Expanded, step: IntArray, flow: IntArray | FloatArray) -> PathTable:
    """Split a flow into paths from pools to the sink, see `decompose`; whole flows at once."""
    table = None
    if np.issubdtype(flow.dtype, np.integer):
        table = _followed(network, step, flow.astype(np.int64, copy=False))
    return PathTable.of(decompose(network, step, flow)) if table is None else table


def _followed(network: Expanded, step: IntArray, flow: IntArray) -> PathTable | None:
    """Follow all units at once; None if some never arrive, go round, or are too many to count."""
    used = np.flatnonzero(flow > 0)
    tail, head, amount = network.tail[used], network.head[used], flow[used]
    nodes = np.array([pool.node for pool in network.pools], dtype=np.int64)
    entering = _entering(network, nodes, tail, head, amount)
    if entering is None:
        return None
    onward = np.flatnonzero(head != network.sink)
    going = Passing.build(tail, amount)
    coming = Passing.build(
        np.concatenate([nodes, head[onward]]), np.concatenate([entering, amount[onward]])
    )
    coming_begin, going_begin = coming.begins(), going.begins()
    # So much further on stands, at the next node, what goes by an arc.
    shift = np.zeros(len(used), dtype=np.int64)
    shift[onward] = coming_begin[len(nodes) :] - going_begin[onward]
    at = np.flatnonzero(entering)
    begin, end = coming_begin[at], coming_begin[at] + entering[at]
    steps: list[tuple[IntArray, IntArray]] = []
    found: list[PathTable] = []
    while len(begin):
        if len(steps) == LONGEST_WALK:
            return None
        row, interval, begin, end = cut_at(going.bounds, begin, end)
        arc = going.order[interval]
        steps.append((at[row], arc))
        arrived = np.flatnonzero(head[arc] == network.sink)
        pool, arcs = traced(steps, arrived)
        passed = np.sort(tail[arcs], axis=1)
        if (passed[:, 1:] == passed[:, :-1]).any():
            return None
        found.append(_table(network, used[arcs], pool, (end - begin)[arrived], step))
        at = np.flatnonzero(head[arc] != network.sink)
        begin, end = begin[at] + shift[arc[at]], end[at] + shift[arc[at]]
    table = joined(found)
    return table.at(np.argsort(table.pool, kind="stable"))


@dataclass(frozen=True, eq=False)
class Passing:
    """Flow through nodes, sorted by node, then by time: all that comes, or all that goes.

    ``bounds`` counts amounts in this order; what stands at ``order[i]`` has the range from
    ``bounds[i]`` to ``bounds[i + 1]``. What comes to a node and what goes has the same range.
    """

    bounds: IntArray
    order: IntArray

    @classmethod
    def build(cls, node: IntArray, amount: IntArray, time: IntArray | None = None) -> Passing:
        """Sort and count."""
        order = np.argsort(node, kind="stable") if time is None else np.lexsort((time, node))
        return cls(np.concatenate([[0], np.cumsum(amount[order])]), order)

    def begins(self) -> IntArray:
        """Return where each range begins, in the order in which they were given."""
        begin = np.empty(len(self.order), dtype=np.int64)
        begin[self.order] = self.bounds[:-1]
        return begin


def _entering(
    network: Expanded, nodes: IntArray, tail: IntArray, head: IntArray, amount: IntArray
) -> IntArray | None:
    """Say what enters at pools' nodes; None where it cannot be counted, or comes from nowhere."""
    if float(amount.sum(dtype=float)) >= CAPACITY_SUM_LIMIT:
        return None
    surplus = np.zeros(network.n_nodes, dtype=np.int64)
    np.add.at(surplus, tail, amount)
    np.subtract.at(surplus, head, amount)
    entering: IntArray = surplus[nodes]
    surplus[nodes] = 0
    surplus[network.sink] = 0
    return None if surplus.any() or (entering < 0).any() else entering


def traced(steps: list[tuple[IntArray, IntArray]], rows: IntArray) -> tuple[IntArray, IntArray]:
    """Pools of what has arrived by the last step, and its arcs, a row each."""
    columns = []
    for before, arc in reversed(steps):
        columns.append(arc[rows])
        rows = before[rows]
    return rows, np.stack(columns[::-1], axis=1)


def _table(
    network: Expanded, arcs: IntArray, pool: IntArray, amount: IntArray, step: IntArray
) -> PathTable:
    """Return paths along arcs, a row each; only those of links are hops."""
    is_hop = network.link[arcs] != NO_LINK
    arrives = np.ones((len(arcs), 1), dtype=bool)
    hosts = np.append(network.node_host[network.tail[arcs]], arrives * network.sink, axis=1)
    return PathTable(
        pool,
        amount,
        is_hop.sum(axis=1),
        hosts[np.append(is_hop, arrives, axis=1)],
        step[arcs[is_hop]],
    )


def joined(tables: list[PathTable]) -> PathTable:
    """Return the paths of several tables in one, one table after another."""
    names = ("pool", "amount", "n_hops", "hosts", "pieces")
    return PathTable(*(np.concatenate([getattr(t, name) for t in tables]) for name in names))


# Loops --------------------------------------------------------------------------------------


def without_loops(paths: Sequence[PathFlow], unlimited: BoolArray) -> Sequence[PathFlow]:
    """Let data wait at hosts with unlimited storage, rather than leave these and come back.

    Parameters
    ----------
    paths : sequence of PathFlow
    unlimited : ndarray of bool, shape (n_hosts,)
    """
    table = PathTable.of(paths)
    path = np.repeat(np.arange(len(table)), table.n_hops + 1)
    order = np.lexsort((table.hosts, path))
    again = (np.diff(path[order]) == 0) & (np.diff(table.hosts[order]) == 0)
    loops = np.unique(path[order][1:][again])
    if len(loops) == 0:
        return paths
    others = np.delete(np.arange(len(table)), loops)
    waits = unlimited.tolist()
    shorter = PathTable.of([without_loop(path, waits) for path in table.at(loops)])
    return joined([table.at(others), shorter]).at(np.argsort(np.append(others, loops)))


# Whole bytes --------------------------------------------------------------------------------


def whole_bytes_of_paths(
    n_bytes: Sequence[int], table: PathTable, last: IntArray | None = None
) -> IntArray:
    """Share each pool's bytes out among its paths, see `whole_bytes`.

    Parameters
    ----------
    n_bytes : sequence of int
        Of each pool.
    table : PathTable
        Paths sorted by pool, each of which has one at least.
    last : ndarray of int64, shape (n_pools,), optional
        A path of each pool that is not rounded down to nothing; by default its last.
    """
    pools = np.arange(len(n_bytes))
    begins = np.searchsorted(table.pool, pools)
    ends = np.searchsorted(table.pool, pools, side="right")
    last = ends - 1 if last is None else last
    amounts, shares = table.amount.tolist(), []
    rows = (begins.tolist(), ends.tolist(), last.tolist())
    for size, begin, end, at in zip(n_bytes, *rows, strict=True):
        shares += whole_bytes(size, amounts[begin:end], at - begin)
    return np.array(shares, dtype=np.int64)
