"""Budget of a planning call: a choice of solver, and the time that is left."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, TimeLimitError
from datacollect.solvers.choice import load_flow_solver, load_linear_solver, load_restarts
from datacollect.solvers.timed import TimedFlow, TimedLinear, TimedRestarts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from datacollect.solvers.networks import FlowSolver
    from datacollect.solvers.programs import LinearSolver
    from datacollect.solvers.registry import Solver


@dataclass(frozen=True)
class Budget:
    """Budget of one call: its solver, and its end; create with `begin`.

    Attributes
    ----------
    solver : str
        ``"auto"``, the fastest that is installed, or a name of `datacollect.solvers.registry`.
    stop_at_s : float or None
        A reading of `time.monotonic`; None without limit.
    settle_ties : bool
        Of plans that cost the same the same one is taken, whichever solver found the first.
    """

    solver: Solver = "auto"
    stop_at_s: float | None = None
    settle_ties: bool = True

    @classmethod
    def begin(
        cls, solver: Solver, time_limit_s: float | None = None, *, settle_ties: bool = True
    ) -> Budget:
        """Start the clock."""
        if time_limit_s is None:
            return cls(solver, settle_ties=settle_ties)
        if not time_limit_s > 0:
            raise ProblemError(f"time_limit_s must be > 0, got {time_limit_s:g}; leave it out")
        return cls(solver, time.monotonic() + time_limit_s, settle_ties)

    def remaining_s(self) -> float | None:
        """Return seconds left, None without limit.

        Raises
        ------
        TimeLimitError
            Nothing is left.
        """
        if self.stop_at_s is None:
            return None
        left = self.stop_at_s - time.monotonic()
        if left <= 0:
            raise TimeLimitError("the time limit passed before a schedule was complete; raise it")
        return left

    def flow_solver(self) -> FlowSolver:
        """Return the flow solver, stopped when time is up; always the same one."""
        self.remaining_s()
        return self._flow_solver

    @cached_property
    def _flow_solver(self) -> FlowSolver:
        # One solver for all calls: under a limit it is a child process, costly to start.
        return TimedFlow(load_flow_solver(self.solver, time_limit_s=self.remaining_s()))

    def restarts(
        self, n_nodes: int, tail: npt.NDArray[np.integer], head: npt.NDArray[np.integer]
    ) -> TimedRestarts | None:
        """Return what finds cheapest flows on one network over and over, if anything does.

        Nothing where time is limited: that takes processes of their own, one for each call.
        """
        found = None
        if self.stop_at_s is None:
            found = load_restarts(self.solver, n_nodes, tail, head)
        return None if found is None else TimedRestarts(found)

    def linear_solver(self) -> LinearSolver:
        """Return the linear solver, always the same one; pass it `remaining_s` with each solve.

        Afterwards its name says who has answered.
        """
        return self._linear_solver

    @cached_property
    def _linear_solver(self) -> LinearSolver:
        return TimedLinear(load_linear_solver(self.solver))
