"""The fluid optimum: how soon everything can arrive, why not sooner, and by which routes.

`fluid_optimum` answers the first two questions for any problem; `fluid_paths` the third, with
as few hops as possible among the fastest flows.

- Constant bandwidth without limits: most meshes need two hops at most. The earliest conceivable
  end follows from the destination's cut and each source's own cut; a small bipartite flow from
  sources with too much to relays with room proves it, and is the fastest flow with fewest hops.
- Host limits, forecasts, releases, storage limits, held data, or more than two hops: Newton's
  method on the layered network (`quickest`).
- Shared bottlenecks: a linear program on the layered network (`shared_flow`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from datacollect.bottleneck import NOTHING_TO_MOVE, cut_bottleneck, never_arrives
from datacollect.budget import Budget
from datacollect.flow import FlowNetwork
from datacollect.layered import breakpoints_s
from datacollect.quickest import NeverArrives, Quickest, ScaledFlow, quickest
from datacollect.routes import decompose
from datacollect.shared_flow import quickest_shared
from datacollect.two_hops import two_hop_optimum

if TYPE_CHECKING:
    from datacollect.flow import FlowSolver
    from datacollect.layered import LayeredNetwork
    from datacollect.pools import Pool
    from datacollect.problem import Problem
    from datacollect.routes import PathFlow
    from datacollect.schedule import Bottleneck

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FluidPlan:
    """Pieces of time, and the paths that data take in them.

    Attributes
    ----------
    starts_s, lengths_s : ndarray of float, shape (n_pieces,)
        Data move during the first ``lengths_s[k]`` seconds of piece k.
    pools : tuple of Pool
    paths : list of PathFlow
    solver : str
    """

    starts_s: FloatArray
    lengths_s: FloatArray
    pools: tuple[Pool, ...]
    paths: list[PathFlow]
    solver: str


@dataclass(frozen=True, eq=False)
class FluidOptimum:
    """The fluid optimum of a problem.

    Attributes
    ----------
    makespan_s : float
        T*: no schedule under the same bandwidths ends sooner.
    bottleneck : Bottleneck
        What forbids an earlier end.
    solver : str
        What found it.
    plan : FluidPlan or None
        A fastest plan with fewest hops, where finding T* found it too.
    quickest : Quickest or None
        Network and lengths of pieces, where Newton's method found T*.
    """

    makespan_s: float
    bottleneck: Bottleneck
    solver: str
    plan: FluidPlan | None = None
    quickest: Quickest | None = None


_optima: WeakKeyDictionary[Problem, dict[str, FluidOptimum]] = WeakKeyDictionary()
_optima_lock = threading.Lock()


def lower_bound(problem: Problem, *, solver: str = "auto") -> tuple[float, Bottleneck]:
    """Return the earliest instant by which all can have arrived, and what forbids an earlier one.

    Parameters
    ----------
    problem : Problem
    solver : str
        ``"auto"``, ``"ortools"``, ``"networkx"``, ``"pulp"`` or ``"lemon"``.

    Returns
    -------
    tuple of (float, Bottleneck)
        Seconds from time 0; no schedule under the same bandwidths and limits is faster.

    Raises
    ------
    InfeasibleError
        Some data cannot reach the destination.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> seconds, bottleneck = dc.lower_bound(problem)
    >>> seconds, bottleneck.kind
    (2.0, 'destination')
    """
    optimum = fluid_optimum(problem, Budget(solver))
    return optimum.makespan_s, optimum.bottleneck


def fluid_optimum(problem: Problem, budget: Budget) -> FluidOptimum:
    """Find the fluid optimum; remembered per problem, since every method reports it."""
    with _optima_lock:
        known = _optima.setdefault(problem, {}).get(budget.solver)
    if known is None:
        known = _find_optimum(problem, budget)
        with _optima_lock:
            _optima.setdefault(problem, {})[budget.solver] = known
    return known


def _find_optimum(problem: Problem, budget: Budget) -> FluidOptimum:
    if problem.total_bytes == 0:
        return FluidOptimum(0.0, NOTHING_TO_MOVE, solver="none")
    flow_solver = budget.flow_solver()
    starts = breakpoints_s(problem)
    two_hops = two_hop_optimum(problem, flow_solver) if len(starts) == 1 else None
    if two_hops is not None:
        lengths = np.array([two_hops.makespan_s])
        plan = FluidPlan(starts, lengths, two_hops.pools, two_hops.paths, flow_solver.name)
        return FluidOptimum(two_hops.makespan_s, two_hops.bottleneck, flow_solver.name, plan)
    relaxed = _quickest_or_infeasible(problem, starts, 0.0, flow_solver)
    if not problem.shared:
        bottleneck = cut_bottleneck(problem, relaxed)
        name = flow_solver.name
        return FluidOptimum(relaxed.makespan_s, bottleneck, name, quickest=relaxed)
    found = quickest_shared(problem, starts, 0.0, relaxed, budget)
    return FluidOptimum(found.makespan_s, found.bottleneck, found.solver)


def _quickest_or_infeasible(
    problem: Problem, starts_s: FloatArray, guard_s: float, solver: FlowSolver
) -> Quickest:
    try:
        return quickest(problem, starts_s, guard_s, solver)
    except NeverArrives as never:
        network = never.network
        cut_off = ~_reaching_sink(network)
        # No way at all names all such hosts; else too little gets out in time behind the cut.
        behind = {pool.host for pool in network.pools if cut_off[pool.node]}
        behind = behind or {pool.host for pool in network.pools if never.cut[pool.node]}
        raise never_arrives(problem, [problem.names[host] for host in sorted(behind)]) from None


def _reaching_sink(network: LayeredNetwork) -> BoolArray:
    """Mark the nodes from which arcs lead to the sink."""
    reaching = np.zeros(network.n_nodes, dtype=bool)
    reaching[network.sink] = True
    while True:
        more = network.tail[reaching[network.head] & ~reaching[network.tail]]
        if len(more) == 0:
            return reaching
        reaching[more] = True


def fluid_paths(
    problem: Problem, optimum: FluidOptimum, guard_s: float, budget: Budget
) -> FluidPlan:
    """Return a fastest plan with as few hops as possible.

    Every piece of time but the last ends `guard_s` early: pipelines drain before rates change.
    """
    if optimum.plan is not None:
        return optimum.plan
    starts = breakpoints_s(problem)
    flow_solver = budget.flow_solver()
    found = optimum.quickest if guard_s == 0 else None
    if found is None:
        found = _quickest_or_infeasible(problem, starts, guard_s, flow_solver)
    network, lengths, solver = found.network, found.lengths_s, flow_solver.name
    flow: IntArray | FloatArray
    if problem.shared:
        shared = quickest_shared(problem, starts, guard_s, found, budget)
        network, lengths, solver = shared.network, shared.lengths_s, shared.solver
        flow = shared.flow_bytes
    else:
        flow = fewest_hops(network, lengths, flow_solver)
    paths = decompose(network, network.piece, flow)
    return FluidPlan(network.starts_s, lengths, network.pools, paths, solver)


def fewest_hops(network: LayeredNetwork, lengths_s: FloatArray, solver: FlowSolver) -> IntArray:
    """Return the flow, in units, that empties all pools with the fewest hops, then least storage.

    One hop costs more than storing through all pieces, so storage only breaks ties per byte.
    """
    scaled = ScaledFlow(network, solver)
    hop_cost = network.n_pieces
    cost = np.where(network.link >= 0, hop_cost, 0) + network.stored
    supply = np.zeros(network.n_nodes, dtype=np.int64)
    for pool, units in zip(network.pools, scaled.supply_units.tolist(), strict=True):
        supply[pool.node] += units
    supply[network.sink] -= int(scaled.supply_units.sum())
    capacity = scaled.capacity_units(lengths_s)
    problem = FlowNetwork(
        network.n_nodes, network.tail, network.head, capacity, cost.astype(np.int64)
    )
    return scaled.solver.min_cost_flow(problem, supply)
