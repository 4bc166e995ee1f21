"""The fluid optimum: how soon everything can arrive, and why not sooner.

- Constant bandwidth without limits: most meshes need two hops at most. The earliest conceivable
  end follows from the destination's cut and each source's own cut; a small bipartite flow from
  sources with too much to relays with room proves it, and is the fastest flow with fewest hops.
- Host limits, forecasts, releases, storage limits, held data, or more than two hops: Newton's
  method on the layered network (`quickest`).
- Shared bottlenecks: linear programs on the layered network (`shared`).

By which routes is the question that `paths` answers.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.files.clock import instant_text
from datacollect.flow.makers import makers_of
from datacollect.flow.network.layered import breakpoints_s, with_room_for_returns
from datacollect.flow.network.tolerances import SURELY
from datacollect.flow.quickest.bottleneck import NOTHING_TO_MOVE, cut_bottleneck, never_arrives
from datacollect.flow.quickest.quickest import NeverArrives, Quickest, quickest
from datacollect.flow.routes.fluid_plan import FluidPlan
from datacollect.flow.shared.earliest import earliest_shared
from datacollect.flow.two_hops import two_hop_optimum
from datacollect.numbers.tolerances import SAME_INSTANT
from datacollect.problem.cycles import has_windows
from datacollect.problem.listing import ListingEnds, listed_far_enough, listing_ends, not_in_time
from datacollect.solvers.budget import Budget
from datacollect.solvers.networks import reachable

if TYPE_CHECKING:
    from datacollect.flow.quickest.quickest import ScaledFlow
    from datacollect.flow.shared.earliest import SharedEnd
    from datacollect.numbers.arrays import BoolArray, FloatArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.transfers import Bottleneck
    from datacollect.solvers.networks import FlowSolver
    from datacollect.solvers.registry import Solver


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

    @property
    def attained_s(self) -> float:
        """Say when the fastest plan that is known ends: with `exact` at the very ``makespan_s``."""
        found = self.shared_end or self.quickest
        return self.makespan_s if found is None else found.makespan_s


_optima: WeakKeyDictionary[Problem, dict[tuple[str, bool], FluidOptimum]] = WeakKeyDictionary()
_optima_lock = threading.Lock()


def lower_bound(problem: Problem, *, solver: Solver = "auto") -> tuple[float, Bottleneck]:
    """Return the earliest instant by which all can have arrived, and what forbids an earlier one.

    Parameters
    ----------
    problem : Problem
    solver : str
        ``"auto"``, the fastest that is installed, or a name of `datacollect.solvers.registry`.

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
    _, optimum = listed_optimum(problem, Budget(solver))
    return optimum.makespan_s, optimum.bottleneck


def listed_optimum(problem: Problem, budget: Budget) -> tuple[Problem, FluidOptimum]:
    """Find the fluid optimum, and list a calendar as far as its fastest plan needs."""
    return listed_far_enough(
        problem, lambda each: fluid_optimum(each, budget), lambda found: found.attained_s
    )


def fluid_optimum(problem: Problem, budget: Budget) -> FluidOptimum:
    """Find the fluid optimum; remembered per problem, since every method reports it.

    Of a calendar as far as it is listed: `ListingEnds` asks for more, as `listed_optimum` does.
    """
    key = budget.solver, budget.settle_ties
    with _optima_lock:
        known = _optima.setdefault(problem, {}).get(key)
    if known is None:
        known = _find_optimum(problem, budget)
        with _optima_lock:
            _optima.setdefault(problem, {})[key] = known
    daily = problem.daily
    if daily is not None and daily.windows and known.attained_s > daily.until_s:
        # Found when more was listed of the same calendar: this much does not show all of it.
        raise listing_ends(problem, problem.sources)
    return known


def _find_optimum(problem: Problem, budget: Budget) -> FluidOptimum:
    makers = makers_of(problem)
    if makers is not None:
        try:
            found = _find_optimum(makers.expanded, budget)
        except InfeasibleError as error:
            raise makers.error(error) from None
        return replace(found, bottleneck=makers.bottleneck(found.bottleneck), plan=None)
    relaxed = with_room_for_returns(problem) if len(breakpoints_s(problem)) > 1 else None
    if relaxed is None:
        return _optimum_of_one_kind(problem, budget)
    bound = _optimum_of_one_kind(relaxed, budget)
    try:
        found = _optimum_of_one_kind(problem, budget)
    except ListingEnds:
        raise
    except InfeasibleError as error:
        raise InfeasibleError(
            f"{error}; or raise the storage limits of hosts whose data lie elsewhere: with "
            "additional room for these data, all data can arrive by "
            f"{instant_text(bound.makespan_s, problem.clock)}",
            error.hosts,
        ) from None
    if bound.makespan_s >= found.makespan_s * (1 - SAME_INSTANT):
        return found
    return replace(found, makespan_s=bound.makespan_s, bottleneck=bound.bottleneck, exact=False)


def _optimum_of_one_kind(problem: Problem, budget: Budget) -> FluidOptimum:
    """Find the optimum of the layered network, which cannot distinguish own data from others'."""
    if problem.total_bytes == 0:
        return FluidOptimum(0.0, NOTHING_TO_MOVE, solver="none")
    flow_solver = budget.flow_solver()
    starts = breakpoints_s(problem)
    two_hops = two_hop_optimum(problem, budget) if len(starts) == 1 else None
    if two_hops is not None:
        lengths = np.array([two_hops.makespan_s])
        plan = FluidPlan(starts, lengths, two_hops.pools, two_hops.paths, flow_solver.name)
        return FluidOptimum(two_hops.makespan_s, two_hops.bottleneck, flow_solver.name, plan)
    relaxed = quickest_or_infeasible(problem, starts, 0.0, flow_solver)
    if not problem.shared:
        bottleneck = cut_bottleneck(problem, relaxed)
        name = flow_solver.name
        return FluidOptimum(relaxed.makespan_s, bottleneck, name, quickest=relaxed)
    try:
        found = earliest_shared(problem, starts, 0.0, relaxed, budget)
    except InfeasibleError as never:
        raise not_in_time(problem, problem.sources, never) from None
    return FluidOptimum(
        found.makespan_s, found.bottleneck, found.solver, quickest=relaxed, shared_end=found
    )


def quickest_or_infeasible(
    problem: Problem,
    starts_s: FloatArray,
    guard_s: float,
    solver: FlowSolver,
    known: ScaledFlow | None = None,
    likely: BoolArray | None = None,
) -> Quickest:
    """Find the earliest end without shared bottlenecks, see `quickest`.

    Raises
    ------
    InfeasibleError
        Some data cannot arrive at all; names the hosts that hold them.
    """
    if has_windows(problem):
        late = _hosts_surely_late(problem)
        if late:
            raise not_in_time(problem, late, never_arrives(problem, late))
    try:
        return quickest(problem, starts_s, guard_s, solver, known, likely)
    except NeverArrives as never:
        network = never.network
        cut_off = ~reachable(network.n_nodes, network.head, network.tail, network.sink)
        # Where no path leads out, these are all such hosts; else too little gets out in time.
        behind = {pool.host for pool in network.pools if cut_off[pool.node]}
        behind = behind or {pool.host for pool in network.pools if never.cut[pool.node]}
        names = [problem.names[host] for host in sorted(behind)]
        raise not_in_time(problem, names, never_arrives(problem, names)) from None


def _hosts_surely_late(problem: Problem) -> list[str]:
    """Return hosts whose data cannot all leave them, or enter the destination, while it is listed.

    Before any flow: what is listed of a calendar may be far too little.
    """
    lengths = np.diff(problem.periods_s)
    carried = lengths @ problem.bandwidth_bytes_per_s[:-1]
    leaving = np.bincount(problem.link_from, carried, problem.n_hosts)
    waiting = np.zeros(problem.n_hosts)
    for parcel in problem.parcels:
        waiting[parcel.host] += parcel.n_bytes
    late = waiting > leaving * (1 + SURELY)
    entering = float(carried[problem.link_to == problem.destination_index].sum())
    if problem.total_bytes > entering * (1 + SURELY):
        late = waiting > 0
    return [problem.names[host] for host in np.flatnonzero(late).tolist()]
