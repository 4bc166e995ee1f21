"""Flows by another way: HiGHS' cost, and proofs in whole numbers that nothing is cheaper."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from datacollect.solvers.networks import FlowNetwork


def network_of(n_nodes, arcs):
    """A network from rows (tail, head, capacity, cost)."""
    columns = np.array(arcs, dtype=np.int64).reshape(-1, 4).T
    return FlowNetwork(n_nodes, *columns)


def rows_of(network, flow):
    columns = (network.tail, network.head, network.capacity, network.cost, flow)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def balances(network, flow):
    """What leaves minus what arrives at every node; fails where a capacity is exceeded."""
    assert flow.dtype == np.int64
    assert flow.shape == network.tail.shape
    balance = [0] * network.n_nodes
    for tail, head, capacity, _, units in rows_of(network, flow):
        assert 0 <= units <= capacity
        balance[tail] += units
        balance[head] -= units
    return balance


def flow_value(network, flow, source, sink):
    """Units from source to sink; fails where units vanish or appear on the way."""
    balance = balances(network, flow)
    assert all(units == 0 for node, units in enumerate(balance) if node not in (source, sink)), (
        balance
    )
    return balance[source]


def total_cost(network, flow):
    return sum(cost * units for _, _, _, cost, units in rows_of(network, flow))


def has_negative_cycle(network, flow):
    """Bellman and Ford's test on the residual network, in exact integers."""
    residual = []
    for tail, head, capacity, cost, units in rows_of(network, flow):
        if units < capacity:
            residual.append((tail, head, cost))
        if units > 0:
            residual.append((head, tail, -cost))
    distance = [0] * network.n_nodes
    for _ in range(network.n_nodes):
        changed = False
        for tail, head, cost in residual:
            if distance[tail] + cost < distance[head]:
                distance[head] = distance[tail] + cost
                changed = True
        if not changed:
            return False
    return True


def cheapest_cost(network, supply):
    """The least cost of a flow that meets the supplies, by HiGHS; None if there is none."""
    if network.n_arcs == 0:
        return None if supply.any() else 0.0
    matrix = np.zeros((network.n_nodes, network.n_arcs))
    arcs = np.arange(network.n_arcs)
    matrix[network.tail, arcs] += 1
    matrix[network.head, arcs] -= 1
    bounds = [(0, capacity) for capacity in network.capacity.tolist()]
    answer = linprog(network.cost, A_eq=matrix, b_eq=supply, bounds=bounds, method="highs")
    assert answer.status in (0, 2)
    return answer.fun if answer.status == 0 else None
