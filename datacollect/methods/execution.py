"""Execution of a method: from its options to a schedule, a controller, a planner of the rest.

Engines take these, as whatever moves bytes over real connections does: none of them knows a method.
Which controller it is the method says, by its `ControllerSpec`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from datacollect.control.connections import Recovery
from datacollect.control.relaying import CHAINS
from datacollect.methods.choice import METHODS, plan, spec_of
from datacollect.methods.options.names import ADAPTIVE, BEST_PATH
from datacollect.methods.planning_options import PlanningOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.control.controller import Controller
    from datacollect.files.choices import Relays
    from datacollect.methods.options.option import MethodOptions
    from datacollect.methods.options.spec import MethodSpec
    from datacollect.methods.prediction import Prediction
    from datacollect.methods.remaining_planner import RemainingPlanner
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


@dataclass(frozen=True)
class ExecutionOptions(PlanningOptions):
    """Options for planning a collection, and for carrying the plan out.

    Names and meanings are those of a scenario's [method] (`datacollect.scenario.fields`); only
    whether links are known is said elsewhere, by [estimates].
    """

    timing: str = "asap"
    lanes: int = 1
    shared_connections: bool = False
    open_ahead_s: float = 1.0
    pace: bool = False
    replan_s: float | None = None
    window_bytes: int | None = None
    streams: int = 1
    total_streams: int | None = None
    streams_as: str | None = None
    streams_shared: str = "by-data"
    connections: int | None = None
    connections_as: str | None = None
    as_many_times: int | None = None
    relays: Relays | None = None
    harm: float | None = None
    stall_patience_s: float = 0.0
    retry_s: float = 1.0
    most_retries: int = 10
    longest_wait_s: float | None = None
    piece_bytes: int | None = None
    is_known: bool = True

    def first_plan(self) -> MethodOptions:
        """Return how the first plan is made: where nobody knows links, the way of fewest hops.

        All links count alike there, so that best-path goes straight wherever there is a link.
        """
        if not self.learns:
            return self.planning()
        return PlanningOptions(BEST_PATH, {"solver": self.options.get("solver")}).planning()

    @property
    def learns(self) -> bool:
        """Say whether links are learned on the way: without relays there is no choice of links."""
        return not self.is_known and METHODS.get(self.name).has_relays

    @property
    def takes_turns(self) -> bool:
        """Return whether sources wait for each other."""
        return any(self.options.get(turns) is not None for turns in ("at_a_time", "order"))

    @property
    def recovery(self) -> Recovery:
        """Return what to do about connections that are stuck or gone."""
        return Recovery(
            stall_patience_s=self.stall_patience_s,
            retry_s=self.retry_s,
            most_retries=self.most_retries,
            longest_wait_s=math.inf if self.longest_wait_s is None else self.longest_wait_s,
        )


# What each link counts for where nobody knows: one as much as another.
UNKNOWN_BYTES_PER_S = 1e6

# What `datacollect pull` does wherever the collection file says nothing else. Relays of real
# transfers hold nothing. Hosts that come back are used again: they are tried for ever, ever more
# seldom up to a limit.
PULLS = ExecutionOptions(
    name=ADAPTIVE,
    relays=CHAINS,
    connections=16,
    retry_s=0.5,
    longest_wait_s=5.0,
    most_retries=2**30,
)


class ControllerInputs(NamedTuple):
    """Inputs of a controller.

    Attributes
    ----------
    problem : Problem
        What the planner knows.
    schedule : Schedule
        What is to be carried out; of a method without a plan, what counts its connections.
        Where nobody knows links, the way of fewest hops for each source.
    how : ExecutionOptions
    room_bytes : mapping of str to float
        Room for others' data at each host where it is bounded.
    in_packets : bool
        As in networks; else at max-min fair rates: for what is predicted.
    """

    problem: Problem
    schedule: Schedule
    how: ExecutionOptions
    room_bytes: Mapping[str, float]
    in_packets: bool


class MadeController(NamedTuple):
    """A controller, and what is known of it before it starts.

    Attributes
    ----------
    controller : Controller
    connections : int
        How many it uses, or may use.
    plan_remaining : RemainingPlanner or None
        For a controller that asks for plans of the rest on the way.
    prediction : Prediction or None
        When all will have arrived, where that can be told.
    """

    controller: Controller
    connections: int
    plan_remaining: RemainingPlanner | None = None
    prediction: Prediction | None = None


class Execution(NamedTuple):
    """Means by which a collection is carried out.

    Attributes
    ----------
    schedule : Schedule
    controller : Controller
    plan_remaining : RemainingPlanner or None
        For a controller that asks for plans of the rest on the way.
    connections : int
        How many the schedule uses; where the remainder is planned again, the first one.
    predicted_s : float or None
        What the schedule says; None where nobody knew links when it was made.
    prediction : Prediction or None
        When all will have arrived; None where wires are not known, or turns are taken.
    """

    schedule: Schedule
    controller: Controller
    plan_remaining: RemainingPlanner | None
    connections: int
    predicted_s: float | None
    prediction: Prediction | None


def execution_of(
    problem: Problem,
    how: ExecutionOptions,
    *,
    schedule: Schedule | None = None,
    relay_buffer_bytes: int | None = None,
    in_packets: bool = True,
) -> Execution:
    """Return what carries a collection out as the options say.

    Parameters
    ----------
    problem : Problem
        What the planner knows.
    how : ExecutionOptions
    schedule : Schedule, optional
        Instead of planning.
    relay_buffer_bytes : int, optional
        Room for others' data at each relay.
    in_packets : bool
        As in networks; else at max-min fair rates: for what is predicted.

    Raises
    ------
    ProblemError
        Options do not fit the problem or the schedule, or the method has no controller.
    InfeasibleError, SolverError
        As the method's function.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> found = execution_of(problem, ExecutionOptions(name="direct", streams=3))
    >>> found.schedule.makespan_s, type(found.controller).__name__, found.connections
    (2.0, 'DirectController', 3)

    With what is known of wires it is predicted when all will have arrived:

    >>> hosts = [dc.Host("S", 60, uplink_bytes_per_s=6.0), dc.Host("D")]
    >>> problem = dc.Problem.from_hosts(hosts, [dc.Link("S", "D", 3.0)], "D")
    >>> execution_of(problem, ExecutionOptions("direct", streams=2)).prediction.makespan_s > 10
    True
    """
    schedule = plan(problem, how.first_plan()) if schedule is None else schedule
    method = _carried_out_as(schedule, how)
    room_bytes = _room_bytes(problem, relay_buffer_bytes)
    given = ControllerInputs(problem, schedule, how, room_bytes, in_packets)
    made: MadeController = method.required_controller().made(given)
    if method.plan is None:
        # The schedule is not followed: it says what another method would do, and its connections.
        schedule = schedule.as_method(method.name)
    return Execution(
        schedule,
        made.controller,
        made.plan_remaining,
        made.connections,
        schedule.makespan_s if how.is_known else None,
        None if how.takes_turns or not how.is_known else made.prediction,
    )


def _carried_out_as(schedule: Schedule, how: ExecutionOptions) -> MethodSpec:
    """Return the method whose controller is taken: a schedule that another one made, as its own."""
    method = METHODS.get(how.name)
    is_own = method.plan is None or schedule.method == how.first_plan().method
    return method if is_own else spec_of(schedule.method)


def n_connections(schedule: Schedule, how: ExecutionOptions) -> int:
    """Return how many connections a schedule's routes use."""
    hops = [
        (None if how.shared_connections else number, *pair)
        for number, route in enumerate(schedule.routes)
        for pair in pairwise(route.hosts)
    ]
    return len(set(hops)) * how.lanes


def _room_bytes(problem: Problem, relay_buffer_bytes: int | None) -> dict[str, float]:
    """Room for others' data at each host where it is bounded."""
    every = math.inf if relay_buffer_bytes is None else relay_buffer_bytes
    rooms = zip(problem.names, problem.storage_bytes.tolist(), strict=True)
    return {name: min(own, every) for name, own in rooms if min(own, every) < math.inf}
