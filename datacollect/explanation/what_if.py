"""A plan made again by its own method: as it was, and with changes."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from datacollect.errors import InfeasibleError, ProblemError
from datacollect.explanation.resources import TURNS, ample_bytes_per_s, relaxed_by_part, unlimited
from datacollect.explanation.tolerances import SAME
from datacollect.files.units import format_duration
from datacollect.methods.choice import candidate, find_method, options_like, spec_of
from datacollect.methods.coordinated.spec import CoordinatedOptions
from datacollect.methods.finishing.derating import NOT_DERATED
from datacollect.methods.options.option import options_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.explanation.resources import Resource
    from datacollect.methods.options.option import MethodOptions
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.registry import Solver

# Daily periods are listed for this multiple of a plan's makespan: a plan made again may end later.
LATER = 2.0

# All sources send at once.
NO_TURNS: dict[str, Any] = {"order": None, "at_a_time": None, "time_slot_s": None}

# By what part a constraint is relaxed.
STEP = 0.1


class WhatIf:
    """A plan made again, as it was, and with changes; each is planned when first asked for.

    Attributes
    ----------
    problem : Problem
        With daily periods, if there are any, listed for plans that end later, too.
    plan : Schedule
    solver : str
    options : MethodOptions or None
        Those that the plan records; None where its method is not known.
    """

    def __init__(self, problem: Problem, plan: Schedule, solver: Solver) -> None:
        latest_s = max(LATER * plan.makespan_s, plan.deadline_s or 0.0)
        self.problem, self.plan, self.solver = problem.until(latest_s), plan, solver
        self.options = options_like(plan, solver)

    @cached_property
    def same(self) -> Schedule | None:
        """By the same method, with the same options; None where that is not known."""
        return _planned(self.problem, self.options)

    @cached_property
    def is_same(self) -> bool:
        """Return whether the plan made again ends when the plan does."""
        if self.same is None:
            return False
        return abs(self.same.makespan_s - self.plan.makespan_s) <= SAME * self.plan.makespan_s

    @property
    def difference(self) -> str:
        """Return why the plan made again is another one."""
        method = self.plan.method
        if self.options is None and find_method(method) is not None:
            return f"{method} follows no plan: the schedule says what another method would do"
        if self.options is None:
            return f"method {method!r} is not one of this program's"
        if self.same is None:
            return f"{method} finds no plan with the options that the schedule holds"
        end = format_duration(self.same.makespan_s)
        return (
            f"planned again by {method} it would end at {end}: it was made with options that the "
            "schedule does not hold"
        )

    @cached_property
    def fastest(self) -> Schedule | None:
        """Without a deadline."""
        if self._asked("deadline_s") is None:
            return self.same
        return _planned(self.problem, _with(self.options, deadline_s=None))

    @cached_property
    def cut_through(self) -> Schedule | None:
        """Without chunks."""
        if not spec_of(self.plan.method).attains_bound or self.plan.slot_s is not None:
            return None
        return _planned(self.problem, _with(self.options, chunk_s=0.0))

    @property
    def burden(self) -> tuple[str, str] | None:
        """Return what else it was asked for that costs time, and that in words; None: nothing."""
        most_transfers, derate = self._asked("most_transfers"), self._asked("derate")
        if most_transfers is not None:
            text = f"a host sends and receives at most {most_transfers} transfers at once"
            return "transfers", text
        if derate is not None and derate != NOT_DERATED:
            return "derate", f"it was planned on {derate:.3g} of all links' bandwidths"
        margin_s = self._asked("margin_s")
        if margin_s is not None:
            text = f"it is done with windows and deadlines {format_duration(margin_s)} early"
            return "margin", text
        return None

    @cached_property
    def unburdened(self) -> Schedule | None:
        """Without the burden."""
        if self._asked("most_transfers") is not None:
            # The chunk was chosen for short pieces of time; without them another is.
            return _planned(self.problem, _with(self.options, most_transfers=None, chunk_s=None))
        if self._asked("derate") not in (None, NOT_DERATED):
            return _planned(self.problem, _with(self.options, derate=NOT_DERATED))
        return _planned(self.problem, _with(self.options, margin_s=None))

    @cached_property
    def at_once(self) -> Schedule | None:
        """Without turns."""
        if self.plan.turns is None:
            return self.same
        return _planned(self.problem, _with(self.options, **NO_TURNS))

    @cached_property
    def coordinated(self) -> Schedule | None:
        """By the coordinated method, in slots of the same length if in slots.

        None where the plan's method is as fast.
        """
        plan = self.plan
        if spec_of(plan.method).attains_bound:
            return None
        options = CoordinatedOptions(
            slot_s=plan.slot_s, prefer=plan.prefer, deadline_s=plan.deadline_s, solver=self.solver
        )
        return _planned(self.problem, options)

    def without_waiting(self, problem: Problem) -> Schedule | None:
        """For a problem like this one, if nothing waited for turns, slots or chunks."""
        options = _with(self.options, slot_s=None, chunk_s=0.0, **NO_TURNS)
        if problem is self.problem and options == self.options:
            return self.same
        return _planned(problem, options)

    def can_relax(self, resource: Resource) -> bool:
        """Return whether there may be more of a resource.

        Turns may be a method's own, and no option.
        """
        return resource != TURNS or self._asked("at_a_time") is not None

    def relaxed(self, resources: Sequence[Resource], *, without_limit: bool) -> Schedule | None:
        """With resources relaxed, by a step or altogether."""
        problem, options = self.problem, self.options
        ample = ample_bytes_per_s(problem, self.plan.makespan_s)
        for resource in resources:
            if resource == TURNS:
                turns = NO_TURNS if without_limit else {"at_a_time": self._asked("at_a_time") + 1}
                options = _with(options, **turns)
            elif without_limit:
                problem = unlimited(problem, resource, ample)
            else:
                problem = relaxed_by_part(problem, resource, STEP)
        return _planned(problem, options)

    def _asked(self, name: str) -> Any:
        """Return what the plan's method was asked for; None where it has no such option."""
        return getattr(self.options, name, None)


def _planned(problem: Problem, options: MethodOptions | None) -> Schedule | None:
    """Plan by some options; None where there are none, or no such plan."""
    try:
        return None if options is None else candidate(problem, options)
    except (InfeasibleError, ProblemError):  # no such plan, or options of others
        return None


def _with(options: MethodOptions | None, **values: Any) -> MethodOptions | None:
    """Return some options with other values, as far as the method has such options."""
    if options is None:
        return None
    own = {name: value for name, value in values.items() if name in options_of(type(options))}
    return replace(options, **own)  # type: ignore[type-var] # a dataclass, as all of them
