"""Data that drown in a linear solver's tolerances are sent all the same, or it is an error."""

from __future__ import annotations

import pytest
from instances.shared_problems import few_bytes_among_terabytes, wide_mesh

import datacollect as dc
from datacollect.errors import SolverError


def test_what_drowns_in_a_solvers_tolerance_is_sent_all_the_same():
    """CBC loses a few MB of one host among 10**15 bytes of others; GLOP does not."""
    problem = wide_mesh(4)
    for solver in ("ortools", "pulp"):
        dc.coordinated(problem, solver=solver).check(problem)


def test_what_violates_a_solvers_own_constraints_is_asked_for_more_tightly():
    """What CBC returns at first does not even keep to its own tolerances; GLOP's answer does."""
    problem = wide_mesh(7)
    ends_s = []
    for solver in ("ortools", "pulp"):
        plan = dc.coordinated(problem, solver=solver)
        plan.check(problem)
        ends_s.append(plan.makespan_s)
    assert ends_s[1] == pytest.approx(ends_s[0], rel=1e-6)


@pytest.mark.parametrize("seed", [3, 35, 54])
def test_few_bytes_arrive_among_terabytes(seed):
    """A source holds 10**-12 of all data or less, and GLOP's tolerance is 10**-9 of it."""
    problem = few_bytes_among_terabytes(seed)
    assert problem.backlog_bytes[problem.backlog_bytes > 0].min() < 1e-12 * problem.total_bytes
    plan = dc.coordinated(problem, solver="ortools")
    plan.check(problem)
    # All data pass the wire of 1e8 bytes/s.
    assert plan.makespan_s >= problem.total_bytes / 1e8 * (1 - 1e-6)


def test_what_no_repair_finds_is_an_error_with_the_numbers(monkeypatch):
    """The remedy names sources and links, not a solver that may be the one in use."""
    monkeypatch.setattr("datacollect.flow.shared.complete.MOST_REPAIRS", 0)
    problem = few_bytes_among_terabytes(3)
    slowest = f"{problem.bandwidth_bytes_per_s.min():.3g} bytes/s"
    with pytest.raises(SolverError, match=r"a source holds 9, .* leave out sources") as report:
        dc.coordinated(problem, solver="ortools")
    assert f"is {slowest}" in str(report.value)
    assert "choose" not in str(report.value)
