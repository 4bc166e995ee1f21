"""Judging of every schedule, whole and once, before it is returned; what fails is planned again.

Plans are fluid until they are cut into whole bytes. Rounding may put a byte too many where there is
no room for one: each path is off by less than a byte, but several meet in a full store, and a route
that crosses a shared bottleneck twice counts there twice. Then less of what is full is planned on.
With few bytes that does not help; in slots their numbers are whole from the beginning. What methods
try in between, and compare with each other, is not judged.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, ProblemError, ScheduleError, SolverError
from datacollect.methods.timing.hop_uses import crosses_twice
from datacollect.problem.listing import listed_far_enough
from datacollect.problem.other_rates import with_host_limits, with_link_rates
from datacollect.schedule.data.contents import HEURISTIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# Parts of what shared bottlenecks carry, to try one after the other: those that delay nobody by an
# amount worth the name, then all others.
NEARLY_ALL = (1 - 1e-6, 1 - 1e-5)
ROOM_FOR_ROUNDING = (1 - 1e-4, 0.999, 0.99, 0.9, 0.75, 0.5, 0.25)

# So many bytes of each store are left for each route, to try one after the other.
BYTES_FOR_ROUNDING = (1, 4)

# Parts of all capacities, to try one after the other.
PARTS_FOR_ROUNDING = (1 - 1e-6, 1 - 1e-4, 0.99)

# Slots as parts of the makespan, of which the best is taken: a slot must have room for a byte.
SLOTS_FOR_FEW_BYTES = (*(step / 16 for step in range(2, 25)), 2.0, 4.0)


def judged(
    problem: Problem,
    plan: Callable[[Problem], Schedule],
    shapes: Callable[[Problem, Schedule], Iterable[Schedule]] | None = None,
    otherwise: Callable[[Problem], Schedule] | None = None,
    in_slots: Callable[[Problem, float], Schedule] | None = None,
    deadline_s: float | None = None,
    whole: Callable[[Problem], Schedule] | None = None,
) -> Schedule:
    """Plan, and give out what the judge lets pass; where it refuses, plan more carefully.

    Parameters
    ----------
    problem : Problem
    plan : function of Problem
        Plans for the problem, and for one like it with less room.
    shapes : function of Problem and Schedule, optional
        Ways to write the plan down, the best first; the first that passes is taken.
    otherwise : function of Problem, optional
        Plans with fewer wishes, to be taken before a plan that ends later.
    in_slots : function of Problem and float, optional
        Plans in slots of this length, in seconds, when no pipeline is valid. What is planned is
        given out as a pipeline all the same.
    deadline_s : float, optional
        Calendars are listed until then at least.
    whole : function of Problem, optional
        Plans in whole bytes where storage is full, to be taken before less room is.

    Returns
    -------
    Schedule
        With the time that all of this took.

    Raises
    ------
    InfeasibleError
        As `plan` does for the problem itself.
    SolverError
        No plan passes.
    """
    began = time.perf_counter()
    problem, first = listed_far_enough(problem, plan, _end_s, deadline_s)
    found, refusal = _first_valid(problem, first, shapes)
    tries = (
        () if refusal is None else _more_careful(problem, first, plan, otherwise, in_slots, whole)
    )
    for plan_less, less in tries:
        try:
            careful = plan_less(less)
        except InfeasibleError:  # by a deadline, or since a lost capacity ends all
            continue
        careful = careful.replace(
            lower_bound_s=first.lower_bound_s,
            bottleneck=first.bottleneck,
            problem_sha256=first.problem_sha256,
            status=careful.status if plan_less is whole else HEURISTIC,
        )
        found, refusal = _first_valid(problem, careful, shapes)
        if refusal is None:
            break
    if refusal is not None:
        if deadline_s is not None:
            raise SolverError(
                f"no plan in time is valid in whole bytes: {refusal}; allow more time (deadline_s)"
            )
        raise SolverError(
            f"no plan is valid in whole bytes: {refusal}; plan in slots (slot_s), or collect more "
            "bytes at a time"
        )
    return found.replace(plan_time_s=time.perf_counter() - began)


def _end_s(schedule: Schedule) -> float:
    return schedule.makespan_s


def _first_valid(
    problem: Problem,
    schedule: Schedule,
    shapes: Callable[[Problem, Schedule], Iterable[Schedule]] | None,
) -> tuple[Schedule, ScheduleError | None]:
    """Return the first shape that passes and None; else the last, and why it does not pass."""
    refusal = None
    for shape in (schedule,) if shapes is None else shapes(problem, schedule):
        schedule = shape
        try:
            schedule.check(problem)
        except ScheduleError as error:
            refusal = error
        else:
            return schedule, None
    return schedule, refusal


# Less room ------------------------------------------------------------------------------------


def _more_careful(
    problem: Problem,
    schedule: Schedule,
    plan: Callable[[Problem], Schedule],
    otherwise: Callable[[Problem], Schedule] | None,
    in_slots: Callable[[Problem, float], Schedule] | None,
    whole: Callable[[Problem], Schedule] | None,
) -> Iterator[tuple[Callable[[Problem], Schedule], Problem]]:
    """Yield what plans, and problems like this one in which rounding has more room."""
    limits_storage = np.isfinite(problem.storage_bytes).any()
    if whole is not None and limits_storage:
        yield whole, problem
    twice = _crosses_twice(problem, schedule)
    for part in NEARLY_ALL if twice else ():
        yield plan, _with_shared_part(problem, part)
    if otherwise is not None:
        yield otherwise, problem
    for part in ROOM_FOR_ROUNDING if twice else ():
        yield plan, _with_shared_part(problem, part)
    if limits_storage:
        for n_bytes in BYTES_FOR_ROUNDING:
            left = np.maximum(problem.storage_bytes - n_bytes * schedule.n_routes, 0.0)
            yield plan, problem.replace(storage_bytes=left)
    for part in PARTS_FOR_ROUNDING:
        yield plan, _with_part(problem, part)
    if in_slots is not None:
        yield partial(_soonest_in_slots, in_slots=in_slots, like=schedule), problem


def _soonest_in_slots(
    problem: Problem, in_slots: Callable[[Problem, float], Schedule], like: Schedule
) -> Schedule:
    """Plan in slots of several lengths, and give out the first to end in another plan's shape."""
    plans = []
    for part in SLOTS_FOR_FEW_BYTES:
        try:
            slotted = in_slots(problem, like.makespan_s * part)
        except (InfeasibleError, ProblemError):  # no byte fits a slot, or slots have no number
            continue
        # What waits for a slot may do so in a pipeline, too.
        shaped = slotted.replace(slot_s=None, chunk_s=like.chunk_s, prefer=like.prefer)
        plans += [shaped] if _first_valid(problem, shaped, None)[1] is None else []
    return min(plans, key=lambda plan: plan.makespan_s, default=like)


def _crosses_twice(problem: Problem, schedule: Schedule) -> bool:
    """Return whether a route crosses some shared bottleneck more than once."""
    index = problem.host_index
    hops = [
        (owner, index[tail], index[head])
        for owner, route in enumerate(schedule.routes)
        for tail, head in pairwise(route.hosts)
    ]
    owner, tail, head = np.array(hops, dtype=np.int64).reshape(-1, 3).T
    return bool(crosses_twice(problem, owner, tail, head, len(schedule.routes)).any())


def _with_shared_part(problem: Problem, part: float) -> Problem:
    """Return the problem with a part of the capacities of shared bottlenecks."""
    less = [
        replace(each, bandwidth_bytes_per_s=each.bandwidth_bytes_per_s * part)
        for each in problem.shared
    ]
    return problem.replace(shared=less)


def _with_part(problem: Problem, part: float) -> Problem:
    """Return the problem with a part of all capacities."""
    return with_host_limits(
        with_link_rates(_with_shared_part(problem, part), lambda rates: rates * part),
        uplink_bytes_per_s=problem.uplink_bytes_per_s * part,
        downlink_bytes_per_s=problem.downlink_bytes_per_s * part,
    )
