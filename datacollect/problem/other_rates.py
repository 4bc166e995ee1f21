"""Problems with other rates: of links while they are open, and of hosts in the same hours."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datacollect.problem.nominal_rates import NominalRates

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem


def with_link_rates(problem: Problem, changed: Callable[[FloatArray], FloatArray]) -> Problem:
    """Return the problem with other rates of links, in the hours in which they are open.

    Parameters
    ----------
    changed : callable
        From rates, shape (n, n_links), to those that are to hold instead; 0 stays 0.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> with_link_rates(problem, lambda rates: rates / 2).bandwidth_bytes_per_s.tolist()
    [[2.5]]
    """
    changes: dict[str, Any] = {"bandwidth_bytes_per_s": changed(problem.bandwidth_bytes_per_s)}
    daily = problem.daily
    if daily is not None and daily.nominal is not None:
        rates = changed(daily.nominal.of_links(problem))
        changes["daily"] = replace(daily, nominal=NominalRates.of(problem, rates))
    return problem.replace(**changes)


def with_host_limits(problem: Problem, **limits: FloatArray) -> Problem:
    """Return the problem with other limits of hosts, whose hours stay those that they were."""
    changes: dict[str, Any] = {**limits, "daily": problem.daily}
    return problem.replace(**changes)
