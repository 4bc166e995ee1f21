"""Whole numbers of connections for the hops of routes, and what they bring.

A route has connections of its own on each hop. On a link where N of ours get b(N), each gets
b(N)/N, and no more than its part of a wire. A route is as fast as its narrowest hop, and a pool of
data ends when its routes together have brought it, the last by a chunk later for each relay. A link
with a constant bandwidth, a host's limit and a shared bottleneck without competitors are divided:
here by the better of two simple rules, so that what is said can be kept; as is best by
`datacollect.methods.connections.divided_rates`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.methods.connections.grouped import Groups
from datacollect.problem.connection_rates import link_rates, wire_rates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.flow.network.pools import Pool
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.problem import Problem

# Newton's method from below comes as near as is worth it in this many steps.
STEPS = 5


class Candidate(NamedTuple):
    """A route that a pool's data may take: hosts by index, the last is the destination."""

    pool: int
    hosts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class CapacityUse:
    """Routes that cross each constant capacity: arrays of one length.

    Attributes
    ----------
    limit, route : ndarray of int, shape (n,)
        Sorted by both.
    times : ndarray of float, shape (n,)
        How often the route crosses it.
    """

    limit: IntArray
    route: IntArray
    times: FloatArray


@dataclass(frozen=True, eq=False)
class Brought:
    """Rates that numbers of connections bring.

    Attributes
    ----------
    rate_bytes_per_s : ndarray of float, shape (..., n_routes)
    end_s : ndarray of float, shape (..., n_pools)
        When each pool's data have arrived; infinite where nothing moves.
    route_bytes_per_s : ndarray of float, shape (..., n_routes)
        What each route could carry if nothing had to be divided.
    hop_bytes_per_s : ndarray of float, shape (..., n_hops)
        What the connections of each hop could carry; infinite where nothing but a constant limits.
    start_s : ndarray of float, shape (..., n_pools)
        When the first byte of each pool could arrive, over the longest of its routes.
    """

    rate_bytes_per_s: FloatArray
    end_s: FloatArray
    route_bytes_per_s: FloatArray
    hop_bytes_per_s: FloatArray
    start_s: FloatArray

    @property
    def makespan_s(self) -> float:
        """Return when the last has arrived."""
        return float(self.end_s.max(initial=0.0))

    @property
    def key(self) -> tuple[float, float]:
        """Return what to make small: the end, then the ends of all."""
        return self.makespan_s, float(np.minimum(self.end_s, 1e300).sum())


class Hops:
    """The hops of candidate routes, and what connections on them bring.

    Numbers are arrays with a column for each hop; most methods take several rows of them, too.

    Parameters
    ----------
    problem : Problem
        With bandwidths that do not change.
    pools : sequence of Pool
        Each has a candidate.
    candidates : sequence of Candidate
        All links exist.
    connections : int
        Most in all.
    chunk_s : float
        Each relay forwards what it received this long ago.

    Examples
    --------
    Two connections of each of two sources share 12 bytes/s with four of others:

    >>> import datacollect as dc
    >>> from datacollect.flow.network.pools import pools_by_owner
    >>> links = [dc.Link(s, "D", 2.0, per_connection_bytes_per_s=2.0) for s in "AB"]
    >>> wire = dc.SharedBottleneck("w", 12 / 5, [("A", "D"), ("B", "D")], competitors=4)
    >>> hosts = [dc.Host("A", 60), dc.Host("B", 60), dc.Host("D")]
    >>> problem = dc.Problem.from_hosts(hosts, links, "D", shared=[wire])
    >>> hops = Hops(problem, pools_by_owner(problem), [Candidate(i, (i, 2)) for i in (0, 1)], 4)
    >>> hops.brought(np.array([2, 2])).end_s
    array([20., 20.])
    """

    def __init__(
        self,
        problem: Problem,
        pools: Sequence[Pool],
        candidates: Sequence[Candidate],
        connections: int,
        chunk_s: float = 0.0,
    ) -> None:
        self.problem, self.candidates, self.connections = problem, candidates, connections
        self.pools, self.chunk_s = pools, chunk_s
        self.size = np.array([pool.n_bytes for pool in pools], dtype=float)
        self.release_s = np.array([pool.release_s for pool in pools], dtype=float)
        self.pool = np.array([c.pool for c in candidates], dtype=np.int64)
        self.length = np.array([len(c.hosts) - 1 for c in candidates], dtype=np.int64)
        self.first = np.cumsum(self.length) - self.length
        self.route = np.repeat(np.arange(len(candidates)), self.length)
        pairs = [pair for c in candidates for pair in pairwise(c.hosts)]
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        self.tail, self.head = ends[:, 0], ends[:, 1]
        self.link = problem.link_indices(self.tail, self.head)
        hosts = problem.most_connections
        self.host_room = np.full(problem.n_hosts, np.inf) if hosts is None else hosts
        self._by_pool = Groups(self.pool, len(pools))
        self._connection_tables()
        self._divided_tables()

    def _connection_tables(self) -> None:
        """Return what one connection gets among n of ours, on links and on wires."""
        problem = self.problem
        used, self.local = np.unique(self.link, return_inverse=True)
        self._by_link = Groups(self.local, len(used))
        counts = np.arange(1, self.connections + 1)
        rates = link_rates(problem).at(used)
        self.grows = rates.grows[self.local]
        together = rates.rate(counts[:, np.newaxis] * np.ones(len(used)))
        each = np.where(rates.grows, together / counts[:, np.newaxis], np.inf)
        self.each = np.vstack([each[:1], each])  # for 0 as for 1
        self.wires: list[tuple[IntArray, FloatArray]] = []
        wires = wire_rates(problem)
        for number in np.flatnonzero(wires.grows).tolist():
            crossing = np.flatnonzero(np.isin(self.link, problem.shared_links[number]))
            if len(crossing):
                part = wires.at(np.full(len(counts), number)).rate(counts) / counts
                self.wires.append((crossing, np.concatenate([part[:1], part])))

    def _divided_tables(self) -> None:
        """Return which constant capacities the routes cross, and how often."""
        problem = self.problem
        constant = np.flatnonzero(~self.grows)
        limits = [problem.bandwidth_bytes_per_s[0]]
        hops, owners = [constant], [self.link[constant]]
        start = problem.n_links
        for ends, caps in (
            (self.tail, problem.uplink_bytes_per_s[0]),
            (self.head, problem.downlink_bytes_per_s[0]),
        ):
            bounded = np.flatnonzero(np.isfinite(caps[ends]))
            limits.append(caps)
            hops.append(bounded)
            owners.append(start + ends[bounded])
            start += len(caps)
        wires = wire_rates(problem)
        for number in np.flatnonzero(~wires.grows).tolist():
            crossing = np.flatnonzero(np.isin(self.link, problem.shared_links[number]))
            hops.append(crossing)
            owners.append(np.full(len(crossing), start + number))
        limits.append(wires.bandwidth_bytes_per_s)
        used, limit = np.unique(np.concatenate(owners), return_inverse=True)
        route = self.route[np.concatenate(hops)]
        self.limit: FloatArray = np.concatenate(limits)[used]
        # A route may cross a capacity twice.
        cell, times = np.unique(limit * len(self.candidates) + route, return_counts=True)
        limit, route = np.divmod(cell, max(1, len(self.candidates)))
        self.use = CapacityUse(limit, route, times.astype(float))
        self._use_by_limit = Groups(limit, len(used))
        self._use_by_route = Groups(route, len(self.candidates))
        self._use_by_pool = Groups(self.pool[route], len(self.pools))
        self.route_limit = self._use_by_route.least(self.limit[limit] / times)

    # What numbers bring -----------------------------------------------------------------------

    def brought(self, n: IntArray) -> Brought:
        """Return what numbers of connections per hop bring; a hop without any carries nothing."""
        hop, route = self.carried(n)
        start_s = self.start_s(route)
        pool = self.of_pools(route)
        with np.errstate(divide="ignore"):
            end_s = start_s + self.size / pool
        if len(self.limit) == 0:
            return Brought(route, end_s, route, hop, start_s)
        rate, end_s = self._better(route, pool, start_s, end_s)
        return Brought(rate, end_s, route, hop, start_s)

    def carried(self, n: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return what hops could carry, and routes, if nothing had to be divided."""
        if n.shape[-1] == 0:
            return np.zeros(n.shape), np.zeros((*n.shape[:-1], 0))
        total = np.minimum(self._by_link.sums(n), self.connections)
        each = self.each[total, np.arange(total.shape[-1])][..., self.local]
        for crossing, part in self.wires:
            on_wire = np.minimum(n[..., crossing].sum(axis=-1), self.connections)
            each[..., crossing] = np.minimum(each[..., crossing], part[on_wire][..., np.newaxis])
        with np.errstate(invalid="ignore"):
            hop: FloatArray = np.where(n > 0, n * each, 0.0)
        return hop, np.minimum(np.minimum.reduceat(hop, self.first, axis=-1), self.route_limit)

    def start_s(self, route_bytes_per_s: FloatArray) -> FloatArray:
        """Return when the first byte of each pool arrives over the longest of its open routes."""
        late = np.where(route_bytes_per_s > 0, (self.length - 1) * self.chunk_s, 0.0)
        if self.chunk_s == 0 or late.shape[-1] == 0:
            return np.broadcast_to(self.release_s, (*late.shape[:-1], len(self.size)))
        return self.release_s + self._by_pool.most(late)

    def of_pools(self, rate_bytes_per_s: FloatArray) -> FloatArray:
        """Return what the routes of each pool carry together."""
        if rate_bytes_per_s.shape[-1] == 0:
            return np.zeros((*rate_bytes_per_s.shape[:-1], len(self.size)))
        return self._by_pool.sums(rate_bytes_per_s)

    def _better(
        self, route: FloatArray, pool: FloatArray, start_s: FloatArray, end_s: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Divide what is constant by two rules, and take what ends sooner.

        Each route gives up the same part of what it carries over what is too narrow; or each pool
        spreads what it needs over its routes in proportion to what they could carry.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            load = self._use_by_limit.sums(route[..., self.use.route] * self.use.times)
            part = np.minimum(1.0, np.where(load > 0, self.limit / load, 1.0))
            least = self._use_by_route.least(part[..., self.use.limit])
            scaled = route * np.minimum(1.0, least)
            scaled_s = start_s + self.size / self.of_pools(scaled)
            spread_s = np.maximum(end_s, self._spread_until(route, pool, start_s))
            length_s = np.maximum(spread_s - start_s, self.size / pool)[..., self.pool]
            spread = route / pool[..., self.pool] * self.size[self.pool] / length_s
        spread = np.where(np.isfinite(spread), spread, 0.0)
        sooner = scaled_s.max(axis=-1) <= spread_s.max(axis=-1)
        chosen = sooner[..., np.newaxis]
        return np.where(chosen, scaled, spread), np.where(chosen, scaled_s, spread_s)

    def _spread_until(self, route: FloatArray, pool: FloatArray, start_s: FloatArray) -> FloatArray:
        """Return until when what each pool crosses is busy, if all that cross it end together."""
        use, limit, by_limit = self.use, self.limit, self._use_by_limit
        pool_of = self.pool[use.route]
        share = route[..., use.route] * use.times / pool[..., pool_of]
        n_bytes = np.where(share > 0, share, 0.0) * self.size[pool_of]
        begin = np.where(n_bytes > 0, start_s[..., pool_of], -np.inf)
        alone_s = n_bytes / limit[use.limit]

        def load(until_s: FloatArray) -> tuple[FloatArray, FloatArray]:
            gap = np.where(n_bytes > 0, until_s[..., use.limit] - begin, np.inf)
            gap = np.maximum(gap, alone_s)  # which late instants may swallow
            return by_limit.sums(n_bytes / gap), by_limit.sums(n_bytes / gap**2)

        until = by_limit.most(begin + alone_s)
        for _ in range(STEPS):
            rate, slope = load(until)
            until = until + np.where(rate > limit, (rate - limit) / slope, 0.0)
        # What is left until the end: as much longer, from the first start on.
        first = start_s.min(axis=-1)[..., np.newaxis]
        until = first + (until - first) * np.maximum(1.0, load(until)[0] / limit)
        crossing = np.where(n_bytes > 0, until[..., use.limit], -np.inf)
        return self._use_by_pool.most(crossing)

    def fits(self, n: IntArray) -> bool:
        """Return whether the budget and hosts' budgets allow these numbers."""
        if n.sum() > self.connections:
            return False
        if np.isinf(self.host_room).all():
            return True
        n_hosts = len(self.host_room)
        at = np.bincount(self.tail, n, n_hosts) + np.bincount(self.head, n, n_hosts)
        return bool((at <= self.host_room).all())

    def fit(self, n: IntArray) -> BoolArray:
        """Return whether the budget and hosts' budgets allow each row."""
        fits: BoolArray = n.sum(axis=-1) <= self.connections
        for host in np.flatnonzero(np.isfinite(self.host_room)).tolist():
            at = np.flatnonzero((self.tail == host) | (self.head == host))
            fits &= n[..., at].sum(axis=-1) <= self.host_room[host]
        return fits
