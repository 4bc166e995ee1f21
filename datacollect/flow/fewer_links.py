"""Of flows that cost the same, one on fewer links: fewer routes, and fewer connections.

Where bandwidths change, a cheapest flow takes other links in each piece of time, though those of
one piece would do for the others as well. So keep the links that carry the most, and look whether a
flow on them alone costs no more. How many suffice, bisection tells. Fewest links would be a
fixed-charge problem, which is NP-hard (Guisewite and Pardalos, Annals of Operations Research 25,
1990); to leave out first what carries little costs some more flows on small networks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.errors import InfeasibleError, TimeLimitError
from datacollect.flow.layered import NO_LINK
from datacollect.flow.tolerances import SAME_COST
from datacollect.solvers.networks import FlowNetwork

if TYPE_CHECKING:
    from datacollect.arrays import IntArray
    from datacollect.flow.few_arcs import SupplyNetwork
    from datacollect.solvers.networks import FlowSolver


# Half of the links in use seldom suffice; of the others an eighth may be too many in the end.
MOST_TRIES = 3

# So few links are few enough.
FEW = 16


class Costs(NamedTuple):
    """Of each arc, per unit: by the first wish alone, and by all of them."""

    first: IntArray
    every: IntArray


def on_fewer_links(
    network: SupplyNetwork, link: IntArray, costs: Costs, solver: FlowSolver, flow: IntArray
) -> IntArray:
    """Return a flow that costs as much as a cheapest one, on fewer links where that is found.

    Parameters
    ----------
    network : SupplyNetwork
    link : ndarray of int, shape (n_arcs,)
        The link that an arc stands for, in one piece of time of several; or `NO_LINK`.
    costs : Costs
        What must not grow, and what is to be small besides.
    solver : FlowSolver
    flow : ndarray of int64, shape (n_arcs,)
        A cheapest flow of all supplies.

    Returns
    -------
    ndarray of int64, shape (n_arcs,)
        Units per arc.
    """
    links = np.flatnonzero(link != NO_LINK)
    carried = np.bincount(link[links], flow[links])
    by_amount = np.argsort(-carried, kind="stable")
    rank = np.empty_like(by_amount)
    rank[by_amount] = np.arange(len(by_amount))
    n_used = int(np.count_nonzero(carried))
    if n_used <= FEW:
        return flow
    open_arcs = np.flatnonzero((network.capacity > 0) & ((link == NO_LINK) | (rank[link] < n_used)))
    least_cost = _cost(costs.first, flow) * (1 + SAME_COST)
    too_few, enough = n_used // 2, n_used
    for _ in range(MOST_TRIES):
        n_kept = (too_few + enough) // 2
        arcs = open_arcs[(link[open_arcs] == NO_LINK) | (rank[link[open_arcs]] < n_kept)]
        try:
            found = _cheapest_on(network, arcs, costs.every, solver)
        except TimeLimitError:
            return flow  # as good as any
        if found is None or _cost(costs.first, found) > least_cost:
            too_few = n_kept
        else:
            flow, enough = found, n_kept
    return flow


def _cost(cost: IntArray, flow: IntArray) -> float:
    return float((cost * flow.astype(float)).sum())


def _cheapest_on(
    network: SupplyNetwork, arcs: IntArray, cost: IntArray, solver: FlowSolver
) -> IntArray | None:
    """Return the cheapest flow of all supplies on some arcs; None if they do not suffice."""
    balance = network.supply.copy()
    balance[network.sink] -= int(network.supply.sum())
    columns = (network.tail[arcs], network.head[arcs], network.capacity[arcs], cost[arcs])
    try:
        found = solver.min_cost_flow(FlowNetwork(network.n_nodes, *columns), balance)
    except InfeasibleError:
        return None
    flow = np.zeros(len(network.tail), dtype=np.int64)
    flow[arcs] = found
    return flow
