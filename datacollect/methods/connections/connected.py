"""Plans with whole numbers of connections: routes, rates, and how many connections each hop has.

Where there are few enough, all numbers of connections are tried
(`datacollect.methods.connections.every_allocation`). Else numbers are searched from several
beginnings: what a linear program over parts of connections says, whose value is a lower bound
(`datacollect.flow.connection_flow`), the best of sending directly, and the fewest with which data
arrive at all (`datacollect.methods.connections.whole_numbers`). Rates are constant: every route
runs from its data's release to its own end.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, ProblemError, SolverError
from datacollect.files.with_units import in_whole
from datacollect.flow.connection_flow import ConnectionFlow, fastest_flow
from datacollect.flow.network.pools import pools_by_owner
from datacollect.flow.optimum import fluid_optimum
from datacollect.flow.quickest.bottleneck import NOTHING_TO_MOVE
from datacollect.flow.routes.routes import cut_parcels, whole_bytes
from datacollect.methods.connections.fewest import fewest_connections, usable_links
from datacollect.methods.connections.routes import direct_routes
from datacollect.methods.connections.whole_connections import Hops
from datacollect.methods.connections.whole_numbers import (
    Numbers,
    Task,
    best_numbers,
    direct_numbers,
)
from datacollect.methods.fair.transfers import AllAtOnce, RouteJob, fair_transfers
from datacollect.methods.finishing.file_cuts import with_cuts_at_files
from datacollect.methods.finishing.making import schedule_of
from datacollect.methods.options.names import COORDINATED
from datacollect.methods.timing.instants import finish_s
from datacollect.methods.timing.long_chunks import require_room_for_chunks
from datacollect.methods.timing.pipeline import RouteNumbers
from datacollect.methods.timing.tolerances import PROVED
from datacollect.schedule.data.contents import HEURISTIC, OPTIMAL
from datacollect.schedule.data.transfers import Bottleneck, Transfers
from datacollect.solvers.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from datacollect.flow.network.pools import Pool
    from datacollect.methods.connections.whole_connections import Candidate
    from datacollect.numbers.arrays import BoolArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.transfers import Route
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.registry import Solver

# How numbers are found.
_STEPS = "steps from a linear program"
_EVERY = "all numbers tried, a linear program"
# The bound is looked for behind at most this many releases.
MOST_RELEASES = 8


# An end beyond all numbers is infinite, and so never the best.
@np.errstate(over="ignore")
def connected(
    problem: Problem, connections: int, chunk_s: float | None, budget: Budget
) -> Schedule:
    """Plan with at most `connections` connections at a time.

    See `datacollect.methods.coordinated.coordinated`.

    Raises
    ------
    InfeasibleError
        There are fewer connections than hops that are needed, or data cannot arrive at all.
    ProblemError
        `connections` is no whole number from 1 on, or bandwidths change.
    """
    _require(problem, connections)
    pools = pools_by_owner(problem)
    if not pools:
        nothing = (), _transfers(None, RouteNumbers(problem))
        return _schedule(problem, nothing, (0.0, NOTHING_TO_MOVE), 0.0, _STEPS, connections)
    usable = usable_links(problem)
    fewest = _fewest(problem, pools, usable, connections, budget)
    bound_s, flow = _bound(problem, pools, connections, budget)
    task = Task(problem, pools, usable, connections, chunk_s, bound_s, budget)
    numbers = best_numbers(task, fewest, flow) if np.isfinite(bound_s) else None
    if numbers is None:
        raise SolverError(
            "the bandwidths of the links differ by too many orders of magnitude to compute with; "
            "correct the highest or the lowest"
        )
    how = _EVERY if numbers.tried_all else _STEPS
    plans = [
        _schedule(
            problem,
            transfers,
            (bound_s, _bottleneck(problem, flow, connections)),
            numbers.hops.chunk_s,
            f"{how} by {budget.linear_solver().name}",
            connections,
        )
        for transfers in _candidate_plans(problem, numbers, usable, budget)
    ]
    # Of files whose boundaries routes keep to, too: direct routes of one source have none.
    soonest = min(plans, key=lambda plan: next(with_cuts_at_files(problem, plan)).makespan_s)
    return require_room_for_chunks(problem, soonest)


def earliest_s(problem: Problem, connections: int, solver: Solver = "auto") -> float:
    """Return the bound of plans with `connections`, parts of them allowed, in seconds.

    Examples
    --------
    >>> import datacollect as dc
    >>> link = dc.Link("S", "D", 4.0, capacity_bytes_per_s=12.0)
    >>> problem = dc.Problem.from_hosts([dc.Host("S", 60), dc.Host("D")], [link], "D")
    >>> round(earliest_s(problem, 2), 6)
    10.0
    """
    _require(problem, connections)
    pools = pools_by_owner(problem)
    return _bound(problem, pools, connections, Budget(solver))[0] if pools else 0.0


def _require(problem: Problem, connections: int) -> None:
    in_whole(connections, "connections", 1)
    if problem.n_periods > 1:
        raise ProblemError(
            "connections are planned for bandwidths, and limits of hosts, that do not change, got "
            f"{problem.n_periods} periods; plan for one of them, or leave connections out"
        )


def _bound(
    problem: Problem, pools: Sequence[Pool], connections: int, budget: Budget
) -> tuple[float, ConnectionFlow]:
    """No plan ends sooner: what is released from some instant on takes its time from there."""

    def after(release_s: float) -> ConnectionFlow:
        supply = np.zeros(problem.n_hosts)
        for pool in pools:
            supply[pool.host] += pool.n_bytes * (pool.release_s >= release_s)
        return fastest_flow(problem, supply, connections, budget)

    releases = np.unique([pool.release_s for pool in pools])
    later = releases[releases > 0]
    if len(later) > MOST_RELEASES:
        later = later[np.linspace(0, len(later) - 1, MOST_RELEASES).astype(int)]
    every = after(0.0)
    return max([every.makespan_s, *(r + after(r).makespan_s for r in later.tolist())]), every


def _fewest(
    problem: Problem,
    pools: Sequence[Pool],
    usable: BoolArray,
    connections: int,
    budget: Budget,
) -> list[Candidate]:
    """Return a route for each pool with the fewest connections, or say why there is none."""
    routes = direct_routes(problem, pools, usable)
    if len(routes) < len(pools) or problem.most_connections is not None:
        try:
            routes = fewest_connections(problem, pools, usable, budget)
        except InfeasibleError:
            fluid_optimum(problem, budget)  # says what cannot arrive however it is sent
            raise
    least = sum(len(route.hosts) - 1 for route in routes)
    if least > connections:
        raise InfeasibleError(
            f"{connections} connections do not reach all data, whose routes have at least {least} "
            f"hops together, one connection each; allow {least}",
            sorted({problem.names[pool.host] for pool in pools}),
        )
    return routes


def _candidate_plans(
    problem: Problem, numbers: Numbers, usable: BoolArray, budget: Budget
) -> Iterator[tuple[tuple[Route, ...], Transfers]]:
    """Yield what was found, then direct: nobody who plans with connections should be later.

    With files direct routes at their best, which need not be later by their cuts. And direct with
    one connection each, as `datacollect.methods.direct` plans it: its rates change when something
    ends, so that what follows may be faster than constant rates allow.
    """
    route_numbers = RouteNumbers(problem)
    columns = _transfers(numbers, route_numbers)
    yield route_numbers.routes(), columns
    direct = direct_numbers(numbers, budget) if problem.manifest is not None else None
    if direct is not None:
        route_numbers = RouteNumbers(problem)
        columns = _transfers(direct, route_numbers)
        yield route_numbers.routes(), columns
    hops = numbers.hops
    routes = direct_routes(problem, hops.pools, usable)
    if len(routes) < len(hops.pools) or not (len(hops.limit) or hops.wires):
        return
    each = Hops(problem, hops.pools, routes, hops.connections)
    if each.fits(np.ones(len(routes), dtype=np.int64)):
        jobs = [RouteJob(hops.pools[route.pool], route.hosts) for route in routes]
        yield fair_transfers(problem, jobs, 0.0, AllAtOnce())


# The schedule -------------------------------------------------------------------------------


def _schedule(
    problem: Problem,
    transfers: tuple[tuple[Route, ...], Transfers],
    bound: tuple[float, Bottleneck],
    chunk_s: float,
    solver: str,
    connections: int,
) -> Schedule:
    schedule = schedule_of(
        problem,
        COORDINATED,
        transfers,
        bound,
        chunk_s=chunk_s,
        solver=solver,
        connections=connections,
    )
    relays = max((len(route.hosts) - 2 for route in transfers[0]), default=0)
    bound_s = bound[0]
    proved = schedule.makespan_s <= bound_s * (1 + PROVED) + relays * chunk_s
    return schedule.replace(
        lower_bound_s=min(bound_s, schedule.makespan_s), status=OPTIMAL if proved else HEURISTIC
    )


def _transfers(numbers: Numbers | None, route_numbers: RouteNumbers) -> Transfers:
    """Run every route from its pool's release at its own rate, a chunk later hop by hop."""
    names = ("route", "hop", "offset_bytes", "n_bytes", "start_s", "length_s", "streams")
    rows = [] if numbers is None else list(_rows(numbers, route_numbers))
    columns = dict(
        zip(names, zip(*rows, strict=True) if rows else ([] for _ in names), strict=True)
    )
    lengths_s = columns.pop("length_s")
    return Transfers.build(finish_s=finish_s(columns["start_s"], lengths_s), **columns)


def _rows(
    numbers: Numbers, route_numbers: RouteNumbers
) -> Iterator[tuple[int, int, int, int, float, float, int]]:
    hops, rate = numbers.hops, numbers.best.rate_bytes_per_s
    for number, pool in enumerate(hops.pools):
        routes = np.flatnonzero((hops.pool == number) & (rate > 0))
        length_s = pool.n_bytes / float(rate[routes].sum())
        # All end at once: that none is rounded up for nothing, the widest counts as last.
        widest = int(rate[routes].argmax())
        sizes = whole_bytes(pool.n_bytes, (rate[routes] * length_s).tolist(), widest)
        cuts = list(cut_parcels(pool, sizes))
        for i, route in enumerate(routes.tolist()):
            hosts = hops.candidates[route].hosts
            parts = [(parcel, offset, size) for j, parcel, offset, size in cuts if j == i]
            ends = [
                pool.release_s + length_s * x / max(1, sizes[i])
                for x in accumulate(p[2] for p in parts)
            ]
            first = int(hops.first[route])
            streams = numbers.n[first : first + len(hosts) - 1].tolist()
            for (parcel, offset, size), (start, end) in zip(
                parts, pairwise([pool.release_s, *ends]), strict=True
            ):
                at = route_numbers.number(parcel.source, hosts)
                for hop, k in enumerate(streams):
                    late_s = start + hop * hops.chunk_s
                    yield at, hop, offset, size, late_s, end - start, k


def _bottleneck(problem: Problem, flow: ConnectionFlow, connections: int) -> Bottleneck:
    waits = flow.host_price > PROVED * float(flow.host_price.max(initial=0.0))
    hosts = tuple(name for name, waits in zip(problem.names, waits, strict=True) if waits)
    hosts = tuple(name for name in hosts if name in problem.sources)
    text = (
        f"{connections} connections bind: with another one the bound is {flow.saves_s:.4g} s less."
        if flow.saves_s > PROVED * flow.makespan_s
        else f"More than {connections} connections would save nothing."
    )
    return Bottleneck("connections", hosts, text)
