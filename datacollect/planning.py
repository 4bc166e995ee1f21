"""What a scenario's [method] means: which plan, and which controller carries it out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datacollect.controllers import (
    AdaptiveController,
    AsapController,
    DirectController,
    PlannedController,
    Recovery,
    streams_in_proportion,
)
from datacollect.errors import ProblemError, nearest_hint
from datacollect.methods.best_path import best_path
from datacollect.methods.coordinated import coordinated
from datacollect.methods.direct import direct
from datacollect.progress import remaining_problem
from datacollect.replanning import replan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.control import Controller
    from datacollect.problem import Problem
    from datacollect.progress import Progress
    from datacollect.schedule import Schedule


def plan(problem: Problem, method: Mapping[str, Any], name: str | None = None) -> Schedule:
    """Plan as [method] says, or by another method with the same shape."""
    solver, shape = method["solver"], {key: method[key] for key in ("slot_s", "chunk_s")}
    match name or method["name"]:
        case "direct":
            options = {key: method[key] for key in ("order", "at_a_time")}
            return direct(problem, solver=solver, **options)
        case "best-path":
            return best_path(problem, solver=solver, **shape)
    return coordinated(problem, solver=solver, time_limit_s=method["time_limit_s"], **shape)


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
        solver: str = "auto",
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


def controller_of(
    problem: Problem,
    schedule: Schedule,
    method: Mapping[str, Any],
    relay_buffer_bytes: int | None = None,
) -> tuple[Controller, int]:
    """Return what carries the schedule out as [method] says, and how many connections it uses.

    Where the rest is planned anew on the way, they are those of the first plan.
    """
    recovery = Recovery(
        stall_patience_s=method["stall_patience_s"],
        retry_s=method["retry_s"],
        most_retries=method["most_retries"],
    )
    window_bytes = method["window_bytes"]
    if method["replan_s"] is not None:
        return AdaptiveController(
            problem,
            schedule,
            RestPlanner(problem, schedule, method["solver"], method["time_limit_s"]),
            replan_s=method["replan_s"],
            lanes=method["lanes"],
            shared_connections=method["shared_connections"],
            room_bytes=_room_bytes(problem, relay_buffer_bytes),
            window_bytes=window_bytes,
            recovery=recovery,
        ), n_connections(schedule, method)
    if schedule.method == "direct":
        streams = _streams(problem, method)
        pace = None
        if method["pace"]:
            pace = _planned_rates(schedule)
        controller: Controller = DirectController(
            problem,
            streams,
            at_a_time=method["at_a_time"],
            order=method["order"],
            pace_bytes_per_s=pace,
            window_bytes=window_bytes,
            recovery=recovery,
        )
        return controller, sum(streams.values())
    options: dict[str, Any] = {
        "shared_connections": method["shared_connections"],
        "lanes": method["lanes"],
        "pace": method["pace"],
        "window_bytes": window_bytes,
        "recovery": recovery,
    }
    n = n_connections(schedule, method)
    if method["timing"] == "planned":
        return PlannedController(schedule, open_ahead_s=method["open_ahead_s"], **options), n
    return AsapController(schedule, **options), n


def _room_bytes(problem: Problem, relay_buffer_bytes: int | None) -> dict[str, float]:
    """Room for others' data at each host where it is bounded."""
    every = math.inf if relay_buffer_bytes is None else relay_buffer_bytes
    rooms = zip(problem.names, problem.storage_bytes.tolist(), strict=True)
    return {name: min(own, every) for name, own in rooms if min(own, every) < math.inf}


def n_connections(schedule: Schedule, method: Mapping[str, Any]) -> int:
    """Return how many connections a schedule's routes use, as [method] says."""
    hops = [
        (None if method["shared_connections"] else number, *pair)
        for number, route in enumerate(schedule.routes)
        for pair in zip(route.hosts, route.hosts[1:], strict=False)
    ]
    return len(set(hops)) * int(method["lanes"])


def require_schedule_fits(schedule: Schedule, problem: Problem) -> None:
    """Refuse a schedule that collects other data than the scenario's.

    Its bandwidths may differ: to judge a plan where others hold is what simulations are for.

    Raises
    ------
    ProblemError
        Another destination, hosts that are not there, other backlogs, times before 0.
    """
    what = "the schedule was made for another problem"
    if schedule.destination != problem.destination:
        raise ProblemError(
            f"{what}: its destination is {schedule.destination!r}, the scenario's is "
            f"{problem.destination!r}; plan anew"
        )
    for route in schedule.routes:
        for host in (route.source, *route.hosts):
            if host not in problem.host_index:
                raise ProblemError(
                    f"{what}: host {host!r} takes no part in the scenario; plan anew"
                    + nearest_hint(host, problem.names)
                )
    columns = schedule.columns
    if len(columns) and not columns.start_s.min() >= 0:
        raise ProblemError(
            f"the schedule: start_s must be >= 0, got {columns.start_s.min():g}; plan anew"
        )
    arriving: dict[str, int] = dict.fromkeys(problem.sources, 0)
    for route_number, hop, n_bytes in zip(
        columns.route.tolist(), columns.hop.tolist(), columns.n_bytes.tolist(), strict=True
    ):
        route = schedule.routes[route_number]
        if hop == len(route.hosts) - 2:
            arriving[route.source] = arriving.get(route.source, 0) + n_bytes
    expected = {problem.names[p.source]: 0 for p in problem.parcels}
    for parcel in problem.parcels:
        expected[problem.names[parcel.source]] += parcel.n_bytes
    for source, n_bytes in arriving.items():
        if n_bytes != expected.get(source, 0):
            raise ProblemError(
                f"{what}: it collects {n_bytes} bytes of {source!r}, which holds "
                f"{expected.get(source, 0)}; plan anew, with the same seed and scale"
            )


def require_room(schedule: Schedule, relay_buffer_bytes: int | None) -> None:
    """Refuse a store-and-forward plan whose relays would have to hold more than they may.

    A relay forwards a piece once it is entirely there: with less room it would wait for ever.
    """
    if schedule.slot_s is None or relay_buffer_bytes is None:
        return
    stored = schedule.peak_storage_bytes
    host = max(stored, key=stored.__getitem__, default=None)
    if host is not None and stored[host] > relay_buffer_bytes:
        raise ProblemError(
            f"relay_buffer_bytes must be >= {stored[host]}, which the plan in slots stores at "
            f"{host!r}, got {relay_buffer_bytes}; raise it, shorten method.slot_s, or leave out "
            "method.slot_s: pipelined plans need no such room"
        )


def _streams(problem: Problem, method: Mapping[str, Any]) -> dict[str, int]:
    """Connections of each source of a direct collection."""
    holders = list(dict.fromkeys(problem.names[parcel.host] for parcel in problem.parcels))
    total = method["total_streams"]
    if method["streams_as"] is not None:
        other = plan(problem, method, method["streams_as"])
        total = max(len(holders), n_connections(other, method))
    if total is None:
        return dict.fromkeys(holders, method["streams"])
    if total < len(holders):
        raise ProblemError(
            f"method.total_streams must be >= {len(holders)}, one for each source, got {total}"
        )
    if method["streams_shared"] == "by-data":
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
