"""The best whole numbers of connections and rates of small problems, from problems' files alone.

All ways without a host twice, all numbers of connections on each hop of each way. Of a link's
capacity C beside m others, N of ours get C N/(N + m) in all, each the same; a wire that links share
gives to each connection on it likewise. What is constant is divided as is best, by SciPy's linear
programs. A source's ways run at constant rates from its release until its data are there.

Not every number has its program: once some end is known, a program at that end either finds a
sooner one, or its dual prices say which other numbers cannot, either.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from judges.all_allocations import _at_least_one, _paths
from scipy.optimize import linprog

# Ends that differ by less than this part are one.
SAME = 1e-7
COUNTED = ("per_connection_bytes_per_s", "capacity_bytes_per_s", "competitors")


def together(entry, n):
    """What n connections get on a link or a wire; None where more get no more."""
    one = entry["bandwidth_bytes_per_s"]
    alone, capacity, others = (entry.get(key) for key in COUNTED)
    if alone is None and capacity is None and others is None:
        return None
    if one == 0:
        return 0.0

    def bare(n):
        m = others
        if capacity is None and m is None:
            return n * alone
        if m is None:
            is_limit = alone is not None and alone <= one * 1.01
            m = 0.0 if is_limit else max(capacity / one - 1, 0.0)
        c = one * (1 + m) if capacity is None else capacity
        r = math.inf if alone is None else alone
        if alone is None and capacity is not None and others is not None and c / (1 + m) > one:
            r = one  # nothing else explains what one gets
        return min(n * r, c * n / (n + m))

    return one * bare(n) / bare(1)


class Small:
    """A problem as its file says it, all ways in it, and what limits them.

    Constants are rows of `crossed @ rates <= limits`, ways' connections give `caps`.
    """

    def __init__(self, tree, most, hops=9):
        self.most = most
        self.hosts = tree["hosts"]
        self.sources = {k: v for k, v in self.hosts.items() if v.get("backlog_bytes", 0) > 0}
        self.links = {(x["from"], x["to"]): x for x in tree["links"]}
        self.shared = tree.get("shared", [])
        end = tree["destination"]
        pairs = {p: x for p, x in self.links.items() if p[0] != end}
        self.ways = [(s, way) for s in self.sources for way in _paths(pairs, s, end, hops)]
        self.hop = [pair for _, way in self.ways for pair in pairwise(way)]
        self.way_of = [i for i, (_, way) in enumerate(self.ways) for _ in way[1:]]
        names = list(self.sources)
        self.source_of = np.array([names.index(s) for s, _ in self.ways], dtype=int)
        self.size = np.array([float(x["backlog_bytes"]) for x in self.sources.values()])
        self.release = np.array([float(x.get("release_s", 0.0)) for x in self.sources.values()])
        self.crossed, self.limits = self._constants()

    def _constants(self):
        rows = []
        for pair, link in self.links.items():
            if together(link, 1) is None:
                rows.append(({pair}, link["bandwidth_bytes_per_s"]))
        for name, host in self.hosts.items():
            for side, key in enumerate(("uplink_bytes_per_s", "downlink_bytes_per_s")):
                if key in host:
                    rows.append(({p for p in self.links if p[side] == name}, host[key]))
        rows += [
            ({tuple(p) for p in wire["links"]}, wire["bandwidth_bytes_per_s"])
            for wire in self.shared
            if together(wire, 1) is None
        ]
        crossed = np.zeros((len(rows), len(self.ways)))
        for i, (members, _) in enumerate(rows):
            for pair, way in zip(self.hop, self.way_of, strict=True):
                crossed[i, way] += pair in members
        return crossed, np.array([limit for _, limit in rows], dtype=float)

    def numbers(self):
        """All numbers that leave every source a way and keep to hosts' limits."""
        starts = np.searchsorted(self.way_of, np.arange(len(self.ways)))
        found = [(0, {})]
        for i in range(len(self.sources)):
            # The others need one at least.
            most = self.most - (len(self.sources) - 1)
            own = [(0, {})]
            for number in np.flatnonzero(self.source_of == i).tolist():
                length, first = len(self.ways[number][1]) - 1, int(starts[number])
                own += [
                    (total + sum(opened), {**before, **dict(enumerate(opened, first))})
                    for total, before in own
                    for opened in _at_least_one(length, most - total)
                ]
            found = [
                (total + more, {**before, **opened})
                for total, before in found
                for more, opened in own
                if opened and total + more <= self.most - (len(self.sources) - 1 - i)
            ]
        rows = np.zeros((len(found), len(self.hop)), dtype=np.int8)
        for row, (_, opened) in enumerate(found):
            rows[row, list(opened)] = list(opened.values())
        for name, host in self.hosts.items():
            if "most_connections" in host:
                at = [h for h, pair in enumerate(self.hop) if name in pair]
                rows = rows[rows[:, at].sum(axis=1) <= host["most_connections"]]
        return rows

    def caps(self, rows):
        """What each way carries by its connections, without what is divided; infinite by none."""
        each = np.full(rows.shape, np.inf)
        groups = [({pair}, link) for pair, link in self.links.items()]
        groups += [({tuple(p) for p in wire["links"]}, wire) for wire in self.shared]
        for members, entry in groups:
            at = [h for h, pair in enumerate(self.hop) if pair in members]
            if not at or together(entry, 1) is None:
                continue
            per = np.array([0.0, *(together(entry, n) / n for n in range(1, self.most + 1))])
            each[:, at] = np.minimum(each[:, at], per[rows[:, at].sum(axis=1)][:, None])
        with np.errstate(invalid="ignore"):
            hops = np.where(rows > 0, rows * each, 0.0)
        starts = np.searchsorted(self.way_of, np.arange(len(self.ways)))
        caps = np.minimum.reduceat(hops, starts, axis=1)
        for row, limit in zip(self.crossed, self.limits, strict=True):
            caps = np.minimum(caps, np.where(row > 0, limit / np.maximum(row, 1), np.inf))
        return caps

    def alone_s(self, caps):
        """How soon all are there if nothing has to be divided."""
        pool = np.stack([caps[:, self.source_of == i].sum(axis=1) for i in range(len(self.size))])
        with np.errstate(divide="ignore"):
            return (self.release[:, None] + self.size[:, None] / pool).max(axis=0)

    def share(self, caps, until_s):
        """The largest part of what ends all by then: rates, and prices of sources and constants."""
        wanted = self.size / (until_s - self.release)
        unit = caps.max()
        n_ways, n = len(caps), len(self.size)
        pool = np.zeros((n, n_ways + 1))
        pool[self.source_of, np.arange(n_ways)] = -1.0
        pool[:, -1] = wanted / unit
        shared = np.hstack([self.crossed, np.zeros((len(self.limits), 1))])
        cost = np.zeros(n_ways + 1)
        cost[-1] = -1.0
        upper = [(0.0, cap / unit) for cap in caps] + [(0.0, None)]
        right = np.concatenate([np.zeros(n), self.limits / unit])
        found = linprog(cost, np.vstack([pool, shared]), right, bounds=upper)
        assert found.status == 0, found.message
        price = np.maximum(-found.ineqlin.marginals, 0.0)
        return found.x[:-1] * unit, price[:n], price[n:]

    def end_s(self, rates):
        pool = np.bincount(self.source_of, rates, len(self.size))
        with np.errstate(divide="ignore"):
            return float((self.release + self.size / pool).max())

    def best_of(self, caps, known_s=math.inf):
        """The soonest end of one row of caps, if it is below `known_s`: a program for each try."""
        until_s = min(known_s, self._first_s(caps))
        while True:
            rates, *_ = self.share(caps, until_s)
            end_s = self.end_s(rates)
            if end_s >= until_s * (1 - SAME / 100):
                return min(until_s, known_s)
            until_s = end_s

    def _first_s(self, caps):
        """An end that can be kept: each way gives up the same part at what is too narrow."""
        load = self.crossed @ caps
        part = np.minimum(1.0, self.limits / np.maximum(load, 1e-300))
        least = np.where(self.crossed.T > 0, part, 1.0).min(axis=1, initial=1.0)
        return self.end_s(caps * least) * (1 + SAME)


def soonest_s(tree, most, hops=9, known_s=math.inf):
    """When all has arrived with the best numbers of connections: `most` of them, ways of `hops`.

    Parameters
    ----------
    tree : dict
        A problem's file, without forecasts, held data, storage.
    most, hops : int
    known_s : float
        An end that some numbers attain: what is not sooner need not be found.

    Returns
    -------
    float
        Infinite where nothing fits.
    """
    small = Small(tree, most, hops)
    rows = small.numbers()
    if len(rows) == 0:
        return math.inf
    caps = small.caps(rows)
    alone_s = small.alone_s(caps)
    if len(small.limits) == 0:
        return min(float(alone_s.min()), known_s)
    best_s = known_s
    alive = np.isfinite(alone_s)
    while True:
        alive &= alone_s < best_s * (1 - SAME)
        if not alive.any():
            break
        row = int(np.where(alive, alone_s, np.inf).argmin())
        best_s = min(best_s, small.best_of(caps[row], best_s))
        alive[row] = False
        # Sooner than that by a part that counts: whom do this row's prices forbid it?
        target_s = best_s * (1 - SAME)
        if target_s <= small.release.max():
            break
        _, pool, price = small.share(caps[row], target_s)
        wanted = pool @ (small.size / (target_s - small.release))
        way = np.maximum(pool[small.source_of] - price @ small.crossed, 0.0)
        alive &= caps @ way + price @ small.limits >= wanted
    return best_s
