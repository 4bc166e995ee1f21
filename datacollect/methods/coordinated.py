"""The coordinated method: all hosts, routes and capacities at once."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, ProblemError
from datacollect.flow.arrival_curve import arrival_curve
from datacollect.flow.layered import breakpoints_s
from datacollect.flow.optimum import fluid_optimum
from datacollect.flow.paths import fluid_paths
from datacollect.flow.preference import preference_or_default
from datacollect.methods.arguments import (
    chunk_or_default_s,
    require_finish,
    require_positive,
    require_room_for_chunks,
    require_shape,
)
from datacollect.methods.names import COORDINATED, EARLY
from datacollect.methods.pipeline import longest_pipeline, pipelined_transfers
from datacollect.methods.tolerances import PROVED, SAME_INSTANT
from datacollect.schedule.contents import HEURISTIC, OPTIMAL
from datacollect.schedule.schedule import Schedule
from datacollect.schedule.transfers import Transfers
from datacollect.solvers.budget import Budget

if TYPE_CHECKING:
    from datacollect.arrays import FloatArray
    from datacollect.flow.optimum import FluidOptimum
    from datacollect.flow.plan import FluidPlan
    from datacollect.problem.problem import Problem
    from datacollect.schedule.transfers import Route


# A chunk of less than this part of the default is not worth a try before cut-through.
LEAST_CHUNK = 1e-3


def coordinated(
    problem: Problem,
    *,
    slot_s: float | None = None,
    chunk_s: float | None = None,
    prefer: str | None = None,
    deadline_s: float | None = None,
    finish: str = EARLY,
    solver: str = "auto",
    time_limit_s: float | None = None,
) -> Schedule:
    """Compute the fastest schedule over all sources and routes together, or the cheapest in time.

    Parameters
    ----------
    problem : Problem
    slot_s : float, optional
        Store and forward in slots of this many seconds: the fewest slots. Without it the schedule
        is pipelined.
    chunk_s : float, optional
        Pipelined: a relay forwards what it received this many seconds ago. Default: 1/1000 of
        the lower bound, or less where a deadline leaves less time.
    prefer : str, optional
        What to minimise among the fastest schedules, or among those that meet the deadline:
        ``"relay-bytes"`` (bytes times links), ``"storage"`` (others' bytes times seconds at
        relays), ``"earliest-arrival"`` (as much as possible has arrived at every instant) or
        ``"money"`` (the price of all links). Default: ``"relay-bytes"``; ``"money"`` where
        there are a deadline and prices.
    deadline_s : float, optional
        Everything has arrived by then, chunks included; not necessarily sooner.
    finish : str
        Pipelined: ``"early"``, sources that do not bind finish as early as capacities allow, on
        the same routes with the same bytes (max-min fair within each piece of time);
        ``"together"``, all that moves in a piece of time takes all of it.
    solver : str
        ``"auto"``, ``"ortools"``, ``"networkx"``, ``"pulp"`` or ``"lemon"``.
    time_limit_s : float, optional
        Stop after this many seconds. What is complete by then is returned with status
        ``"time_limit"``.

    Returns
    -------
    Schedule
        Pipelined, its makespan is the lower bound plus at most (hops - 1) chunks wherever
        bandwidths are constant and nothing is released late.

    Raises
    ------
    InfeasibleError
        Some data cannot reach the destination, or not by the deadline.
    ProblemError
        An argument is out of range, or asks for earliest arrival with shared bottlenecks.
    TimeLimitError
        Nothing was complete when the time limit passed.

    Notes
    -----
    The coordinated method of Chou, Wan, Cheng, Golubchik and Khuller, "A Performance Study of a
    Large-scale Data Collection Problem" (2002); for the pipelined variant see the docs, Methods.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "K", "D"], [[0, 1e6, 1e6], [0, 0, 1e6], [0, 0, 0]], [4_000_000, 0, 0], "D"
    ... )
    >>> plan = dc.coordinated(problem)
    >>> plan.lower_bound_s, round(plan.makespan_s, 3)
    (2.0, 2.002)

    With another second only 1 MB, of 2 before, has to take the relay:

    >>> plan = dc.coordinated(problem, deadline_s=3.0, chunk_s=0.0)
    >>> int(plan.transfers.query("to == 'K'")["bytes"].sum())
    1000000
    """
    began = time.perf_counter()
    require_shape(slot_s, chunk_s)
    require_positive(deadline_s=deadline_s)
    require_finish(finish)
    preference = preference_or_default(prefer, problem, deadline_s)
    budget = Budget.begin(solver, time_limit_s)
    optimum = fluid_optimum(problem, budget)
    if slot_s is not None:
        from datacollect.methods.slotted.plan import slotted_schedule

        schedule = slotted_schedule(problem, optimum, slot_s, budget, preference, deadline_s)
    else:
        if deadline_s is not None and deadline_s < optimum.makespan_s * (1 - SAME_INSTANT):
            raise _late(problem, optimum, deadline_s)
        schedule = _pipelined(
            problem, optimum, _Wishes(preference, deadline_s, chunk_s, finish), budget
        )
        require_room_for_chunks(problem, schedule)
    wishes = {"prefer": preference, "deadline_s": deadline_s}
    return schedule.replace(plan_time_s=time.perf_counter() - began, **wishes)


@dataclass(frozen=True)
class _Wishes:
    """What a pipelined plan is asked for."""

    prefer: str
    deadline_s: float | None
    chunk_s: float | None
    finish: str


def _late(problem: Problem, optimum: FluidOptimum, deadline_s: float) -> InfeasibleError:
    return InfeasibleError(
        f"deadline_s = {deadline_s:.10g} cannot be met: the earliest possible makespan is "
        f"{optimum.makespan_s:.10g} s, {optimum.makespan_s - deadline_s:.4g} s later. "
        f"{optimum.bottleneck.text} Allow more time, or relax what binds",
        problem.sources,
    )


def _pipelined(
    problem: Problem, optimum: FluidOptimum, wishes: _Wishes, budget: Budget
) -> Schedule:
    chunk = chunk_or_default_s(wishes.chunk_s, optimum.makespan_s)
    solver, status = optimum.solver, OPTIMAL
    routes: tuple[Route, ...] = ()
    columns = Transfers.build(
        route=[], hop=[], offset_bytes=[], n_bytes=[], start_s=[], finish_s=[]
    )
    if problem.total_bytes:
        plan, chunk = _plan_with_room(problem, optimum, wishes, budget)
        routes, columns = pipelined_transfers(problem, plan, chunk, wishes.finish)
        solver = plan.solver
        if plan.gap > PROVED or not optimum.exact or _may_store_less(problem, wishes):
            status = HEURISTIC
    return Schedule(
        method=COORDINATED,
        destination=problem.destination,
        makespan_s=float(columns.finish_s.max(initial=0.0)),
        lower_bound_s=optimum.makespan_s,
        slot_s=None,
        chunk_s=chunk,
        solver=solver,
        problem_sha256=problem.sha256,
        routes=routes,
        columns=columns,
        status=status,
        bottleneck=optimum.bottleneck,
    )


def _may_store_less(problem: Problem, wishes: _Wishes) -> bool:
    """Say whether rates that change within a period might store less for a shorter time.

    Least storage is found among plans whose rates are constant in each period. Where nothing
    changes and nothing is held, nothing is stored but chunks.
    """
    waits = len(breakpoints_s(problem)) > 1 or any(p.host != p.source for p in problem.parcels)
    return wishes.prefer == "storage" and waits


def _plan_with_room(
    problem: Problem, optimum: FluidOptimum, wishes: _Wishes, budget: Budget
) -> tuple[FluidPlan, float]:
    """Find a plan whose pieces of time are short enough for its own pipelines to drain.

    A period may be so short, all capacity may end so soon, or the deadline be so near, that
    pipelines cannot drain: then the chunk is shortened, unless it was asked for.
    """
    starts = _piece_starts_s(problem, wishes, budget)
    chunk = chunk_or_default_s(wishes.chunk_s, optimum.makespan_s)
    chunks = [chunk] if wishes.chunk_s is not None else _shorter_chunks_s(optimum, wishes, chunk)
    hops = 1
    for chunk in chunks:
        try:
            return _drained(problem, optimum, wishes, budget, starts, chunk), chunk
        except _NoRoom as no_room:
            hops = no_room.hops
    deadline = "" if wishes.deadline_s is None else f" and deadline_s = {wishes.deadline_s:.10g}"
    raise InfeasibleError(
        f"with chunk_s = {chunk:g} pipelines of {hops} hops cannot drain before bandwidths "
        f"change{deadline}; use a shorter chunk, 0 for cut-through",
        problem.sources,
    )


def _piece_starts_s(problem: Problem, wishes: _Wishes, budget: Budget) -> FloatArray:
    """Instants at which rates may change: where capacities do, and for earliest arrival more.

    Between two bends of the arrival curve the most that can have arrived grows evenly: what is
    best at the bends is best at every instant.
    """
    starts = breakpoints_s(problem)
    if wishes.prefer != "earliest-arrival" or not problem.total_bytes:
        return starts
    if problem.shared:
        raise ProblemError(
            "prefer must not be 'earliest-arrival' with shared bottlenecks, since no plan may be "
            "the earliest at every instant there; choose 'relay-bytes', 'storage' or 'money'"
        )
    bends = arrival_curve(problem, budget).time_s
    makespan_s = float(bends[-1])
    if wishes.deadline_s is None:
        bends = bends[:-1]  # nothing is left to move after the last one
    # Bends are computed, changes are given: one that is the other but for rounding is no bend.
    near = np.abs(bends[:, np.newaxis] - starts).min(axis=1) <= SAME_INSTANT * makespan_s
    return np.union1d(starts, bends[~near])


def _shorter_chunks_s(optimum: FluidOptimum, wishes: _Wishes, chunk_s: float) -> list[float]:
    """Chunks to try, the longest first; 0 is cut-through."""
    slack_s = 0.0 if wishes.deadline_s is None else wishes.deadline_s - optimum.makespan_s
    shorter = [slack_s / part for part in (4, 16, 64)]
    least = chunk_s * LEAST_CHUNK
    return [chunk_s, *(chunk for chunk in shorter if least < chunk < chunk_s), 0.0]


class _NoRoom(Exception):
    """Pipelines of this many hops cannot drain in time."""

    def __init__(self, hops: int) -> None:
        super().__init__()
        self.hops = hops


def _drained(
    problem: Problem,
    optimum: FluidOptimum,
    wishes: _Wishes,
    budget: Budget,
    starts_s: FloatArray,
    chunk_s: float,
) -> FluidPlan:
    """Plan with pieces shortened by the drain of the longest pipeline, until none is longer."""

    def plan_for(hops: int) -> FluidPlan:
        guard_s = (hops - 1) * chunk_s
        try:
            return _plan(problem, optimum, wishes, budget, starts_s, guard_s)
        except InfeasibleError:
            if guard_s == 0:
                raise
            raise _NoRoom(hops) from None

    if chunk_s == 0 or (len(starts_s) == 1 and wishes.deadline_s is None):
        return plan_for(1)  # nothing follows
    hops = _fewest_hops(optimum, wishes)
    plan = plan_for(hops)
    while (longest := longest_pipeline(plan)) > hops:
        hops, plan = longest, plan_for(longest)
    if longest < hops:
        # Shorter pieces may need shorter pipelines, for which they need not be that short.
        longer = plan_for(longest)
        if longest_pipeline(longer) <= longest:
            return longer
    return plan


def _fewest_hops(optimum: FluidOptimum, wishes: _Wishes) -> int:
    """Hops within one piece of time that a fastest plan cannot do without: 2, where that is known.

    It saves planning for 1 in vain. By a deadline plans need not be the fastest, and with shared
    bottlenecks the cut of the network without them does not bind.
    """
    found = optimum.quickest
    if found is None or optimum.shared_end is not None or wishes.deadline_s is not None:
        return 1
    return 2 if found.passes_on_at_once else 1


def _plan(
    problem: Problem,
    optimum: FluidOptimum,
    wishes: _Wishes,
    budget: Budget,
    starts_s: FloatArray,
    guard_s: float,
) -> FluidPlan:
    """Plan with pieces that end `guard_s` early, the last one before the deadline too."""
    if wishes.deadline_s is None:
        return fluid_paths(problem, optimum, guard_s, budget, wishes.prefer, None, starts_s)
    end_s = wishes.deadline_s - guard_s
    if end_s > optimum.makespan_s * (1 + SAME_INSTANT):
        return fluid_paths(problem, optimum, guard_s, budget, wishes.prefer, end_s, starts_s)
    # At the optimum rounding would decide: find the earliest end anew and compare.
    plan = fluid_paths(problem, optimum, guard_s, budget, wishes.prefer, None, starts_s)
    if float(plan.starts_s[-1] + plan.lengths_s[-1]) > end_s * (1 + SAME_INSTANT):
        raise InfeasibleError("pipelines cannot drain before the deadline", problem.sources)
    return plan
