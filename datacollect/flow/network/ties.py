"""Tie-breaking among flows of equal cost: always the same one, whichever solver found the first.

Solvers end at any of several cheapest flows, and plans made of these end a chunk or two apart:
their longest pipelines have more hops, or what could hurry cannot. So a second stage chooses. All
cheapest flows differ on arcs without reduced cost alone (complementary slackness; Ahuja, Magnanti
and Orlin, Network Flows, 1993, section 9.6), so a flow on these arcs alone never costs more. Among
them the one is taken that is cheapest by drawn costs. What is drawn depends on an arc's place
alone; of enough numbers that two flows tie in them with a chance of one in a thousand at most
(the isolation lemma of Mulmuley, Vazirani and Vazirani, Combinatorica 7, 1987).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.network.few_arcs import shortened
from datacollect.solvers.networks import FlowNetwork

if TYPE_CHECKING:
    from datacollect.numbers.arrays import IntArray
    from datacollect.solvers.networks import FlowSolver

# Of larger networks solvers choose: the second stage would take as long as the first.
MOST_ARCS = 300_000

# How many numbers each arc's is drawn from: two flows tie with a chance of 1 in 1000 at most.
DRAWN_PER_ARC = 1000

# Solvers in 64 bits bear costs up to about 2**62 over the square of the number of nodes.
COST_RANGE = 2**62


def settled(
    network: FlowNetwork, flow: IntArray, solver: FlowSolver, potential: IntArray | None = None
) -> IntArray:
    """Return the one of all cheapest flows that drawn costs choose.

    Parameters
    ----------
    network : FlowNetwork
        With costs.
    flow : ndarray of int64, shape (n_arcs,)
        A cheapest flow.
    solver : FlowSolver
    potential : ndarray of int64, shape (n_nodes,), optional
        What proves that, if it is known: of an arc with room left cost + potential of the tail -
        potential of the head is >= 0, of one with flow <= 0. Any will do: the answer is the same.

    Returns
    -------
    ndarray of int64, shape (n_arcs,)
        A cheapest flow with the same supplies.

    Examples
    --------
    Two paths at the same cost, and a dearer one: whichever carries it, the answer is the same.

    >>> from datacollect.solvers.choice import load_flow_solver
    >>> network = FlowNetwork(
    ...     2, np.zeros(3, int), np.ones(3, int), np.full(3, 9), np.array([1, 1, 2])
    ... )
    >>> solver = load_flow_solver("auto")
    >>> one, other = (settled(network, np.array(flow), solver) for flow in ([5, 0, 0], [0, 5, 0]))
    >>> one.tolist() == other.tolist(), int(one[2])
    (True, 0)
    """
    if network.n_arcs > MOST_ARCS:
        return flow
    assert network.cost is not None
    if potential is None:
        # From all nodes at once, since no residual path may lead from some to the sink.
        potential = -shortened(np.zeros(network.n_nodes, dtype=np.int64), network, flow)
    reduced = network.cost + potential[network.tail] - potential[network.head]
    free = np.flatnonzero((reduced == 0) & (network.capacity > 0))
    open_arcs = free[(flow[free] > 0) | (flow[free] < network.capacity[free])]
    if len(open_arcs) == 0:
        return flow
    balance = np.zeros(network.n_nodes, dtype=np.int64)
    np.add.at(balance, network.tail[open_arcs], flow[open_arcs])
    np.subtract.at(balance, network.head[open_arcs], flow[open_arcs])
    columns = (network.tail[open_arcs], network.head[open_arcs], network.capacity[open_arcs])
    part = FlowNetwork(network.n_nodes, *columns, _drawn(network, open_arcs))
    found = flow.copy()
    found[open_arcs] = solver.min_cost_flow(part, balance)
    return found


def _drawn(network: FlowNetwork, arcs: IntArray) -> IntArray:
    """Draw a cost for each arc, by its place: the same for the same network."""
    most = min(DRAWN_PER_ARC * network.n_arcs, COST_RANGE // (network.n_nodes + 1) ** 2)
    drawn: IntArray = np.random.default_rng(0).integers(0, max(most, 1), network.n_arcs)
    return drawn[arcs]
