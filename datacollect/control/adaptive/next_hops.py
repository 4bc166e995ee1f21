"""Next hops of each host towards the destination: directly, or on the widest route."""

from __future__ import annotations

import heapq
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from datacollect.control.connection_counts import Link
    from datacollect.control.connections import Recovery
    from datacollect.problem.problem import Problem


def next_hosts(
    links: Mapping[Link, float], destination: str, lost: Collection[str] = ()
) -> dict[str, str]:
    """Return each host's next one towards the destination; hosts without a route are left out.

    A host with a link to the destination uses it. Others take the route whose narrowest link is the
    widest (Pollack, Operations Research 8(5), 1960).

    Parameters
    ----------
    links : mapping of (str, str) to float
        Bytes per second, > 0.
    destination : str
    lost : collection of str, optional
        Hosts that do not count.

    Examples
    --------
    >>> links = {("A", "B"): 5.0, ("A", "C"): 2.0, ("B", "D"): 1.0, ("C", "D"): 2.0}
    >>> next_hosts(links, "D")
    {'B': 'D', 'C': 'D', 'A': 'C'}
    """
    tails = [tail for tail in dict.fromkeys(tail for tail, _ in links) if tail not in lost]
    direct = {tail: links[tail, destination] for tail in tails if (tail, destination) in links}
    if destination in lost:
        direct = {}
    found = dict.fromkeys(direct, destination)
    if len(direct) == len(tails):
        return found  # of a thousand hosts all a million links need not be looked at
    into: dict[str, list[tuple[str, float]]] = {}
    for (tail, head), rate in links.items():
        if tail not in lost and head not in lost:
            into.setdefault(head, []).append((tail, rate))
    queue = [(-rate, host) for host, rate in direct.items()]
    heapq.heapify(queue)
    widths = dict(direct)
    while queue:
        width, host = heapq.heappop(queue)
        if -width < widths[host]:
            continue
        for tail, rate in into.get(host, []):
            new = min(rate, -width)
            if tail not in direct and tail != destination and new > widths.get(tail, 0.0):
                widths[tail], found[tail] = new, host
                heapq.heappush(queue, (-new, tail))
    return found


class NextHops:
    """Links that exist, and those that each host uses towards the destination.

    Parameters
    ----------
    problem : Problem
    recovery : Recovery
        How long a link rests after a failure, and after how many in a row it is given up.
    chains : bool
        Whether a host without a link to the destination has a chain there; else its data wait at
        each host of the route.

    Attributes
    ----------
    destination : str
    links : dict of (str, str) to float
        Bytes per second, in the first period that has any.
    lost : set of str
    only_relays : frozenset of str
        Hosts that never have data of their own.
    """

    def __init__(self, problem: Problem, recovery: Recovery, *, chains: bool = False) -> None:
        self.destination, self._recovery = problem.destination, recovery
        self._chains = chains
        self._given_up: set[Link] = set()
        self.links = _links(problem)
        self.lost: set[str] = set()
        with_data = {problem.names[parcel.host] for parcel in problem.parcels}
        self.only_relays = frozenset(problem.names) - with_data - {self.destination}
        self._failures: Counter[Link] = Counter()
        self._rests_until_s: dict[Link, float] = {}
        self._next = next_hosts(self.links, self.destination)

    @property
    def hosts(self) -> Collection[str]:
        """Hosts with a route to the destination."""
        return self._next.keys()

    def link(self, host: str) -> Link:
        """Return a host's link towards the destination; to "" where there is none."""
        link: Link = host, self._next.get(host, "")
        while self._chains and link[-1] not in ("", self.destination):
            link = *link, self._next.get(link[-1], "")
        return link

    def is_detour(self, link: Link) -> bool:
        """Return whether a link is not its host's towards the destination."""
        return self._next.get(link[0]) != link[1]

    def may_open(self, link: Link, time_s: float) -> bool:
        """Return whether a connection may be asked for."""
        is_there = all(hop in self.links for hop in pairwise(link)) and not self.lost & set(link)
        return (
            is_there and link not in self._given_up and self._rests_until_s.get(link, 0.0) <= time_s
        )

    def worked(self, link: Link) -> None:
        """Note that something has arrived."""
        self._failures[link] = 0

    def failed(self, link: Link, time_s: float) -> None:
        """Let a link rest where a connection broke off, or was stuck."""
        if self._rests_until_s.get(link, 0.0) > time_s:
            return  # others broke off with it: that is one failure
        wait_s = self._recovery.wait_s(self._failures[link])
        self._failures[link] += 1
        self._rests_until_s[link] = time_s + wait_s
        if self._failures[link] > self._recovery.most_retries:
            self._given_up.add(link)
            first = link[:2] if self.link(link[0]) == link else link  # another, if any
            self.links = {other: rate for other, rate in self.links.items() if other != first}
            self._next = next_hosts(self.links, self.destination, self.lost)

    def lose(self, host: str) -> None:
        """Go round a host from now on."""
        self.lost.add(host)
        self._next = next_hosts(self.links, self.destination, self.lost)


def _links(problem: Problem) -> dict[Link, float]:
    rates = problem.bandwidth_bytes_per_s
    first = np.where(rates[0] > 0, rates[0], rates.max(axis=0))
    names = problem.names
    ends = zip(problem.link_from.tolist(), problem.link_to.tolist(), first.tolist(), strict=True)
    return {(names[tail], names[head]): rate for tail, head, rate in ends if rate > 0}
