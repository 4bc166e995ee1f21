"""Plans where bandwidths recur every day: periods are listed until the plan ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.problem.problem import Problem

_Plan = TypeVar("_Plan")


def planned_to_the_end(
    problem: Problem, plan: Callable[[Problem], _Plan], end_s: Callable[[_Plan], float]
) -> tuple[Problem, _Plan]:
    """Plan; where the plan takes longer than periods are listed, list more and plan again.

    Parameters
    ----------
    problem : Problem
    plan : callable
        From a problem to a plan, or to several.
    end_s : callable
        When what it returned ends, in seconds.

    Returns
    -------
    (Problem, plan)
        The problem with all periods that the plan meets, and the plan.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> planned_to_the_end(problem, dc.direct, lambda plan: plan.makespan_s)[1].makespan_s
    2.0
    """
    while True:
        found = plan(problem)
        longer = problem.until(end_s(found))
        if longer is problem:
            return problem, found
        problem = longer
