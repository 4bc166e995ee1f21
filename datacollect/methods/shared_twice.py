"""Routes that cross one shared bottleneck twice, and what rounding does there.

Rounding may put a route a byte ahead of its share, which is a byte at each crossing; a bottleneck
has one byte of tolerance for each route. Where that is too much, plans keep to a little less.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from datacollect.errors import ScheduleError

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# Parts of what shared bottlenecks carry, to try one after the other.
ROOM_FOR_ROUNDING = (0.999, 0.99, 0.9, 0.75, 0.5, 0.25)


def with_room_for_rounding(
    problem: Problem, schedule: Schedule, plan: Callable[[Problem], Schedule]
) -> Schedule:
    """Return the schedule; or one for less of the shared bottlenecks, where it is not valid.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Its plan.
    plan : function of Problem
        Plans for a problem that is the same but for what shared bottlenecks carry.
    """
    if not _crosses_twice(problem, schedule):
        return schedule
    for part in ROOM_FOR_ROUNDING:
        if _is_valid(problem, schedule):
            break
        less = [
            replace(each, bandwidth_bytes_per_s=each.bandwidth_bytes_per_s * part)
            for each in problem.shared
        ]
        schedule = plan(problem.replace(shared=less))
    return schedule


def _crosses_twice(problem: Problem, schedule: Schedule) -> bool:
    """Say whether several hops of some route use one shared bottleneck."""
    members = [frozenset(map(tuple, each.links)) for each in problem.shared]
    hops = [set(zip(route.hosts, route.hosts[1:], strict=False)) for route in schedule.routes]
    return any(len(links & used) > 1 for links in members for used in hops)


def _is_valid(problem: Problem, schedule: Schedule) -> bool:
    try:
        schedule.check(problem)
    except ScheduleError:
        return False
    return True
