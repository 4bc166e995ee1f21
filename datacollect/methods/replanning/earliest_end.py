"""The earliest end over all links, found on few of them and proved on all.

An old plan uses a few thousand of a million links. They are tried alone; then those are added that
could help, by the cut or the prices that forbid an earlier end, until none can. `other_links` and
`link_prices` tell which could.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.flow.network.layered import breakpoints_s, with_room_for_returns
from datacollect.flow.network.tolerances import ATTAINED
from datacollect.flow.quickest.bottleneck import cut_bottleneck
from datacollect.flow.quickest.quickest import NeverArrives, Quickest, ScaledFlow, quickest
from datacollect.flow.shared.earliest import SharedEnd, earliest_shared
from datacollect.flow.shared.model import SharedModel
from datacollect.methods.replanning.link_prices import SolvedFew, worth_their_price
from datacollect.methods.replanning.other_links import FewLinks, best_of_each, crossing, union
from datacollect.numbers.tolerances import SAME_INSTANT

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.transfers import Bottleneck
    from datacollect.solvers.budget import Budget


End: TypeAlias = Quickest | SharedEnd

# Links per host up to which a linear program takes all of them from the start.
FEW_PER_HOST = 16

# Of cuts with more links than these per host, each host gets this many of them at first.
WIDEST_PER_HOST = 4


@dataclass(frozen=True, eq=False)
class FewEnd:
    """The earliest end on few links.

    Attributes
    ----------
    known : FewLinks
    end : Quickest or SharedEnd
        On their network.
    """

    known: FewLinks
    end: End

    @property
    def makespan_s(self) -> float:
        """The end of the last piece."""
        return self.end.makespan_s

    @property
    def lengths_s(self) -> FloatArray:
        """Return how long data move in each piece."""
        return self.end.lengths_s

    @property
    def bottleneck(self) -> Bottleneck:
        """Return what forbids an earlier end."""
        if isinstance(self.end, SharedEnd):
            return self.end.bottleneck
        return cut_bottleneck(self.known.few, self.end)


@dataclass(frozen=True, eq=False)
class ProvedOptimum:
    """The earliest end over all links, found on few of them.

    Attributes
    ----------
    found : FewEnd
    alone : FewEnd or None
        The earliest end on the links of the old plan alone; None where those never suffice.
    """

    found: FewEnd
    alone: FewEnd | None

    @property
    def links(self) -> IntArray:
        """The few links on which it was found."""
        return self.found.known.links


def proved_optimum(
    problem: Problem,
    old_links: IntArray,
    guard_s: float,
    budget: Budget,
    likely: IntArray | None = None,
) -> ProvedOptimum:
    """Find the earliest end over all links.

    Parameters
    ----------
    problem : Problem
    old_links : ndarray of int
        Those of the old plan, sorted. Where they suffice, no other is looked at but to prove it.
    guard_s : float
        Every piece of time but the last ends this much early.
    budget : Budget
    likely : ndarray of int, optional
        Links to go on with where those do not suffice, the old ones among them.

    Raises
    ------
    NeverArrives, InfeasibleError
        Some data cannot arrive.
    """
    alone, more = _try(problem, old_links, guard_s, budget, attempt=0)
    if alone is not None and len(more) == 0:
        return ProvedOptimum(alone, alone)
    links, found = (likely, None) if likely is not None else _likely(problem, old_links, budget)
    if found is not None:
        return ProvedOptimum(found, alone)
    for attempt in count():
        found, more = _try(problem, links, guard_s, budget, attempt)
        if found is not None and len(more) == 0:
            return ProvedOptimum(found, alone)
        links = union(problem, links, more)
    raise AssertionError  # links are added until none is left


class LowerBound(NamedTuple):
    """Bound below every schedule's end, and why; ``exact`` where the end found is as early."""

    makespan_s: float
    bottleneck: Bottleneck
    exact: bool


def lower_bound_of(problem: Problem, optimum: ProvedOptimum, budget: Budget) -> LowerBound:
    """Return the lower bound, which is earlier than the optimum where that wastes room.

    A network cannot tell data that return to their owner from others', for which it keeps the
    owner's limit; see `with_room_for_returns`.
    """
    found = optimum.found
    if len(found.lengths_s) > 1:
        relaxed = with_room_for_returns(problem)
        if relaxed is not None and _rests_on_limits(found, relaxed):
            bound = proved_optimum(relaxed, optimum.links, 0.0, budget).found
            if bound.makespan_s < found.makespan_s * (1 - SAME_INSTANT):
                return LowerBound(bound.makespan_s, bound.bottleneck, exact=False)
    return LowerBound(found.makespan_s, found.bottleneck, exact=True)


def _rests_on_limits(found: FewEnd, relaxed: Problem) -> bool:
    """Say whether limits of storage that `relaxed` lacks may help to forbid an earlier end."""
    end, n_hosts = found.end, relaxed.n_hosts
    value = end.cut if isinstance(end, Quickest) or end.prices is None else end.prices.node_price
    if value is None:
        return True
    released = np.flatnonzero(relaxed.storage_bytes > found.known.whole.storage_bytes)
    hosts = np.arange(len(found.lengths_s))[:, np.newaxis] * n_hosts + released
    worth = value[hosts].astype(float)
    return bool((worth[:-1] > worth[1:] + ATTAINED).any())


def _try(
    problem: Problem, links: IntArray, guard_s: float, budget: Budget, attempt: int
) -> tuple[FewEnd | None, IntArray]:
    """Return the earliest end on some links, None if they never suffice; and what could help.

    Of many links that could help, the most promising; more in later attempts.

    Raises
    ------
    NeverArrives, InfeasibleError
        They never suffice, and no other link could help.
    """
    few, starts = problem.with_links(links), breakpoints_s(problem)
    try:
        relaxed = quickest(few, starts, guard_s, budget.flow_solver())
    except NeverArrives as never:
        more = crossing(FewLinks(problem, links, few, never.network), never.cut)
        if len(more) == 0:
            raise
        return None, _wide_enough(problem, more, attempt)
    known = FewLinks(problem, links, few, relaxed.network)
    if not few.shared:
        assert relaxed.cut is not None
        more = crossing(known, relaxed.cut)
        return FewEnd(known, relaxed), _wide_enough(problem, more, attempt)
    try:
        end = earliest_shared(few, starts, guard_s, relaxed, budget, few=are_few(few))
    except InfeasibleError:
        if len(links) == problem.n_links:
            raise
        return None, _wide_enough(problem, _all_but(known), attempt)
    known = FewLinks(problem, links, few, end.network)
    return FewEnd(known, end), _helping(known, end, attempt)


def _helping(known: FewLinks, end: SharedEnd, attempt: int) -> IntArray:
    """Return other links that the proof of an earliest end does not cover."""
    if end.prices is None:
        more = _all_but(known) if end.cut is None else crossing(known, end.cut)
        return _wide_enough(known.whole, more, attempt)
    program = SharedModel.build(known.few, end.network).at(end.lengths_s)
    free = np.zeros(program.n_arcs)
    return worth_their_price(SolvedFew(known, end.lengths_s, program, free, end.prices), 0.0)


def _all_but(known: FewLinks) -> IntArray:
    other = np.ones(known.whole.n_links, dtype=bool)
    other[known.links] = False
    return np.flatnonzero(other)


def are_few(problem: Problem) -> bool:
    """Say whether a linear program had better take all links from the start."""
    return problem.n_links <= FEW_PER_HOST * problem.n_hosts


def _likely(
    problem: Problem, old_links: IntArray, budget: Budget
) -> tuple[IntArray, FewEnd | None]:
    """Add links to the old ones until the destination may bind, or no other link helps.

    By no plan everything arrives sooner than the destination can take it in, and often that is the
    answer. So all links into the destination are added, and those that cross the minimum cuts at
    that instant: these show at once whose data have no route. Where none does, nor shared
    bottlenecks delay anything, it is the earliest end.
    """
    destination = problem.destination_index
    into = np.flatnonzero(problem.link_to == destination)
    links = union(problem, old_links, into)
    rate = float(problem.bandwidth_bytes_per_s[0][into].sum())
    limit = float(problem.downlink_bytes_per_s[0, destination])
    if len(breakpoints_s(problem)) > 1 or min(rate, limit) <= 0:
        return links, None
    lengths = np.array([problem.total_bytes / min(rate, limit)])
    alike, attempt = problem.replace(shared=()), 0
    while True:
        known = FewLinks.of(alike, links, n_pieces=1)
        scaled = ScaledFlow(known.network, budget.flow_solver())
        cut = scaled.saturate(lengths)[1]
        if cut is None:
            break
        more = crossing(known, cut)
        if len(more) == 0:
            return links, None
        links = union(problem, links, _wide_enough(problem, more, attempt))
        attempt += 1
    if problem.shared:
        return links, None
    before = np.ones(known.network.n_nodes, dtype=bool)
    # Links into the destination cross where they bind; where its downlink does, they are behind.
    before[destination] = False
    before[known.ends()[1][0, destination]] = limit <= rate and np.isfinite(limit)
    return links, FewEnd(known, Quickest(known.network, lengths, before, scaled))


def _wide_enough(problem: Problem, links: IntArray, attempt: int) -> IntArray:
    """Return the widest links of each host, more in later attempts; all where they are few."""
    if len(links) <= WIDEST_PER_HOST * problem.n_hosts:
        return links
    bandwidth = problem.bandwidth_bytes_per_s.max(axis=0)
    return best_of_each(problem, links, bandwidth[links], WIDEST_PER_HOST << attempt)
