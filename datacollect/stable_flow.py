"""Planning anew with few changes: little goes over links that the old plan does not use.

An old plan uses a few thousand of a million links. Its links are planned on alone, then with those
into the destination; all other links are only looked at:

- The earliest end on few links is the earliest on all, if no other link crosses the minimum cut
  that forbids an earlier one. Links that do cross it are added.
- A cheapest flow on few links is a cheapest on all, if no other link is worth its cost by the
  distances to the sink in the residual network (reduced costs; Ahuja, Magnanti and Orlin, Network
  Flows, 1993, section 9.3). Links that are worth it are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.flow import FlowNetwork
from datacollect.fluid import FluidPlan
from datacollect.layered import NO_LINK, breakpoints_s, layered_network
from datacollect.preference import LONGEST_PATH
from datacollect.quickest import NeverArrives, ScaledFlow, quickest
from datacollect.restricted_flow import distance_to
from datacollect.routes import decompose

if TYPE_CHECKING:
    from datacollect.budget import Budget
    from datacollect.layered import LayeredNetwork
    from datacollect.problem import Problem
    from datacollect.quickest import Quickest

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# An end that is later by less than this part is the same.
SAME_END = 1e-9

# Of larger cuts each host gets this many links at first.
MANY_PER_HOST = 16

# Links are looked up by their ends where those are fewer pairs than this part of all links.
FEW_PAIRS = 16

# Of the links that are worth adding, each host gets this many at a time, the best.
LINKS_AT_A_TIME = 8


@dataclass(frozen=True, eq=False)
class OldUse:
    """What the old plan would still send over which links.

    Attributes
    ----------
    links : ndarray of int, shape (n_links,)
        The links that it uses, sorted.
    n_bytes : ndarray of float, shape (n_pieces, n_links)
        In each piece of time; in the last one also whatever comes later.
    """

    links: IntArray
    n_bytes: FloatArray


@dataclass(frozen=True, eq=False)
class ProvedOptimum:
    """The earliest end over all links, found on few of them.

    Attributes
    ----------
    problem : Problem
        With the few links only: `found` numbers its links.
    links : ndarray of int
        Which links of the whole problem they are.
    found : Quickest
    alone : Quickest or None
        The earliest end on the links of the old plan alone; None where those never suffice.
    """

    problem: Problem
    links: IntArray
    found: Quickest
    alone: Quickest | None


@dataclass(frozen=True, eq=False)
class _Flow:
    """A flow, in units, through the layered network of a problem with few links."""

    network: LayeredNetwork
    lengths_s: FloatArray
    units: IntArray
    new_units: int
    links: IntArray


def proved_optimum(
    problem: Problem,
    old_links: IntArray,
    guard_s: float,
    budget: Budget,
    likely: IntArray | None = None,
) -> ProvedOptimum:
    """Find the earliest end over all links of a problem without shared bottlenecks.

    Parameters
    ----------
    problem : Problem
    old_links : ndarray of int
        Those of the old plan, sorted. Where they suffice, no other is looked at but to prove it.
    guard_s : float
        Every piece of time but the last ends this much early.
    budget : Budget
    likely : ndarray of int, optional
        Links to go on with where those do not suffice, the old ones among them.

    Raises
    ------
    NeverArrives
        Some data cannot arrive.
    """
    starts, solver = breakpoints_s(problem), budget.flow_solver()
    few = problem.with_links(old_links)
    alone: Quickest | None
    try:
        found = quickest(few, starts, guard_s, solver)
    except NeverArrives:
        alone, more = None, old_links[:0]
    else:
        alone, more = found, _crossing(problem, old_links, few, found.network, found.cut)
        if len(more) == 0:
            return ProvedOptimum(few, old_links, found, alone)
    links = _likely(problem, old_links, budget) if likely is None else likely
    for attempt in count():
        links = _union(problem, links, _wide_enough(problem, more, attempt))
        few = problem.with_links(links)
        try:
            found = quickest(few, starts, guard_s, solver)
        except NeverArrives as never:
            more = _crossing(problem, links, few, never.network, never.cut)
            if len(more) == 0:
                raise
        else:
            more = _crossing(problem, links, few, found.network, found.cut)
            if len(more) == 0:
                return ProvedOptimum(few, links, found, alone)
    raise AssertionError  # links are added until none is left


def stable_plan(
    problem: Problem,
    old: OldUse,
    optimum: ProvedOptimum,
    guard_s: float,
    latest_s: float,
    budget: Budget,
) -> FluidPlan:
    """Return a plan that changes little, see `stable_costs`.

    Parameters
    ----------
    problem : Problem
        Without shared bottlenecks.
    old : OldUse
    optimum : ProvedOptimum
        The earliest end with this guard.
    guard_s : float
        Every piece of time but the last ends this much early.
    latest_s : float
        The plan ends by then; sooner where the old links alone suffice, or where more time spares
        new links nothing.
    budget : Budget
    """
    earliest, alone = optimum.found, optimum.alone
    latest_s = max(latest_s, earliest.makespan_s)
    if alone is not None and alone.makespan_s <= latest_s * (1 + SAME_END):
        best = _cheapest(problem, old.links, alone.network, old, alone.lengths_s, budget)
    else:
        best = _cheapest(problem, optimum.links, earliest.network, old, earliest.lengths_s, budget)
        if latest_s > earliest.makespan_s * (1 + SAME_END):
            lengths = _lengths_until(problem, guard_s, latest_s)
            later = _cheapest(problem, best.links, best.network, old, lengths, budget)
            # What new links must carry falls with the end, ever more slowly: equal at both ends
            # of the leeway means equal throughout.
            if later.new_units < best.new_units * (1 - SAME_END):
                best = later
    network = best.network
    return FluidPlan(
        network.starts_s,
        best.lengths_s,
        network.pools,
        decompose(network, network.piece, best.units),
        budget.flow_solver().name,
    )


def stable_costs(network: LayeredNetwork, is_new: BoolArray) -> tuple[IntArray, int]:
    """Weigh changes: bytes on new links, then more than before on old ones, then hops, storage.

    Strict for paths of up to `LONGEST_PATH` links, as in `datacollect.preference`.

    Parameters
    ----------
    network : LayeredNetwork
    is_new : ndarray of bool, shape (n_links,)
        Of the links that the network was made of: those that the old plan does not use.

    Returns
    -------
    cost : ndarray of int64, shape (n_arcs,)
        Per byte beyond what the old plan sends over the arc.
    less : int
        So much cheaper is a byte within that.
    """
    hop = network.n_pieces  # more than storing through all pieces
    more = hop * (LONGEST_PATH + 1)
    is_link = network.link != NO_LINK
    cost = np.where(is_link, hop + more, 0) + network.stored
    cost[is_link] += (more * (LONGEST_PATH + 1) - more) * is_new[network.link[is_link]]
    return cost.astype(np.int64), more


# On few links -------------------------------------------------------------------------------


def _lengths_until(problem: Problem, guard_s: float, end_s: float) -> FloatArray:
    """Lengths of the pieces of time that begin before an end."""
    starts = breakpoints_s(problem)
    n_pieces = max(int(np.searchsorted(starts, end_s)), 1)
    full = np.maximum(np.diff(starts) - guard_s, 0.0)
    last_s = min([end_s - float(starts[n_pieces - 1]), *full[n_pieces - 1 : n_pieces].tolist()])
    return np.append(full[: n_pieces - 1], last_s)


def _cheapest(
    problem: Problem,
    links: IntArray,
    network: LayeredNetwork,
    old: OldUse,
    lengths_s: FloatArray,
    budget: Budget,
) -> _Flow:
    """Find the cheapest flow over all links, beginning with few and, if it fits, their network."""
    solver = budget.flow_solver()
    few = problem.with_links(links)
    if network.n_pieces != len(lengths_s):
        network = layered_network(few, breakpoints_s(problem)[: len(lengths_s)])
    while True:
        is_new = ~_among(old.links, links)
        scaled = ScaledFlow(network, solver)
        priced = _priced(scaled, links, is_new, old, lengths_s)
        balance = scaled.supplied(lengths_s).supply.copy()
        balance[network.sink] -= int(balance.sum())
        flow = solver.min_cost_flow(priced.network, balance)
        units = flow[: network.n_arcs].copy()
        np.add.at(units, priced.of_arc, flow[network.n_arcs :])
        is_link = network.link != NO_LINK
        new_units = int(units[is_link][is_new[network.link[is_link]]].sum())
        found = _Flow(network, lengths_s, units, new_units, links)
        if new_units == 0:
            return found
        distance = distance_to(network.sink, priced.network, flow)
        more = _worth_adding(problem, links, few, network, lengths_s, distance)
        if len(more) == 0:
            return found
        links = _union(problem, links, more)
        few = problem.with_links(links)
        network = layered_network(few, network.starts_s)


@dataclass(frozen=True, eq=False)
class _Priced:
    """A network with costs; its last arcs are what the old plan sends over the arcs `of_arc`."""

    network: FlowNetwork
    of_arc: IntArray


def _priced(
    scaled: ScaledFlow, links: IntArray, is_new: BoolArray, old: OldUse, lengths_s: FloatArray
) -> _Priced:
    """Split the arcs of old links in two: as much as the old plan sends, and more."""
    network, supplied = scaled.network, scaled.supplied(lengths_s)
    cost, less = stable_costs(network, is_new)
    of_arc = np.flatnonzero(network.link != NO_LINK)
    of_arc = of_arc[~is_new[network.link[of_arc]]]
    position = np.searchsorted(old.links, links[network.link[of_arc]])
    as_before = np.rint(old.n_bytes[network.piece[of_arc], position] * scaled.scale)
    within = np.minimum(as_before.astype(np.int64), supplied.capacity[of_arc])
    capacity = supplied.capacity.copy()
    capacity[of_arc] -= within
    return _Priced(
        FlowNetwork(
            network.n_nodes,
            np.append(network.tail, network.tail[of_arc]),
            np.append(network.head, network.head[of_arc]),
            np.append(capacity, within),
            np.append(cost, cost[of_arc] - less),
        ),
        of_arc,
    )


# What the other links could add -------------------------------------------------------------


def _crossing(
    problem: Problem,
    links: IntArray,
    few: Problem,
    network: LayeredNetwork,
    cut: BoolArray | None,
) -> IntArray:
    """Return the other links that cross a cut in some piece of time."""
    assert cut is not None
    crossing = [links[:0]]
    leaving, entering = _at_ends_of_links(few, network, cut)
    for piece, period in enumerate(_periods(problem, network)):
        inside, outside = np.flatnonzero(leaving[piece]), np.flatnonzero(~entering[piece])
        # A few pairs, or from the smaller side: a million links are to be looked at once at most.
        if len(inside) * len(outside) < problem.n_links // FEW_PAIRS:
            pairs = np.repeat(inside, len(outside)), np.tile(outside, len(inside))
            found = problem.link_indices(*pairs)
            found = found[found >= 0]
        elif len(inside) <= len(outside):
            found = problem.links_out_of(inside)
            found = found[~entering[piece][problem.link_to[found]]]
        else:
            found = np.flatnonzero(~entering[piece][problem.link_to])
            found = found[leaving[piece][problem.link_from[found]]]
        crossing.append(found[_is_usable(problem, found, period)])
    found = _union(problem, *crossing)
    return found[~_among(links, found)]


def _worth_adding(
    problem: Problem,
    links: IntArray,
    few: Problem,
    network: LayeredNetwork,
    lengths_s: FloatArray,
    distance: IntArray,
) -> IntArray:
    """Return other links by which the sink is nearer, the best of each host."""
    costs, _ = stable_costs(network, np.ones(few.n_links, dtype=bool))
    cost = int(costs.max())  # all other links are new
    leaving, entering = _at_ends_of_links(few, network, distance)
    worth = [links[:0]]
    for piece, period in enumerate(_periods(problem, network)):
        if lengths_s[piece] <= 0:
            continue
        tails = np.flatnonzero(leaving[piece] > cost + entering[piece].min())
        found = problem.links_out_of(tails)
        # Where no path leads to the sink yet, any link that does is worth more than all others.
        gain = leaving[piece][problem.link_from[found]] - entering[piece][problem.link_to[found]]
        found, gain = found[gain > cost], gain[gain > cost]
        other = _is_usable(problem, found, period) & ~_among(links, found)
        worth.append(_best_of_each(problem, found[other], gain[other], LINKS_AT_A_TIME))
    return _union(problem, *worth)


def _likely(problem: Problem, old_links: IntArray, budget: Budget) -> IntArray:
    """Add links to the old ones until the destination may bind, or no other link helps.

    By no plan everything arrives sooner than the destination can take it in, and often that is the
    answer. So all links into the destination are added, and those that cross the minimum cuts at
    that instant: these show at once whose data lack a way out.
    """
    into = np.flatnonzero(problem.link_to == problem.destination_index)
    links = _union(problem, old_links, into)
    starts, solver = breakpoints_s(problem), budget.flow_solver()
    rate = min(
        float(problem.bandwidth_bytes_per_s[0][into].sum()),
        float(problem.downlink_bytes_per_s[problem.destination_index]),
    )
    if len(starts) > 1 or rate <= 0:
        return links
    lengths = np.array([problem.total_bytes / rate])
    for attempt in count():
        few = problem.with_links(links)
        network = layered_network(few, starts)
        cut = ScaledFlow(network, solver).saturate(lengths)[1]
        if cut is None:
            break
        more = _crossing(problem, links, few, network, cut)
        if len(more) == 0:
            break
        links = _union(problem, links, _wide_enough(problem, more, attempt))
    return links


def _wide_enough(problem: Problem, links: IntArray, attempt: int) -> IntArray:
    """Return the widest links of each host, more in later attempts; all where they are few."""
    if len(links) <= MANY_PER_HOST * problem.n_hosts:
        return links
    bandwidth = problem.bandwidth_bytes_per_s.max(axis=0)
    return _best_of_each(problem, links, bandwidth[links], MANY_PER_HOST << attempt)


def _best_of_each(problem: Problem, links: IntArray, gain: npt.NDArray[Any], most: int) -> IntArray:
    """Return, of each host, the links by which it gains most."""
    # One number per link sorts several times faster than two; which of nearly equal links come
    # first is a matter of speed only.
    if len(links) == 0:
        return links
    less = (gain.max() - gain) / (2 * float(np.ptp(gain)) or 1.0)
    best = links[np.argsort(problem.link_from[links] + less)]
    tails = problem.link_from[best]
    return best[np.arange(len(best)) - np.searchsorted(tails, tails) < most]


def _periods(problem: Problem, network: LayeredNetwork) -> list[int]:
    """The forecast's period of each piece of time."""
    after = np.searchsorted(problem.periods_s, network.starts_s, side="right")
    return [int(period) - 1 for period in after]


def _is_usable(problem: Problem, links: IntArray, period: int) -> BoolArray:
    """Mark the links that carry anything."""
    tail, head = problem.link_from[links], problem.link_to[links]
    usable: BoolArray = problem.bandwidth_bytes_per_s[period][links] > 0
    usable &= tail != problem.destination_index
    usable &= (problem.uplink_bytes_per_s[tail] > 0) & (problem.downlink_bytes_per_s[head] > 0)
    return usable


def _union(problem: Problem, *parts: IntArray) -> IntArray:
    """Return all links of the parts, sorted: a mask is many times faster than numpy's union."""
    of_any = np.zeros(problem.n_links, dtype=bool)
    for links in parts:
        of_any[links] = True
    return np.flatnonzero(of_any)


def _among(known: IntArray, links: IntArray) -> BoolArray:
    """Mark the links that are among `known`, which is sorted."""
    if len(known) == 0:
        return np.zeros(len(links), dtype=bool)
    position = np.minimum(np.searchsorted(known, links), len(known) - 1)
    found: BoolArray = known[position] == links
    return found


def _at_ends_of_links(
    few: Problem, network: LayeredNetwork, of_node: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return nodes' values where links leave hosts and where they enter them.

    Where a host's limits are finite, its links end at a node of their own. A host that has no
    link yet would get one without cost to or from its own node.

    Returns
    -------
    tuple of ndarray, each of shape (n_pieces, n_hosts)
    """
    n, pieces = few.n_hosts, network.n_pieces
    node = np.arange(pieces * n).reshape(pieces, n)
    node[:, network.sink] = network.sink
    leaving, entering = of_node[node], of_node[node]
    arcs = np.flatnonzero(network.link >= 0)
    piece, link = network.piece[arcs], network.link[arcs]
    leaving[piece, few.link_from[link]] = of_node[network.tail[arcs]]
    entering[piece, few.link_to[link]] = of_node[network.head[arcs]]
    return leaving, entering
