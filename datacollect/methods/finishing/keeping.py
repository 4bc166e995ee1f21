"""Planning for relays that delete nothing: no more passes each than its storage holds.

Tools that fetch know nothing of who fetches next, so what a relay has forwarded stays there
(`datacollect.exports`). Storage then limits how much passes in all, not how much waits. In a plan
of a given length that is the case wherever data come in at no more than the room over the time in
which any can: a limit of the host's downlink, with which every method can plan. The length grows
with the limits, from the fastest plan's on, until both fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, SolverError
from datacollect.flow.optimum import fluid_optimum
from datacollect.schedule.data.contents import HEURISTIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.numbers.arrays import BoolArray, FloatArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.budget import Budget

# The rest is for what lies twice while it is copied to its place.
PART_OF_ROOM = 0.98

# Each plan is at least as long as the one before; in the end relays pass next to nothing.
MOST_TRIES = 40
LONGER = 1.05


def planned_keeping(
    problem: Problem,
    budget: Budget,
    plan: Callable[[Problem], Schedule],
    deadline_s: float | None = None,
) -> Schedule:
    """Plan so that every relay can keep all that passes it.

    Parameters
    ----------
    problem : Problem
    budget : Budget
        For the lower bound, which is the problem's own.
    plan : function of Problem
        A method with its options.
    deadline_s : float, optional
        By which it plans.

    Raises
    ------
    InfeasibleError
        As the method does; says that relays keep what they forward.
    SolverError
        No plan was found.
    """
    found = plan(problem)
    room = _room_bytes(problem)
    if not _over(problem, found, room).any():
        return found
    optimum = fluid_optimum(problem, budget)
    length_s = deadline_s or found.makespan_s
    for _ in range(MOST_TRIES):
        try:
            found = plan(_limited(problem, room, length_s))
        except InfeasibleError as error:
            raise InfeasibleError(
                f"{error}; the plan had to let relays keep all that they forward", error.hosts
            ) from None
        if not _over(problem, found, room).any():
            return found.replace(
                lower_bound_s=optimum.makespan_s,
                bottleneck=optimum.bottleneck,
                problem_sha256=problem.sha256,
                status=HEURISTIC,
            )
        length_s = max(found.makespan_s, LONGER * length_s)
    raise SolverError(
        "no plan was found whose relays can keep all that they forward; plan with direct, "
        "without relays"
    )


def _room_bytes(problem: Problem) -> FloatArray:
    """Return what may pass each host: its storage, without what it holds of others already."""
    room = PART_OF_ROOM * problem.storage_bytes
    for entry in problem.held:
        if entry.host != entry.source:
            room[problem.host_index[entry.host]] -= entry.n_bytes
    room[problem.destination_index] = np.inf
    return np.maximum(room, 0.0)


def _over(problem: Problem, schedule: Schedule, room: FloatArray) -> BoolArray:
    """Say of each host whether more passes it than it can keep."""
    over: BoolArray = passed_bytes(problem, schedule) > room
    return over


def passed_bytes(problem: Problem, schedule: Schedule) -> FloatArray:
    """Return how many bytes each host receives; shape (n_hosts,)."""
    columns = schedule.columns
    index = problem.host_index
    first_hop = np.cumsum([0, *(route.n_hops for route in schedule.routes)])
    heads = np.array([index[head] for route in schedule.routes for head in route.hosts[1:]], int)
    passed = np.bincount(
        heads[first_hop[columns.route] + columns.hop], columns.n_bytes, minlength=problem.n_hosts
    )
    return passed.astype(float)


def _limited(problem: Problem, room: FloatArray, length_s: float) -> Problem:
    """Return the problem with downlinks by which no host gets more than its room in a time."""
    ends_s = np.append(problem.periods_s[1:], np.inf)
    lasts_s = np.clip(np.minimum(ends_s, length_s) - problem.periods_s, 0.0, None)
    comes = np.zeros((problem.n_periods, problem.n_hosts), bool)
    period, link = np.nonzero(problem.bandwidth_bytes_per_s > 0)
    comes[period, problem.link_to[link]] = True
    open_s = lasts_s @ comes
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(open_s > 0, room / open_s, np.inf)
    most[np.isinf(room)] = np.inf
    return problem.replace(downlink_bytes_per_s=np.minimum(problem.downlink_bytes_per_s, most))
