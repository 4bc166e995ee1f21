"""The best whole numbers of connections, found by trying all: for problems of a handful of hosts.

Routes are straight or over one relay, or over two where `hops` says so. Each has connections of its
own on each hop. Of a link's capacity C beside m others, N of ours get C N/(N + m) in all, each the
same; a wire that links share gives to each connection on it likewise. A route is as fast as its
narrowest hop, a source ends when its routes have brought its bytes.
"""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np


def fastest(links, sources, destination, most, wires=(), hops=2, *, growing=False):
    """Seconds until all is there, with the best numbers of connections, `most` of them in all.

    `links` maps (from, to) to (C, m, r), `sources` a name to bytes; `wires` are (C, m, links).
    Rates stay as they begin, or, where `growing`, others get more from when a source has ended.
    """
    routes = [
        (source, path) for source in sources for path in _paths(links, source, destination, hops)
    ]
    choices = _numbers([len(path) - 1 for _, path in routes], most)
    left = np.tile(np.array(list(sources.values()), dtype=float), (len(choices), 1))
    if not growing:
        with np.errstate(divide="ignore"):
            rates = _brought(links, wires, routes, choices, list(sources))
            return float((left / rates).max(axis=1).min())
    hop_source = [list(sources).index(source) for source, path in routes for _ in path[1:]]
    ends = np.zeros(len(choices))
    for _ in sources:
        rates = _brought(links, wires, routes, choices, list(sources))
        with np.errstate(divide="ignore", invalid="ignore"):
            due = np.where(left > 0, left / rates, np.inf)
        # Where something never ends, so it goes on; where all has ended, nothing is due.
        moving = np.isfinite(due.min(axis=1))
        first_s = np.where(moving, due.min(axis=1), 0.0)
        ended = due <= first_s[:, None] * (1 + 1e-12)
        ends += first_s
        left -= np.where(left > 0, rates * first_s[:, None], 0.0)
        left = np.where(ended & moving[:, None], 0.0, left)
        choices = np.where(left[:, hop_source] > 0, choices, 0)
    return float(np.where((left > 0).any(axis=1), np.inf, ends).min())


def _brought(links, wires, routes, choices, sources):
    """What each source's routes bring per second, shape (n_choices, n_sources)."""
    pairs = [pair for _, path in routes for pair in pairwise(path)]
    each = np.full(choices.shape, np.inf)
    for link in sorted(set(pairs)):
        capacity, others, alone = links[link]
        at = [i for i, pair in enumerate(pairs) if pair == link]
        total = np.maximum(choices[:, at].sum(axis=1), 1)
        per = np.minimum(alone, capacity / (total + others))
        each[:, at] = np.minimum(each[:, at], per[:, None])
    for capacity, others, members in wires:
        at = [i for i, pair in enumerate(pairs) if pair in members]
        total = np.maximum(choices[:, at].sum(axis=1), 1)
        each[:, at] = np.minimum(each[:, at], (capacity / (total + others))[:, None])
    rates, position = choices * each, 0
    brought = np.zeros((len(choices), len(sources)))
    for source, path in routes:
        stop = position + len(path) - 1
        brought[:, sources.index(source)] += rates[:, position:stop].min(axis=1)
        position = stop
    return brought


def _paths(links, source, destination, hops):
    names = {name for pair in links for name in pair} - {source, destination}
    for between in range(hops):
        for middle in permutations(sorted(names), between):
            path = (source, *middle, destination)
            if all(pair in links for pair in pairwise(path)):
                yield path


def _numbers(lengths, most):
    """All numbers of connections of routes of these lengths: none, or one at least on each hop."""
    rows = np.zeros((1, 0), dtype=int)
    for length in lengths:
        own = np.array([[0] * length, *_at_least_one(length, most)])
        rows = np.hstack([np.repeat(rows, len(own), axis=0), np.tile(own, (len(rows), 1))])
        rows = rows[rows.sum(axis=1) <= most]
    return rows


def _at_least_one(length, most):
    if length == 0:
        return [[]]
    return [
        [first, *rest]
        for first in range(1, most - length + 2)
        for rest in _at_least_one(length - 1, most - first)
    ]
