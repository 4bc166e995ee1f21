"""Plan the collection of large data from many hosts over wide-area networks.

>>> import datacollect as dc
>>> problem = dc.Problem.from_matrix(
...     ["S", "D"], [[0, 1e6], [0, 0]], backlog_bytes=[5_000_000, 0], destination="D"
... )
>>> graph = dc.time_expanded_graph(problem, slot_s=1, n_slots=5)
>>> plan = dc.coordinated(problem, slot_s=1)
>>> plan.check(problem)
>>> plan.makespan_s, dc.coordinated(problem).makespan_s, dc.direct(problem).makespan_s
(5.0, 5.0, 5.0)

From measurements to packets, as in the papers of Chou et al. and Cheng et al.:

==================================  =====================================================
estimates of bandwidth              `estimate`, in ``measurement/``
time-expanded graph                 `time_expanded_graph`, in ``methods/slotted/graph.py``
min-cost flow through it            `coordinated`, in ``methods/slotted/``, ``solvers/``
schedule, and its judge             `Schedule`, in ``schedule/``
packet by packet, in ns-3           `simulate`, in ``simulation/ns3/``
==================================  =====================================================

``slot_s=`` is the papers' algorithm. Without it, as by default, relays forward while they receive,
and what is expanded is only the instants at which bandwidths change; both end alike, up to a slot.

Names are imported on first use, so that ``import datacollect`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datacollect.bistro.auditor.audit_event import audit_event
    from datacollect.bistro.person.upload import upload
    from datacollect.bistro.person.verify_receipt import verify_receipt
    from datacollect.errors import (
        DatacollectError,
        DatacollectWarning,
        InfeasibleError,
        ProblemError,
        ScheduleError,
        SimulationError,
        SolverError,
        SolverUnavailableError,
        TimeLimitError,
    )
    from datacollect.explanation.explain import explain
    from datacollect.explanation.findings import Explanation
    from datacollect.flow.optimum import lower_bound
    from datacollect.measurement.estimates import estimate
    from datacollect.measurement.iperf3 import samples_from_iperf3
    from datacollect.measurement.perturbed import perturb, perturb_random
    from datacollect.measurement.samples import read_samples
    from datacollect.measuring.cycle.measure_cycle import measure_cycle
    from datacollect.methods.best_path import best_path
    from datacollect.methods.comparison import Comparison, compare
    from datacollect.methods.coordinated.coordinated import coordinated
    from datacollect.methods.direct import direct
    from datacollect.methods.money_front import front
    from datacollect.methods.replanning.replan import replan
    from datacollect.methods.slotted.graph import time_expanded_graph
    from datacollect.pictures.page import plot_page
    from datacollect.pictures.plot import plot_schedule, save_plot
    from datacollect.problem.hosts import Held, Host, Link, Parcel, SharedBottleneck
    from datacollect.problem.problem import Problem
    from datacollect.scenario.carry_out import simulate
    from datacollect.scenario.scenario import Scenario
    from datacollect.schedule.data.new_links import NewLinks
    from datacollect.schedule.data.transfers import Bottleneck, Route, Transfers
    from datacollect.schedule.progress import Progress, remaining_problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.study.experiment import Experiment
    from datacollect.study.report.report import Report, report
    from datacollect.study.report.verdicts import Verdicts
    from datacollect.study.sweep import sweep
    from datacollect.transfer.pull.answer import Pulled
    from datacollect.transfer.pull.run import pull

_HOMES = {
    "methods.comparison": ("Comparison", "compare"),
    "errors": (
        "DatacollectError",
        "DatacollectWarning",
        "InfeasibleError",
        "ProblemError",
        "ScheduleError",
        "SimulationError",
        "SolverError",
        "SolverUnavailableError",
        "TimeLimitError",
    ),
    "measurement.estimates": ("estimate",),
    "measurement.iperf3": ("samples_from_iperf3",),
    "measurement.perturbed": ("perturb", "perturb_random"),
    "measurement.samples": ("read_samples",),
    "explanation.explain": ("explain",),
    "explanation.findings": ("Explanation",),
    "study.experiment": ("Experiment",),
    "flow.optimum": ("lower_bound",),
    "scenario.carry_out": ("simulate",),
    "methods.best_path": ("best_path",),
    "methods.coordinated.coordinated": ("coordinated",),
    "methods.direct": ("direct",),
    "methods.money_front": ("front",),
    "pictures.page": ("plot_page",),
    "pictures.plot": ("plot_schedule", "save_plot"),
    "problem.hosts": ("Held", "Host", "Link", "Parcel", "SharedBottleneck"),
    "problem.problem": ("Problem",),
    "schedule.data.new_links": ("NewLinks",),
    "schedule.progress": ("Progress", "remaining_problem"),
    "methods.replanning.replan": ("replan",),
    "study.report.report": ("Report", "report"),
    "study.report.verdicts": ("Verdicts",),
    "scenario.scenario": ("Scenario",),
    "schedule.schedule": ("Schedule",),
    "schedule.data.transfers": ("Bottleneck", "Route", "Transfers"),
    "study.sweep": ("sweep",),
    "transfer.pull.answer": ("Pulled",),
    "transfer.pull.run": ("pull",),
    "methods.slotted.graph": ("time_expanded_graph",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Bottleneck",
    "Comparison",
    "DatacollectError",
    "DatacollectWarning",
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
    "Pulled",
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
    "Verdicts",
    "audit_event",
    "best_path",
    "compare",
    "coordinated",
    "direct",
    "estimate",
    "explain",
    "front",
    "lower_bound",
    "measure_cycle",
    "perturb",
    "perturb_random",
    "plot_page",
    "plot_schedule",
    "pull",
    "read_samples",
    "remaining_problem",
    "replan",
    "report",
    "samples_from_iperf3",
    "save_plot",
    "simulate",
    "sweep",
    "time_expanded_graph",
    "upload",
    "verify_receipt",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        # Takes 40 ms that the command line can do without.
        from datacollect.installation import installed_version

        return installed_version()
    if name in _HOME_OF:
        value = getattr(import_module(f"datacollect.{_HOME_OF[name]}"), name)
    else:
        value = _of_wing(name)
    globals()[name] = value
    return value


def _of_wing(name: str) -> Any:
    """Return a name that a wing brings."""
    from datacollect.wings import NAMES

    missing = f"module 'datacollect' has no attribute {name!r}"
    if name not in NAMES:
        raise AttributeError(missing)
    from datacollect.errors import ProblemError
    from datacollect.files.registry import own_entry

    try:
        return own_entry("name", name, NAMES[name])
    except ProblemError as error:
        raise AttributeError(f"{missing}: {error}") from None


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
