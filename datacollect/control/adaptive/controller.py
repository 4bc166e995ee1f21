"""The adaptive controller: connections pull pieces, and move to where they bring most.

Nothing is planned beyond the next second or two. Each connection is given pieces of its host's
data as it delivers those before; what it brings is observed, and connections are taken from links
where they bring little and opened where they bring more, one closing before the next opens. Hosts
with fast links to the destination are fed by others when they run out of work. A host's last
pieces are sent twice where a connection would idle.
"""

from __future__ import annotations

from collections import Counter, deque
from functools import partial
from typing import TYPE_CHECKING, Any

from datacollect.control.adaptive.agenda import Agenda
from datacollect.control.adaptive.chain_moves import best_chain_move
from datacollect.control.adaptive.gateways import Gateways
from datacollect.control.adaptive.host_queues import Stocks, home_of
from datacollect.control.adaptive.impact_limit import cautious
from datacollect.control.adaptive.moves import Feeding, HostView, Move, best_move
from datacollect.control.adaptive.next_hops import Ways
from datacollect.control.adaptive.opening import first_links
from datacollect.control.adaptive.outlook import Forecast, Outlook
from datacollect.control.adaptive.pulls import Pulls
from datacollect.control.adaptive.views import host_views, most_left
from datacollect.control.connection_counts import LinkRates
from datacollect.control.connections import Piece, Recovery
from datacollect.control.controller import Controller
from datacollect.control.decisions import Close, Decision, Open, Send
from datacollect.control.events import (
    ConnectionClosed,
    ConnectionOpened,
    ConnectionStalled,
    Event,
    HostLost,
    RangeArrived,
    Timer,
)
from datacollect.control.relaying import QUEUES, are_chains
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.control.adaptive.pulls import Pull
    from datacollect.control.connection_counts import Link
    from datacollect.files.choices import Relays
    from datacollect.problem.hosts import Parcel
    from datacollect.problem.problem import Problem

# Pieces are so small that the last ones cost a thousandth of the time, and no smaller than what
# pays for a message.
PIECES_IN_ALL, LEAST_PIECE_BYTES = 4000, 8192
# A connection has so much on its way, or two pieces: more than a round trip and what messages
# take, so that it never waits for the next piece, yet little is stuck with it where it gets stuck.
AHEAD_S = 1.0
# Connections are moved so often at most.
TICK_S = 1.0
# An idle connection is given to others after this time.
PATIENCE_S = 3.0
# What was on a connection that has ended as it should is on its way for no longer than this.
LATE_S = 5.0
MOST_COPIES = 2


class AdaptiveController(Controller):
    """Pull pieces over connections that move to where they bring most.

    It decides at the destination. Data go straight there or over a gateway; a host without a link
    to the destination sends along the widest way.

    Parameters
    ----------
    problem : Problem
        Who holds what from when on; bandwidths are what to expect until connections tell.
    connections : int
        Most at a time, each counted from the decision to open it until its end is known; a route
        of two hops takes two.
    relays : {"queues", "chains"}
        Where data on a detour wait: in a queue at the relay, from which its connections pull; or
        nowhere: each piece is passed on as it comes, on a chain, as real transfers do.
    harm : float, optional
        How much of their rate others may lose, as a part of what direct transfers with one
        connection per source would leave them (`datacollect.control.adaptive.impact_limit`).
    room_bytes : mapping of str to float, optional
        Room for others' data at relays; unlimited at those left out.
    piece_bytes : int, optional
        How data are cut; by default into thousands.
    window_bytes, recovery
        As for `datacollect.control.planned.direct.DirectController`.
    expected_s : float, optional
        The end as it was predicted before the start: forecasts begin with it.

    Attributes
    ----------
    answer : dict
        ``most_connections`` at a time, ``connections_opened`` in all, ``sent_twice_bytes``, and
        ``forecasts``: a `Forecast` for each tenth that had arrived.

    Raises
    ------
    ProblemError
        `connections` is less than 1, or than a chain takes that some host needs.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [9000, 0], "D")
    >>> [type(decision).__name__ for decision in AdaptiveController(problem, 1).start()]
    ['Open', 'Send', 'Send', 'WakeMe']
    """

    decides_at_destination = True

    def __init__(
        self,
        problem: Problem,
        connections: int,
        *,
        relays: Relays = QUEUES,
        harm: float | None = None,
        room_bytes: Mapping[str, float] | None = None,
        piece_bytes: int | None = None,
        window_bytes: int | None = None,
        recovery: Recovery | None = None,
        expected_s: float | None = None,
    ) -> None:
        if connections < 1:
            raise ProblemError(f"connections must be >= 1, got {connections}")
        self._chains = are_chains(relays)
        self._budget = connections
        self._recovery = recovery or Recovery()
        self._destination = problem.destination
        self._problem = problem
        self._names = problem.names
        self._ways = Ways(problem, self._recovery, chains=self._chains)
        self._rates = LinkRates(self._ways.links)
        self._window_bytes = window_bytes
        self._piece_bytes = piece_bytes or max(
            LEAST_PIECE_BYTES, sum(parcel.n_bytes for parcel in problem.parcels) // PIECES_IN_ALL
        )
        self._stock = Stocks(self._names, self._piece_bytes)
        self._there: set[Piece] = set()  # at the destination
        self._pulls = Pulls(self._rates, self._names, self._destination)
        self._books = self._pulls, self._ways, self._rates, self._stock
        self._gateways = Gateways(*self._books, self._piece_bytes, room_bytes or {})
        self._wanted: deque[Link] = deque()  # where those go whose place is about to be free
        self._is_ticking = False
        self._agenda = Agenda()
        self._now_s = 0.0
        self._outlook = Outlook(sum(parcel.n_bytes for parcel in problem.parcels), expected_s)
        self._caution = cautious(harm, problem, self._ways, self._rates, connections)
        self.answer: dict[str, Any] = {
            "most_connections": 0,
            "connections_opened": 0,
            "sent_twice_bytes": 0,
            "forecasts": self._outlook.noted,
        }

    @property
    def forecast(self) -> Forecast | None:
        """When all will be there, as it looked at the last tick; None before there was one."""
        return self._outlook.forecast

    def start(self) -> list[Decision]:
        """Return the first decisions, at time 0."""
        for parcel in self._problem.parcels:
            if parcel.release_s > 0:
                self._agenda.wake(parcel.release_s, partial(self._release, parcel))
            else:
                self._lay(parcel)
        books = self._ways, self._rates, self._stock
        for link in first_links(*books, self._most, chains=self._chains):
            self._open(link)
        return self._decided()

    def handle(self, event: Event) -> list[Decision]:
        """Return what to do after an event."""
        self._now_s = event.time_s
        match event:
            case RangeArrived():
                self._arrived(event)
            case Timer():
                self._agenda.alarms[event.tag]()
            case ConnectionOpened():
                if pull := self._pulls.known.get(event.connection):
                    self._pulls.opened(pull, event.time_s)
            case ConnectionStalled():
                self._stalled(self._pulls.known.get(event.connection))
            case ConnectionClosed():
                self._closed(self._pulls.closed(event.connection, event.time_s))
            case HostLost():
                self._host_lost(event.host)
        return self._decided()

    def _decided(self) -> list[Decision]:
        if not self._is_ticking and self._has_work():
            self._is_ticking = True
            self._agenda.wake(self._now_s + TICK_S, self._tick)
        return self._agenda.taken()

    def _lay(self, parcel: Parcel) -> None:
        host, source = self._names[parcel.host], self._names[parcel.source]
        self._stock[host].add_own(source, parcel.offset_bytes, parcel.n_bytes)

    def _release(self, parcel: Parcel) -> None:
        self._lay(parcel)
        self._let_go_idle_ones()
        self._refill(self._names[parcel.host])
        self._spend()

    def _arrived(self, event: RangeArrived) -> None:
        pull = self._pulls.ever[event.connection]
        piece = Piece(event.source, event.offset_bytes, event.n_bytes)
        host = pull.link[0]
        self._rates.moved(pull.link, piece.n_bytes)
        self._ways.worked(pull.link)
        pull.arrivals += 1
        was_waited_for = self._pulls.taken(pull, piece, event.time_s)
        if event.host == self._destination:
            self._outlook.there_bytes += 0 if piece in self._there else piece.n_bytes
            self._there.add(piece)
            self._pulls.has_left(host, piece)
        elif was_waited_for or self._stock[host].discard(piece):
            self._pulls.has_left(host, piece)
            self._come(event.host, piece)
        if event.connection in self._pulls.known:
            self._fill(pull)
        for feeder in self._pulls.into(host):
            self._fill(feeder)

    def _come(self, host: str, piece: Piece) -> None:
        """Let a relay pass a piece on."""
        self._pulls.relays(host, piece)
        self._stock[host].add(piece)
        self._refill(host)
        link = self._ways.link(host)
        if not self._pulls.active[link] and link not in self._wanted:
            most, n = self._pulls.active.most_common(1)[0]
            self._move(Move((most,) if n > 1 else (), (link,)))

    def _stalled(self, pull: Pull | None) -> None:
        patience_s = self._recovery.stall_patience_s
        if pull is None or patience_s is None:
            return
        drop = partial(self._drop_stuck, pull, pull.arrivals)
        if patience_s > 0:
            self._agenda.wake(self._now_s + patience_s, drop)
        else:
            drop()

    def _drop_stuck(self, pull: Pull, arrivals: int) -> None:
        """Cut a connection on which nothing has arrived; once it is gone its work is given back."""
        is_known = pull.number in self._pulls.known
        if is_known and pull.arrivals == arrivals and not pull.is_dropped:
            self._ways.failed(pull.link, self._now_s)
            self._retire(pull, drop=True)

    def _closed(self, pull: Pull | None) -> None:
        if pull is None:
            return
        if pull.is_draining and not pull.is_dropped:
            if pull.waiting:
                self._agenda.wake(self._now_s + LATE_S, partial(self._give_back, pull))
        else:
            if not pull.is_draining:  # nobody asked for its end
                self._pulls.retired(pull, drop=True)
                self._ways.failed(pull.link, self._now_s)
            self._give_back(pull)
        self._spend()

    def _give_back(self, pull: Pull) -> None:
        """Let others send what a connection that is gone has not brought."""
        for piece in list(pull.waiting):
            self._pulls.taken(pull, piece, self._now_s)
            if not self._pulls.copies[piece] and piece not in self._there:
                self._return(pull.link, piece)
        self._spend()

    def _return(self, link: Link, piece: Piece) -> None:
        """Let a piece that has not got over a link lie where it was before."""
        host, to_host = link[0], link[-1]
        if to_host:
            self._pulls.has_left(to_host, piece)
        if host in self._ways.lost:
            self._pulls.has_left(host, piece)
            host = home_of(piece, self._problem)
        if host not in self._ways.lost:
            self._stock[host].add(piece)
            self._refill(host)

    def _host_lost(self, host: str) -> None:
        """Send again what it had, from where that came from."""
        self._ways.lose(host)
        for pull in self._pulls.known.values():
            if host in pull.link:
                self._pulls.retired(pull, drop=True)
        for piece in self._stock[host].whole_pieces():
            if piece not in self._there:
                self._return((host, ""), piece)
        self._stock.clear_out(host)
        for name in self._names:
            self._refill(name)

    def _refill(self, host: str) -> None:
        """Give new work to a host's connections."""
        for pull in self._pulls.out_of(host):
            self._fill(pull)

    def _fill(self, pull: Pull) -> None:
        """Give a connection pieces; where there are none let it go, or send the last ones twice."""
        host, pulls = pull.link[0], self._pulls
        rate = self._rates.careful_rate(pull.link, pulls.active[pull.link])
        ahead_bytes = max(2 * self._piece_bytes, AHEAD_S * rate)
        while not pull.is_draining and pull.waiting_bytes < ahead_bytes:
            if not self._gateways.may_take(pull.link):
                return
            piece = self._stock[host].pull(own=self._gateways.feeds(pull.link))
            if piece is None:
                self._nothing_left(pull)
                return
            if piece not in self._there:
                self._agenda.add(Send(pull.number, *piece))
                pulls.given(pull, piece, self._now_s)

    def _nothing_left(self, pull: Pull) -> None:
        host = pull.link[0]
        if self._gateways.feeds(pull.link):
            self._retire(pull)
        elif self._is_fed(host):
            return
        elif self._has_work_elsewhere(host):
            self._retire(pull)
        elif not pull.waiting and pull.link[-1] == self._destination:
            self._duplicate(pull)

    def _is_fed(self, host: str) -> bool:
        """Whether more is on its way to a host, or will be."""
        return (
            self._pulls.coming_bytes[host] > 0
            or bool(self._pulls.into(host))
            or any(link[-1] == host for link in self._wanted)
        )

    def _has_work_elsewhere(self, host: str) -> bool:
        return self._stock.any_left(self._ways.hosts, besides=host)

    def _has_work(self) -> bool:
        return self._has_work_elsewhere("") or any(p.waiting for p in self._pulls.known.values())

    def _duplicate(self, pull: Pull) -> None:
        """Send once more what another connection of the host has had for longest."""
        piece = self._pulls.oldest(pull.link[0], MOST_COPIES, self._there)
        if piece is not None:
            self.answer["sent_twice_bytes"] += piece.n_bytes
            self._agenda.add(Send(pull.number, *piece))
            self._pulls.given(pull, piece, self._now_s)

    def _open(self, link: Link) -> None:
        pull = self._pulls.add(link, self._now_s)
        most = max(self.answer["most_connections"], self._pulls.held)
        self.answer |= {"most_connections": most, "connections_opened": len(self._pulls.ever)}
        self._agenda.add(Open(pull.number, link, self._window_bytes))
        self._fill(pull)

    def _retire(self, pull: Pull, *, drop: bool = False) -> None:
        """Let a connection close, once what is on it has left or at once."""
        self._pulls.retired(pull, drop=drop)
        self._agenda.add(Close(pull.number, drop_queue=drop))

    @property
    def _most(self) -> int:
        return self._budget if self._caution is None else self._caution.most

    def _spend(self) -> None:
        """Open connections while there may be more."""
        while (free := self._most - self._pulls.held) > 0:
            needs = len(self._wanted[0]) - 1 if self._wanted else 0
            if needs > free and self._pulls.any_draining:
                return  # those that close make room
            link = self._next_wanted(free) or most_left(*self._books, self._may_open, free)
            if link is None:
                return
            self._open(link)

    def _may_open(self, link: Link) -> bool:
        return self._ways.may_open(link, self._now_s)

    def _next_wanted(self, free: int) -> Link | None:
        while self._wanted:
            link = self._wanted.popleft()
            fits = len(link) - 1 <= free and self._may_open(link)
            if fits and (self._stock[link[0]].n_bytes or self._is_fed(link[0])):
                return link
        return None

    def _tick(self) -> None:
        """Look at rates, and move connections."""
        self._is_ticking = False  # until more is to do
        self._pulls.observe(self._now_s)
        self._outlook.look(self._now_s, self._views())
        if self._caution is not None:
            for link in self._caution.too_many(self._pulls.active, self._rates):
                self._move(Move((link,), ()))
        if not self._pulls.any_draining:
            self._wanted.clear()  # no place is about to be free
        self._let_go_idle_ones()
        for name in self._names:
            self._refill(name)
        self._spend()
        if not self._wanted:
            self._rebalance()
        self._rates.passed(TICK_S, self._pulls.active)

    def _rebalance(self) -> None:
        views, active = self._views(), self._pulls.active
        free = self._most - self._pulls.held
        if self._chains:
            best = best_chain_move(views, active, self._rates, self._ways, self._budget, free)
        else:
            rest = active, self._rates, self._destination
            feeding = Feeding(views, *rest)
            if moves := feeding.moves(free):
                for move in moves:
                    self._move(move)
                feeding = Feeding(self._views(), *rest)
            if (swap := feeding.better_source()) is not None:
                self._move(swap)
            best = best_move(feeding, self._budget)
        if best is not None and not self._wanted:
            self._move(best)

    def _let_go_idle_ones(self) -> None:
        for pull in list(self._pulls.known.values()):
            is_idle = not pull.waiting and not pull.is_draining
            waits_s = self._now_s - pull.idle_since_s
            if is_idle and waits_s > PATIENCE_S and self._has_work_elsewhere(pull.link[0]):
                self._retire(pull)

    def _move(self, move: Move) -> None:
        """Retire those with least on them; what they make room for opens when they have closed."""
        for link, n in Counter(move.from_links).items():
            for pull in self._pulls.least_laden(link, n):
                self._retire(pull)
        self._wanted.extend(move.to_links)
        self._spend()

    def _views(self) -> list[HostView]:
        return host_views(*self._books, self._wanted)
