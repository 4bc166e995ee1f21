"""GLOP, the simplex code of OR-Tools.

It releases Python's interpreter lock while it works and respects a time limit. Apart from
`datacollect.solvers.ortools`, because a flow needs none of what is imported here.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from ortools.linear_solver.python.model_builder_helper import (
    ModelBuilderHelper,
    ModelSolverHelper,
    SolveStatus,
)
from scipy.sparse import csr_matrix

from datacollect.errors import InfeasibleError, SolverError, TimeLimitError
from datacollect.solvers.programs import LinearSolution

if TYPE_CHECKING:
    from datacollect.solvers.programs import LinearProgram

# Primal simplex (the default), because GLOP's dual simplex can take forever: 0.4 s against more
# than 450 s on a maximum concurrent flow over 300 nodes. It begins with the basis of slacks: from
# the triangular one (the default) cheapest flows with shared bottlenecks take 1.3 to 2 times as
# long; the others measured take as long or a little less.
_TIGHT = "primal_feasibility_tolerance: 1e-9 dual_feasibility_tolerance: 1e-9 initial_basis: NONE"
# Tried when preprocessing finds no point: it also says so of unbounded programs, and of feasible
# ones whose numbers span some twelve orders of magnitude.
_UNPROCESSED = f"{_TIGHT} use_preprocessing: false"
# Tried when it takes too many steps, since without scaling other vertices tie, and when all else
# ends in numerical trouble: then its answer is less exact than the others.
_UNSCALED = f"{_TIGHT} use_scaling: false"
# Tried when the tight tolerances end in numerical trouble, or in too many steps once more.
_LENIENT = "use_preprocessing: false"
# Stopped with a point that is feasible only, or with none.
_UNFINISHED = (SolveStatus.NOT_SOLVED, SolveStatus.FEASIBLE)
# A limit of no time at all means none to it; and it stops this part of its time early at most.
_LEAST_S, _EARLY = 1e-6, 0.05


class Glop:
    """Linear programs by GLOP, OR-Tools' simplex code.

    The model goes in as one sparse matrix. Tolerances are 1e-9; should GLOP run into numerical
    trouble there, it is asked once more with its defaults (1e-8 and 1e-6) and no preprocessing.
    That no point exists is believed without preprocessing only. Steps are counted: where vertices
    tie it goes round for ever at times, and is asked without scaling then.

    Examples
    --------
    Maximise x + 2 y with x + y <= 4, y <= 3: one more unit on the first row gains 1.

    >>> from datacollect.solvers.programs import LinearProgram
    >>> program = LinearProgram(
    ...     cost=np.array([-1.0, -2.0]), lower=np.zeros(2), upper=np.array([np.inf, 3.0]),
    ...     row_lower=np.array([-np.inf]), row_upper=np.array([4.0]),
    ...     rows=np.array([0, 0]), columns=np.array([0, 1]), values=np.ones(2),
    ... )
    >>> solution = Glop().solve(program)
    >>> solution.x, solution.row_dual, solution.objective
    (array([1., 3.]), array([-1.]), -7.0)
    """

    name = "glop"

    def solve(self, program: LinearProgram, time_limit_s: float | None = None) -> LinearSolution:
        """Return an optimal solution, see `LinearSolver.solve`."""
        stop_at_s = None if time_limit_s is None else time.monotonic() + time_limit_s
        if (program.row_lower > program.row_upper).any() or (program.lower > program.upper).any():
            raise InfeasibleError("linear program: a lower bound exceeds its upper bound")
        solver, is_scaled = _run_glop(program, stop_at_s)
        status = solver.status()
        if status == SolveStatus.INFEASIBLE:
            raise InfeasibleError(
                f"glop: no point satisfies the {program.n_rows} rows of the linear program"
            )
        if status == SolveStatus.UNBOUNDED:
            raise SolverError("glop: the linear program is unbounded; bound its variables")
        if status in _UNFINISHED:
            raise SolverError(
                f"glop found no optimum within {program.most_steps} steps, with scaling and "
                "without; choose 'pulp'"
            )
        if status != SolveStatus.OPTIMAL:
            raise SolverError(
                f"glop ended with {status.name} {solver.status_string()}".rstrip()
                + "; scale the numbers nearer to 1, or choose 'pulp'"
            )
        return LinearSolution(
            x=np.array(solver.variable_values(), dtype=np.float64),
            row_dual=np.array(solver.dual_values(), dtype=np.float64),
            objective=float(solver.objective_value()),
            found_by=self.name if is_scaled else f"{self.name} without scaling",
        )


def _run_glop(program: LinearProgram, stop_at_s: float | None) -> tuple[ModelSolverHelper, bool]:
    """Solve with tight tolerances, then by other algorithms if that ended in doubt or in trouble.

    Returns whether it was scaled, too.
    """
    model = ModelBuilderHelper()
    matrix = csr_matrix(
        (program.values, (program.rows, program.columns)),
        shape=(program.n_rows, program.n_columns),
        dtype=np.float64,
    )
    model.fill_model_from_sparse_data(
        program.lower,
        program.upper,
        program.cost,
        program.row_lower,
        program.row_upper,
        matrix,
    )
    if stop_at_s is not None and time.monotonic() >= stop_at_s:
        raise TimeLimitError("glop: the time limit passed before it started")
    solver, used = _attempt(model, _TIGHT, program.most_steps, stop_at_s), _TIGHT
    for parameters, ends in (
        (_UNSCALED, _UNFINISHED),
        (_UNPROCESSED, (SolveStatus.INFEASIBLE,)),
        (_LENIENT, (SolveStatus.ABNORMAL, *_UNFINISHED)),
        (_UNSCALED, (SolveStatus.ABNORMAL,)),
    ):
        if solver.status() in ends:
            solver = _attempt(model, parameters, program.most_steps, stop_at_s)
            used = parameters
    return solver, used != _UNSCALED


def _attempt(
    model: ModelBuilderHelper, parameters: str, most_steps: int, stop_at_s: float | None
) -> ModelSolverHelper:
    solver = ModelSolverHelper("glop")
    solver.set_solver_specific_parameters(f"{parameters} max_number_of_iterations: {most_steps}")
    remaining_s = np.inf if stop_at_s is None else max(stop_at_s - time.monotonic(), 0.0)
    if stop_at_s is not None:
        solver.set_time_limit_in_seconds(max(remaining_s, _LEAST_S))
    solver.solve(model)
    # It does not say which of both limits it met.
    is_late = stop_at_s is not None and time.monotonic() >= stop_at_s - _EARLY * remaining_s
    if is_late and solver.status() in _UNFINISHED:
        raise TimeLimitError(
            f"glop: the time limit passed ({model.num_variables()} columns, "
            f"{model.num_constraints()} rows)"
        )
    return solver
