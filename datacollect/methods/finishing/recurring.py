"""Plans where bandwidths recur every day: periods are listed until the plan ends."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, TypeVar

from datacollect.errors import DatacollectWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.problem.problem import Problem

_Plan = TypeVar("_Plan")

# How the warning begins, by which who lists more days passes over it.
BEYOND = "the plan ends after the days that are listed"


def warn_beyond(problem: Problem, end_s: float) -> None:
    """Warn where a plan ends after the days that are listed, and links have windows.

    What comes after is open for ever in the problem as it stands, so that there is a plan at all.
    """
    daily = problem.daily
    if daily is not None and daily.windows and end_s > daily.until_s:
        may_be_more = problem.until(end_s) is not problem
        remedy = f"plan problem.until({end_s:.0f}), and further while this is said"
        none = "and no more can be: have windows open and close at the same hours, or move less"
        warnings.warn(
            f"{BEYOND}, where all windows count as open; {remedy if may_be_more else none}",
            DatacollectWarning,
            stacklevel=4,
        )


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
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", f"{BEYOND}.*", DatacollectWarning)
            found = plan(problem)
        longer = problem.until(end_s(found))
        if longer is problem:
            warn_beyond(problem, end_s(found))
            return problem, found
        problem = longer
