"""References for plans in slots: flows through the whole time-expanded graph.

Each reference is prepared for a plan, which it finds out where it is not optimal: it takes a slot
too many, or costs more than the cheapest flow.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import reference_solvers
from speed_tables import TEXTBOOK

import datacollect as dc

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.flow.network.preference import Costs
    from datacollect.methods.slotted.graph import TimeExpandedGraph


def slots_of(plan: dc.Schedule) -> int:
    return round(plan.makespan_s / plan.slot_s)


def require_fewest(problem: dc.Problem, plan: dc.Schedule) -> None:
    """Assert that one slot less does not do."""
    graph = dc.time_expanded_graph(problem, plan.slot_s, slots_of(plan) - 1)
    assert reference_solvers.MaxFlow.in_slots(graph).solve() < problem.total_bytes


def whole_max_flow(problem: dc.Problem, plan: dc.Schedule, _prefer: str) -> Callable[[], int]:
    """Prepare the maximum flow that proves that all arrives in the plan's slots."""
    require_fewest(problem, plan)
    graph = dc.time_expanded_graph(problem, plan.slot_s, slots_of(plan))
    flow = reference_solvers.MaxFlow.in_slots(graph)

    def solve() -> int:
        arrived = flow.solve()
        assert arrived == problem.total_bytes, (arrived, problem.total_bytes)
        return arrived

    return solve


def whole_cheapest(
    problem: dc.Problem, plan: dc.Schedule, prefer: str, *, networkx: bool = False
) -> Callable[[], int]:
    """Prepare the minimum-cost flow through the whole time-expanded graph of the plan's slots."""
    from datacollect.flow.network.preference import path_costs
    from datacollect.methods.slotted.graph import slot_costs

    require_fewest(problem, plan)
    graph = dc.time_expanded_graph(problem, plan.slot_s, slots_of(plan))
    costs = path_costs(problem, prefer, np.full(graph.n_slots, plan.slot_s), graph.n_nodes)
    arc_costs, least = slot_costs(costs, graph), cost_of(plan, costs)
    if networkx:
        network = graph.to_networkx(problem)
        labels = list(network.nodes)
        for tail, head, cost in zip(graph.tail, graph.head, arc_costs.tolist(), strict=True):
            network.edges[labels[tail], labels[head]]["weight"] = cost
        cheapest = partial(reference_solvers.cheapest_by_networkx, network)
    else:
        cheapest = partial(reference_solvers.cheapest_by_ortools, graph, arc_costs)

    def solve() -> int:
        found = cheapest()
        assert found == least, (found, least)
        return found

    return solve


def textbook_cheapest(problem: dc.Problem, plan: dc.Schedule, prefer: str) -> Callable[[], int]:
    """Prepare the minimum-cost flow with one node per host and boundary.

    A source's own data wait in the same nodes as others' data: storage limits would need the own
    data apart, and so do costs of storage. Compared are the wishes that come before storage.
    """
    from datacollect.flow.network.preference import PREFERENCES, Costs, path_costs
    from datacollect.methods.slotted.graph import slot_costs

    assert not np.isfinite(problem.storage_bytes).any()
    require_fewest(problem, plan)
    graph = with_own_data_at_hosts(dc.time_expanded_graph(problem, plan.slot_s, slots_of(plan)))
    costs = path_costs(problem, prefer, np.full(graph.n_slots, plan.slot_s), graph.n_nodes)
    wishes = PREFERENCES[prefer]
    keeps_arrival = wishes.index("arrival") < wishes.index("storage")
    costs = Costs(costs.link, np.zeros_like(costs.stored), costs.arrival * keeps_arrival)
    arc_costs, least = slot_costs(costs, graph), cost_of(plan, costs)

    def solve() -> int:
        found = reference_solvers.cheapest_by_ortools(graph, arc_costs)
        assert found == least, (found, least)
        return found

    return solve


def with_own_data_at_hosts(graph: TimeExpandedGraph) -> TimeExpandedGraph:
    """Let own data enter at their hosts' nodes, and wait there as others' data do."""
    own = graph.node_kind == "own"  # the last nodes
    hosts = np.flatnonzero(graph.node_kind == "host")
    ends = zip(graph.node_host[hosts].tolist(), graph.node_boundary[hosts].tolist(), strict=True)
    node_at = dict(zip(ends, hosts.tolist(), strict=True))
    pools = [
        replace(pool, node=node_at[pool.host, int(graph.node_boundary[pool.node])])
        for pool in graph.pools
    ]
    columns = ("tail", "head", "capacity_bytes", "slot", "link", "stored")
    kept = ~own[graph.tail]
    arcs = {column: getattr(graph, column)[kept] for column in columns}
    return replace(graph, n_nodes=int((~own).sum()), pools=tuple(pools), **arcs)


def cost_of(plan: dc.Schedule, costs: Costs) -> int:
    """Cost of a slotted plan, from its transfers; all links and slots must cost alike.

    A byte pays for every link, for every slot from its arrival at a relay until it leaves, and for
    the slot in which it arrives at last, counted from 0.
    """
    columns = plan.columns
    first = np.rint(columns.start_s / plan.slot_s).astype(np.int64)
    last = np.rint(columns.finish_s / plan.slot_s).astype(np.int64) - 1
    is_last = columns.hop + 1 == np.array([route.n_hops for route in plan.routes])[columns.route]
    # Twice the mean slot of a transfer, which moves as much in each.
    twice = [
        n_bytes * (a + b)
        for n_bytes, a, b in zip(
            columns.n_bytes.tolist(), first.tolist(), last.tolist(), strict=True
        )
    ]
    waited = sum(t for t, hop in zip(twice, columns.hop, strict=True) if hop > 0)
    waited -= sum(t for t, ends in zip(twice, is_last, strict=True) if not ends)
    arrived = sum(t for t, ends in zip(twice, is_last, strict=True) if ends)
    link, stored, arrival = costs.link, costs.stored, np.diff(costs.arrival)
    assert all(len(np.unique(column)) <= 1 for column in (link, stored, arrival))
    total = int(link[0]) * sum(columns.n_bytes.tolist())
    return total + (int(stored[0]) * waited + int(arrival[0]) * arrived) // 2


SLOTTED_REFERENCES = {
    "none": ("none", None),
    "networkx": ("networkx network_simplex", partial(whole_cheapest, networkx=True)),
    "OR-Tools": ("OR-Tools min-cost flow", whole_cheapest),
    "textbook": (f"OR-Tools min-cost flow, {TEXTBOOK}", textbook_cheapest),
    "max-flow": ("OR-Tools max-flow, number of slots only", whole_max_flow),
}
