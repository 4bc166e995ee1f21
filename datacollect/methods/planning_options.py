"""Which method plans a collection, with which options: what scenarios and pulls ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.methods.choice import METHODS
from datacollect.methods.options.names import ADAPTIVE, COORDINATED, EARLY, VIA_DIRECT
from datacollect.methods.options.of_methods import (
    BestPathOptions,
    CoordinatedOptions,
    DirectOptions,
)

if TYPE_CHECKING:
    from datacollect.files.choices import Finish, First, RunMethod, Solver
    from datacollect.methods.options.of_methods import MethodOptions


@dataclass(frozen=True)
class PlanningOptions:
    """The method, and what it is asked for."""

    name: RunMethod = COORDINATED
    slot_s: float | None = None
    chunk_s: float | None = None
    finish: Finish | None = None
    solver: Solver = "auto"
    time_limit_s: float | None = None
    derate: float | None = None
    first: First | None = None
    at_a_time: int | None = None
    time_slot_s: float | None = None
    order: tuple[str, ...] | None = None

    def planning(self, name: str | None = None) -> MethodOptions:
        """Return the options of the method, or of another method with the same shape.

        Examples
        --------
        >>> PlanningOptions().planning("best-path")
        BestPathOptions(slot_s=None, chunk_s=None, hysteresis=1.05, first='direct', solver='auto',
        derate=1.0)
        """
        solver, derate = self.solver, self.derate or 1.0
        match name or self.name:
            case "direct":
                turns = self.order, self.at_a_time, self.time_slot_s
                return DirectOptions(*turns, solver=solver, derate=derate)
            case "best-path":
                return BestPathOptions(
                    self.slot_s,
                    self.chunk_s,
                    first=self.first or VIA_DIRECT,
                    solver=solver,
                    derate=derate,
                )
            case "coordinated" | "adaptive":
                return CoordinatedOptions(
                    self.slot_s,
                    self.chunk_s,
                    solver=solver,
                    time_limit_s=self.time_limit_s,
                    derate=derate,
                    finish=self.finish or EARLY,
                    # What was simulated once comes out again.
                    settle_ties=False,
                )
        known = ", ".join((*METHODS, ADAPTIVE))
        raise ProblemError(f"method.name must be one of {known}, got {name or self.name!r}")
