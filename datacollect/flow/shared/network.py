"""Networks with capacities that arcs share, and first paths through them.

A layered network and a time-expanded graph look alike here: arcs are plain arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.network.best_arcs import best_per_tail
from datacollect.solvers.networks import reachable

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray, IntArray


# Relays that a source starts with: about what it uses in the end.
WIDEST_WAYS = 8

# A node with at most this many arcs out is a passage, no choice: a host's limit, or data waiting.
PASSAGE = 2


@dataclass(frozen=True, eq=False)
class SharedNetwork:
    """A network whose arcs have capacities, some of them shared; quantities in bytes.

    Attributes
    ----------
    n_nodes : int
    sink : int
        Where everything is to arrive.
    tail, head : ndarray of int, shape (n_arcs,)
    capacity_bytes : ndarray of float, shape (n_arcs,)
        May be infinite.
    supply_bytes : ndarray of float, shape (n_nodes,)
        What enters at each node; >= 0, some of it positive.
    member_row, member_arc : ndarray of int, shape (n_members,)
        Arc ``member_arc[i]`` counts in side constraint ``member_row[i]``; no pair twice.
    room_bytes : ndarray of float, shape (n_rows,)
        What the arcs of each side constraint carry together at most.
    """

    n_nodes: int
    sink: int
    tail: IntArray
    head: IntArray
    capacity_bytes: FloatArray
    supply_bytes: FloatArray
    member_row: IntArray
    member_arc: IntArray
    room_bytes: FloatArray

    @property
    def n_arcs(self) -> int:
        """Number of arcs."""
        return len(self.tail)

    @property
    def total_bytes(self) -> float:
        """All that enters."""
        return float(self.supply_bytes.sum())


def arcs_to_sink(network: SharedNetwork) -> tuple[IntArray, FloatArray]:
    """Return an arc per node that leads to the sink by fewest arcs, and how much can pass.

    Among several such arcs of a node the widest is taken. These arcs make prices sensible from the
    first round on: what lies at any node could go to the sink at some price.

    Returns
    -------
    tuple of (ndarray of int, ndarray of float)
        The arcs, and for each node the smallest capacity on its path; 0 where there is none.
    """
    width = np.zeros(network.n_nodes)
    width[network.sink] = np.inf
    chosen = np.full(network.n_nodes, -1)
    arcs = np.flatnonzero(network.capacity_bytes > 0)
    arcs = arcs[np.argsort(network.head[arcs], kind="stable")]
    begins = np.searchsorted(network.head[arcs], np.arange(network.n_nodes + 1))
    reached = np.array([network.sink])
    while len(reached):
        # Arcs into what was reached before have been looked at: each is looked at once.
        counts = begins[reached + 1] - begins[reached]
        behind = np.repeat(begins[reached] - np.cumsum(counts) + counts, counts)
        more = arcs[behind + np.arange(len(behind))]
        more = np.sort(more[width[network.tail[more]] == 0])
        passing = np.minimum(network.capacity_bytes[more], width[network.head[more]])
        order = np.argsort(passing, kind="stable")
        # Of equal indices the last, the widest, stays.
        chosen[network.tail[more[order]]] = more[order]
        width[network.tail[more[order]]] = passing[order]
        reached = np.unique(network.tail[more])
    return chosen[chosen >= 0], width


def widest_arcs(network: SharedNetwork, width_bytes: FloatArray) -> IntArray:
    """Return for each source the arcs by which most gets out and, by the others' arcs, arrives."""
    degree = np.bincount(network.tail, minlength=network.n_nodes)
    passages = np.flatnonzero(degree[network.tail] <= PASSAGE)
    tail, head = network.tail[passages], network.head[passages]
    fed = reachable(network.n_nodes, tail, head, network.supply_bytes > 0)
    leaving = np.flatnonzero(fed[network.tail])
    passing = np.minimum(network.capacity_bytes[leaving], width_bytes[network.head[leaving]])
    return leaving[best_per_tail(network.tail[leaving], passing, WIDEST_WAYS, network.n_nodes)]
