"""Plans for sources that make their data: planned with hidden hosts, given out without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import InfeasibleError, ScheduleError, SolverError
from datacollect.flow.makers import ways_to_plan
from datacollect.flow.optimum import fluid_optimum
from datacollect.flow.stripes import NotInOrder
from datacollect.schedule.data.contents import HEURISTIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.budget import Budget


def planned_with_makers(
    problem: Problem, plan: Callable[[Problem], Schedule], budget: Budget, *, in_slots: bool
) -> Schedule:
    """Plan, where sources make their data on a problem with hidden hosts in front of them.

    Parameters
    ----------
    problem : Problem
    plan : function of Problem
        Knows nothing of sources that make data.
    budget : Budget
    in_slots : bool
        Whether it stores and forwards in slots.

    Raises
    ------
    InfeasibleError
        As `plan` does.
    SolverError
        No plan lets the bytes leave in the order in which they are made.
    """
    if not len(problem.makers):
        return plan(problem)
    optimum = fluid_optimum(problem, budget)
    for number, makers in enumerate(ways_to_plan(problem, in_slots=in_slots)):
        try:
            found = plan(makers.expanded)
        except InfeasibleError as error:
            raise makers.error(error) from None
        try:
            routes, columns = makers.without_hidden(found.routes, found.columns, found.slot_s)
        except NotInOrder:
            continue
        schedule = found.replace(
            routes=routes,
            columns=columns,
            hosts=problem.names,
            problem_sha256=problem.sha256,
            lower_bound_s=optimum.makespan_s,
            bottleneck=optimum.bottleneck,
        )
        if number:
            schedule = schedule.replace(status=HEURISTIC)
        if not in_slots or _is_valid(problem, schedule):
            return schedule
    raise SolverError(
        "no plan found whose bytes leave their source in the order in which it makes them; plan "
        "with a longer chunk (chunk_s), or with fewer routes"
    )


def _is_valid(problem: Problem, schedule: Schedule) -> bool:
    """Whether the judge lets it pass: room at sources is what the first way does not know."""
    try:
        schedule.check(problem)
    except ScheduleError:
        return False
    return True
