"""The fluid optimum: how soon everything can arrive, why not sooner, and by which routes.

`fluid_optimum` answers the first two questions for any problem; `fluid_paths` the third: among
the fastest flows, or those that meet a deadline, it takes the cheapest by a preference.

- Constant bandwidth without limits: most meshes need two hops at most. The earliest conceivable
  end follows from the destination's cut and each source's own cut; a small bipartite flow from
  sources with too much to relays with room proves it, and is the fastest flow with fewest hops.
- Host limits, forecasts, releases, storage limits, held data, or more than two hops: Newton's
  method on the layered network (`quickest`).
- Shared bottlenecks: a linear program on the layered network (`shared_flow`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from datacollect.bottleneck import NOTHING_TO_MOVE, cut_bottleneck, never_arrives
from datacollect.budget import Budget
from datacollect.cheapest import cheapest_bytes
from datacollect.errors import InfeasibleError
from datacollect.layered import breakpoints_s, layered_network, without_owners_limits
from datacollect.preference import DEFAULT
from datacollect.quickest import NeverArrives, Quickest, quickest
from datacollect.routes import decompose, without_loops
from datacollect.shared_flow import earliest_shared, quickest_shared
from datacollect.two_hops import two_hop_optimum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.flow import FlowSolver
    from datacollect.layered import LayeredNetwork
    from datacollect.pools import Pool
    from datacollect.problem import Problem
    from datacollect.quickest import ScaledFlow
    from datacollect.routes import PathFlow
    from datacollect.schedule import Bottleneck
    from datacollect.shared_flow import SharedEnd

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
    paths : sequence of PathFlow
    solver : str
    gap : float
        By the preference another plan is better by at most this part; 0 where that is proved.
    """

    starts_s: FloatArray
    lengths_s: FloatArray
    pools: tuple[Pool, ...]
    paths: Sequence[PathFlow]
    solver: str
    gap: float = 0.0


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
        Network and lengths of pieces, where Newton's method found T*; with shared bottlenecks
        the same without them.
    shared_end : SharedEnd or None
        With shared bottlenecks: network, lengths of pieces, and what more bandwidth would save.
    exact : bool
        False where plans end later than ``makespan_s`` since they give others' room to data that
        return to their owner; `lower_bound` is one all the same.
    """

    makespan_s: float
    bottleneck: Bottleneck
    solver: str
    plan: FluidPlan | None = None
    quickest: Quickest | None = None
    shared_end: SharedEnd | None = None
    exact: bool = True


# A fastest plan by two hops has the fewest hops, and nothing is stored where nothing changes.
TWO_HOPS_SATISFY = ("relay-bytes", "storage", "earliest-arrival")

# Instants that differ by less than this part are one.
SAME_INSTANT = 1e-9

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
    relaxed = without_owners_limits(problem) if len(breakpoints_s(problem)) > 1 else None
    if relaxed is None:
        return _optimum_of_one_kind(problem, budget)
    bound = _optimum_of_one_kind(relaxed, budget)
    try:
        found = _optimum_of_one_kind(problem, budget)
    except InfeasibleError as error:
        raise InfeasibleError(
            f"{error}; or raise the storage limits of hosts whose data lie elsewhere: without "
            f"these limits all can arrive by {bound.makespan_s:g} s",
            error.hosts,
        ) from None
    if bound.makespan_s >= found.makespan_s * (1 - SAME_INSTANT):
        return found
    return replace(found, makespan_s=bound.makespan_s, bottleneck=bound.bottleneck, exact=False)


def _optimum_of_one_kind(problem: Problem, budget: Budget) -> FluidOptimum:
    """Find the optimum of the layered network, which cannot tell own data from others'."""
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
    found = earliest_shared(problem, starts, 0.0, relaxed, budget)
    return FluidOptimum(
        found.makespan_s, found.bottleneck, found.solver, quickest=relaxed, shared_end=found
    )


def _quickest_or_infeasible(
    problem: Problem,
    starts_s: FloatArray,
    guard_s: float,
    solver: FlowSolver,
    known: ScaledFlow | None = None,
) -> Quickest:
    try:
        return quickest(problem, starts_s, guard_s, solver, known)
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
    problem: Problem,
    optimum: FluidOptimum,
    guard_s: float,
    budget: Budget,
    prefer: str = DEFAULT,
    end_s: float | None = None,
    starts_s: FloatArray | None = None,
) -> FluidPlan:
    """Return the cheapest plan by a preference that ends as early as possible, or by `end_s`.

    Parameters
    ----------
    problem : Problem
    optimum : FluidOptimum
        Of the problem.
    guard_s : float
        Every piece of time that another follows ends this much early: pipelines drain before
        rates change.
    budget : Budget
    prefer : str
        A key of `PREFERENCES`. ``"earliest-arrival"`` is met at the ends of pieces: it needs
        pieces that begin wherever the most that can have arrived bends.
    end_s : float, optional
        The last piece ends by then.
    starts_s : ndarray of float, optional
        Instants at which pieces begin; `breakpoints_s` and maybe more.

    Raises
    ------
    InfeasibleError
        Some data cannot arrive, or not by `end_s`.
    """
    changes = breakpoints_s(problem)
    starts = changes if starts_s is None else starts_s
    nothing_changes = len(starts) == 1 and end_s is None
    if optimum.plan is not None and nothing_changes and prefer in TWO_HOPS_SATISFY:
        return optimum.plan
    found = optimum.quickest if guard_s == 0 and len(starts) == len(changes) else None
    if end_s is not None and not problem.shared:
        found = _up_to(problem, starts, guard_s, end_s)
    elif found is None:
        known = optimum.quickest.scaled if optimum.quickest is not None else None
        found = _quickest_or_infeasible(problem, starts, guard_s, budget.flow_solver(), known)
    if problem.shared:
        known_end = optimum.shared_end if found is optimum.quickest else None
        shared = quickest_shared(problem, starts, guard_s, found, budget, prefer, end_s, known_end)
        network, lengths, solver = shared.network, shared.lengths_s, shared.solver
        flow_bytes, gap = shared.flow_bytes, shared.gap
    else:
        network, lengths, solver = found.network, found.lengths_s, budget.flow_solver().name
        gap = 0.0
        try:
            flow_bytes = cheapest_bytes(problem, found, prefer, budget.flow_solver())
        except InfeasibleError:
            raise _too_early(problem, found.makespan_s) from None
    if end_s is not None:
        lengths = np.append(lengths[:-1], _needed_s(problem, network, flow_bytes, lengths[-1]))
    unlimited = np.isinf(problem.storage_bytes).tolist()
    paths = [
        without_loops(path, unlimited) for path in decompose(network, network.piece, flow_bytes)
    ]
    return FluidPlan(network.starts_s, lengths, network.pools, paths, solver, gap)


def _up_to(problem: Problem, starts_s: FloatArray, guard_s: float, end_s: float) -> Quickest:
    """Return the layered network of all pieces until `end_s`, whether or not that suffices."""
    late = [p.source for p in problem.parcels if p.release_s >= end_s]
    n_pieces = int(np.searchsorted(starts_s, end_s))
    if late or n_pieces == 0:
        raise _too_early(problem, end_s)
    full = np.maximum(np.diff(starts_s) - guard_s, 0.0)
    rest_s = end_s - float(starts_s[n_pieces - 1])
    last_s = min([rest_s, *full[n_pieces - 1 : n_pieces].tolist()])
    network = layered_network(problem, starts_s[:n_pieces])
    return Quickest(network, np.append(full[: n_pieces - 1], last_s), cut=None)


def _too_early(problem: Problem, end_s: float) -> InfeasibleError:
    return InfeasibleError(
        f"not all data can arrive at {problem.destination!r} by {end_s:g} s", problem.sources
    )


def _needed_s(
    problem: Problem, network: LayeredNetwork, flow_bytes: FloatArray, most_s: float
) -> float:
    """Return how much of the last piece, `most_s` long, its flow needs: a plan need not dawdle."""
    in_last = np.flatnonzero((network.piece == network.n_pieces - 1) & (flow_bytes > 0))
    needed_s = flow_bytes[in_last] / network.rate_bytes_per_s[in_last]  # 0 for stored data
    longest_s = float(needed_s.max(initial=0.0))
    on_link = np.bincount(
        np.maximum(network.link[in_last], 0),
        np.where(network.link[in_last] >= 0, flow_bytes[in_last], 0.0),
        minlength=problem.n_links,
    )
    for shared, links in zip(problem.shared, problem.shared_links, strict=True):
        together = float(on_link[links].sum())
        if together > 0:
            longest_s = max(longest_s, together / shared.bandwidth_bytes_per_s)
    return min(longest_s, most_s)
