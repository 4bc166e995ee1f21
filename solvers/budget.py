"""What a planning call may use: a choice of solver, and the time that is left."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, TimeLimitError
from datacollect.flow import load_flow_solver, load_linear_solver

if TYPE_CHECKING:
    from datacollect.flow import FlowSolver, LinearSolver


@dataclass(frozen=True)
class Budget:
    """Solver's name and deadline of one call; create with `begin`.

    Attributes
    ----------
    solver : str
        ``"auto"``, ``"ortools"``, ``"networkx"``, ``"pulp"`` or ``"lemon"``.
    deadline_s : float or None
        On the clock of `time.monotonic`.
    """

    solver: str = "auto"
    deadline_s: float | None = None

    @classmethod
    def begin(cls, solver: str, time_limit_s: float | None = None) -> Budget:
        """Start the clock."""
        if time_limit_s is None:
            return cls(solver)
        if not time_limit_s > 0:
            raise ProblemError(f"time_limit_s must be > 0, got {time_limit_s:g}; leave it out")
        return cls(solver, time.monotonic() + time_limit_s)

    def remaining_s(self) -> float | None:
        """Return seconds left, None without limit.

        Raises
        ------
        TimeLimitError
            Nothing is left.
        """
        if self.deadline_s is None:
            return None
        left = self.deadline_s - time.monotonic()
        if left <= 0:
            raise TimeLimitError("the time limit passed before a schedule was complete; raise it")
        return left

    def flow_solver(self) -> FlowSolver:
        """Return the flow solver, stopped at the deadline; always the same one."""
        self.remaining_s()
        return self._flow_solver

    @cached_property
    def _flow_solver(self) -> FlowSolver:
        # One solver for all calls: under a limit it is a child process, costly to start.
        return load_flow_solver(self.solver, time_limit_s=self.remaining_s())

    def linear_solver(self) -> LinearSolver:
        """Return the linear solver; pass it `remaining_s` with each solve."""
        return load_linear_solver(self.solver)
