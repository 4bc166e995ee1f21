"""Cheapest flows through layered networks that differ in how long their pieces of time are.

Planning tries several lengths: pieces that end early for pipelines to drain, with a chunk that
shrinks until that costs little. Networks are alike but for capacities, and for a piece more or
less. So all are parts of one that is a little longer, and each search for a cheapest flow begins
where the last one ended (Ahuja, Magnanti and Orlin, Network Flows, 1993, section 11.9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.errors import SolverError
from datacollect.flow.network.few_arcs import cut_behind
from datacollect.flow.network.layered import NO_LINK, layered_network, nodes_in
from datacollect.flow.network.ties import MOST_ARCS
from datacollect.flow.network.tolerances import SURELY

if TYPE_CHECKING:
    from datacollect.flow.network.few_arcs import SupplyNetwork
    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget
    from datacollect.solvers.networks import FlowSolver
    from datacollect.solvers.timed import TimedRestarts

# So many more pieces than the first network has are kept in store: a part of them, at least one.
SPARE = 1 / 64

# Smaller networks are solved anew in no time.
FEWEST_ARCS = 8_000


class Restarts:
    """Cheapest flows on networks of one problem, each search begun where the last one ended.

    Parameters
    ----------
    problem : Problem
    starts_s : ndarray of float
        Where pieces of time begin in all of these networks, as far as they have so many.
    budget : Budget
    """

    def __init__(self, problem: Problem, starts_s: FloatArray, budget: Budget) -> None:
        self._problem, self._starts_s, self._budget = problem, starts_s, budget
        self.wide: _Wide | None = None
        self.cut: BoolArray | None = None
        self._place: _Place | None = None
        self._whole: _Flows | None = None
        self._part: _Flows | None = None

    def on(self, network: LayeredNetwork) -> Restarted | None:
        """Return what restarts on a network; None where it is too small or too large for that."""
        if network.n_pieces == 1 or not FEWEST_ARCS <= network.n_arcs <= MOST_ARCS:
            return None
        if self.wide is None or network.n_pieces > self.wide.network.n_pieces:
            self.wide = _Wide.build(self._problem, self._starts_s, network.n_pieces)
            self._place = self._whole = self._part = self.cut = None
        if self._place is None or self._place.network is not network:
            self._place = self.wide.place_of(network)
        return Restarted(self, self._place)

    def flows(self, wide: LayeredNetwork, kept: BoolArray | None) -> _Flows | None:
        """Return where flows on all links, or on these alone, were found before."""
        if kept is None:
            self._whole = self._whole or _Flows.build(wide, np.arange(wide.n_arcs), self._budget)
            return self._whole
        is_kept = np.zeros(self._problem.n_links, dtype=bool)
        is_kept[: len(kept)] = kept
        is_in = (wide.link == NO_LINK) | is_kept[wide.link]
        if self._part is None or not np.array_equal(self._part.arcs, np.flatnonzero(is_in)):
            self._part = _Flows.build(wide, np.flatnonzero(is_in), self._budget)
        return self._part


class Restarted(NamedTuple):
    """Cheapest flows on one network, begun where those on others alike have ended."""

    restarts: Restarts
    place: _Place

    def cheapest(
        self, supplied: SupplyNetwork, cost: IntArray, kept: BoolArray | None = None
    ) -> tuple[IntArray, IntArray] | None:
        """Return the cheapest flow of all supplies, and node potentials that prove it.

        Parameters
        ----------
        supplied : SupplyNetwork
            The same network in whole units.
        cost : ndarray of int64, shape (n_arcs,)
        kept : ndarray of bool, shape (n_links,), optional
            The only links that may be used. What uses other links has another beginning.

        Returns
        -------
        tuple of ndarray of int64, or None
            None where no solver restarts.

        Raises
        ------
        InfeasibleError
            No flow takes all supplies to the sink.
        """
        assert self.restarts.wide is not None
        flows = self.restarts.flows(self.restarts.wide.network, kept)
        return None if flows is None else flows.cheapest(self.place, supplied, cost)

    def suffice(self, supplied: SupplyNetwork, solver: FlowSolver, arcs: IntArray) -> bool:
        """Say whether some arcs carry all supplies; first by the cut that was too small before."""
        assert self.restarts.wide is not None
        known = self.restarts.cut
        if known is not None and _is_short(supplied, arcs, known[self.place.nodes]):
            return False
        cut = cut_behind(supplied, solver, arcs)
        if cut is not None:
            self.restarts.cut = np.zeros(self.restarts.wide.network.n_nodes, dtype=bool)
            self.restarts.cut[self.place.nodes] = cut
        return cut is None


def _is_short(network: SupplyNetwork, arcs: IntArray, cut: BoolArray) -> bool:
    """Say whether less can cross a cut than has to."""
    crossing = arcs[cut[network.tail[arcs]] & ~cut[network.head[arcs]]]
    return bool(
        network.capacity[crossing].sum(dtype=float) < network.supply[cut].sum() * (1 - SURELY)
    )


class _Place(NamedTuple):
    """Positions of a network's nodes and arcs in the longer one."""

    network: LayeredNetwork
    nodes: IntArray
    arcs: IntArray


class _Wide(NamedTuple):
    """The longer network, and its arcs in the order of their ends."""

    network: LayeredNetwork
    keys: IntArray
    arcs: IntArray

    @classmethod
    def build(cls, problem: Problem, starts_s: FloatArray, n_pieces: int) -> _Wide:
        n_pieces += 1 + int(n_pieces * SPARE)
        network = layered_network(problem, starts_s[:n_pieces])
        keys = network.tail * network.n_nodes + network.head
        arcs = np.argsort(keys, kind="stable")
        return cls(network, keys[arcs], arcs)

    def place_of(self, network: LayeredNetwork) -> _Place:
        nodes = nodes_in(network, self.network)
        keys = nodes[network.tail] * self.network.n_nodes + nodes[network.head]
        at = np.searchsorted(self.keys, keys)
        assert np.array_equal(self.keys.take(at, mode="clip"), keys), "an arc does not exist"
        return _Place(network, nodes, self.arcs[at])


class _Flows(NamedTuple):
    """Cheapest flows on some arcs of the longer network."""

    wide: LayeredNetwork
    arcs: IntArray
    solver: TimedRestarts

    @classmethod
    def build(cls, wide: LayeredNetwork, arcs: IntArray, budget: Budget) -> _Flows | None:
        solver = budget.restarts(wide.n_nodes, wide.tail[arcs], wide.head[arcs])
        return None if solver is None else cls(wide, arcs, solver)

    def cheapest(
        self, place: _Place, supplied: SupplyNetwork, cost: IntArray
    ) -> tuple[IntArray, IntArray] | None:
        capacity, costs, flow = (np.zeros(self.wide.n_arcs, dtype=np.int64) for _ in range(3))
        capacity[place.arcs], costs[place.arcs] = supplied.capacity, cost
        balance = np.zeros(self.wide.n_nodes, dtype=np.int64)
        balance[place.nodes] = supplied.supply
        balance[self.wide.sink] = -int(supplied.supply.sum())
        try:
            found = self.solver.min_cost_flow(capacity[self.arcs], costs[self.arcs], balance)
        except SolverError:
            return None
        flow[self.arcs], potential = found
        return flow[place.arcs], potential[place.nodes]
