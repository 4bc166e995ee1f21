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
    mean_s = mean_remaining_s(views)
    receivers: list[tuple[HostView, Link | None]] = []
    for view in views:
        if view.remaining_s > mean_s:
            receivers.append((view, None))
        elif feeder := _feeder(view, views, rates, destination):
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
    for view in views:
        if view.connections == 0 or view.feeders >= MOST_FEEDERS or view.remaining_s >= STOCK_S:
            continue
        feeder = _feeder(view, views, rates, destination)
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


def _feeder(
    gateway: HostView, views: Sequence[HostView], rates: LinkRates, destination: str
) -> Link | None:
    """Return the link on which the host with the most remaining time would feed a gateway."""
    if gateway.link[1] != destination or gateway.feeds:
        return None
    mean_s = mean_remaining_s(views)
    best, longest_s = None, max(mean_s, gateway.remaining_s)
    for view in views:
        link = view.host, gateway.host
        probed = rates.probed(link)
        is_worth_it = (
            view.own_bytes > 0
            and view is not gateway
            and not view.feeders
            and probed >= FASTER_TO_GATEWAY * rates.probed((view.host, destination))
            and probed >= FASTER_THAN_GATEWAY * gateway.rate_bytes_per_s
        )
        if is_worth_it and probed > 0 and view.remaining_s > longest_s:
            best, longest_s = link, view.remaining_s
    return best
