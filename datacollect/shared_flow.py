"""The fluid optimum with shared bottlenecks: linear programs on the layered network.

A capacity that arbitrary links share breaks the network structure. For a given length of the last
piece of time, a linear program tells the largest share of all data that can arrive
(`arc_pricing`). Its dual values bound the share for every other length, too: a weighted sum of
capacities that all data must pass, of which those in the last piece grow with its length. The
length at which that bound lets everything through is the next one to try: Newton's method, as for
cuts in `quickest` (Dinkelbach, Management Science 13, 1967). With one piece all capacities grow
alike, and the first bound is exact.

A last linear program keeps the earliest end, or a given one, and takes the cheapest flow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from datacollect.arc_pricing import (
    TOLERANCE,
    PricedFlow,
    SharedNetwork,
    cheapest,
    largest_share,
)
from datacollect.bottleneck import cut_bottleneck, linear_bottleneck
from datacollect.errors import InfeasibleError, SolverError
from datacollect.layered import NO_LINK, layered_network
from datacollect.preference import DEFAULT, arc_costs, path_costs
from datacollect.routes import decompose
from datacollect.savings import Savings, savings_by_cut, savings_by_prices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.budget import Budget
    from datacollect.layered import LayeredNetwork
    from datacollect.problem import Problem
    from datacollect.quickest import Quickest
    from datacollect.schedule import Bottleneck

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# The cheapest flow may exceed capacities by this part: the earliest end leaves no room otherwise,
# and is known to about 1e-9. The next is tried where rounding forbids the one before. All are far
# below the 1e-6 at which schedules are judged.
CAPACITY_SLACK = (1e-9, 1e-8, 1e-7)

# What arrives of a source is what it holds up to this part, at which schedules are judged, or up
# to half a byte.
SUPPLY_TOLERANCE = 1e-6

# What grows by less than this part is what is left of rounding; what is worth less than the second
# part of all prices together is not named.
NOISE = 1e-10
PRICED = 1e-7

# Parts of a piece, or of the time before it, with which to begin where the end may lie in it.
SHORTEST = (1e-6, 1e-12)

Flow = TypeVar("Flow", IntArray, FloatArray)

NO_ARCS = np.zeros(0, dtype=np.int64)

# Newton's method takes a handful of steps.
MOST_STEPS = 200

# Data that drown in a linear program's tolerances are sent by one of their own, where the smallest
# may drown again.
MOST_REPAIRS = 2

# A share below this is known too roughly to scale a flow up by its inverse.
LEAST_SHARE_TO_SCALE = 0.1


@dataclass(frozen=True, eq=False)
class SharedEnd:
    """The earliest end with shared bottlenecks, and what forbids an earlier one.

    Attributes
    ----------
    network : LayeredNetwork
    lengths_s : ndarray of float, shape (n_pieces,)
        Data move during the first ``lengths_s[k]`` seconds of piece k.
    bottleneck : Bottleneck
    savings : Savings
        What one more byte/s would save where.
    arcs : ndarray of int
        Arcs of the network on which all can arrive by then.
    solver : str
    prices : PricedFlow or None
        What proves that nothing ends earlier: a flow that is too small by an earlier end, with its
        prices. None where shared bottlenecks delay nothing.
    cut : ndarray of bool or None
        Then the cut that proves it; None where neither is known.
    """

    network: LayeredNetwork
    lengths_s: FloatArray
    bottleneck: Bottleneck
    savings: Savings
    arcs: IntArray
    solver: str
    prices: PricedFlow | None = None
    cut: BoolArray | None = None

    @property
    def makespan_s(self) -> float:
        """The end of the last piece."""
        return float(self.network.starts_s[-1] + self.lengths_s[-1])


@dataclass(frozen=True, eq=False)
class SharedQuickest:
    """A cheapest flow that ends as early as possible, or by a given instant.

    Attributes
    ----------
    network : LayeredNetwork
    lengths_s : ndarray of float, shape (n_pieces,)
        Data move during the first ``lengths_s[k]`` seconds of piece k.
    flow_bytes : ndarray of float, shape (n_arcs,)
    solver : str
    gap : float
        Another flow is cheaper by at most this part of the costs.
    """

    network: LayeredNetwork
    lengths_s: FloatArray
    flow_bytes: FloatArray
    solver: str
    gap: float

    @property
    def makespan_s(self) -> float:
        """The end of the last piece."""
        return float(self.network.starts_s[-1] + self.lengths_s[-1])


def quickest_shared(
    problem: Problem,
    starts_s: FloatArray,
    guard_s: float,
    relaxed: Quickest,
    budget: Budget,
    prefer: str = DEFAULT,
    end_s: float | None = None,
    known: SharedEnd | None = None,
) -> SharedQuickest:
    """Find the cheapest flow with the earliest end, or one that ends by `end_s`.

    Parameters
    ----------
    problem : Problem
        With shared bottlenecks.
    starts_s : ndarray of float
        Instants at which pieces of time begin.
    guard_s : float
        Every piece that another follows ends this much early.
    relaxed : Quickest
        The optimum without shared bottlenecks, with the same pieces and guard.
    budget : Budget
    prefer : str
        A key of ``PREFERENCES`` in `datacollect.preference`.
    end_s : float, optional
        When the last piece ends; without it as early as possible.
    known : SharedEnd, optional
        What `earliest_shared` found for the same arguments.

    Raises
    ------
    InfeasibleError
        Some data cannot arrive at all, or not by `end_s`.
    """
    if end_s is None:
        end = known or earliest_shared(problem, starts_s, guard_s, relaxed, budget)
        network, lengths, arcs = end.network, end.lengths_s, end.arcs
        model = SharedModel.build(problem, network)
    else:
        network, lengths = _until(problem, starts_s, guard_s, relaxed, end_s)
        model = SharedModel.build(problem, network)
        possible = largest_share(model.at(lengths), budget)
        if possible.share < 1 - TOLERANCE:
            raise _too_early(problem, end_s)
        arcs = possible.arcs
    found = _cheapest(model, lengths, prefer, budget, arcs)
    return SharedQuickest(
        network, lengths, found.flow_bytes, budget.linear_solver().name, found.gap
    )


def earliest_shared(
    problem: Problem,
    starts_s: FloatArray,
    guard_s: float,
    relaxed: Quickest,
    budget: Budget,
    *,
    few: bool = False,
) -> SharedEnd:
    """Find the earliest end; see `quickest_shared`.

    Where links are `few`, all are taken from the start: quicker than choosing. And the destination
    is tried first, as what most likely binds.

    Raises
    ------
    InfeasibleError
        Shared bottlenecks and forecasts together let some data never arrive.
    """
    full = np.maximum(np.diff(starts_s) - guard_s, 0.0)

    def end_in(n_pieces: int) -> SharedEnd | None:
        network, length = relaxed.network, float(relaxed.lengths_s[-1])
        if n_pieces > network.n_pieces:
            network, length = layered_network(problem, starts_s[:n_pieces]), 0.0
        longest = float(full[n_pieces - 1]) if n_pieces < len(starts_s) else np.inf
        model = SharedModel.build(problem, network)
        arcs = np.arange(network.n_arcs) if few else None
        if length > 0:
            bound = None
            if few and len(starts_s) == 1:
                bound = _before_destination(model, length, budget)
                bound = bound if length < bound.least_s < np.inf else None
            return _newton(
                model, full[: n_pieces - 1], (length,), longest, relaxed, budget, arcs, bound
            )
        # Where the last piece has no length its arcs have no price: begin with next to none.
        scale_s = min(longest, float(starts_s[n_pieces - 1]))
        tries = tuple(scale_s * part for part in SHORTEST)
        return _newton(model, full[: n_pieces - 1], tries, longest, relaxed, budget, arcs)

    found = _first(end_in, relaxed.network.n_pieces, len(starts_s))
    if found is None:
        raise InfeasibleError(
            "shared bottlenecks and forecasts together let some data never arrive at "
            f"{problem.destination!r}; raise a shared bottleneck or the last period's bandwidth",
            problem.sources,
        )
    return found


def _first(attempt: Callable[[int], SharedEnd | None], low: int, high: int) -> SharedEnd | None:
    """Return the attempt with the smallest number that succeeds; beyond it all succeed."""
    found = attempt(low)
    if found is not None:
        return found
    step = 1
    while found is None:
        if low == high:
            return None
        probe = min(low + step, high)
        found = attempt(probe)
        if found is None:
            low, step = probe, 2 * step
        else:
            high = probe
    while high - low > 1:
        middle = (low + high) // 2
        earlier = attempt(middle)
        if earlier is None:
            low = middle
        else:
            found, high = earlier, middle
    return found


@dataclass(frozen=True, eq=False)
class SharedModel:
    """A layered network with the arcs of shared bottlenecks, one side constraint per piece.

    Shared bottleneck k in piece p is side constraint ``k * n_pieces + p``.
    """

    problem: Problem
    network: LayeredNetwork
    supply_bytes: FloatArray
    member_row: IntArray
    member_arc: IntArray
    shared_bytes_per_s: FloatArray

    @classmethod
    def build(cls, problem: Problem, network: LayeredNetwork) -> SharedModel:
        """Look up the arcs that stand for the links of shared bottlenecks."""
        supply = np.zeros(network.n_nodes)
        for pool in network.pools:
            supply[pool.node] += pool.n_bytes
        used = np.flatnonzero(network.link != NO_LINK)
        arc_of = np.full((network.n_pieces, problem.n_links), -1)
        arc_of[network.piece[used], network.link[used]] = used
        rows, arcs = [], []
        for number, members in enumerate(problem.shared_links):
            piece, position = np.nonzero(arc_of[:, members] >= 0)
            rows.append(number * network.n_pieces + piece)
            arcs.append(arc_of[piece, members[position]])
        rates = np.array([shared.bandwidth_bytes_per_s for shared in problem.shared])
        return cls(problem, network, supply, np.concatenate(rows), np.concatenate(arcs), rates)

    def at(self, lengths_s: FloatArray, slack: float = 0.0) -> SharedNetwork:
        """Return the capacities of pieces with these lengths, a part `slack` wider."""
        network = self.network
        room = np.outer(self.shared_bytes_per_s, lengths_s).ravel()
        return SharedNetwork(
            network.n_nodes,
            network.sink,
            network.tail,
            network.head,
            network.capacity_bytes(lengths_s) * (1 + slack),
            self.supply_bytes,
            self.member_row,
            self.member_arc,
            room * (1 + slack),
        )


@dataclass(frozen=True, eq=False)
class _Bound:
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


def _bound(model: SharedModel, lengths_s: FloatArray, found: PricedFlow) -> _Bound:
    """Read from the prices at some length of the last piece how long it must be at least."""
    network, total = model.network, float(model.supply_bytes.sum())
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
    grows = largest * length > NOISE * needed
    least = length + max(needed - passing, 0.0) / slope if grows else np.inf
    return _Bound(price, row_price, found, slope, least)


def _before_destination(model: SharedModel, length_s: float, budget: Budget) -> _Bound:
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
    return _bound(model, lengths, prices)


def _newton(
    model: SharedModel,
    full_s: FloatArray,
    tries_s: Sequence[float],
    longest_s: float,
    relaxed: Quickest,
    budget: Budget,
    arcs: IntArray | None,
    bound: _Bound | None = None,
) -> SharedEnd | None:
    """Find the least length of the last piece; None beyond `longest_s`.

    It begins with the first of `tries_s` that does not suffice; if all do, the last is taken. Or it
    begins at a bound.
    """
    tries, enough = list(tries_s), None
    length = tries.pop(0) if bound is None else bound.least_s
    for _ in range(MOST_STEPS):
        lengths = np.append(full_s, length)
        found = largest_share(model.at(lengths), budget, arcs)
        arcs = found.arcs
        if found.share >= 1 - TOLERANCE:
            if bound is not None:
                flowing = replace(bound.prices, flow_bytes=found.flow_bytes)
                bound = replace(bound, prices=flowing)
            if bound is not None or not tries:
                return _end(model, lengths, bound, relaxed, arcs, budget)
            enough, length = lengths, tries.pop(0)
            continue
        if length >= longest_s:
            return None
        bound = _bound(model, lengths, found)
        if not np.isfinite(bound.least_s):
            # So little is missing that its price is lost in tolerances, or nothing helps.
            return None if enough is None else _end(model, enough, None, relaxed, arcs, budget)
        only_piece = len(full_s) == 0 and found.share > LEAST_SHARE_TO_SCALE
        if only_piece and bound.least_s <= longest_s:
            return _end(model, np.array([bound.least_s]), bound, relaxed, arcs, budget)
        # Rounding could return the same length for ever; the step is far below what counts.
        length = min(max(bound.least_s, length * (1 + TOLERANCE / 10)), longest_s)
    raise _too_wide(
        model.network, f"Newton's method did not settle in {MOST_STEPS} linear programs"
    )


def _end(
    model: SharedModel,
    lengths_s: FloatArray,
    bound: _Bound | None,
    relaxed: Quickest,
    arcs: IntArray,
    budget: Budget,
) -> SharedEnd:
    """Put together the end found; without a bound shared bottlenecks do not delay it."""
    problem, network, solver = model.problem, model.network, budget.linear_solver().name
    if bound is None:
        bottleneck, savings = cut_bottleneck(problem, relaxed), savings_by_cut(problem, relaxed)
        cut = relaxed.cut if network is relaxed.network else None
        return SharedEnd(network, lengths_s, bottleneck, savings, arcs, solver, cut=cut)
    bottleneck = _bottleneck(model, lengths_s, bound)
    savings = _savings(model, lengths_s, bound)
    return SharedEnd(network, lengths_s, bottleneck, savings, arcs, solver, prices=bound.prices)


def _bottleneck(model: SharedModel, lengths_s: FloatArray, bound: _Bound) -> Bottleneck:
    """Name what has a price: shared bottlenecks, arcs of the last piece, and data behind them."""
    network, total = model.network, float(model.supply_bytes.sum())
    room = np.outer(model.shared_bytes_per_s, lengths_s) / total
    shared = np.flatnonzero((bound.row_price * room > PRICED).any(axis=1))
    capacity = np.minimum(network.capacity_bytes(lengths_s) / total, 1.0)
    tight = bound.arc_price * capacity > PRICED
    arcs = np.flatnonzero(
        tight & (network.piece == network.n_pieces - 1) & np.isfinite(network.rate_bytes_per_s)
    )
    pools = [pool for pool in network.pools if bound.prices.node_price[pool.node] > PRICED]
    return linear_bottleneck(model.problem, network, shared.tolist(), arcs, pools)


def _savings(model: SharedModel, lengths_s: FloatArray, bound: _Bound) -> Savings:
    """One byte/s more lets more through in every piece, which the last need not."""
    network, total = model.network, float(model.supply_bytes.sum())
    capacity = np.minimum(network.capacity_bytes(lengths_s) / total, 1.0)
    limits = np.isfinite(network.rate_bytes_per_s) & (capacity < 1)
    limits &= bound.arc_price * capacity > PRICED
    unit = total * bound.slope_per_s
    seconds = np.where(limits, bound.arc_price * lengths_s[network.piece] / unit, 0.0)
    return savings_by_prices(model.problem, network, seconds, bound.row_price @ lengths_s / unit)


def _until(
    problem: Problem, starts_s: FloatArray, guard_s: float, relaxed: Quickest, end_s: float
) -> tuple[LayeredNetwork, FloatArray]:
    """Return the layered network of all pieces until `end_s`, and their lengths."""
    n_pieces = int(np.searchsorted(starts_s, end_s))
    if n_pieces < relaxed.network.n_pieces:
        raise _too_early(problem, end_s)
    network = relaxed.network
    if n_pieces > network.n_pieces:
        network = layered_network(problem, starts_s[:n_pieces])
    full = np.append(np.maximum(np.diff(starts_s) - guard_s, 0.0), np.inf)[:n_pieces]
    full[-1] = min(full[-1], end_s - float(starts_s[n_pieces - 1]))
    return network, full


def _too_early(problem: Problem, end_s: float) -> InfeasibleError:
    return InfeasibleError(
        f"not everything can arrive at {problem.destination!r} within {end_s:g} s; allow more time",
        problem.sources,
    )


def _cheapest(
    model: SharedModel, lengths_s: FloatArray, prefer: str, budget: Budget, arcs: IntArray
) -> PricedFlow:
    network = model.network
    costs = path_costs(model.problem, prefer, lengths_s, network.n_nodes)
    cost = arc_costs(costs, network, network.piece).astype(float)
    return cheapest_complete(network, lambda slack: model.at(lengths_s, slack), cost, budget, arcs)


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

    for slack in CAPACITY_SLACK:
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
    raise _too_wide(network, f"{budget.linear_solver().name} lost data in its tolerances")


def with_copies(flow: Flow, n_arcs: int, copies: IntArray) -> Flow:
    """Add what flows through second copies of arcs, the last ones, to what flows through the arcs.

    >>> with_copies(np.array([1.0, 2.0, 0.5]), 2, np.array([1]))
    array([1. , 2.5])
    """
    together: Flow = flow[:n_arcs].copy()
    np.add.at(together, copies, flow[n_arcs:])
    return together


def _with_missing(
    network: SharedNetwork,
    cost: FloatArray,
    found: PricedFlow,
    missing_bytes: FloatArray,
    budget: Budget,
) -> PricedFlow:
    """Send, in the room that is left, what a flow within tolerances loses on the way.

    A few bytes among many terabytes are less than a linear program's tolerance. In a program of
    their own they count in full.

    Raises
    ------
    InfeasibleError
        The flow leaves no room for them.
    """
    flow = found.flow_bytes
    used = np.bincount(network.member_row, flow[network.member_arc], len(network.room_bytes))
    rest = replace(
        network,
        capacity_bytes=np.maximum(network.capacity_bytes - flow, 0.0),
        supply_bytes=missing_bytes,
        room_bytes=np.maximum(network.room_bytes - used, 0.0),
    )
    more = cheapest(rest, cost, budget).flow_bytes
    paid, extra = float((cost * flow).sum()), float((cost * more).sum())
    # The bound behind the gap is one for all data, so all of `extra` may be too much.
    gap = (found.gap * paid + extra) / max(paid + extra, 1e-300)
    return replace(found, flow_bytes=flow + more, gap=gap)


def _too_wide(network: LayeredNetwork, failure: str) -> SolverError:
    """Say that numbers are too far apart, and which are the smallest."""
    rate = network.rate_bytes_per_s
    slowest = float(rate[np.isfinite(rate) & (rate > 0)].min())
    smallest = min(pool.n_bytes for pool in network.pools if pool.n_bytes > 0)
    total = sum(pool.n_bytes for pool in network.pools)
    return SolverError(
        f"{failure}: amounts span too many orders of magnitude; of "
        f"{total} bytes in all a source holds {smallest}, and the slowest link "
        f"or host limit is {slowest:.3g} bytes/s; leave out sources and links of next to nothing"
    )


def _missing_bytes(network: LayeredNetwork, flow_bytes: FloatArray) -> FloatArray:
    """Return per node what paths do not carry of its supply: small ones may drown on the way.

    Paths that carry too much do no harm: in the end they share what the source holds.
    """
    paths = decompose(network, network.piece, flow_bytes)
    numbers = np.array([path.pool for path in paths], dtype=np.int64)
    arrived = np.bincount(numbers, [path.amount for path in paths], len(network.pools))
    missing = np.zeros(network.n_nodes)
    for pool, amount in zip(network.pools, arrived.tolist(), strict=True):
        if not np.isclose(amount, pool.n_bytes, rtol=SUPPLY_TOLERANCE, atol=0.5):
            missing[pool.node] += max(pool.n_bytes - amount, 0.0)
    return missing
