"""Numbers of connections against all numbers tried: valid, never faster than the best of them."""

from __future__ import annotations

from judges.all_allocations import fastest
from methods.test_connected import drawn, planned


def case(seed: int) -> str | None:
    """Plan by connections; direct with as many is never faster, and nothing beats the best."""
    problem, links, data, most, wires = drawn(seed, shared=seed % 3 == 0)
    plan = planned(problem, most, chunk_s=0.0)
    numbers = (links, data, "D", most, wires)
    # What rates may be proved by those that stay as they begin; plans may let them grow.
    steady_s, best_s = (fastest(*numbers, hops=3, growing=growing) for growing in (False, True))
    direct_s = fastest(*numbers, hops=1)
    if plan.makespan_s < best_s * (1 - 1e-6) or plan.lower_bound_s > steady_s * (1 + 1e-6):
        return f"{plan.makespan_s} s, bound {plan.lower_bound_s} s, the best is {best_s} s"
    if plan.makespan_s > direct_s * (1 + 1e-6):
        return f"{plan.makespan_s} s, direct with as many takes {direct_s} s"
    return None
