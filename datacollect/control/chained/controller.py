"""Controller of a plan over chains: each route is one, cut through relays that hold nothing.

A plan says which routes there are, and how much of a source each takes. Its times are not kept:
transport decides rates, so each chain pulls piece after piece from its route's share. One that is
done before others takes from the tail of the one that would be last, as XRootD's client does:
r/(r + r_v) of what is left there, r and r_v being the rates of both. What a broken chain has not
brought goes back, and others take it; where a source has no other, one over its next best route is
opened, directly if there is a link. Broken chains are tried again, ever more seldom.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from functools import partial
from typing import TYPE_CHECKING, Any

from datacollect.control.chained.shares import (
    Chain,
    ChainRoute,
    chain_counts,
    parcels_of,
    route_shares,
    share_out,
    spare_routes,
)
from datacollect.control.connections import Piece
from datacollect.control.controller import Controller
from datacollect.control.decisions import Close, Decision, Open, Send, WakeMe
from datacollect.control.events import (
    ConnectionClosed,
    ConnectionOpened,
    ConnectionStalled,
    Event,
    HostLost,
    RangeArrived,
    Timer,
)
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacollect.control.connections import Recovery
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# A chain has this many seconds of its rate in flight, at first this much; two pieces at least.
AHEAD_S, FIRST_AHEAD_BYTES = 1.5, 2**20
# What a chain has had for longer than this, and than several times what it used to take, is sent
# over an idle one too.
LATE_S, LATE_TIMES, MOST_COPIES = 2.0, 3.0, 2


class ChainedController(Controller):
    """Pull each route's share over chains; those that fall behind lose their tail.

    Parameters
    ----------
    problem : Problem
        Who holds what, and which links there are.
    schedule : Schedule
        Its routes, and how much each takes; times are not kept.
    piece_bytes : int
        How data are cut.
    connections : int, optional
        Most in all, a chain of two hops taking two; by default one chain for each route. Routes
        get more in proportion to what they take, and one at least.
    window_bytes : int, optional
        Asked for with each chain.
    recovery : Recovery

    Attributes
    ----------
    answer : dict
        ``most_connections`` at a time, and ``sent_twice_bytes``.

    Examples
    --------
    >>> import datacollect as dc
    >>> from datacollect.control.connections import Recovery
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> plan = dc.direct(problem)
    >>> ChainedController(problem, plan, piece_bytes=8, recovery=Recovery()).start()
    ... # doctest: +NORMALIZE_WHITESPACE
    [Open(connection=0, hosts=('S', 'D'), window_bytes=None, pace_bytes_per_s=None),
     Send(connection=0, source='S', offset_bytes=0, n_bytes=8),
     Send(connection=0, source='S', offset_bytes=8, n_bytes=2)]
    """

    decides_at_destination = True

    def __init__(
        self,
        problem: Problem,
        schedule: Schedule,
        *,
        piece_bytes: int,
        recovery: Recovery,
        connections: int | None = None,
        window_bytes: int | None = None,
    ) -> None:
        _require_at_sources(problem)
        self._piece_bytes, self._recovery, self._most = piece_bytes, recovery, connections
        self._window_bytes = window_bytes
        shares = route_shares(schedule)
        counts = chain_counts(shares, connections)
        self._routes: dict[str, list[ChainRoute]] = {}
        for hosts in shares:
            self._routes.setdefault(hosts[0], []).append(ChainRoute(hosts, counts[hosts]))
        self._spares = {source: spare_routes(problem, source) for source in self._routes}
        for source, parts in parcels_of(problem).items():
            share_out(parts, self._routes.get(source, []), shares, piece_bytes)
        self._chains: dict[int, Chain] = {}
        self._ending: dict[int, int] = {}  # hops of chains whose end is asked for, not known
        # One chain for each route must be possible, whatever was asked for.
        first = sum(counts[hosts] * (len(hosts) - 1) for hosts in counts)
        self._most_hops = None if connections is None else max(connections, first)
        self._n_opened = 0
        self._copies: Counter[Piece] = Counter()
        self._there: set[Piece] = set()
        self._alarms: list[Callable[[], None]] = []
        self._now_s = 0.0
        self._decisions: list[Decision] = []
        self.answer: dict[str, Any] = {"most_connections": 0, "sent_twice_bytes": 0}

    def start(self) -> list[Decision]:
        """Return the first decisions, at time 0."""
        for routes in self._routes.values():
            for route in routes:
                self._fill_up(route)
        return self._decided()

    def handle(self, event: Event) -> list[Decision]:
        """Return what to do after an event."""
        self._now_s = event.time_s
        match event:
            case RangeArrived():
                self._arrived(event)
            case ConnectionOpened(_, number):
                if chain := self._chains.get(number):
                    chain.is_open, chain.since_s, chain.opened_s = True, self._now_s, self._now_s
                    self._fill(chain)
            case ConnectionClosed(_, number):
                self._ending.pop(number, None)
                if chain := self._chains.pop(number, None):
                    self._broke(chain)
                self._open_what_lacks()
            case ConnectionStalled(_, number):
                if chain := self._chains.get(number):
                    self._stalled(chain)
            case HostLost(_, host):
                for chain in [c for c in self._chains.values() if host in c.route.hosts]:
                    del self._chains[chain.number]
                    self._ending[chain.number] = len(chain.route.hosts) - 1
                    self._broke(chain)
            case Timer(_, tag):
                self._alarms[tag]()
        return self._decided()

    def _decided(self) -> list[Decision]:
        decisions, self._decisions = self._decisions, []
        return decisions

    # Pieces -----------------------------------------------------------------------------------

    def _arrived(self, event: RangeArrived) -> None:
        piece = Piece(event.source, event.offset_bytes, event.n_bytes)
        self._there.add(piece)
        chain = self._chains.get(event.connection)
        if chain is None:
            return
        route = chain.route
        route.failures = 0
        route.arrived_bytes += piece.n_bytes
        route.busy_s += self._now_s - chain.since_s
        chain.since_s = self._now_s
        self._taken(chain, piece)
        self._fill(chain)

    def _taken(self, chain: Chain, piece: Piece) -> None:
        if chain.waiting.pop(piece, None) is not None:
            chain.waiting_bytes -= piece.n_bytes
            self._copies[piece] -= 1

    def _fill(self, chain: Chain) -> None:
        """Give a chain work: of its route's share, of others', or late pieces once more."""
        route = chain.route
        # Before anything has come nobody knows what a second brings.
        is_new = route.busy_s <= 0
        ahead = FIRST_AHEAD_BYTES if is_new else AHEAD_S * route.arrived_bytes / route.busy_s
        while not chain.is_draining and chain.waiting_bytes < max(2 * self._piece_bytes, ahead):
            # Others are about to open, and take what is theirs.
            if not route.queue and not (chain.is_open and self._steal(route)):
                break
            piece = Piece(chain.source, *route.cut(self._piece_bytes))
            if piece not in self._there:
                self._give(chain, piece)
        if not chain.waiting and chain.is_draining:
            self._close(chain)
            return
        if not chain.waiting and chain.is_open:
            self._duplicate(chain)
        if not chain.waiting and chain.is_open:
            self._rest(chain)

    def _give(self, chain: Chain, piece: Piece) -> None:
        if not chain.waiting:
            chain.since_s = self._now_s
        chain.waiting[piece] = self._now_s
        chain.waiting_bytes += piece.n_bytes
        self._copies[piece] += 1
        self._decisions.append(Send(chain.number, *piece))

    def _steal(self, thief: ChainRoute) -> bool:
        """Take from the tail of the source's route that would be last."""
        others = [
            route for route in self._routes[thief.hosts[0]] if route is not thief and route.queue
        ]
        if not others:
            return False
        victim = max(others, key=lambda route: route.queued_bytes / max(self._rate(route), 1e-9))
        mine, theirs = self._rate(thief), self._rate(victim)
        share = mine / (mine + theirs) if mine + theirs > 0 else 0.5
        wanted = max(self._piece_bytes, int(victim.queued_bytes * share))
        for offset, n_bytes in victim.cut_tail(wanted, self._piece_bytes):
            thief.put(offset, n_bytes)
        return True

    def _duplicate(self, chain: Chain) -> None:
        """Send once more what another chain of the source has had for too long."""
        late = [
            (given_s + self._patience_s(other), other.number, piece)
            for other in self._chains.values()
            if other.source == chain.source and other is not chain
            for piece, given_s in other.waiting.items()
            if self._copies[piece] < MOST_COPIES and piece not in self._there
        ]
        if not late:
            return
        late_s, _, piece = min(late)
        if self._now_s >= late_s:
            self.answer["sent_twice_bytes"] += piece.n_bytes
            self._give(chain, piece)
        else:
            self._wake(late_s, partial(self._fill_if_idle, chain.number))

    def _patience_s(self, chain: Chain) -> float:
        """Return after what time a piece on a chain is late, by what the chain used to bring."""
        route = chain.route
        if route.busy_s <= 0:
            return LATE_S
        return LATE_S + LATE_TIMES * chain.waiting_bytes * route.busy_s / max(
            1, route.arrived_bytes
        )

    def _fill_if_idle(self, number: int) -> None:
        chain = self._chains.get(number)
        if chain is not None and not chain.waiting:
            self._fill(chain)

    def _rest(self, chain: Chain) -> None:
        """Close a chain whose source has nothing left to do, on any of its chains."""
        others = [c for c in self._chains.values() if c.source == chain.source]
        if any(c.waiting for c in others) or any(w.queue for w in self._routes[chain.source]):
            return
        for each in others:
            self._close(each)

    def _close(self, chain: Chain, *, drop: bool = False) -> None:
        del self._chains[chain.number]
        self._ending[chain.number] = len(chain.route.hosts) - 1
        self._decisions.append(Close(chain.number, drop_queue=drop))

    def _rate(self, route: ChainRoute) -> float:
        """Return what a route's chains bring together, from what they have brought."""
        if route.busy_s <= 0 or route.rests_until_s > self._now_s:
            return 0.0
        n = sum(chain.route is route for chain in self._chains.values())
        return n * route.arrived_bytes / route.busy_s

    # Chains -----------------------------------------------------------------------------------

    def _fill_up(self, route: ChainRoute) -> None:
        """Open chains of a route until it has as many as it should."""
        there = [c for c in self._chains.values() if c.route is route and not c.is_draining]
        if route.rests_until_s > self._now_s:
            return
        most = max(1, -(-self._left_bytes(route.hosts[0]) // self._piece_bytes))
        for _ in range(min(route.connections, most) - len(there)):
            if not self._has_work(route.hosts[0]) or not self._may_open(route):
                return
            chain = Chain(self._n_opened, route, self._now_s)
            self._n_opened += 1
            self._chains[chain.number] = chain
            self.answer["most_connections"] = max(self.answer["most_connections"], self._hops())
            self._decisions.append(Open(chain.number, route.hosts, self._window_bytes))
            self._fill(chain)

    def _adopt(self, shares: Mapping[tuple[str, ...], int]) -> None:
        """Share what was not sent yet out again; chains of other routes end when they are done."""
        counts = chain_counts(shares, self._most)
        for source, routes in self._routes.items():
            by_hosts = {route.hosts: route for route in routes}
            parts = sorted(part for route in routes for part in route.queue)
            for route in routes:
                route.queue, route.queued_bytes, route.connections = deque(), 0, 0
            used = [
                by_hosts.setdefault(hosts, ChainRoute(hosts, 0))
                for hosts in shares
                if hosts[0] == source
            ]
            if not used:  # the new plan thinks that it is done
                used = routes
                counts |= dict.fromkeys((route.hosts for route in routes), 1)
            for route in used:
                route.connections = counts[route.hosts]
            self._routes[source] = list(by_hosts.values())
            weights = {route.hosts: shares.get(route.hosts, 1) for route in used}
            share_out(parts, used, weights, self._piece_bytes)
        for route in [route for routes in self._routes.values() for route in routes]:
            chains = [chain for chain in self._chains.values() if chain.route is route]
            for chain in chains[route.connections :]:
                chain.is_draining = True
                self._fill(chain)
            self._fill_up(route)

    def _hops(self) -> int:
        """Return how many connections there are, until their ends are known."""
        live = sum(len(chain.route.hosts) - 1 for chain in self._chains.values())
        return live + sum(self._ending.values())

    def _may_open(self, route: ChainRoute) -> bool:
        return self._most_hops is None or self._hops() + len(route.hosts) - 1 <= self._most_hops

    def _open_what_lacks(self) -> None:
        """Open chains where a place has become free, first for sources that have none."""
        used = Counter(chain.source for chain in self._chains.values())
        for source in sorted(self._routes, key=lambda source: used[source]):
            for route in self._routes[source]:
                self._fill_up(route)
        self._make_room()

    def _make_room(self) -> None:
        """Let a chain of the source that has most end, for a source that has none and could."""
        used = Counter(c.source for c in self._chains.values() if not c.is_draining)
        waits = any(
            not used[source]
            and self._has_work(source)
            and any(route.rests_until_s <= self._now_s for route in routes)
            for source, routes in self._routes.items()
        )
        if not waits or self._ending or any(c.is_draining for c in self._chains.values()):
            return
        richest, n = max(used.items(), key=lambda item: item[1], default=("", 0))
        if n > 1:
            chains = [c for c in self._chains.values() if c.source == richest]
            least = min(chains, key=lambda chain: chain.waiting_bytes)
            least.is_draining = True
            self._fill(least)

    def _left_bytes(self, source: str) -> int:
        return sum(route.queued_bytes for route in self._routes[source])

    def _has_work(self, source: str) -> bool:
        return self._left_bytes(source) > 0 or any(
            chain.waiting for chain in self._chains.values() if chain.source == source
        )

    def _broke(self, chain: Chain) -> None:
        """Let others send what a chain that is gone has not brought; try again later."""
        route, source = chain.route, chain.source
        self._give_back(chain)
        if route.rests_until_s <= self._now_s:  # others broke off with it: that is one failure
            route.rests_until_s = math.inf
            if route.failures < self._recovery.most_retries:
                route.rests_until_s = self._now_s + self._recovery.wait_s(route.failures)
                self._wake(route.rests_until_s, partial(self._try_again, route))
            route.failures += 1
        for other in [c for c in self._chains.values() if c.source == source]:
            if not other.waiting and other.number in self._chains:
                self._fill(other)
        if not any(c.source == source for c in self._chains.values()):
            self._take_spare(source)

    def _stalled(self, chain: Chain) -> None:
        """Cut a stuck chain, at once or where nothing comes over it while there is patience."""
        patience_s = self._recovery.stall_patience_s
        if patience_s:
            self._wake(self._now_s + patience_s, partial(self._drop_stuck, chain, chain.since_s))
        elif patience_s is not None:
            self._drop_stuck(chain, chain.since_s)

    def _drop_stuck(self, chain: Chain, since_s: float) -> None:
        if chain.number in self._chains and chain.since_s == since_s:
            self._close(chain, drop=True)
            self._broke(chain)

    def _give_back(self, chain: Chain) -> None:
        """Put what a chain that is gone has not brought in front of its route's queue."""
        for piece in reversed(list(chain.waiting)):
            self._taken(chain, piece)
            if not self._copies[piece] and piece not in self._there:
                chain.route.put(piece.offset_bytes, piece.n_bytes, first=True)

    def _add_way(self, hosts: tuple[str, ...], connections: int) -> None:
        """Open one route more for a source; it takes from the tails of others."""
        route = ChainRoute(hosts, connections)
        self._routes[hosts[0]].append(route)
        self._fill_up(route)
        self._make_room()

    def _remove_way(self, hosts: tuple[str, ...]) -> None:
        """Give a route's queue to the source's first, and forget it."""
        routes = self._routes[hosts[0]]
        route = next(route for route in routes if route.hosts == hosts)
        routes.remove(route)
        for part in route.queue:
            routes[0].put(*part)
        for chain in [c for c in self._chains.values() if c.source == hosts[0]]:
            if chain.number in self._chains and not chain.waiting:
                self._fill(chain)

    def _take_spare(self, source: str) -> None:
        """Open a source's next best route, where all that it has are broken."""
        if any(route.rests_until_s <= self._now_s for route in self._routes[source]):
            return
        used = {route.hosts for route in self._routes[source]}
        spare = next((hosts for hosts in self._spares[source] if hosts not in used), None)
        if spare is not None:
            self._add_way(spare, max(route.connections for route in self._routes[source]))

    def _try_again(self, route: ChainRoute) -> None:
        self._fill_up(route)
        self._make_room()

    def _wake(self, time_s: float, act: Callable[[], None]) -> None:
        self._decisions.append(WakeMe(time_s, len(self._alarms)))
        self._alarms.append(act)


def _require_at_sources(problem: Problem) -> None:
    """Refuse data that lie at relays: chains begin where data are from."""
    for held in problem.held:
        if held.n_bytes and held.host not in (held.source, problem.destination):
            raise ProblemError(
                f"held: {held.n_bytes} bytes of {held.source!r} lie at {held.host!r}, and chains "
                'begin at sources; carry this out with relays = "queues"'
            )
