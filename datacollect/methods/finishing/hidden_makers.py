"""Plans for sources that make their data: planned with hidden hosts, given out without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import InfeasibleError, ProblemError, ScheduleError, SolverError
from datacollect.flow.makers import ways_to_plan
from datacollect.flow.optimum import fluid_optimum
from datacollect.flow.stripes import NotInOrder, in_made_order
from datacollect.schedule.data.contents import HEURISTIC
from datacollect.schedule.data.transfers import Transfers

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.budget import Budget


# Data leave so much later than they are made, as a part of the lower bound, to lie in order.
WAIT_PART = 1e-3


def planned_with_makers(
    problem: Problem, plan: Callable[[Problem], Schedule], budget: Budget, *, in_slots: bool
) -> Schedule:
    """Plan, where sources make their data on a problem with hidden hosts in front of them.

    Parameters
    ----------
    problem : Problem
    plan : function of Problem
        Knows nothing of sources that make data.
    budget : Budget
    in_slots : bool
        Whether it stores and forwards in slots.

    Raises
    ------
    InfeasibleError
        As `plan` does.
    SolverError
        No plan lets the bytes leave in the order in which they are made.
    """
    if not len(problem.makers):
        return plan(problem)
    optimum = fluid_optimum(problem, budget)
    for number, makers in enumerate(ways_to_plan(problem, in_slots=in_slots)):
        try:
            found = plan(makers.expanded)
        except InfeasibleError as error:
            raise makers.error(error) from None
        try:
            routes, columns = makers.without_hidden(found.routes, found.columns, found.slot_s)
        except NotInOrder:
            continue
        schedule = found.replace(
            routes=routes,
            columns=columns,
            hosts=problem.names,
            problem_sha256=problem.sha256,
            lower_bound_s=optimum.makespan_s,
            bottleneck=optimum.bottleneck,
        )
        if number:
            schedule = schedule.replace(status=HEURISTIC)
        if not in_slots or _is_valid(problem, schedule):
            return schedule
    raise SolverError(
        "no plan was found whose bytes leave their source in the order in which it makes them"
    )


def planned_within_rates(problem: Problem, plan: Callable[[Problem], Schedule]) -> Schedule:
    """Plan so that each source sends no faster than it makes: for plans that share connections.

    A hidden host would take a connection. While bandwidths do not change, nobody who sends at a
    constant rate gains by sending faster than data are made.

    Raises
    ------
    InfeasibleError, ProblemError
        As `plan` does; or data of a source that makes some lie elsewhere.
    """
    if not len(problem.makers):
        return plan(problem)
    rates, made = problem.produces_bytes_per_s, problem.made_bytes
    assert rates is not None
    assert made is not None
    names = [problem.names[host] for host in problem.makers.tolist()]
    elsewhere = next((held.source for held in problem.held if held.source in names), None)
    if elsewhere is not None:
        raise ProblemError(
            f"connections cannot be shared out: {elsewhere!r} still makes data, and some of its "
            f"data already lie at another host; plan without connections"
        )
    release = problem.release_s.copy()
    made_s = problem.release_s + (problem.backlog_bytes - made) / rates
    wait_s = WAIT_PART * float(made_s[problem.makers].max())
    release[problem.makers] += wait_s
    slower = problem.replace(
        release_s=release,
        uplink_bytes_per_s=np.minimum(problem.uplink_bytes_per_s, rates),
        produces_bytes_per_s=None,
        made_bytes=None,
    )
    found = plan(slower)
    columns: dict[str, Any] = {
        key: getattr(found.columns, key) for key in Transfers.__dataclass_fields__
    }
    starts = np.array([route.hosts[0] for route in found.routes])[columns["route"]]
    parts = [{key: column[~np.isin(starts, names)] for key, column in columns.items()}]
    for host, name in zip(problem.makers.tolist(), names, strict=True):
        own = {key: column[starts == name] for key, column in columns.items()}
        rate = float(rates[host])
        since_s = float(problem.release_s[host] - made[host] / rate)
        parts.append(in_made_order(own, rate, since_s, None))
    every: dict[str, Any] = {key: np.concatenate([part[key] for part in parts]) for key in columns}
    return found.replace(
        columns=Transfers.build(**every),
        problem_sha256=problem.sha256,
        lower_bound_s=_bound_s(problem, found.lower_bound_s - wait_s, made_s),
        status=HEURISTIC,
    )


def _bound_s(problem: Problem, slower_s: float, made_s: FloatArray) -> float:
    """Return a bound where sources send no faster than they make.

    That is a limit of all that leaves them: where others' data may pass them it bounds nothing.
    """
    passes = np.isin(problem.link_to, problem.makers).any()
    last_s = float(made_s[problem.makers].max())
    return last_s if passes else max(slower_s, last_s)


def _is_valid(problem: Problem, schedule: Schedule) -> bool:
    """Say whether the judge lets it pass: room at sources is what the first way does not know."""
    try:
        schedule.check(problem)
    except ScheduleError:
        return False
    return True
