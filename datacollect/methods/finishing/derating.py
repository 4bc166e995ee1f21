"""Derating: a plan on less than was measured holds where bandwidths fall."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import InfeasibleError, ProblemError
from datacollect.files.with_units import PART, in_units
from datacollect.flow.optimum import fluid_optimum
from datacollect.problem.other_rates import with_link_rates
from datacollect.schedule.data.contents import HEURISTIC, OPTIMAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.budget import Budget


# All that was measured.
NOT_DERATED = 1.0


def require_part(derate: float) -> None:
    """Refuse what is no part of a bandwidth."""
    if not 0 < in_units(derate, PART, "derate") <= 1:
        raise ProblemError(f"derate must be > 0 and at most 1, got {derate}; 0.8 plans on 80 %")


def derated(problem: Problem, derate: float) -> Problem:
    """Return the problem with a part of all links' bandwidths.

    Links' bandwidths are measured, and may fall. Limits of hosts and of shared bottlenecks are
    known: they stay.
    """
    return with_link_rates(problem, lambda rates: rates * derate)


def planned_on_part(
    problem: Problem, derate: float, budget: Budget, plan: Callable[[Problem], Schedule]
) -> Schedule:
    """Plan on a part of all links' bandwidths; the schedule is valid for the problem as it is.

    Parameters
    ----------
    problem : Problem
    derate : float
        The part, above 0 and at most 1.
    budget : Budget
        For the lower bound, which is the problem's own.
    plan : function of Problem
        A method with its options.

    Raises
    ------
    InfeasibleError
        As the method does; says what it was planned on.
    """
    what = f"planned on derate = {derate:g} of all links' bandwidths"
    schedule = planned_on_less(problem, derated(problem, derate), what, budget, plan)
    return schedule.replace(derate=derate)


def planned_on_less(
    problem: Problem,
    less: Problem,
    what: str,
    budget: Budget,
    plan: Callable[[Problem], Schedule],
) -> Schedule:
    """Plan for a problem that allows less; return the schedule as one of the problem itself.

    Parameters
    ----------
    problem, less : Problem
        Whatever is valid for the second is valid for the first.
    what : str
        By what it was planned, for the message where nothing can arrive so.
    budget : Budget
        For the lower bound, which is the first problem's.
    plan : function of Problem
        A method with its options.

    Raises
    ------
    InfeasibleError
        As the method does; says what it was planned by.
    """
    optimum = fluid_optimum(problem, budget)
    try:
        schedule = plan(less)
    except InfeasibleError as error:
        raise InfeasibleError(f"{error}; {what}", error.hosts) from None
    return schedule.replace(
        lower_bound_s=optimum.makespan_s,
        bottleneck=optimum.bottleneck,
        problem_sha256=problem.sha256,
        status=HEURISTIC if schedule.status == OPTIMAL else schedule.status,
    )
