"""Coordinated, pipelined: relays pass on what comes as it comes, a chunk later."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from datacollect.errors import InfeasibleError
from datacollect.files.clock import deadline_text, instant_text
from datacollect.files.units import format_bytes, format_duration
from datacollect.flow.arrival_curve import most_arrived_bytes
from datacollect.flow.network.layered import breakpoints_s
from datacollect.flow.network.preference import DEFAULT, preference_or_default
from datacollect.flow.optimum import fluid_optimum
from datacollect.methods.coordinated.draining import Wishes, plan_with_room
from datacollect.methods.coordinated.few_transfers import with_few_transfers
from datacollect.methods.coordinated.spec import CoordinatedOptions
from datacollect.methods.finishing.making import schedule_of
from datacollect.methods.options.names import COORDINATED
from datacollect.methods.timing.long_chunks import require_room_for_chunks
from datacollect.methods.timing.pipeline import pipelined_transfers
from datacollect.methods.timing.tolerances import PROVED
from datacollect.numbers.tolerances import SAME_INSTANT
from datacollect.schedule.data.contents import HEURISTIC, OPTIMAL
from datacollect.schedule.data.transfers import Transfers

if TYPE_CHECKING:
    from datacollect.flow.optimum import FluidOptimum
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.transfers import Route
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.budget import Budget


def pipelined(
    problem: Problem, options: CoordinatedOptions, budget: Budget, is_whole: bool = False
) -> Schedule:
    """Return the pipelined plan that ends first, or is best in time for a deadline; not judged yet.

    In whole bytes where storage is full if `is_whole`, see `datacollect.flow.whole_flow`.

    Raises
    ------
    InfeasibleError
        Some data cannot arrive, not by the deadline, or not with that few transfers at once.
    """
    optimum, deadline_s = fluid_optimum(problem, budget), options.deadline_s
    if deadline_s is not None and deadline_s < optimum.attained_s * (1 - SAME_INSTANT):
        raise _late(problem, optimum, deadline_s, budget)
    prefer = preference_or_default(options.prefer, problem, deadline_s)
    most_by_s = options.most_by_s
    if most_by_s is not None:
        # The most by an instant at which all is there anyway is any of the fastest plans.
        is_later = most_by_s >= optimum.attained_s * (1 - SAME_INSTANT)
        prefer, most_by_s = (DEFAULT, None) if is_later else ("earliest-arrival", most_by_s)
    wishes = Wishes(prefer, deadline_s, options.chunk_s, most_by_s, is_whole)
    schedule = _drained(problem, optimum, wishes, budget, options.finish)
    said = prefer if options.most_by_s is None else None
    schedule = schedule.replace(prefer=said, deadline_s=deadline_s, most_by_s=options.most_by_s)
    if options.most_transfers is None or not problem.total_bytes:
        return schedule
    without = CoordinatedOptions(prefer=prefer, finish=options.finish)
    again = partial(pipelined, options=without, budget=budget)
    return with_few_transfers(problem, schedule, options.most_transfers, options.chunk_s, again)


def _late(
    problem: Problem, optimum: FluidOptimum, deadline_s: float, budget: Budget
) -> InfeasibleError:
    clock = problem.clock
    if deadline_s < optimum.makespan_s * (1 - SAME_INSTANT):
        earliest_s = optimum.makespan_s
        found = f"cannot be met: the earliest possible {'makespan' if clock is None else 'end'} is"
    else:
        earliest_s = optimum.attained_s
        found = "is met by no plan that is known: the fastest ends at"
    late = format_duration(earliest_s - deadline_s)
    return InfeasibleError(
        f"{deadline_text(deadline_s, clock)} {found} {instant_text(earliest_s, clock)}, "
        f"{late} later. {optimum.bottleneck.text} "
        f"{most_by_text(problem, deadline_s, budget)} Allow more time, or relax what binds",
        problem.sources,
    )


def most_by_text(problem: Problem, by_s: float, budget: Budget) -> str:
    """Say how much can be there by an instant, and what plans that."""
    most = format_bytes(int(most_arrived_bytes(problem, by_s, budget)))
    return (
        f"By then {most} of {format_bytes(problem.total_bytes)} can be there: most_by_s "
        f"(--most-by) plans that."
    )


def _drained(
    problem: Problem, optimum: FluidOptimum, wishes: Wishes, budget: Budget, finish: str
) -> Schedule:
    """Plan so that pipelines drain before rates change."""
    chunk = wishes.chunk_s or 0.0  # there may be nothing to move
    solver, status = optimum.solver, OPTIMAL
    routes: tuple[Route, ...] = ()
    columns = Transfers.build(
        route=[], hop=[], offset_bytes=[], n_bytes=[], start_s=[], finish_s=[]
    )
    if problem.total_bytes:
        plan, chunk = plan_with_room(problem, optimum, wishes, budget)
        routes, columns = pipelined_transfers(problem, plan, chunk, optimum.makespan_s, finish)
        solver = plan.solver
        if plan.gap > PROVED or not optimum.exact or _may_store_less(problem, wishes):
            status = HEURISTIC
    schedule = schedule_of(
        problem,
        COORDINATED,
        (routes, columns),
        (optimum.makespan_s, optimum.bottleneck),
        chunk_s=chunk,
        solver=solver,
        status=status,
    )
    return require_room_for_chunks(problem, schedule)


def _may_store_less(problem: Problem, wishes: Wishes) -> bool:
    """Say whether rates that change within a period might store less for a shorter time.

    Least storage is found among plans whose rates are constant in each period. Where nothing
    changes and nothing is held, nothing is stored but chunks.
    """
    waits = len(breakpoints_s(problem)) > 1 or any(p.host != p.source for p in problem.parcels)
    return wishes.prefer == "storage" and waits
