"""The judge of schedules.

From first principles: no method and no solver has a say. Each rule of "A valid schedule" in
docs/formats.md is a function, tried in the order of `RULES`; later ones rely on what earlier ones
have proved. What they tolerate stands there, too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import ScheduleError, nearest_hint
from datacollect.files.clock import instant_text
from datacollect.files.kinds import shown
from datacollect.problem.cycles import has_windows
from datacollect.schedule.check.capacity import within_capacity
from datacollect.schedule.check.case import MOST_SLOTS, Case, describe_route, first_true, seconds
from datacollect.schedule.check.causality import leave_after_arrival, leave_in_later_slot
from datacollect.schedule.check.completeness import every_byte_once
from datacollect.schedule.check.production import leave_after_being_made
from datacollect.schedule.check.storage import within_storage
from datacollect.schedule.data.tolerances import BOUND_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.contents import ScheduleContents
    from datacollect.schedule.data.transfers import Route


def check_schedule(problem: Problem, schedule: ScheduleContents) -> None:
    """Prove that a schedule is valid for a problem.

    The problem need not be the one that the schedule was made for: bandwidths may have been
    measured again since.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule

    Raises
    ------
    ScheduleError
        The first broken rule: what, where, when and by how much.

    Notes
    -----
    Where the rules' words allow several readings, this one holds: instants that the schedule gives
    are compared exactly, `makespan_s` too; on the grid, and a hundredth of the makespan, is what is
    so in decimals, each rounded to a double; each part of a byte leaves a relay in a later slot;
    only data that lie at their source wait for its release; the destination stores what it likes.
    `within_capacity` and `within_storage` say what rounding they allow. `lower_bound_s` must not
    exceed `makespan_s` by more than a byte per route can save.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> plan = dc.direct(problem)
    >>> check_schedule(problem, plan)
    >>> check_schedule(problem.replace(bandwidth_bytes_per_s=[[4.0]]), plan)
    Traceback (most recent call last):
        ...
    datacollect.errors.ScheduleError: link 'S' -> 'D': ...
    """
    case = Case(_listed(problem, schedule), schedule)
    for rule in RULES:
        rule(case)


def _listed(problem: Problem, schedule: ScheduleContents) -> Problem:
    """Return the problem with its windows listed as far as the schedule moves data."""
    last_s = float(schedule.columns.finish_s.max(initial=0.0))
    return problem.until(last_s) if has_windows(problem) and math.isfinite(last_s) else problem


def _same_destination(case: Case) -> None:
    """The schedule leads to the destination of the problem."""
    destination = case.schedule.destination
    if destination != case.problem.destination:
        raise ScheduleError(
            f"the schedule leads to {destination!r}, the problem's destination is "
            f"{case.problem.destination!r}"
        )


def _slot_or_chunk(case: Case) -> None:
    """A schedule is slotted or pipelined, not both, not neither."""
    slot_s, chunk_s = case.schedule.slot_s, case.schedule.chunk_s
    if (slot_s is None) == (chunk_s is None):
        raise ScheduleError(
            f"a schedule has either slot_s or chunk_s, got slot_s = {slot_s} and chunk_s = "
            f"{chunk_s}"
        )
    if slot_s is not None and not 0 < slot_s < math.inf:
        raise ScheduleError(f"slot_s must be positive and finite, got {slot_s}")
    if chunk_s is not None and not 0 <= chunk_s < math.inf:
        raise ScheduleError(f"chunk_s must be >= 0 and finite, got {chunk_s}")


def _routes_exist(case: Case) -> None:
    """Routes lead from where data are over links of the problem to the destination."""
    problem, routes = case.problem, tuple(dict.fromkeys(case.schedule.routes))
    may_repeat = bool(np.isfinite(problem.storage_bytes).any())
    for route in routes:
        _reject_bad_route(problem, route, may_repeat)
    index = problem.host_index
    pairs = [pair for route in routes for pair in zip(route.hosts, route.hosts[1:], strict=False)]
    link = problem.link_indices([index[a] for a, _ in pairs], [index[b] for _, b in pairs])
    missing = first_true(link < 0)
    if missing is not None:
        one, two = pairs[missing]
        route = next(r for r in routes if (one, two) in zip(r.hosts, r.hosts[1:], strict=False))
        raise ScheduleError(f"{_of(route)}: the problem has no link {one!r} -> {two!r}")


def _reject_bad_route(problem: Problem, route: Route, may_repeat: bool) -> None:
    for name in (route.source, *route.hosts):
        if name not in problem.host_index:
            raise ScheduleError(
                f"{_of(route)}: unknown host {shown(name)}{nearest_hint(name, problem.names)}"
            )
    if problem.backlog_bytes[problem.host_index[route.source]] == 0:
        raise ScheduleError(f"{_of(route)}: host {route.source!r} has no backlog in the problem")
    if route.n_hops < 1:
        raise ScheduleError(f"{_of(route)}: a route needs at least two hosts")
    if route.hosts[-1] != problem.destination:
        raise ScheduleError(
            f"{_of(route)}: it ends at {route.hosts[-1]!r} instead of the destination "
            f"{problem.destination!r}"
        )
    if problem.destination in route.hosts[:-1]:
        raise ScheduleError(
            f"{_of(route)}: it passes the destination before its end; data that have arrived at "
            "the destination need not move"
        )
    if not may_repeat and len(set(route.hosts)) < len(route.hosts):
        twice = next(name for name in route.hosts if route.hosts.count(name) > 1)
        raise ScheduleError(
            f"{_of(route)}: it visits {twice!r} {route.hosts.count(twice)} times; only storage "
            "limits make that necessary, and the problem has none"
        )


def _transfers_are_well_formed(case: Case) -> None:
    """Each moves some bytes of its source over a hop of its route, and takes some time."""
    columns, routes = case.schedule.columns, case.schedule.routes
    row = first_true((columns.route < 0) | (columns.route >= len(routes)))
    if row is not None:
        raise ScheduleError(
            f"transfer {row}: route must be 0 ... {len(routes) - 1}, got {columns.route[row]}"
        )
    n_hops = np.array([route.n_hops for route in routes], dtype=np.int64)[columns.route]
    row = first_true((columns.hop < 0) | (columns.hop >= n_hops))
    if row is not None:
        raise ScheduleError(
            f"transfer {row} on {_of(routes[columns.route[row]])}: hop must be 0 ... "
            f"{n_hops[row] - 1}, got {columns.hop[row]}"
        )
    for wrong, rule, got in (
        (columns.n_bytes <= 0, "bytes must be > 0", columns.n_bytes),
        (columns.streams < 1, "streams must be >= 1", columns.streams),
        (~np.isfinite(columns.start_s), "start_s must be finite", columns.start_s),
        (~np.isfinite(columns.finish_s), "finish_s must be finite", columns.finish_s),
        (columns.start_s < 0, "start_s must be >= 0", columns.start_s),
        (columns.finish_s <= columns.start_s, "finish_s must be after start_s", columns.finish_s),
    ):
        row = first_true(wrong)
        if row is not None:
            raise ScheduleError(f"{case.describe(row)}: {rule}, got {got[row]}")
    backlog = case.problem.backlog_bytes[case.legs.source]
    # Not offset + bytes > backlog: the sum may be too large for 64 bits.
    row = first_true(
        (columns.offset_bytes < 0) | (columns.offset_bytes > backlog - columns.n_bytes)
    )
    if row is not None:
        raise ScheduleError(
            f"{case.describe(row)}: the range must lie within the backlog of {backlog[row]} bytes"
        )


def _on_the_grid(case: Case) -> None:
    """Starts and finishes are multiples of the slot, as both are written in decimals."""
    slot_s, columns = case.schedule.slot_s, case.schedule.columns
    if slot_s is None:
        return
    last_s = float(columns.finish_s.max(initial=0.0))
    if last_s / slot_s > MOST_SLOTS:
        raise ScheduleError(
            f"slot_s must be at least 1/2^53 of the last finish, {seconds(last_s)}, so that slots "
            f"can be counted, got {seconds(slot_s)}"
        )
    for what, time_s, slot in zip(
        ("starts", "finishes"), (columns.start_s, columns.finish_s), case.times, strict=True
    ):
        # Most are the very product.
        rows = np.flatnonzero(slot * slot_s != time_s)
        low, high = case.slots_around(time_s[rows])
        at = first_true(low < high)
        if at is not None:
            off = int(rows[at])
            off_s = abs(time_s[off] - slot[off] * slot_s)
            raise ScheduleError(
                f"{case.describe(off)}: it {what} at {seconds(time_s[off])}, "
                f"{seconds(off_s)} off the grid of slots of {seconds(slot_s)}"
            )
    row = first_true(case.slot[0] >= case.slot[1])
    if row is not None:
        raise ScheduleError(f"{case.describe(row)}: it is shorter than a slot")


def _nothing_before_release(case: Case) -> None:
    """Data that lie at their source leave it when they are released, or later."""
    where, (start, _) = case.legs, case.times
    release_s = case.problem.release_s
    # Data that are released inside a slot can leave in the next.
    release = release_s if case.schedule.slot_s is None else case.slots_around(release_s)[1]
    own = (where.hop == 0) & (where.tail == where.source)
    row = first_true(own & (start < release[where.source]))
    if row is not None:
        released_s = release_s[where.source[row]]
        early_s = released_s - case.schedule.columns.start_s[row]
        raise ScheduleError(
            f"{case.describe(row)}: it leaves {seconds(early_s)} before the release of "
            f"{case.problem.names[where.source[row]]!r} at "
            f"{instant_text(released_s, case.problem.clock)}"
        )


def _relays_send_what_they_have(case: Case) -> None:
    """A byte leaves a relay after it has arrived; with slots, in a later one."""
    if case.schedule.slot_s is None:
        leave_after_arrival(case)
    else:
        leave_in_later_slot(case)


def _makespan_is_last_arrival(case: Case) -> None:
    """`makespan_s` is the last arrival at the destination, to its last digit."""
    finish_s = case.schedule.columns.finish_s[case.legs.is_last]
    last_s, makespan_s = float(finish_s.max(initial=0.0)), case.schedule.makespan_s
    if makespan_s != last_s:
        raise ScheduleError(
            f"makespan_s must be when the last byte reaches {case.problem.destination!r}, "
            f"{seconds(last_s)}, got {seconds(makespan_s)}: {seconds(makespan_s - last_s)} off"
        )


def _not_below_lower_bound(case: Case) -> None:
    """No schedule ends before its lower bound, but for bytes that round."""
    bound_s, makespan_s = case.schedule.lower_bound_s, case.schedule.makespan_s
    if case.problem.n_periods > 1:
        return  # a byte less may end any time sooner, as before hours without capacity
    # Each route may carry a byte too much; of a handful of bytes that is a large part, or all.
    routes = np.bincount(
        [case.problem.host_index[route.source] for route in set(case.schedule.routes)],
        minlength=case.problem.n_hosts,
    )
    rounded = (routes / np.maximum(case.problem.backlog_bytes, 1)).max(initial=0.0)
    least_s = bound_s * max(1 - BOUND_TOLERANCE - rounded, 0.0)
    if math.isfinite(bound_s) and least_s > makespan_s:
        raise ScheduleError(
            f"lower_bound_s must not exceed makespan_s, got {seconds(bound_s)} and "
            f"{seconds(makespan_s)}: {seconds(bound_s - makespan_s)} more"
        )


def _of(route: Route) -> str:
    return f"route {describe_route(route)} of {shown(route.source)}"


RULES: tuple[Callable[[Case], None], ...] = (
    _same_destination,
    _slot_or_chunk,
    _routes_exist,
    _transfers_are_well_formed,
    every_byte_once,
    _on_the_grid,
    _nothing_before_release,
    leave_after_being_made,
    _relays_send_what_they_have,
    within_capacity,
    within_storage,
    _makespan_is_last_arrival,
    _not_below_lower_bound,
)
