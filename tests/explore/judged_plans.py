"""Plans by every method, in every shape, against a judge that knows the contract alone."""

from __future__ import annotations

from instances.planned_cases import planned
from judges.contract_check import judge

from datacollect import Problem, Schedule


def case(seed: int) -> str | None:
    """Plan a small problem; both judges accept the plan, which ends no sooner than its bound."""
    problem, schedule = planned(seed)
    Schedule.from_dict(schedule).check(Problem.from_dict(problem))
    bound_s = schedule["lower_bound_s"]
    if bound_s is not None and schedule["makespan_s"] < bound_s * (1 - 1e-6):
        return f"makespan_s {schedule['makespan_s']!r} is below the bound {bound_s!r}"
    return judge(problem, schedule)
