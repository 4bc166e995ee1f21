"""Initial connections: which to open at first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.control.adaptive.moves import FASTER_OVER_IDLE, WORTH_ADDING, is_worth_detour
from datacollect.control.connection_counts import first_counts
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.control.adaptive.market import Market
    from datacollect.control.connection_counts import Link


def first_links(market: Market) -> list[Link]:
    """Return the links of the connections to begin with, by hosts' data.

    Raises
    ------
    ProblemError
        A host has data and only routes of more hops than there may be connections.
    """
    next_hops, budget = market.next_hops, market.most
    data = {host: market.queues[host].n_bytes for host in next_hops.hosts}
    expected = {host: market.rates.probed(next_hops.link(host)) for host in data}
    hops = {host: len(next_hops.link(host)) - 1 for host in data}
    longest = max((n for host, n in hops.items() if data[host]), default=0)
    if longest > budget:
        raise ProblemError(
            f"connections must be >= {longest}, one for each hop of the longest route that a host "
            f"needs, got {budget}"
        )
    over = _over_relays(market, data)
    counts = first_counts(data, expected, budget - sum(len(link) - 1 for link in over), hops)
    return [next_hops.link(host) for host, count in counts.items() for _ in range(count)] + over


def _over_relays(market: Market, data: Mapping[str, int]) -> list[Link]:
    """Return what to open over hosts that have nothing to send: at most half of all connections.

    Time and again the host that would take longest gets the relay that brings it most.
    """
    end, links, rates = market.destination, market.next_hops.links, market.rates
    speeds = {h: rates.probed((h, end)) for h in data if data[h] > 0 and (h, end) in links}
    spare = {h: links[h, end] for h in data if data[h] == 0 and (h, end) in links}
    found: list[Link] = []
    while speeds and spare:
        host = max(speeds, key=lambda h: data[h] / speeds[h])
        used = {link[1] for link in found if link[0] == host}
        gains = {
            relay: min(links[host, relay], spare[relay])
            for relay in spare
            if (host, relay) in links
            and relay not in used
            and is_worth_detour(rates, host, relay, end, FASTER_OVER_IDLE)
        }
        relay = max(gains, key=lambda r: gains[r], default=host)
        if gains.get(relay, 0.0) < WORTH_ADDING * speeds[host]:
            del speeds[host]
            continue
        hops = [(host, relay, end)] if market.chains else [(host, relay), (relay, end)]
        new = [link for link in hops if link not in found]
        if 2 * sum(len(link) - 1 for link in found + new) > market.most:
            break
        found += new
        speeds[host] += gains[relay]
        spare[relay] -= gains[relay]
    return found
