"""The best rates of routes whose hops have their connections: small linear programs, and prices.

Where what is constant is divided, a program finds the largest part of what all pools need to end at
some instant. By weak duality its prices bound how soon any numbers of connections can end, on all
routes, not only on those that are open: they are a cut of Benders' (Numerische Mathematik 4, 1962).
With one release a single program is exact; else the cut's bound is the next instant (Newton's
method from below; Dinkelbach, Management Science 13, 1967).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import SolverError, TimeLimitError
from datacollect.numbers.tolerances import SAME_INSTANT
from datacollect.solvers.programs import LinearProgram

if TYPE_CHECKING:
    from datacollect.methods.connections.whole_connections import Brought, Hops
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.solvers.budget import Budget

# Data that are released at one instant need one round, others two or three.
ROUNDS = 20
# Steps of Newton's method, in which a cut's bound comes near from below.
STEPS = 4


@dataclass(frozen=True, eq=False)
class Cut:
    """Bound by pools' prices: their need is no more than what routes and constants may carry.

    Attributes
    ----------
    pool, route : ndarray of float, shape (n_pools,) and (n_routes,)
        Prices, >= 0, of a byte per second of each pool, and of what a route's connections carry.
    constant_bytes_per_s : float
        All constant capacities at their prices.
    """

    pool: FloatArray
    route: FloatArray
    constant_bytes_per_s: float

    def earliest_s(self, hops: Hops, route: FloatArray, start_s: FloatArray) -> FloatArray:
        """Return how soon all can have arrived.

        Parameters
        ----------
        hops : Hops
        route : ndarray of float, shape (..., n_routes)
            What connections could carry, see `Brought.route_bytes_per_s`.
        start_s : ndarray of float, shape (..., n_pools)
        """
        offered = self.constant_bytes_per_s + route @ self.route
        asked = self.pool * hops.size
        used = np.flatnonzero(asked > 0)
        start_s, asked = start_s[..., used], asked[used]
        with np.errstate(divide="ignore", invalid="ignore"):
            alone_s = asked / offered[..., np.newaxis]
            until = (start_s + alone_s).max(axis=-1, initial=0.0)
            for _ in range(STEPS):
                gap = np.maximum(until[..., np.newaxis] - start_s, alone_s)
                rate, slope = (asked / gap).sum(axis=-1), (asked / gap**2).sum(axis=-1)
                until = until + np.where(rate > offered, (rate - offered) / slope, 0.0)
        found: FloatArray = np.nan_to_num(until, nan=0.0, posinf=np.inf)
        return found


@dataclass(frozen=True, eq=False)
class BestRates:
    """Rates with which all pools have arrived as soon as can be.

    Attributes
    ----------
    rate_bytes_per_s : ndarray of float, shape (n_routes,)
    makespan_s : float
    cut : Cut or None
        Why not sooner; None where nothing is divided, or nothing moves.
    """

    rate_bytes_per_s: FloatArray
    makespan_s: float
    cut: Cut | None = None


def best_rates(hops: Hops, n: IntArray, budget: Budget) -> BestRates:
    """Return each route's rate, those with which all have arrived soonest.

    Where nothing is divided, every route is as fast as its connections allow. Constant links,
    hosts' limits and shared bottlenecks without competitors are divided by a linear program. Where
    no solver ends it, what `Hops.brought` says stands.

    Parameters
    ----------
    hops : Hops
    n : ndarray of int, shape (n_hops,)
        Connections.
    budget : Budget

    Examples
    --------
    >>> import datacollect as dc
    >>> from datacollect.flow.network.pools import pools_by_owner
    >>> from datacollect.methods.connections.whole_connections import Candidate, Hops
    >>> links = [dc.Link("A", "D", 8.0), dc.Link("B", "D", 8.0)]
    >>> hosts = [dc.Host("A", 20), dc.Host("B", 60), dc.Host("D", downlink_bytes_per_s=8.0)]
    >>> problem = dc.Problem.from_hosts(hosts, links, "D")
    >>> hops = Hops(problem, pools_by_owner(problem), [Candidate(i, (i, 2)) for i in (0, 1)], 2)
    >>> from datacollect.solvers.budget import Budget
    >>> best_rates(hops, np.array([1, 1]), Budget()).rate_bytes_per_s.round(6)
    array([2., 6.])
    """
    now = hops.brought(n)
    best = BestRates(now.rate_bytes_per_s, now.makespan_s)
    if len(hops.limit) == 0 or not np.isfinite(best.makespan_s):
        return best
    alone_s = hops.size / hops.of_pools(now.route_bytes_per_s)
    until_s = float((now.start_s + alone_s).max())
    for _ in range(ROUNDS):
        try:
            rate, cut = _sooner(hops, now, np.maximum(until_s - now.start_s, alone_s), budget)
        except TimeLimitError:
            raise
        except SolverError:
            return best
        with np.errstate(divide="ignore"):
            end_s = float((now.start_s + hops.size / hops.of_pools(rate)).max())
        if end_s < best.makespan_s:
            best = BestRates(rate, end_s, cut)
        else:
            best = BestRates(best.rate_bytes_per_s, best.makespan_s, cut)
        earliest_s = float(cut.earliest_s(hops, now.route_bytes_per_s, now.start_s))
        if earliest_s <= until_s or best.makespan_s <= earliest_s * (1 + SAME_INSTANT):
            return best
        until_s = earliest_s
    return best


def _sooner(
    hops: Hops, now: Brought, length_s: FloatArray, budget: Budget
) -> tuple[FloatArray, Cut]:
    """Return the largest rates in proportion to what ends all pools in `length_s`, and prices."""
    cap = now.route_bytes_per_s
    is_open = np.flatnonzero(cap > 0)
    unit = float(cap.max())
    column_of = np.full(len(cap), -1)
    column_of[is_open] = np.arange(len(is_open))
    n_pools, share = len(hops.size), len(is_open)
    used = np.flatnonzero(column_of[hops.use.route] >= 0)
    limits, limit_row = np.unique(hops.use.limit[used], return_inverse=True)
    program = LinearProgram(
        cost=np.append(np.zeros(share), -1.0),
        lower=np.zeros(share + 1),
        upper=np.append(cap[is_open] / unit, np.inf),
        row_lower=np.concatenate([np.zeros(n_pools), np.full(len(limits), -np.inf)]),
        row_upper=np.concatenate([np.full(n_pools, np.inf), hops.limit[limits] / unit]),
        rows=np.concatenate([hops.pool[is_open], np.arange(n_pools), n_pools + limit_row.ravel()]),
        columns=np.concatenate(
            [np.arange(share), np.full(n_pools, share), column_of[hops.use.route[used]]]
        ),
        values=np.concatenate([np.ones(share), -hops.size / length_s / unit, hops.use.times[used]]),
    )
    found = budget.linear_solver().solve(program, budget.remaining_s())
    rate = np.zeros(len(cap))
    # Lest rounding exceeds what is divided.
    rate[is_open] = np.maximum(found.x[:-1], 0.0) * unit * (1 - SAME_INSTANT)
    pool = np.maximum(found.row_dual[:n_pools], 0.0)
    limit = np.zeros(len(hops.limit))
    limit[limits] = np.maximum(-found.row_dual[n_pools:], 0.0)
    crossed = np.bincount(hops.use.route, hops.use.times * limit[hops.use.limit], len(cap))
    cut = Cut(pool, np.maximum(pool[hops.pool] - crossed, 0.0), float(limit @ hops.limit))
    return rate, cut
