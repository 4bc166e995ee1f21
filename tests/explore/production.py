"""Sources that make their data: the earliest end against a linear program that knows rates only."""

from __future__ import annotations

import random

from instances.produced import produced
from judges.production_program import earliest_end_s

import datacollect as dc

SAME = 1e-8


def case(seed: int) -> str | None:
    """Compare the bound; whatever is planned is valid, and never ends sooner."""
    tree = produced(random.Random(f"production {seed}"))
    problem = dc.Problem.from_dict(tree)
    try:
        bound_s, _ = dc.lower_bound(problem)
    except dc.InfeasibleError:
        return None if earliest_end_s(tree) is None else "a bound was not found"
    expected_s = earliest_end_s(tree)
    if expected_s is None or abs(bound_s / expected_s - 1) > SAME:
        return f"bound {bound_s} s, by the program {expected_s} s"
    for plan in (dc.coordinated, dc.best_path, dc.direct):
        try:
            found = plan(problem)
        except dc.InfeasibleError:
            if plan is dc.coordinated:
                return "coordinated finds no plan"
            continue
        found.check(problem)
        if found.makespan_s < bound_s * (1 - SAME):
            return f"{found.method} ends at {found.makespan_s} s, before the bound {bound_s} s"
    return None
