"""Checks that a schedule fits a scenario: its data, and the room that relays have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, nearest_hint

if TYPE_CHECKING:
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


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
            f"{problem.destination!r}; plan again"
        )
    for route in schedule.routes:
        for host in (route.source, *route.hosts):
            if host not in problem.host_index:
                raise ProblemError(
                    f"{what}: host {host!r} takes no part in the scenario; plan again"
                    + nearest_hint(host, problem.names)
                )
    start_s = schedule.columns.start_s
    if len(start_s) and not start_s.min() >= 0:
        raise ProblemError(f"the schedule: start_s must be >= 0, got {start_s.min():g}; plan again")
    expected = _bytes_of_sources(problem)
    for source, n_bytes in _bytes_collected(schedule, problem).items():
        if n_bytes != expected.get(source, 0):
            raise ProblemError(
                f"{what}: it collects {n_bytes} bytes of {source!r}, which holds "
                f"{expected.get(source, 0)}; plan again, with the same seed and scale"
            )


def _bytes_collected(schedule: Schedule, problem: Problem) -> dict[str, int]:
    """Return what the schedule brings to the destination, by the source that it is of."""
    columns = schedule.columns
    collected = dict.fromkeys(problem.sources, 0)
    for number, hop, n_bytes in zip(
        columns.route.tolist(), columns.hop.tolist(), columns.n_bytes.tolist(), strict=True
    ):
        route = schedule.routes[number]
        if hop == len(route.hosts) - 2:
            collected[route.source] = collected.get(route.source, 0) + n_bytes
    return collected


def _bytes_of_sources(problem: Problem) -> dict[str, int]:
    """Return what has to come to the destination, by the source that it is of."""
    expected: dict[str, int] = {}
    for parcel in problem.parcels:
        source = problem.names[parcel.source]
        expected[source] = expected.get(source, 0) + parcel.n_bytes
    return expected


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
