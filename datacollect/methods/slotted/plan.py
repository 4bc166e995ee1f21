"""The slotted coordinated plan: a flow through the time-expanded graph.

First the fewest slots in which everything can arrive, or as many as a deadline allows; then, with
that many slots, the flow that is cheapest by the preference. The method of Chou et al. (2002) and
of Cheng et al., "On a graph-theoretic approach to scheduling large-scale data transfers"
(CS-TR-4322, University of Maryland, 2002), on the few arcs of the graph that matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, ProblemError, TimeLimitError
from datacollect.files.clock import deadline_text, instant_text
from datacollect.files.units import format_duration
from datacollect.flow.network.layered import breakpoints_s, with_room_for_returns
from datacollect.flow.network.preference import DEFAULT, path_costs
from datacollect.flow.network.smallest_sufficient import NoneSuffices, smallest
from datacollect.flow.quickest.bottleneck import never_arrives
from datacollect.methods.finishing.making import schedule_of
from datacollect.methods.options.names import COORDINATED
from datacollect.methods.slotted.bound import slots_at_least
from datacollect.methods.slotted.graph import TimeExpansion
from datacollect.methods.slotted.paths import Jobs, slotted_pieces
from datacollect.methods.slotted.pricing import cheapest
from datacollect.methods.slotted.search import (
    PartialGraph,
    first_links,
    may_suffice,
    partial_graph,
    saturating,
)
from datacollect.methods.slotted.shared import cheapest_shared, shared_suffices
from datacollect.methods.timing.slots import (
    MOST_SLOTS,
    fewest_slots,
    require_slots,
    slot_bandwidth_bytes_per_s,
    slot_limits_bytes_per_s,
    slots_until,
    slots_within,
    slotted_transfers,
    whole_slot_bytes,
)
from datacollect.problem.cycles import has_windows, stranded_hosts
from datacollect.problem.listing import listing_ends, no_whole_slot
from datacollect.schedule.data.contents import HEURISTIC, OPTIMAL, TIME_LIMIT
from datacollect.solvers.networks import reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from datacollect.files.choices import Preference
    from datacollect.flow.optimum import FluidOptimum
    from datacollect.methods.slotted.graph import TimeExpandedGraph
    from datacollect.methods.slotted.search import Found
    from datacollect.numbers.arrays import BoolArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.budget import Budget


def slotted_schedule(
    problem: Problem,
    optimum: FluidOptimum,
    slot_s: float,
    budget: Budget,
    prefer: Preference = DEFAULT,
    deadline_s: float | None = None,
) -> Schedule:
    """Return the plan with fewest slots, or within a deadline, that is best by the preference.

    Parameters
    ----------
    problem : Problem
    optimum : FluidOptimum
    slot_s : float
        Length of a slot in seconds.
    budget : Budget
    prefer : str
        A key of ``PREFERENCES`` in `datacollect.flow.network.preference`.
    deadline_s : float, optional
        The plan may take all whole slots that end by then; without it, as few as possible.

    Raises
    ------
    InfeasibleError
        Not all can arrive in slots of this length, or not by the deadline.
    """
    jobs: Jobs = []
    pieces = np.zeros((0, 4), dtype=np.int64)
    status, solver = OPTIMAL, optimum.solver
    if problem.total_bytes:
        graph, flow, status, solver = _plan(problem, optimum, slot_s, budget, prefer, deadline_s)
        jobs, pieces = slotted_pieces(graph, flow)
    return schedule_of(
        problem,
        COORDINATED,
        slotted_transfers(problem, jobs, pieces, slot_s),
        (optimum.makespan_s, optimum.bottleneck),
        slot_s=slot_s,
        solver=solver,
        status=status,
    )


def _plan(
    problem: Problem,
    optimum: FluidOptimum,
    slot_s: float,
    budget: Budget,
    prefer: Preference,
    deadline_s: float | None,
) -> tuple[TimeExpandedGraph, IntArray, str, str]:
    """Return graph, flow, status and solvers."""
    fewest = fewest_slots(optimum.makespan_s, slot_s)
    require_slots(fewest)
    allowed = None if deadline_s is None else _allowed_slots(deadline_s, slot_s)
    links = first_links(problem, optimum, max(fewest, allowed or 0), budget)
    require_arrival(problem, slot_s, links, budget)

    undecided: list[int] = []

    def attempt(n_slots: int) -> Found | None:
        return flow_in_slots(problem, slot_s, n_slots, links, budget, undecided)

    status = HEURISTIC if prefer == "storage" and _may_lie_at_owner(problem) else OPTIMAL
    if allowed is None:
        part, flow = attempt(fewest) or _with_fewest(
            attempt, max(fewest + 1, slots_at_least(problem, slot_s, budget)), problem, slot_s
        )
        n_slots = part.graph.n_slots
        if n_slots > fewest and might_need_fewer(problem, slot_s, n_slots, links, budget):
            status = HEURISTIC
    else:
        found = attempt(allowed) if allowed >= fewest else None
        if found is None and undecided:  # in fewer slots whole bytes may be found nevertheless
            found = next(filter(None, map(attempt, _fewer(fewest, allowed))), None)
        if found is None:
            least_slots = max(fewest, allowed + 1, slots_at_least(problem, slot_s, budget))
            earliest, _ = _with_fewest(attempt, least_slots, problem, slot_s)
            raise _too_early(
                problem, optimum, deadline_s or 0.0, slot_s, earliest.graph.n_slots, undecided
            )
        part, flow = found
    lengths = np.full(part.graph.n_slots, slot_s)
    costs = path_costs(problem, prefer, lengths, part.graph.n_nodes)
    if problem.shared:
        (part, flow), is_proved = cheapest_shared(problem, (part, flow), costs, budget)
        if undecided or not is_proved:
            status = HEURISTIC
        return part.graph, flow, status, budget.linear_solver().name
    try:
        part, flow = cheapest(part, costs, budget)
        return part.graph, flow, status, budget.flow_solver().name
    except TimeLimitError:
        # The flow is complete; only the preference is not met.
        return part.graph, flow, TIME_LIMIT, optimum.solver


def _fewer(fewest: int, allowed: int) -> Iterator[int]:
    """Yield a few numbers of slots below what is allowed, near and far."""
    step = 1
    while allowed - step >= fewest:
        yield allowed - step
        step *= 2


def _with_fewest(
    attempt: Callable[[int], Found | None], first: int, problem: Problem, slot_s: float
) -> Found:
    """Return what comes of the fewest slots that suffice, from a first number on.

    Once nothing changes any more, slots in which nothing moves can be left out, and no byte has to
    pass a host twice. So many more slots help nobody; where bytes are few that is soon.
    """
    if has_windows(problem):
        return _with_fewest_listed(attempt, first, problem, slot_s)
    last = slots_until(float(breakpoints_s(problem)[-1]), slot_s)
    most = max(first, last) + problem.total_bytes * problem.n_hosts
    try:
        return smallest(attempt, first, most)
    except NoneSuffices:
        raise _never_in_slots(
            problem, slot_s, sorted({parcel.host for parcel in problem.parcels})
        ) from None


def _with_fewest_listed(
    attempt: Callable[[int], Found | None], first: int, problem: Problem, slot_s: float
) -> Found:
    """Return what comes of the fewest slots that suffice among those that are listed."""
    assert problem.daily is not None
    most = slots_within(problem.daily.until_s, slot_s)
    try:
        if first <= most:
            return smallest(attempt, first, most)
    except NoneSuffices:
        pass
    raise listing_ends(problem, problem.sources)


def _may_lie_at_owner(problem: Problem) -> bool:
    """Say whether data held elsewhere can get back to their owner, where they are not others'.

    The graph cannot tell them from others' there: a plan that stores less may send them back.
    """
    onwards = problem.link_to != problem.destination_index
    tail, head = problem.link_from[onwards], problem.link_to[onwards]
    homes: dict[int, list[int]] = {}
    for parcel in problem.parcels:
        if parcel.host != parcel.source:
            homes.setdefault(parcel.host, []).append(parcel.source)
    return any(
        reachable(problem.n_hosts, tail, head, host)[owners].any() for host, owners in homes.items()
    )


def might_need_fewer(
    problem: Problem, slot_s: float, n_slots: int, links: IntArray, budget: Budget
) -> bool:
    """Say whether a slot less might do if data held elsewhere may return to their owner."""
    relaxed = with_room_for_returns(problem)
    if relaxed is None:
        return False
    part = partial_graph(relaxed, slot_s, n_slots - 1, links)
    return emptying(part, budget) is not None


def _allowed_slots(deadline_s: float, slot_s: float) -> int:
    """Return how many whole slots end by the deadline."""
    if deadline_s / slot_s >= MOST_SLOTS:
        raise ProblemError(
            f"deadline_s = {deadline_s:.15g} allows {deadline_s / slot_s:.3g} slots of {slot_s:g} "
            f"s, at most {MOST_SLOTS} are allowed; use a longer slot or an earlier deadline"
        )
    return slots_within(deadline_s, slot_s)


def flow_in_slots(
    problem: Problem,
    slot_s: float,
    n_slots: int,
    links: IntArray,
    budget: Budget,
    undecided: list[int] | None = None,
) -> Found | None:
    """Return a flow in a number of slots, beginning with some links; None if none is found.

    `undecided` gets the number of slots where there may be a flow nevertheless.
    """
    expansion = TimeExpansion(problem, slot_s, n_slots)
    if not may_suffice(expansion):
        return None
    return emptying(PartialGraph.in_all_slots(expansion, links), budget, undecided)


def emptying(
    part: PartialGraph, budget: Budget, undecided: list[int] | None = None
) -> Found | None:
    """Return a graph, and a flow through it that empties all pools; None if none is found."""
    problem = part.expansion.problem
    if problem.shared:
        return shared_suffices(problem, part, budget, undecided)
    return saturating(part, budget)


def _too_early(
    problem: Problem,
    optimum: FluidOptimum,
    deadline_s: float,
    slot_s: float,
    n_slots: int,
    undecided: list[int],
) -> InfeasibleError:
    late = format_duration(n_slots * slot_s - deadline_s)
    # Of whole bytes in fewer slots neither a plan nor a proof may have been found.
    how_sure = "as far as is known" if undecided else "at the soonest"
    return InfeasibleError(
        f"{deadline_text(deadline_s, problem.clock)} is too early: in slots of {slot_s:g} s "
        f"all can have arrived after {n_slots} slots, "
        f"{instant_text(n_slots * slot_s, problem.clock)}, {how_sure}, {late} later. "
        f"{optimum.bottleneck.text}",
        optimum.bottleneck.hosts,
    )


def require_arrival(problem: Problem, slot_s: float, links: IntArray, budget: Budget) -> None:
    """Raise unless everything arrives in some number of slots.

    After the last change of bandwidth, data arrive some day wherever links and relays with
    storage lead to the destination; data elsewhere must have got there by then. What recurs never
    changes for the last time: there one cycle tells.
    """
    if has_windows(problem):
        stranded = stranded_hosts(problem, slot_s)
        if stranded:
            raise no_whole_slot(problem, slot_s) or _never_in_slots(problem, slot_s, stranded)
        return
    last = slots_until(float(breakpoints_s(problem)[-1]), slot_s)
    arriving = _eventually_arriving(problem, slot_s, last)
    stranded = sorted({parcel.host for parcel in problem.parcels if not arriving[parcel.host]})
    if not stranded:
        return
    if last == 0:
        raise _never_in_slots(problem, slot_s, stranded)
    require_slots(last)
    exits = np.flatnonzero(arriving)
    undecided: list[int] = []
    part = partial_graph(problem, slot_s, last, links, exits)
    if emptying(part, budget, undecided) is None and not undecided:
        raise _never_in_slots(problem, slot_s, stranded)


def _eventually_arriving(problem: Problem, slot_s: float, slot: int) -> BoolArray:
    """Mark the hosts from which whole bytes get through in slots of the last period."""
    rate = slot_bandwidth_bytes_per_s(problem, max(slot, 1), slot_s)
    usable = whole_slot_bytes(rate, slot_s, 1) > 0
    for shared, links in zip(problem.shared, problem.shared_links, strict=True):
        if shared.bandwidth_bytes_per_s * slot_s < 1:
            usable[links] = False
    uplink, downlink = slot_limits_bytes_per_s(problem, max(slot, 1), slot_s)
    usable &= uplink[problem.link_from] * slot_s >= 1
    usable &= downlink[problem.link_to] * slot_s >= 1
    stores = problem.storage_bytes >= 1
    stores[problem.destination_index] = True
    usable &= stores[problem.link_to]
    tail, head = problem.link_from[usable], problem.link_to[usable]
    return reachable(problem.n_hosts, head, tail, problem.destination_index)


def _never_in_slots(problem: Problem, slot_s: float, hosts: list[int]) -> InfeasibleError:
    names = [problem.names[host] for host in hosts]
    error = never_arrives(problem, names)
    return InfeasibleError(
        f"in slots of {slot_s:g} s {error}; or use longer slots (a link must carry a whole byte "
        "per slot) and relays with storage",
        names,
    )
