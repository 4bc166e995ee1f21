"""Pricing of links beyond the few that a linear program knows.

Its dual values price data at every node and room in every shared bottleneck. A link that leads from
a dear node to a cheap one, tolls included, could better the program's optimum; if none does, the
optimum is one over all links (column generation, as in `datacollect.flow.shared.pricing`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.network.tolerances import ATTAINED
from datacollect.methods.replanning.other_links import (
    LINKS_AT_A_TIME,
    among,
    best_of_each,
    open_hosts,
    union,
)
from datacollect.solvers.networks import reachable

if TYPE_CHECKING:
    from datacollect.flow.shared.network import SharedNetwork
    from datacollect.flow.shared.pricing import PricedFlow
    from datacollect.methods.replanning.other_links import FewLinks
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray


# A part of a price by which equal ones are distinguished.
A_LITTLE = 1e-6


@dataclass(frozen=True, eq=False)
class SolvedFew:
    """A linear program on few links, and its optimum.

    Attributes
    ----------
    known : FewLinks
    lengths_s : ndarray of float, shape (n_pieces,)
    program : SharedNetwork
        The arcs of `known.network`, maybe copies behind them, and a side constraint per shared
        bottleneck of `known.few` and piece of time.
    cost : ndarray of float
        Of the program's arcs.
    found : PricedFlow
    """

    known: FewLinks
    lengths_s: FloatArray
    program: SharedNetwork
    cost: FloatArray
    found: PricedFlow


def worth_their_price(priced: SolvedFew, link_cost: float) -> IntArray:
    """Return other links that could better the optimum; none proves that none can.

    Where no data are, the program leaves their price open. There the highest price is taken by
    which no onward arc is worth it: that leaves the fewest links worth theirs. If some lead to such
    nodes, their best onward arcs are returned as well.

    Parameters
    ----------
    priced : SolvedFew
    link_cost : float
        Of every other link.
    """
    known, program, found = priced.known, priced.program, priced.found
    links, arcs = _OtherLinks.build(priced, link_cost), _open_arcs(priced)
    pieces = np.flatnonzero(priced.lengths_s > 0).tolist()
    idle = _idle_nodes(program, found.flow_bytes)
    price = np.where(idle, np.inf, found.node_price)
    least_gain = ATTAINED * max(float(priced.cost.max(initial=0.0)), 1.0)
    onward = [arcs.at(idle[arcs.tail])]
    _price_idle_nodes(price, onward)
    # From elsewhere no other link is worth it.
    dear = price > link_cost + links.least_price(price) + least_gain
    leaving = idle & dear
    if price[~idle].max() <= 2 * link_cost + least_gain:
        # Nor are two in a row: nothing gets to idle nodes to which no arcs lead.
        leaving &= _reached(arcs, idle)
    leaving_arcs = [links.out_of(leaving, piece) for piece in pieces]
    _price_idle_nodes(price, [*onward, *leaving_arcs])
    entering = arcs.at(~idle[arcs.tail] & idle[arcs.head])
    others = [links.out_of(dear & ~idle, piece) for piece in pieces]
    worth = [part.at(part.gain(price) > least_gain) for part in (entering, *others)]
    worth = [part.at(~among(known.links, part.link)) for part in worth]
    # By weak duality nothing is better than the optimum by more than all gains together.
    most_gained = sum(float((part.gain(price) * part.room_bytes).sum()) for part in worth)
    value = float((priced.cost * found.flow_bytes).sum())
    value = value or float((program.supply_bytes * found.node_price).sum())
    if most_gained <= ATTAINED * value:
        return known.links[:0]
    entered = np.concatenate([part.head for part in worth])
    hosts = known.network.node_host[entered[idle[entered]]]
    best = [_best(known, part, part.gain(price), idle) for part in worth[1:]]
    best += _best_next_arcs(known, price, leaving_arcs, idle, hosts)
    return union(known.whole, *[part[~among(known.links, part)] for part in best])


def _best(known: FewLinks, arcs: _Arcs, gain: FloatArray, idle: BoolArray) -> IntArray:
    """Return the best links of each host, more of few hosts: there are fewer programs to solve."""
    whole = known.whole
    n_tails = 1 + int(np.count_nonzero(np.diff(whole.link_from[arcs.link])))
    most = max(LINKS_AT_A_TIME, whole.n_hosts // n_tails)
    # Of equally good ones first those that need no other new link behind them.
    gain = gain - A_LITTLE * gain.max(initial=0.0) * idle[arcs.head]
    return best_of_each(whole, arcs.link, gain, most)


@dataclass(frozen=True, eq=False)
class _Arcs:
    """Arcs, those with the same tail together, and what a byte pays on each, tolls included.

    ``link`` is the problem's link that an arc stands for, -1 for an arc of the program.
    """

    tail: IntArray
    head: IntArray
    paid: FloatArray
    room_bytes: FloatArray
    link: IntArray

    def at(self, rows: IntArray | BoolArray) -> _Arcs:
        return _Arcs(
            self.tail[rows],
            self.head[rows],
            self.paid[rows],
            self.room_bytes[rows],
            self.link[rows],
        )

    def gain(self, price: FloatArray) -> FloatArray:
        """Return how much cheaper data get on by each arc."""
        gain: FloatArray = price[self.tail] - price[self.head] - self.paid
        return gain


def _open_arcs(priced: SolvedFew) -> _Arcs:
    """Return the program's arcs that carry anything."""
    program = priced.program
    paid = priced.cost.copy()
    np.subtract.at(paid, program.member_arc, priced.found.row_price[program.member_row])
    arcs = np.flatnonzero(program.capacity_bytes > 0)
    arcs = arcs[np.argsort(program.tail[arcs], kind="stable")]
    room = np.minimum(program.capacity_bytes[arcs], program.total_bytes)
    no_links = np.full(len(arcs), -1)
    return _Arcs(program.tail[arcs], program.head[arcs], paid[arcs], room, no_links)


@dataclass(frozen=True, eq=False)
class _OtherLinks:
    """All links of the problem between the nodes that a program has.

    Attributes
    ----------
    leaving, entering : ndarray of int, shape (n_pieces, n_hosts)
        Nodes at which links begin and end.
    paid : ndarray of float, shape (n_pieces, n_links)
        Their cost and tolls, per byte.
    """

    known: FewLinks
    lengths_s: FloatArray
    leaving: IntArray
    entering: IntArray
    paid: FloatArray

    @classmethod
    def build(cls, priced: SolvedFew, link_cost: float) -> _OtherLinks:
        known = priced.known
        whole, n_pieces = known.whole, known.network.n_pieces
        paid = np.full((n_pieces, whole.n_links), float(link_cost))
        members = {s.name: m for s, m in zip(whole.shared, whole.shared_links, strict=True)}
        row_price = priced.found.row_price.reshape(-1, n_pieces)
        for shared, prices in zip(known.few.shared, row_price, strict=True):
            for piece in np.flatnonzero(prices).tolist():
                paid[piece, members[shared.name]] -= prices[piece]
        return cls(known, priced.lengths_s, *known.ends(), paid)

    def least_price(self, price: FloatArray) -> float:
        """Return the least price where other links may lead; most know all into the destination."""
        known, whole = self.known, self.known.whole
        destination = whole.destination_index
        into = np.count_nonzero(whole.link_to == destination)
        if np.count_nonzero(known.few.link_to == destination) < into:
            return 0.0
        elsewhere = np.arange(whole.n_hosts) != destination
        return float(price[self.entering[:, elsewhere]].min(initial=np.inf))

    def out_of(self, nodes: BoolArray, piece: int) -> _Arcs:
        """Return the links that begin at some nodes in one piece of time."""
        whole, leaving = self.known.whole, self.leaving[piece]
        period = self.known.periods[piece]
        sends, receives = open_hosts(whole, period)
        links = whole.links_out_of(np.flatnonzero(nodes[leaving] & sends))
        room = whole.bandwidth_bytes_per_s[period, links]
        usable = receives[whole.link_to[links]] & (room > 0)
        links, room = links[usable], room[usable] * self.lengths_s[piece]
        tail, head = leaving[whole.link_from[links]], self.entering[piece][whole.link_to[links]]
        return _Arcs(tail, head, self.paid[piece, links], room, links)


def _idle_nodes(program: SharedNetwork, flow_bytes: FloatArray) -> BoolArray:
    """Mark the nodes that no data pass."""
    idle: BoolArray = program.supply_bytes == 0
    used = np.flatnonzero(flow_bytes > 0)
    idle[program.tail[used]] = idle[program.head[used]] = False
    idle[program.sink] = False
    return idle


def _reached(arcs: _Arcs, idle: BoolArray) -> BoolArray:
    """Mark the idle nodes to which arcs lead from others, directly or by idle ones."""
    arcs = arcs.at(idle[arcs.head])
    return reachable(len(idle), arcs.tail, arcs.head, ~idle) & idle


def _price_idle_nodes(price: FloatArray, onward: list[_Arcs]) -> None:
    """Lower prices until no onward arc is cheaper (Bellman and Ford's method)."""
    onward = [arcs for arcs in onward if len(arcs.tail)]
    first = [np.flatnonzero(np.diff(arcs.tail, prepend=-1)) for arcs in onward]
    lowered = True
    while lowered:
        lowered = False
        for arcs, begins in zip(onward, first, strict=True):
            least = np.minimum.reduceat(price[arcs.head] + arcs.paid, begins)
            nodes = arcs.tail[begins]
            lower = least < price[nodes]
            price[nodes[lower]] = least[lower]
            lowered |= bool(lower.any())


def _best_next_arcs(
    known: FewLinks, price: FloatArray, leaving_arcs: list[_Arcs], idle: BoolArray, hosts: IntArray
) -> list[IntArray]:
    """Return, from idle nodes of `hosts` on, the links that make their prices."""
    whole, best = known.whole, []
    waiting = np.zeros(whole.n_hosts, dtype=bool)
    waiting[hosts] = True
    passed = np.zeros(whole.n_hosts, dtype=bool)
    while waiting.any():
        passed |= waiting
        following = np.zeros(whole.n_hosts, dtype=bool)
        for arcs in leaving_arcs:
            some = arcs.at(waiting[whole.link_from[arcs.link]])
            some = some.at(price[some.head] + some.paid <= price[some.tail])
            some = some.at(np.flatnonzero(np.diff(some.tail, prepend=-1)))
            best.append(some.link)
            following[whole.link_to[some.link[idle[some.head]]]] = True
        waiting = following & ~passed
    return best
