"""Pareto front of time and money: the least cost for each makespan, from fastest to cheapest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, ProblemError
from datacollect.files.stages import counting, stage
from datacollect.files.units import BYTES_PER_GB
from datacollect.files.with_units import PART, in_units
from datacollect.flow.optimum import fluid_optimum
from datacollect.methods.choice import candidate
from datacollect.methods.coordinated.spec import CoordinatedOptions
from datacollect.methods.timing.tolerances import SAME_PRICE
from datacollect.problem.numbers import floats_of
from datacollect.problem.other_rates import with_link_rates
from datacollect.schedule.data.use import plan_money
from datacollect.solvers.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.registry import Solver


SLACK = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)

# Links of least price times periods: beyond this no more days are listed.
MOST_LISTED = 1_000_000

# A deadline that leaves time for everything, in multiples of the earliest makespan.
FAR = 1e6


def front(
    problem: Problem, *, slack: Sequence[float] = SLACK, solver: Solver = "auto"
) -> pd.DataFrame:
    """Return the least money for each of several deadlines, and the least of all.

    Parameters
    ----------
    problem : Problem
        With prices.
    slack : sequence of float
        Each deadline is ``(1 + slack)`` times the earliest possible makespan; >= 0.
    solver : str
        ``"auto"``, the fastest that is installed, or a name of `datacollect.solvers.registry`.

    Returns
    -------
    DataFrame
        A row per slack, which is the index, in increasing order; the last is infinite. Columns:
        ``makespan_s``, when all has arrived; ``money``, the price of all links in the currency of
        the problem's prices; ``slower`` and ``cheaper``, both as parts of the fastest plan's
        makespan and money. Relays pass on at once: chunks would add to the makespan.

    Raises
    ------
    ProblemError
        The problem has no prices, or a slack is negative or infinite.
    InfeasibleError
        Some data cannot reach the destination.

    Notes
    -----
    In the last row every byte takes a path of least price, and the makespan is the earliest at
    which that is possible. Where such paths exist for a while only (forecasts), it is that of one
    plan of least price. Where bandwidths recur every day, that row has as many days as it needs;
    for later deadlines list more of them (`Problem.until`).

    Examples
    --------
    A free link beside a relay that costs 0.1 per GB:

    >>> import datacollect as dc
    >>> hosts = [dc.Host("S", 4_000_000_000), dc.Host("K"), dc.Host("D")]
    >>> links = [
    ...     dc.Link("S", "D", 1e6), dc.Link("S", "K", 1e6, price_per_gb=0.1), dc.Link("K", "D", 1e6)
    ... ]
    >>> problem = dc.Problem.from_hosts(hosts, links, destination="D")
    >>> dc.front(problem, slack=[0, 0.5]).round(3)
           makespan_s  money  slower  cheaper
    slack
    0.0        2000.0    0.2     0.0      0.0
    0.5        3000.0    0.1     0.5      0.5
    inf        4000.0    0.0     1.0      1.0
    """
    import pandas as pd

    if problem.price_per_gb is None:
        raise ProblemError(
            "a front between time and money needs prices, but no link has one; give links a "
            "price_per_gb"
        )
    slack = np.ravel(floats_of("slack", in_units(slack, PART, "slack"))).tolist()
    for value in slack:
        if not 0 <= value < math.inf:
            raise ProblemError(f"slack must be >= 0 and finite, got {value:g}")
    budget = Budget.begin(solver)
    earliest_s = fluid_optimum(problem, budget).attained_s
    wanted = sorted({0.0, *map(float, slack)})
    found = []
    # The last is without a deadline.
    with counting(len(wanted) + 1, "deadlines") as step:
        for value in wanted:
            found.append(_cheapest_by(problem, (1 + value) * earliest_s, solver))
            step()
        with stage("the cheapest at any time"):
            cheapest = _cheapest_of_all(problem, earliest_s, budget)
        step()
    # A plan takes all the time that it has; where the cheapest of all ends sooner, that one counts.
    found = [*(min(row, cheapest) for row in found), cheapest]
    makespan_s, money = np.array(found).T
    table = pd.DataFrame(
        {
            "makespan_s": makespan_s,
            "money": money,
            "slower": _change(makespan_s),
            "cheaper": 0.0 - _change(money),
        },
        index=pd.Index([*wanted, math.inf], name="slack"),
    )
    kept = [value in {*map(float, slack), math.inf} for value in table.index]
    return table[kept]


def _change(values: FloatArray) -> FloatArray:
    """Return the change since the first as a part of it; 0 where that is 0."""
    return values / values[0] - 1 if values[0] > 0 else np.zeros(len(values))


def _cheapest_by(problem: Problem, deadline_s: float, solver: Solver) -> tuple[float, float]:
    if problem.total_bytes == 0:
        return 0.0, 0.0
    options = CoordinatedOptions(chunk_s=0.0, prefer="money", deadline_s=deadline_s, solver=solver)
    plan = candidate(problem, options)
    return plan.makespan_s, plan_money(problem, plan) or 0.0


def _cheapest_of_all(problem: Problem, earliest_s: float, budget: Budget) -> tuple[float, float]:
    """Return the earliest end by paths of least price alone, and that price.

    Where bandwidths recur every day, as many days are listed as that takes.
    """
    price = _least_price_per_gb(problem)
    assert problem.price_per_gb is not None
    through = problem.price_per_gb + price[problem.link_to]
    least = price[problem.link_from]
    on_path = np.isfinite(through) & (through <= least * (1 + SAME_PRICE))
    cheap = with_link_rates(problem, lambda rates: rates * on_path)
    try:
        makespan_s = fluid_optimum(cheap, budget).attained_s
    except InfeasibleError:
        longer = _with_more_days(problem, int(on_path.sum()))
        if longer is not None:
            return _cheapest_of_all(longer, earliest_s, budget)
        return _cheapest_by(problem, FAR * earliest_s, budget.solver)
    money = sum(price[parcel.host] * parcel.n_bytes for parcel in problem.parcels)
    return makespan_s, float(money) / BYTES_PER_GB


def _with_more_days(problem: Problem, n_links: int) -> Problem | None:
    """Return the problem with twice as many days listed; None where nothing recurs, or too much."""
    if problem.daily is None or 2 * problem.n_periods * n_links > MOST_LISTED:
        return None
    longer = problem.until(2 * problem.daily.until_s)
    return None if longer is problem else longer


def _least_price_per_gb(problem: Problem) -> FloatArray:
    """Return the price of the cheapest path from each host to the destination; infinite: none.

    Dijkstra, Numerische Mathematik 1 (1959), from the destination backwards.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    assert problem.price_per_gb is not None
    usable = problem.bandwidth_bytes_per_s.max(axis=0) > 0
    for shared, links in zip(problem.shared, problem.shared_links, strict=True):
        if shared.bandwidth_bytes_per_s == 0:
            usable[links] = False
    backwards = csr_array(
        (problem.price_per_gb[usable], (problem.link_to[usable], problem.link_from[usable])),
        shape=(problem.n_hosts, problem.n_hosts),
    )
    found: FloatArray = dijkstra(backwards, indices=[problem.destination_index])[0]
    return found
