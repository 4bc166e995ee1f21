"""Checks that a schedule can be one for a problem at all: its hosts, and whose data it moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import ProblemError, nearest_hint

if TYPE_CHECKING:
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.contents import ScheduleContents

REMEDY = "give the problem that it was made for, or plan again"


def require_belonging(problem: Problem, schedule: ScheduleContents) -> None:
    """Refuse a schedule that leads elsewhere, or that names hosts or data the problem lacks.

    Bandwidths, limits and releases may have changed since it was made.

    Raises
    ------
    ProblemError
        What is unknown.

    Examples
    --------
    >>> import datacollect as dc
    >>> one = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> other = dc.Problem.from_matrix(["T", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> require_belonging(one, dc.direct(one))
    >>> require_belonging(other, dc.direct(one))
    Traceback (most recent call last):
        ...
    datacollect.errors.ProblemError: the schedule does not belong to the problem: host 'S' of ...
    """
    what = "the schedule does not belong to the problem"
    if schedule.destination != problem.destination:
        raise ProblemError(
            f"{what}: it leads to {schedule.destination!r}, the problem's destination is "
            f"{problem.destination!r}; {REMEDY}"
        )
    for route in schedule.routes:
        for name in (route.source, *route.hosts):
            if name not in problem.host_index:
                raise ProblemError(
                    f"{what}: host {name!r} of its route {' -> '.join(route.hosts)} is unknown"
                    f"{nearest_hint(name, problem.names)}; {REMEDY}"
                )
    source = np.array([problem.host_index[r.source] for r in schedule.routes], dtype=np.int64)
    columns = schedule.columns
    backlog = problem.backlog_bytes[source[columns.route]]
    # Not offset + bytes > backlog: the sum may be too large for 64 bits.
    beyond = np.flatnonzero(columns.offset_bytes > backlog - columns.n_bytes)
    if len(beyond):
        row = beyond[0]
        last = int(columns.offset_bytes[row]) + int(columns.n_bytes[row]) - 1
        raise ProblemError(
            f"{what}: it moves byte {last} of {schedule.routes[columns.route[row]].source!r}, "
            f"whose backlog is {backlog[row]} bytes; {REMEDY}"
        )
