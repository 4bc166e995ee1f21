"""Margins: plans that are through with windows, fast hours and deadlines some time before they end.

Whoever carries a plan out by whole files and requests is a little later than the plan. Where a
window closes just then, the rest waits until it opens again. So such plans count on no more than
what links and hosts can do for as long as the margin from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, ProblemError
from datacollect.files.units import format_duration
from datacollect.methods.finishing.derating import planned_on_less
from datacollect.numbers.tolerances import SAME_INSTANT
from datacollect.problem.listing import listed_far_enough, not_in_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.budget import Budget


def deadline_with_margin(deadline_s: float | None, margin_s: float) -> float | None:
    """Return by when a plan has to end that keeps a deadline with a margin."""
    if deadline_s is None:
        return None
    if deadline_s <= margin_s:
        raise ProblemError(
            f"margin_s must be less than deadline_s, {deadline_s:g}, got {margin_s:g}; take a "
            "smaller margin, or a later deadline"
        )
    return deadline_s - margin_s


def with_margin(problem: Problem, margin_s: float) -> Problem:
    """Return the problem in which links and hosts do at each instant what they can until later.

    Parameters
    ----------
    problem : Problem
    margin_s : float
        For how long from each instant on.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_hosts(
    ...     [dc.Host("S", 10), dc.Host("D")], [dc.Link("S", "D", [1.0, 0.0, 2.0])], "D",
    ...     periods_s=[0.0, 100.0, 200.0],
    ... )
    >>> less = with_margin(problem, 30.0)
    >>> less.periods_s.tolist(), less.bandwidth_bytes_per_s[:, 0].tolist()
    ([0.0, 70.0, 200.0], [1.0, 0.0, 2.0])
    """
    periods_s = problem.periods_s
    early_s = periods_s[1:] - margin_s
    starts_s = np.unique(np.concatenate([periods_s, early_s[early_s > 0]]))
    first = np.searchsorted(periods_s, starts_s, side="right") - 1
    until_s = (starts_s + margin_s) * (1 + SAME_INSTANT)
    last = np.searchsorted(periods_s, until_s, side="right") - 1
    rates = [
        _least(each, first, last)
        for each in (
            problem.bandwidth_bytes_per_s,
            problem.uplink_bytes_per_s,
            problem.downlink_bytes_per_s,
        )
    ]
    # Where a rate rises nothing changes before; rows alike are one period.
    is_new = np.ones(len(starts_s), bool)
    is_new[1:] = np.any([np.any(each[1:] != each[:-1], axis=1) for each in rates], axis=0)
    bandwidth, uplink, downlink = (each[is_new] for each in rates)
    return problem.replace(
        periods_s=starts_s[is_new],
        bandwidth_bytes_per_s=bandwidth,
        uplink_bytes_per_s=uplink,
        downlink_bytes_per_s=downlink,
    )


def _least(rates: FloatArray, first: IntArray, last: IntArray) -> FloatArray:
    """Return the least of some rows, by column, for each of several ranges of rows."""
    rows = [rates[a : z + 1].min(axis=0) for a, z in zip(first, last, strict=True)]
    return np.array(rows).reshape(len(first), rates.shape[1])


def planned_with_margin(
    problem: Problem,
    margin_s: float,
    budget: Budget,
    plan: Callable[[Problem], Schedule],
    deadline_s: float | None = None,
) -> Schedule:
    """Plan with a margin; the schedule is valid for the problem as it is.

    Parameters
    ----------
    problem : Problem
    margin_s : float
    budget : Budget
        For the lower bound, which is the problem's own.
    plan : function of Problem
        A method with its options, a deadline earlier by the margin among them.
    deadline_s : float, optional
        The deadline itself.

    Raises
    ------
    InfeasibleError
        As the method does; says with which margin it was planned.
    """
    what = f"planned with a margin of {format_duration(margin_s)}"

    def on_less(listed: Problem) -> Schedule:
        less = with_margin(listed, margin_s)
        try:
            return planned_on_less(listed, less, what, budget, plan)
        except InfeasibleError as error:
            if deadline_s is not None:
                raise
            # What is listed of the hours may end too soon.
            raise not_in_time(listed, error.hosts, error) from None

    _, schedule = listed_far_enough(problem, on_less, lambda found: found.makespan_s, deadline_s)
    return schedule.replace(margin_s=margin_s, deadline_s=deadline_s)
