"""Controller without estimates: begins directly with real pieces, tries chains, plans on them.

A chain over a relay is tried where it could matter: for sources that would be among the last.
A trial is short, brings real pieces, and is judged by what arrived after its first half second. One
trial at a time touches a host, and all take a twentieth of the predicted time at most. Where that
is too short for any, everything goes on as it began. Afterwards the remainder is planned again, and
again from time to time; a new plan is followed where it gains by a margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from datacollect.control.chained.controller import ChainedController
from datacollect.control.chained.shares import route_shares
from datacollect.control.decisions import Decision, PlanRemaining
from datacollect.control.events import (
    BytesMoved,
    ConnectionClosed,
    Event,
    RangeArrived,
    RemainingPlanned,
)
from datacollect.numbers.byte_ranges import ByteRanges
from datacollect.problem.hosts import Held
from datacollect.schedule.data.new_links import NewLinks
from datacollect.schedule.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.control.connection_counts import Link
    from datacollect.control.connections import Recovery
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# How often what has arrived is looked at.
WATCHES_EVERY_S = 0.25
# Rates follow from what comes after this many seconds of a chain.
SKIPPED_S = 0.5
# Direct transfers are watched for this time before anything is tried.
WATCHED_S = 1.5
# A trial takes this time or this many bytes; less than a second shows nothing.
LONGEST_TRIAL_S, MOST_TRIAL_BYTES, SHORTEST_TRIAL_S = 3.0, 5_000_000, 1.0
# All trials together take this part of the predicted time.
TRIALS_PART = 0.05
# Connections kept for trials while direct transfers are watched: one chain's.
ROOM_FOR_TRIALS = 2
# A source is worth trials if it takes this part of the longest time.
AMONG_THE_LAST = 0.5
# A new plan must end so much earlier to be followed.
MARGIN = 0.9
# How often the remainder is planned again.
REPLAN_S = 15.0


@dataclass(slots=True)
class Meter:
    """The rate of a chain, its first moments left out.

    >>> meter = Meter()
    >>> for time_s, n_bytes in ((0.0, 0), (0.5, 10), (1.5, 110)):
    ...     meter.saw(time_s, n_bytes)
    >>> meter.rate_bytes_per_s
    100.0
    """

    begun_s: float | None = None
    from_s: float | None = None
    from_bytes: int = 0
    until_s: float = 0.0
    n_bytes: int = 0

    def saw(self, time_s: float, n_bytes: int) -> None:
        """Note how much has come until an instant."""
        if self.begun_s is None:
            self.begun_s = time_s
        if self.from_s is None and time_s >= self.begun_s + SKIPPED_S:
            self.from_s, self.from_bytes = time_s, n_bytes
        self.until_s, self.n_bytes = time_s, n_bytes

    @property
    def rate_bytes_per_s(self) -> float:
        """Bytes per second; 0 as long as nothing can be said."""
        if self.from_s is None or self.until_s <= self.from_s:
            return 0.0
        return (self.n_bytes - self.from_bytes) / (self.until_s - self.from_s)


class LearningController(ChainedController):
    """Carry out a first plan made without estimates, learn, and have the remainder planned again.

    It watches what arrives a few times a second, and asks for plans of what remains.

    Parameters
    ----------
    problem : Problem
        Its bandwidths are placeholders.
    schedule : Schedule
        The first plan, direct wherever possible.
    trials : sequence of tuple of str
        Chains that may be tried.
    piece_bytes, connections, window_bytes, recovery
        As for `ChainedController`.

    Attributes
    ----------
    answer : dict
        That of `ChainedController`, and ``replans``: how often a plan of what remained was
        followed; ``at_s``: from when on; ``predicted_end_s``: when each promised to end.
    rates : dict of tuple of str to float
        Bytes per second of one chain, by its hosts, as they were observed.
    predicted_end_s : float or None
        By the first plan on observed rates.
    """

    watches_every_s = WATCHES_EVERY_S

    def __init__(
        self,
        problem: Problem,
        schedule: Schedule,
        trials: Sequence[tuple[str, ...]],
        *,
        piece_bytes: int,
        recovery: Recovery,
        connections: int | None = None,
        window_bytes: int | None = None,
    ) -> None:
        kept = ROOM_FOR_TRIALS if trials else 0
        super().__init__(
            problem,
            schedule,
            piece_bytes=piece_bytes,
            recovery=recovery,
            connections=None if connections is None else max(1, connections - kept),
            window_bytes=window_bytes,
        )
        self.answer |= {"replans": 0, "at_s": [], "predicted_end_s": []}
        if connections is not None:
            self._most = connections
            self._most_hops = max(connections, self._most_hops or 0)
        self._problem = problem
        self._untried = [hosts for hosts in trials if hosts[0] in self._routes]
        self._trials: dict[int, tuple[str, ...]] = {}
        self._trial_s: float | None = None
        self._trials_end_s = 0.0
        self._meters: dict[int, Meter] = {}
        self._collected: dict[str, ByteRanges] = {}
        self._plans = 0
        self.predicted_end_s: float | None = None
        self.rates: dict[tuple[str, ...], float] = {}

    def start(self) -> list[Decision]:
        """Return the first decisions, at time 0."""
        self._wake(WATCHED_S, self._watch)
        return super().start()

    def handle(self, event: Event) -> list[Decision]:
        """Return what to do after an event."""
        self._now_s = event.time_s
        match event:
            case BytesMoved():
                self._moved(event)
                return self._decided()
            case RemainingPlanned():
                self._planned(event)
                return self._decided()
            case RangeArrived():
                ranges = self._collected.setdefault(event.source, ByteRanges())
                ranges.add(event.offset_bytes, event.n_bytes)
            case ConnectionClosed(_, number):
                self._meters.pop(number, None)
                if number in self._trials:
                    self._end_trial(number)
        return super().handle(event)

    # Learning ---------------------------------------------------------------------------------

    def _moved(self, event: BytesMoved) -> None:
        chain = self._chains.get(event.connection)
        if chain is None:
            return
        meter = self._meters.setdefault(event.connection, Meter())
        meter.saw(event.time_s, event.n_bytes)
        if meter.rate_bytes_per_s > 0:
            self.rates[chain.route.hosts] = meter.rate_bytes_per_s
        if event.connection in self._trials and meter.begun_s is not None:
            took_s = event.time_s - meter.begun_s
            if took_s >= (self._trial_s or 0.0) or meter.n_bytes >= MOST_TRIAL_BYTES:
                if meter.rate_bytes_per_s <= 0 and event.time_s > chain.opened_s:
                    # So fast that it was over at once: at least so much.
                    least = meter.n_bytes / (event.time_s - chain.opened_s)
                    self.rates[chain.route.hosts] = least
                self._end_trial(event.connection)
                self._try_next()

    def _watch(self) -> None:
        """Decide what to try, now that the rate of direct transfers is known."""
        predicted_s = self._remaining_s()
        budget_s = TRIALS_PART * predicted_s
        if budget_s < SHORTEST_TRIAL_S or not self._untried:
            self._untried = []
        else:
            self._trial_s = min(LONGEST_TRIAL_S, budget_s)
            self._trials_end_s = self._now_s + budget_s
        self._try_next()

    def _try_next(self) -> None:
        """Begin trials that touch no host of others; where all are done plan what remains."""
        longest_s = self._remaining_s()
        while self._trial_s and self._untried:
            if self._now_s + self._trial_s > self._trials_end_s + LONGEST_TRIAL_S / 2:
                self._untried = []
                break
            busy = {host for hosts in self._trials.values() for host in hosts[:-1]}
            free = [
                hosts
                for hosts in self._untried
                if not busy & set(hosts[:-1])
                and self._source_s(hosts[0]) >= AMONG_THE_LAST * longest_s
            ]
            if not free:
                break
            hosts = max(free, key=lambda h: self._source_s(h[0]))
            self._untried.remove(hosts)
            self._try(hosts)
        if not self._trials and self._plans == 0:
            self._plan_remaining()

    def _try(self, hosts: tuple[str, ...]) -> None:
        routes = self._routes[hosts[0]]
        route = next((route for route in routes if route.hosts == hosts), None)
        if route is not None:
            return  # it is used anyway
        number = self._n_opened
        self._add_way(hosts, 1)
        if number not in self._chains:
            self._remove_way(hosts)  # no connection is to spare
        else:
            self._trials[number] = hosts
            # A relay that does not answer is no trial.
            limit_s = self._now_s + 2 * (self._trial_s or 0.0) + 1.0
            self._wake(limit_s, partial(self._give_trial_up, number))

    def _give_trial_up(self, number: int) -> None:
        if number in self._trials:
            self._end_trial(number)
            self._try_next()

    def _end_trial(self, number: int) -> None:
        """Take the chain away; what it has not brought others will."""
        hosts = self._trials.pop(number)
        chain = self._chains.get(number)
        if chain is not None:
            self._close(chain, drop=True)
            self._give_back(chain)
        self._remove_way(hosts)

    # Replanning ------------------------------------------------------------------------

    def _plan_remaining(self) -> None:
        if not any(self._has_work(source) for source in self._routes):
            return
        new = self._new_links()
        destination = self._problem.destination
        held = [h for h in self._problem.held if h.host == destination]
        held += [
            Held(destination, source, offset, n_bytes)
            for source, ranges in self._collected.items()
            for offset, n_bytes in ranges.ranges()
        ]
        self._decisions.append(
            PlanRemaining(self._plans, Progress(self._now_s, held=tuple(held), links=new))
        )
        self._plans += 1

    def _planned(self, event: RemainingPlanned) -> None:
        if event.schedule is not None:
            remaining_s = self._remaining_s()
            if event.schedule.makespan_s < MARGIN * remaining_s:
                self._adopt(route_shares(event.schedule))
                remaining_s = event.schedule.makespan_s
                self.answer["replans"] += 1
                self.answer["at_s"].append(self._now_s)
                self.answer["predicted_end_s"].append(self._now_s + remaining_s)
            elif event.number == 0:  # as before, with the connections that were kept for trials
                routes = [route for routes in self._routes.values() for route in routes]
                self._adopt({route.hosts: max(1, route.queued_bytes) for route in routes})
            self.predicted_end_s = self.predicted_end_s or self._now_s + remaining_s
        self._wake(self._now_s + REPLAN_S, self._plan_remaining)

    def _new_links(self) -> NewLinks:
        """Return what is known of links; those of which nothing is known stay out of the plan."""
        found, problem = self.link_rates(), self._problem
        names = problem.names
        ends = zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
        rates = {link: found.get((names[link[0]], names[link[1]]), 0.0) for link in ends}
        return NewLinks(
            np.array([tail for tail, _ in rates], dtype=np.int64),
            np.array([head for _, head in rates], dtype=np.int64),
            np.array([list(rates.values())], dtype=float),
            np.full(len(rates), np.nan),
            np.zeros(1),
        )

    def link_rates(self) -> dict[Link, float]:
        """Return what links bring: what a chain brought, for as many as there would be."""
        found: dict[Link, float] = {}
        for hosts, rate in self.rates.items():
            chains = max([1, *(route.connections for route in self._routes[hosts[0]])])
            for link in pairwise(hosts):
                found[link] = max(found.get(link, 0.0), rate * chains)
        return found

    def _remaining_s(self) -> float:
        """Return when the last source is done at today's rates."""
        return max((self._source_s(source) for source in self._routes), default=0.0)

    def _source_s(self, source: str) -> float:
        left = self._left_bytes(source) + sum(
            chain.waiting_bytes for chain in self._chains.values() if chain.source == source
        )
        rate = sum(
            meter.rate_bytes_per_s
            for number, meter in self._meters.items()
            if number in self._chains and self._chains[number].source == source
        )
        return left / rate if rate > 0 else (float("inf") if left else 0.0)
