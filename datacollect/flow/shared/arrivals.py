"""Earliest arrival with shared bottlenecks: the most by one instant after the other.

Where links share bottlenecks no plan may be the earliest at every instant: what arrives early may
cost more later. In its place stands an order: of all plans that end in time, as much as possible
has arrived by the first instant of a grid; of those, as much as possible by the second; and so on
(lexicographic optimisation: Isermann, OR Spektrum 4, 1982). Each instant takes a linear program, in
which what arrives after earlier instants is limited to what has to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.network.tolerances import PROGRAM_SLACK
from datacollect.flow.shared.pricing import cheapest
from datacollect.numbers.tolerances import SAME_INSTANT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.flow.shared.model import SharedModel
    from datacollect.flow.shared.network import SharedNetwork
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.solvers.budget import Budget


# Parts into which the time until the end is divided; changes of rates are instants, too.
GRID = 16


def grid_s(starts_s: FloatArray, end_s: float) -> FloatArray:
    """Return instants with those of a grid until `end_s` among them.

    >>> grid_s(np.array([0.0, 7.0]), 16.0).tolist()[:9]
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    """
    grid = np.arange(1, GRID) * (end_s / GRID)
    near = np.abs(grid[:, np.newaxis] - starts_s).min(axis=1) <= SAME_INSTANT * end_s
    return np.union1d(starts_s, grid[~near])


@dataclass(frozen=True, eq=False)
class LateLimits:
    """Limits on arrivals after the first pieces of time.

    Attributes
    ----------
    arriving : ndarray of int
        Arcs into the sink.
    piece : ndarray of int
        Their pieces of time.
    late_bytes : ndarray of float, shape (n_limits,)
    after : tuple of int
        The piece after which each counts.
    """

    arriving: IntArray
    piece: IntArray
    late_bytes: FloatArray
    after: tuple[int, ...]

    def added_to(self, network: SharedNetwork, slack: float) -> SharedNetwork:
        """Return the network with these limits, wider by a part of all data."""
        rows, arcs = [network.member_row], [network.member_arc]
        for row, k in enumerate(self.after):
            late = self.arriving[self.piece > k]
            rows.append(np.full(len(late), len(network.room_bytes) + row))
            arcs.append(late)
        room = self.late_bytes + slack * network.total_bytes
        return replace(
            network,
            member_row=np.concatenate(rows),
            member_arc=np.concatenate(arcs),
            room_bytes=np.append(network.room_bytes, room),
        )


def latest_arrivals(
    model: SharedModel,
    lengths_s: FloatArray,
    budget: Budget,
    arcs: IntArray,
    ends: Sequence[int] | None = None,
) -> tuple[LateLimits, IntArray]:
    """Find the least that arrives after each piece of time, one after the other.

    Parameters
    ----------
    model : SharedModel
    lengths_s : ndarray of float, shape (n_pieces,)
        By their ends all data can arrive.
    budget : Budget
    arcs : ndarray of int
        Arcs on which they can.
    ends : sequence of int, optional
        The pieces after which as little as possible is to arrive; by default all, in turn.

    Returns
    -------
    tuple of (LateLimits, ndarray of int)
        What arrives late, and arcs on which no more does.
    """
    network = model.network
    arriving = np.flatnonzero(network.head == network.sink)
    limits = LateLimits(arriving, network.piece[arriving], np.zeros(0), ())
    slack = PROGRAM_SLACK[0]
    for k in range(network.n_pieces - 1) if ends is None else ends:
        cost = np.zeros(network.n_arcs)
        cost[arriving[limits.piece > k]] = 1.0
        part = limits.added_to(model.at(lengths_s, slack), slack)
        found = cheapest(part, cost, budget, arcs)
        arcs = found.arcs
        late = float((cost * found.flow_bytes).sum())
        limits = replace(
            limits, late_bytes=np.append(limits.late_bytes, late), after=(*limits.after, k)
        )
    return limits, arcs
