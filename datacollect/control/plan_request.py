"""How a driver answers a controller that asks for a plan of what remains."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from datacollect.control.decisions import PlanRest, refuse
from datacollect.control.events import RestPlanned
from datacollect.errors import InfeasibleError, TimeLimitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.schedule.progress import Progress
    from datacollect.schedule.schedule import Schedule

    RestPlanner: TypeAlias = Callable[[Progress], Schedule]


def rest_planned(plan_rest: RestPlanner | None, wanted: PlanRest, time_s: float) -> RestPlanned:
    """Have what remains planned, and return the event that brings the plan.

    Parameters
    ----------
    plan_rest : callable or None
        From a `Progress` to a schedule; what the driver was given.
    wanted : PlanRest
    time_s : float
        When the controller gets it: in a simulation planning takes no time.

    Raises
    ------
    SimulationError
        The driver was given none.
    """
    try:
        schedule = require_planner(plan_rest)(wanted.progress)
    except (InfeasibleError, TimeLimitError):
        schedule = None
    return RestPlanned(time_s, wanted.number, schedule)


def require_planner(plan_rest: RestPlanner | None) -> RestPlanner:
    """Return what plans the rest; refuse to carry out a controller that asks for it without."""
    if plan_rest is None:
        refuse("PlanRest", "nobody plans here; give the engine plan_rest")
    return plan_rest
