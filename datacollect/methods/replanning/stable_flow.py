"""Replanning with few changes: little goes over links that the old plan does not use.

The cheapest flow is found on few links, where new ones are dear. Those of the others that are worth
their cost are added until none is: then it is the cheapest over all links.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.network.arc_copies import with_copies
from datacollect.flow.network.few_arcs import distance_to
from datacollect.flow.network.layered import NO_LINK, breakpoints_s, lengths_until_s
from datacollect.flow.network.preference import LONGEST_PATH
from datacollect.flow.quickest.quickest import Quickest, ScaledFlow
from datacollect.flow.routes.fluid_plan import FluidPlan
from datacollect.flow.routes.path_table import path_table
from datacollect.flow.shared.complete import cheapest_complete
from datacollect.flow.shared.model import SharedModel
from datacollect.methods.replanning.earliest_end import are_few
from datacollect.methods.replanning.link_prices import SolvedFew, worth_their_price
from datacollect.methods.replanning.other_links import FewLinks, among, union, worth_their_cost
from datacollect.methods.timing.tolerances import SAME_BYTES
from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray, ranges
from datacollect.numbers.tolerances import SAME_INSTANT
from datacollect.schedule.data.use import hosts_of_routes
from datacollect.solvers.networks import FlowNetwork

if TYPE_CHECKING:
    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.flow.shared.network import SharedNetwork
    from datacollect.methods.replanning.earliest_end import ProvedOptimum
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.budget import Budget


# More units than any flow has, and still an integer once it has been a float.
LARGEST = 2.0**62


@dataclass(frozen=True, eq=False)
class OldUse:
    """Bytes that the old plan would still send over each link.

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
class OldPlan:
    """Transfers that a plan has not finished by an instant, each on a link of a problem.

    Attributes
    ----------
    links : ndarray of int
        All that the plan uses, at any time, sorted; lost ones left out.
    position : ndarray of int, shape (n_transfers,)
        Each transfer's link, as an index into ``links``.
    start_s, finish_s, bytes_per_s : ndarray of float, shape (n_transfers,)
        Counted from the instant.
    """

    links: IntArray
    position: IntArray
    start_s: FloatArray
    finish_s: FloatArray
    bytes_per_s: FloatArray

    @classmethod
    def of(cls, remaining: Problem, plan: Schedule, at_s: float) -> OldPlan:
        """Look at a plan from `at_s` on, which is the remaining problem's time 0."""
        columns = plan.columns
        hosts, at = hosts_of_routes(plan, remaining.host_index)
        link = remaining.link_indices(hosts[:-1], hosts[1:])
        link[(hosts[:-1] < 0) | (hosts[1:] < 0)] = -1
        link = link[at]
        used = np.zeros(remaining.n_links, dtype=bool)
        used[link[link >= 0]] = True
        links = np.flatnonzero(used)
        going = (link >= 0) & (columns.finish_s > np.maximum(columns.start_s, at_s))
        rows = np.flatnonzero(going)
        start, finish = columns.start_s[rows] - at_s, columns.finish_s[rows] - at_s
        rate = columns.n_bytes[rows] / (finish - start)
        position = np.searchsorted(links, link[rows])
        return cls(links, position, np.maximum(start, 0.0), finish, rate)

    def use(self, starts_s: FloatArray) -> OldUse:
        """Count bytes per piece of time; pieces begin at `starts_s`, the first at 0."""
        first = np.searchsorted(starts_s, self.start_s, side="right") - 1
        count = np.searchsorted(starts_s, self.finish_s, side="left") - first
        # A row for each piece that a transfer takes part in.
        row = np.repeat(np.arange(len(first)), count)
        piece = ranges(first, count)
        ends = np.append(starts_s[1:], np.inf)
        begin, end = self.start_s[row], self.finish_s[row]
        length = np.minimum(end, ends[piece]) - np.maximum(begin, starts_s[piece])
        shape = len(starts_s), len(self.links)
        cell = piece * shape[1] + self.position[row]
        n_bytes = np.bincount(cell, self.bytes_per_s[row] * length, shape[0] * shape[1])
        return OldUse(self.links, n_bytes.astype(float).reshape(shape))


@dataclass(frozen=True, eq=False)
class _Flow:
    """A flow through the layered network of a problem with few links.

    Attributes
    ----------
    flow : ndarray, shape (n_arcs,)
        In units of its own, or in bytes.
    new_bytes : float
        What goes over links that the old plan does not use.
    solver : str
    gap : float
        Another flow is cheaper by at most this part of the costs.
    """

    network: LayeredNetwork
    lengths_s: FloatArray
    flow: IntArray | FloatArray
    new_bytes: float
    solver: str
    gap: float = 0.0


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
    if alone is not None and alone.makespan_s <= latest_s * (1 + SAME_INSTANT):
        best = _cheapest(alone.known, old, alone.lengths_s, budget)
    elif latest_s <= earliest.makespan_s * (1 + SAME_INSTANT):
        best = _cheapest(earliest.known, old, earliest.lengths_s, budget)
    else:
        lengths = lengths_until_s(breakpoints_s(problem), guard_s, latest_s)
        best = _cheapest(_links_in_use(optimum, old), old, lengths, budget)
        if not _time_spares(optimum):
            sooner = _cheapest(earliest.known, old, earliest.lengths_s, budget)
            # What new links must carry never grows with the end: equal at both ends of the leeway
            # means equal throughout.
            if sooner.new_bytes <= best.new_bytes + SAME_BYTES * problem.total_bytes:
                best = sooner
    network = best.network
    return FluidPlan(
        network.starts_s,
        best.lengths_s,
        network.pools,
        path_table(network, network.piece, best.flow),
        best.solver,
        best.gap,
    )


def stable_costs(network: LayeredNetwork, is_new: BoolArray) -> tuple[IntArray, int]:
    """Weigh changes: bytes on new links, then more than before on old ones, then hops, storage.

    Strict for paths of up to `LONGEST_PATH` links, as in `datacollect.flow.network.preference`.

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


def _links_in_use(optimum: ProvedOptimum, old: OldUse) -> FewLinks:
    """Return old links and those that suffice with a little more time: linear programs like few."""
    known, end = optimum.found.known, optimum.found.end
    if isinstance(end, Quickest) or end.prices is None or end.network.n_pieces > 1:
        return known
    used = end.network.link[end.prices.flow_bytes > 0]
    links = union(known.whole, old.links, known.links[used[used != NO_LINK]])
    return FewLinks.of(known.whole, links, 1)


def _time_spares(optimum: ProvedOptimum) -> bool:
    """Say whether each instant more spares new links some bytes, as long as any take them.

    Within one piece of time what new links must carry falls ever more slowly with its length (the
    optimum of a linear program is convex in its right side). If it reaches nothing in the same
    piece, it falls until then.
    """
    alone = optimum.alone
    return alone is not None and len(alone.lengths_s) == len(optimum.found.lengths_s)


# On few links -------------------------------------------------------------------------------


def _cheapest(known: FewLinks, old: OldUse, lengths_s: FloatArray, budget: Budget) -> _Flow:
    """Find the cheapest flow over all links, beginning with few."""
    whole, n_pieces = known.whole, len(lengths_s)
    if known.network.n_pieces != n_pieces:
        known = FewLinks.of(whole, known.links, n_pieces)
    while True:
        search = _by_program if known.few.shared else _by_flow
        found, more = search(known, old, lengths_s, budget)
        if len(more) == 0:
            return found
        known = FewLinks.of(whole, union(whole, known.links, more), n_pieces)


@dataclass(frozen=True, eq=False)
class _Split:
    """Arcs of old links in two: as much as the old plan sends there, and more.

    Attributes
    ----------
    of_arc : ndarray of int
        Arcs that have a copy for what the old plan sends there.
    old_bytes : ndarray of float
        How much that is.
    cost : ndarray of int64
        Per byte, of all arcs and then of the copies.
    new_link : int
        Cost of any link that the old plan does not use.
    is_new : ndarray of bool, shape (n_arcs,)
        Arcs of such links.
    """

    of_arc: IntArray
    old_bytes: FloatArray
    cost: IntArray
    new_link: int
    is_new: BoolArray

    @classmethod
    def build(cls, known: FewLinks, old: OldUse) -> _Split:
        network = known.network
        is_link = network.link != NO_LINK
        new_links = ~among(old.links, known.links)
        cost, less = stable_costs(network, new_links)
        is_new = is_link.copy()
        is_new[is_link] = new_links[network.link[is_link]]
        of_arc = np.flatnonzero(is_link & ~is_new)
        position = np.searchsorted(old.links, known.links[network.link[of_arc]])
        old_bytes = old.n_bytes[network.piece[of_arc], position]
        of_arc, old_bytes = of_arc[old_bytes > 0], old_bytes[old_bytes > 0]
        dearest, _ = stable_costs(network, np.ones(known.few.n_links, dtype=bool))
        copied = cost[of_arc] - less
        return cls(of_arc, old_bytes, np.append(cost, copied), int(dearest.max()), is_new)


def _by_flow(
    known: FewLinks, old: OldUse, lengths_s: FloatArray, budget: Budget
) -> tuple[_Flow, IntArray]:
    """Find the cheapest flow on few links, and the other links that are worth their cost."""
    network, solver, split = known.network, budget.flow_solver(), _Split.build(known, old)
    scaled, of_arc = ScaledFlow(network, solver), split.of_arc
    supplied = scaled.supplied(lengths_s)
    # Far ahead of its plan the old use can be beyond all integers, once scaled: cap it before.
    as_before = np.minimum(np.rint(split.old_bytes * scaled.scale), LARGEST)
    within = np.minimum(as_before.astype(np.int64), supplied.capacity[of_arc])
    capacity = supplied.capacity.copy()
    capacity[of_arc] -= within
    balance = supplied.supply.copy()
    balance[network.sink] -= int(balance.sum())
    priced = FlowNetwork(
        network.n_nodes,
        np.append(network.tail, network.tail[of_arc]),
        np.append(network.head, network.head[of_arc]),
        np.append(capacity, within),
        split.cost,
    )
    flow = solver.min_cost_flow(priced, balance)
    units = with_copies(flow, network.n_arcs, of_arc)
    new_bytes = int(units[split.is_new].sum()) / scaled.scale
    found = _Flow(network, lengths_s, units, new_bytes, solver.name)
    if new_bytes == 0:
        return found, known.links[:0]  # no other link is cheaper
    distance = distance_to(network.sink, priced, flow)
    return found, worth_their_cost(known, lengths_s, distance, split.new_link)


def _by_program(
    known: FewLinks, old: OldUse, lengths_s: FloatArray, budget: Budget
) -> tuple[_Flow, IntArray]:
    """Do the same with shared bottlenecks, by a linear program."""
    network, split = known.network, _Split.build(known, old)
    model, cost = SharedModel.build(known.few, network), split.cost.astype(float)

    def program(slack: float = 0.0) -> SharedNetwork:
        return _with_copies_of(model.at(lengths_s, slack), split)

    arcs = np.arange(len(cost)) if are_few(known.few) else None
    priced = cheapest_complete(network, program, cost, budget, arcs, split.of_arc)
    flow_bytes = with_copies(priced.flow_bytes, network.n_arcs, split.of_arc)
    new_bytes = float(flow_bytes[split.is_new].sum())
    solver = budget.linear_solver().name
    found = _Flow(network, lengths_s, flow_bytes, new_bytes, solver, priced.gap)
    if new_bytes <= SAME_BYTES * known.whole.total_bytes:
        return found, known.links[:0]
    solved = SolvedFew(known, lengths_s, program(), cost, priced)
    return found, worth_their_price(solved, split.new_link)


def _with_copies_of(whole: SharedNetwork, split: _Split) -> SharedNetwork:
    """Return a program's network with copies of arcs, for what the old plan sends there."""
    of_arc = split.of_arc
    within = np.minimum(split.old_bytes, whole.capacity_bytes[of_arc])
    capacity = whole.capacity_bytes.copy()
    capacity[of_arc] -= within
    copy_of = np.full(whole.n_arcs, -1)
    copy_of[of_arc] = whole.n_arcs + np.arange(len(of_arc))
    copied = np.flatnonzero(copy_of[whole.member_arc] >= 0)
    return replace(
        whole,
        tail=np.append(whole.tail, whole.tail[of_arc]),
        head=np.append(whole.head, whole.head[of_arc]),
        capacity_bytes=np.append(capacity, within),
        member_row=np.append(whole.member_row, whole.member_row[copied]),
        member_arc=np.append(whole.member_arc, copy_of[whole.member_arc[copied]]),
    )
