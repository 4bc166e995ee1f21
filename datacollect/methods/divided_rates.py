"""The best rates of routes whose hops have their connections: a small linear program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.solvers.programs import LinearProgram

if TYPE_CHECKING:
    from datacollect.arrays import FloatArray, IntArray
    from datacollect.methods.whole_connections import Hops
    from datacollect.solvers.budget import Budget

# Data that are released at one instant need one round; else ends come closer in each.
ROUNDS = 4


def best_rates(hops: Hops, n: IntArray, budget: Budget) -> FloatArray:
    """Return each route's rate, those that end all soonest.

    Where nothing is divided, every route is as fast as its connections allow. Constant links,
    hosts' limits and shared bottlenecks without competitors are divided by a linear program.

    Parameters
    ----------
    hops : Hops
    n : ndarray of int, shape (n_hops,)
        Connections.
    budget : Budget

    Returns
    -------
    ndarray of float, shape (n_routes,)

    Examples
    --------
    >>> import datacollect as dc
    >>> from datacollect.flow.pools import pools_by_owner
    >>> from datacollect.methods.whole_connections import Candidate, Hops
    >>> links = [dc.Link("A", "D", 8.0), dc.Link("B", "D", 8.0)]
    >>> hosts = [dc.Host("A", 20), dc.Host("B", 60), dc.Host("D", downlink_bytes_per_s=8.0)]
    >>> problem = dc.Problem.from_hosts(hosts, links, "D")
    >>> hops = Hops(problem, pools_by_owner(problem), [Candidate(i, (i, 2)) for i in (0, 1)], 2)
    >>> from datacollect.solvers.budget import Budget
    >>> best_rates(hops, np.array([1, 1]), Budget()).round(6)
    array([2., 6.])
    """
    now = hops.brought(n)
    rate, end_s = now.rate_bytes_per_s, now.makespan_s
    if len(hops.user) == 0 or not np.isfinite(end_s):
        return rate
    for _ in range(ROUNDS):
        found = _sooner(hops, n, rate, end_s, budget)
        pool = np.bincount(hops.pool, found, len(hops.size))
        with np.errstate(divide="ignore"):
            then_s = float((hops.release_s + hops.size / pool).max())
        if then_s >= end_s:
            break
        rate, end_s = found, then_s
    return rate


def _sooner(hops: Hops, n: IntArray, rate: FloatArray, end_s: float, budget: Budget) -> FloatArray:
    """Return rates in proportion to those with which all would end at `end_s`, the largest."""
    cap = hops.undivided(n)
    is_open = np.flatnonzero(rate > 0)
    unit = float(rate.max())
    column_of = np.full(len(cap), -1)
    column_of[is_open] = np.arange(len(is_open))
    n_pools, share = len(hops.size), len(is_open)
    user = hops.user[column_of[hops.route[hops.user]] >= 0]
    owner = hops.owner[column_of[hops.route[hops.user]] >= 0]
    # A route may cross a capacity twice.
    cell = np.unique(np.stack([owner, column_of[hops.route[user]]]), axis=1, return_counts=True)
    (used, columns), times = cell
    limits, limit_row = np.unique(used, return_inverse=True)
    weight = hops.size / (end_s - hops.release_s) / unit
    program = LinearProgram(
        cost=np.append(np.zeros(share), -1.0),
        lower=np.zeros(share + 1),
        upper=np.append(np.minimum(cap[is_open] / unit, 1e9), np.inf),
        row_lower=np.concatenate([np.zeros(n_pools), np.full(len(limits), -np.inf)]),
        row_upper=np.concatenate([np.full(n_pools, np.inf), hops.limit[limits] / unit]),
        rows=np.concatenate([hops.pool[is_open], np.arange(n_pools), n_pools + limit_row.ravel()]),
        columns=np.concatenate([np.arange(share), np.full(n_pools, share), columns]),
        values=np.concatenate([np.ones(share), -weight, times.astype(float)]),
    )
    found = budget.linear_solver().solve(program, budget.remaining_s())
    sooner = np.zeros(len(cap))
    # Lest rounding exceeds what is divided.
    sooner[is_open] = np.maximum(found.x[:-1], 0.0) * unit * (1 - 1e-9)
    return sooner
