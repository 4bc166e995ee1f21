"""Moves of connections between links, and hosts to feed: decided from what is known now."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.control.adaptive.market import QUEUED_S, mean_remaining_s
from datacollect.control.connection_counts import moved_at_a_time

if TYPE_CHECKING:
    from datacollect.control.adaptive.market import HostView, Market
    from datacollect.control.connection_counts import Link, LinkRates

MOST_FEEDERS = 4
# A gateway is worth the detour where it is reached this many times faster than the destination, and
# takes this many times more than one of its connections brings; else it shares the source's wire.
FASTER_TO_GATEWAY, FASTER_THAN_GATEWAY = 1.8, 2.0
# It is so, too, where the slower of both hops was probed this many times faster than the link
# directly there: what makes that slow cannot be on the detour. Short probes err by a factor of two
# on congested wires; a relay that has nothing of its own to send loses nothing by a trial.
FASTER_OVER_GATEWAY, FASTER_OVER_IDLE = 3.0, 1.5
# Where the direct link is full, a gateway need only add this part of what the host sends.
WORTH_ADDING = 0.1
# Hosts that take more than this part of the mean are behind: one that is alone is the mean itself.
BEHIND = 0.95
# Who feeds a gateway gives way to a host that would take this many times longer.
UNEVEN = 2.0
# A gateway's connections may carry this part of what a feeder brings, lest feeders hold them up.
FEEDABLE_PART = 0.6


@dataclass(frozen=True, slots=True)
class Move:
    """Take connections off links, one for each time a link is named, and open others."""

    from_links: tuple[Link, ...]
    to_links: tuple[Link, ...]


def best_move(feeding: Feeding) -> Move | None:
    """Return the move from where a connection brings least to where one more brings most.

    To a host that has more to do than the mean, or can be fed; at least one connection stays.
    """
    views, mean_s = feeding.views, mean_remaining_s(feeding.views)
    market = feeding.market
    donors = [view for view in views if view.connections > 1]
    receivers: list[tuple[HostView, Link | None]] = []
    for view in views:
        if view.remaining_s > mean_s:
            receivers.append((view, None))
        elif feeder := feeding.feeder(view):
            n_r = view.connections * view.rate_bytes_per_s
            if n_r <= FEEDABLE_PART * market.rates.probed(feeder):
                receivers.append((view, None if view.feeders else feeder))
    if not donors or not receivers:
        return None
    low = min(donors, key=lambda view: view.marginal)
    high, feeder = max(receivers, key=lambda receiver: receiver[0].marginal)
    moved = moved_at_a_time(low.marginal, high.marginal, market.connections)
    if low is high or moved == 0:
        return None
    links = [high.link] * moved if feeder is None else [feeder, *[high.link] * moved]
    links = links[: low.connections - 1]
    return Move((low.link,) * len(links), tuple(links))


def is_worth_detour(
    rates: LinkRates,
    host: str,
    gateway: str,
    destination: str,
    times: float = FASTER_OVER_GATEWAY,
) -> bool:
    """Return whether a host's data get on over a gateway, by links that are not its own bottleneck.

    Either the gateway is near, and what it is given is not held up before; or both hops are so
    many times faster than the direct link that they cannot share what makes that slow.
    """
    direct = rates.probed((host, destination))
    to_gateway = rates.probed((host, gateway))
    onwards = rates.rate((gateway, destination))
    slower = min(to_gateway, onwards)
    is_near = to_gateway >= max(FASTER_TO_GATEWAY * direct, FASTER_THAN_GATEWAY * onwards)
    return slower > 0 and (is_near or slower >= times * direct)


def adds(view: HostView, gateway: HostView, rates: LinkRates) -> bool:
    """Return whether a gateway adds to what a host sends.

    As a detour, or where its own link is full.
    """
    times = FASTER_OVER_IDLE if gateway.only_relays else FASTER_OVER_GATEWAY
    if is_worth_detour(rates, view.host, gateway.host, gateway.link[-1], times):
        return True
    to_gateway = rates.probed((view.host, gateway.host))
    added = min(to_gateway, rates.probed(gateway.link) - gateway.total_bytes_per_s)
    is_full = rates.is_full(view.link)
    return is_full and added >= WORTH_ADDING * view.total_bytes_per_s


class Feeding:
    """Hosts to feed each gateway: of those to whom it adds the one with most time left.

    Parameters
    ----------
    market : Market

    Attributes
    ----------
    views : list of HostView
        The market's, as it was.
    """

    def __init__(self, market: Market) -> None:
        self.market, self.views = market, market.views()
        self._feeders: dict[str, Link | None] = {}  # that were looked for
        mean_s = mean_remaining_s(self.views)
        helped = [
            (view.remaining_s, view)
            for view in self.views
            if view.own_bytes > 0 and not view.feeders and view.remaining_s > BEHIND * mean_s
        ]
        helped.sort(key=lambda entry: -entry[0])  # stable: the first of equals is taken
        self._helped = helped

    def feeder(self, gateway: HostView) -> Link | None:
        """Return the link on which to feed a gateway; None where nobody's data gain by it."""
        if gateway.host not in self._feeders:
            self._feeders[gateway.host] = self._feeder(gateway)
        return self._feeders[gateway.host]

    def _feeder(self, gateway: HostView) -> Link | None:
        if gateway.link[1] != self.market.destination or gateway.feeds:
            return None
        own_s = gateway.remaining_s
        for remaining_s, view in self._helped:
            if remaining_s <= own_s:
                return None
            link = view.host, gateway.host
            is_full = self.market.rates.is_full(link)
            if view is not gateway and not is_full and adds(view, gateway, self.market.rates):
                return link
        return None

    def moves(self) -> list[Move]:
        """Return the feeders to open: one for each host that is running out of work.

        First come the connections that are free, then those of the host that is to feed, then
        those that bring least.
        """
        found, free = [], self.market.free
        donors = {view.host: view.connections for view in self.views}
        for view in self.views:
            if view.feeders >= MOST_FEEDERS or view.remaining_s >= QUEUED_S:
                continue
            feeder = self.feeder(view)
            if feeder is None:
                continue
            to_links = (feeder,) if view.connections else (feeder, view.link)
            taken = min(free, len(to_links))
            free -= taken
            from_links = []
            for _ in to_links[taken:]:
                spare = [v for v in self.views if donors[v.host] > 1 and v is not view]
                fed = next((v for v in spare if v.host == feeder[0]), None)
                low = fed or min(spare, key=lambda v: v.marginal, default=None)
                if low is not None:
                    donors[low.host] -= 1
                    from_links.append(low.link)
            found.append(Move(tuple(from_links), to_links))
        return found

    def better_source(self) -> Move | None:
        """Return who should feed a gateway in place of whom: who would take far longer."""
        by_host = {view.host: view for view in self.views}
        best, most = None, UNEVEN
        active = self.market.pulls.active
        for link, n in active.items():
            gateway = by_host.get(link[1])
            if n == 0 or gateway is None or link[0] not in by_host or link == gateway.link:
                continue
            feeder = self.feeder(gateway)
            if feeder is None or active[feeder] or feeder[0] == link[0]:
                continue
            now_s, new_s = (by_host[host].remaining_s for host in (link[0], feeder[0]))
            if 0 < now_s < math.inf and new_s / now_s > most:
                best, most = Move((link,), (feeder,)), new_s / now_s
        return best
