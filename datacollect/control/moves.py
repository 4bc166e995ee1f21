"""Which connections to move where, and which hosts to feed: decided from what is known now."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.control.connection_counts import moved_at_a_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from datacollect.control.connection_counts import Link, LinkRates

# A host is fed once its work is done in so much time, and no more than that is laid up there:
# what lies at a gateway can go no other way any more.
STOCK_S = 2.0
MOST_FEEDERS = 4
# A gateway is worth the detour where it is reached so many times faster than the destination, and
# takes so many times more than one of its connections brings; else it shares the source's wire.
FASTER_TO_GATEWAY, FASTER_THAN_GATEWAY = 1.8, 2.0
# A gateway's connections may carry this part of what a feeder brings, lest feeders hold them up.
FEEDABLE_PART = 0.6


@dataclass(frozen=True, slots=True)
class HostView:
    """What is known of a host now.

    Attributes
    ----------
    host : str
    link : (str, str)
        From it towards the destination.
    connections : int
        On that link, and those about to be opened there.
    rate_bytes_per_s, marginal : float
        What one of them brings; what one more would, up to a common factor.
    work_bytes : int
        What lies there, and comes.
    own_bytes : int
        What of its own was never sent.
    feeders : int
        Connections that bring it others' data.
    feeds : bool
        Whether it feeds another host.
    stock_bytes : int
        What lies there.
    chained_bytes_per_s : float
        What it sends over chains besides.
    """

    host: str
    link: Link
    connections: int
    rate_bytes_per_s: float
    marginal: float
    work_bytes: int
    own_bytes: int
    feeders: int
    feeds: bool
    stock_bytes: int = 0
    chained_bytes_per_s: float = 0.0

    @property
    def total_bytes_per_s(self) -> float:
        """What it sends in all."""
        return self.connections * self.rate_bytes_per_s + self.chained_bytes_per_s

    @property
    def remaining_s(self) -> float:
        """When its work is done."""
        if self.work_bytes <= 0:
            return 0.0
        total = self.total_bytes_per_s
        return self.work_bytes / total if total > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Move:
    """Take connections off links, one for each time a link is named, and open others."""

    from_links: tuple[Link, ...]
    to_links: tuple[Link, ...]


def best_move(views: Sequence[HostView], rates: LinkRates, destination: str, n: int) -> Move | None:
    """Return the move from where a connection brings least to where one more brings most.

    To a host that has more to do than the mean, or can be fed; at least one connection stays.
    """
    donors = [view for view in views if view.connections > 1]
    mean_s, feeders = mean_remaining_s(views), _Feeders(views, rates, destination)
    receivers: list[tuple[HostView, Link | None]] = []
    for view in views:
        if view.remaining_s > mean_s:
            receivers.append((view, None))
        elif feeder := feeders.of(view):
            n_r = view.connections * view.rate_bytes_per_s
            if n_r <= FEEDABLE_PART * rates.probed(feeder):
                receivers.append((view, None if view.feeders else feeder))
    if not donors or not receivers:
        return None
    low = min(donors, key=lambda view: view.marginal)
    high, feeder = max(receivers, key=lambda receiver: receiver[0].marginal)
    moved = moved_at_a_time(low.marginal, high.marginal, n)
    if low is high or moved == 0:
        return None
    links = [high.link] * moved if feeder is None else [feeder, *[high.link] * moved]
    links = links[: low.connections - 1]
    return Move((low.link,) * len(links), tuple(links))


def feeds(views: Sequence[HostView], rates: LinkRates, destination: str) -> list[Move]:
    """Return the feeders to open: one for each host that is running out of work."""
    found = []
    donors = {view.host: view.connections for view in views}
    feeders = _Feeders(views, rates, destination)
    for view in views:
        if view.connections == 0 or view.feeders >= MOST_FEEDERS or view.remaining_s >= STOCK_S:
            continue
        feeder = feeders.of(view)
        if feeder is None:
            continue
        spare = [v for v in views if donors[v.host] > 1 and v is not view]
        fed = next((v for v in spare if v.host == feeder[0]), None)
        low = fed or min(spare, key=lambda v: v.marginal, default=None)
        if low is not None:
            donors[low.host] -= 1
        found.append(Move((low.link,) if low else (), (feeder,)))
    return found


def mean_remaining_s(views: Iterable[HostView]) -> float:
    """Return how long all work takes at today's rates together."""
    views = list(views)
    rate = sum(view.total_bytes_per_s for view in views)
    work = sum(view.work_bytes for view in views)
    return work / rate if rate > 0 else 0.0


class _Feeders:
    """Who would feed a gateway: of those for whom it is worth it the one with most time left."""

    def __init__(self, views: Sequence[HostView], rates: LinkRates, destination: str) -> None:
        self._rates, self._destination = rates, destination
        mean_s = mean_remaining_s(views)
        behind = [
            (view.remaining_s, view)
            for view in views
            if view.own_bytes > 0 and not view.feeders and view.remaining_s > mean_s
        ]
        behind.sort(key=lambda entry: -entry[0])  # stable: the first of equals is taken
        self._behind = behind

    def of(self, gateway: HostView) -> Link | None:
        """Return the link on which to feed a gateway; None where nobody's data gain by it."""
        if gateway.link[1] != self._destination or gateway.feeds:
            return None
        least = FASTER_THAN_GATEWAY * gateway.rate_bytes_per_s
        own_s = gateway.remaining_s
        for remaining_s, view in self._behind:
            if remaining_s <= own_s:
                return None
            probed = self._rates.probed((view.host, gateway.host))
            straight = self._rates.probed((view.host, self._destination))
            is_worth_it = probed >= FASTER_TO_GATEWAY * straight and probed >= least
            if probed > 0 and is_worth_it and view is not gateway:
                return view.host, gateway.host
        return None
