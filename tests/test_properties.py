"""Invariants of every method, every solver and any mix of constraints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from instances.strategies import FEATURES, problems

import datacollect as dc
from datacollect.problem.problem import Problem

LIBERAL = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
CONSTANT = FEATURES - {"forecast", "release", "storage"}

METHODS = {
    "coordinated": lambda p, solver: dc.coordinated(p, solver=solver),
    "cut-through": lambda p, solver: dc.coordinated(p, chunk_s=0.0, solver=solver),
    "slotted": lambda p, solver: dc.coordinated(p, slot_s=1.0, solver=solver),
    "direct": lambda p, solver: dc.direct(p, solver=solver),
    "one after another": lambda p, solver: dc.direct(p, at_a_time=1, solver=solver),
    "time slots": lambda p, solver: dc.direct(p, at_a_time=1, time_slot_s=1.5, solver=solver),
    "best-path": lambda p, solver: dc.best_path(p, solver=solver),
    "best-path in slots": lambda p, solver: dc.best_path(p, slot_s=1.0, solver=solver),
}


def plan_or_none(method, problem, solver="auto"):
    try:
        return METHODS[method](problem, solver)
    except dc.InfeasibleError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@given(problem=problems())
@LIBERAL
def test_every_schedule_is_valid_and_no_faster_than_the_lower_bound(method, problem):
    plan = plan_or_none(method, problem)
    if plan is None:
        return
    plan.check(problem)
    moved = plan.columns.n_bytes[plan.columns.hop == 0].sum()
    assert moved == problem.total_bytes
    # Rounding to whole bytes shows where all data are a handful of bytes.
    if problem.total_bytes >= 10**6:
        assert plan.makespan_s >= plan.lower_bound_s * (1 - 1e-6)


@pytest.mark.slow
@given(problem=problems(features=FEATURES - {"shared"}, most_hosts=3))
@settings(LIBERAL, max_examples=10)
def test_backends_agree_on_makespans_and_stay_valid(solver, problem):
    for method in ("coordinated", "slotted"):
        reference, plan = plan_or_none(method, problem), plan_or_none(method, problem, solver)
        assert (reference is None) == (plan is None)
        if plan is not None and reference is not None:
            plan.check(problem)
            # Optima tie in their routes, not in their length: one chunk per hop may differ.
            chunks = 3 * (plan.chunk_s or 0.0) * len(np.unique(problem.periods_s))
            assert plan.lower_bound_s == pytest.approx(reference.lower_bound_s, rel=1e-9)
            assert plan.makespan_s == pytest.approx(
                reference.makespan_s, rel=1e-9, abs=chunks + 1e-9
            )


@pytest.mark.slow
@given(problem=problems(most_hosts=3))
@settings(LIBERAL, max_examples=10)
def test_linear_backends_agree(linear_solver, problem):
    for method in ("coordinated", "slotted"):
        plan = plan_or_none(method, problem, linear_solver)
        if plan is not None:
            plan.check(problem)
            assert plan.lower_bound_s == pytest.approx(dc.lower_bound(problem)[0], rel=1e-6)


@pytest.mark.slow
@given(problem=problems(features=CONSTANT))
@LIBERAL
def test_pipelined_coordinated_is_within_a_chunk_per_hop_of_the_bound_and_of_any_method(problem):
    plan = plan_or_none("coordinated", problem)
    if plan is None or not problem.total_bytes:
        return
    most_hops = max(route.n_hops for route in plan.routes)
    assert plan.makespan_s <= plan.lower_bound_s * (1 + 1e-6) + (most_hops - 1) * plan.chunk_s
    for method in METHODS:
        other = plan_or_none(method, problem)
        if other is not None and problem.total_bytes >= 10**6:
            slack = (most_hops - 1) * plan.chunk_s
            assert plan.makespan_s <= other.makespan_s * (1 + 1e-6) + slack


@pytest.mark.slow
@given(problem=problems(), factor=st.sampled_from([1.5, 2.0, 10.0]), data=st.data())
@LIBERAL
def test_more_bandwidth_never_delays_the_optima(problem, factor, data):
    """Neither the lower bound nor the slotted optimum grows with any link's bandwidth."""
    slower = plan_or_none("slotted", problem)
    if slower is None or not problem.n_links:
        return
    link = data.draw(st.integers(0, problem.n_links - 1))
    bandwidth = problem.bandwidth_bytes_per_s.copy()
    bandwidth[:, link] *= factor
    faster = plan_or_none("slotted", problem.replace(bandwidth_bytes_per_s=bandwidth))
    assert faster is not None
    assert faster.lower_bound_s <= slower.lower_bound_s * (1 + 1e-9) + 1e-12
    assert faster.makespan_s <= slower.makespan_s


@pytest.mark.slow
@given(problem=problems(features=FEATURES - {"forecast", "release"}))
@LIBERAL
def test_units_scale(problem):
    """A thousand times the bytes at a thousand times the rates take the same time."""
    larger = Problem.from_dict(_scaled(problem.to_dict(), 1000))
    for method in ("coordinated", "direct", "best-path"):
        one, two = plan_or_none(method, problem), plan_or_none(method, larger)
        assert (one is None) == (two is None)
        if one is not None and two is not None:
            assert two.lower_bound_s == pytest.approx(one.lower_bound_s, rel=1e-6)
            if problem.total_bytes >= 10**6:
                assert two.makespan_s == pytest.approx(one.makespan_s, rel=1e-5)


def _scaled(tree, factor):
    """The tree with every amount and rate multiplied."""
    if isinstance(tree, dict):
        amounts = ("bytes", "bytes_per_s")
        return {
            key: _multiplied(value, factor)
            if key == "bytes" or key.endswith(amounts)
            else _scaled(value, factor)
            for key, value in tree.items()
        }
    return [_scaled(item, factor) for item in tree] if isinstance(tree, list) else tree


def _multiplied(value, factor):
    return [item * factor for item in value] if isinstance(value, list) else value * factor


@pytest.mark.slow
@given(problem=problems(features=CONSTANT), seed=st.integers(0, 99))
@LIBERAL
def test_the_order_of_hosts_does_not_matter(problem, seed):
    if not problem.total_bytes:
        return
    order = np.random.default_rng(seed).permutation(problem.n_hosts)
    tree = problem.to_dict()
    names = list(tree["hosts"])
    tree["hosts"] = {names[i]: tree["hosts"][names[i]] for i in order}
    one, two = (
        plan_or_none("coordinated", problem),
        plan_or_none("coordinated", Problem.from_dict(tree)),
    )
    assert (one is None) == (two is None)
    if one is not None and two is not None:
        assert two.lower_bound_s == pytest.approx(one.lower_bound_s, rel=1e-6)
