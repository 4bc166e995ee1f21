"""Every solver made to fail: plans are as good by those that step in, as another solver proves."""

from __future__ import annotations

import random

import pytest
from instances.few_bytes import few_bytes
from judges.contract_check import judge

import datacollect as dc
from datacollect.errors import SolverError
from datacollect.problem.problem import Problem
from datacollect.solvers.glop import Glop
from datacollect.solvers.networkx import NetworkxFlow
from datacollect.solvers.ortools import OrToolsFlow
from datacollect.solvers.pulp import PulpCbc, PulpFlow

# Who fails, and who is asked for the proof.
FAILING = [
    ((Glop,), "pulp"),
    ((PulpCbc,), "ortools"),
    ((OrToolsFlow,), "pulp"),
    ((OrToolsFlow, NetworkxFlow, Glop), "pulp"),
    ((PulpFlow, PulpCbc), "ortools"),
    ((NetworkxFlow,), "ortools"),
]


def relayed(plan: dc.Schedule) -> int:
    return int(plan.columns.n_bytes[plan.columns.hop > 0].sum())


def random_problem(seed: int) -> Problem:
    """A problem that can be planned, and has something to be moved."""
    rng = random.Random(f"failing {seed}")
    while True:
        problem = few_bytes(rng)
        try:
            if problem.total_bytes and dc.coordinated(problem).makespan_s:
                return problem
        except dc.InfeasibleError:
            continue


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("failing", "proving"), FAILING)
@pytest.mark.parametrize("slot_s", [None, 1.0])
def test_plans_are_as_good_where_solvers_fail(monkeypatch, failing, proving, seed, slot_s):
    def fail(*_arguments, **_named):
        raise SolverError("made to fail")

    tree = random_problem(seed).to_dict()
    # What is remembered of a problem is remembered of that very object.
    proof = planned(Problem.from_dict(tree), slot_s, proving)
    for each in failing:
        for method in ("solve", "max_flow", "min_cost_flow"):
            if hasattr(each, method):
                monkeypatch.setattr(each, method, fail)
    plan = planned(Problem.from_dict(tree), slot_s, "auto")
    assert (plan is None) == (proof is None)
    if plan is None or proof is None:
        return
    assert judge(tree, plan.to_dict()) is None
    assert plan.lower_bound_s == pytest.approx(proof.lower_bound_s, rel=1e-6)
    if slot_s is not None:
        assert plan.makespan_s == proof.makespan_s
    if {plan.status, proof.status} == {"optimal"}:
        rounding = len(plan.columns.n_bytes) + len(proof.columns.n_bytes)
        assert abs(relayed(plan) - relayed(proof)) <= (rounding if slot_s is None else 0)


def planned(problem: Problem, slot_s: float | None, solver: str) -> dc.Schedule | None:
    """The plan, None where there is none in slots."""
    try:
        plan = dc.coordinated(problem, slot_s=slot_s, solver=solver)
    except dc.InfeasibleError:
        return None
    plan.check(problem)
    return plan
