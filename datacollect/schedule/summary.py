"""A schedule in a few words and numbers, as ``--json`` shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.schedule.data.transfers import UNKNOWN, bottleneck_tree
from datacollect.schedule.data.use import arrived_bytes

if TYPE_CHECKING:
    from datacollect.schedule.schedule import Schedule

SUMMARY_KEYS = (
    "method",
    "makespan_s",
    "lower_bound_s",
    "gap",
    "bottleneck",
    "n_transfers",
    "n_routes",
    "plan_time_s",
    "peak_storage_bytes",
    "status",
    "solver",
    "prefer",
    "deadline_s",
)


def assumptions_tree(schedule: Schedule) -> dict[str, Any] | None:
    """Return what a plan leans on, as ``--json`` shows it; None where that is not known.

    Apart from `summary`, as it may take one more plan.
    """
    found = schedule.assumptions
    return None if found is None else found.to_dict()


def summary(schedule: Schedule, money: float | None = None) -> dict[str, Any]:
    """Return the object that ``datacollect plan --json`` prints.

    Parameters
    ----------
    schedule : Schedule
    money : float, optional
        What its links cost, where they have prices.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> summary(dc.direct(problem))["makespan_s"]
    2.0
    """
    bottleneck = schedule.bottleneck
    values = (
        schedule.method,
        schedule.makespan_s,
        schedule.lower_bound_s,
        schedule.gap,
        None if bottleneck == UNKNOWN else bottleneck_tree(bottleneck),
        schedule.n_transfers,
        schedule.n_routes,
        schedule.plan_time_s,
        schedule.peak_storage_bytes,
        schedule.status,
        schedule.solver,
        schedule.prefer,
        schedule.deadline_s,
    )
    found = dict(zip(SUMMARY_KEYS, values, strict=True))
    if schedule.connections is not None:
        found["connections"] = schedule.connections
    if schedule.most_by_s is not None:
        found["most_by_s"] = schedule.most_by_s
        found["arrived_by_then_bytes"] = arrived_bytes(schedule, schedule.most_by_s)
    return found if money is None else found | {"money": money}
