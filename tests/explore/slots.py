"""Fewest slots, tried one by one by a linear program, and what the cheapest plan costs there."""

from __future__ import annotations

import random

from instances.planned_cases import random_problem
from judges.contract_check import judge
from judges.oracle import slotted_makespan_slots

import datacollect as dc

MOST_SLOTS = 60


def case(seed: int) -> str | None:
    """Compare the number of slots; where whole bytes need more, the plan says no 'optimal'."""
    rng = random.Random(f"slots {seed}")
    slot_s = rng.choice([0.5, 1.0, 2.0])
    try:
        problem = random_problem(rng)
    except dc.ProblemError:
        return None  # no problem
    if max(problem.release_s) > MOST_SLOTS:
        return None
    try:
        plan = dc.coordinated(problem, slot_s=slot_s)
    except dc.InfeasibleError as error:
        fewest = slotted_makespan_slots(problem, slot_s, MOST_SLOTS)
        return None if fewest is None else f"{fewest} slots, but {error}"
    n_slots = round(plan.makespan_s / slot_s)
    if n_slots > MOST_SLOTS or not problem.total_bytes:
        return None
    plan.check(problem)
    fewest = slotted_makespan_slots(problem, slot_s, MOST_SLOTS)
    if fewest is None or n_slots < fewest or (n_slots > fewest and plan.status == "optimal"):
        return f"{n_slots} slots ({plan.status}), expected {fewest}"
    return judge(problem.to_dict(), plan.to_dict())
