"""Fallback of solver `auto`: where one fails, the next one answers; who it was is said."""

from __future__ import annotations

import numpy as np
import pytest
from instances.hand_made import links

import datacollect as dc
from datacollect.errors import InfeasibleError, SolverError, SolverUnavailableError, TimeLimitError
from datacollect.problem.hosts import Host, SharedBottleneck
from datacollect.problem.problem import Problem
from datacollect.solvers.auto import AutoFlow, AutoLinear
from datacollect.solvers.choice import available_flow_solvers, load_flow_solver, load_linear_solver
from datacollect.solvers.glop import Glop
from datacollect.solvers.networks import FlowNetwork
from datacollect.solvers.programs import LinearProgram
from datacollect.solvers.pulp import PulpCbc

# Two ways from 0 to 3, 4 units at price 1 and 5 at price 3.
DIAMOND = FlowNetwork(
    4,
    np.array([0, 0, 1, 2]),
    np.array([1, 2, 3, 3]),
    np.array([4, 5, 4, 5]),
    np.array([1, 3, 0, 0]),
)
SUPPLY = np.array([6, 0, 0, -6])

# Maximise x + 2 y with x + y <= 4 and y <= 3: 7.
PROGRAM = LinearProgram(
    *map(np.array, ([-1.0, -2.0], [0.0, 0.0], [np.inf, 3.0], [-np.inf], [4.0])),
    rows=np.array([0, 0]),
    columns=np.array([0, 1]),
    values=np.ones(2),
)


class Failing:
    """A solver that never answers."""

    name = "failing"

    def __init__(self, error=SolverError):
        self.error = error

    def max_flow(self, network, source, sink):
        raise self.error("no flow")

    def min_cost_flow(self, network, supply):
        raise self.error("no cost")

    def solve(self, program, time_limit_s=None):
        raise self.error("no point")


def wire(bandwidth_bytes_per_s=2.0):
    """A and B hold 12 bytes each; their links to D share a wire."""
    hosts = [Host("A", 12), Host("B", 12), Host("D")]
    shared = [SharedBottleneck("wire", bandwidth_bytes_per_s, [("A", "D"), ("B", "D")])]
    return Problem.from_hosts(hosts, links("A -> D 5, B -> D 5, A -> B 5"), "D", shared=shared)


@pytest.mark.parametrize("name", available_flow_solvers())
def test_every_flow_solver_steps_in(name):
    solver = AutoFlow(Failing(), Failing(), [lambda: load_flow_solver(name)])
    assert solver.max_flow(DIAMOND, 0, 3)[:2].tolist() == [4, 5]
    flow = solver.min_cost_flow(DIAMOND, SUPPLY)
    assert int(flow @ DIAMOND.cost) == 4 * 1 + 2 * 3
    assert solver.name == f"failing+{load_flow_solver(name).name}"


@pytest.mark.parametrize("name", ["ortools", "pulp"])
def test_every_linear_solver_steps_in(name):
    solver = AutoLinear([Failing, lambda: load_linear_solver(name)])
    assert solver.solve(PROGRAM, 60.0).objective == pytest.approx(-7.0)
    assert solver.name == f"failing+{load_linear_solver(name).name}"


def test_all_failures_are_told_when_all_fail():
    solver = AutoLinear([Failing, Failing, Failing])
    with pytest.raises(SolverError, match="no point"):
        solver.solve(PROGRAM)
    both = AutoFlow(Failing(), Failing(), [lambda: load_flow_solver("ortools")])
    assert both.max_flow(DIAMOND, 0, 3).sum() == 18


@pytest.mark.parametrize("error", [InfeasibleError, TimeLimitError])
def test_what_is_an_answer_is_not_asked_again(error):
    solver = AutoLinear([lambda: Failing(error), lambda: pytest.fail("asked another")])
    with pytest.raises(error):
        solver.solve(PROGRAM)


@pytest.mark.parametrize(("failing", "other"), [(Glop, "cbc"), (PulpCbc, "glop")])
def test_plans_do_without_a_solver_that_fails(monkeypatch, failing, other):
    """24 bytes over a wire of 2 bytes/s take 12 s, whoever says so."""
    monkeypatch.setattr(failing, "solve", Failing().solve)
    plan = dc.coordinated(wire())
    assert plan.makespan_s == pytest.approx(12.0, rel=2e-3)
    assert plan.solver.split("+")[-1] == other
    plan.check(wire())


def test_no_plan_where_every_solver_fails(monkeypatch):
    for each in (Glop, PulpCbc):
        monkeypatch.setattr(each, "solve", Failing().solve)
    with pytest.raises(SolverError, match="every solver that is installed failed"):
        dc.coordinated(wire())


def test_a_solver_that_was_asked_for_is_not_replaced(monkeypatch):
    monkeypatch.setattr(Glop, "solve", Failing().solve)
    with pytest.raises(SolverError, match="no point"):
        dc.coordinated(wire(), solver="ortools")


@pytest.mark.parametrize(
    ("passed_s", "error", "message"),
    [
        (59.9, TimeLimitError, "^glop: the time limit passed"),
        (1.0, SolverError, "found no optimum within 5030 steps, with scaling and without"),
    ],
)
def test_glop_stopped_at_a_feasible_point_has_met_one_of_its_limits(
    monkeypatch, passed_s, error, message
):
    from datacollect.solvers import glop

    now_s = [100.0]

    class Stopped(glop.ModelSolverHelper):
        def solve(self, model):
            now_s[0] += passed_s

        def status(self):
            return glop.SolveStatus.FEASIBLE

    monkeypatch.setattr(glop, "ModelSolverHelper", Stopped)
    monkeypatch.setattr(glop.time, "monotonic", lambda: now_s[0])
    with pytest.raises(error, match=message):
        Glop().solve(PROGRAM, time_limit_s=60.0)


def test_a_solver_that_cannot_be_imported_is_passed_over():
    def unavailable():
        raise SolverUnavailableError("not installed")

    solver = AutoLinear([Failing, unavailable, lambda: load_linear_solver("pulp")])
    for _ in range(2):
        assert solver.solve(PROGRAM).objective == pytest.approx(-7.0)
    assert solver.name == "failing+cbc"
