"""The fluid optimum where two hops are enough, without looking at every link.

T* is at least the time of two kinds of cut: all data over everything that leads into the
destination, and each host's data over everything that leads out of it. At the largest of these
instants every source sends what its direct link carries, and the rest through relays whose own
direct links have room. If a maximum flow over these links places all of the rest, T* is proved;
and no plan of that duration uses fewer hops, for every byte beyond a direct link's capacity needs
two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.network.pools import pools_by_host
from datacollect.flow.network.ties import settled
from datacollect.flow.network.tolerances import SAME_CUT, TWO_HOP_ROOM
from datacollect.flow.quickest.bottleneck import (
    destination_bottleneck,
    never_ends,
    source_bottleneck,
)
from datacollect.flow.routes.routes import PathFlow
from datacollect.solvers.networks import CAPACITY_SUM_LIMIT, FlowNetwork

if TYPE_CHECKING:
    from datacollect.flow.network.pools import Pool
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.transfers import Bottleneck
    from datacollect.solvers.budget import Budget


@dataclass(frozen=True)
class TwoHopOptimum:
    """T*, its bottleneck, and a fastest plan with fewest hops."""

    makespan_s: float
    bottleneck: Bottleneck
    pools: tuple[Pool, ...]
    paths: list[PathFlow]


def two_hop_optimum(problem: Problem, budget: Budget) -> TwoHopOptimum | None:
    """Return the optimum, or None where two hops do not suffice or other limits apply."""
    if problem.shared or problem.n_links == 0 or has_host_limits(problem):
        return None
    pools = tuple(pools_by_host(problem))
    supply = np.zeros(problem.n_hosts)
    for pool in pools:
        supply[pool.host] = float(pool.n_bytes)
    direct = direct_bandwidth(problem)
    candidate = _largest_simple_cut(problem, supply, direct)
    if candidate is None:
        return None
    makespan_s, bottleneck = candidate
    if not np.isfinite(makespan_s):
        raise never_ends(problem)
    room = direct * (makespan_s * (1 + TWO_HOP_ROOM))
    excess = np.maximum(supply - room, 0.0)
    spare = np.maximum(room - supply, 0.0)
    relayed = None
    if budget.settle_ties:
        # What tolerance alone leaves is hardly room: who took it would seem to be held back.
        firm = np.where(spare > 2 * TWO_HOP_ROOM * room, spare, 0.0)
        relayed = _place_excess(problem, budget, excess, firm, makespan_s)
    if relayed is None:
        relayed = _place_excess(problem, budget, excess, spare, makespan_s)
    if relayed is None:
        return None
    sources, relays, amounts = relayed
    pool_of = {pool.host: i for i, pool in enumerate(pools)}
    destination = problem.destination_index
    paths = [
        PathFlow(i, (pool.host, destination), (0,), float(min(supply[pool.host], room[pool.host])))
        for i, pool in enumerate(pools)
        if room[pool.host] > 0
    ]
    paths += [
        PathFlow(pool_of[source], (source, relay, destination), (0, 0), amount)
        for source, relay, amount in zip(
            sources.tolist(), relays.tolist(), amounts.tolist(), strict=True
        )
    ]
    return TwoHopOptimum(makespan_s, bottleneck, pools, paths)


def has_host_limits(problem: Problem) -> bool:
    """Say whether what some host sends or receives is limited."""
    limits = (problem.uplink_bytes_per_s, problem.downlink_bytes_per_s)
    return any(bool(np.isfinite(limit[0]).any()) for limit in limits)


def direct_bandwidth(problem: Problem) -> FloatArray:
    """Return the bandwidth of each host's link to the destination; 0 where there is none."""
    hosts = np.arange(problem.n_hosts)
    link = problem.link_indices(hosts, np.full(problem.n_hosts, problem.destination_index))
    return np.where(link >= 0, problem.bandwidth_bytes_per_s[0][link], 0.0)


# An end beyond all numbers is infinite.
@np.errstate(over="ignore")
def _largest_simple_cut(
    problem: Problem, supply: FloatArray, direct: FloatArray
) -> tuple[float, Bottleneck] | None:
    """The later of: the destination's cut, and the slowest source's own cut."""
    into_destination = float(direct.sum())
    holders = np.flatnonzero(supply)
    # Links are sorted by where they begin: what leaves a host is a slice.
    ends = np.array([holders, holders + 1], dtype=problem.link_from.dtype)
    bounds = np.searchsorted(problem.link_from, ends)
    bandwidth = problem.bandwidth_bytes_per_s[0]
    out = np.array([bandwidth[begin:end].sum() for begin, end in bounds.T.tolist()])
    if into_destination <= 0 or out.min() <= 0:
        return None
    sources = [parcel.source for parcel in problem.parcels]
    at_destination_s = float(np.divide(supply.sum(), into_destination))
    slowest = int(np.argmax(supply[holders] / out))
    host = int(holders[slowest])
    at_source_s = float(supply[host] / out[slowest])
    # A tie counts as the destination's: its advice is shorter.
    if at_source_s > at_destination_s * (1 + SAME_CUT):
        behind = [parcel.source for parcel in problem.parcels if parcel.host == host]
        return at_source_s, source_bottleneck(problem, host, float(out[slowest]), behind)
    return at_destination_s, destination_bottleneck(problem, into_destination, sources)


def _place_excess(
    problem: Problem,
    budget: Budget,
    excess: FloatArray,
    spare: FloatArray,
    makespan_s: float,
) -> tuple[IntArray, IntArray, FloatArray] | None:
    """Send each source's excess through relays with room; None where it does not fit.

    Returns sources, relays and bytes, one entry per relayed path.
    """
    total = float(excess.sum())
    sources, relays = np.flatnonzero(excess), np.flatnonzero(spare)
    if total == 0:
        return sources, sources, excess[:0]
    links = problem.links_out_of(sources)
    links = links[spare[problem.link_to[links]] > 0]
    tail, head = problem.link_from[links], problem.link_to[links]
    n = problem.n_hosts
    degree = 2 + max(np.bincount(tail).max(initial=1), np.bincount(head).max(initial=1))
    scale = 2.0 ** math.floor(math.log2(CAPACITY_SUM_LIMIT / (2 * (degree + n) * total)))
    ends = np.full(len(sources), n), np.full(len(relays), n + 1)
    widened_s = makespan_s * (1 + TWO_HOP_ROOM)
    capacity = np.concatenate(
        [
            np.minimum(problem.bandwidth_bytes_per_s[0][links] * widened_s, excess[tail]),
            excess[sources],
            np.minimum(spare[relays], total * (1 + TWO_HOP_ROOM)),
        ]
    )
    network = FlowNetwork(
        n + 2,
        np.concatenate([tail, ends[0], relays]),
        np.concatenate([head, sources, ends[1]]),
        np.ceil(capacity * scale).astype(np.int64),
    )
    solver = budget.flow_solver()
    flow = solver.max_flow(network, n, n + 1)
    entering = slice(len(links), len(links) + len(sources))
    if (flow[entering] < network.capacity[entering]).any():
        return None
    if budget.settle_ties and (direct_bandwidth(problem)[sources] == 0).any():
        # Who has no direct link may hurry, by how much depends on the relays.
        flow = settled(
            replace(network, cost=np.zeros(network.n_arcs, dtype=np.int64)), flow, solver
        )
    used = np.flatnonzero(flow[: len(links)])
    return tail[used].astype(np.int64), head[used].astype(np.int64), flow[used] / scale
