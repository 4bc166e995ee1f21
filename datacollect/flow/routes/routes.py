"""Path decomposition: from arc flows to routes in whole bytes.

Any flow is a sum of at most as many paths (and cycles) as it has arcs in use (Ford and
Fulkerson, Flows in Networks, 1962). Cycles carry nothing anywhere and are dropped.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from datacollect.flow.network.layered import NO_LINK
from datacollect.numbers.arrays import FloatArray, IntArray, ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from datacollect.flow.network.pools import Pool
    from datacollect.problem.hosts import Parcel


# In floats less than this part of what passes a node is lost in the difference of large numbers.
DROWNED = 1e-12


class PathFlow(NamedTuple):
    """An amount of one pool's data that follows the same hosts in the same pieces of time.

    ``hosts`` are indices; hop i runs from ``hosts[i]`` to ``hosts[i + 1]`` in piece ``pieces[i]``.
    """

    pool: int
    hosts: tuple[int, ...]
    pieces: tuple[int, ...]
    amount: float


class Expanded(Protocol):
    """A network expanded over time: layered in pieces, or in slots."""

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""

    @property
    def sink(self) -> int:
        """The destination's node."""

    @property
    def node_host(self) -> IntArray:
        """The host of each node."""

    @property
    def tail(self) -> IntArray:
        """Return where each arc begins."""

    @property
    def head(self) -> IntArray:
        """Return where each arc ends."""

    @property
    def link(self) -> IntArray:
        """The problem's link that each arc stands for, or `NO_LINK`."""

    @property
    def pools(self) -> tuple[Pool, ...]:
        """Return where data enter."""


def decompose(network: Expanded, step: IntArray, flow: IntArray | FloatArray) -> list[PathFlow]:
    """Split a flow into paths from pools to the sink.

    Parameters
    ----------
    step : ndarray of int, shape (n_arcs,)
        Piece of time, or slot, of each arc: what becomes `PathFlow.pieces`.
    flow : ndarray, shape (n_arcs,)
        Units per arc: integers, or floats that solve a linear program.
    """
    used = np.flatnonzero(flow > 0)
    left = flow[used].tolist()
    tail, head = network.tail[used].tolist(), network.head[used].tolist()
    leaving: defaultdict[int, list[int]] = defaultdict(list)
    for i, node in enumerate(tail):
        leaving[node].append(i)
    # Others' data may pass a pool's node: what enters there is what leaves beyond what comes in.
    entering = np.zeros(network.n_nodes, dtype=flow.dtype)
    np.add.at(entering, network.tail[used], flow[used])
    np.subtract.at(entering, network.head[used], flow[used])
    if not np.issubdtype(flow.dtype, np.integer):
        _keep_what_drowns(network, entering, flow.astype(float))
    arcs_of_walks = (
        (pool, walk, amount)
        for pool, entry in enumerate(network.pools)
        for walk, amount in _walks(
            entry.node, entering[entry.node].item(), network.sink, head, left, leaving
        )
    )
    link, piece = network.link[used].tolist(), step[used].tolist()
    host = network.node_host[network.tail[used]].tolist()
    paths = []
    for pool, walk, amount in arcs_of_walks:
        hops = [i for i in walk if link[i] != NO_LINK]
        hosts = (*[host[i] for i in hops], network.sink)
        paths.append(PathFlow(pool, hosts, tuple([piece[i] for i in hops]), amount))
    return paths


def _keep_what_drowns(network: Expanded, entering: npt.NDArray[Any], flow: FloatArray) -> None:
    """Route as a whole what is lost in floats beside all that passes the same node."""
    passing = np.zeros(network.n_nodes)
    np.add.at(passing, network.tail, flow)
    for pool in network.pools:
        if pool.n_bytes < DROWNED * passing[pool.node]:
            entering[pool.node] = max(entering[pool.node], pool.n_bytes)


def _walks(
    start: int,
    amount: float,
    sink: int,
    head: Sequence[int],
    left: list[float],
    leaving: dict[int, list[int]],
) -> Iterator[tuple[list[int], float]]:
    """Take paths from `start` until they carry `amount`."""
    while amount > 0:
        walk = _walk(start, sink, head, left, leaving)
        if walk is None:
            return  # only rounding is left
        carried = min(amount, *[left[arc] for arc in walk])
        for arc in walk:
            left[arc] -= carried
        amount -= carried
        yield walk, carried


def _walk(
    start: int,
    sink: int,
    head: Sequence[int],
    left: list[float],
    leaving: dict[int, list[int]],
) -> list[int] | None:
    """Follow arcs with flow to the sink, taking cycles out of the flow."""
    walk: list[int] = []
    position = {start: 0}
    node = start
    while node != sink:
        arcs = leaving[node]
        while arcs and left[arcs[-1]] <= 0:
            arcs.pop()
        if not arcs:
            if not walk:
                return None
            left[walk[-1]] = 0  # rounding left a crumb that leads nowhere: start again
            walk, position, node = [], {start: 0}, start
            continue
        walk.append(arcs[-1])
        node = head[arcs[-1]]
        if node in position:
            cycle = walk[position[node] :]
            least = min(left[arc] for arc in cycle)
            for arc in cycle:
                left[arc] -= least
            del walk[position[node] :]
            position = {start: 0} | {head[arc]: i + 1 for i, arc in enumerate(walk)}
        else:
            position[node] = len(walk)
    return walk


def without_loop(path: PathFlow, unlimited: Sequence[bool]) -> PathFlow:
    """Let data wait at a host with unlimited storage, rather than leave it and come back.

    >>> without_loop(PathFlow(0, (3, 2, 3, 0), (0, 1, 2), 5.0), [True] * 4)
    PathFlow(pool=0, hosts=(3, 0), pieces=(2,), amount=5.0)
    """
    hosts, pieces = path.hosts, path.pieces
    if len(set(hosts)) == len(hosts):
        return path
    for first, host in enumerate(hosts):
        last = len(hosts) - 1 - hosts[::-1].index(host)
        if last > first and unlimited[host]:
            shorter = path._replace(
                hosts=hosts[:first] + hosts[last:], pieces=pieces[:first] + pieces[last:]
            )
            return without_loop(shorter, unlimited)
    return path


def whole_bytes(n_bytes: int, amounts: Sequence[float], last: int = -1) -> list[int]:
    """Share `n_bytes` out in proportion to `amounts`, in whole bytes.

    What is rounded is carried over to the next: neighbours together, however many, are off by less
    than one byte. So what takes one route in piece after piece of time is off by one byte in all,
    not by one each.

    Parameters
    ----------
    n_bytes : int
    amounts : sequence of int or float
        Not all 0.
    last : int
        This one is not rounded down to nothing, unless it is 0.

    Examples
    --------
    >>> whole_bytes(10, [1, 1, 1])
    [3, 4, 3]
    >>> whole_bytes(2, [1, 1, 1, 1, 1], last=2)
    [1, 0, 1, 0, 0]
    """
    if len(amounts) == 1:
        return [n_bytes]
    weights = _whole_weights(amounts)
    upto = list(accumulate(weights))
    shares = _rounded(n_bytes, upto, (upto[-1] - 1) // 2)
    if shares[last] == 0:
        # An edge exactly behind the last one is one that no shift puts before it.
        shares = _rounded(n_bytes, upto, -n_bytes * upto[last] % upto[-1])
    return shares


def _rounded(n_bytes: int, upto: Sequence[int], shift: int) -> list[int]:
    """Round shares by their ends, after a shift below one byte; Python's integers have no end."""
    edges = [0, *((n_bytes * weight + shift) // upto[-1] for weight in upto)]
    return [after - before for before, after in pairwise(edges)]


def _whole_weights(amounts: Sequence[float]) -> list[int]:
    """Return whole numbers in proportion, which of floats have all their bits."""
    if not any(isinstance(amount, float) for amount in amounts):
        return [int(amount) for amount in amounts]
    total = sum(amounts)
    return [max(int(amount / total * 2.0**120), 1) if amount else 0 for amount in amounts]


def cut_parcels(pool: Pool, sizes: Sequence[int]) -> Iterator[tuple[int, Parcel, int, int]]:
    """Lay `sizes` end to end over a pool's parcels.

    Yields
    ------
    tuple
        Index into `sizes`, the parcel, offset within the source's backlog, and bytes.
    """
    parcels = iter(pool.parcels)
    parcel = next(parcels)
    done = 0
    for i, size in enumerate(sizes):
        while size > 0:
            if done == parcel.n_bytes:
                parcel, done = next(parcels), 0
            part = min(size, parcel.n_bytes - done)
            yield i, parcel, parcel.offset_bytes + done, part
            done += part
            size -= part


def cut_at(
    bounds: IntArray, begin: IntArray, end: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Cut ranges at `bounds`: return row, interval between bounds, begin and end of each part.

    >>> [part.tolist() for part in cut_at(np.array([0, 4, 9]), np.array([1, 5]), np.array([6, 7]))]
    [[0, 0, 1], [0, 1, 1], [1, 4, 5], [4, 6, 7]]
    """
    first = np.searchsorted(bounds, begin, side="right") - 1
    count = np.searchsorted(bounds, end, side="left") - first
    row = np.repeat(np.arange(len(begin)), count)
    interval = ranges(first, count)
    return (
        row,
        interval,
        np.maximum(begin[row], bounds[interval]),
        np.minimum(end[row], bounds[interval + 1]),
    )
