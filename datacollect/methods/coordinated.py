"""The coordinated method: all hosts, routes and capacities at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from datacollect.budget import Budget
from datacollect.errors import InfeasibleError
from datacollect.fluid import FluidOptimum, FluidPlan, fluid_optimum, fluid_paths
from datacollect.layered import breakpoints_s
from datacollect.methods.arguments import chunk_or_default_s, require_shape
from datacollect.methods.slotted import slotted_schedule
from datacollect.pipeline import longest_pipeline, pipelined_transfers
from datacollect.schedule import Schedule, Transfers

if TYPE_CHECKING:
    from datacollect.problem import Problem
    from datacollect.schedule import Route


def coordinated(
    problem: Problem,
    *,
    slot_s: float | None = None,
    chunk_s: float | None = None,
    solver: str = "auto",
    time_limit_s: float | None = None,
) -> Schedule:
    """Compute the fastest schedule over all sources and routes together.

    Parameters
    ----------
    problem : Problem
    slot_s : float, optional
        Store and forward in slots of this many seconds: the fewest slots, then earliest arrival,
        few hops and little storage. Without it the schedule is pipelined.
    chunk_s : float, optional
        Pipelined: a relay forwards what it received this many seconds ago. Default: 1/1000 of
        the lower bound.
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
        Some data cannot reach the destination.
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
    """
    began = time.perf_counter()
    require_shape(slot_s, chunk_s)
    budget = Budget.begin(solver, time_limit_s)
    optimum = fluid_optimum(problem, budget)
    if slot_s is not None:
        schedule = slotted_schedule(problem, optimum, slot_s, budget)
    else:
        schedule = _pipelined(problem, optimum, chunk_s, budget)
    return schedule.replace(plan_time_s=time.perf_counter() - began)


def _pipelined(
    problem: Problem, optimum: FluidOptimum, chunk_s: float | None, budget: Budget
) -> Schedule:
    chunk = chunk_or_default_s(chunk_s, optimum)
    solver = optimum.solver
    routes: tuple[Route, ...] = ()
    columns = Transfers.build(
        route=[], hop=[], offset_bytes=[], n_bytes=[], start_s=[], finish_s=[]
    )
    if problem.total_bytes:
        plan, chunk = _plan_with_room(problem, optimum, chunk, budget, fixed=chunk_s is not None)
        routes, columns = pipelined_transfers(problem, plan, chunk)
        solver = plan.solver
    return Schedule(
        method="coordinated",
        destination=problem.destination,
        makespan_s=float(columns.finish_s.max(initial=0.0)),
        lower_bound_s=optimum.makespan_s,
        slot_s=None,
        chunk_s=chunk,
        solver=solver,
        problem_sha256=problem.sha256,
        routes=routes,
        columns=columns,
        bottleneck=optimum.bottleneck,
    )


def _plan_with_room(
    problem: Problem, optimum: FluidOptimum, chunk_s: float, budget: Budget, *, fixed: bool
) -> tuple[FluidPlan, float]:
    """Find a plan whose pieces of time are short enough for its own pipelines to drain."""
    hops = 1
    plan = fluid_paths(problem, optimum, 0.0, budget)
    if len(breakpoints_s(problem)) == 1:
        return plan, chunk_s
    try:
        while chunk_s > 0 and (longest := longest_pipeline(plan)) > hops:
            hops = longest
            plan = fluid_paths(problem, optimum, (hops - 1) * chunk_s, budget)
    except InfeasibleError:
        # A period is so short, or all capacity ends so soon, that pipelines cannot drain.
        if fixed:
            raise InfeasibleError(
                f"with chunk_s = {chunk_s:g} pipelines of {hops} hops cannot drain before "
                "bandwidths change; use a shorter chunk, 0 for cut-through",
                problem.sources,
            ) from None
        return fluid_paths(problem, optimum, 0.0, budget), 0.0
    return plan, chunk_s
