"""Costs of plans in slots: counted over their transfers, and by networkx on the whole graph."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np

from datacollect.flow.network.preference import path_costs
from datacollect.methods.slotted.graph import TimeExpansion, slot_costs, time_expanded_graph


def paid(problem, plan, prefer, n_slots):
    """What a plan costs, summed over its transfers.

    Bytes pay for each link; at a relay for each slot between coming and going; for their arrival.
    Held data have lain at their holder since slot 0.
    """
    costs = path_costs(
        problem, prefer, np.full(n_slots, plan.slot_s), nodes(problem, plan, n_slots)
    )
    assert len(set(costs.stored.tolist())) == 1
    stored = int(costs.stored[0])
    index = {name: i for i, name in enumerate(problem.names)}
    total = Fraction(0)
    columns = plan.columns
    for route, hop, n_bytes, start, finish in zip(
        columns.route.tolist(),
        columns.hop.tolist(),
        columns.n_bytes.tolist(),
        np.rint(columns.start_s / plan.slot_s).astype(int).tolist(),
        np.rint(columns.finish_s / plan.slot_s).astype(int).tolist(),
        strict=True,
    ):
        path = plan.routes[route]
        ends = [index[path.hosts[hop]], index[path.hosts[hop + 1]]]
        link = int(problem.link_indices(np.array(ends[:1]), np.array(ends[1:]))[0])
        per_slot = Fraction(n_bytes, finish - start)
        for slot in range(start, finish):
            total += per_slot * int(costs.link[link])
            if hop > 0 or path.hosts[0] != path.source:
                total += per_slot * stored * slot
            if hop + 2 < len(path.hosts):
                total -= per_slot * stored * slot
            else:
                total += per_slot * int(costs.arrival[slot])
    return total


def nodes(problem, plan, n_slots):
    return TimeExpansion(problem, plan.slot_s, n_slots).n_nodes


def least_cost(problem, slot_s, prefer, n_slots):
    """What networkx pays on the full time-expanded graph."""
    graph = time_expanded_graph(problem, slot_s, n_slots)
    costs = path_costs(problem, prefer, np.full(n_slots, slot_s), graph.n_nodes)
    network = graph.to_networkx(problem)
    labels = list(network.nodes)
    for tail, head, cost in zip(
        graph.tail.tolist(), graph.head.tolist(), slot_costs(costs, graph).tolist(), strict=True
    ):
        network.edges[labels[tail], labels[head]]["weight"] = cost
    return nx.network_simplex(network)[0]
