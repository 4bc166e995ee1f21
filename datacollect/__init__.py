"""Plan the collection of large data from many hosts over wide-area networks.

>>> import datacollect as dc
>>> problem = dc.Problem.from_matrix(
...     ["S", "D"], [[0, 1e6], [0, 0]], backlog_bytes=[5_000_000, 0], destination="D"
... )
>>> dc.direct(problem).makespan_s
5.0

Names are imported on first use, so that ``import datacollect`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datacollect.comparison import Comparison, compare
    from datacollect.errors import (
        DatacollectError,
        InfeasibleError,
        ProblemError,
        ScheduleError,
        SimulationError,
        SolverError,
        SolverUnavailableError,
        TimeLimitError,
    )
    from datacollect.estimates import (
        estimate,
        perturb,
        perturb_random,
        read_samples,
        samples_from_iperf3,
    )
    from datacollect.experiment import Experiment
    from datacollect.explanation import Explanation, explain
    from datacollect.fluid import lower_bound
    from datacollect.harness import simulate
    from datacollect.methods.best_path import best_path
    from datacollect.methods.coordinated import coordinated
    from datacollect.methods.direct import direct
    from datacollect.money_front import front
    from datacollect.plot import plot_schedule, save_plot
    from datacollect.problem import Held, Host, Link, Parcel, Problem, SharedBottleneck
    from datacollect.progress import NewLinks, Progress, remaining_problem
    from datacollect.replanning import replan
    from datacollect.reporting import Report, report
    from datacollect.scenario import Scenario
    from datacollect.schedule import Bottleneck, Route, Schedule, Transfers
    from datacollect.sweeping import sweep
    from datacollect.timegraph import time_expanded_graph

_HOMES = {
    "comparison": ("Comparison", "compare"),
    "errors": (
        "DatacollectError",
        "InfeasibleError",
        "ProblemError",
        "ScheduleError",
        "SimulationError",
        "SolverError",
        "SolverUnavailableError",
        "TimeLimitError",
    ),
    "estimates": (
        "estimate",
        "perturb",
        "perturb_random",
        "read_samples",
        "samples_from_iperf3",
    ),
    "explanation": ("Explanation", "explain"),
    "experiment": ("Experiment",),
    "fluid": ("lower_bound",),
    "harness": ("simulate",),
    "methods.best_path": ("best_path",),
    "methods.coordinated": ("coordinated",),
    "methods.direct": ("direct",),
    "money_front": ("front",),
    "plot": ("plot_schedule", "save_plot"),
    "problem": ("Held", "Host", "Link", "Parcel", "Problem", "SharedBottleneck"),
    "progress": ("NewLinks", "Progress", "remaining_problem"),
    "replanning": ("replan",),
    "reporting": ("Report", "report"),
    "scenario": ("Scenario",),
    "schedule": ("Bottleneck", "Route", "Schedule", "Transfers"),
    "sweeping": ("sweep",),
    "timegraph": ("time_expanded_graph",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Bottleneck",
    "Comparison",
    "DatacollectError",
    "Experiment",
    "Explanation",
    "Held",
    "Host",
    "InfeasibleError",
    "Link",
    "NewLinks",
    "Parcel",
    "Problem",
    "ProblemError",
    "Progress",
    "Report",
    "Route",
    "Scenario",
    "Schedule",
    "ScheduleError",
    "SharedBottleneck",
    "SimulationError",
    "SolverError",
    "SolverUnavailableError",
    "TimeLimitError",
    "Transfers",
    "best_path",
    "compare",
    "coordinated",
    "direct",
    "estimate",
    "explain",
    "front",
    "lower_bound",
    "perturb",
    "perturb_random",
    "plot_schedule",
    "read_samples",
    "remaining_problem",
    "replan",
    "report",
    "samples_from_iperf3",
    "save_plot",
    "simulate",
    "sweep",
    "time_expanded_graph",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # 40 ms that the command line can do without

        return version("datacollect")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'datacollect' has no attribute {name!r}")
    value = getattr(import_module(f"datacollect.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
