"""A problem with shared bottlenecks as a network with side constraints, piece of time by piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import SolverError
from datacollect.flow.network.layered import NO_LINK
from datacollect.flow.shared.network import SharedNetwork

if TYPE_CHECKING:
    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem


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

    @property
    def total_bytes(self) -> float:
        """All that enters."""
        return float(self.supply_bytes.sum())

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
        """Return the capacities of pieces with these lengths, a part `slack` wider.

        Storage is not: rates are judged with a tolerance, what is stored to the byte.
        """
        network = self.network
        capacity = network.capacity_bytes(lengths_s)
        capacity *= np.where(network.stored, 1.0, 1 + slack)
        room = np.outer(self.shared_bytes_per_s, lengths_s).ravel()
        return SharedNetwork(
            network.n_nodes,
            network.sink,
            network.tail,
            network.head,
            capacity,
            self.supply_bytes,
            self.member_row,
            self.member_arc,
            room * (1 + slack),
        )


def too_wide(network: LayeredNetwork, failure: str) -> SolverError:
    """Say that numbers are too far apart, and which are the smallest."""
    rate = network.rate_bytes_per_s
    slowest = float(rate[np.isfinite(rate) & (rate > 0)].min())
    smallest = min(pool.n_bytes for pool in network.pools if pool.n_bytes > 0)
    total = sum(pool.n_bytes for pool in network.pools)
    return SolverError(
        f"{failure}: amounts span too many orders of magnitude; of "
        f"{total} bytes in all a source holds {smallest}, and the slowest link "
        f"or host limit is {slowest:.3g} bytes/s; leave out sources and links that carry next to "
        "nothing"
    )
