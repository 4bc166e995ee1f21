"""Linear programs as plain data, and the protocol that linear solvers follow.

A linear solver sees rows and columns, neither networks nor hosts nor time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray, IntArray


# What a linear program may take, see `LinearProgram.most_steps`.
LEAST_STEPS = 5000
STEPS_PER_SIDE = 10


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimise ``cost @ x`` with ``row_lower <= A x <= row_upper`` and ``lower <= x <= upper``.

    Attributes
    ----------
    cost, lower, upper : ndarray of float, shape (n_columns,)
        Bounds may be infinite.
    row_lower, row_upper : ndarray of float, shape (n_rows,)
        Equal for an equation; infinite where a side is open.
    rows, columns, values : ndarray, shape (n_entries,)
        The matrix A by its entries; no pair (row, column) twice.
    """

    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    rows: IntArray
    columns: IntArray
    values: FloatArray

    @property
    def n_columns(self) -> int:
        """Number of variables."""
        return len(self.cost)

    @property
    def n_rows(self) -> int:
        """Number of constraints."""
        return len(self.row_lower)

    @property
    def most_steps(self) -> int:
        """So many steps of the simplex method at most: it may go round for ever where many tie.

        A count, not a time: the same program ends alike on every machine. It usually
        takes two or three steps per row.
        """
        return LEAST_STEPS + STEPS_PER_SIDE * (self.n_rows + self.n_columns)


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """An optimum: values per column, dual value per row (d objective / d right-hand side).

    `found_by` tells the solver, and by which algorithm where its usual one failed.
    """

    x: FloatArray
    row_dual: FloatArray
    objective: float
    found_by: str


class LinearSolver(Protocol):
    """Protocol of linear solvers. Instances keep no state between calls."""

    @property
    def name(self) -> str:
        """Return who answers; of a combination, who has answered."""

    def solve(self, program: LinearProgram, time_limit_s: float | None = None) -> LinearSolution:
        """Return an optimal solution.

        Raises
        ------
        InfeasibleError
            No x satisfies the constraints.
        TimeLimitError
            `time_limit_s` passed first.
        SolverError
            Any other end than an optimum (unbounded, numerical trouble, too many steps).
        """
        ...
