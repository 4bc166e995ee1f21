"""The market: present knowledge of links, hosts, connections and queues, in one place.

The controller notes here what happened. What it decides next is asked of the market, or decided by
functions that are given it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.control.adaptive.host_queues import HostQueues
from datacollect.control.adaptive.impact_limit import ImpactLimit
from datacollect.control.adaptive.next_hops import NextHops
from datacollect.control.adaptive.pulls import Pulls
from datacollect.control.connection_counts import LinkRates

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.control.adaptive.pulls import Pull
    from datacollect.control.connection_counts import Link
    from datacollect.control.connections import Piece, Recovery
    from datacollect.problem.hosts import Parcel
    from datacollect.problem.problem import Problem

# A host is fed once its work is done in this time, and no more than that is laid up there:
# what lies at a gateway can go by no other route any more.
QUEUED_S = 2.0
# A connection opened for less work than this has hardly begun when the work is done.
WORTH_OPENING_S = 1.0


@dataclass(frozen=True, slots=True)
class HostView:
    """Present knowledge of a host.

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
    queued_bytes : int
        What lies there.
    chained_bytes_per_s : float
        What it sends over chains besides.
    feeding_bytes_per_s : float
        What it sends to hosts that pass it on.
    only_relays : bool
        Whether it never has data of its own.
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
    queued_bytes: int = 0
    chained_bytes_per_s: float = 0.0
    feeding_bytes_per_s: float = 0.0
    only_relays: bool = False

    @property
    def total_bytes_per_s(self) -> float:
        """Return what it sends towards the destination in all."""
        return self.connections * self.rate_bytes_per_s + self.chained_bytes_per_s

    @property
    def remaining_s(self) -> float:
        """Return when its work is done."""
        if self.work_bytes <= 0:
            return 0.0
        total = self.total_bytes_per_s + self.feeding_bytes_per_s
        return self.work_bytes / total if total > 0 else math.inf


def mean_remaining_s(views: Iterable[HostView]) -> float:
    """Return how long all work takes at today's rates together."""
    views = list(views)
    rate = sum(view.total_bytes_per_s for view in views)
    work = sum(view.work_bytes for view in views)
    return work / rate if rate > 0 else 0.0


class Market:
    """Present knowledge of links, hosts, connections and queues.

    Parameters
    ----------
    problem : Problem
    connections : int
        Most at a time; a chain counts its hops.
    recovery : Recovery
    chains : bool
        Whether what takes a detour is passed on as it comes, and waits nowhere.
    piece_bytes : int
    harm : float, optional
        How much of their rate others may lose.
    room_bytes : mapping of str to float, optional
        Room for others' data at relays; unlimited at those left out.

    Attributes
    ----------
    now_s : float
    next_hops : NextHops
    rates : LinkRates
    queues : HostQueues
        What lies at each host.
    pulls : Pulls
        Connections, and what is on them.
    there : set of Piece
        At the destination.
    there_bytes : int
    wanted : deque of Link
        Where those connections go whose place is about to be free.

    Raises
    ------
    ProblemError
        `harm` is not between 0 and 1.
    """

    def __init__(
        self,
        problem: Problem,
        connections: int,
        recovery: Recovery,
        *,
        chains: bool = False,
        piece_bytes: int,
        harm: float | None = None,
        room_bytes: Mapping[str, float] | None = None,
    ) -> None:
        self.problem, self.destination = problem, problem.destination
        self.connections, self.chains, self.piece_bytes = connections, chains, piece_bytes
        self.now_s = 0.0
        self.next_hops = NextHops(problem, recovery, chains=chains)
        self.rates = LinkRates(self.next_hops.links)
        self.queues = HostQueues(problem.names, piece_bytes)
        self.pulls = Pulls(self.rates, problem.names, self.destination)
        self.there: set[Piece] = set()
        self.there_bytes = 0
        self.wanted: deque[Link] = deque()
        self._room_bytes = room_bytes or {}
        self._impact = None if harm is None else self._impact_limit(harm)

    def _impact_limit(self, harm: float) -> ImpactLimit:
        data_bytes: Counter[Link] = Counter()
        for parcel in self.problem.parcels:
            link = self.next_hops.link(self.problem.names[parcel.host])
            data_bytes[link] += parcel.n_bytes
        return ImpactLimit.of_direct(harm, data_bytes, self.rates, self.connections)

    # What happened ----------------------------------------------------------------------------

    def released(self, parcel: Parcel) -> str:
        """Note that data can be sent; return the host where they lie."""
        host, source = self.problem.names[parcel.host], self.problem.names[parcel.source]
        self.queues[host].add_own(source, parcel.offset_bytes, parcel.n_bytes)
        return host

    def arrived(self, pull: Pull, piece: Piece) -> bool:
        """Note that a piece has come over a connection; whether a relay is to pass it on."""
        host, to_host = pull.link[0], pull.link[-1]
        self.rates.moved(pull.link, piece.n_bytes)
        self.next_hops.worked(pull.link)
        pull.arrivals += 1
        was_waited_for = self.pulls.taken(pull, piece, self.now_s)
        if to_host == self.destination:
            self.there_bytes += 0 if piece in self.there else piece.n_bytes
            self.there.add(piece)
            self.pulls.has_left(host, piece)
            return False
        if not was_waited_for and not self.queues[host].discard(piece):
            return False
        self.pulls.has_left(host, piece)
        self.pulls.relays(to_host, piece)
        self.queues[to_host].add(piece)
        return True

    def not_brought(self, pull: Pull, piece: Piece) -> str | None:
        """Note that a connection has not brought a piece; return the host where it lies again.

        None where another connection has it, it is there, or those that had it are lost.
        """
        self.pulls.taken(pull, piece, self.now_s)
        if self.pulls.copies[piece] or piece in self.there:
            return None
        self.pulls.has_left(pull.link[-1], piece)
        return self.lies_again(pull.link[0], piece)

    def lies_again(self, host: str, piece: Piece) -> str | None:
        """Lay a piece back at the host that sent it, or where it lay first; return which.

        None where both are lost.
        """
        if host in self.next_hops.lost:
            self.pulls.has_left(host, piece)
            host = self._home_of(piece)
        if host in self.next_hops.lost:
            return None
        self.queues[host].add(piece)
        return host

    def lost(self, host: str) -> list[Piece]:
        """Go round a host from now on; return the pieces that it had and that are missing now."""
        self.next_hops.lose(host)
        for pull in self.pulls.known.values():
            if host in pull.link:
                self.pulls.retired(pull, drop=True)
        pieces = [p for p in self.queues[host].whole_pieces() if p not in self.there]
        self.queues.clear_out(host)
        return pieces

    def _home_of(self, piece: Piece) -> str:
        """Return the host where a piece lay first."""
        names = self.problem.names
        return next(
            names[parcel.host]
            for parcel in self.problem.parcels
            if names[parcel.source] == piece.source
            and parcel.offset_bytes <= piece.offset_bytes < parcel.offset_bytes + parcel.n_bytes
        )

    # What there is to do ----------------------------------------------------------------------

    def work_bytes(self, host: str) -> int:
        """Return what lies at a host, and comes."""
        return self.queues[host].n_bytes + self.pulls.coming_bytes[host]

    def has_work(self) -> bool:
        """Return whether anything is left to send, or in flight."""
        return self.has_work_elsewhere("") or any(p.waiting for p in self.pulls.known.values())

    def has_work_elsewhere(self, host: str) -> bool:
        """Return whether other hosts have something to send."""
        return self.queues.any_left(self.next_hops.hosts, besides=host)

    def is_fed(self, host: str) -> bool:
        """Return whether more is in flight to a host, or will be."""
        return (
            self.pulls.coming_bytes[host] > 0
            or bool(self.pulls.into(host))
            or any(link[-1] == host for link in self.wanted)
        )

    def feeds(self, link: Link) -> bool:
        """Return whether a link leads to a gateway, where data wait."""
        return self.next_hops.is_detour(link) and link[-1] != self.destination

    def may_take(self, link: Link) -> bool:
        """Return whether a link's end has room for one piece more, and use for it."""
        host = link[-1]
        if host == self.destination:
            return True
        room_bytes = self._room_bytes.get(host, math.inf)
        if self.pulls.relayed_bytes[host] + self.piece_bytes > room_bytes:
            return False
        most_bytes = max(self.piece_bytes, QUEUED_S * self._drain_rate(host))
        return self.work_bytes(host) < most_bytes or not self.next_hops.is_detour(link)

    def _drain_rate(self, host: str) -> float:
        """Return how fast a host's connections take its data away: one at least is opened."""
        link = self.next_hops.link(host)
        return max(1, self.pulls.active[link]) * self.rates.rate(link)

    # Where connections may go -----------------------------------------------------------------

    @property
    def most(self) -> int:
        """Return how many connections there may be now."""
        return self.connections if self._impact is None else self._impact.most

    @property
    def free(self) -> int:
        """Of them those that nobody has."""
        return self.most - self.pulls.held

    def too_many(self) -> list[Link]:
        """Look at what others lose; return the links on which to have one connection less each."""
        if self._impact is None:
            return []
        return self._impact.too_many(self.pulls.active, self.rates)

    def may_open(self, link: Link) -> bool:
        """Return whether a connection may be asked for."""
        return self.next_hops.may_open(link, self.now_s)

    def next_link(self, free: int) -> Link | None:
        """Return where to open a connection while some are free: where one is wanted comes first.

        None where none can be used.
        """
        while self.wanted:
            link = self.wanted.popleft()
            fits = len(link) - 1 <= free and self.may_open(link)
            if fits and (self.queues[link[0]].n_bytes or self.is_fed(link[0])):
                return link
        return self.most_left(free)

    def most_left(self, free: int) -> Link | None:
        """Return the link of the host that has most left to do, and something to give to one more.

        As views would tell, but for what it feeds others, and only what this takes is looked at: it
        is asked for each connection that closes. Where a link is full one more would not help. None
        where no host has work for another connection, or its chain more hops than are free.
        """
        next_hops, rates, active = self.next_hops, self.rates, self.pulls.active
        chained = self._chained_bytes_per_s(active)
        best, longest_s = None, WORTH_OPENING_S
        for host in next_hops.hosts:
            if self.queues[host].n_bytes <= 0:
                continue
            link = next_hops.link(host)
            if rates.is_full(link):
                continue
            total = active[link] * rates.rate(link) + chained.get(host, 0.0)
            left_s = self.work_bytes(host) / total if total > 0 else math.inf
            if left_s > longest_s and len(link) - 1 <= free and self.may_open(link):
                best, longest_s = link, left_s
        return best

    def views(self) -> list[HostView]:
        """Return a view of each host with a route to the destination."""
        links = self.pulls.active + Counter(self.wanted)
        feeders, feeding = Counter[str](), defaultdict[str, float](float)
        chained = self._chained_bytes_per_s(links)
        for link, n in links.items():
            if len(link) == 2 and self.next_hops.is_detour(link):
                feeders[link[1]] += n
                feeding[link[0]] += self.rates.flow(link)
        return [
            HostView(
                host=host,
                link=(link := self.next_hops.link(host)),
                connections=links[link],
                rate_bytes_per_s=self.rates.rate(link),
                marginal=self.rates.marginal(link),
                work_bytes=self.work_bytes(host),
                own_bytes=self.queues[host].own_bytes,
                queued_bytes=self.queues[host].n_bytes,
                feeders=feeders[host],
                feeds=host in feeding,
                feeding_bytes_per_s=feeding.get(host, 0.0),
                chained_bytes_per_s=chained.get(host, 0.0),
                only_relays=host in self.next_hops.only_relays,
            )
            for host in self.next_hops.hosts
        ]

    def _chained_bytes_per_s(self, links: Mapping[Link, int]) -> dict[str, float]:
        """Return what hosts send over chains besides their own links."""
        chained: defaultdict[str, float] = defaultdict(float)
        for link, n in links.items():
            if len(link) > 2 and self.next_hops.is_detour(link):
                chained[link[0]] += n * self.rates.rate(link)
        return chained
