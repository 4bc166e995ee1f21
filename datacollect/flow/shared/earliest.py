"""The earliest end with shared bottlenecks: Newton's method on linear programs.

A capacity that arbitrary links share breaks the network structure. For a given length of the last
piece of time, a linear program finds the largest share of all data that can arrive (`pricing`). Its
dual values bound the share for every other length, too (`length_bounds`). The length at which that
bound lets everything through is the next one to try: Newton's method, as for cuts in `quickest`
(Dinkelbach, Management Science 13, 1967). With one piece all capacities grow alike, and the first
bound is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.flow.network.layered import full_lengths_s, layered_network
from datacollect.flow.network.smallest_sufficient import NoneSuffices, smallest
from datacollect.flow.network.tolerances import ATTAINED
from datacollect.flow.quickest.bottleneck import cut_bottleneck
from datacollect.flow.quickest.savings import Savings, savings_by_cut
from datacollect.flow.shared.length_bounds import (
    LengthBound,
    bottleneck_of,
    bound_before_destination,
    length_bound,
    savings_of,
)
from datacollect.flow.shared.model import SharedModel, too_wide
from datacollect.flow.shared.pricing import largest_share

if TYPE_CHECKING:
    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.flow.quickest.quickest import Quickest
    from datacollect.flow.shared.pricing import PricedFlow
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.transfers import Bottleneck
    from datacollect.solvers.budget import Budget


# Parts of a piece, or of the time before it, with which to begin where the end may lie in it.
SHORTEST = (1e-6, 1e-12)

# Newton's method takes a handful.
MOST_PROGRAMS = 200

# Where too little moves to tell how much longer it takes, this multiple of the length is tried
# next, at most until then.
STEP, LONGEST_STEPS_S = 1e3, 1e24

# A share below this is known too roughly to scale a flow up by its inverse.
LEAST_SHARE_TO_SCALE = 0.1


@dataclass(frozen=True, eq=False)
class SharedEnd:
    """The earliest end with shared bottlenecks, and what forbids an earlier one.

    Attributes
    ----------
    network : LayeredNetwork
    lengths_s : ndarray of float, shape (n_pieces,)
        Data move during the first ``lengths_s[k]`` seconds of piece k.
    bottleneck : Bottleneck
    savings : Savings
        What one more byte/s would save where.
    arcs : ndarray of int
        Arcs of the network on which all can arrive by then.
    solver : str
    prices : PricedFlow or None
        What proves that nothing ends earlier: a flow that is too small by an earlier end, with its
        prices. None where shared bottlenecks delay nothing.
    cut : ndarray of bool or None
        Then the cut that proves it; None where neither is known.
    """

    network: LayeredNetwork
    lengths_s: FloatArray
    bottleneck: Bottleneck
    savings: Savings
    arcs: IntArray
    solver: str
    prices: PricedFlow | None = None
    cut: BoolArray | None = None

    @property
    def makespan_s(self) -> float:
        """The end of the last piece."""
        return float(self.network.starts_s[-1] + self.lengths_s[-1])


def earliest_shared(
    problem: Problem,
    starts_s: FloatArray,
    guard_s: float,
    relaxed: Quickest,
    budget: Budget,
    *,
    few: bool = False,
) -> SharedEnd:
    """Find the earliest end.

    Parameters
    ----------
    problem : Problem
        With shared bottlenecks.
    starts_s : ndarray of float
        Instants at which pieces of time begin.
    guard_s : float
        Every piece that another follows ends this much early.
    relaxed : Quickest
        The optimum without shared bottlenecks, with the same pieces and guard.
    budget : Budget
    few : bool
        Links are few: all are taken from the start, which is quicker than choosing. And the
        destination is tried first, as what most likely binds.

    Raises
    ------
    InfeasibleError
        Shared bottlenecks and forecasts together let some data never arrive.
    """
    full = full_lengths_s(starts_s, guard_s)

    def end_in(n_pieces: int) -> SharedEnd | None:
        network, length = relaxed.network, float(relaxed.lengths_s[-1])
        if n_pieces > network.n_pieces:
            network, length = layered_network(problem, starts_s[:n_pieces]), 0.0
        longest = float(full[n_pieces - 1]) if n_pieces < len(starts_s) else np.inf
        arcs = np.arange(network.n_arcs) if few else None
        model = SharedModel.build(problem, network)
        search = _LengthSearch(model, full[: n_pieces - 1], longest, budget, arcs)
        if length > 0:
            one_piece = len(starts_s) == 1
            tries = [search.begin_at_destination(length) if few and one_piece else length]
        else:
            # Where the last piece has no length its arcs have no price: begin with next to none.
            scale_s = min(longest, float(starts_s[n_pieces - 1]))
            tries = [scale_s * part for part in SHORTEST]
        try:
            return search.end_from(tries, relaxed)
        except _EndsLater:
            return None

    try:
        return smallest(end_in, relaxed.network.n_pieces, most=len(starts_s))
    except NoneSuffices:
        raise InfeasibleError(
            "shared bottlenecks and forecasts together let some data never arrive at "
            f"{problem.destination!r}; raise a shared bottleneck or the last period's bandwidth",
            problem.sources,
        ) from None


class _EndsLater(Exception):
    """Not everything can arrive within the last piece."""


@dataclass(eq=False)
class _LengthSearch:
    """Newton's method for the smallest length of the last piece.

    Attributes
    ----------
    model : SharedModel
    full_s : ndarray of float
        Lengths of the pieces before the last one.
    longest_s : float
        The last piece is no longer.
    budget : Budget
    arcs : ndarray of int or None
        Those to begin with, then those of the last program.
    bound : LengthBound or None
        What proves that the last piece takes as long; None until a length was too short.
    """

    model: SharedModel
    full_s: FloatArray
    longest_s: float
    budget: Budget
    arcs: IntArray | None
    bound: LengthBound | None = None

    def begin_at_destination(self, length_s: float) -> float:
        """Return what the links into the destination alone take, or `length_s` if that is more."""
        bound = bound_before_destination(self.model, length_s, self.budget)
        if not length_s < bound.least_s < np.inf:
            return length_s
        self.bound = bound
        return bound.least_s

    def end_from(self, tries_s: list[float], relaxed: Quickest) -> SharedEnd:
        """Find the end, beginning with the first of `tries_s` that does not suffice.

        If all do, the last one is the answer.

        Raises
        ------
        _EndsLater
            The last piece would be longer than it can be.
        """
        lengths = self._lengths(self._least_length(tries_s))
        model, network, solver = self.model, self.model.network, self.budget.linear_solver().name
        problem, bound, arcs = model.problem, self.bound, self.arcs
        assert arcs is not None
        if bound is None:  # shared bottlenecks do not delay it
            bottleneck, savings = cut_bottleneck(problem, relaxed), savings_by_cut(problem, relaxed)
            cut = relaxed.cut if network is relaxed.network else None
            return SharedEnd(network, lengths, bottleneck, savings, arcs, solver, cut=cut)
        bottleneck = bottleneck_of(model, lengths, bound)
        savings = savings_of(model, lengths, bound)
        return SharedEnd(network, lengths, bottleneck, savings, arcs, solver, prices=bound.prices)

    def _least_length(self, tries_s: list[float]) -> float:
        enough_s, (length, *others) = None, tries_s
        too_short_s = None
        for _ in range(MOST_PROGRAMS):
            found = self._share(length)
            if found.share >= 1 - ATTAINED:
                if self.bound is not None:
                    self.bound = self.bound.met_by(found.flow_bytes)
                far = too_short_s is not None and length > too_short_s * (1 + ATTAINED)
                if self.bound is None and far:
                    length = math.sqrt(too_short_s or length) * math.sqrt(length)
                    continue
                if self.bound is not None or not others:
                    return length
                enough_s, (length, *others) = length, others
                continue
            if length >= self.longest_s:
                raise _EndsLater
            self.bound = length_bound(self.model, self._lengths(length), found)
            least_s = self.bound.least_s
            if not np.isfinite(least_s):
                # So little is missing that its price is lost in tolerances, or nothing helps.
                if enough_s is None and length < LONGEST_STEPS_S:
                    # Of next to nothing that moves prices say nothing: look further on.
                    self.bound, too_short_s = None, length
                    length = min(length * STEP, self.longest_s)
                    continue
                if enough_s is None:
                    raise _EndsLater
                self.bound = None
                return enough_s
            only_piece = len(self.full_s) == 0 and found.share > LEAST_SHARE_TO_SCALE
            if only_piece and least_s <= self.longest_s:
                return least_s
            # Rounding could return the same length for ever; the step is far below what counts.
            length = min(max(least_s, length * (1 + ATTAINED / 10)), self.longest_s)
        raise too_wide(
            self.model.network,
            f"Newton's method did not converge in {MOST_PROGRAMS} linear programs",
        )

    def _share(self, length_s: float) -> PricedFlow:
        found = largest_share(self.model.at(self._lengths(length_s)), self.budget, self.arcs)
        self.arcs = found.arcs
        return found

    def _lengths(self, length_s: float) -> FloatArray:
        return np.append(self.full_s, length_s)
