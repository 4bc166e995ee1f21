"""Better numbers of connections by steps, for problems in which not all numbers can be tried.

What ends last is given the next connection where it gains most, and, when none is left, one that
others can do without. Steps are judged by what `Hops.brought` says, a number of times that is
limited; neighbours are judged by the best rates (`datacollect.methods.connections.soonest`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from datacollect.methods.connections.whole_connections import Brought, Hops
    from datacollect.numbers.arrays import BoolArray, IntArray

# Steps that gain less than this part are not worth a look.
GAINS = 1e-9
# How many are tried of those that can best do without a connection.
DONORS = 4
# Evaluations of numbers of connections, some hundred microseconds each, after which search ends.
MOST_TRIES = 1000
# So many numbers around some are looked at, those with fewer changes first.
MOST_NEIGHBOURS = 10_000


class Search:
    """Steps from one set of numbers to better ones.

    Parameters
    ----------
    hops : Hops

    Attributes
    ----------
    tries : int
        How often numbers were evaluated; from `MOST_TRIES` on no more steps are made.
    """

    def __init__(self, hops: Hops) -> None:
        self.hops = hops
        self.tries = 0

    def brought(self, n: IntArray) -> Brought:
        """Return what numbers bring, and count it."""
        self.tries += 1
        return self.hops.brought(n)

    def filled(self, n: IntArray) -> IntArray:
        """Give what is left, one after another, to what ends last, where it gains most."""
        now = self.brought(n)
        while self.tries < MOST_TRIES:
            last = int(now.end_s.argmax())
            steps = (more for more in wider(self.hops, n, now, last) if self.hops.fits(more))
            found = self._best(now, n, steps)
            if found is None:
                return n
            n, now = found
        return n

    def _best(
        self, now: Brought, n: IntArray, steps: Iterable[IntArray]
    ) -> tuple[IntArray, Brought] | None:
        """Return the step that gains most per connection."""
        hops = self.hops
        best: tuple[float, IntArray, Brought] | None = None
        last = int(now.end_s.argmax())
        for more in steps:
            then = self.brought(more)
            if not then.key < now.key or then.makespan_s > now.makespan_s * (1 + GAINS):
                continue
            before_s, after_s = (x.end_s[last] - hops.release_s[last] for x in (now, then))
            rate = hops.size[last] / max(after_s, 1e-300) - hops.size[last] / max(before_s, 1e-300)
            gain = float(rate) / max(1, int(more.sum() - n.sum()))
            if gain > 0 and (best is None or gain > best[0]):
                best = gain, more, then
        return None if best is None else best[1:]

    def improved(self, n: IntArray) -> IntArray:
        """Move connections from where they are spared to what ends last, while it ends sooner."""
        n = self.filled(n)
        now = self.brought(n)
        while self.tries < MOST_TRIES:
            best: tuple[tuple[float, float], IntArray, Brought] | None = None
            for more in wider(self.hops, n, now, int(now.end_s.argmax())):
                missing = int(more.sum()) - self.hops.connections
                for less in self._with_room(more, now, max(1, missing)):
                    then = self.brought(less)
                    if then.makespan_s < now.makespan_s * (1 - GAINS) and (
                        best is None or then.key < best[0]
                    ):
                        best = then.key, less, then
            if best is None:
                return n
            n = self.filled(best[1])
            now = self.brought(n)
        return n

    def shaken(self, n: IntArray) -> IntArray:
        """Search again from where one pool takes one of its routes alone, for each of them."""
        hops = self.hops
        now = self.brought(n)
        for route in range(len(hops.candidates)):
            if self.tries >= MOST_TRIES:
                break
            other = n.copy()
            other[hops.pool[hops.route] == hops.pool[route]] = 0
            other[hops.route == route] = 1
            while not hops.fits(other):
                less = spared(hops, other, self.brought(other), 1)
                if not less:
                    break
                other = less[0]
            if not hops.fits(other):
                continue
            other = self.improved(other)
            then = self.brought(other)
            if then.makespan_s < now.makespan_s * (1 - GAINS):
                n, now = other, then
        return n

    def _with_room(self, more: IntArray, now: Brought, missing: int) -> Iterator[IntArray]:
        """Yield numbers that fit, from some that do not: others give up what they can spare."""
        hops = self.hops
        if hops.fits(more):
            yield more
            return
        for less in spared(hops, more, now, missing):
            left = less
            for _ in range(missing):
                if hops.fits(left):
                    break
                others = spared(hops, left, self.brought(left), missing)
                if not others:
                    break
                left = others[0]
            if hops.fits(left):
                yield left


def wider(hops: Hops, n: IntArray, now: Brought, pool: int) -> Iterator[IntArray]:
    """Yield numbers with which a pool's routes may be faster: one more where it is narrow."""
    for route in np.flatnonzero(hops.pool == pool).tolist():
        own = np.flatnonzero(hops.route == route)
        more = n.copy()
        if n[own[0]] == 0:
            more[own] = 1
        else:
            narrow = own[now.hop_bytes_per_s[own] <= now.route_bytes_per_s[route] * (1 + GAINS)]
            if len(narrow) == 0:
                continue
            more[narrow] += 1
        yield more


def spared(hops: Hops, n: IntArray, now: Brought, wanted: int) -> list[IntArray]:
    """Return numbers with at least one connection less, those first that end soonest."""
    found = []
    route_rate = now.route_bytes_per_s
    with np.errstate(divide="ignore", invalid="ignore"):
        left = hops.of_pools(route_rate)[hops.pool] - route_rate
        closed_s = hops.release_s[hops.pool] + hops.size[hops.pool] / left
        part = np.where(n > 1, (n - 1) / np.maximum(n, 1), 0.0) * now.hop_bytes_per_s
        fewer = np.minimum(route_rate[hops.route], part)
        pool = hops.pool[hops.route]
        fewer_s = hops.release_s[pool] + hops.size[pool] / (left[hops.route] + fewer)
    fewer_s = np.where(n > 1, fewer_s, np.inf)
    closed_s = np.where(n[hops.first] > 0, closed_s, np.inf)
    ends_s = np.concatenate([fewer_s, closed_s])
    most = min(DONORS + wanted, len(ends_s))
    chosen = np.argpartition(ends_s, most - 1)[:most]
    for i in chosen[np.argsort(ends_s[chosen], kind="stable")].tolist():
        less = n.copy()
        if i < len(n) and n[i] > 1:
            less[i] -= 1
        elif i >= len(n) and n[hops.first[i - len(n)]] > 0:
            less[hops.route == i - len(n)] = 0
        else:
            continue
        found.append(less)
    return found


def neighbours(hops: Hops, n: IntArray) -> IntArray:
    """Return numbers that differ from some by little.

    By one more, by up to two less, or both: on a hop, on all of a route, or a route that opens or
    closes. Or by two routes at most that open in place of others of their pools.

    Returns
    -------
    ndarray of int, shape (n_rows, n_hops)
        Those that fit and leave every pool a route, at most `MOST_NEIGHBOURS`.
    """
    unit = np.eye(len(n), dtype=np.int64)
    route = (hops.route == np.arange(len(hops.candidates))[:, np.newaxis]).astype(np.int64)
    is_open = n[hops.first] > 0
    fewest = np.minimum.reduceat(n, hops.first)
    none = np.zeros((1, len(n)), dtype=np.int64)
    more = np.concatenate([none, unit[n > 0], route])
    less = np.concatenate(
        [-unit[n > 1], -route[is_open & (fewest > 1) & (hops.length > 1)], -route[is_open] * n]
    )
    closes, opens = np.nonzero(
        is_open[:, np.newaxis] & ~is_open & (hops.pool[:, np.newaxis] == hops.pool)
    )
    swaps = np.concatenate([none, route[opens] - route[closes] * n])
    parts = [(more, np.concatenate([none, less])), (swaps, swaps), (more, _sums_of_two(less))]
    changes = np.zeros((0, len(n)), dtype=np.int64)
    for one, other in parts:
        most = max(0, MOST_NEIGHBOURS - len(changes)) // max(1, len(one))
        sums = (one[:, np.newaxis] + other[:most]).reshape(-1, len(n))
        changes = np.concatenate([changes, sums])
    rows = n + changes
    rows = rows[(rows >= 0).all(axis=1)]
    rows = rows[hops.fit(rows)]
    opened = (rows > 0).astype(np.int64)
    starts, ends = (f.reduceat(opened, hops.first, axis=1) for f in (np.minimum, np.maximum))
    whole: BoolArray = (starts == ends).all(axis=1) & (hops.of_pools(starts) > 0).all(axis=1)
    found: IntArray = rows[whole]
    return found


def _sums_of_two(changes: IntArray) -> IntArray:
    first, second = np.triu_indices(len(changes))
    found: IntArray = changes[first] + changes[second]
    return found
