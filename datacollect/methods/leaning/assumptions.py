"""Assumptions of plans: hosts that are to send or receive more at once than was shown of them.

Bandwidths are measured one link at a time. A plan that lets a host use several links at once counts
on their sum, and a host with one narrow line has less. Direct uses one link out of each source, so
that what coordination gains may rest on nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, ProblemError, SolverError
from datacollect.files.stages import stage
from datacollect.methods.finishing.derating import NOT_DERATED
from datacollect.methods.leaning.cautious import limited
from datacollect.methods.leaning.loads import (
    INSTANT,
    LASTING,
    host_loads,
    no_loads,
    sent_directly,
    shown_bytes_per_s,
)
from datacollect.problem.host_limits import LIMITS
from datacollect.schedule.data.assumptions import Assumptions, HostLoad

if TYPE_CHECKING:
    from datacollect.methods.options.option import MethodOptions
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.assumptions import Direction
    from datacollect.schedule.schedule import Schedule

# Two tests of one link differ by more.
BEYOND = 1.01

# Of each limit, which way data go.
DIRECTIONS: dict[str, Direction] = {LIMITS[0]: "out", LIMITS[1]: "in"}


def assumptions_of(problem: Problem, options: MethodOptions, plan: Schedule) -> Assumptions:
    """Return what a plan counts on that nobody has shown of hosts, and what it is worth without.

    Parameters
    ----------
    problem : Problem
    options : MethodOptions
        By which it was planned; one more plan is made by them, if the plan leans on a host.
    plan : Schedule

    Raises
    ------
    ScheduleError
        The plan uses hosts that the problem does not have.
    """
    direct = sent_directly(problem, plan.derate or NOT_DERATED)
    direct_loads, direct_s = no_loads(problem), None
    if direct is not None:
        direct_s = float(direct[1].finish_s.max(initial=0.0))
        direct_loads = host_loads(problem, *direct, INSTANT)
    loads = host_loads(problem, plan.routes, plan.columns, LASTING)
    shown = shown_bytes_per_s(problem)
    leans_on: list[HostLoad] = []
    alike: list[HostLoad] = []
    limits = {}
    for key, direction in DIRECTIONS.items():
        uses, direct_uses, seen = loads[key], direct_loads[key], shown[key]
        unlimited = np.isinf(getattr(problem, key)[0])
        beyond = unlimited & (uses > BEYOND * seen)
        leans = beyond & (uses > BEYOND * direct_uses)
        limits[key] = np.where(leans, np.maximum(seen, direct_uses), np.inf)
        for host in np.flatnonzero(beyond).tolist():
            load = HostLoad(
                problem.names[host],
                direction,
                float(uses[host]),
                float(seen[host]),
                float(direct_uses[host]),
            )
            (leans_on if leans[host] else alike).append(load)
    found = Assumptions(
        plan.method,
        plan.makespan_s,
        direct_s,
        tuple(sorted(leans_on, key=_beyond_shown)),
        tuple(sorted(alike, key=_beyond_shown)),
    )
    if not leans_on:
        return found
    return _with_cautious_plan(found, limited(problem, limits), options)


def _beyond_shown(load: HostLoad) -> float:
    return -load.planned_bytes_per_s / max(load.shown_bytes_per_s, load.direct_bytes_per_s)


def _with_cautious_plan(
    found: Assumptions, problem: Problem, options: MethodOptions
) -> Assumptions:
    """Plan again for hosts that can do no more than was shown."""
    from datacollect.methods.choice import plan

    with stage("planning by what was shown of hosts"):
        try:
            cautious = plan(problem, options)
        except (InfeasibleError, ProblemError, SolverError) as error:
            return replace(found, why_none=str(error).removesuffix("."))
    return replace(found, cautious_makespan_s=cautious.makespan_s)


def asking(schedule: Schedule, problem: Problem, options: MethodOptions) -> Schedule:
    """Return a schedule that finds its assumptions when it is asked for them.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> dc.direct(problem).assumptions.leans_on
    ()
    """
    schedule.finds_assumptions_by(partial(assumptions_of, problem, options))
    return schedule
