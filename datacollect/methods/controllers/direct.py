"""Controller of direct: sources send over connections of their own, all at once or in turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.control.planned.direct import DirectController, streams_in_proportion
from datacollect.control.relaying import CHAINS
from datacollect.errors import ProblemError
from datacollect.methods.choice import plan
from datacollect.methods.controllers.scheduled import make_scheduled
from datacollect.methods.execution import MadeController, n_connections
from datacollect.methods.prediction import RouteLoad, predicted

if TYPE_CHECKING:
    from datacollect.methods.execution import ControllerInputs, ExecutionOptions
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


def make_direct(given: ControllerInputs) -> MadeController:
    """Return what has sources send over connections of their own.

    In time slots it keeps to its plan, as other methods do: no host begins as another ends.

    Raises
    ------
    ProblemError
        There are fewer connections than sources.
    """
    problem, schedule, how = given.problem, given.schedule, given.how
    in_slots = how.options.get("time_slot_s") is not None
    # What a source makes comes to it from a hidden host, over a hop of its own.
    has_hops = any(route.n_hops > 1 for route in schedule.routes)
    if how.relays == CHAINS or how.replan_s is not None or in_slots or has_hops:
        return make_scheduled(given)
    streams = _streams(problem, how)
    controller = DirectController(
        problem,
        streams,
        at_a_time=how.options.get("at_a_time"),
        order=how.options.get("order"),
        pace_bytes_per_s=_planned_rates(schedule) if how.pace else None,
        window_bytes=how.window_bytes,
        recovery=how.recovery,
    )
    jobs = [
        RouteLoad((host, problem.destination), n_bytes, streams[host])
        for host, n_bytes in _held_bytes(problem).items()
    ]
    expected = predicted(problem, jobs, how.name, in_packets=given.in_packets)
    return MadeController(controller, sum(streams.values()), prediction=expected)


def _held_bytes(problem: Problem) -> dict[str, int]:
    """Return what lies at each host."""
    found: dict[str, int] = {}
    for parcel in problem.parcels:
        host = problem.names[parcel.host]
        found[host] = found.get(host, 0) + parcel.n_bytes
    return found


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
