"""Execution of a method: from its options to a schedule, a controller, a planner of the rest.

Engines take these, as whatever moves bytes over real connections does: none of them knows a method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.control.adaptive.controller import AdaptiveController, default_piece_bytes
from datacollect.control.chained.controller import ChainedController
from datacollect.control.chained.learning import LearningController
from datacollect.control.chained.shares import trial_chains
from datacollect.control.connections import Recovery
from datacollect.control.planned.direct import DirectController, streams_in_proportion
from datacollect.control.planned.replanning import ReplanningController
from datacollect.control.planned.scheduled import AsapController, PlannedController
from datacollect.control.relaying import CHAINS, QUEUES
from datacollect.errors import ProblemError
from datacollect.methods.choice import plan
from datacollect.methods.options.names import ADAPTIVE, BEST_PATH, COORDINATED, DIRECT
from datacollect.methods.planning_options import PlanningOptions
from datacollect.methods.prediction import RouteLoad, jobs_of, predicted, predicted_adaptive
from datacollect.methods.remaining_planner import RemainingPlanner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.control.controller import Controller
    from datacollect.files.choices import Relays
    from datacollect.methods.options.option import MethodOptions
    from datacollect.methods.prediction import Prediction
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
        """Whether links are learned on the way: direct has no choice of links."""
        return not self.is_known and self.name != DIRECT

    @property
    def recovery(self) -> Recovery:
        """What to do about connections that are stuck or gone."""
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
    """

    schedule: Schedule
    controller: Controller
    plan_remaining: RemainingPlanner | None
    connections: int
    predicted_s: float | None


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
        As in networks; else at max-min fair rates: for what adaptive forecasts.

    Raises
    ------
    ProblemError
        Options do not fit the problem or the schedule.
    InfeasibleError, SolverError
        As the method's function.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> found = execution_of(problem, ExecutionOptions(name="direct", streams=3))
    >>> found.schedule.makespan_s, type(found.controller).__name__, found.connections
    (2.0, 'DirectController', 3)
    """
    schedule = plan(problem, how.first_plan()) if schedule is None else schedule
    room_bytes = _room_bytes(problem, relay_buffer_bytes)
    controller: Controller
    plan_remaining = None
    connections = n_connections(schedule, how)
    if how.relays == CHAINS and not (how.name == ADAPTIVE and _may_move(problem, schedule, how)):
        connections, controller = _chained(problem, schedule, how)
        if how.learns:
            plan_remaining = RemainingPlanner(problem, None, how.planning())
    elif how.name == ADAPTIVE:
        connections = _budget(problem, schedule, how)
        controller = _adaptive(problem, connections, how, room_bytes, in_packets=in_packets)
    elif how.replan_s is not None:
        controller = _replanning(problem, schedule, how, how.replan_s, room_bytes)
        plan_remaining = RemainingPlanner(problem, schedule, how.planning())
    # In time slots direct keeps to its plan, as the others do: no host begins as another ends.
    elif schedule.method == DIRECT and how.options.get("time_slot_s") is None:
        streams = _streams(problem, how)
        controller, connections = _direct(problem, schedule, how, streams), sum(streams.values())
    else:
        controller = _scheduled(schedule, how)
    if how.name == ADAPTIVE:
        # It is not followed: it says what coordinated would do, with how many connections.
        schedule = schedule.replace(method=ADAPTIVE)
    predicted_s = schedule.makespan_s if how.is_known else None
    return Execution(schedule, controller, plan_remaining, connections, predicted_s)


def n_connections(schedule: Schedule, how: ExecutionOptions) -> int:
    """Return how many connections a schedule's routes use."""
    hops = [
        (None if how.shared_connections else number, *pair)
        for number, route in enumerate(schedule.routes)
        for pair in pairwise(route.hosts)
    ]
    return len(set(hops)) * how.lanes


def prediction(
    problem: Problem, carried: Execution, how: ExecutionOptions, *, in_packets: bool = True
) -> Prediction | None:
    """Predict when what is carried out ends; None where wires are not known, or turns are taken.

    `in_packets` is as for `datacollect.methods.prediction.predicted`.

    Examples
    --------
    >>> import datacollect as dc
    >>> hosts = [dc.Host("S", 60, uplink_bytes_per_s=6.0), dc.Host("D")]
    >>> problem = dc.Problem.from_hosts(hosts, [dc.Link("S", "D", 3.0)], "D")
    >>> how = ExecutionOptions(name="direct", streams=2)
    >>> prediction(problem, execution_of(problem, how), how).makespan_s > 10
    True
    """
    is_learned = not how.is_known or isinstance(carried.controller, ChainedController)
    takes_turns = any(how.options.get(turns) is not None for turns in ("at_a_time", "order"))
    if is_learned or takes_turns or how.replan_s is not None:
        return None
    holders: dict[str, int] = {}
    for parcel in problem.parcels:
        host = problem.names[parcel.host]
        holders[host] = holders.get(host, 0) + parcel.n_bytes
    schedule, end = carried.schedule, problem.destination
    if how.name == ADAPTIVE:
        return predicted_adaptive(problem, carried.connections, in_packets=in_packets)
    if schedule.method == "direct":
        streams = _streams(problem, how)
        jobs = [RouteLoad((host, end), n, streams[host]) for host, n in holders.items()]
    else:
        jobs = jobs_of(schedule, how.lanes)
    return predicted(problem, jobs, how.name, in_packets=in_packets)


# One function per controller -----------------------------------------------------------------


def _replanning(
    problem: Problem,
    schedule: Schedule,
    how: ExecutionOptions,
    replan_s: float,
    room_bytes: Mapping[str, float],
) -> Controller:
    return ReplanningController(
        problem,
        schedule,
        replan_s=replan_s,
        lanes=how.lanes,
        shared_connections=how.shared_connections,
        room_bytes=room_bytes,
        piece_bytes=how.piece_bytes,
        window_bytes=how.window_bytes,
        recovery=how.recovery,
    )


def _adaptive(
    problem: Problem,
    connections: int,
    how: ExecutionOptions,
    room_bytes: Mapping[str, float],
    *,
    in_packets: bool,
) -> Controller:
    expected = predicted_adaptive(problem, connections, in_packets=in_packets)
    return AdaptiveController(
        problem,
        connections,
        relays=how.relays or QUEUES,
        harm=how.harm,
        room_bytes=room_bytes,
        piece_bytes=how.piece_bytes,
        window_bytes=how.window_bytes,
        recovery=how.recovery,
        expected_s=None if expected is None else expected.makespan_s,
    )


def _chained(
    problem: Problem, schedule: Schedule, how: ExecutionOptions
) -> tuple[int, ChainedController]:
    """Return who pulls each route's share over chains, and over how many connections."""
    if schedule.slot_s is not None:
        raise ProblemError(
            f"the schedule must be pipelined to be carried out over chains, which hold nothing, "
            f"got slots of {schedule.slot_s:g} s; plan without slot_s"
        )
    most = how.connections
    if how.connections_as is not None or how.as_many_times is not None:
        most = _budget(problem, schedule, how)
    options: dict[str, Any] = {
        "piece_bytes": how.piece_bytes or default_piece_bytes(problem),
        "recovery": how.recovery,
        "connections": most,
        "window_bytes": how.window_bytes,
    }
    used = {route.hosts for route in schedule.routes}
    if how.learns:
        trials = trial_chains(problem, used)
        controller: ChainedController = LearningController(problem, schedule, trials, **options)
    else:
        controller = ChainedController(problem, schedule, **options)
    return most or sum(len(hosts) - 1 for hosts in used), controller


def _direct(
    problem: Problem, schedule: Schedule, how: ExecutionOptions, streams: Mapping[str, int]
) -> Controller:
    return DirectController(
        problem,
        streams,
        at_a_time=how.options.get("at_a_time"),
        order=how.options.get("order"),
        pace_bytes_per_s=_planned_rates(schedule) if how.pace else None,
        window_bytes=how.window_bytes,
        recovery=how.recovery,
    )


def _scheduled(schedule: Schedule, how: ExecutionOptions) -> Controller:
    if how.timing == "planned":
        return PlannedController(
            schedule,
            open_ahead_s=how.open_ahead_s,
            shared_connections=how.shared_connections,
            lanes=how.lanes,
            pace=how.pace,
            window_bytes=how.window_bytes,
            recovery=how.recovery,
        )
    return AsapController(
        schedule,
        shared_connections=how.shared_connections,
        lanes=how.lanes,
        pace=how.pace,
        window_bytes=how.window_bytes,
        recovery=how.recovery,
    )


# What they take ------------------------------------------------------------------------------


def _budget(problem: Problem, schedule: Schedule, how: ExecutionOptions) -> int:
    """Return how many connections there may be: so many, or some times as many as coordinated's.

    Fewer than hosts with data take turns.
    """
    if how.connections is not None:
        return how.connections
    if how.name not in (ADAPTIVE, COORDINATED):
        schedule = plan(problem, how.planning(COORDINATED))
    return max(1, (how.as_many_times or 1) * n_connections(schedule, how))


def _may_move(problem: Problem, schedule: Schedule, how: ExecutionOptions) -> bool:
    """Whether connections over chains can move: links are known, and the longest chain fits."""
    longest = max((route.n_hops for route in schedule.routes), default=1)
    return how.is_known and _budget(problem, schedule, how) >= longest


def _room_bytes(problem: Problem, relay_buffer_bytes: int | None) -> dict[str, float]:
    """Room for others' data at each host where it is bounded."""
    every = math.inf if relay_buffer_bytes is None else relay_buffer_bytes
    rooms = zip(problem.names, problem.storage_bytes.tolist(), strict=True)
    return {name: min(own, every) for name, own in rooms if min(own, every) < math.inf}


def _streams(problem: Problem, how: ExecutionOptions) -> dict[str, int]:
    """Connections of each source of a direct collection."""
    holders = list(dict.fromkeys(problem.names[parcel.host] for parcel in problem.parcels))
    total = how.total_streams
    if how.streams_as is not None:
        other = plan(problem, how.planning(how.streams_as))
        total = max(len(holders), (how.as_many_times or 1) * n_connections(other, how))
    if total is None:
        return dict.fromkeys(holders, how.streams)
    if total < len(holders):
        raise ProblemError(
            f"method.total_streams must be >= {len(holders)}, one for each source, got {total}"
        )
    if how.streams_shared == "by-data":
        return streams_in_proportion(problem, total)
    each, more = divmod(total, len(holders)) if holders else (0, 0)
    return {host: each + (i < more) for i, host in enumerate(holders)}


def _planned_rates(schedule: Schedule) -> dict[str, float]:
    """Highest planned rate of each host, in bytes per second."""
    columns = schedule.columns
    rates: dict[str, float] = {}
    spans = (columns.finish_s - columns.start_s).tolist()
    for route, n_bytes, span_s in zip(
        columns.route.tolist(), columns.n_bytes.tolist(), spans, strict=True
    ):
        host = schedule.routes[route].hosts[0]
        if span_s > 0:
            rates[host] = max(rates.get(host, 0.0), n_bytes / span_s)
    return rates
