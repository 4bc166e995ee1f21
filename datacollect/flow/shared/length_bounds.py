"""Bounds that prices prove: the least length of the last piece of time, and what it is for.

The dual values of a linear program whose last piece of time is too short give a weighted sum of
capacities that all data must pass. Those in the last piece grow with its length; the length at
which everything gets through is the least conceivable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.network.layered import NO_LINK
from datacollect.flow.network.tolerances import NOISE, PRICED
from datacollect.flow.quickest.bottleneck import linear_bottleneck
from datacollect.flow.quickest.savings import Savings, savings_by_prices
from datacollect.flow.shared.network import SharedNetwork
from datacollect.flow.shared.pricing import largest_share

if TYPE_CHECKING:
    from datacollect.flow.shared.model import SharedModel
    from datacollect.flow.shared.pricing import PricedFlow
    from datacollect.numbers.arrays import FloatArray
    from datacollect.schedule.data.transfers import Bottleneck
    from datacollect.solvers.budget import Budget


@dataclass(frozen=True, eq=False)
class LengthBound:
    """A weighted sum of capacities that all data must pass, read from prices.

    What enters is worth 1 in all. Prices are per unit as a fraction of all data.

    Attributes
    ----------
    arc_price : ndarray of float, shape (n_arcs,)
        Of capacity; >= 0.
    row_price : ndarray of float, shape (n_shared, n_pieces)
        Of room in shared bottlenecks; >= 0.
    prices : PricedFlow
        Where they come from: a flow by a length that is too short.
    slope_per_s : float
        How much more passes per second of the last piece.
    least_s : float
        The last piece takes at least this long; infinite if no length suffices.
    """

    arc_price: FloatArray
    row_price: FloatArray
    prices: PricedFlow
    slope_per_s: float
    least_s: float

    def met_by(self, flow_bytes: FloatArray) -> LengthBound:
        """Return the bound with a flow of all data that takes no longer than it says."""
        return replace(self, prices=replace(self.prices, flow_bytes=flow_bytes))


def length_bound(model: SharedModel, lengths_s: FloatArray, found: PricedFlow) -> LengthBound:
    """Read from the prices at some length of the last piece how long it must be at least."""
    network, total = model.network, model.total_bytes
    last, length = network.n_pieces - 1, float(lengths_s[-1])
    capacity = np.minimum(network.capacity_bytes(lengths_s) / total, 1.0)
    price = -np.minimum(found.reduced_cost, 0.0)
    row_price = -found.row_price.reshape(-1, network.n_pieces)
    shared = model.shared_bytes_per_s / total
    # Sums of products rather than BLAS, whose idle threads keep every core busy for a while.
    passing = float((price * capacity).sum()) + float(
        (row_price * np.outer(shared, lengths_s)).sum()
    )
    # What carries everything already need not grow.
    growing = (network.piece == last) & np.isfinite(network.rate_bytes_per_s) & (capacity < 1)
    growing &= price > 0
    arc_terms = price[growing] * network.rate_bytes_per_s[growing] / total
    row_terms = row_price[:, last] * shared
    slope = float(arc_terms.sum() + row_terms.sum())
    needed = float((model.supply_bytes * found.node_price).sum()) / total
    largest = max(float(arc_terms.max(initial=0.0)), float(row_terms.max(initial=0.0)))
    # Prices that are rounding alone may make what is needed a little less than nothing.
    grows = slope > 0 and largest * length > NOISE * needed
    least = length + max(needed - passing, 0.0) / slope if grows else np.inf
    return LengthBound(price, row_price, found, slope, least)


def bound_before_destination(model: SharedModel, length_s: float, budget: Budget) -> LengthBound:
    """Read from the links into the destination alone how long the only piece must be at least.

    All other hosts count as one. Often that is the answer, and such prices blame nothing else:
    where several resources are filled at once, others may blame many.
    """
    network = model.network
    # The destination, its limit's node if it has one, all others.
    part = np.zeros(network.n_nodes, dtype=np.int64)
    part[network.sink] = 2
    limits = network.tail[(network.head == network.sink) & (network.link == NO_LINK)]
    part[limits] = 1
    arcs = np.flatnonzero(part[network.tail] < part[network.head])
    position = np.full(network.n_arcs, -1)
    position[arcs] = np.arange(len(arcs))
    counted = np.flatnonzero(position[model.member_arc] >= 0)
    lengths = np.array([length_s])
    whole = model.at(lengths)
    merged = SharedNetwork(
        3,
        2,
        part[network.tail[arcs]],
        part[network.head[arcs]],
        whole.capacity_bytes[arcs],
        np.array([whole.total_bytes, 0.0, 0.0]),
        whole.member_row[counted],
        position[whole.member_arc[counted]],
        whole.room_bytes,
    )
    found = largest_share(merged, budget, np.arange(len(arcs)))
    price = found.node_price[part]
    reduced = price[network.head] - price[network.tail]
    np.subtract.at(reduced, whole.member_arc, found.row_price[whole.member_row])
    flow = np.zeros(network.n_arcs)
    every = np.arange(network.n_arcs)
    prices = replace(
        found, flow_bytes=flow, arcs=every, node_price=price, reduced_cost=reduced, gap=np.inf
    )
    return length_bound(model, lengths, prices)


def bottleneck_of(model: SharedModel, lengths_s: FloatArray, bound: LengthBound) -> Bottleneck:
    """Name what has a price: shared bottlenecks, arcs of the last piece, and data behind them."""
    network, total = model.network, model.total_bytes
    room = np.outer(model.shared_bytes_per_s, lengths_s) / total
    shared = np.flatnonzero((bound.row_price * room > PRICED).any(axis=1))
    capacity = np.minimum(network.capacity_bytes(lengths_s) / total, 1.0)
    tight = bound.arc_price * capacity > PRICED
    arcs = np.flatnonzero(
        tight & (network.piece == network.n_pieces - 1) & np.isfinite(network.rate_bytes_per_s)
    )
    pools = [pool for pool in network.pools if bound.prices.node_price[pool.node] > PRICED]
    return linear_bottleneck(model.problem, network, shared.tolist(), arcs, pools)


def savings_of(model: SharedModel, lengths_s: FloatArray, bound: LengthBound) -> Savings:
    """One byte/s more lets more through in every piece, which the last need not."""
    network, total = model.network, model.total_bytes
    capacity = np.minimum(network.capacity_bytes(lengths_s) / total, 1.0)
    limits = np.isfinite(network.rate_bytes_per_s) & (capacity < 1)
    limits &= bound.arc_price * capacity > PRICED
    unit = total * bound.slope_per_s
    seconds = np.where(limits, bound.arc_price * lengths_s[network.piece] / unit, 0.0)
    return savings_by_prices(model.problem, network, seconds, bound.row_price @ lengths_s / unit)
