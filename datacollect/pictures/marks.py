"""Marks in a picture besides data: periods of the forecast, releases, and what binds when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import ScheduleError

if TYPE_CHECKING:
    from datacollect.explanation.plan_limits import Limit
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# More lines can be neither read nor distinguished.
MOST_PERIODS, MOST_BINDS = 60, 5
# Of larger plans it would take longer to find than to plan.
MOST_TRANSFERS = 20_000


@dataclass(frozen=True)
class Binding:
    """Limit that holds data back, and when.

    Attributes
    ----------
    text : str
        What it is, with its value.
    spans_s : tuple of (float, float)
        From when to when, in order.
    """

    text: str
    spans_s: tuple[tuple[float, float], ...]

    @property
    def held_s(self) -> float:
        """Return how long in all."""
        return sum(to_s - from_s for from_s, to_s in self.spans_s)


@dataclass(frozen=True)
class Marks:
    """Marks in a picture.

    Attributes
    ----------
    periods_s : tuple of float
        Instants within the plan at which the forecast's next period begins.
    releases_s : dict of str to float
        By source, where later than 0.
    binds : tuple of Binding
        What holds data back longest comes first.
    binds_note : str
        Why nothing is said of that; empty where it is.
    """

    periods_s: tuple[float, ...]
    releases_s: dict[str, float]
    binds: tuple[Binding, ...]
    binds_note: str = ""


def marks_of(problem: Problem, schedule: Schedule) -> Marks:
    """Find what is to be marked in a schedule of a problem.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "D"], [[[0, 5.0], [0, 0]], [[0, 1.0], [0, 0]]], [12, 0], "D", periods_s=[0, 2]
    ... )
    >>> marks = marks_of(problem, dc.direct(problem))
    >>> marks.periods_s, [(binding.text, binding.spans_s) for binding in marks.binds]
    ((2.0,), [("link 'S' -> 'D' (8 bit/s to 40 bit/s)", ((0.0, 4.0),))])
    """
    end_s = schedule.makespan_s
    starts = problem.until(end_s).periods_s
    within = starts[(starts > 0) & (starts < end_s)]
    sources = {route.source for route in schedule.routes}
    releases = {
        problem.names[i]: float(problem.release_s[i])
        for i in np.flatnonzero(problem.release_s > 0).tolist()
        if problem.names[i] in sources
    }
    binds, note = _binds(problem, schedule)
    return Marks(tuple(within.tolist()), releases, binds, note)


def _binds(problem: Problem, schedule: Schedule) -> tuple[tuple[Binding, ...], str]:
    """Return what holds data back, or why that is not known."""
    if schedule.n_transfers == 0:
        return (), ""
    if schedule.n_transfers > MOST_TRANSFERS:
        return (), f"What binds is not marked in plans of more than {MOST_TRANSFERS:,} transfers."
    if schedule.connections is not None:
        return (), "What binds is not marked in plans that share out connections."
    try:
        schedule.check(problem)
    except ScheduleError:
        return (), "What binds is not marked: the schedule breaks a rule, see datacollect check."
    from datacollect.explanation.plan_limits import plan_limits

    # Releases have marks of their own.
    limits = [
        limit for limit in plan_limits(problem, schedule).binds if limit.resource.kind != "release"
    ]
    found: dict[str, list[Limit]] = {}
    # Of what binds as long, limits of many data come first.
    for limit in sorted(limits, key=lambda limit: (limit.resource.kind == "link", -limit.most)):
        found.setdefault(limit.name, []).append(limit)
    binds = [_together(limits) for limits in found.values()]
    part_of_s = 100 / schedule.makespan_s
    return tuple(sorted(binds, key=lambda binding: -round(binding.held_s * part_of_s))), ""


def _together(limits: list[Limit]) -> Binding:
    """Return what binds several times, with the ends of its values."""
    from datacollect.explanation.resources import value_text

    kind, name = limits[0].resource.kind, limits[0].name
    # The picture shows when; which value when, `explain` says.
    ends = (min(limit.least for limit in limits), max(limit.most for limit in limits))
    values = dict.fromkeys(value_text(kind, value) for value in ends)
    text = f"{name} ({' to '.join(values)})"
    return Binding(text, tuple(sorted((limit.from_s, limit.to_s) for limit in limits)))
