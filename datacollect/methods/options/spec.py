"""Specification of a method: its options, what plans, what carries plans out, its traits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from datacollect.errors import ProblemError
from datacollect.methods.options.option import MethodOptions, Option, options_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacollect.problem.problem import Problem
    from datacollect.schedule.progress import Progress
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.budget import Budget

# A function, or where it is, ``"module:name"``: imported on first use, so that help is quick.
Function: TypeAlias = "str | Callable[..., Any]"

# What numbers of connections are given for: each hop of a plan's routes, sources, or the whole
# collection, whose connections move.
PER_HOP: Final = "hop"
PER_SOURCE: Final = "source"
IN_ALL: Final = "collection"
ConnectionsPer: TypeAlias = Literal["hop", "source", "collection"]


@dataclass(frozen=True, eq=False)
class ControllerSpec:
    """Controller of a method's plans, in both engines and in pulls.

    Attributes
    ----------
    make : function or str
        Takes `datacollect.methods.execution.ControllerInputs`, returns a `MadeController`.
    connections_per : {"hop", "source", "collection"}
        What numbers of connections are given for, and so which keys of a scenario's [method] mean
        something to it: ``lanes`` for each hop of a route; ``streams`` and its kin for sources;
        ``connections`` and its kin for the whole collection.

    Raises
    ------
    ProblemError
        There is no such number of connections.
    """

    make: Function
    connections_per: ConnectionsPer = PER_HOP

    def __post_init__(self) -> None:
        if self.connections_per not in get_args(ConnectionsPer):
            raise ProblemError(
                f"connections_per must be one of {', '.join(get_args(ConnectionsPer))}, "
                f"got {self.connections_per!r}"
            )

    def made(self, given: Any) -> Any:
        """Return the controller for a collection; see `make`."""
        return _function(self.make)(given)


# Carries out any schedule as [method] says: in its order, at its times, over chains, planned again.
FOLLOWS_SCHEDULE = ControllerSpec("datacollect.methods.controllers.scheduled:make_scheduled")


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
    controller : ControllerSpec, optional
        What carries its plans out; by default what follows any schedule. None: it only plans.
    replan : function or str, optional
        What plans the rest of a collection close to the plan before: takes the problem, that plan,
        the progress, the options. None: the rest is planned by itself.
    exceeds : tuple of str
        What makes its plans later than the lower bound, in order: ``"sharing"`` (each source has
        one route, rates are max-min fair), ``"turns"``, ``"shape"`` (slots or chunks).
    is_max_min_fair : bool
        Whether its rates are.
    attains_bound : bool
        Whether its plans end with the lower bound, but for slots, chunks and deadlines.
    compares_direct_links : bool
        Whether routes depend on sources' links to the destination, also where no data take these.
    has_relays : bool
        Whether data may pass relays; where not, there is no choice of links that could be learned.

    Raises
    ------
    ProblemError
        The controller is none.
    """

    name: str
    options: type[MethodOptions]
    plan: Function | None = None
    candidate: Function | None = None
    plans_as: str = ""
    controller: ControllerSpec | None = FOLLOWS_SCHEDULE
    replan: Function | None = None
    exceeds: tuple[str, ...] = ()
    is_max_min_fair: bool = False
    attains_bound: bool = False
    compares_direct_links: bool = False
    has_relays: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.controller, ControllerSpec | None):
            raise ProblemError(
                f"method {self.name!r}: controller must be a ControllerSpec or None, "
                f"got {type(self.controller).__name__}; give ControllerSpec(FUNCTION)"
            )

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
        """Plan as the public function does.

        Raises
        ------
        ProblemError
            It follows no plan.
        """
        if self.plan is None:
            raise ProblemError(f"method {self.name!r} follows no plan; plan by another method")
        return self._named(_function(self.plan)(problem, **vars(options)))

    def tried(self, problem: Problem, options: MethodOptions, budget: Budget) -> Schedule:
        """Plan for a comparison."""
        if self.candidate is None:
            return self.planned(problem, options)
        return self._named(_function(self.candidate)(problem, options, budget))

    def _named(self, schedule: Schedule) -> Schedule:
        """Return a plan with the name by which it is carried out and explained: its own."""
        return schedule if schedule.method == self.name else schedule.as_method(self.name)

    def replanner(self) -> Callable[[Problem, Schedule, Progress, Any], Schedule] | None:
        """Return what plans the rest close to the plan before, if anything does."""
        return None if self.replan is None else _function(self.replan)

    def required_controller(self) -> ControllerSpec:
        """Return what carries its plans out.

        Raises
        ------
        ProblemError
            Nothing does.
        """
        if self.controller is None:
            raise ProblemError(
                f"method {self.name!r} only plans: it has no controller, which would carry its "
                "plans out; choose another method"
            )
        return self.controller


def _function(of: Function) -> Callable[..., Any]:
    if not isinstance(of, str):
        return of
    module, _, name = of.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found
