"""Cautious plans: no host does more at once than was shown of it, or than direct has it do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.methods.finishing.derating import NOT_DERATED, planned_on_less
from datacollect.methods.leaning.loads import (
    INSTANT,
    host_loads,
    no_loads,
    sent_directly,
    shown_bytes_per_s,
)
from datacollect.problem.other_rates import with_host_limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.budget import Budget


def limited(problem: Problem, limits: dict[str, FloatArray]) -> Problem:
    """Return the problem with limits of hosts of which none is stated.

    Parameters
    ----------
    problem : Problem
    limits : dict of str to ndarray, shape (n_hosts,)
        By the attribute; infinite: none.
    """
    changes: dict[str, Any] = {}
    for key, most in limits.items():
        stated = getattr(problem, key)
        is_new = np.isinf(stated[0]) & np.isfinite(most)
        if is_new.any():
            changes[key] = np.where(is_new, most, stated)
    return with_host_limits(problem, **changes) if changes else problem


def cautious_problem(problem: Problem, derate: float = NOT_DERATED) -> Problem:
    """Return the problem in which each host can do what was shown, or what direct has it do.

    Hosts whose limit is stated, or of which it is known that there is none, stay as they are.
    """
    direct = sent_directly(problem, derate)
    uses = no_loads(problem) if direct is None else host_loads(problem, *direct, INSTANT)
    limits = {
        # A host without links needs no limit.
        key: np.where(rates > 0, np.maximum(rates, uses[key]), np.inf)
        for key, rates in shown_bytes_per_s(problem).items()
    }
    return limited(problem, limits)


def planned_cautiously(
    problem: Problem, derate: float, budget: Budget, plan: Callable[[Problem], Schedule]
) -> Schedule:
    """Plan by what was shown of hosts; the schedule is valid for the problem as it is.

    Parameters
    ----------
    problem : Problem
    derate : float
        The part of all links' bandwidths on which the plan is made.
    budget : Budget
        For the lower bound, which is the problem's own.
    plan : function of Problem
        A method with its options.

    Raises
    ------
    InfeasibleError
        As the method does; says what it was planned by.
    """
    careful = cautious_problem(problem, derate)
    if careful is problem:
        return plan(problem).replace(cautious=True)
    what = "planned by what was shown of hosts"
    return planned_on_less(problem, careful, what, budget, plan).replace(cautious=True)
