"""Routes that cross one shared bottleneck twice, and what rounding does there.

Rounding may put a route a byte ahead of its share, which is a byte at each crossing; a bottleneck
has one byte of tolerance for each route. Where that is too much, plans keep to a little less.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, ScheduleError, SolverError
from datacollect.methods.hop_uses import crosses_twice
from datacollect.schedule.contents import HEURISTIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# Parts of what shared bottlenecks carry, to try one after the other.
ROOM_FOR_ROUNDING = (0.999, 0.99, 0.9, 0.75, 0.5, 0.25)


def planned_despite_rounding(problem: Problem, plan: Callable[[Problem], Schedule]) -> Schedule:
    """Plan; where rounding makes that invalid, plan on less of the shared bottlenecks.

    Parameters
    ----------
    problem : Problem
    plan : function of Problem
        Plans for the problem, and for one that is the same but for what shared bottlenecks carry.

    Raises
    ------
    InfeasibleError
        As `plan` does for the problem itself.
    SolverError
        No part of the shared bottlenecks leaves room for rounding.
    """
    schedule = plan(problem)
    if not _crosses_twice(problem, schedule):
        return schedule
    refusal = _refusal(problem, schedule)
    for part in ROOM_FOR_ROUNDING:
        if refusal is None:
            return schedule
        try:
            less = plan(_with_shared_part(problem, part))
        except InfeasibleError:
            break  # by a deadline, or since a lost capacity ends all
        schedule = less.replace(
            lower_bound_s=schedule.lower_bound_s,
            bottleneck=schedule.bottleneck,
            problem_sha256=schedule.problem_sha256,
            status=HEURISTIC,
        )
        refusal = _refusal(problem, schedule)
    if refusal is None:
        return schedule
    raise SolverError(
        f"no plan is valid in whole bytes: {refusal}; plan in slots (slot_s), or collect more "
        "bytes at a time"
    )


def _crosses_twice(problem: Problem, schedule: Schedule) -> bool:
    index = problem.host_index
    hops = [
        (owner, index[tail], index[head])
        for owner, route in enumerate(schedule.routes)
        for tail, head in pairwise(route.hosts)
    ]
    owner, tail, head = np.array(hops, dtype=np.int64).reshape(-1, 3).T
    return bool(crosses_twice(problem, owner, tail, head, len(schedule.routes)).any())


def _refusal(problem: Problem, schedule: Schedule) -> ScheduleError | None:
    """Return why the schedule is not valid; None if it is."""
    try:
        schedule.check(problem)
    except ScheduleError as error:
        return error
    return None


def _with_shared_part(problem: Problem, part: float) -> Problem:
    """Return the problem with a part of the capacities of shared bottlenecks."""
    less = [
        replace(each, bandwidth_bytes_per_s=each.bandwidth_bytes_per_s * part)
        for each in problem.shared
    ]
    return problem.replace(shared=less)
