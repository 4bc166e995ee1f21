"""Potential of links beyond a few: what they could add to a flow on these few.

An old plan uses a few thousand of a million links. What is best on few links is best on all

- for the earliest end, if no other link crosses the minimum cut that forbids an earlier one;
- for the cheapest flow, if no other link is worth its cost by the distances to the sink in the
  residual network (reduced costs; Ahuja, Magnanti and Orlin, Network Flows, 1993, section 9.3).

With shared bottlenecks the prices of a linear program take the place of both: `link_prices`. All
other links are only looked at. Links are indices, sorted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.network.best_arcs import best_per_tail
from datacollect.flow.network.few_arcs import UNREACHED
from datacollect.flow.network.layered import breakpoints_s, layered_network

if TYPE_CHECKING:
    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.problem import Problem


# Links are looked up by their ends where those are fewer pairs than this part of all links.
FEW_PAIRS = 16

# Of the links that are worth adding, each host gets this many at a time, the best.
LINKS_AT_A_TIME = 8


@dataclass(frozen=True, eq=False)
class FewLinks:
    """A layered network of few of a problem's links.

    Attributes
    ----------
    whole : Problem
    links : ndarray of int
        Which of its links the few are, sorted.
    few : Problem
        With these only.
    network : LayeredNetwork
        Of `few`; numbers its links.
    """

    whole: Problem
    links: IntArray
    few: Problem
    network: LayeredNetwork

    @classmethod
    def of(cls, whole: Problem, links: IntArray, n_pieces: int) -> FewLinks:
        """Build the network for the first pieces of time."""
        few = whole.with_links(links)
        return cls(whole, links, few, layered_network(few, breakpoints_s(whole)[:n_pieces]))

    @property
    def periods(self) -> list[int]:
        """The forecast's period of each piece of time."""
        after = np.searchsorted(self.whole.periods_s, self.network.starts_s, side="right")
        return [int(period) - 1 for period in after]

    def ends(self) -> tuple[IntArray, IntArray]:
        """Return the nodes at which links leave hosts, and those at which they enter them.

        Where a host's limits are finite, its links end at a node of their own. A host that has no
        link yet would get one without cost to or from its own node.

        Returns
        -------
        tuple of ndarray, each of shape (n_pieces, n_hosts)
        """
        network, few = self.network, self.few
        n, pieces = few.n_hosts, network.n_pieces
        node = np.arange(pieces * n).reshape(pieces, n)
        node[:, network.sink] = network.sink
        leaving, entering = node.copy(), node
        arcs = np.flatnonzero(network.link >= 0)
        piece, link = network.piece[arcs], network.link[arcs]
        leaving[piece, few.link_from[link]] = network.tail[arcs]
        entering[piece, few.link_to[link]] = network.head[arcs]
        return leaving, entering


# Across a cut -------------------------------------------------------------------------------


def crossing(known: FewLinks, cut: BoolArray) -> IntArray:
    """Return the other links that cross a cut in some piece of time."""
    problem = known.whole
    found = [known.links[:0]]
    leaving, entering = known.ends()
    for piece, period in enumerate(known.periods):
        sends, receives = open_hosts(problem, period)
        from_here, to_here = cut[leaving[piece]] & sends, ~cut[entering[piece]] & receives
        inside, outside = np.flatnonzero(from_here), np.flatnonzero(to_here)
        # A few pairs, or from the smaller side: a million links are to be looked at once at most.
        if len(inside) * len(outside) < problem.n_links // FEW_PAIRS:
            pairs = np.repeat(inside, len(outside)), np.tile(outside, len(inside))
            links = problem.link_indices(*pairs)
            links = links[links >= 0]
        elif len(inside) <= len(outside):
            links = problem.links_out_of(inside)
            links = links[to_here[problem.link_to[links]]]
        else:
            links = np.flatnonzero(to_here[problem.link_to])
            links = links[from_here[problem.link_from[links]]]
        found.append(links[problem.bandwidth_bytes_per_s[period][links] > 0])
    links = union(problem, *found)
    return links[~among(known.links, links)]


# By distances -------------------------------------------------------------------------------


def worth_their_cost(
    known: FewLinks, lengths_s: FloatArray, distance: IntArray, cost: int
) -> IntArray:
    """Return other links by which the sink is nearer, the best of each host.

    Parameters
    ----------
    known : FewLinks
    lengths_s : ndarray of float, shape (n_pieces,)
    distance : ndarray of int64, shape (n_nodes,)
        To the sink in the residual network.
    cost : int
        Of every other link.
    """
    problem = known.whole
    leaving, entering = (distance[nodes] for nodes in known.ends())
    worth = [known.links[:0]]
    for piece, period in enumerate(known.periods):
        if lengths_s[piece] <= 0:
            continue
        sends, receives = open_hosts(problem, period)
        entering[piece, ~receives] = UNREACHED
        tails = np.flatnonzero((leaving[piece] > cost + entering[piece].min()) & sends)
        found = problem.links_out_of(tails)
        # Where no path leads to the sink yet, any link that does is worth more than all others.
        gain = leaving[piece][problem.link_from[found]] - entering[piece][problem.link_to[found]]
        found, gain = found[gain > cost], gain[gain > cost]
        other = problem.bandwidth_bytes_per_s[period][found] > 0
        other &= ~among(known.links, found)
        worth.append(best_of_each(problem, found[other], gain[other], LINKS_AT_A_TIME))
    return union(problem, *worth)


# Sets of links ------------------------------------------------------------------------------


def open_hosts(problem: Problem, period: int) -> tuple[BoolArray, BoolArray]:
    """Mark the hosts that send anything on in a period, and those that receive anything."""
    sends = problem.uplink_bytes_per_s[period] > 0
    receives = problem.downlink_bytes_per_s[period] > 0
    sends[problem.destination_index] = False
    return sends, receives


def best_of_each(
    problem: Problem, links: IntArray, gain: FloatArray | IntArray, most: int
) -> IntArray:
    """Return, of each host, the links by which it gains most."""
    return links[best_per_tail(problem.link_from[links], gain, most, problem.n_hosts)]


def union(problem: Problem, *parts: IntArray) -> IntArray:
    """Return all links of the parts, sorted: a mask is many times faster than numpy's union."""
    of_any = np.zeros(problem.n_links, dtype=bool)
    for links in parts:
        of_any[links] = True
    return np.flatnonzero(of_any)


def among(known: IntArray, links: IntArray) -> BoolArray:
    """Mark the links that are among `known`, which is sorted."""
    if len(known) == 0:
        return np.zeros(len(links), dtype=bool)
    position = np.minimum(np.searchsorted(known, links), len(known) - 1)
    found: BoolArray = known[position] == links
    return found
