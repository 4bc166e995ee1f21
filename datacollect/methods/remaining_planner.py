"""The one planner of what remains: of collections that are simulated, and of real ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from datacollect.methods.choice import METHODS, plan
from datacollect.methods.coordinated.spec import CoordinatedOptions
from datacollect.schedule.progress import remaining_problem

if TYPE_CHECKING:
    from datacollect.methods.options.option import MethodOptions
    from datacollect.problem.problem import Problem
    from datacollect.schedule.progress import Progress
    from datacollect.schedule.schedule import Schedule


class RemainingPlanner:
    """Plans what remains of a collection, time after time, each plan close to the one before.

    What has been observed, and which hosts are lost, the progress says; estimates once replaced
    stay so until they are replaced again. A method that does not say how its plans are kept to has
    the rest planned by itself: with one route for each source there is nothing to be kept.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule or None
        The first plan; None where it was made without estimates, so that nothing is to be kept.
    options : MethodOptions, optional
        By which method, and how.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
    >>> plan_remaining = RemainingPlanner(problem, dc.coordinated(problem))
    >>> plan_remaining(dc.Progress(2.0, held=[dc.Held("D", "S", 0, 10)])).makespan_s
    2.0
    """

    def __init__(
        self,
        problem: Problem,
        schedule: Schedule | None,
        options: MethodOptions | None = None,
    ) -> None:
        self._problem, self._schedule, self._begun_s = problem, schedule, 0.0
        self._options = options or CoordinatedOptions()
        # Loaded now: a process that is short of files may not be able to later.
        self._replan = METHODS.get(self._options.method).replanner()

    def __call__(self, progress: Progress) -> Schedule:
        """Return a schedule for what remains; the progress' clock begins with the collection."""
        at_s = progress.at_s
        progress = replace(progress, at_s=at_s - self._begun_s)
        remaining, options = remaining_problem(self._problem, progress), self._options
        if self._replan is not None and self._schedule is not None:
            rest = self._replan(self._problem, self._schedule, progress, options)
        else:
            rest = plan(remaining, options)
        self._problem, self._schedule, self._begun_s = remaining, rest, at_s
        return rest
