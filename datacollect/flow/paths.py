"""Routes of data: the cheapest of the fastest flows, or of those that meet a deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.files.clock import instant_text
from datacollect.flow.network.layered import breakpoints_s, layered_network, lengths_until_s
from datacollect.flow.network.preference import DEFAULT
from datacollect.flow.optimum import quickest_or_infeasible
from datacollect.flow.quickest.cheapest import cheapest_by_preference
from datacollect.flow.quickest.quickest import Quickest
from datacollect.flow.routes.fluid_plan import FluidPlan
from datacollect.flow.routes.path_table import without_loops
from datacollect.flow.routes.routes import decompose
from datacollect.flow.routes.short_chains import short_paths
from datacollect.flow.shared.cheapest import cheapest_with_shared
from datacollect.flow.tiny_pools import without_tiny_pools
from datacollect.flow.whole_flow import in_whole_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.files.choices import Preference
    from datacollect.flow.network.restarts import Restarts
    from datacollect.flow.optimum import FluidOptimum
    from datacollect.flow.quickest.cheapest import CheapestFlow
    from datacollect.flow.routes.routes import PathFlow
    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget


# A fastest plan by two hops has the fewest hops, and nothing is stored where nothing changes.
TWO_HOPS_SATISFY = ("relay-bytes", "storage", "earliest-arrival")


def fluid_paths(
    problem: Problem,
    optimum: FluidOptimum,
    guard_s: float,
    budget: Budget,
    prefer: Preference = DEFAULT,
    end_s: float | None = None,
    starts_s: FloatArray | None = None,
    most_by_s: float | None = None,
    restarts: Restarts | None = None,
    pieces: Quickest | None = None,
    is_whole: bool = False,
) -> FluidPlan:
    """Return the cheapest plan by a preference that ends as early as possible, or by `end_s`.

    Parameters
    ----------
    problem : Problem
    optimum : FluidOptimum
        Of the problem.
    guard_s : float
        Every piece of time that another follows ends this much early: pipelines drain before
        rates change.
    budget : Budget
    prefer : str
        A key of `PREFERENCES`. ``"earliest-arrival"`` is met at the ends of pieces: it needs
        pieces that begin wherever the most that can have arrived bends.
    end_s : float, optional
        The last piece ends by then.
    starts_s : ndarray of float, optional
        Instants at which pieces begin; `breakpoints_s` and maybe more.
    most_by_s : float, optional
        One of them, by which as much as possible is to arrive; with ``"earliest-arrival"``.
    restarts : Restarts, optional
        Of the same problem and `starts_s`, where several plans are tried.
    pieces : Quickest, optional
        What `earliest_pieces` returns for the same arguments, where that is known.
    is_whole : bool
        In whole bytes where storage is full, see `datacollect.flow.whole_flow`.

    Raises
    ------
    InfeasibleError
        Some data cannot arrive, or not by `end_s`.
    """
    starts = breakpoints_s(problem) if starts_s is None else starts_s
    nothing_changes = len(starts) == 1 and end_s is None
    if optimum.plan is not None and nothing_changes and prefer in TWO_HOPS_SATISFY:
        return optimum.plan
    if pieces is None:
        pieces = (
            earliest_pieces(problem, optimum, starts, guard_s, budget)
            if end_s is None or problem.shared
            else _up_to(problem, starts, guard_s, end_s)
        )
    if problem.shared:
        known = optimum.shared_end if pieces is optimum.quickest else None
        found = cheapest_with_shared(
            problem, starts, guard_s, pieces, budget, prefer, end_s, known, most_by_s
        )
    else:
        try:
            found = cheapest_by_preference(problem, pieces, prefer, budget, restarts)
        except InfeasibleError:
            raise _too_early(problem, pieces.makespan_s) from None
    network, lengths = found.network, found.lengths_s
    if end_s is not None:
        lengths = np.append(lengths[:-1], _needed_s(problem, found))
    whole = in_whole_bytes(problem, found, prefer, budget) if is_whole else None
    found = whole or found
    if found.units is None or not budget.settle_ties:
        flow = found.flow_bytes if found.units is None else found.units
        split: Sequence[PathFlow] = decompose(network, network.piece, flow)
    else:
        split = short_paths(network, found.units)
    if whole is None:
        split = without_tiny_pools(found, split)
    paths = without_loops(split, np.isinf(problem.storage_bytes))
    return FluidPlan(
        network.starts_s,
        lengths,
        network.pools,
        paths,
        found.solver,
        found.gap,
        is_whole=whole is not None,
    )


def earliest_pieces(
    problem: Problem, optimum: FluidOptimum, starts_s: FloatArray, guard_s: float, budget: Budget
) -> Quickest:
    """Return the earliest end over these pieces without shared bottlenecks.

    Raises
    ------
    InfeasibleError
        Some data cannot arrive.
    """
    known = optimum.quickest
    if known is not None and guard_s == 0 and len(starts_s) == len(breakpoints_s(problem)):
        return known
    scaled, cut = (None, None) if known is None else (known.scaled, known.cut)
    return quickest_or_infeasible(problem, starts_s, guard_s, budget.flow_solver(), scaled, cut)


def _up_to(problem: Problem, starts_s: FloatArray, guard_s: float, end_s: float) -> Quickest:
    """Return the layered network of all pieces until `end_s`, whether or not that suffices."""
    late = [p.source for p in problem.parcels if p.release_s >= end_s]
    lengths = lengths_until_s(starts_s, guard_s, end_s)
    if late or len(lengths) == 0:
        raise _too_early(problem, end_s)
    network = layered_network(problem, starts_s[: len(lengths)])
    return Quickest(network, lengths, cut=None)


def _too_early(problem: Problem, end_s: float) -> InfeasibleError:
    return InfeasibleError(
        f"not all data can arrive at {problem.destination!r} by "
        f"{instant_text(end_s, problem.clock)}",
        problem.sources,
    )


def _needed_s(problem: Problem, found: CheapestFlow) -> float:
    """Return how much of the last piece a flow needs: a plan need not dawdle."""
    network, flow_bytes = found.network, found.flow_bytes
    in_last = np.flatnonzero((network.piece == network.n_pieces - 1) & (flow_bytes > 0))
    with np.errstate(over="ignore"):  # by the slowest rates that floats hold: for ever
        needed_s = flow_bytes[in_last] / network.rate_bytes_per_s[in_last]  # 0 for stored data
    longest_s = float(needed_s.max(initial=0.0))
    on_link = np.bincount(
        np.maximum(network.link[in_last], 0),
        np.where(network.link[in_last] >= 0, flow_bytes[in_last], 0.0),
        minlength=problem.n_links,
    )
    for shared, links in zip(problem.shared, problem.shared_links, strict=True):
        together = float(on_link[links].sum())
        if together > 0:
            longest_s = max(longest_s, together / shared.bandwidth_bytes_per_s)
    return min(longest_s, float(found.lengths_s[-1]))
