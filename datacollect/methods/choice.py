"""Which method with which options: the one table of methods.

The command line, scenarios, the comparison and explanations plan through `plan`. A new method is
one name, one options class, one entry in `METHODS` and one case in `plan`. To read the table costs
nothing: what plans is imported on first use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from datacollect.methods.arguments import HYSTERESIS
from datacollect.methods.names import BEST_PATH, COORDINATED, DIRECT, EARLY, VIA_DIRECT

if TYPE_CHECKING:
    from datacollect.choices import Finish, First, Preference, Solver
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


@dataclass(frozen=True)
class DirectOptions:
    """Options of `datacollect.methods.direct.direct`, which says what they mean."""

    order: tuple[str, ...] | None = None
    at_a_time: int | None = None
    time_slot_s: float | None = None
    solver: Solver = "auto"
    derate: float = 1.0

    @classmethod
    def like(cls, schedule: Schedule, solver: Solver) -> DirectOptions:
        """Return those that a schedule records."""
        turns = schedule.turns
        if turns is None:
            return cls(solver=solver, derate=schedule.derate or 1.0)
        order = turns.order or None
        return cls(order, turns.at_a_time, turns.time_slot_s, solver, schedule.derate or 1.0)


@dataclass(frozen=True)
class BestPathOptions:
    """Options of `datacollect.methods.best_path.best_path`, which says what they mean."""

    slot_s: float | None = None
    chunk_s: float | None = None
    hysteresis: float = HYSTERESIS
    first: First = VIA_DIRECT
    solver: Solver = "auto"
    derate: float = 1.0

    @classmethod
    def like(cls, schedule: Schedule, solver: Solver) -> BestPathOptions:
        """Return those that a schedule records."""
        hysteresis = schedule.hysteresis or HYSTERESIS
        shape = schedule.slot_s, _chunk_s(schedule)
        first = schedule.first or VIA_DIRECT
        return cls(*shape, hysteresis, first, solver, schedule.derate or 1.0)


@dataclass(frozen=True)
class CoordinatedOptions:
    """Options of `datacollect.methods.coordinated.coordinated`, which says what they mean."""

    slot_s: float | None = None
    chunk_s: float | None = None
    prefer: Preference | None = None
    deadline_s: float | None = None
    solver: Solver = "auto"
    time_limit_s: float | None = None
    derate: float = 1.0
    most_transfers: int | None = None
    finish: Finish = EARLY
    connections: int | None = None

    @classmethod
    def like(cls, schedule: Schedule, solver: Solver) -> CoordinatedOptions:
        """Return those that a schedule records."""
        return cls(
            schedule.slot_s,
            _chunk_s(schedule),
            schedule.prefer,
            schedule.deadline_s,
            solver,
            derate=schedule.derate or 1.0,
            most_transfers=schedule.most_transfers,
            connections=schedule.connections,
        )


def _chunk_s(schedule: Schedule) -> float | None:
    return None if schedule.slot_s is not None else schedule.chunk_s


MethodOptions: TypeAlias = DirectOptions | BestPathOptions | CoordinatedOptions

# By name, in the order in which they are shown.
METHODS: dict[str, type[MethodOptions]] = {
    DIRECT: DirectOptions,
    BEST_PATH: BestPathOptions,
    COORDINATED: CoordinatedOptions,
}


def plan(problem: Problem, options: MethodOptions) -> Schedule:
    """Plan by the method that the options are for.

    Methods are imported on first use: one that is not chosen costs nothing.

    Parameters
    ----------
    problem : Problem
    options : DirectOptions, BestPathOptions or CoordinatedOptions

    Raises
    ------
    ProblemError, InfeasibleError, SolverError
        As the method's function.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> plan(problem, DirectOptions()).makespan_s
    2.0
    """
    match options:
        case DirectOptions():
            from datacollect.methods.direct import direct

            return direct(
                problem,
                order=options.order,
                at_a_time=options.at_a_time,
                time_slot_s=options.time_slot_s,
                solver=options.solver,
                derate=options.derate,
            )
        case BestPathOptions():
            from datacollect.methods.best_path import best_path

            return best_path(
                problem,
                slot_s=options.slot_s,
                chunk_s=options.chunk_s,
                hysteresis=options.hysteresis,
                first=options.first,
                solver=options.solver,
                derate=options.derate,
            )
        case CoordinatedOptions():
            from datacollect.methods.coordinated import coordinated

            return coordinated(
                problem,
                slot_s=options.slot_s,
                chunk_s=options.chunk_s,
                prefer=options.prefer,
                deadline_s=options.deadline_s,
                finish=options.finish,
                solver=options.solver,
                time_limit_s=options.time_limit_s,
                derate=options.derate,
                most_transfers=options.most_transfers,
                connections=options.connections,
            )


def options_like(schedule: Schedule, solver: Solver = "auto") -> MethodOptions | None:
    """Return the options that a schedule records; None where its method is not known.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> options_like(dc.direct(problem, at_a_time=1))
    DirectOptions(order=None, at_a_time=1, time_slot_s=None, solver='auto', derate=1.0)
    """
    options = METHODS.get(schedule.method)
    return None if options is None else options.like(schedule, solver)
