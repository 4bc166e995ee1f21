"""Pipelines drain before rates change: how long chunks are, and plans with room for that.

A piece of time that another follows, or a deadline, ends for data (hops - 1) chunks early. What
that costs grows with the chunk, with the hops, and with the number of changes. So the default chunk
follows from all three: it is as long as relays like it, but never delays a plan by much.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.files.clock import deadline_text
from datacollect.flow.arrival_curve import arrival_curve
from datacollect.flow.network.layered import breakpoints_s, n_changes
from datacollect.flow.network.restarts import Restarts
from datacollect.flow.paths import earliest_pieces, fluid_paths
from datacollect.flow.shared.arrivals import grid_s
from datacollect.methods.options.arguments import default_chunk_s
from datacollect.methods.timing.pipeline import longest_pipeline
from datacollect.numbers.tolerances import SAME_INSTANT
from datacollect.problem.listing import ListingEnds, may_end_later

if TYPE_CHECKING:
    from datacollect.files.choices import Preference
    from datacollect.flow.optimum import FluidOptimum
    from datacollect.flow.quickest.quickest import Quickest
    from datacollect.flow.routes.fluid_plan import FluidPlan
    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget


# Default chunks delay a plan by at most this part of the earliest end.
MOST_DELAY = 0.002

# Shorter chunks that are tried before cut-through, and how much shorter each is at least.
MOST_TRIES = 4
SHORTER = 1 / 2
MUCH_SHORTER = 1 / 16


@dataclass(frozen=True)
class Wishes:
    """Options of a pipelined plan; see `datacollect.methods.coordinated.coordinated`.

    And whether flows are whole bytes where storage is full, see `datacollect.flow.whole_flow`.
    """

    prefer: Preference
    deadline_s: float | None
    chunk_s: float | None
    most_by_s: float | None = None
    is_whole: bool = False


def plan_with_room(
    problem: Problem, optimum: FluidOptimum, wishes: Wishes, budget: Budget
) -> tuple[FluidPlan, float]:
    """Find a plan whose pieces of time are short enough for its own pipelines to drain.

    Parameters
    ----------
    problem : Problem
        With data to be moved.
    optimum : FluidOptimum
        Of the problem.
    wishes : Wishes
        Without a chunk the longest is chosen that delays the plan by next to nothing; a chunk that
        is asked for is kept.
    budget : Budget

    Returns
    -------
    tuple of (FluidPlan, float)
        The plan, and the chunk in seconds.

    Raises
    ------
    InfeasibleError
        With the chunk that was asked for pipelines cannot drain before bandwidths change for good,
        or before the deadline.
    """
    starts_s = _piece_starts_s(problem, optimum, wishes, budget)
    plans = _Plans(problem, optimum, wishes, budget, starts_s)
    if wishes.chunk_s is None:
        return _by_default(plans)
    try:
        return plans.drained(wishes.chunk_s), wishes.chunk_s
    except _NoRoom as no_room:
        deadline_s = wishes.deadline_s
        text = "" if deadline_s is None else deadline_text(deadline_s, problem.clock)
        deadline = f" and {text.removesuffix(',')}" if text else ""
        raise InfeasibleError(
            f"with chunk_s = {wishes.chunk_s:g} pipelines of {no_room.hops} hops cannot drain "
            f"before bandwidths change{deadline}; use a shorter chunk, 0 for cut-through",
            problem.sources,
        ) from None


def _piece_starts_s(
    problem: Problem, optimum: FluidOptimum, wishes: Wishes, budget: Budget
) -> FloatArray:
    """Instants at which rates may change: where capacities do, and for earliest arrival more.

    Between two bends of the arrival curve the most that can have arrived grows evenly: what is
    best at the bends is best at every instant. With shared bottlenecks no plan may be that; then
    it is best at the instants of a grid, the earlier ones before the later.
    """
    starts = breakpoints_s(problem)
    if wishes.most_by_s is not None:
        # The most by one instant, and by all at which rates change: no bends are needed.
        near = np.abs(starts - wishes.most_by_s) <= SAME_INSTANT * wishes.most_by_s
        return starts if near.any() else np.union1d(starts, [wishes.most_by_s])
    if wishes.prefer != "earliest-arrival":
        return starts
    if problem.shared:
        return grid_s(starts, optimum.makespan_s)
    bends = arrival_curve(problem, budget).time_s
    makespan_s = float(bends[-1])
    if wishes.deadline_s is None:
        bends = bends[:-1]  # nothing is left to move after the last one
    # Bends are computed, changes are given: one that is the other but for rounding is no bend.
    near = np.abs(bends[:, np.newaxis] - starts).min(axis=1) <= SAME_INSTANT * makespan_s
    return np.union1d(starts, bends[~near])


# The default chunk ----------------------------------------------------------------------------


def _by_default(plans: _Plans) -> tuple[FluidPlan, float]:
    """Choose the chunk: by the number of changes, and shorter where that still delays too much."""
    earliest_s, deadline_s = plans.earliest_s, plans.wishes.deadline_s
    end_s = earliest_s if deadline_s is None else deadline_s
    chunk = default_chunk_s(plans.optimum.makespan_s, n_changes(plans.starts_s, end_s))
    slack_s = np.inf if deadline_s is None else deadline_s - earliest_s
    most_s = MOST_DELAY * earliest_s * (1 + SAME_INSTANT) if deadline_s is None else np.inf
    for _ in range(MOST_TRIES):
        try:
            plan = plans.drained(chunk, earliest_s + most_s)
        except _NoRoom:
            chunk = min(chunk * MUCH_SHORTER, slack_s / 4)
            if chunk <= 0:
                break
            continue
        except _TooLate as late:
            chunk *= _shorter(late.end_s - earliest_s, earliest_s)
            continue
        if plans.nothing_follows:
            # Chunks delay the end alone: what they may is known without another plan.
            longest_s = MOST_DELAY * earliest_s / max(longest_pipeline(plan) - 1, 1)
            return plan, min(chunk, longest_s)
        delay_s = _end_s(plan, chunk) - earliest_s
        if delay_s <= most_s:
            return plan, chunk
        chunk *= _shorter(delay_s, earliest_s)
    return plans.drained(0.0), 0.0


def _shorter(delay_s: float, earliest_s: float) -> float:
    """Return the part of a chunk that delays by little enough: delays grow with it about evenly."""
    return min(max(0.75 * MOST_DELAY * earliest_s / delay_s, MUCH_SHORTER), SHORTER)


def _end_s(plan: FluidPlan, chunk_s: float) -> float:
    """Return when a plan has ended at the latest, chunks included."""
    delay_s = (longest_pipeline(plan) - 1) * chunk_s
    return float(plan.starts_s[-1] + plan.lengths_s[-1]) + delay_s


# Plans that drain -----------------------------------------------------------------------------


class _NoRoom(Exception):
    """Pipelines of this many hops cannot drain in time."""

    def __init__(self, hops: int) -> None:
        super().__init__()
        self.hops = hops


class _TooLate(Exception):
    """With room to drain nothing ends before this."""

    def __init__(self, end_s: float) -> None:
        super().__init__()
        self.end_s = end_s


@dataclass(frozen=True, eq=False)
class _Plans:
    """Plans with pieces that end early; none is made twice.

    Attributes
    ----------
    starts_s : ndarray of float
        Where pieces of time begin.
    known : dict
        Plans by how early pieces end; None where there is none.
    """

    problem: Problem
    optimum: FluidOptimum
    wishes: Wishes
    budget: Budget
    starts_s: FloatArray
    known: dict[float, FluidPlan | None] = field(default_factory=dict)

    @cached_property
    def restarts(self) -> Restarts:
        """Cheapest flows, each begun where the last one ended."""
        return Restarts(self.problem, self.starts_s, self.budget)

    @property
    def nothing_follows(self) -> bool:
        """Return whether no pipeline has to drain."""
        return len(self.starts_s) == 1 and self.wishes.deadline_s is None

    @property
    def earliest_s(self) -> float:
        """Return when plans without chunks end: the optimum, or later where that is not exact."""
        return self.optimum.attained_s

    def drained(self, chunk_s: float, latest_s: float = np.inf) -> FluidPlan:
        """Plan with pieces shortened by the drain of the longest pipeline, until none is longer.

        Plans that end after `latest_s`, chunks included, fail: `_TooLate` comes without one.
        """
        if chunk_s == 0 or self.nothing_follows:
            return self._for_hops(1, chunk_s, latest_s)
        hops = self._fewest_hops()
        plan = self._for_hops(hops, chunk_s, latest_s)
        while (longest := longest_pipeline(plan)) > hops:
            hops, plan = longest, self._for_hops(longest, chunk_s, latest_s)
        if longest < hops:
            # Shorter pieces may need shorter pipelines, for which they need not be that short.
            longer = self._for_hops(longest, chunk_s, latest_s)
            if longest_pipeline(longer) <= longest:
                return longer
        return plan

    def _for_hops(self, hops: int, chunk_s: float, latest_s: float) -> FluidPlan:
        guard_s = (hops - 1) * chunk_s
        if guard_s not in self.known:
            try:
                self.known[guard_s] = self._plan(guard_s, latest_s)
            except InfeasibleError as error:
                later = isinstance(error, ListingEnds) and may_end_later(
                    self.problem, self.earliest_s
                )
                if guard_s == 0 or later:
                    raise
                self.known[guard_s] = None
        plan = self.known[guard_s]
        if plan is None:
            raise _NoRoom(hops)
        return plan

    def _fewest_hops(self) -> int:
        """Hops within a piece of time that a fastest plan cannot do without: 2, where known.

        It saves planning that fails, for 1. By a deadline plans need not be the fastest, and with
        shared bottlenecks the cut of the network without them does not bind.
        """
        found = self.optimum.quickest
        if found is None or self.problem.shared or self.wishes.deadline_s is not None:
            return 1
        return 2 if found.passes_on_at_once else 1

    def _plan(self, guard_s: float, latest_s: float) -> FluidPlan:
        """Plan with pieces that end `guard_s` early, the last one before the deadline too."""
        wishes, earliest_s = self.wishes, self.earliest_s
        end_s = None if wishes.deadline_s is None else wishes.deadline_s - guard_s
        if guard_s > 0 and np.isfinite(latest_s) and not self.problem.shared:
            # The end is known many times as soon as a cheapest plan.
            pieces = earliest_pieces(
                self.problem, self.optimum, self.starts_s, guard_s, self.budget
            )
            if pieces.makespan_s + guard_s > latest_s:
                raise _TooLate(pieces.makespan_s + guard_s)
            return self._fluid(guard_s, end_s, pieces)
        if end_s is None or end_s > earliest_s * (1 + SAME_INSTANT):
            return self._fluid(guard_s, end_s)
        # At the optimum rounding would decide: find the earliest end again and compare.
        plan = self._fluid(guard_s, None)
        if float(plan.starts_s[-1] + plan.lengths_s[-1]) > end_s * (1 + SAME_INSTANT):
            raise InfeasibleError(
                "pipelines cannot drain before the deadline", self.problem.sources
            )
        return plan

    def _fluid(
        self, guard_s: float, end_s: float | None, pieces: Quickest | None = None
    ) -> FluidPlan:
        return fluid_paths(
            self.problem,
            self.optimum,
            guard_s,
            self.budget,
            self.wishes.prefer,
            end_s,
            self.starts_s,
            self.wishes.most_by_s,
            self.restarts,
            pieces,
            self.wishes.is_whole,
        )
