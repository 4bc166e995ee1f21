"""Exchanges of connections for chains and of chains for connections, by what each brings.

A chain through a relay counts as two connections, so it has to bring twice what one of them does.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from datacollect.control.adaptive.market import mean_remaining_s
from datacollect.control.adaptive.moves import BEHIND, Move, adds
from datacollect.control.connection_counts import ALIKE, moved_at_a_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.control.adaptive.market import HostView, Market
    from datacollect.control.connection_counts import Link, LinkRates

# Of many hosts that could pass data on, only this many are looked at: those that get on best.
MOST_GATEWAYS = 8


@dataclass(frozen=True, slots=True)
class _Way:
    """A link or chain, how many of it may go, and what one connection more would bring."""

    link: Link
    spare: int
    value: float

    @property
    def n_hops(self) -> int:
        return len(self.link) - 1


def best_chain_move(market: Market) -> Move | None:
    """Return the move from where a connection brings least to where one more brings most.

    To a host that has more to do than the mean, directly or over a chain. Each host keeps one
    connection of its own.
    """
    views, rates, active = market.views(), market.rates, market.pulls.active
    donors = [_way(view.link, view.connections - 1, rates) for view in views if view.connections]
    chains = [link for link in active if market.next_hops.is_detour(link)]
    donors += [_way(link, active[link], rates) for link in chains]
    receivers = _receivers(market, views)
    if not receivers:
        return None
    high = max(receivers, key=attrgetter("value"))
    if market.free >= high.n_hops:
        return Move((), (high.link,))
    donors = [move for move in donors if move.spare > 0 and move.link != high.link]
    donors = sorted(
        (move for move in donors if high.value > ALIKE * move.value), key=attrgetter("value")
    )
    if not donors:
        return None
    wanted = max(high.n_hops, moved_at_a_time(donors[0].value, high.value, market.connections))
    given: list[Link] = []
    freed = 0
    for move in donors:
        while freed < wanted and given.count(move.link) < move.spare:
            given.append(move.link)
            freed += move.n_hops
    opened = freed // high.n_hops
    return Move(tuple(given), (high.link,) * opened) if opened else None


def _receivers(market: Market, views: Sequence[HostView]) -> list[_Way]:
    rates = market.rates
    mean_s = mean_remaining_s(views)
    gateways = sorted(views, key=lambda view: -rates.rate(view.link))[:MOST_GATEWAYS]
    found = []
    for view in views:
        if view.remaining_s > BEHIND * mean_s:
            found.append(_way(view.link, 0, rates))
            found += [
                _way((view.host, *gateway.link), 0, rates)
                for gateway in (gateways if view.own_bytes > 0 else ())
                if gateway is not view and _is_worth_trying(market, view, gateway)
            ]
    return found


def _is_worth_trying(market: Market, view: HostView, gateway: HostView) -> bool:
    """Say whether a chain is one link longer than its gateway's, and adds to what is sent."""
    is_there = (view.host, gateway.host) in market.next_hops.links
    return len(gateway.link) == 2 and is_there and adds(view, gateway, market.rates)


def _way(link: Link, spare: int, rates: LinkRates) -> _Way:
    return _Way(link, spare, rates.marginal(link) / (len(link) - 1))
