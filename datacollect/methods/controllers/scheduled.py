"""Controllers that follow a schedule: in its order, at its times, planned again, or over chains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.control.adaptive.controller import default_piece_bytes
from datacollect.control.chained.controller import ChainedController
from datacollect.control.chained.learning import LearningController
from datacollect.control.chained.shares import trial_chains
from datacollect.control.planned.replanning import ReplanningController
from datacollect.control.planned.scheduled import AsapController, PlannedController
from datacollect.control.relaying import CHAINS
from datacollect.errors import ProblemError
from datacollect.methods.choice import plan
from datacollect.methods.execution import MadeController, n_connections
from datacollect.methods.options.names import COORDINATED
from datacollect.methods.prediction import jobs_of, predicted
from datacollect.methods.remaining_planner import RemainingPlanner

if TYPE_CHECKING:
    from datacollect.control.controller import Controller
    from datacollect.methods.execution import ControllerInputs, ExecutionOptions
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


def make_scheduled(given: ControllerInputs) -> MadeController:
    """Return what carries a schedule out as [method] says."""
    problem, schedule, how = given.problem, given.schedule, given.how
    if how.relays == CHAINS:
        return make_chained(given)
    connections = n_connections(schedule, how)
    if how.replan_s is not None:
        rest = RemainingPlanner(problem, schedule, how.planning())
        return MadeController(_replanning(given, how.replan_s), connections, rest)
    jobs = jobs_of(schedule, how.lanes)
    expected = predicted(problem, jobs, how.name, in_packets=given.in_packets)
    return MadeController(_scheduled(schedule, how), connections, prediction=expected)


def make_chained(given: ControllerInputs) -> MadeController:
    """Return what pulls each route's share over chains.

    Raises
    ------
    ProblemError
        The schedule is in slots.
    """
    problem, schedule, how = given.problem, given.schedule, given.how
    if schedule.slot_s is not None:
        raise ProblemError(
            f"the schedule must be pipelined to be carried out over chains, which hold nothing, "
            f"got slots of {schedule.slot_s:g} s; plan without slot_s"
        )
    most = how.connections
    if how.connections_as is not None or how.as_many_times is not None:
        most = connection_budget(problem, schedule, how)
    options: dict[str, Any] = {
        "piece_bytes": how.piece_bytes or default_piece_bytes(problem),
        "recovery": how.recovery,
        "connections": most,
        "window_bytes": how.window_bytes,
    }
    used = {route.hosts for route in schedule.routes}
    connections = most or sum(len(hosts) - 1 for hosts in used)
    if how.learns:
        learning = LearningController(problem, schedule, trial_chains(problem, used), **options)
        return MadeController(
            learning, connections, RemainingPlanner(problem, None, how.planning())
        )
    return MadeController(ChainedController(problem, schedule, **options), connections)


def connection_budget(problem: Problem, schedule: Schedule, how: ExecutionOptions) -> int:
    """Return how many connections there may be: so many, or some times as many as coordinated's.

    Fewer than hosts with data take turns.
    """
    if how.connections is not None:
        return how.connections
    if how.planning().method != COORDINATED:
        schedule = plan(problem, how.planning(COORDINATED))
    return max(1, (how.as_many_times or 1) * n_connections(schedule, how))


def _replanning(given: ControllerInputs, replan_s: float) -> Controller:
    how = given.how
    return ReplanningController(
        given.problem,
        given.schedule,
        replan_s=replan_s,
        lanes=how.lanes,
        shared_connections=how.shared_connections,
        room_bytes=given.room_bytes,
        piece_bytes=how.piece_bytes,
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
