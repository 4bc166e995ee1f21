"""The cheapest flow through a layered network, by a preference.

Among all flows that empty every pool in the given pieces of time: bytes times the costs of
`datacollect.flow.network.preference` on links, in storage, and at arrival.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.flow.network.few_arcs import cheapest_flow
from datacollect.flow.network.fewer_links import ArcCosts, on_fewer_links
from datacollect.flow.network.preference import arc_costs, path_costs
from datacollect.flow.network.ties import settled
from datacollect.flow.quickest.quickest import ScaledFlow
from datacollect.solvers.networks import FlowNetwork

if TYPE_CHECKING:
    from datacollect.files.choices import Preference
    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.flow.network.restarts import Restarts
    from datacollect.flow.quickest.quickest import Quickest
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget


@dataclass(frozen=True, eq=False)
class CheapestFlow:
    """The cheapest flow by a preference, in given pieces of time.

    Attributes
    ----------
    network : LayeredNetwork
    lengths_s : ndarray of float, shape (n_pieces,)
        Data move during the first ``lengths_s[k]`` seconds of piece k.
    flow_bytes : ndarray of float, shape (n_arcs,)
    solver : str
    gap : float
        Another flow is cheaper by at most this part of the costs; 0 where that is proved.
    units : ndarray of int64, shape (n_arcs,), optional
        The same flow in whole units, where a flow solver found it: floats would lose a byte among
        very many.
    unit_bytes : float
        How much a unit is.
    """

    network: LayeredNetwork
    lengths_s: FloatArray
    flow_bytes: FloatArray
    solver: str
    gap: float = 0.0
    units: IntArray | None = None
    unit_bytes: float = 0.0

    @property
    def makespan_s(self) -> float:
        """The end of the last piece."""
        return float(self.network.starts_s[-1] + self.lengths_s[-1])


def cheapest_by_preference(
    problem: Problem,
    found: Quickest,
    prefer: Preference,
    budget: Budget,
    restarts: Restarts | None = None,
) -> CheapestFlow:
    """Return the cheapest flow that empties all pools in the pieces of `found`.

    With `restarts` the search begins where the last one on a network alike has ended.

    Raises
    ------
    InfeasibleError
        The pieces are too short.
    """
    network, lengths, solver = found.network, found.lengths_s, budget.flow_solver()
    scaled = found.scaled or ScaledFlow(network, solver)
    costs = path_costs(problem, prefer, lengths, network.n_nodes)
    cost, supplied = arc_costs(costs, network, network.piece), scaled.supplied(lengths)
    again = None
    if restarts is not None and scaled.active.all():
        again = restarts.on(network)
    restarted = None if again is None else again.cheapest(supplied, cost)
    units, potential = restarted or (
        cheapest_flow(supplied, cost, solver, scaled.active.copy()),
        None,
    )
    if budget.settle_ties:
        columns = (network.tail, network.head, supplied.capacity, cost)
        units = settled(FlowNetwork(network.n_nodes, *columns), units, solver, potential)
    if network.n_pieces > 1:
        found_costs = ArcCosts(cost, costs.first_weight, again)
        units = on_fewer_links(supplied, network.link, found_costs, budget, units)
    flow_bytes: FloatArray = units / scaled.scale
    unit_bytes = 1 / scaled.scale
    return CheapestFlow(
        network, lengths, flow_bytes, solver.name, units=units, unit_bytes=unit_bytes
    )
