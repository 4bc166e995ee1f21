"""The best-path method: every host alone picks one route with at most one intermediate host."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, ProblemError, nearest_hint
from datacollect.files.with_units import PART, in_units
from datacollect.flow.network.layered import breakpoints_s, n_changes
from datacollect.flow.network.pools import pools_by_owner
from datacollect.flow.optimum import fluid_optimum
from datacollect.methods.best_path_spec import HYSTERESIS, BestPathOptions
from datacollect.methods.fair.slots import fair_slots
from datacollect.methods.fair.transfers import MAX_MIN_FAIR, AllAtOnce, RouteJob, fair_transfers
from datacollect.methods.finishing.derating import NOT_DERATED, planned_on_part, require_part
from datacollect.methods.finishing.judging import judged
from datacollect.methods.finishing.making import schedule_of
from datacollect.methods.leaning.assumptions import asking
from datacollect.methods.leaning.cautious import planned_cautiously
from datacollect.methods.options.arguments import default_chunk_s, require_shape, shape_in_seconds
from datacollect.methods.options.names import BEST_PATH, FIRSTS, VIA_DIRECT, VIA_RELAY
from datacollect.methods.timing.long_chunks import require_room_for_chunks
from datacollect.methods.timing.slots import require_slots
from datacollect.problem.listing import not_listed_yet
from datacollect.schedule.data.contents import HEURISTIC
from datacollect.solvers.budget import Budget

if TYPE_CHECKING:
    from datacollect.files.choices import First
    from datacollect.files.quantities import Seconds
    from datacollect.flow.network.pools import Pool
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.registry import Solver


def best_path(
    problem: Problem,
    *,
    slot_s: Seconds | None = None,
    chunk_s: Seconds | None = None,
    hysteresis: float = HYSTERESIS,
    first: First = VIA_DIRECT,
    solver: Solver = "auto",
    derate: float = NOT_DERATED,
    cautious: bool = False,
) -> Schedule:
    """Let each host choose the best route for its data alone, then run all at once.

    Candidates, in this order: the direct link, then one intermediate host after the other in the
    problem's order; or, with ``first="relay"``, the best route with one intermediate host, then the
    direct link. A candidate replaces the current best only if its available bandwidth, the
    least capacity along it, exceeds `hysteresis` times the current one's. What a host chooses
    does not depend on the others; what its data then get does: rates are max-min fair.

    Bandwidths are those of the period in which the data are released, or of the first later one
    that has a usable route.

    Parameters
    ----------
    problem : Problem
    slot_s : float or str, optional
        Relays store and forward in slots of this many seconds, or of a time such as ``"5 min"``.
    chunk_s : float or str, optional
        Relays forward what they received this long ago, in seconds or a text; default:
        1/1000 of the lower bound, or less where bandwidths change often: pipelines drain at each
        change.
    hysteresis : float
        At least 1.
    first : {"direct", "relay"}
        What others have to exceed by this factor: the direct link, or the best route with one
        intermediate host, where there is a usable one.
    solver : str
        For the lower bound that the schedule reports.
    derate : float
        Plan on this part of all links' bandwidths, above 0 and at most 1; limits of hosts and of
        shared bottlenecks, which are known, stay. The schedule is valid for the problem as it is,
        and its lower bound is the problem's own.
    cautious : bool
        Have no host send or receive more at once than was shown of it, or than direct has it do:
        the plan leans on nothing (`Schedule.assumptions`).

    Returns
    -------
    Schedule
        Valid for the problem. Its rates are max-min fair.

    Raises
    ------
    InfeasibleError
        A host with data has no usable route of at most two hops.
    ProblemError
        An argument is out of range.

    Notes
    -----
    The non-coordinated method of Chou et al. (2002), after Andersen, Balakrishnan, Kaashoek and
    Morris, "Resilient Overlay Networks" (SOSP 2001), whose 5 % hysteresis it takes over. The paper
    says "we first choose a path, p, with one intermediate host, and consider p as the current
    'best' path": that is ``first="relay"``, which leaves the direct link only to sources that gain
    more than the hysteresis by it.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "K", "D"], [[0, 3e6, 1e6], [0, 0, 2e6], [0, 0, 0]], [4_000_000, 0, 0], "D"
    ... )
    >>> dc.best_path(problem).routes[0].hosts
    ('S', 'K', 'D')
    """
    slot_s, chunk_s = shape_in_seconds(slot_s, chunk_s)
    options = BestPathOptions(
        slot_s=slot_s,
        chunk_s=chunk_s,
        hysteresis=hysteresis,
        first=first,
        solver=solver,
        derate=derate,
        cautious=cautious,
    )
    plan = partial(best_path_candidate, options=options, budget=Budget(solver))
    return asking(judged(problem, plan), problem, options)


def best_path_candidate(problem: Problem, options: BestPathOptions, budget: Budget) -> Schedule:
    """Plan as `best_path` does; not judged yet."""
    slot_s, chunk_s = options.slot_s, options.chunk_s
    hysteresis, first = options.hysteresis, options.first
    require_shape(slot_s, chunk_s)
    if not in_units(hysteresis, PART, "hysteresis") >= 1:
        raise ProblemError(f"hysteresis must be >= 1, got {hysteresis}")
    if first not in FIRSTS:
        raise ProblemError(
            f"first must be one of {', '.join(FIRSTS)}, got {first!r}"
            + nearest_hint(str(first), FIRSTS)
        )
    require_part(options.derate)
    if options.cautious:
        bold = replace(options, cautious=False)
        same = partial(best_path_candidate, options=bold, budget=budget)
        return planned_cautiously(problem, options.derate, budget, same)
    if options.derate != NOT_DERATED:
        whole = replace(options, derate=NOT_DERATED)
        same = partial(best_path_candidate, options=whole, budget=budget)
        return planned_on_part(problem, options.derate, budget, same)
    jobs = [
        RouteJob(pool, _best_route(problem, pool, hysteresis, first, stores=slot_s is not None))
        for pool in pools_by_owner(problem)
    ]
    optimum = fluid_optimum(problem, budget)
    if slot_s is not None:
        require_slots(optimum.makespan_s / slot_s)
        transfers = fair_slots(problem, jobs, slot_s)
    else:
        if chunk_s is None:
            changes = n_changes(breakpoints_s(problem), optimum.makespan_s)
            chunk_s = default_chunk_s(optimum.makespan_s, changes)
        transfers = fair_transfers(problem, jobs, chunk_s, AllAtOnce())
    schedule = schedule_of(
        problem,
        BEST_PATH,
        transfers,
        (optimum.makespan_s, optimum.bottleneck),
        slot_s=slot_s,
        chunk_s=chunk_s,
        solver=MAX_MIN_FAIR,
        status=HEURISTIC,
        hysteresis=hysteresis,
        first=first,
    )
    return require_room_for_chunks(problem, schedule)


def _best_route(
    problem: Problem, pool: Pool, hysteresis: float, first_choice: str, *, stores: bool
) -> tuple[int, ...]:
    """Choose for one host; `stores` excludes relays without storage."""
    host, destination = pool.host, problem.destination_index
    first = int(np.searchsorted(problem.periods_s, pool.release_s, side="right")) - 1
    for period in range(first, problem.n_periods):
        bandwidth = route_bandwidths(problem, host, period)
        if stores:
            relay = np.arange(problem.n_hosts) != host
            bandwidth[relay & (problem.storage_bytes < 1)] = 0.0
        # The direct link is the candidate "via the host itself".
        order = np.concatenate([[host], np.delete(np.arange(problem.n_hosts), host)])
        if first_choice == VIA_RELAY and problem.n_hosts > 1:
            best_relay = 1 + int(np.argmax(bandwidth[order[1:]]))
            order = order[[best_relay, 0]]
        best = order[_pick(bandwidth[order], hysteresis)]
        if bandwidth[best] > 0:
            return (host, destination) if best == host else (host, int(best), destination)
    name = problem.names[host]
    never = InfeasibleError(
        f"best-path: no usable route of at most two hops from {name!r} to the destination "
        f"{problem.destination!r}; add links, or use the coordinated method",
        [name],
    )
    raise not_listed_yet(problem, [name], never)


def _pick(bandwidth: FloatArray, hysteresis: float) -> int:
    """Go through the candidates in order, replacing the best by more than the hysteresis."""
    best = 0
    while True:
        better = np.flatnonzero(bandwidth[best + 1 :] > hysteresis * bandwidth[best])
        if len(better) == 0:
            return best
        best += 1 + int(better[0])


def route_bandwidths(problem: Problem, host: int, period: int) -> FloatArray:
    """Return the available bandwidth from `host` via each host to the destination.

    Entry k, in bytes per second, is the least capacity on the route host, k, destination: links,
    host limits, shared bottlenecks (half of one that both hops cross). Entry `host` is the direct
    link; 0 where there is no route.
    """
    n, destination = problem.n_hosts, problem.destination_index
    hosts = np.arange(n)
    to_relay = problem.link_indices(np.full(n, host), hosts)
    to_destination = problem.link_indices(hosts, np.full(n, destination))
    bandwidth = problem.bandwidth_bytes_per_s[period]

    def of(links: IntArray) -> FloatArray:
        rates = np.zeros(n)
        rates[links >= 0] = bandwidth[links[links >= 0]]
        return rates

    rates = np.minimum(of(to_relay), of(to_destination))
    uplink, downlink = problem.uplink_bytes_per_s[period], problem.downlink_bytes_per_s[period]
    rates = np.minimum(rates, downlink)
    rates = np.minimum(rates, uplink)
    rates[host] = of(to_destination)[host]
    for bottleneck, members in zip(problem.shared, problem.shared_links, strict=True):
        first = np.isin(to_relay, members)
        first[host] = False  # the direct route has no hop to a relay
        crossings = first.astype(int) + np.isin(to_destination, members)
        crossed = crossings > 0
        share = bottleneck.bandwidth_bytes_per_s / crossings[crossed]
        rates[crossed] = np.minimum(rates[crossed], share)
    limit = min(uplink[host], downlink[destination])
    rates = np.minimum(rates, limit)
    rates[destination] = 0.0
    return np.asarray(rates)
