"""Relays of a pulling controller at which data wait: how much each may be given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.control.adaptive.moves import STOCK_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.control.adaptive.host_queues import Stock
    from datacollect.control.adaptive.next_hops import Ways
    from datacollect.control.adaptive.pulls import Pulls
    from datacollect.control.connection_counts import Link, LinkRates


class Gateways:
    """Who may be given others' data: where there is room for them, and use.

    Parameters
    ----------
    pulls, ways, rates
        The books of a controller.
    stock : mapping of str to Stock
        What lies at each host.
    piece_bytes : int
    room_bytes : mapping of str to float
        Room for others' data; unlimited at those left out.
    """

    def __init__(
        self,
        pulls: Pulls,
        ways: Ways,
        rates: LinkRates,
        stock: Mapping[str, Stock],
        piece_bytes: int,
        room_bytes: Mapping[str, float],
    ) -> None:
        self._pulls, self._ways, self._rates, self._stock = pulls, ways, rates, stock
        self._room_bytes, self._piece_bytes = room_bytes, piece_bytes
        self._destination = ways.destination

    def feeds(self, link: Link) -> bool:
        """Whether a link leads to a gateway, where data wait."""
        return self._ways.is_detour(link) and link[-1] != self._destination

    def may_take(self, link: Link) -> bool:
        """Whether a link's end has room for one piece more, and use for it."""
        host = link[-1]
        if host == self._destination:
            return True
        room_bytes = self._room_bytes.get(host, float("inf"))
        if self._pulls.relayed_bytes[host] + self._piece_bytes > room_bytes:
            return False
        work_bytes = self._stock[host].n_bytes + self._pulls.coming_bytes[host]
        most_bytes = max(self._piece_bytes, STOCK_S * self._drain_rate(host))
        return work_bytes < most_bytes or not self._ways.is_detour(link)

    def _drain_rate(self, host: str) -> float:
        """Return how fast a host's connections take its data away: one at least is opened."""
        link = self._ways.link(host)
        return max(1, self._pulls.active[link]) * self._rates.rate(link)
