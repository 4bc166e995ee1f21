"""The cheapest flow of all data: none is lost in a linear solver's tolerances."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.flow.network.arc_copies import with_copies
from datacollect.flow.network.tolerances import PROGRAM_SLACK, SAME_SUPPLY
from datacollect.flow.routes.routes import decompose
from datacollect.flow.shared.model import too_wide
from datacollect.flow.shared.pricing import NO_ARCS, cheapest

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.flow.shared.network import SharedNetwork
    from datacollect.flow.shared.pricing import PricedFlow
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.solvers.budget import Budget


# Data that drown in a linear program's tolerances are sent by one of their own, where the smallest
# may drown again.
MOST_REPAIRS = 2


def cheapest_complete(
    network: LayeredNetwork,
    widened: Callable[[float], SharedNetwork],
    cost: FloatArray,
    budget: Budget,
    arcs: IntArray | None = None,
    copies: IntArray = NO_ARCS,
) -> PricedFlow:
    """Find the cheapest flow of all data, none of which is lost in a solver's tolerances.

    Parameters
    ----------
    network : LayeredNetwork
    widened : function of float
        Returns the network for the linear program, with capacities wider by a part.
    cost : ndarray of float
        Of each arc of that network.
    budget : Budget
    arcs : ndarray of int, optional
        Arcs of that network on which all can arrive.
    copies : ndarray of int, optional
        Arcs of the layered network that it has a second time, behind all others; most likely
        these are filled.

    Raises
    ------
    SolverError
        Numbers too far apart for the solver's tolerances.
    """

    def missing_bytes(found: PricedFlow) -> FloatArray:
        return _missing_bytes(network, with_copies(found.flow_bytes, network.n_arcs, copies))

    for slack in PROGRAM_SLACK:
        wide = widened(slack)
        try:
            full = np.arange(network.n_arcs, wide.n_arcs)
            found = cheapest(wide, cost, budget, arcs, full)
            missing = missing_bytes(found)
            for _ in range(MOST_REPAIRS):
                if missing.any():
                    found = _with_missing(wide, cost, found, missing, budget)
                    missing = missing_bytes(found)
            if not missing.any():
                return found
        except InfeasibleError:
            continue
    raise too_wide(network, f"{budget.linear_solver().name} lost data in its tolerances")


def _with_missing(
    network: SharedNetwork,
    cost: FloatArray,
    found: PricedFlow,
    missing_bytes: FloatArray,
    budget: Budget,
) -> PricedFlow:
    """Send, in the room that is left, what a flow within tolerances loses before the sink.

    A few bytes among many terabytes are less than a linear program's tolerance. In a program of
    their own they count in full.

    Raises
    ------
    InfeasibleError
        The flow leaves no room for them.
    """
    flow = found.flow_bytes
    used = np.bincount(network.member_row, flow[network.member_arc], len(network.room_bytes))
    remaining = replace(
        network,
        capacity_bytes=np.maximum(network.capacity_bytes - flow, 0.0),
        supply_bytes=missing_bytes,
        room_bytes=np.maximum(network.room_bytes - used, 0.0),
    )
    more = cheapest(remaining, cost, budget).flow_bytes
    paid, extra = float((cost * flow).sum()), float((cost * more).sum())
    # The bound behind the gap is one for all data, so all of `extra` may be too much.
    gap = (found.gap * paid + extra) / max(paid + extra, 1e-300)
    return replace(found, flow_bytes=flow + more, gap=gap)


def _missing_bytes(network: LayeredNetwork, flow_bytes: FloatArray) -> FloatArray:
    """Return per node what paths do not carry of its supply: tolerances may lose small amounts.

    Paths may carry too much: in the end they share what the source holds.
    """
    paths = decompose(network, network.piece, flow_bytes)
    numbers = np.array([path.pool for path in paths], dtype=np.int64)
    arrived = np.bincount(numbers, [path.amount for path in paths], len(network.pools))
    missing = np.zeros(network.n_nodes)
    for pool, amount in zip(network.pools, arrived.tolist(), strict=True):
        if not np.isclose(amount, pool.n_bytes, rtol=SAME_SUPPLY, atol=0.5):
            missing[pool.node] += max(pool.n_bytes - amount, 0.0)
    return missing
