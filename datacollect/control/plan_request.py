"""Answers of a driver to a controller that requests a plan of what remains."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from datacollect.control.decisions import PlanRemaining, refuse
from datacollect.control.events import RemainingPlanned
from datacollect.errors import InfeasibleError, TimeLimitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.schedule.progress import Progress
    from datacollect.schedule.schedule import Schedule

    RemainingPlanner: TypeAlias = Callable[[Progress], Schedule]


def remaining_planned(
    plan_remaining: RemainingPlanner | None, wanted: PlanRemaining, time_s: float
) -> RemainingPlanned:
    """Have what remains planned, and return the event that brings the plan.

    Parameters
    ----------
    plan_remaining : callable or None
        From a `Progress` to a schedule; what the driver was given.
    wanted : PlanRemaining
    time_s : float
        When the controller gets it: in a simulation planning takes no time.

    Raises
    ------
    SimulationError
        The driver was given none.
    """
    try:
        schedule = require_planner(plan_remaining)(wanted.progress)
    except (InfeasibleError, TimeLimitError):
        schedule = None
    return RemainingPlanned(time_s, wanted.number, schedule)


def require_planner(plan_remaining: RemainingPlanner | None) -> RemainingPlanner:
    """Return what plans the rest; refuse to carry out a controller that asks for it without."""
    if plan_remaining is None:
        refuse("PlanRemaining", "the engine has no planner; give it plan_remaining")
    return plan_remaining
