"""Plans with whole numbers of connections: routes, rates, and how many connections each hop has.

Which routes are worth a connection a linear program over parts of connections tells, whose value is
a lower bound (`datacollect.flow.connection_flow`). Whole numbers are searched from there, and from
the best ones of sending directly, so that no direct plan with as many connections is faster
(`datacollect.methods.whole_connections`). Rates are constant: every route runs from its data's
release to its own end.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, ProblemError, SolverError
from datacollect.flow.bottleneck import NOTHING_TO_MOVE
from datacollect.flow.connection_flow import ConnectionFlow, fastest_flow
from datacollect.flow.optimum import fluid_optimum
from datacollect.flow.pools import pools_by_owner
from datacollect.flow.routes import cut_parcels, whole_bytes
from datacollect.methods.divided_rates import best_rates
from datacollect.methods.instants import finish_s
from datacollect.methods.long_chunks import require_room_for_chunks
from datacollect.methods.making import schedule_of
from datacollect.methods.names import COORDINATED
from datacollect.methods.pipeline import RouteBook
from datacollect.methods.tolerances import PROVED
from datacollect.methods.whole_connections import Candidate, Hops, filled, improved, shaken
from datacollect.schedule.contents import HEURISTIC, OPTIMAL
from datacollect.schedule.transfers import Bottleneck, Transfers
from datacollect.solvers.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.arrays import FloatArray, IntArray
    from datacollect.choices import Solver
    from datacollect.flow.pools import Pool
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# How numbers are found.
_STEPS = "steps from a linear program"
# Relayed data wait for a chunk at each relay: this part of the lower bound, or of what is shorter.
CHUNK_PART = 1e-3
# Less than this part of a pool's data makes no route of its own.
DUST = 1e-3
# In problems with so few links all ways over one relay are looked at.
FEW_LINKS = 60
# With so few routes search begins again from each of them.
FEW_ROUTES = 60
# The bound is looked for behind so many releases.
MOST_RELEASES = 8


def connected(
    problem: Problem, connections: int, chunk_s: float | None, budget: Budget
) -> Schedule:
    """Plan with at most so many connections at a time.

    See `datacollect.methods.coordinated.coordinated`.

    Raises
    ------
    InfeasibleError
        There are fewer connections than routes that are needed, or data cannot arrive at all.
    ProblemError
        `connections` is no whole number from 1 on, or bandwidths change.
    """
    _require(problem, connections)
    pools = pools_by_owner(problem)
    if not pools:
        return _schedule(problem, Hops(problem, [], [], connections), None, 0.0, budget)
    bound_s, flow = _bound(problem, pools, connections, budget)
    if not np.isfinite(bound_s):
        fluid_optimum(problem, budget)  # says why nothing arrives
        raise InfeasibleError(
            f"some data cannot arrive with {connections} connections and the hosts' "
            "most_connections; allow more",
            problem.sources,
        )
    hops = Hops(problem, pools, _candidates(problem, pools, flow), connections)
    n = _whole(hops, flow)
    schedule = _schedule(problem, hops, n, bound_s, budget, chunk_s, flow)
    return require_room_for_chunks(problem, schedule)


def earliest_s(problem: Problem, connections: int, solver: Solver = "auto") -> float:
    """Return the bound of plans with so many connections, parts of them allowed, in seconds.

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
    if isinstance(connections, bool) or int(connections) != connections or connections < 1:
        raise ProblemError(f"connections must be a whole number >= 1, got {connections!r}")
    if problem.n_periods > 1:
        raise ProblemError(
            "connections are planned for bandwidths that do not change, got "
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


# Routes -------------------------------------------------------------------------------------


def _candidates(problem: Problem, pools: Sequence[Pool], flow: ConnectionFlow) -> list[Candidate]:
    """Return the ways that data may take: straight, as the flow does, or the shortest."""
    end = problem.destination_index
    straight = problem.link_indices([p.host for p in pools], [end] * len(pools)) >= 0
    found = [Candidate(i, (p.host, end)) for i, p in enumerate(pools) if straight[i]]
    by_flow = _paths(problem, pools, flow)
    found += [Candidate(i, hosts) for i, hosts in by_flow]
    if problem.n_links <= FEW_LINKS:
        found += _over_one_relay(problem, pools)
    return sorted(set(found))


def _over_one_relay(problem: Problem, pools: Sequence[Pool]) -> list[Candidate]:
    end = problem.destination_index
    links = set(zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True))
    return [
        Candidate(i, (pool.host, relay, end))
        for i, pool in enumerate(pools)
        for relay in range(problem.n_hosts)
        if relay not in (pool.host, end) and {(pool.host, relay), (relay, end)} <= links
    ]


def _paths(
    problem: Problem, pools: Sequence[Pool], flow: ConnectionFlow
) -> list[tuple[int, tuple[int, ...]]]:
    """Return the paths of a flow, the widest first; circles are left out."""
    end, rates = problem.destination_index, flow.rate_bytes_per_s
    out: dict[int, dict[int, float]] = {}
    for link in np.flatnonzero(rates > 0).tolist():
        tail, head = int(problem.link_from[link]), int(problem.link_to[link])
        out.setdefault(tail, {})[head] = float(rates[link])
    found = []
    for number, pool in enumerate(pools):
        left = pool.n_bytes / flow.makespan_s
        least = DUST * left
        while left > least:
            path = _widest_first(out, pool.host, end)
            if path is None:
                break
            width = min(left, *(out[a][b] for a, b in pairwise(path)))
            for a, b in pairwise(path):
                out[a][b] -= width
                if out[a][b] <= least / len(pools):
                    del out[a][b]
            left -= width
            found.append((number, path))
    return found


def _widest_first(out: dict[int, dict[int, float]], start: int, end: int) -> tuple[int, ...] | None:
    """Follow the widest arc from each host; turn back where none leads on."""
    path, dead = [start], set[int]()
    while path[-1] != end:
        onward = {h: w for h, w in out.get(path[-1], {}).items() if h not in path and h not in dead}
        if onward:
            path.append(max(onward, key=lambda h: (h == end, onward[h])))
            continue
        dead.add(path.pop())
        if not path:
            return None
    return tuple(path)


# Numbers ------------------------------------------------------------------------------------


def _whole(hops: Hops, flow: ConnectionFlow) -> IntArray:
    """Return the best numbers found, from several beginnings."""
    starts = [s for s in (_straight(hops), _as_flow(hops, flow)) if hops.fits(s)]
    if not starts:
        least = int(_shortest(hops).sum())
        names = sorted({hops.problem.names[c.hosts[0]] for c in hops.candidates})
        raise InfeasibleError(
            f"{hops.connections} connections do not reach all data, whose shortest routes have "
            f"{least} hops together, one connection each; allow {least}, or raise most_connections",
            names,
        )
    found = []
    for start in starts:
        hops.tries = 0
        found.append(improved(hops, start))
    best = min(found, key=lambda n: hops.brought(n).key)
    return shaken(hops, best) if len(hops.candidates) <= FEW_ROUTES else best


def _straight(hops: Hops) -> IntArray:
    """Return the best numbers of straight routes alone, where every pool has one."""
    length = np.bincount(hops.route, minlength=len(hops.candidates))
    hops.may_open = length == 1
    try:
        return filled(hops, _shortest(hops))
    finally:
        hops.may_open = np.ones(len(length), dtype=bool)


def _shortest(hops: Hops) -> IntArray:
    """Return one connection for each hop of each pool's shortest route."""
    n = np.zeros(len(hops.route), dtype=np.int64)
    length = np.bincount(hops.route, minlength=len(hops.candidates))
    for pool in range(len(hops.size)):
        routes = np.flatnonzero(hops.pool == pool)
        n[hops.route == routes[length[routes].argmin()]] = 1
    return n


def _as_flow(hops: Hops, flow: ConnectionFlow) -> IntArray:
    """Round down what the flow has, one at least; routes with least are left out until it fits."""
    rates = flow.rate_bytes_per_s
    width = np.minimum.reduceat(rates[hops.link], hops.first)
    width = np.where(width > 0, width, 0.0)
    of_link = np.bincount(hops.link, width[hops.route], len(rates))[hops.link]
    with np.errstate(divide="ignore", invalid="ignore"):
        part = flow.connections[hops.link] * width[hops.route] / of_link
    n = np.where(width[hops.route] > 0, np.maximum(1, np.floor(np.nan_to_num(part) + 1e-6)), 0)
    n = n.astype(np.int64)
    for route in np.argsort(width, kind="stable").tolist():
        if hops.fits(n):
            break
        others = (hops.pool == hops.pool[route]) & (n[hops.first] > 0)
        if n[hops.first[route]] > 0 and others.sum() > 1:
            n[hops.route == route] = 0
    missing = np.bincount(hops.pool, n[hops.first] > 0, len(hops.size)) == 0
    return np.where(missing[hops.pool[hops.route]], _shortest(hops), n)


# The schedule -------------------------------------------------------------------------------


def _schedule(
    problem: Problem,
    hops: Hops,
    n: IntArray | None,
    bound_s: float,
    budget: Budget,
    chunk_s: float | None = None,
    flow: ConnectionFlow | None = None,
) -> Schedule:
    pools, connections = pools_by_owner(problem), hops.connections
    rate = np.zeros(0) if n is None else best_rates(hops, n, budget)
    if not (np.bincount(hops.pool, rate, len(pools)) > 0).all():
        raise SolverError(
            "rates by connections span too many orders of magnitude; correct the fastest and the "
            "slowest"
        )
    used = [len(hops.candidates[r].hosts) - 1 for r in np.flatnonzero(rate > 0).tolist()]
    most_hops = max(used, default=1)
    chunk = bound_s * min(CHUNK_PART, 2 * CHUNK_PART / max(1, most_hops - 1))
    chunk = chunk if chunk_s is None else chunk_s
    book = RouteBook(problem)
    columns = _transfers(hops, pools, rate, n, chunk, book)
    schedule = schedule_of(
        problem,
        COORDINATED,
        (book.routes(), columns),
        (bound_s, NOTHING_TO_MOVE if flow is None else _bottleneck(problem, flow, connections)),
        chunk_s=chunk,
        solver=_STEPS if flow is None else f"{_STEPS} by {budget.linear_solver().name}",
        connections=connections,
    )
    proved = schedule.makespan_s <= bound_s * (1 + PROVED) + (most_hops - 1) * chunk
    return schedule.replace(
        lower_bound_s=min(bound_s, schedule.makespan_s), status=OPTIMAL if proved else HEURISTIC
    )


def _transfers(
    hops: Hops,
    pools: Sequence[Pool],
    rate: FloatArray,
    n: IntArray | None,
    chunk_s: float,
    book: RouteBook,
) -> Transfers:
    """Run every route from its pool's release at its own rate, a chunk later hop by hop."""
    rows: list[tuple[int, int, int, int, float, float, int]] = []
    for number, pool in enumerate(pools):
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
            assert n is not None
            streams = n[first : first + len(hosts) - 1].tolist()
            for (parcel, offset, size), (start, end) in zip(
                parts, pairwise([pool.release_s, *ends]), strict=True
            ):
                at = book.number(parcel.source, hosts)
                rows += [
                    (at, hop, offset, size, start + hop * chunk_s, end - start, k)
                    for hop, k in enumerate(streams)
                ]
    names = ("route", "hop", "offset_bytes", "n_bytes", "start_s", "length_s", "streams")
    columns = dict(
        zip(names, zip(*rows, strict=True) if rows else ([] for _ in names), strict=True)
    )
    lengths_s = columns.pop("length_s")
    return Transfers.build(finish_s=finish_s(columns["start_s"], lengths_s), **columns)


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
