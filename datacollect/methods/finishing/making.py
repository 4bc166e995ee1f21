"""Assembly of schedules from routes and transfers: the one place in which methods make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from datacollect.schedule.schedule import Schedule

if TYPE_CHECKING:
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.contents import ScheduleRemarks
    from datacollect.schedule.data.transfers import Bottleneck, Route, Transfers


def schedule_of(
    problem: Problem,
    method: str,
    transfers: tuple[tuple[Route, ...], Transfers],
    bound: tuple[float, Bottleneck],
    *,
    slot_s: float | None = None,
    chunk_s: float | None = None,
    solver: str,
    **more: Unpack[ScheduleRemarks],
) -> Schedule:
    """Return the schedule of some transfers; nothing is judged yet, see `judging`.

    Parameters
    ----------
    problem : Problem
    method : str
    transfers : tuple of (tuple of Route, Transfers)
        The routes, and what moves on them.
    bound : tuple of (float, Bottleneck)
        The lower bound, in seconds, and what binds.
    slot_s, chunk_s : float, optional
        One of both.
    solver : str
    **more
        Other attributes of the schedule.
    """
    routes, columns = transfers
    lower_bound_s, bottleneck = bound
    return Schedule(
        method=method,
        destination=problem.destination,
        makespan_s=float(columns.finish_s.max(initial=0.0)),
        lower_bound_s=lower_bound_s,
        slot_s=slot_s,
        chunk_s=chunk_s,
        solver=solver,
        problem_sha256=problem.sha256,
        routes=routes,
        columns=columns,
        bottleneck=bottleneck,
        hosts=problem.names,
        **more,
    )
