"""The adaptive controller: connections pull pieces, and move to where they bring most.

Nothing is planned beyond the next second or two. Each connection is given pieces of its host's
data as it delivers those before; what it brings is observed, and connections are taken from links
where they bring little and opened where they bring more, one closing before the next opens. Hosts
with fast links to the destination are fed by others when they run out of work. A host's last
pieces are sent twice where a connection would idle.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from datacollect.control.adaptive.chain_moves import best_chain_move
from datacollect.control.adaptive.market import Market
from datacollect.control.adaptive.moves import Feeding, Move, best_move
from datacollect.control.adaptive.opening import first_links
from datacollect.control.adaptive.outlook import EndForecast, Outlook
from datacollect.control.connections import Piece, Recovery
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
from datacollect.control.relaying import QUEUES, are_chains
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacollect.control.adaptive.pulls import Pull
    from datacollect.control.connection_counts import Link
    from datacollect.files.choices import Relays
    from datacollect.problem.hosts import Parcel
    from datacollect.problem.problem import Problem


class Agenda:
    """Decisions to be said, in order, and acts for later.

    Attributes
    ----------
    alarms : list of callable
        By the tags of the timers that were asked for.

    Examples
    --------
    >>> agenda = Agenda()
    >>> agenda.wake(2.0, lambda: print("now"))
    >>> [decision] = agenda.taken()
    >>> agenda.alarms[decision.tag]()
    now
    >>> agenda.taken()
    []
    """

    def __init__(self) -> None:
        self.alarms: list[Callable[[], None]] = []
        self._decisions: list[Decision] = []

    def add(self, decision: Decision) -> None:
        """Say this next."""
        self._decisions.append(decision)

    def wake(self, time_s: float, act: Callable[[], None]) -> None:
        """Do something at an instant."""
        self.add(WakeMe(time_s, len(self.alarms)))
        self.alarms.append(act)

    def taken(self) -> list[Decision]:
        """Return what is to be said, once."""
        decisions, self._decisions = self._decisions, []
        return decisions


# Pieces are so small that the last ones cost a thousandth of the time, and no smaller than what
# pays for a message.
PIECES_IN_ALL, LEAST_PIECE_BYTES = 4000, 8192
# A connection has this much in flight, or two pieces: more than a round trip and what messages
# take, so that it never waits for the next piece, yet little is stuck with it where it gets stuck.
AHEAD_S = 1.0
# How often connections are moved at most.
TICK_S = 1.0
# An idle connection is given to others after this time.
PATIENCE_S = 3.0
# What was on a connection that has ended as it should is in flight for no longer than this.
LATE_S = 5.0
MOST_COPIES = 2


def default_piece_bytes(problem: Problem) -> int:
    """Return how large pieces are where nothing is said."""
    total_bytes = sum(parcel.n_bytes for parcel in problem.parcels)
    return max(LEAST_PIECE_BYTES, total_bytes // PIECES_IN_ALL)


class AdaptiveController(Controller):
    """Pull pieces over connections that move to where they bring most.

    It decides at the destination. Data go directly there or over a gateway; a host without a link
    to the destination sends along the widest route.

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
        ``forecasts``: a `EndForecast` for each tenth that had arrived.

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
        recovery = recovery or Recovery()
        total_bytes = sum(parcel.n_bytes for parcel in problem.parcels)
        self._market = Market(
            problem,
            connections,
            recovery,
            chains=are_chains(relays),
            piece_bytes=piece_bytes or default_piece_bytes(problem),
            harm=harm,
            room_bytes=room_bytes,
        )
        self._patience_s = recovery.stall_patience_s
        self._window_bytes = window_bytes
        self._agenda = Agenda()
        self._is_ticking = False
        self._outlook = Outlook(total_bytes, expected_s)
        self.answer: dict[str, Any] = {
            "most_connections": 0,
            "connections_opened": 0,
            "sent_twice_bytes": 0,
            "forecasts": self._outlook.noted,
        }

    @property
    def forecast(self) -> EndForecast | None:
        """Say when all will be there, as it looked at the last tick; None before there was one."""
        return self._outlook.forecast

    def start(self) -> list[Decision]:
        """Return the first decisions, at time 0."""
        for parcel in self._market.problem.parcels:
            if parcel.release_s > 0:
                self._agenda.wake(parcel.release_s, partial(self._release, parcel))
            else:
                self._market.released(parcel)
        for link in first_links(self._market):
            self._open(link)
        return self._decided()

    def handle(self, event: Event) -> list[Decision]:
        """Return what to do after an event."""
        market = self._market
        market.now_s = event.time_s
        match event:
            case RangeArrived():
                self._arrived(event)
            case Timer():
                self._agenda.alarms[event.tag]()
            case ConnectionOpened():
                if pull := market.pulls.known.get(event.connection):
                    market.pulls.opened(pull, event.time_s)
            case ConnectionStalled():
                self._stalled(market.pulls.known.get(event.connection))
            case ConnectionClosed():
                self._closed(market.pulls.closed(event.connection, event.time_s))
            case HostLost():
                self._host_lost(event.host)
        return self._decided()

    def _decided(self) -> list[Decision]:
        if not self._is_ticking and self._market.has_work():
            self._is_ticking = True
            self._agenda.wake(self._market.now_s + TICK_S, self._tick)
        return self._agenda.taken()

    # What happened ----------------------------------------------------------------------------

    def _release(self, parcel: Parcel) -> None:
        host = self._market.released(parcel)
        self._let_go_idle_ones()
        self._refill(host)
        self._spend()

    def _arrived(self, event: RangeArrived) -> None:
        pulls = self._market.pulls
        pull = pulls.ever[event.connection]
        piece = Piece(event.source, event.offset_bytes, event.n_bytes)
        if self._market.arrived(pull, piece):
            self._pass_on(event.host)
        if event.connection in pulls.known:
            self._fill(pull)
        for feeder in pulls.into(pull.link[0]):
            self._fill(feeder)

    def _pass_on(self, host: str) -> None:
        """Let a relay pass on what lies there; open a connection for that where it has none."""
        market = self._market
        self._refill(host)
        link = market.next_hops.link(host)
        if not market.pulls.active[link] and link not in market.wanted:
            most, n = market.pulls.active.most_common(1)[0]
            self._move(Move((most,) if n > 1 else (), (link,)))

    def _stalled(self, pull: Pull | None) -> None:
        if pull is None or self._patience_s is None:
            return
        drop = partial(self._drop_stuck, pull, pull.arrivals)
        if self._patience_s > 0:
            self._agenda.wake(self._market.now_s + self._patience_s, drop)
        else:
            drop()

    def _drop_stuck(self, pull: Pull, arrivals: int) -> None:
        """Cut a connection on which nothing has arrived; once it is gone its work is given back."""
        market = self._market
        is_known = pull.number in market.pulls.known
        if is_known and pull.arrivals == arrivals and not pull.is_dropped:
            market.next_hops.failed(pull.link, market.now_s)
            self._retire(pull, drop=True)

    def _closed(self, pull: Pull | None) -> None:
        if pull is None:
            return
        market = self._market
        if pull.is_draining and not pull.is_dropped:
            if pull.waiting:
                self._agenda.wake(market.now_s + LATE_S, partial(self._give_back, pull))
        else:
            if not pull.is_draining:  # nobody asked for its end
                market.pulls.retired(pull, drop=True)
                market.next_hops.failed(pull.link, market.now_s)
            self._give_back(pull)
        self._spend()

    def _give_back(self, pull: Pull) -> None:
        """Let others send what a connection that is gone has not brought."""
        for piece in list(pull.waiting):
            if host := self._market.not_brought(pull, piece):
                self._refill(host)
        self._spend()

    def _host_lost(self, host: str) -> None:
        """Send again what it had, from where that came from."""
        for piece in self._market.lost(host):
            if home := self._market.lies_again(host, piece):
                self._refill(home)
        self._refill_all()

    def _tick(self) -> None:
        """Look at rates, and move connections."""
        market = self._market
        self._is_ticking = False  # until more is to do
        market.pulls.observe(market.now_s)
        self._outlook.look(market.now_s, market.there_bytes, market.views())
        for link in market.too_many():
            self._move(Move((link,), ()))
        if not market.pulls.any_draining:
            market.wanted.clear()  # no place is about to be free
        self._let_go_idle_ones()
        self._refill_all()
        self._spend()
        if not market.wanted:
            self._rebalance()
        market.rates.passed(TICK_S, market.pulls.active)

    # What connections are given ---------------------------------------------------------------

    def _refill_all(self) -> None:
        for host in self._market.problem.names:
            self._refill(host)

    def _refill(self, host: str) -> None:
        """Give new work to a host's connections."""
        for pull in self._market.pulls.out_of(host):
            self._fill(pull)

    def _fill(self, pull: Pull) -> None:
        """Give a connection pieces; where there are none let it go, or send the last ones twice."""
        market, link = self._market, pull.link
        rate = market.rates.careful_rate(link, market.pulls.active[link])
        ahead_bytes = max(2 * market.piece_bytes, AHEAD_S * rate)
        while not pull.is_draining and pull.waiting_bytes < ahead_bytes:
            if not market.may_take(link):
                return
            piece = market.queues[link[0]].pull(own=market.feeds(link))
            if piece is None:
                self._nothing_left(pull)
                return
            if piece not in market.there:
                self._send(pull, piece)

    def _nothing_left(self, pull: Pull) -> None:
        market, host = self._market, pull.link[0]
        if market.feeds(pull.link):
            self._retire(pull)
        elif market.is_fed(host):
            return
        elif market.has_work_elsewhere(host):
            self._retire(pull)
        elif not pull.waiting and pull.link[-1] == market.destination:
            self._duplicate(pull)

    def _duplicate(self, pull: Pull) -> None:
        """Send once more what another connection of the host has had for longest."""
        piece = self._market.pulls.oldest(pull.link[0], MOST_COPIES, self._market.there)
        if piece is not None:
            self.answer["sent_twice_bytes"] += piece.n_bytes
            self._send(pull, piece)

    def _send(self, pull: Pull, piece: Piece) -> None:
        self._agenda.add(Send(pull.number, *piece))
        self._market.pulls.given(pull, piece, self._market.now_s)

    # Which connections there are --------------------------------------------------------------

    def _open(self, link: Link) -> None:
        pulls = self._market.pulls
        pull = pulls.add(link, self._market.now_s)
        most = max(self.answer["most_connections"], pulls.held)
        self.answer |= {"most_connections": most, "connections_opened": len(pulls.ever)}
        self._agenda.add(Open(pull.number, link, self._window_bytes))
        self._fill(pull)

    def _retire(self, pull: Pull, *, drop: bool = False) -> None:
        """Let a connection close, once what is on it has left or at once."""
        self._market.pulls.retired(pull, drop=drop)
        self._agenda.add(Close(pull.number, drop_queue=drop))

    def _spend(self) -> None:
        """Open connections while there may be more."""
        market = self._market
        while (free := market.free) > 0:
            needs = len(market.wanted[0]) - 1 if market.wanted else 0
            if needs > free and market.pulls.any_draining:
                return  # those that close make room
            link = market.next_link(free)
            if link is None:
                return
            self._open(link)

    def _rebalance(self) -> None:
        market = self._market
        if market.chains:
            best = best_chain_move(market)
        else:
            feeding = Feeding(market)
            if moves := feeding.moves():
                for move in moves:
                    self._move(move)
                feeding = Feeding(market)
            if (swap := feeding.better_source()) is not None:
                self._move(swap)
            best = best_move(feeding)
        if best is not None and not market.wanted:
            self._move(best)

    def _let_go_idle_ones(self) -> None:
        market = self._market
        for pull in list(market.pulls.known.values()):
            is_idle = not pull.waiting and not pull.is_draining
            waits_s = market.now_s - pull.idle_since_s
            if is_idle and waits_s > PATIENCE_S and market.has_work_elsewhere(pull.link[0]):
                self._retire(pull)

    def _move(self, move: Move) -> None:
        """Retire those with least on them; what they make room for opens when they have closed."""
        for link, n in Counter(move.from_links).items():
            for pull in self._market.pulls.least_laden(link, n):
                self._retire(pull)
        self._market.wanted.extend(move.to_links)
        self._spend()
