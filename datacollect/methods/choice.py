"""Registry of methods: which method with which options.

Whatever plans by a method goes through `plan`; explanations and fronts, which give nothing out,
through `candidate`. A new method is a `MethodSpec` and a line here; another package brings one as
an entry point of the group ``datacollect.methods``. To read the registry costs nothing: what plans
is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from warnings import warn

from datacollect.errors import DatacollectWarning, ProblemError
from datacollect.files.registry import Registry
from datacollect.files.stages import stage
from datacollect.methods.options.names import ADAPTIVE, BEST_PATH, COORDINATED, DIRECT
from datacollect.methods.options.option import MethodOptions
from datacollect.methods.options.spec import MethodSpec

if TYPE_CHECKING:
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.registry import Solver


# In the order in which they are shown.
METHODS = Registry(
    "method",
    "datacollect.methods",
    MethodSpec,
    {
        DIRECT: "datacollect.methods.direct_spec:DIRECT_METHOD",
        BEST_PATH: "datacollect.methods.best_path_spec:BEST_PATH_METHOD",
        COORDINATED: "datacollect.methods.coordinated.spec:COORDINATED_METHOD",
        ADAPTIVE: "datacollect.methods.adaptive_spec:ADAPTIVE_METHOD",
    },
)


def own_methods() -> list[MethodSpec]:
    """Return the methods of this package."""
    return [METHODS.get(name) for name in METHODS.own]


def planners() -> list[MethodSpec]:
    """Return all methods that plan, also those of other packages.

    Warns
    -----
    DatacollectWarning
        A package brings a method wrongly: it is left out.
    """
    names = METHODS.usable_names(lambda text: warn(text, DatacollectWarning, stacklevel=4))
    return [spec for name in names if (spec := METHODS.get(name)).plan is not None]


def find_method(name: str) -> MethodSpec | None:
    """Return a method; None where nobody here knows it, as of a schedule made elsewhere.

    >>> find_method("direct").is_max_min_fair, find_method("greedy")
    (True, None)
    """
    try:
        return METHODS.get(name)
    except ProblemError:
        return None


def spec_of(name: str) -> MethodSpec:
    """Return a method; of one that nobody here knows what is so unless a method says otherwise.

    >>> spec_of("direct").has_relays, spec_of("greedy").is_max_min_fair
    (False, False)
    """
    return find_method(name) or MethodSpec(name, MethodOptions)


def is_max_min_fair(name: str) -> bool:
    """Return whether a method's rates are max-min fair."""
    return spec_of(name).is_max_min_fair


def plan(problem: Problem, options: MethodOptions) -> Schedule:
    """Plan by the method that the options are for.

    Methods are imported on first use: one that is not chosen costs nothing.

    Parameters
    ----------
    problem : Problem
    options : MethodOptions
        Such as `datacollect.methods.direct_spec.DirectOptions`.

    Raises
    ------
    ProblemError, InfeasibleError, SolverError
        As the method's function.

    Examples
    --------
    >>> import datacollect as dc
    >>> from datacollect.methods.direct_spec import DirectOptions
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> plan(problem, DirectOptions()).makespan_s
    2.0
    """
    with stage(f"planning by {options.method}") as facts:
        found = _planned(problem, options)
        facts += _facts_of(found)
    return found


def _planned(problem: Problem, options: MethodOptions) -> Schedule:
    return METHODS.get(options.method).planned(problem, options)


def candidate(problem: Problem, options: MethodOptions) -> Schedule:
    """Plan as `plan` does, for a comparison: what is not given out is not judged.

    Examples
    --------
    >>> import datacollect as dc
    >>> from datacollect.methods.direct_spec import DirectOptions
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> candidate(problem, DirectOptions()).makespan_s
    2.0
    """
    with stage(f"trying {options.method}") as facts:
        found = _candidate(problem, options)
        facts += _facts_of(found)
    return found


def _candidate(problem: Problem, options: MethodOptions) -> Schedule:
    from datacollect.solvers.budget import Budget

    asked = vars(options)
    budget = Budget.begin(
        asked.get("solver", "auto"),
        asked.get("time_limit_s"),
        settle_ties=asked.get("settle_ties", True),
    )
    method = METHODS.get(options.method)
    from datacollect.problem.listing import listed_far_enough  # numpy, which help does not need

    _, found = listed_far_enough(
        problem,
        lambda listed: method.tried(listed, options, budget),
        lambda schedule: schedule.makespan_s,
        asked.get("deadline_s"),
    )
    return found


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
    DirectOptions(solver='auto', order=None, at_a_time=1, time_slot_s=None, derate=1.0)
    """
    spec = find_method(schedule.method)
    if spec is None or spec.plan is None:
        return None
    recorded = {name: _recorded(schedule, about.recorded) for name, about in spec.takes.items()}
    return spec.asked({**recorded, "solver": solver})


def _recorded(schedule: Schedule, place: str) -> Any:
    """Return what a schedule records at a place; None where it says nothing, or has no such."""
    found: Any = schedule
    for name in place.split(".") if place else ():
        found = getattr(found, name, None)
    # Where no order was asked for, none is recorded.
    return None if found is schedule or found == () else found
