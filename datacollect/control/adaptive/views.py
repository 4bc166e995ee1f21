"""What a pulling controller knows of each host now, for who decides where connections go."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from datacollect.control.adaptive.moves import HostView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from datacollect.control.adaptive.host_queues import Stock
    from datacollect.control.adaptive.next_hops import Ways
    from datacollect.control.adaptive.pulls import Pulls
    from datacollect.control.connection_counts import Link, LinkRates

# A connection opened for less work than this has hardly begun when the work is done.
WORTH_OPENING_S = 1.0


def host_views(
    pulls: Pulls, ways: Ways, rates: LinkRates, stock: Mapping[str, Stock], wanted: Iterable[Link]
) -> list[HostView]:
    """Return a view of each host with a way to the destination.

    Parameters
    ----------
    pulls, ways, rates
        The books of a controller.
    stock : mapping of str to Stock
        What lies at each host.
    wanted : iterable of (str, ...)
        Links of connections about to be opened.
    """
    links = pulls.active + Counter(wanted)
    feeders, feeding = Counter[str](), defaultdict[str, float](float)
    chained = _chained_bytes_per_s(links, ways, rates)
    for link, n in links.items():
        if len(link) == 2 and ways.is_detour(link):
            feeders[link[1]] += n
            feeding[link[0]] += rates.flow(link)
    return [
        HostView(
            host=host,
            link=(link := ways.link(host)),
            connections=links[link],
            rate_bytes_per_s=rates.rate(link),
            marginal=rates.marginal(link),
            work_bytes=stock[host].n_bytes + pulls.coming_bytes[host],
            own_bytes=stock[host].own_bytes,
            stock_bytes=stock[host].n_bytes,
            feeders=feeders[host],
            feeds=host in feeding,
            feeding_bytes_per_s=feeding.get(host, 0.0),
            chained_bytes_per_s=chained.get(host, 0.0),
            only_relays=host in ways.only_relays,
        )
        for host in ways.hosts
    ]


def most_left(
    pulls: Pulls,
    ways: Ways,
    rates: LinkRates,
    stock: Mapping[str, Stock],
    may_open: Callable[[Link], bool],
    free: int,
) -> Link | None:
    """Return the link of the host that has most left to do, and something to give to one more.

    As views would tell, but for what it feeds others, and only what this takes is looked at: it is
    asked for each connection that closes. Where a link is full one more would not help. None where
    no host has work for another connection, or its chain more hops than are free.
    """
    active = pulls.active
    chained = _chained_bytes_per_s(active, ways, rates)
    best, longest_s = None, WORTH_OPENING_S
    for host in ways.hosts:
        lies_bytes = stock[host].n_bytes
        link = ways.link(host)
        if lies_bytes <= 0 or rates.is_full(link):
            continue
        total = active[link] * rates.rate(link) + chained.get(host, 0.0)
        left_s = (lies_bytes + pulls.coming_bytes[host]) / total if total > 0 else math.inf
        if left_s > longest_s and len(link) - 1 <= free and may_open(link):
            best, longest_s = link, left_s
    return best


def _chained_bytes_per_s(
    links: Mapping[Link, int], ways: Ways, rates: LinkRates
) -> dict[str, float]:
    """Return what hosts send over chains besides their own links."""
    chained: defaultdict[str, float] = defaultdict(float)
    for link, n in links.items():
        if len(link) > 2 and ways.is_detour(link):
            chained[link[0]] += n * rates.rate(link)
    return chained
