"""Routes as chains: shares of a source's data, what of them was not sent, who works on them."""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from datacollect.control.connections import Piece
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


@dataclass(slots=True, eq=False)
class ChainRoute:
    """A route, its share that was not sent yet, and how it does."""

    hosts: tuple[str, ...]
    connections: int
    queue: deque[tuple[int, int]] = field(default_factory=deque)
    queued_bytes: int = 0
    arrived_bytes: int = 0
    busy_s: float = 0.0
    failures: int = 0
    rests_until_s: float = 0.0

    def put(self, offset_bytes: int, n_bytes: int, *, first: bool = False) -> None:
        """Add a range to what is to be sent."""
        if n_bytes > 0:
            (self.queue.appendleft if first else self.queue.append)((offset_bytes, n_bytes))
            self.queued_bytes += n_bytes

    def cut(self, most_bytes: int) -> tuple[int, int]:
        """Take a piece off the front."""
        offset, n_bytes = self.queue.popleft()
        taken = min(n_bytes, most_bytes)
        if taken < n_bytes:
            self.queue.appendleft((offset + taken, n_bytes - taken))
        self.queued_bytes -= taken
        return offset, taken

    def cut_tail(self, wanted_bytes: int, unit_bytes: int) -> list[tuple[int, int]]:
        """Take whole pieces off the end, about `wanted_bytes`."""
        found: list[tuple[int, int]] = []
        while self.queue and wanted_bytes > 0:
            offset, n_bytes = self.queue.pop()
            taken = min(n_bytes, -(-wanted_bytes // unit_bytes) * unit_bytes)
            # What is left in front ends where pieces end.
            kept = (n_bytes - taken) // unit_bytes * unit_bytes
            if kept > 0:
                self.queue.append((offset, kept))
            taken = n_bytes - max(0, kept)
            found.append((offset + n_bytes - taken, taken))
            self.queued_bytes -= taken
            wanted_bytes -= taken
        return found[::-1]


@dataclass(slots=True, eq=False)
class Chain:
    """A connection over a route, and what it was given that has not arrived."""

    number: int
    route: ChainRoute
    since_s: float
    opened_s: float = 0.0
    is_open: bool = False
    is_draining: bool = False  # gets nothing more, and closes once all on it is there
    waiting: dict[Piece, float] = field(default_factory=dict)
    waiting_bytes: int = 0

    @property
    def source(self) -> str:
        """Return whose data come over it."""
        return self.route.hosts[0]


# From a plan ----------------------------------------------------------------------------------


def route_shares(schedule: Schedule) -> dict[tuple[str, ...], int]:
    """Return how many bytes each chain of a plan takes; routes that begin elsewhere do not count.

    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> route_shares(dc.direct(problem))
    {('S', 'D'): 10}
    """
    columns = schedule.columns
    shares: Counter[tuple[str, ...]] = Counter()
    rows = zip(columns.route.tolist(), columns.hop.tolist(), columns.n_bytes.tolist(), strict=True)
    for route, hop, n_bytes in rows:
        if hop == 0:
            shares[schedule.routes[route].hosts] += n_bytes
    return dict(shares)


def chain_counts(
    shares: Mapping[tuple[str, ...], int], connections: int | None
) -> dict[tuple[str, ...], int]:
    """Return how many chains each route gets of all connections, one at least.

    >>> chain_counts({("A", "D"): 60, ("B", "R", "D"): 60}, 7)
    {('A', 'D'): 3, ('B', 'R', 'D'): 2}
    """
    counts = dict.fromkeys(shares, 1)
    left = (connections or 0) - sum(len(hosts) - 1 for hosts in counts)
    while True:
        fitting = [hosts for hosts in counts if len(hosts) - 1 <= left]
        if not fitting:
            return counts
        most = max(fitting, key=lambda hosts: shares[hosts] / counts[hosts])
        counts[most] += 1
        left -= len(most) - 1


def parcels_of(problem: Problem) -> dict[str, list[tuple[int, int]]]:
    """Return what is to be collected: ranges (offset, bytes) by source."""
    parts: dict[str, list[tuple[int, int]]] = {}
    for parcel in problem.parcels:
        source = problem.names[parcel.source]
        parts.setdefault(source, []).append((parcel.offset_bytes, parcel.n_bytes))
    return {source: sorted(each) for source, each in parts.items()}


def share_out(
    parts: Iterable[tuple[int, int]],
    routes: Sequence[ChainRoute],
    shares: Mapping[tuple[str, ...], int],
    unit_bytes: int,
) -> None:
    """Give each route its share of a source's data, in whole pieces; the last gets what is left."""
    if not routes:
        return
    whole = ChainRoute((), 0)
    for offset, n_bytes in parts:
        whole.put(offset, n_bytes)
    total, planned = whole.queued_bytes, sum(shares[route.hosts] for route in routes)
    for route in routes[:-1]:
        wanted = math.floor(total * shares[route.hosts] / max(1, planned))
        while whole.queue and route.queued_bytes + unit_bytes // 2 < wanted:
            pieces = max(1, (wanted - route.queued_bytes) // unit_bytes)
            route.put(*whole.cut(pieces * unit_bytes))
    while whole.queue:
        routes[-1].put(*whole.cut(whole.queued_bytes))


def trial_chains(problem: Problem, used: Collection[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the chains over one relay that are not used.

    >>> import datacollect as dc
    >>> rates = [[0, 1.0, 1.0], [0, 0, 1.0], [0, 0, 0]]
    >>> trial_chains(dc.Problem.from_matrix([*"SKD"], rates, [9, 0, 0], "D"), [("S", "D")])
    [('S', 'K', 'D')]
    """
    destination, names = problem.destination, problem.names
    ends = zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
    links = {(names[tail], names[head]) for tail, head in ends}
    chains = [
        (source, relay, destination)
        for source, relay in sorted(links)
        if (relay, destination) in links and relay != destination
    ]
    return [hosts for hosts in chains if hosts not in used]


def spare_routes(problem: Problem, source: str) -> list[tuple[str, ...]]:
    """Return a source's routes of one or two hops: the direct one first, then the widest."""
    names = problem.names
    rates = problem.bandwidth_bytes_per_s.max(axis=0).tolist()
    ends = zip(problem.link_from.tolist(), problem.link_to.tolist(), rates, strict=True)
    links = {(names[a], names[b]): rate for a, b, rate in ends if rate > 0}
    destination = problem.destination
    direct = [(source, destination)] if (source, destination) in links else []
    over = [
        (min(rate, links[relay, destination]), (source, relay, destination))
        for (tail, relay), rate in links.items()
        if tail == source and (relay, destination) in links
    ]
    return direct + [hosts for _, hosts in sorted(over, reverse=True)]
