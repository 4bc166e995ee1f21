"""The slotted coordinated plan: a flow through the time-expanded graph.

First the fewest slots in which everything can arrive, then, with that many slots, the flow of
least cost: a byte that arrives one slot earlier outweighs any number of hops on its path, and a
hop saved outweighs any storage. The method of Chou et al. (2002) and of Cheng et al., "On a
graph-theoretic approach to scheduling large-scale data transfers" (CS-TR-4322, University of
Maryland, 2002).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.bottleneck import never_arrives
from datacollect.errors import InfeasibleError, TimeLimitError
from datacollect.flow import FlowNetwork
from datacollect.layered import NO_LINK, breakpoints_s
from datacollect.methods.slotted_shared import cheapest_shared
from datacollect.routes import decompose
from datacollect.schedule import OPTIMAL, TIME_LIMIT, Schedule
from datacollect.slots import (
    Piece,
    require_slots,
    slot_bandwidth_bytes_per_s,
    slots_until,
    slotted_transfers,
    whole_slot_bytes,
)
from datacollect.timegraph import TimeExpandedGraph, slot_costs, time_expanded_graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.budget import Budget
    from datacollect.fluid import FluidOptimum
    from datacollect.pools import Pool
    from datacollect.problem import Problem

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def slotted_schedule(
    problem: Problem, optimum: FluidOptimum, slot_s: float, budget: Budget
) -> Schedule:
    """Return the plan with fewest slots, then earliest arrivals, fewest hops, least storage."""
    jobs: dict[tuple[int, tuple[int, ...]], int] = {}
    pieces: list[Piece] = []
    pools: tuple[Pool, ...] = ()
    status, solver = OPTIMAL, optimum.solver
    if problem.total_bytes:
        graph, flow, status, solver = _fewest_slots(problem, optimum, slot_s, budget)
        pools = graph.pools
        for path in decompose(graph, graph.slot, flow):
            job = jobs.setdefault((path.pool, path.hosts), len(jobs))
            pieces += [
                Piece(job, hop, slot, int(path.amount)) for hop, slot in enumerate(path.pieces)
            ]
    routes, columns = slotted_transfers(
        problem, [(pools[pool], hosts) for pool, hosts in jobs], pieces, slot_s
    )
    return Schedule(
        method="coordinated",
        destination=problem.destination,
        makespan_s=float(columns.finish_s.max(initial=0.0)),
        lower_bound_s=optimum.makespan_s,
        slot_s=slot_s,
        chunk_s=None,
        solver=solver,
        problem_sha256=problem.sha256,
        routes=routes,
        columns=columns,
        status=status,
        bottleneck=optimum.bottleneck,
    )


def _fewest_slots(
    problem: Problem, optimum: FluidOptimum, slot_s: float, budget: Budget
) -> tuple[TimeExpandedGraph, IntArray, str, str]:
    """Return graph, flow, status and solvers for the least number of slots that suffices."""
    fewest = max(1, slots_until(optimum.makespan_s * (1 - 1e-9), slot_s))
    require_slots(fewest)
    _require_arrival(problem, slot_s, budget)
    if problem.shared:
        graph, flow = _search(
            problem, slot_s, fewest, lambda graph: cheapest_shared(problem, graph, budget)
        )
        return graph, flow, OPTIMAL, budget.linear_solver().name
    graph, flow = _search(problem, slot_s, fewest, lambda graph: _saturating(graph, budget))
    try:
        solver = budget.flow_solver()
        return graph, _cheapest(graph, budget), OPTIMAL, solver.name
    except TimeLimitError:
        # The fastest flow is complete; only the secondary wishes are not met.
        return graph, flow, TIME_LIMIT, optimum.solver


def _search(
    problem: Problem,
    slot_s: float,
    fewest: int,
    flow_through: Callable[[TimeExpandedGraph], IntArray | None],
) -> tuple[TimeExpandedGraph, IntArray]:
    """Find the least number of slots >= `fewest` with a flow that empties all pools."""

    def attempt(n_slots: int) -> tuple[TimeExpandedGraph, IntArray] | None:
        graph = time_expanded_graph(problem, slot_s, n_slots)
        flow = flow_through(graph)
        return None if flow is None else (graph, flow)

    n, step, failed = fewest, 1, fewest - 1
    while (found := attempt(n)) is None:
        failed, n, step = n, n + step, 2 * step
    while n - failed > 1:
        middle = (n + failed) // 2
        better = attempt(middle)
        if better is None:
            failed = middle
        else:
            n, found = middle, better
    return found


def _saturating(graph: TimeExpandedGraph, budget: Budget) -> IntArray | None:
    """Return a flow that empties all pools, None if there is none."""
    supply = np.array([pool.n_bytes for pool in graph.pools], dtype=np.int64)
    nodes = np.array([pool.node for pool in graph.pools], dtype=np.int64)
    network = FlowNetwork(
        graph.n_nodes + 1,
        np.concatenate([graph.tail, np.full(len(nodes), graph.n_nodes)]),
        np.concatenate([graph.head, nodes]),
        np.concatenate([graph.capacity_bytes, supply]),
    )
    flow = budget.flow_solver().max_flow(network, graph.n_nodes, graph.sink)
    if int(flow[graph.n_arcs :].sum()) < int(supply.sum()):
        return None
    return flow[: graph.n_arcs]


def _cheapest(graph: TimeExpandedGraph, budget: Budget) -> IntArray:
    supply = np.zeros(graph.n_nodes, dtype=np.int64)
    for pool in graph.pools:
        supply[pool.node] += pool.n_bytes
        supply[graph.sink] -= pool.n_bytes
    network = FlowNetwork(
        graph.n_nodes, graph.tail, graph.head, graph.capacity_bytes, slot_costs(graph)
    )
    return budget.flow_solver().min_cost_flow(network, supply)


def _require_arrival(problem: Problem, slot_s: float, budget: Budget) -> None:
    """Raise unless everything arrives in some number of slots.

    After the last change of bandwidth, data arrive some day wherever links and relays with
    storage lead to the destination; data elsewhere must have got there by then.
    """
    last = slots_until(float(breakpoints_s(problem)[-1]), slot_s)
    arriving = _eventually_arriving(problem, slot_s, last)
    stranded = sorted({parcel.host for parcel in problem.parcels if not arriving[parcel.host]})
    if not stranded:
        return
    if last == 0:
        raise _never_in_slots(problem, slot_s, stranded)
    require_slots(last)
    graph = time_expanded_graph(problem, slot_s, last)
    at_end = (graph.node_boundary == last) & (graph.node_kind != "arrivals")
    graph = _with_exits(graph, np.flatnonzero(at_end & arriving[graph.node_host]))
    arrives = (
        cheapest_shared(problem, graph, budget) if problem.shared else _saturating(graph, budget)
    )
    if arrives is None:
        raise _never_in_slots(problem, slot_s, stranded)


def _with_exits(graph: TimeExpandedGraph, nodes: IntArray) -> TimeExpandedGraph:
    """Add arcs from `nodes` to the sink that carry anything."""
    nodes = nodes[nodes != graph.sink]
    more = len(nodes)
    anything = sum(pool.n_bytes for pool in graph.pools)
    return replace(
        graph,
        tail=np.append(graph.tail, nodes),
        head=np.append(graph.head, np.full(more, graph.sink)),
        capacity_bytes=np.append(graph.capacity_bytes, np.full(more, anything)),
        slot=np.append(graph.slot, np.full(more, graph.n_slots)),
        link=np.append(graph.link, np.full(more, NO_LINK)),
        stored=np.append(graph.stored, np.zeros(more, dtype=bool)),
    )


def _eventually_arriving(problem: Problem, slot_s: float, slot: int) -> BoolArray:
    """Mark the hosts from which whole bytes get through in slots of the last period."""
    rate = slot_bandwidth_bytes_per_s(problem, max(slot, 1), slot_s)
    usable = whole_slot_bytes(rate, slot_s, 1) > 0
    for shared, links in zip(problem.shared, problem.shared_links, strict=True):
        if shared.bandwidth_bytes_per_s * slot_s < 1:
            usable[links] = False
    usable &= problem.uplink_bytes_per_s[problem.link_from] * slot_s >= 1
    usable &= problem.downlink_bytes_per_s[problem.link_to] * slot_s >= 1
    stores = problem.storage_bytes >= 1
    stores[problem.destination_index] = True
    usable &= stores[problem.link_to]
    tail, head = problem.link_from[usable], problem.link_to[usable]
    reached = np.zeros(problem.n_hosts, dtype=bool)
    reached[problem.destination_index] = True
    while True:
        more = tail[reached[head] & ~reached[tail]]
        if len(more) == 0:
            return reached
        reached[more] = True


def _never_in_slots(problem: Problem, slot_s: float, hosts: list[int]) -> InfeasibleError:
    names = [problem.names[host] for host in hosts]
    error = never_arrives(problem, names)
    return InfeasibleError(
        f"in slots of {slot_s:g} s {error}; or use longer slots (a link must carry a whole byte "
        "per slot) and relays with storage",
        names,
    )
