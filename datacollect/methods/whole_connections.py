"""Whole numbers of connections for the hops of routes: what they bring, and better ones.

A route has connections of its own on each hop. On a link where N of ours get b(N), each gets
b(N)/N, and no more than its part of a wire; a link with a constant bandwidth, a host's limit and a
shared bottleneck without competitors are divided as is best. A route is as fast as its narrowest
hop, and a pool of data ends when its routes together have brought it.

Numbers are found by steps: what ends last is given the next connection where it gains most, and,
when none is left, one that others can do without.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.problem.connection_rates import link_rates, wire_rates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from datacollect.arrays import FloatArray, IntArray
    from datacollect.flow.pools import Pool
    from datacollect.problem.problem import Problem

# Steps that gain less than this part are not worth a look.
GAINS = 1e-9
# Of those that can best do without a connection, so many are tried.
DONORS = 4
# Evaluations of numbers of connections, a few dozen microseconds each, after which search ends.
MOST_TRIES = 2000


class Candidate(NamedTuple):
    """A way that a pool's data may take: hosts by index, the last is the destination."""

    pool: int
    hosts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Brought:
    """What numbers of connections bring.

    Attributes
    ----------
    rate_bytes_per_s : ndarray of float, shape (n_routes,)
    end_s : ndarray of float, shape (n_pools,)
        When each pool's data have arrived; infinite where nothing moves.
    hop_bytes_per_s : ndarray of float, shape (n_hops,)
        What each hop could carry.
    """

    rate_bytes_per_s: FloatArray
    end_s: FloatArray
    hop_bytes_per_s: FloatArray

    @property
    def makespan_s(self) -> float:
        """When the last has arrived."""
        return float(self.end_s.max(initial=0.0))

    @property
    def key(self) -> tuple[float, float]:
        """What to make small: the end, then the ends of all."""
        return self.makespan_s, float(np.minimum(self.end_s, 1e300).sum())


class Hops:
    """The hops of candidate routes, and what connections on them bring.

    Parameters
    ----------
    problem : Problem
        With bandwidths that do not change.
    pools : sequence of Pool
    candidates : sequence of Candidate
        All links exist.
    connections : int
        Most in all.

    Examples
    --------
    Two connections of each of two sources share 12 bytes/s with four of others:

    >>> import datacollect as dc
    >>> from datacollect.flow.pools import pools_by_owner
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
    ) -> None:
        self.problem, self.candidates, self.connections = problem, candidates, connections
        self.size = np.array([pool.n_bytes for pool in pools], dtype=float)
        self.release_s = np.array([pool.release_s for pool in pools])
        self.pool = np.array([c.pool for c in candidates], dtype=np.int64)
        n_hops = np.array([len(c.hosts) - 1 for c in candidates], dtype=np.int64)
        self.first = np.cumsum(n_hops) - n_hops
        self.route = np.repeat(np.arange(len(candidates)), n_hops)
        pairs = [pair for c in candidates for pair in pairwise(c.hosts)]
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        self.tail, self.head = ends[:, 0], ends[:, 1]
        self.link = problem.link_indices(self.tail, self.head)
        self._tables()
        hosts = problem.most_connections
        self.host_room = np.full(problem.n_hosts, np.inf) if hosts is None else hosts
        self.tries = 0
        self.may_open = np.ones(len(candidates), dtype=bool)

    def _tables(self) -> None:
        """What one connection gets among n, and what is divided as is best."""
        problem = self.problem
        self.used, self.local = np.unique(self.link, return_inverse=True)
        counts = np.arange(1, self.connections + 1)[:, np.newaxis]
        rates = link_rates(problem).at(self.used)
        each = np.where(rates.grows, rates.rate(counts * np.ones(len(self.used))) / counts, np.inf)
        self.each = np.vstack([each[:1], each])  # for 0 as for 1
        wires, crossed = wire_rates(problem), []
        self.wire_hop, self.wire_of = np.zeros((2, 0), dtype=np.int64)
        limits, users, owners = [], [], []
        constant = np.flatnonzero(~rates.grows[self.local])
        limits.append(rates.bandwidth_bytes_per_s)
        users.append(constant)
        owners.append(self.local[constant])
        start = len(self.used)
        for ends, caps in (
            (self.tail, problem.uplink_bytes_per_s),
            (self.head, problem.downlink_bytes_per_s),
        ):
            bounded = np.flatnonzero(np.isfinite(caps[ends]))
            limits.append(caps)
            users.append(bounded)
            owners.append(start + ends[bounded])
            start += len(caps)
        for number, members in enumerate(problem.shared_links):
            hops = np.flatnonzero(np.isin(self.link, members))
            if wires.grows[number]:
                crossed.append((hops, np.full(len(hops), number)))
            else:
                users.append(hops)
                owners.append(np.full(len(hops), start + number))
        limits.append(wires.bandwidth_bytes_per_s)
        if crossed:
            self.wire_hop, self.wire_of = (
                np.concatenate(part) for part in zip(*crossed, strict=True)
            )
        grown = np.where(wires.grows, wires.rate(counts * np.ones(len(problem.shared))), np.inf)
        self.wire_each = np.vstack([grown[:1], grown / counts])
        self.limit = np.concatenate(limits)
        self.user, self.owner = np.concatenate(users), np.concatenate(owners)

    def brought(self, n: IntArray) -> Brought:
        """Return what numbers of connections per hop bring; a hop without any carries nothing."""
        self.tries += 1
        hop = self._capped(n)
        rate = np.minimum.reduceat(hop, self.first) if len(hop) else np.zeros(0)
        rate, hop = self._divided(rate, hop)
        pool = np.bincount(self.pool, rate, len(self.size))
        with np.errstate(divide="ignore"):
            end_s = self.release_s + self.size / pool
        return Brought(rate, end_s, hop)

    def undivided(self, n: IntArray) -> FloatArray:
        """Return what each route's connections could carry if no constant capacity were shared."""
        return np.minimum.reduceat(self._capped(n), self.first)

    def _capped(self, n: IntArray) -> FloatArray:
        """What connections get on each hop; infinite where a constant is divided."""
        total = np.bincount(self.local, n, len(self.used)).astype(np.int64)
        each = self.each[np.minimum(total, self.connections), np.arange(len(self.used))][self.local]
        if len(self.wire_hop):
            n_wires = len(self.problem.shared)
            on_wire = np.bincount(self.wire_of, n[self.wire_hop], n_wires).astype(np.int64)
            on_wire = np.minimum(on_wire, self.connections)
            np.minimum.at(
                each, self.wire_hop, self.wire_each[on_wire, np.arange(n_wires)][self.wire_of]
            )
        with np.errstate(invalid="ignore"):
            return np.where(n > 0, n * each, 0.0)

    def _divided(self, rate: FloatArray, hop: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Give what shares a constant capacity the same part each of what it could carry."""
        if len(self.user) == 0:
            return rate, hop
        is_open = hop[self.user] > 0
        user, owner = self.user[is_open], self.owner[is_open]
        # What nothing else limits takes all.
        rate = np.where(np.isinf(rate), 2 * float(self.limit[np.isfinite(self.limit)].sum()), rate)
        load = np.bincount(owner, rate[self.route[user]], len(self.limit))
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.where(load > self.limit, self.limit / load, 1.0)
        least = np.ones(len(hop))
        np.minimum.at(least, user, part[owner])
        hop = np.minimum(hop, rate[self.route] * least)
        return rate * np.minimum.reduceat(least, self.first), hop

    def fits(self, n: IntArray) -> bool:
        """Whether the budget and hosts' budgets allow so many."""
        if n.sum() > self.connections:
            return False
        if np.isinf(self.host_room).all():
            return True
        n_hosts = len(self.host_room)
        at = np.bincount(self.tail, n, n_hosts) + np.bincount(self.head, n, n_hosts)
        return bool((at <= self.host_room).all())

    # Steps ------------------------------------------------------------------------------------

    def wider(self, n: IntArray, now: Brought, pool: int) -> Iterator[IntArray]:
        """Yield numbers with which a pool's routes may be faster: one more where it is narrow."""
        for route in np.flatnonzero(self.pool == pool).tolist():
            hops = np.flatnonzero(self.route == route)
            more = n.copy()
            if n[hops[0]] == 0:
                if not self.may_open[route]:
                    continue
                more[hops] = 1
            else:
                narrow = hops[
                    now.hop_bytes_per_s[hops] <= now.rate_bytes_per_s[route] * (1 + GAINS)
                ]
                if len(narrow) == 0:
                    continue
                more[narrow] += 1
            yield more

    def spared(self, n: IntArray, now: Brought, wanted: int) -> list[IntArray]:
        """Return numbers with at least one connection less, those first that end soonest."""
        found = []
        with np.errstate(divide="ignore", invalid="ignore"):
            pool_rate = np.bincount(self.pool, now.rate_bytes_per_s, len(self.size))
            left = pool_rate[self.pool] - now.rate_bytes_per_s
            closed_s = self.release_s[self.pool] + self.size[self.pool] / left
            part = np.where(n > 1, (n - 1) / np.maximum(n, 1), 0.0) * now.hop_bytes_per_s
            fewer = np.minimum(now.rate_bytes_per_s[self.route], part)
            fewer_s = self.release_s[self.pool[self.route]] + self.size[self.pool[self.route]] / (
                left[self.route] + fewer
            )
        fewer_s = np.where(n > 1, fewer_s, np.inf)
        closed_s = np.where(n[self.first] > 0, closed_s, np.inf)
        ends_s = np.concatenate([fewer_s, closed_s])
        most = min(DONORS + wanted, len(ends_s))
        chosen = np.argpartition(ends_s, most - 1)[:most]
        for i in chosen[np.argsort(ends_s[chosen], kind="stable")].tolist():
            less = n.copy()
            if i < len(n) and n[i] > 1:
                less[i] -= 1
            elif i >= len(n) and n[self.first[i - len(n)]] > 0:
                less[self.route == i - len(n)] = 0
            else:
                continue
            found.append(less)
        return found


def filled(hops: Hops, n: IntArray) -> IntArray:
    """Give connections that are left, one after another, to what ends last, where it gains most."""
    now = hops.brought(n)
    while hops.tries < MOST_TRIES:
        steps = (more for more in hops.wider(n, now, int(now.end_s.argmax())) if hops.fits(more))
        found = _best(hops, now, n, steps)
        if found is None:
            return n
        n, now = found
    return n


def _best(
    hops: Hops, now: Brought, n: IntArray, steps: Iterable[IntArray]
) -> tuple[IntArray, Brought] | None:
    """Return the step that gains most per connection."""
    best: tuple[float, IntArray, Brought] | None = None
    last = int(now.end_s.argmax())
    for more in steps:
        then = hops.brought(more)
        if not then.key < now.key or then.makespan_s > now.makespan_s * (1 + GAINS):
            continue
        before, after = (
            now.end_s[last] - hops.release_s[last],
            then.end_s[last] - hops.release_s[last],
        )
        rate = hops.size[last] / max(after, 1e-300) - hops.size[last] / max(before, 1e-300)
        gain = float(rate) / max(1, int(more.sum() - n.sum()))
        if gain > 0 and (best is None or gain > best[0]):
            best = gain, more, then
    return None if best is None else best[1:]


def improved(hops: Hops, n: IntArray) -> IntArray:
    """Move connections from where they are spared to what ends last, while it ends sooner."""
    n = filled(hops, n)
    now = hops.brought(n)
    while hops.tries < MOST_TRIES:
        best: tuple[tuple[float, float], IntArray, Brought] | None = None
        last = int(now.end_s.argmax())
        for more in hops.wider(n, now, last):
            missing = int(more.sum()) - hops.connections
            for less in _with_room(hops, more, now, max(1, missing)):
                then = hops.brought(less)
                if then.makespan_s < now.makespan_s * (1 - GAINS) and (
                    best is None or then.key < best[0]
                ):
                    best = then.key, less, then
        if best is None:
            return n
        n = filled(hops, best[1])
        now = hops.brought(n)
    return n


def shaken(hops: Hops, n: IntArray) -> IntArray:
    """Search again from where one pool takes one of its routes alone, for each of them."""
    now = hops.brought(n)
    for route in range(len(hops.candidates)):
        if hops.tries >= MOST_TRIES:
            break
        other = n.copy()
        other[hops.pool[hops.route] == hops.pool[route]] = 0
        other[hops.route == route] = 1
        while not hops.fits(other):
            spared = hops.spared(other, hops.brought(other), 1)
            if not spared:
                break
            other = spared[0]
        if not hops.fits(other):
            continue
        other = improved(hops, other)
        then = hops.brought(other)
        if then.makespan_s < now.makespan_s * (1 - GAINS):
            n, now = other, then
    return n


def _with_room(hops: Hops, more: IntArray, now: Brought, missing: int) -> Iterator[IntArray]:
    """Yield numbers that fit, from some that do not: others give up what they can spare."""
    if hops.fits(more):
        yield more
        return
    for less in hops.spared(more, now, missing):
        left = less
        for _ in range(missing):
            if hops.fits(left):
                break
            others = hops.spared(left, hops.brought(left), missing)
            if not others:
                break
            left = others[0]
        if hops.fits(left):
            yield left
