"""The cheapest flow with shared bottlenecks, beside an independent program."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given
from instances.shared_problems import shared_problems
from judges.oracle import fluid_makespan_s, least_cost

import datacollect as dc
from datacollect.flow.network.layered import breakpoints_s, with_room_for_returns
from datacollect.flow.optimum import fluid_optimum
from datacollect.flow.quickest.cheapest import CheapestFlow
from datacollect.flow.shared.cheapest import cheapest_with_shared
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


def flow_by(problem: Problem, prefer: str, end_s: float | None = None) -> CheapestFlow:
    budget = Budget()
    optimum = fluid_optimum(problem, budget)
    assert optimum.quickest is not None
    starts = breakpoints_s(problem)
    return cheapest_with_shared(problem, starts, 0.0, optimum.quickest, budget, prefer, end_s)


@given(shared_problems(), st.sampled_from([1.0, 1.1, 2.0]), st.booleans())
def test_the_cheapest_flow_agrees_with_an_independent_program(problem, later, priced):
    earliest = fluid_makespan_s(problem)
    assume(problem.parcels and earliest is not None)
    prefer = "relay-bytes"
    if priced:
        prefer = "money"
        prices = [float(1 + 7 * i % 5) for i in range(problem.n_links)]
        problem = problem.replace(price_per_gb=np.array(prices))
    # What the program may exceed capacities by, it may save by.
    end_s = earliest * later * (1 + 1e-7)
    found = flow_by(problem, prefer, end_s)
    used = found.network.link >= 0
    per_byte = np.ones(problem.n_links) if not priced else problem.price_per_gb / 1e9
    cost = per_byte[found.network.link[used]] @ found.flow_bytes[used]
    assert cost == pytest.approx(least_cost(problem, prefer, end_s), rel=1e-5)
    assert found.makespan_s <= end_s * (1 + 1e-12)
    assert found.gap <= 1e-6


@given(shared_problems())
def test_too_early_an_end_is_infeasible(problem):
    earliest = fluid_makespan_s(problem)
    assume(problem.parcels and earliest is not None)
    # Data that return to an owner with a limit have tests, and a message, of their own.
    assume(with_room_for_returns(problem) is None)
    with pytest.raises(dc.InfeasibleError, match="not everything can arrive at 'D' by"):
        flow_by(problem, "relay-bytes", earliest * (1 - 1e-5))
