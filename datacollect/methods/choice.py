"""Which method with which options: the one table of methods.

The command line, scenarios and the comparison plan through `plan`, explanations and fronts through
`candidate`. A new method is one name, one options class, one entry in `METHODS` and one case in
each of both. To read the table costs nothing: what plans is imported on first use.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from datacollect.files.stages import stage
from datacollect.methods.options.names import BEST_PATH, COORDINATED, DIRECT
from datacollect.methods.options.of_methods import (
    BestPathOptions,
    CoordinatedOptions,
    DirectOptions,
)

if TYPE_CHECKING:
    from datacollect.files.choices import Solver
    from datacollect.methods.options.of_methods import MethodOptions
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


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
    with stage(f"planning by {_name_of(options)}") as facts:
        found = _planned(problem, options)
        facts += _facts_of(found)
    return found


def _planned(problem: Problem, options: MethodOptions) -> Schedule:
    given = {option.name: getattr(options, option.name) for option in fields(options)}
    match options:
        case DirectOptions():
            from datacollect.methods.direct import direct

            return direct(problem, **given)
        case BestPathOptions():
            from datacollect.methods.best_path import best_path

            return best_path(problem, **given)
        case CoordinatedOptions():
            from datacollect.methods.coordinated.coordinated import coordinated

            return coordinated(problem, **given)


def candidate(problem: Problem, options: MethodOptions) -> Schedule:
    """Plan as `plan` does, for a comparison: what is not given out is not judged.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> candidate(problem, DirectOptions()).makespan_s
    2.0
    """
    with stage(f"trying {_name_of(options)}") as facts:
        found = _candidate(problem, options)
        facts += _facts_of(found)
    return found


def _candidate(problem: Problem, options: MethodOptions) -> Schedule:
    from datacollect.solvers.budget import Budget

    match options:
        case DirectOptions():
            from datacollect.methods.direct import direct_candidate

            return direct_candidate(problem, options, Budget(options.solver))
        case BestPathOptions():
            from datacollect.methods.best_path import best_path_candidate

            return best_path_candidate(problem, options, Budget(options.solver))
        case CoordinatedOptions():
            from datacollect.methods.coordinated.coordinated import coordinated_candidate

            budget = Budget.begin(
                options.solver, options.time_limit_s, settle_ties=options.settle_ties
            )
            return coordinated_candidate(problem, options, budget)


def _name_of(options: MethodOptions) -> str:
    return next(name for name, kind in METHODS.items() if isinstance(options, kind))


def _facts_of(schedule: Schedule) -> list[str]:
    from datacollect.files.units import counted, format_duration

    return [
        f"makespan {format_duration(schedule.makespan_s)}",
        counted(schedule.n_transfers, "transfer"),
        f"solver {schedule.solver}",
    ]


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
