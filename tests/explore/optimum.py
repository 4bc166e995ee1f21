"""The earliest end, pipelined, against a linear program with one commodity for each source."""

from __future__ import annotations

import random

from instances.few_bytes import few_bytes
from instances.planned_cases import random_problem
from judges.oracle import fluid_makespan_s

import datacollect as dc


def case(seed: int) -> str | None:
    """Compare the lower bound of a plan with what the program finds, or that neither finds any."""
    rng = random.Random(f"optimum {seed}")
    try:
        problem = (few_bytes if rng.random() < 0.5 else random_problem)(rng)
    except dc.ProblemError:
        return None  # no problem
    expected_s = fluid_makespan_s(problem)
    try:
        found_s = dc.coordinated(problem, chunk_s=0.0).lower_bound_s
    except dc.InfeasibleError as error:
        return None if expected_s is None else f"{expected_s!r} s, but {error}"
    if found_s is None:
        return None  # none is known, which is said
    if expected_s is None or abs(found_s - expected_s) > 1e-6 * max(expected_s, 1e-9):
        return f"bound {found_s!r}, expected {expected_s!r}"
    return None
