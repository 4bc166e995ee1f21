"""Earliest end of each source if it alone had data, where two hops surely suffice.

A source alone takes at least its data over all that leads out of it, and over all that leads into
the destination. Each relay passes on what both of its links carry, besides the direct link: where
that is enough for the later of the two instants, it is the earliest end. So no flow is needed, and
no problem for each source: all are looked at in one pass over the links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.network.layered import breakpoints_s
from datacollect.flow.network.tolerances import SAME_CUT, TWO_HOP_ROOM
from datacollect.flow.optimum import fluid_optimum
from datacollect.flow.quickest.bottleneck import destination_bottleneck, source_bottleneck
from datacollect.flow.two_hops import direct_bandwidth, has_host_limits

if TYPE_CHECKING:
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.transfers import Bottleneck
    from datacollect.solvers.budget import Budget


class Alone:
    """The earliest end of each source alone, and what forbids an earlier one.

    Parameters
    ----------
    problem : Problem
    budget : Budget

    Examples
    --------
    >>> import datacollect as dc
    >>> from datacollect.solvers.budget import Budget
    >>> problem = dc.Problem.from_matrix(
    ...     ["A", "B", "D"], [[0, 0, 5.0], [0, 0, 2.0], [0, 0, 0]], [10, 20, 0], "D"
    ... )
    >>> alone = Alone(problem, Budget())
    >>> seconds, bottleneck = alone.of("B")
    >>> seconds, bottleneck.kind
    (10.0, 'source')
    """

    def __init__(self, problem: Problem, budget: Budget) -> None:
        self._problem, self._budget = problem, budget
        simple = not (
            problem.shared
            or problem.held
            or has_host_limits(problem)
            or problem.n_links == 0
            or len(problem.makers)
        )
        self._two_hops = simple and len(breakpoints_s(problem)) == 1
        if self._two_hops:
            self._onward = direct_bandwidth(problem)
            self._into = float(self._onward.sum())
            self._onward[problem.destination_index] = np.inf

    def of(self, source: str) -> tuple[float, Bottleneck]:
        """Return the earliest end of a source alone, and its bottleneck.

        Raises
        ------
        InfeasibleError
            Its data cannot reach the destination.
        """
        found = self._by_two_hops(self._problem.host_index[source]) if self._two_hops else None
        if found is not None:
            return found
        optimum = fluid_optimum(_only(self._problem, source), self._budget)
        return optimum.makespan_s, optimum.bottleneck

    def _by_two_hops(self, host: int) -> tuple[float, Bottleneck] | None:
        """Return the same without a flow; None where more hops might help, or nothing arrives."""
        problem = self._problem
        begin, end = np.searchsorted(
            problem.link_from, np.array([host, host + 1], dtype=problem.link_from.dtype)
        ).tolist()
        rate = problem.bandwidth_bytes_per_s[0, begin:end]
        out = float(rate.sum())
        if out <= 0 or self._into <= 0:
            return None
        n_bytes = float(problem.backlog_bytes[host])
        at_destination_s, at_source_s = n_bytes / self._into, n_bytes / out
        at_source = at_source_s > at_destination_s * (1 + SAME_CUT)
        end_s = at_source_s if at_source else at_destination_s
        carried = float(np.minimum(rate, self._onward[problem.link_to[begin:end]]).sum())
        # Half of the room that a flow has, for what sums of floats lose.
        if not carried * end_s * (1 + TWO_HOP_ROOM / 2) >= n_bytes or not np.isfinite(end_s):
            return None
        if at_source:
            return end_s, source_bottleneck(problem, host, out, [host])
        return end_s, destination_bottleneck(problem, self._into, [host])


def _only(problem: Problem, source: str) -> Problem:
    """Return the problem in which no other host has anything to move."""
    backlog = np.zeros_like(problem.backlog_bytes)
    number = problem.host_index[source]
    backlog[number] = problem.backlog_bytes[number]
    held = tuple(held for held in problem.held if held.source == source)
    # What is planned here is not carried out: files do not matter.
    return problem.replace(backlog_bytes=backlog, held=held, manifest=None)
