"""Replanning: a schedule for what remains, close to the old one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import InfeasibleError, ProblemError
from datacollect.files.with_units import DURATION, PART, in_units
from datacollect.flow.network.layered import breakpoints_s, n_changes
from datacollect.flow.optimum import fluid_optimum, listed_optimum
from datacollect.flow.quickest.bottleneck import name_hosts, never_ends
from datacollect.flow.quickest.quickest import NeverArrives
from datacollect.methods.coordinated.coordinated import coordinated_candidate
from datacollect.methods.coordinated.spec import CoordinatedOptions
from datacollect.methods.finishing.derating import NOT_DERATED, planned_on_part
from datacollect.methods.finishing.file_cuts import with_cuts_at_files
from datacollect.methods.finishing.judging import judged
from datacollect.methods.finishing.making import schedule_of
from datacollect.methods.options.arguments import default_chunk_s, require_shape, shape_in_seconds
from datacollect.methods.options.names import COORDINATED
from datacollect.methods.replanning.earliest_end import lower_bound_of, proved_optimum
from datacollect.methods.replanning.stable_flow import OldPlan, OldUse, stable_plan
from datacollect.methods.replanning.stable_slots import stable_slots
from datacollect.methods.slotted.paths import slotted_pieces
from datacollect.methods.timing.long_chunks import require_room_for_chunks, short_chunk_s
from datacollect.methods.timing.pipeline import longest_pipeline, pipelined_transfers
from datacollect.methods.timing.slots import slotted_transfers
from datacollect.methods.timing.tolerances import PROVED
from datacollect.problem.listing import listing_ends, may_end_later
from datacollect.schedule.data.belonging import require_belonging
from datacollect.schedule.data.contents import HEURISTIC, OPTIMAL
from datacollect.schedule.progress import Progress, remaining_problem
from datacollect.solvers.budget import Budget

if TYPE_CHECKING:
    from datacollect.files.choices import Preference
    from datacollect.files.quantities import Seconds
    from datacollect.flow.routes.fluid_plan import FluidPlan
    from datacollect.methods.replanning.earliest_end import ProvedOptimum
    from datacollect.numbers.arrays import IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.registry import Solver


# A new plan may end this much later (relative) to keep to the old plan's links.
STABILITY = 0.01


def replan(
    problem: Problem,
    plan: Schedule,
    progress: Progress | Mapping[str, Any],
    *,
    slot_s: Seconds | None = None,
    chunk_s: Seconds | None = None,
    prefer: Preference | None = None,
    stability: float = STABILITY,
    solver: Solver = "auto",
    time_limit_s: Seconds | None = None,
) -> Schedule:
    """Plan what remains of a collection, with few changes to the plan that is under way.

    Among the schedules that end within `stability` of the earliest possible end, it is one that
    sends the fewest bytes over links that the old plan does not use. If the old plan's links
    alone suffice, it is the fastest on them. What is left open goes to the fewest bytes beyond
    what the old plan would still send over each link, and to the fewest hops.

    Parameters
    ----------
    problem : Problem
        What the plan was made for.
    plan : Schedule
        The plan under way, of any method.
    progress : Progress or mapping
        What lies where now, and what has changed; or the tree of a progress file.
    slot_s, chunk_s : float or str, optional
        As in `coordinated`; by default the plan's.
    prefer : str, optional
        Choose among the fastest schedules as `coordinated` does, whatever the old plan's links.
    stability : float
        How much later than possible the new plan may end, as a part of its duration.
    solver : str
        ``"auto"``, the fastest that is installed, or a name of `datacollect.solvers.registry`.
    time_limit_s : float or str, optional
        Stop after this many seconds, or after a time such as ``"1 h"``.

    Returns
    -------
    Schedule
        For ``remaining_problem(problem, progress)``: its time 0 is ``progress.at_s``.

    Raises
    ------
    InfeasibleError
        Some data cannot reach the destination any more, for instance those of a lost source.
    ProblemError
        The plan or the progress does not belong to the problem, or an argument is out of range.
    TimeLimitError
        Nothing was complete when the time limit passed.

    Notes
    -----
    The old plan's links are planned on alone, and with few others where these are needed; all
    others serve to prove that nothing better exists. In slots, ends are counted in slots.

    A plan that was made on a part of all bandwidths (`derate`) is followed by one on the same part.
    A limit of transfers at once (`most_transfers`) is not kept.

    Examples
    --------
    Half of the data have arrived when the link turns out half as fast:

    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
    >>> plan = dc.coordinated(problem)
    >>> rest = dc.replan(
    ...     problem,
    ...     plan,
    ...     {
    ...         "format": "datacollect-progress/1",
    ...         "at_s": 2.0,
    ...         "held": [{"host": "D", "source": "S", "offset_bytes": 0, "bytes": 10}],
    ...         "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 2.5}],
    ...     },
    ... )
    >>> rest.makespan_s
    4.0
    """
    if isinstance(progress, Mapping):
        progress = Progress.from_dict(progress, problem)
    if not 0 <= in_units(stability, PART, "stability") < float("inf"):
        raise ProblemError(f"stability must be >= 0 and finite, got {stability}; 0.01 is 1 %")
    require_belonging(problem, plan)
    slot_s, chunk_s = shape_in_seconds(slot_s, chunk_s)
    time_limit_s = in_units(time_limit_s, DURATION, "time_limit_s")
    inherits = slot_s is None and chunk_s is None
    if inherits:
        slot_s, chunk_s = plan.slot_s, plan.chunk_s if plan.slot_s is None else None
    require_shape(slot_s, chunk_s)
    at_s, remaining = progress.at_s, remaining_problem(problem, progress)
    _require_survivors(remaining, progress)
    budget = Budget.begin(solver, time_limit_s)
    if inherits and chunk_s and np.isfinite(remaining.storage_bytes).any():
        # Of what little is left, the old plan's chunk may be too large a part.
        chunk_s = short_chunk_s(chunk_s, listed_optimum(remaining, budget)[1].makespan_s)

    def plan_remaining(remaining: Problem) -> Schedule:
        # What sources make is planned by hidden hosts, which no old plan has.
        if prefer is not None or remaining.total_bytes == 0 or len(remaining.makers):
            options = CoordinatedOptions(slot_s=slot_s, chunk_s=chunk_s, prefer=prefer)
            return coordinated_candidate(remaining, options, budget)
        if slot_s is not None:
            return _in_slots(remaining, plan, at_s, slot_s, stability, budget)
        return _pipelined(remaining, plan, at_s, chunk_s, stability, budget)

    def plan_derated(remaining: Problem) -> Schedule:
        if plan.derate is None:
            return plan_remaining(remaining)
        return planned_on_part(remaining, plan.derate, budget, plan_remaining)

    def with_room(remaining: Problem) -> Schedule:
        return require_room_for_chunks(remaining, plan_derated(remaining))

    def in_slots(remaining: Problem, slot_s: float) -> Schedule:
        options = CoordinatedOptions(slot_s=slot_s, derate=plan.derate or NOT_DERATED)
        return coordinated_candidate(remaining, options, budget)

    return judged(
        remaining,
        with_room,
        None if prefer is None else with_cuts_at_files,
        in_slots=in_slots if slot_s is None else None,
    )


def replanned(
    problem: Problem, plan: Schedule, progress: Progress, options: CoordinatedOptions
) -> Schedule:
    """Plan what remains by the options of the plan under way."""
    return replan(
        problem,
        plan,
        progress,
        prefer=options.prefer,
        solver=options.solver,
        time_limit_s=options.time_limit_s,
    )


def old_use(remaining: Problem, plan: Schedule, at_s: float) -> OldUse:
    """Return what a plan would still send over which links from `at_s` on; lost ones left out."""
    return OldPlan.of(remaining, plan, at_s).use(breakpoints_s(remaining))


def _require_survivors(remaining: Problem, progress: Progress) -> None:
    """Refuse to plan for data that only a lost host has."""
    lost = set(progress.lost_hosts)
    if not lost:
        return
    left = {name: 0 for name in remaining.names if name in lost}
    for parcel in remaining.parcels:
        if remaining.names[parcel.host] in lost:
            left[remaining.names[parcel.host]] += parcel.n_bytes
    stranded = [name for name, n_bytes in left.items() if n_bytes]
    if stranded:
        n_bytes = sum(left.values())
        raise InfeasibleError(
            f"{n_bytes} bytes lie at {name_hosts(stranded)} only, which lost_hosts names as lost: "
            "they cannot arrive; set the backlog to what lies elsewhere, or wait until the host "
            "is back",
            stranded,
        )


def _in_slots(
    remaining: Problem,
    plan: Schedule,
    at_s: float,
    slot_s: float,
    stability: float,
    budget: Budget,
) -> Schedule:
    old = OldPlan.of(remaining, plan, at_s)
    optimum = _proved_optimum(remaining, old.links, budget)
    bound = lower_bound_of(remaining, optimum, budget)
    found = stable_slots(remaining, old, optimum, bound.makespan_s, slot_s, stability, budget)
    jobs, pieces = slotted_pieces(found.graph, found.flow)
    return schedule_of(
        remaining,
        COORDINATED,
        slotted_transfers(remaining, jobs, pieces, slot_s),
        (bound.makespan_s, bound.bottleneck),
        slot_s=slot_s,
        solver=found.solver,
        status=found.status,
    )


def _proved_optimum(remaining: Problem, old_links: IntArray, budget: Budget) -> ProvedOptimum:
    try:
        # An end beyond all numbers is infinite.
        with np.errstate(over="ignore"):
            optimum = proved_optimum(remaining, old_links, 0.0, budget)
    except (NeverArrives, InfeasibleError):
        fluid_optimum(remaining, budget)  # says which data cannot arrive
        raise
    if not np.isfinite(optimum.found.makespan_s):
        raise never_ends(remaining)
    return optimum


def _pipelined(
    remaining: Problem,
    plan: Schedule,
    at_s: float,
    chunk_s: float | None,
    stability: float,
    budget: Budget,
) -> Schedule:
    old = old_use(remaining, plan, at_s)
    optimum = _proved_optimum(remaining, old.links, budget)
    bound, makespan_s = lower_bound_of(remaining, optimum, budget), optimum.found.makespan_s
    chunk = chunk_s
    if chunk is None:
        chunk = default_chunk_s(makespan_s, n_changes(breakpoints_s(remaining), makespan_s))
    latest_s = makespan_s * (1 + stability)
    try:
        fluid = _drained(remaining, old, optimum, chunk, latest_s, budget)
    except NeverArrives:
        if may_end_later(remaining, makespan_s):
            raise listing_ends(remaining, remaining.sources) from None
        # A period is so short, or all capacity ends so soon, that pipelines cannot drain.
        chunk = 0.0
        fluid = _drained(remaining, old, optimum, chunk, latest_s, budget)
    return schedule_of(
        remaining,
        COORDINATED,
        pipelined_transfers(remaining, fluid, chunk, bound.makespan_s),
        (bound.makespan_s, bound.bottleneck),
        chunk_s=chunk,
        solver=fluid.solver,
        status=OPTIMAL if bound.exact and fluid.gap <= PROVED else HEURISTIC,
    )


def _drained(
    remaining: Problem,
    old: OldUse,
    optimum: ProvedOptimum,
    chunk_s: float,
    latest_s: float,
    budget: Budget,
) -> FluidPlan:
    """Plan with pieces of time short enough for the plan's own pipelines to drain."""
    hops = 1
    fluid = stable_plan(remaining, old, optimum, 0.0, latest_s, budget)
    while len(breakpoints_s(remaining)) > 1 and chunk_s > 0 and longest_pipeline(fluid) > hops:
        hops = longest_pipeline(fluid)
        guard_s = (hops - 1) * chunk_s
        guarded = proved_optimum(remaining, old.links, guard_s, budget, optimum.links)
        fluid = stable_plan(remaining, old, guarded, guard_s, latest_s, budget)
    return fluid
