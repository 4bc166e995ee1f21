"""Whole bytes through shared bottlenecks: from a linear program's flow to one that check accepts.

Flows through networks are whole where capacities are; shared bottlenecks break that. The program's
flow rounded up may be too much for a bottleneck, which matters where it carries few bytes per slot.
There, mixed-integer programming finds the best whole flow or proves that there is none (HiGHS:
Huangfu and Hall, Mathematical Programming Computation 10, 2018). Where that would take too long,
each bottleneck's room is shared out among its links, and a flow within the shares is whole again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.methods.slotted.pricing import least_cost_flow

if TYPE_CHECKING:
    from datacollect.flow.shared.network import SharedNetwork
    from datacollect.methods.slotted.graph import TimeExpandedGraph
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.solvers.budget import Budget

# Larger programs, and such with more branches, are not worth their time.
MOST_ARCS = 1_500
MOST_BRANCHES = 50

# Beyond this, HiGHS's tolerances, 1e-6 of a byte, are near the spacing of doubles.
MOST_BYTES = 10**8

# The cheapest flow is proved to this part of its cost.
PROVED_COST = 1e-9


class WholeFlow(NamedTuple):
    """A whole flow, if one was found, and whether it, or that there is none, is proved best."""

    flow: IntArray | None
    is_proved: bool


@dataclass(frozen=True, eq=False)
class Bottlenecks:
    """Test of whole flows: good ones empty all pools and respect what arcs share.

    Attributes
    ----------
    graph : TimeExpandedGraph
    network : SharedNetwork
        The graph's, with a side constraint per bottleneck and slot.
    room_bytes : ndarray of int64, shape (n_rows,)
        Whole bytes that fit.
    """

    graph: TimeExpandedGraph
    network: SharedNetwork
    room_bytes: IntArray

    def respected_by(self, flow: IntArray) -> bool:
        """Say whether no side constraint is exceeded."""
        used = np.zeros(len(self.room_bytes), dtype=np.int64)
        np.add.at(used, self.network.member_row, flow[self.network.member_arc])
        return bool((used <= self.room_bytes).all())

    def best(self, cost: IntArray, budget: Budget) -> WholeFlow:
        """Return the cheapest whole flow, or the proof that there is none, where that is quick."""
        network = self.network
        if network.n_arcs > MOST_ARCS or network.total_bytes > MOST_BYTES:
            return WholeFlow(None, is_proved=False)
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        every, one = np.arange(network.n_arcs), np.ones(network.n_arcs)
        leaves = csr_array((one, (network.tail, every)), shape=(network.n_nodes, network.n_arcs))
        enters = csr_array((one, (network.head, every)), shape=(network.n_nodes, network.n_arcs))
        supply = network.supply_bytes.copy()
        supply[network.sink] -= network.total_bytes
        members = csr_array(
            (np.ones(len(network.member_row)), (network.member_row, network.member_arc)),
            shape=(len(self.room_bytes), network.n_arcs),
        )
        left_s = budget.remaining_s()
        found = milp(
            cost / max(int(np.abs(cost).max(initial=0)), 1),
            integrality=np.ones(network.n_arcs, dtype=np.int64),
            bounds=Bounds(0, np.minimum(network.capacity_bytes, network.total_bytes)),
            constraints=[
                LinearConstraint(leaves - enters, supply, supply),
                LinearConstraint(members, -np.inf, self.room_bytes.astype(float)),
            ],
            options={
                "node_limit": MOST_BRANCHES,
                "mip_rel_gap": PROVED_COST,
                "time_limit": np.inf if left_s is None else left_s,
            },
        )
        if found.x is None:
            return WholeFlow(None, is_proved=found.status == _INFEASIBLE)
        # Rounded to whole bytes, and a flow again whatever the solver's tolerances.
        flow = self._within(np.rint(found.x).astype(np.int64), cost, budget)
        return WholeFlow(flow, is_proved=flow is not None and found.status == _OPTIMAL)

    def shared_out(self, flow_bytes: FloatArray, cost: IntArray, budget: Budget) -> IntArray | None:
        """Return a whole flow near one that splits bytes; None if none was found.

        Every arc has the whole bytes of its flow; what room is left goes to the largest remainders
        first.
        """
        fraction = flow_bytes - np.floor(flow_bytes)
        return self._within(self._shares(np.floor(flow_bytes), np.argsort(-fraction)), cost, budget)

    def by_turns(self, cost: IntArray, budget: Budget) -> IntArray | None:
        """Return a whole flow where links take turns: the first takes what room there is.

        Each link comes first in some slots. So with slots enough there is such a flow.
        """
        graph = self.graph
        members = np.unique(graph.link[self.network.member_arc])
        turn = (np.searchsorted(members, graph.link) + graph.slot) % max(len(members), 1)
        nothing = np.zeros(graph.n_arcs)
        return self._within(self._shares(nothing, np.argsort(turn, kind="stable")), cost, budget)

    def _shares(self, floor_bytes: FloatArray, order: IntArray) -> IntArray:
        """Return capacities of arcs that exceed no side constraint together."""
        network = self.network
        share = self.graph.capacity_bytes.copy()
        limited = np.unique(network.member_arc)
        share[limited] = np.minimum(floor_bytes[limited].astype(np.int64), share[limited])
        left = self.room_bytes.copy()
        np.subtract.at(left, network.member_row, share[network.member_arc])
        rows: dict[int, list[int]] = {}
        for row, arc in zip(network.member_row.tolist(), network.member_arc.tolist(), strict=True):
            rows.setdefault(arc, []).append(row)
        for arc in order.tolist():
            if arc in rows:
                most = int(self.graph.capacity_bytes[arc] - share[arc])
                more = max(0, min(most, *(int(left[row]) for row in rows[arc])))
                share[arc] += more
                left[rows[arc]] -= more
        return share

    def _within(self, capacity: IntArray, cost: IntArray, budget: Budget) -> IntArray | None:
        """Return the cheapest flow within capacities; None if there is none that fits."""
        try:
            flow = least_cost_flow(self.graph, capacity, cost, budget)
        except InfeasibleError:
            return None
        return flow if self.respected_by(flow) else None


# What `scipy.optimize.milp` says of how it ended.
_OPTIMAL, _INFEASIBLE = 0, 2
