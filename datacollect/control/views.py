"""What a pulling controller knows of each host now, for who decides where connections go."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from datacollect.control.moves import HostView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.control.connection_counts import Link, LinkRates
    from datacollect.control.pulls import Pulls
    from datacollect.control.stock import Stock
    from datacollect.control.ways import Ways


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
    feeders, feeding = Counter[str](), set[str]()
    chained: defaultdict[str, float] = defaultdict(float)
    for link, n in links.items():
        if ways.is_detour(link) and len(link) > 2:
            chained[link[0]] += n * rates.rate(link)
        elif ways.is_detour(link):
            feeders[link[1]] += n
            feeding.add(link[0])
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
            chained_bytes_per_s=chained[host],
        )
        for host in ways.hosts
    ]
