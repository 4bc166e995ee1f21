"""Flows of equal cost on fewer links: fewer routes, and fewer connections.

Where bandwidths change, a cheapest flow takes other links in each piece of time, though those of
one piece would do for the others as well. So keep the links that carry the most, and look whether a
flow on them alone costs no more. Bisection finds how many suffice. Fewest links would be a
fixed-charge problem, which is NP-hard (Guisewite and Pardalos, Annals of Operations Research 25,
1990); to leave out first what carries little costs some more flows on small networks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.errors import TimeLimitError
from datacollect.flow.network.few_arcs import suffice
from datacollect.flow.network.layered import NO_LINK
from datacollect.flow.network.ties import settled
from datacollect.flow.network.tolerances import SAME_COST
from datacollect.solvers.networks import FlowNetwork

if TYPE_CHECKING:
    from datacollect.flow.network.few_arcs import SupplyNetwork
    from datacollect.flow.network.restarts import Restarted
    from datacollect.numbers.arrays import BoolArray, IntArray
    from datacollect.solvers.budget import Budget


# Half of the links in use seldom suffice; of the others an eighth may be too many in the end.
MOST_TRIES = 3

# So few links are few enough.
FEW = 16


class ArcCosts(NamedTuple):
    """Costs of a unit on each arc, and the weight of one unit of the first wish in that.

    `again` finds cheapest flows on the same network, on some links alone, from where others ended.
    """

    every: IntArray
    first_weight: int
    again: Restarted | None = None

    def of_first_wish(self, flow: IntArray) -> float:
        """Return what a flow costs by the first wish alone."""
        used = np.flatnonzero(flow)
        return float(((self.every[used] // self.first_weight) * flow[used].astype(float)).sum())


def on_fewer_links(
    network: SupplyNetwork,
    link: IntArray,
    costs: ArcCosts,
    budget: Budget,
    flow: IntArray,
) -> IntArray:
    """Return a flow that costs as much as a cheapest one, on fewer links where that is found.

    Parameters
    ----------
    network : SupplyNetwork
    link : ndarray of int, shape (n_arcs,)
        The link that an arc stands for, in one piece of time of several; or `NO_LINK`.
    costs : ArcCosts
        What must not grow, and what is to be small besides.
    budget : Budget
    flow : ndarray of int64, shape (n_arcs,)
        A cheapest flow of all supplies.

    Returns
    -------
    ndarray of int64, shape (n_arcs,)
        Units per arc.
    """
    used = np.flatnonzero((flow > 0) & (link != NO_LINK))
    carried = np.bincount(link[used], flow[used], int(link.max()) + 1)
    by_amount = np.argsort(-carried, kind="stable")
    rank = np.empty_like(by_amount)
    rank[by_amount] = np.arange(len(by_amount))
    n_used = int(np.count_nonzero(carried))
    if n_used <= FEW:
        return flow
    rank = np.append(rank, -1)  # arcs of no link come first
    open_arcs = np.flatnonzero((rank[link] < n_used) & (network.capacity > 0))
    least_cost = costs.of_first_wish(flow) * (1 + SAME_COST)
    too_few, enough = n_used // 2, n_used
    for attempt in range(MOST_TRIES):
        if attempt == MOST_TRIES - 1 and enough == n_used:
            break  # hardly one can be spared
        n_kept = (too_few + enough) // 2
        arcs = open_arcs[rank[link[open_arcs]] < n_kept]
        try:
            found = _cheapest_on(network, arcs, costs, budget, rank[:-1] < n_kept)
        except TimeLimitError:
            return flow  # as good as any
        if found is None or costs.of_first_wish(found) > least_cost:
            too_few = n_kept
        else:
            flow, enough = found, n_kept
    return flow


def _cheapest_on(
    network: SupplyNetwork,
    arcs: IntArray,
    costs: ArcCosts,
    budget: Budget,
    kept: BoolArray,
) -> IntArray | None:
    """Return the cheapest flow of all supplies on some arcs; None if they do not suffice."""
    solver, again = budget.flow_solver(), costs.again
    if not (again.suffice if again else suffice)(network, solver, arcs):
        return None
    columns = (network.tail[arcs], network.head[arcs], network.capacity[arcs], costs.every[arcs])
    part = FlowNetwork(network.n_nodes, *columns)
    restarted = again.cheapest(network, costs.every, kept) if again else None
    if restarted is None:
        balance = network.supply.copy()
        balance[network.sink] -= int(network.supply.sum())
        found, potential = solver.min_cost_flow(part, balance), None
    else:
        found, potential = restarted[0][arcs], restarted[1]
    if budget.settle_ties:
        found = settled(part, found, solver, potential)
    flow = np.zeros(len(network.tail), dtype=np.int64)
    flow[arcs] = found
    return flow
