"""Specification of a method: its name, its options, what plans, why plans end late."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.methods.options.option import MethodOptions, Option, options_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.budget import Budget

# A function, or where it is, ``"module:name"``: imported on first use, so that help is quick.
Function: TypeAlias = "str | Callable[..., Schedule]"


@dataclass(frozen=True, eq=False)
class MethodSpec:
    """A method: command line, scenarios, pulls, comparisons and explanations know it by this.

    Attributes
    ----------
    name : str
        As people and files write it.
    options : type of MethodOptions
        A frozen dataclass, each of whose fields is an `option`.
    plan : function or str, optional
        The public function: takes a problem and the options by name, returns a schedule.
        None: it follows no plan.
    candidate : function or str, optional
        The same for comparisons, not judged: takes a problem, the options, a `Budget`.
    plans_as : str
        Of a method without a plan: that by whose plan its connections are counted.
    exceeds : tuple of str
        What makes its plans later than the lower bound, in order: ``"sharing"`` (each source has
        one route, rates are max-min fair), ``"turns"``, ``"shape"`` (slots or chunks).
    is_max_min_fair : bool
        Whether its rates are.
    """

    name: str
    options: type[MethodOptions]
    plan: Function | None = None
    candidate: Function | None = None
    plans_as: str = ""
    exceeds: tuple[str, ...] = ()
    is_max_min_fair: bool = False

    @cached_property
    def takes(self) -> dict[str, Option]:
        """Its options by their names."""
        return options_of(self.options)

    def asked(self, given: Mapping[str, Any]) -> MethodOptions:
        """Return its options, with those of some values that are not None and that it takes."""
        own = {
            # Files have lists.
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
            if name in self.takes and value is not None
        }
        return self.options(**own)

    def planned(self, problem: Problem, options: MethodOptions) -> Schedule:
        """Plan as the public function does."""
        assert self.plan is not None
        return _function(self.plan)(problem, **vars(options))

    def tried(self, problem: Problem, options: MethodOptions, budget: Budget) -> Schedule:
        """Plan for a comparison."""
        if self.candidate is None:
            return self.planned(problem, options)
        return _function(self.candidate)(problem, options, budget)


def _function(of: Function) -> Callable[..., Schedule]:
    if not isinstance(of, str):
        return of
    module, _, name = of.partition(":")
    found: Callable[..., Schedule] = getattr(import_module(module), name)
    return found
