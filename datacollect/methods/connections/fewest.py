"""The fewest connections with which all data can arrive: a minimum-cost flow, exact.

Each pool of data needs one route, with one connection on each hop. So routes are a flow of one
unit per pool, and a unit through a host takes two of its connections; what begins there, one. The
cheapest flow by hops is whole, and says which routes there are at all within hosts' budgets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.methods.connections.whole_connections import Candidate
from datacollect.solvers.networks import FlowNetwork

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.flow.network.pools import Pool
    from datacollect.numbers.arrays import BoolArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget

# So many hosts are named with their limits.
MOST_NAMED = 5


def usable_links(problem: Problem) -> BoolArray:
    """Return which links carry anything: no host and no wire on them is without capacity."""
    usable: BoolArray = problem.bandwidth_bytes_per_s[0] > 0
    usable &= problem.uplink_bytes_per_s[0, problem.link_from] > 0
    usable &= problem.downlink_bytes_per_s[0, problem.link_to] > 0
    for wire, links in zip(problem.shared, problem.shared_links, strict=True):
        if wire.bandwidth_bytes_per_s == 0:
            usable[links] = False
    return usable


def fewest_connections(
    problem: Problem, pools: Sequence[Pool], usable: BoolArray, budget: Budget
) -> list[Candidate]:
    """Return a route for each pool, with the fewest hops together that hosts' budgets allow.

    Parameters
    ----------
    problem : Problem
    pools : sequence of Pool
    usable : ndarray of bool, shape (n_links,)
        See `usable_links`.
    budget : Budget

    Raises
    ------
    InfeasibleError
        There is none, however many connections there are in all.

    Examples
    --------
    S1 may have one connection, which its own data need; so those of S2 pass K:

    >>> import datacollect as dc
    >>> links = [dc.Link(*pair.split(), 1.0) for pair in ("S1 D", "S2 S1", "S2 K", "K D")]
    >>> hosts = [dc.Host("S1", 9, most_connections=1), dc.Host("S2", 9), dc.Host("K"), dc.Host("D")]
    >>> problem = dc.Problem.from_hosts(hosts, links, "D")
    >>> from datacollect.flow.network.pools import pools_by_owner
    >>> from datacollect.solvers.budget import Budget
    >>> every = usable_links(problem)
    >>> found = fewest_connections(problem, pools_by_owner(problem), every, Budget())
    >>> [route.hosts for route in found]
    [(0, 3), (1, 2, 3)]
    """
    n_hosts, end, n_pools = problem.n_hosts, problem.destination_index, len(pools)
    begins = np.bincount([pool.host for pool in pools], minlength=n_hosts)
    room = np.full(n_hosts, np.inf)
    if problem.most_connections is not None:
        room = problem.most_connections.astype(float)
    through = np.minimum(np.floor((room - begins) / 2), n_pools)
    through[end] = min(room[end], n_pools)
    if (room < begins).any() or through[end] < n_pools:
        raise _impossible(problem)
    links = np.flatnonzero(usable)
    hosts = np.arange(n_hosts)
    # A host's node for what comes in, and one for what goes out; the last ends at the destination.
    tail = np.concatenate([hosts, n_hosts + problem.link_from[links]]).astype(np.int64)
    head = np.concatenate([n_hosts + hosts, problem.link_to[links]]).astype(np.int64)
    capacity = np.concatenate([through, np.full(len(links), n_pools)]).astype(np.int64)
    cost = np.concatenate([np.zeros(n_hosts), np.ones(len(links))]).astype(np.int64)
    supply = np.concatenate([np.zeros(n_hosts), begins]).astype(np.int64)
    supply[n_hosts + end] -= n_pools
    network = FlowNetwork(2 * n_hosts, tail, head, capacity, cost)
    try:
        flow = budget.flow_solver().min_cost_flow(network, supply)
    except InfeasibleError:
        raise _impossible(problem) from None
    return _routes(problem, pools, dict(zip(links.tolist(), flow[n_hosts:].tolist(), strict=True)))


def _routes(problem: Problem, pools: Sequence[Pool], flow: dict[int, int]) -> list[Candidate]:
    """Follow a unit from each pool; the cheapest flow has no circles."""
    out: dict[int, list[int]] = {}
    for link, units in flow.items():
        tail, head = int(problem.link_from[link]), int(problem.link_to[link])
        out.setdefault(tail, []).extend([head] * units)
    routes = []
    for number, pool in enumerate(pools):
        hosts = [pool.host]
        while hosts[-1] != problem.destination_index:
            hosts.append(out[hosts[-1]].pop())
        routes.append(Candidate(number, tuple(hosts)))
    return routes


def _impossible(problem: Problem) -> InfeasibleError:
    limits = (
        {}
        if problem.most_connections is None
        else dict(zip(problem.names, problem.most_connections.tolist(), strict=True))
    )
    few = [f"{name!r} {most:.0f}" for name, most in limits.items() if np.isfinite(most)]
    return InfeasibleError(
        "some data cannot arrive with any number of connections: each way needs one on each of "
        f"its hops, and hosts' most_connections ({', '.join(few[:MOST_NAMED])}) leave no way for "
        "all; raise them, or add links",
        problem.sources,
    )
