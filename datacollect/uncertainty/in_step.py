"""A plan carried out in step: all that it sends at once keeps its parts of links and limits.

Where several connections share a host's limit or a wire, fair shares are other than those of a plan
that divides it unequally. In step the plan runs as it is, only slower or faster: at each instant as
the fullest of what it uses then allows. Where all carry what the plan counts on, it takes what it
promises.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from datacollect.schedule.data.use import legs

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


class InStep:
    """A plan that runs as it is, slower or faster.

    Parameters
    ----------
    problem : Problem
        For which it was made.
    plan : Schedule
    links : ndarray of int, shape (n_used,)
        The links that it uses, in order.
    growth : ndarray of float, shape (n_used,)
        How many times as much its connections on each carry as one.
    wires_bytes_per_s : ndarray of float, shape (n_wires,)
        What its connections get of shared wires.
    """

    def __init__(
        self,
        problem: Problem,
        plan: Schedule,
        links: IntArray,
        growth: FloatArray,
        wires_bytes_per_s: FloatArray,
    ) -> None:
        self._links, self._growth, self._wires = links, growth, wires_bytes_per_s
        columns, at = plan.columns, legs(plan, problem.names)
        self._planned_bytes_per_s = problem.bandwidth_bytes_per_s[:, links]
        times_s = np.unique(np.concatenate([[0.0], columns.start_s, columns.finish_s]))
        first, last = (np.searchsorted(times_s, x) for x in (columns.start_s, columns.finish_s))
        # Of each stretch between two changes of the plan: when it is to end, when the data that it
        # sends are there, and what it uses: links, what hosts send and receive, wires.
        self._times_s, n = times_s.tolist(), len(times_s) - 1
        self._ready_s = np.zeros(n)
        used = _used_by_link(problem, links)
        n_used = len(links) + 2 * problem.n_hosts + len(problem.shared_links)
        self._use = np.zeros((n, n_used))
        rate = columns.n_bytes / np.maximum(columns.finish_s - columns.start_s, 1e-300)
        own = (at.hop == 0) & (at.tail == at.source)
        ready_s = np.where(own, problem.release_s[at.source], 0.0)
        place = np.searchsorted(links, problem.link_indices(at.tail, at.head))
        for row in np.flatnonzero((columns.n_bytes > 0) & (last > first)).tolist():
            stretch = slice(first[row], last[row])
            self._use[stretch, used[place[row]]] += rate[row]
            self._ready_s[stretch] = np.maximum(self._ready_s[stretch], ready_s[row])

    def makespan_s(self, problem: Problem) -> float:
        """Return when it ends where links and limits are a problem's; infinite if never.

        Nothing runs ahead of the plan by more than the fastest of its links is faster.
        """
        most = np.divide(
            problem.bandwidth_bytes_per_s[:, self._links],
            self._planned_bytes_per_s,
            out=np.ones_like(self._planned_bytes_per_s),
            where=self._planned_bytes_per_s > 0,
        ).max(initial=1.0)
        now_s, rates = 0.0, self._rates(problem)
        stretches = zip(pairwise(self._times_s), self._ready_s.tolist(), self._use, strict=True)
        for (start_s, end_s), ready_s, use in stretches:
            busy = np.flatnonzero(use)
            if not len(busy):
                now_s = max(now_s, end_s)  # it waits for something, which may have come by now
                continue
            now_s, left_s = max(now_s, ready_s), end_s - start_s
            while left_s > 0:
                period = int(np.searchsorted(problem.periods_s, now_s, side="right")) - 1
                if period == problem.n_periods - 1 and problem.daily is not None:
                    problem = problem.until(2 * now_s)
                    rates = self._rates(problem)
                is_last = period == problem.n_periods - 1
                speed = min(most, (rates[period, busy] / use[busy]).min())
                if is_last and speed <= 0:
                    return math.inf
                until_s = math.inf if is_last else float(problem.periods_s[period + 1])
                takes_s = left_s / speed if speed > 0 else math.inf
                if now_s + takes_s <= until_s:
                    now_s, left_s = now_s + takes_s, 0.0
                else:
                    now_s, left_s = until_s, left_s - speed * (until_s - now_s)
        return float(now_s)

    def _rates(self, problem: Problem) -> FloatArray:
        """Return what each carries in each period, in the order of use."""
        wires = np.broadcast_to(self._wires, (problem.n_periods, len(self._wires)))
        rates: FloatArray = np.concatenate(
            [
                problem.bandwidth_bytes_per_s[:, self._links] * self._growth,
                problem.uplink_bytes_per_s,
                problem.downlink_bytes_per_s,
                wires,
            ],
            axis=1,
        )
        return rates


def _used_by_link(problem: Problem, links: IntArray) -> list[list[int]]:
    """Return where what a byte on each link uses stands: the link, its ends, wires on its way."""
    n_links, n_hosts = len(links), problem.n_hosts
    ends = problem.link_from[links] + n_links, problem.link_to[links] + n_links + n_hosts
    used = np.stack([np.arange(n_links), *ends], axis=1).tolist()
    for wire, members in enumerate(problem.shared_links):
        for place in np.flatnonzero(np.isin(links, members)).tolist():
            used[place].append(n_links + 2 * n_hosts + wire)
    found: list[list[int]] = used
    return found
