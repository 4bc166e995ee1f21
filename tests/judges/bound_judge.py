"""Judge of the library's lower bound, by an independent linear program."""

from __future__ import annotations

import pytest
from judges.oracle import fluid_makespan_s

import datacollect as dc
from datacollect.flow.optimum import fluid_optimum
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


def bound_agrees(problem: Problem, solver: str = "auto") -> bool:
    """True if the bound is the optimum, or less where a plan would give data others' room."""
    expected = fluid_makespan_s(problem)
    try:
        optimum = fluid_optimum(problem, Budget(solver))
    except dc.InfeasibleError as error:
        return expected is None or "hosts whose data lie elsewhere" in str(error)
    if not optimum.exact:
        return expected is not None and optimum.makespan_s <= expected * (1 + 1e-6)
    return expected is not None and optimum.makespan_s == pytest.approx(
        expected, rel=1e-6, abs=1e-9
    )
