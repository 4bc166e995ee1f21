"""Makespan of scripts: tools store and forward whole pieces, one after another in each lane."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from datacollect.numbers.fairshare import max_min_fair_rates
from datacollect.numbers.tolerances import SAME_INSTANT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.exports.jobs import FetchJob
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.problem import Problem


# What a piece takes besides its data: a tool's start and its marks (0.15 s, measured, in all), and
# a connection over TLS where packets travel for 50 ms. A relay that does not have a piece yet is
# asked again after so long, as scripts do by default.
REQUEST_S, LOOK_AGAIN_S = 0.5, 5.0


def finish_times_s(
    problem: Problem, jobs: Sequence[FetchJob], *, timed: bool = True, requests: bool = False
) -> FloatArray:
    """Return when each job ends if tools keep to their rate limits and share what is too little.

    Parameters
    ----------
    problem : Problem
    jobs : sequence of FetchJob
        None comes before what it waits for.
    timed : bool
        Whether jobs wait for the instant at which the plan has them begin.
    requests : bool
        Whether the time counts that requests take by themselves.

    Returns
    -------
    ndarray of float, shape (n_jobs,)
    """
    return _Run(problem, jobs, timed=timed, requests=requests).finish_s()


class _Run:
    """From event to event: a job begins, a job ends, a forecast's period begins."""

    def __init__(
        self, problem: Problem, jobs: Sequence[FetchJob], *, timed: bool, requests: bool
    ) -> None:
        self._problem, self._jobs, self._timed, self._requests = problem, jobs, timed, requests
        self._done_s = np.full(len(jobs), math.inf)
        lanes: dict[int, list[int]] = {}
        for i, job in enumerate(jobs):
            lanes.setdefault(job.lane, []).append(i)
        self._lanes = list(lanes.values())
        self._free_s = np.zeros(len(self._lanes))  # when each lane's last job has ended
        self._flow, self._resource = self._resources()

    def _resources(self) -> tuple[IntArray, IntArray]:
        """Return who uses what; resources are all links, uplinks, downlinks, bottlenecks."""
        problem = self._problem
        n, index = problem.n_hosts, problem.host_index
        row_of = {
            pair: row
            for row, pair in enumerate(
                zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
            )
        }
        flow, resource = [], []
        n_links = len(row_of)
        for k, lane in enumerate(self._lanes):
            job = self._jobs[lane[0]]
            tail, head = index[job.request_from], index[job.host]
            used = [row_of[tail, head], n_links + tail, n_links + n + head]
            used += [
                n_links + 2 * n + s
                for s, shared in enumerate(problem.shared)
                if (job.request_from, job.host) in shared.links
            ]
            flow += [k] * len(used)
            resource += used
        return np.array(flow, np.int64), np.array(resource, np.int64)

    def finish_s(self) -> FloatArray:
        now, at = 0.0, [0] * len(self._lanes)
        left = np.array([self._jobs[lane[0]].piece.n_bytes for lane in self._lanes], float)
        periods_s = np.append(self._problem.periods_s, math.inf)
        while any(k < len(lane) for k, lane in zip(at, self._lanes, strict=True)):
            active, limit, next_s = self._ready(now, at)
            period = int(np.searchsorted(periods_s, now, side="right")) - 1
            rates = self._rates(period, active, limit)
            with np.errstate(divide="ignore", invalid="ignore"):
                ends_s = now + np.where(rates > 0, left / rates, math.inf)
            later_s = min(next_s, float(periods_s[period + 1]), float(ends_s.min()))
            if not math.isfinite(later_s):
                break  # what is left has no capacity: it never ends
            left = np.maximum(left - rates * (later_s - now), 0.0)
            # What rounding leaves of a piece must not wait until a window opens again.
            for k in np.flatnonzero(active & (ends_s <= later_s * (1 + SAME_INSTANT))).tolist():
                lane = self._lanes[k]
                self._done_s[lane[at[k]]] = self._free_s[k] = later_s
                at[k] += 1
                if at[k] < len(lane):
                    left[k] = self._jobs[lane[at[k]]].piece.n_bytes
            now = later_s
        return self._done_s

    def _ready(self, now: float, at: list[int]) -> tuple[BoolArray, FloatArray, float]:
        """Return which lanes move data, their limits, and when the next one sets in."""
        n = len(self._lanes)
        active, limit, next_s = np.zeros(n, bool), np.zeros(n), math.inf
        for k, lane in enumerate(self._lanes):
            if at[k] == len(lane):
                continue
            job = self._jobs[lane[at[k]]]
            begins_s = self._begins_s(job, float(self._free_s[k]))
            if begins_s > now:
                next_s = min(next_s, begins_s)
                continue
            active[k], limit[k] = True, job.rate_bytes_per_s
        return active, limit, next_s

    def _begins_s(self, job: FetchJob, free_s: float) -> float:
        """Return when a job's data begin to come; infinite where that is not known yet."""
        asks_s = max(free_s, job.start_s) if self._timed else free_s
        there_s = asks_s if job.after is None else float(self._done_s[job.after])
        if not self._requests:
            return max(asks_s, there_s)
        return (asks_s if there_s <= asks_s else there_s + LOOK_AGAIN_S) + REQUEST_S

    def _rates(self, period: int, active: BoolArray, limit: FloatArray) -> FloatArray:
        problem = self._problem
        by_period = (
            problem.bandwidth_bytes_per_s,
            problem.uplink_bytes_per_s,
            problem.downlink_bytes_per_s,
        )
        shared = [wire.bandwidth_bytes_per_s for wire in problem.shared]
        return max_min_fair_rates(
            np.concatenate([*(rates[period] for rates in by_period), shared]),
            self._flow,
            self._resource,
            len(self._lanes),
            rate_limit=limit,
            active=active,
        )
