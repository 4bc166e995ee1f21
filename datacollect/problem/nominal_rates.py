"""Nominal rates: what links carry while they are open, beside the hours in which they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.numbers.arrays import FloatArray, IndexArray, IntArray
    from datacollect.problem.contents import ProblemContents
    from datacollect.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class NominalRates:
    """What links carry while they are open; a row for each hour at which rates change.

    Attributes
    ----------
    names : tuple of str
    link_from, link_to : ndarray of int, shape (n_links,)
        Indices of names: problems that are made of this one may have links in another order, or
        only some of them.
    bandwidth_bytes_per_s : ndarray of float, shape (n_hours, n_links)
        One row where rates do not change with the hour.
    """

    names: tuple[str, ...]
    link_from: IndexArray
    link_to: IndexArray
    bandwidth_bytes_per_s: FloatArray

    @classmethod
    def of(cls, contents: ProblemContents, bandwidth_bytes_per_s: FloatArray) -> NominalRates:
        """Return the rates of a problem's links, in its order."""
        return cls(contents.names, contents.link_from, contents.link_to, bandwidth_bytes_per_s)

    def of_links(self, contents: ProblemContents) -> FloatArray:
        """Return the rates in the order of a problem's links; 0 for links that are not known."""
        index = {name: i for i, name in enumerate(contents.names)}
        host = np.array([index.get(name, -1) for name in self.names], dtype=np.int64)
        known = _keys(host[self.link_from], host[self.link_to], len(index))
        wanted = _keys(contents.link_from, contents.link_to, len(index))
        if np.array_equal(known, wanted):
            return self.bandwidth_bytes_per_s
        order = np.argsort(known, kind="stable")
        at = np.minimum(np.searchsorted(known, wanted, sorter=order), max(len(known) - 1, 0))
        if not len(known):
            return np.zeros((len(self.bandwidth_bytes_per_s), len(wanted)))
        found = order[at]
        rates: FloatArray = self.bandwidth_bytes_per_s[:, found]
        return np.where(known[found] == wanted, rates, 0.0)


def _keys(tail: IndexArray | IntArray, head: IndexArray | IntArray, n_hosts: int) -> IntArray:
    keys: IntArray = tail.astype(np.int64) * n_hosts + head
    return np.where((tail < 0) | (head < 0), -1, keys)


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
