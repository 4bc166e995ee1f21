"""From a method's options to what carries it out: a schedule, a controller, a planner of the rest.

Engines take these, as whatever moves bytes over real connections does: none of them knows a method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from datacollect.control.adaptive.controller import AdaptiveController
from datacollect.control.connections import Recovery
from datacollect.control.planned.direct import DirectController, streams_in_proportion
from datacollect.control.planned.replanning import ReplanningController
from datacollect.control.planned.scheduled import AsapController, PlannedController
from datacollect.control.relaying import QUEUES
from datacollect.errors import ProblemError
from datacollect.methods.choice import plan
from datacollect.methods.options.names import ADAPTIVE
from datacollect.methods.planning_options import PlanningOptions
from datacollect.methods.prediction import Job, jobs_of, predicted, predicted_adaptive
from datacollect.methods.replanning.replan import replan
from datacollect.schedule.progress import remaining_problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.control.controller import Controller
    from datacollect.files.choices import Relays, Solver
    from datacollect.methods.prediction import Prediction
    from datacollect.problem.problem import Problem
    from datacollect.schedule.progress import Progress
    from datacollect.schedule.schedule import Schedule


@dataclass(frozen=True)
class ExecutionOptions(PlanningOptions):
    """How a collection is planned, and how the plan is carried out.

    Names and meanings are those of a scenario's [method] (`datacollect.scenario.fields`).
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

    @property
    def recovery(self) -> Recovery:
        """What to do about connections that are stuck or gone."""
        return Recovery(
            stall_patience_s=self.stall_patience_s,
            retry_s=self.retry_s,
            most_retries=self.most_retries,
        )


class Carrying(NamedTuple):
    """What carries a collection out.

    Attributes
    ----------
    schedule : Schedule
    controller : Controller
    plan_rest : RestPlanner or None
        For a controller that asks for plans of the rest on the way.
    connections : int
        How many the schedule uses; where the rest is planned anew on the way, the first one.
    """

    schedule: Schedule
    controller: Controller
    plan_rest: RestPlanner | None
    connections: int


class RestPlanner:
    """Plans the rest of a collection anew, time after time, each from the plan before.

    Estimates once replaced stay so until they are replaced again.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        The first plan.
    solver : str
    time_limit_s : float, optional
        For each planning.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
    >>> plan_rest = RestPlanner(problem, dc.coordinated(problem))
    >>> plan_rest(dc.Progress(2.0, held=[dc.Held("D", "S", 0, 10)])).makespan_s
    2.0
    """

    def __init__(
        self,
        problem: Problem,
        schedule: Schedule,
        solver: Solver = "auto",
        time_limit_s: float | None = None,
    ) -> None:
        self._problem, self._schedule, self._begun_s = problem, schedule, 0.0
        self._solver, self._time_limit_s = solver, time_limit_s

    def __call__(self, progress: Progress) -> Schedule:
        """Return a schedule for the rest; the progress' clock begins with the collection."""
        at_s = progress.at_s
        progress = replace(progress, at_s=at_s - self._begun_s)
        rest = replan(
            self._problem,
            self._schedule,
            progress,
            solver=self._solver,
            time_limit_s=self._time_limit_s,
        )
        self._problem = remaining_problem(self._problem, progress)
        self._schedule, self._begun_s = rest, at_s
        return rest


def carrying(
    problem: Problem,
    how: ExecutionOptions,
    *,
    schedule: Schedule | None = None,
    relay_buffer_bytes: int | None = None,
    in_packets: bool = True,
) -> Carrying:
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
    >>> found = carrying(problem, ExecutionOptions(name="direct", streams=3))
    >>> found.schedule.makespan_s, type(found.controller).__name__, found.connections
    (2.0, 'DirectController', 3)
    """
    schedule = plan(problem, how.planning()) if schedule is None else schedule
    if how.name == ADAPTIVE:
        room_bytes = _room_bytes(problem, relay_buffer_bytes)
        return _adaptive(problem, schedule, how, room_bytes, in_packets=in_packets)
    if how.replan_s is not None:
        room_bytes = _room_bytes(problem, relay_buffer_bytes)
        controller = _replanning(problem, schedule, how, how.replan_s, room_bytes)
        plan_rest = RestPlanner(
            problem, schedule, how.options.get("solver") or "auto", how.options.get("time_limit_s")
        )
        return Carrying(schedule, controller, plan_rest, n_connections(schedule, how))
    # In time slots direct keeps to its plan, as the others do: no host begins as another ends.
    if schedule.method == "direct" and how.options.get("time_slot_s") is None:
        streams = _streams(problem, how)
        controller = _direct(problem, schedule, how, streams)
        return Carrying(schedule, controller, None, sum(streams.values()))
    return Carrying(schedule, _scheduled(schedule, how), None, n_connections(schedule, how))


def n_connections(schedule: Schedule, how: ExecutionOptions) -> int:
    """Return how many connections a schedule's routes use."""
    hops = [
        (None if how.shared_connections else number, *pair)
        for number, route in enumerate(schedule.routes)
        for pair in pairwise(route.hosts)
    ]
    return len(set(hops)) * how.lanes


def prediction(
    problem: Problem, carried: Carrying, how: ExecutionOptions, *, in_packets: bool = True
) -> Prediction | None:
    """Predict when what is carried out ends; None where wires are not known, or turns are taken.

    `in_packets` is as for `datacollect.methods.prediction.predicted`.

    Examples
    --------
    >>> import datacollect as dc
    >>> hosts = [dc.Host("S", 60, uplink_bytes_per_s=6.0), dc.Host("D")]
    >>> problem = dc.Problem.from_hosts(hosts, [dc.Link("S", "D", 3.0)], "D")
    >>> how = ExecutionOptions(name="direct", streams=2)
    >>> prediction(problem, carrying(problem, how), how).makespan_s > 10
    True
    """
    if how.replan_s is not None or any(
        how.options.get(turns) is not None for turns in ("at_a_time", "order")
    ):
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
        jobs = [Job((host, end), n, streams[host]) for host, n in holders.items()]
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
        window_bytes=how.window_bytes,
        recovery=how.recovery,
    )


def _adaptive(
    problem: Problem,
    schedule: Schedule,
    how: ExecutionOptions,
    room_bytes: Mapping[str, float],
    *,
    in_packets: bool,
) -> Carrying:
    """The schedule is not followed: it says what coordinated would do, with how many connections.

    Fewer connections than hosts with data take turns.
    """
    as_planned = (how.as_many_times or 1) * n_connections(schedule, how)
    connections = how.connections or max(1, as_planned)
    expected = predicted_adaptive(problem, connections, in_packets=in_packets)
    controller = AdaptiveController(
        problem,
        connections,
        relays=how.relays or QUEUES,
        harm=how.harm,
        room_bytes=room_bytes,
        window_bytes=how.window_bytes,
        recovery=how.recovery,
        expected_s=None if expected is None else expected.makespan_s,
    )
    return Carrying(schedule.replace(method=ADAPTIVE), controller, None, connections)


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
