"""What a plan that is explained leans on: hosts, and wires of which nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.explanation.tolerances import SAME
from datacollect.methods.choice import options_like
from datacollect.methods.leaning.assumptions import assumptions_of
from datacollect.methods.options.arguments import CHUNKS_PER_PLAN

if TYPE_CHECKING:
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.assumptions import Assumptions
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.registry import Solver


def plan_assumptions(problem: Problem, plan: Schedule, solver: Solver) -> Assumptions | None:
    """Return what a plan for a problem leans on; None where its method is not known.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> plan = dc.Schedule.from_dict(dc.direct(problem).to_dict())
    >>> plan.assumptions is None, plan_assumptions(problem, plan, "auto").leans_on
    (True, ())
    """
    if plan.assumptions is not None:
        return plan.assumptions
    if plan.chunk_s and abs(plan.chunk_s / plan.lower_bound_s * CHUNKS_PER_PLAN - 1) < SAME:
        plan = plan.replace(chunk_s=None)  # it was none that anybody asked for
    options = options_like(plan, solver)
    return None if options is None else assumptions_of(problem, options, plan)


def wires_known(problem: Problem, plan: Schedule) -> bool:
    """Whether wires in the middle are stated, or no data take relays.

    No host can show what links carry together that meet between hosts.
    """
    return bool(problem.shared) or all(route.n_hops == 1 for route in plan.routes)
