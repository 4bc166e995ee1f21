"""Bounds on what can have arrived by an instant: minimum cuts, and dual values.

A bound is a set of resources and what they let through: fixed bytes, and a rate in each piece of
time. No more can have arrived at any instant, and at one instant exactly this much can. Without
shared bottlenecks it is a minimum cut; with them, an optimal dual solution of the linear program
that maximises arrivals, whose weights may be fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.network.layered import NO_LINK
from datacollect.flow.network.tolerances import SMALLEST_WEIGHT
from datacollect.flow.quickest.quickest import ScaledFlow
from datacollect.solvers.programs import LinearProgram

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget


@dataclass(frozen=True, eq=False)
class Bound:
    """Capacity of some resources: a line in every piece of time, never below the curve.

    Attributes
    ----------
    fixed_bytes : float
        What they let through in no time: data on the destination's side, and room in storage.
    rate_bytes_per_s : ndarray of float, shape (n_pieces,)
        What crosses in each piece of time.
    arcs : ndarray of int
        Arcs of the layered network that cross.
    shared : frozenset of (int, int)
        Shared bottlenecks that count, each with the piece of time.
    worth : ndarray of float or bool, shape (n_nodes,)
        How much more could arrive for each byte more at a node: 1 on the destination's side, 0 on
        the sources' side of a cut; between the two only with shared bottlenecks.
    is_cut : bool
        Whether the resources are those of one cut.
    """

    fixed_bytes: float
    rate_bytes_per_s: FloatArray
    arcs: IntArray
    shared: frozenset[tuple[int, int]]
    worth: FloatArray | BoolArray
    is_cut: bool

    @property
    def behind(self) -> BoolArray:
        """Nodes whose data must cross, shape (n_nodes,)."""
        return self.worth < 1 - SMALLEST_WEIGHT

    def bytes_through(self, lengths_s: FloatArray) -> float:
        """Return the bytes that have crossed after pieces of these lengths."""
        return self.fixed_bytes + float(self.rate_bytes_per_s @ lengths_s)


@dataclass(frozen=True, eq=False)
class Timeline:
    """Pieces of time up to the last arrival."""

    starts_s: FloatArray
    end_s: float

    def lengths_until(self, time_s: float) -> FloatArray:
        """Return how long each piece has lasted by an instant; later ones not at all."""
        full = np.diff(np.append(self.starts_s, self.end_s))
        return np.clip(time_s - self.starts_s, 0.0, full)


def tight_bounds(
    problem: Problem, network: LayeredNetwork, timeline: Timeline, budget: Budget
) -> Callable[[float], Bound]:
    """Return what finds a bound that is tight at an instant."""
    scaled = ScaledFlow(network, budget.flow_solver())

    def tight_at(time_s: float) -> Bound:
        if time_s <= 0:  # nothing has passed the cut before the destination
            return bound_of_cut(network, np.arange(network.n_nodes) != network.sink)
        if time_s >= timeline.end_s:  # all has arrived
            return bound_of_cut(network, np.zeros(network.n_nodes, dtype=bool))
        lengths = timeline.lengths_until(time_s)
        if problem.shared:
            return _bound_of_program(problem, network, lengths, budget)
        _, cut = scaled.saturate(lengths)
        return bound_of_cut(network, np.zeros(network.n_nodes, dtype=bool) if cut is None else cut)

    return tight_at


def bound_of_cut(network: LayeredNetwork, cut: BoolArray) -> Bound:
    """Return what a cut lets through; `cut` marks the nodes on the sources' side."""
    arcs = np.flatnonzero(cut[network.tail] & ~cut[network.head])
    is_rate = np.isfinite(network.rate_bytes_per_s[arcs])
    with_rate = arcs[is_rate]
    rates = np.bincount(
        network.piece[with_rate], network.rate_bytes_per_s[with_rate], network.n_pieces
    ).astype(float)
    arrived = float(network.pool_bytes[~cut[network.pool_nodes]].sum())
    room = float(network.room_bytes[arcs[~is_rate]].sum())
    return Bound(arrived + room, rates, arcs, frozenset(), ~cut, is_cut=True)


@dataclass(frozen=True, eq=False)
class _SharedRows:
    """Shared bottlenecks as rows: one per piece of time in which their links exist."""

    arcs: IntArray  # members, each with its row
    rows: IntArray
    number: IntArray  # of each row: shared bottleneck, piece, rate
    piece: IntArray
    rate_bytes_per_s: FloatArray


def _shared_rows(problem: Problem, network: LayeredNetwork) -> _SharedRows:
    n_pieces = network.n_pieces
    arcs, keys = [], []
    for position, links in enumerate(problem.shared_links):
        users = np.flatnonzero((network.link != NO_LINK) & np.isin(network.link, links))
        arcs.append(users)
        keys.append(position * n_pieces + network.piece[users])
    used, rows = np.unique(np.concatenate(keys), return_inverse=True)
    bandwidth = np.array([shared.bandwidth_bytes_per_s for shared in problem.shared])
    number = used // n_pieces
    return _SharedRows(
        np.concatenate(arcs), rows, number, used % n_pieces, bandwidth[number].astype(float)
    )


def _arrivals_program(
    network: LayeredNetwork, shared: _SharedRows, supply: FloatArray, lengths_s: FloatArray
) -> LinearProgram:
    """Maximise what arrives.

    Columns: one per arc, in units of all data. Rows: what leaves a node is at most what enters it,
    then what each shared bottleneck carries. `supply` is what enters each node from outside, in
    bytes.
    """
    total = float(supply.sum())
    capacity = network.capacity_bytes(lengths_s) / total
    is_rate = np.isfinite(network.rate_bytes_per_s)
    arcs = np.arange(network.n_arcs)
    leaves = np.flatnonzero(network.tail != network.sink)
    enters = np.flatnonzero(network.head != network.sink)
    room = shared.rate_bytes_per_s * lengths_s[shared.piece] / total
    rows = (network.tail[leaves], network.head[enters], network.n_nodes + shared.rows)
    signs = (1.0, -1.0, 1.0)
    return LinearProgram(
        cost=-(network.head == network.sink).astype(float),
        lower=np.zeros(network.n_arcs),
        # More than all data are never kept; rates stay as they are, to bound other instants too.
        upper=np.where(is_rate, capacity, np.minimum(capacity, 1.0)),
        row_lower=np.full(network.n_nodes + len(room), -np.inf),
        row_upper=np.concatenate([supply / total, room]),
        rows=np.concatenate(rows),
        columns=np.concatenate([arcs[leaves], arcs[enters], shared.arcs]),
        values=np.concatenate(
            [np.full(len(row), sign) for row, sign in zip(rows, signs, strict=True)]
        ),
    )


def _bound_of_program(
    problem: Problem, network: LayeredNetwork, lengths_s: FloatArray, budget: Budget
) -> Bound:
    """Read a bound from the dual values of the program that maximises arrivals.

    Any weights >= 0 of the rows give one: a column then counts with what they leave of its value.
    """
    nodes = np.array([pool.node for pool in network.pools])
    supply = np.zeros(network.n_nodes)
    np.add.at(supply, nodes, [float(pool.n_bytes) for pool in network.pools])
    shared = _shared_rows(problem, network)
    program = _arrivals_program(network, shared, supply, lengths_s)
    found = budget.linear_solver().solve(program, time_limit_s=budget.remaining_s())
    weight = np.maximum(-found.row_dual, 0.0)
    of_node, of_shared = weight[: network.n_nodes], weight[network.n_nodes :]
    of_node[network.sink] = 0.0
    of_arc = of_node[network.head] - of_node[network.tail] - program.cost
    np.add.at(of_arc, shared.arcs, -of_shared[shared.rows])
    of_arc = np.maximum(of_arc, 0.0)
    is_rate = np.isfinite(network.rate_bytes_per_s)
    rates = np.zeros(network.n_pieces)
    weighted = of_arc[is_rate] * network.rate_bytes_per_s[is_rate]
    np.add.at(rates, network.piece[is_rate], weighted)
    np.add.at(rates, shared.piece, of_shared * shared.rate_bytes_per_s)
    total = float(supply.sum())
    rates[rates * lengths_s.sum() < SMALLEST_WEIGHT * total] = 0.0
    counted = of_shared > SMALLEST_WEIGHT
    pieces = zip(shared.number[counted].tolist(), shared.piece[counted].tolist(), strict=True)
    return Bound(
        float(of_node @ supply) + float((of_arc * program.upper)[~is_rate].sum()) * total,
        rates,
        np.flatnonzero(of_arc > SMALLEST_WEIGHT),
        frozenset(pieces),
        np.where(np.arange(network.n_nodes) == network.sink, 1.0, of_node),
        is_cut=False,
    )
