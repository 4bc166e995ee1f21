"""Assumptions of an explained plan: hosts that it leans on, and wires that nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import InfeasibleError
from datacollect.explanation.tolerances import SAME
from datacollect.flow.optimum import listed_optimum
from datacollect.methods.choice import options_like
from datacollect.methods.finishing.derating import NOT_DERATED
from datacollect.methods.leaning.assumptions import assumptions_of
from datacollect.methods.leaning.cautious import cautious_problem
from datacollect.methods.leaning.loads import sent_directly
from datacollect.methods.options.arguments import CHUNKS_PER_PLAN
from datacollect.schedule.data.assumptions import is_much_later

if TYPE_CHECKING:
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.assumptions import Assumptions
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.budget import Budget
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


def cautious_bound_s(problem: Problem, lower_bound_s: float, budget: Budget) -> float | None:
    """Return the earliest end with what was shown of hosts, where it is much later; else None.

    Examples
    --------
    >>> import datacollect as dc
    >>> from datacollect.solvers.budget import Budget
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "K", "D"], [[0, 1e6, 1e6], [0, 0, 1e6], [0, 0, 0]], [4_000_000, 0, 0], "D"
    ... )
    >>> cautious_bound_s(problem, 2.0, Budget())
    4.0
    """
    careful = cautious_problem(problem)
    if careful is problem:
        return None
    try:
        _, optimum = listed_optimum(careful, budget)
    except InfeasibleError:
        return None
    cautious_s, sent = optimum.makespan_s, sent_directly(problem, NOT_DERATED)
    direct_s = None if sent is None else float(sent[1].finish_s.max(initial=0.0))
    return cautious_s if is_much_later(lower_bound_s, cautious_s, direct_s) else None


def wires_known(problem: Problem, plan: Schedule) -> bool:
    """Return whether wires in the middle are stated, or no data take relays.

    No host can show what links carry together that meet between hosts.
    """
    return bool(problem.shared) or all(route.n_hops == 1 for route in plan.routes)
