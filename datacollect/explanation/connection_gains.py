"""Time that more connections would save in a plan that shares them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.explanation.excess import Excess
from datacollect.explanation.findings import ConnectionGain, Explanation, PlanExplanation
from datacollect.explanation.leaning import plan_assumptions, wires_known
from datacollect.explanation.relaxations import Advice
from datacollect.explanation.tolerances import SAME
from datacollect.flow.network.pools import pools_by_owner
from datacollect.flow.quickest.bottleneck import NOTHING_TO_MOVE
from datacollect.methods.choice import candidate
from datacollect.methods.connections.whole_connections import Candidate, Hops
from datacollect.methods.coordinated.spec import CoordinatedOptions
from datacollect.schedule.data.transfers import UNKNOWN
from datacollect.schedule.data.use import plan_money

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.numbers.arrays import IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.registry import Solver

# "Two more connections save …": one often changes nothing where a route has two hops.
MORE = 2
# Gains are listed, the largest first.
MOST_LISTED = 5


def explain_connections(
    problem: Problem, plan: Schedule, broken: str, solver: Solver = "auto"
) -> Explanation:
    """Explain a plan that shares out connections: what a few more would save, and where.

    Parameters
    ----------
    problem : Problem
    plan : Schedule
        With `connections`.
    broken : str
        Why the plan is none for the problem; empty where it is one.
    solver : str

    Examples
    --------
    >>> import datacollect as dc
    >>> link = dc.Link("S", "D", 4.0, capacity_bytes_per_s=12.0)
    >>> problem = dc.Problem.from_hosts([dc.Host("S", 60), dc.Host("D")], [link], "D")
    >>> found = explain_connections(problem, dc.coordinated(problem, connections=2), "")
    >>> best = found.plan.more[0]
    >>> best.names, best.connections, round(best.saves_s, 6)
    (("link 'S' -> 'D'",), 2, 2.5)
    """
    excess_s = plan.makespan_s - plan.lower_bound_s
    text = broken or "connections are whole, and each route has its own on every hop"
    more = () if broken or plan.connections is None else _gains(problem, plan, solver)
    explained = PlanExplanation(
        plan.method,
        plan.makespan_s,
        excess_s,
        (Excess("connections", excess_s, text),) if excess_s > SAME * plan.lower_bound_s else (),
        chunk_s=plan.chunk_s,
        money=plan_money(problem, plan),
        connections=plan.connections,
        more=more,
        assumptions=None if broken else plan_assumptions(problem, plan, solver),
        wires_known=bool(broken) or wires_known(problem, plan),
    )
    bottleneck = NOTHING_TO_MOVE if plan.bottleneck == UNKNOWN else plan.bottleneck
    return Explanation(plan.lower_bound_s, bottleneck, (), Advice((), (), 0), (), explained)


def _gains(problem: Problem, plan: Schedule, solver: Solver) -> tuple[ConnectionGain, ...]:
    assert plan.connections is not None
    options = CoordinatedOptions(
        chunk_s=plan.chunk_s, solver=solver, connections=plan.connections + MORE
    )
    shared_again = candidate(problem, options)
    found = [ConnectionGain((), MORE, max(0.0, plan.makespan_s - shared_again.makespan_s))]
    hops, n = numbers_of(problem, plan, plan.connections + MORE)
    now_s = hops.brought(n).makespan_s
    each = [
        ConnectionGain(names, int(more.sum() - n.sum()), now_s - hops.brought(more).makespan_s)
        for names, more in _widened(problem, hops, n)
        if hops.fits(more)
    ]
    each = [gain for gain in each if gain.saves_s > SAME * now_s]
    return tuple(sorted(each, key=lambda gain: -gain.saves_s)[:MOST_LISTED] + found)


def _widened(
    problem: Problem, hops: Hops, n: IntArray
) -> Iterator[tuple[tuple[str, ...], IntArray]]:
    """Yield links, and numbers with more connections there: on one hop, or on both of a route."""
    names = problem.names
    link = [f"link {names[a]!r} -> {names[b]!r}" for a, b in zip(hops.tail, hops.head, strict=True)]
    for hop, name in enumerate(link):
        more = n.copy()
        more[hop] += MORE
        yield (name,), more
    for route in range(len(hops.candidates)):
        own = np.flatnonzero(hops.route == route)
        if len(own) == MORE:
            more = n.copy()
            more[own] += 1
            yield tuple(link[i] for i in own.tolist()), more


def numbers_of(problem: Problem, plan: Schedule, connections: int) -> tuple[Hops, IntArray]:
    """Return the routes of a plan's pools, and the connections of each hop."""
    pools = pools_by_owner(problem)
    index = problem.host_index
    columns = plan.columns
    found: dict[tuple[int, tuple[int, ...]], dict[int, int]] = {}
    rows = zip(columns.route.tolist(), columns.hop.tolist(), columns.streams.tolist(), strict=True)
    for number, hop, streams in rows:
        route = plan.routes[number]
        is_own = route.source == route.hosts[0]
        hosts = tuple(index[name] for name in route.hosts)
        pool = next(i for i, p in enumerate(pools) if (p.host, p.is_own) == (hosts[0], is_own))
        found.setdefault((pool, hosts), {})[hop] = streams
    candidates = [Candidate(*key) for key in found]
    n = [by_hop[hop] for by_hop in found.values() for hop in sorted(by_hop)]
    return Hops(problem, pools, candidates, connections), np.array(n, dtype=np.int64)
