"""Linear programs by another way: HiGHS' answer, and certificates that an answer is the best."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from datacollect.errors import InfeasibleError, SolverError
from datacollect.solvers.choice import load_linear_solver
from datacollect.solvers.programs import LinearProgram

INF = np.inf


def program_of(cost, lower, upper, row_lower, row_upper, matrix):
    """A program from a dense matrix."""
    matrix = np.asarray(matrix, dtype=float).reshape(len(row_lower), len(cost))
    rows, columns = np.nonzero(matrix)
    vectors = (np.asarray(side, dtype=float) for side in (cost, lower, upper, row_lower, row_upper))
    return LinearProgram(*vectors, rows, columns, matrix[rows, columns])


def dense(program):
    matrix = np.zeros((program.n_rows, program.n_columns))
    matrix[program.rows, program.columns] = program.values
    return matrix


def assert_optimal(program, solution, tolerance=1e-6):
    """Feasible, and with its dual values a certificate that nothing is better.

    Every row or column with a price (dual value, reduced cost) lies at the bound that the sign of
    the price names: complementary slackness, from which optimality follows (Dantzig, 1963).
    """
    matrix = dense(program)
    activity = matrix @ solution.x
    reduced = program.cost - matrix.T @ solution.row_dual
    for value, price, lower, upper in (
        (activity, solution.row_dual, program.row_lower, program.row_upper),
        (solution.x, reduced, program.lower, program.upper),
    ):
        room = tolerance * (1 + np.abs(value))
        assert (value >= lower - room).all()
        assert (value <= upper + room).all()
        assert (np.abs(value - lower) <= room)[price > tolerance].all()
        assert (np.abs(value - upper) <= room)[price < -tolerance].all()
    assert solution.objective == pytest.approx(program.cost @ solution.x, abs=tolerance)


def highs(program):
    """HiGHS' verdict and objective.

    Whether there is any solution is asked without costs: HiGHS' presolve, too, may say
    "infeasible" of the unbounded, as of min -x with 0 <= x - y <= 1.
    """
    matrix = dense(program)
    below, above = np.isfinite(program.row_lower), np.isfinite(program.row_upper)

    def answer_for(cost):
        return linprog(
            cost,
            A_ub=np.vstack([-matrix[below], matrix[above]]),
            b_ub=np.concatenate([-program.row_lower[below], program.row_upper[above]]),
            bounds=np.column_stack([program.lower, program.upper]),
            method="highs",
        )

    answer = answer_for(program.cost)
    if answer.status == 0:
        return "optimal", answer.fun
    feasible = answer_for(np.zeros(program.n_columns)).status == 0
    return ("unbounded" if feasible else "infeasible"), None


def disagreement(program, solvers, check=None):
    """Say which solver finds another optimum than HiGHS; None: none does.

    `check` is called with the program and each optimal solution.
    """
    verdict, objective = highs(program)
    for name in solvers:
        try:
            found = load_linear_solver(name).solve(program)
        except InfeasibleError:
            if verdict != "infeasible":
                return f"{name}: infeasible, expected {verdict} {objective}"
            continue
        except SolverError as error:
            if verdict != "unbounded":
                return f"{name}: {error}, expected {verdict} {objective}"
            continue
        exact = 1e-6 * max(1.0, abs(objective or 0.0))
        if verdict != "optimal" or abs(found.objective - objective) > exact:
            return f"{name}: {found.objective}, expected {verdict} {objective}"
        if check is not None:
            check(program, found)
    return None
