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
from typing import Any

from datacollect.wings import NAMES as WING_NAMES

# For type checkers the same stands in `__init__.pyi`; a test compares.
_HOMES = {
    "methods.comparison": ("Comparison", "compare"),
    "errors": (
        "DatacollectError",
        "DatacollectWarning",
        "InfeasibleError",
        "NotWrittenError",
        "ProblemError",
        "ScheduleError",
        "SimulationError",
        "SolverError",
        "SolverUnavailableError",
        "TimeLimitError",
        "TransferError",
    ),
    "machine.profile": ("HostProfile", "host_profile"),
    "measurement.estimates": ("estimate",),
    "measurement.iperf3": ("samples_from_iperf3",),
    "measurement.perturbed": ("perturb", "perturb_random"),
    "measurement.samples": ("read_samples",),
    "explanation.advise": ("advise",),
    "explanation.advisory": ("Advisory",),
    "explanation.explain": ("explain",),
    "explanation.findings": ("Explanation",),
    "study.experiment": ("Experiment",),
    "flow.optimum": ("lower_bound",),
    "scenario.carry_out": ("simulate",),
    "methods.best_path": ("best_path",),
    "methods.coordinated.coordinated": ("coordinated",),
    "methods.direct": ("direct",),
    "methods.money_front": ("front",),
    "pictures.network_map": ("plot_map",),
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
    "transfer.tunnel.tunnel": ("Tunnel", "tunnel"),
    "methods.slotted.graph": ("time_expanded_graph",),
    "uncertainty.certainty": ("Certainty", "certainty"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

# Rooms of wings are no names of this one.
_OF_WINGS = [name for name, place in WING_NAMES.items() if ":" in place]

__all__ = [*sorted([*_HOME_OF, *_OF_WINGS])]  # noqa: PLE0604 - strings, which ruff cannot see


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
    missing = f"module 'datacollect' has no attribute {name!r}"
    if name not in WING_NAMES:
        raise AttributeError(missing)
    from datacollect.errors import ProblemError
    from datacollect.files.registry import own_entry

    try:
        return own_entry("name", name, WING_NAMES[name])
    except ProblemError as error:
        raise AttributeError(f"{missing}: {error}") from None


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
