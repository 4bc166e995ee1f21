"""When a collection will have ended, before it starts: with a range, from what is known of wires.

A probe's connection, one of ours, got b. On a wire of capacity C, N of ours share with what left it
b: each gets r with 1/r = 1/b + (N - 1)/C, which is C/(N + m) with m = C/b - 1. Wires are a link's
own, where its capacity is known, hosts' limits, and shared bottlenecks. What has ended leaves room.

What is left out of account (slow starts, losses, others that come and go, probes that were wrong)
was learned from simulated runs: by what factor these take longer, and within which factors nine of
ten do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.methods.names import ADAPTIVE
from datacollect.problem.connection_rates import link_rates, wire_rates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.arrays import FloatArray
    from datacollect.problem.problem import Problem


class Job(NamedTuple):
    """Data that take one route: hosts' names, bytes, connections on each hop."""

    hosts: tuple[str, ...]
    n_bytes: int
    connections: int


class Prediction(NamedTuple):
    """When all has arrived, predicted before the start.

    Attributes
    ----------
    makespan_s : float
        As likely sooner as later.
    low_s, high_s : float
        In between nine times of ten.
    """

    makespan_s: float
    low_s: float
    high_s: float


class Factors(NamedTuple):
    """What simulated runs took over what 1/r = 1/b + (N - 1)/C says: 5 %, 50 % and 95 % of them."""

    low: float
    middle: float
    high: float


# Learned by `python experiments/prediction.py learn`, rounded outwards: the base scenario at a
# tenth in the fluid engine, seeds 1 to 100 (coordinated: to 45), peering and access wires known. A
# method that is not here is not predicted.
LEARNED = {
    "direct": Factors(1.0, 1.014, 1.05),
    "coordinated": Factors(0.98, 1.019, 1.4),
}


def predicted(problem: Problem, jobs: Sequence[Job], method: str) -> Prediction | None:
    """Predict when jobs end that are carried out side by side; None where wires are not known.

    Parameters
    ----------
    problem : Problem
        Bandwidths are what one connection got.
    jobs : sequence of Job
    method : str
        With ``"adaptive"`` connections of jobs that have ended help the others.

    Examples
    --------
    Two of ours behind an uplink of 6 bytes/s, where each alone got 3: 1/r = 1/3 + 1/6, 4 together.

    >>> import datacollect as dc
    >>> host = dc.Host("S", 60, uplink_bytes_per_s=6.0)
    >>> problem = dc.Problem.from_hosts([host, dc.Host("D")], [dc.Link("S", "D", 3.0)], "D")
    >>> bare_makespan_s(problem, [Job(("S", "D"), 60, 2)])
    15.0
    """
    bare_s = bare_makespan_s(problem, jobs, help_others=method == ADAPTIVE)
    if bare_s is None or method not in LEARNED:
        return None
    factors = LEARNED[method]
    return Prediction(bare_s * factors.middle, bare_s * factors.low, bare_s * factors.high)


def bare_makespan_s(
    problem: Problem, jobs: Sequence[Job], *, help_others: bool = False
) -> float | None:
    """Return when jobs end by 1/r = 1/b + (N - 1)/C; None where some hop's wires are not known."""
    jobs = [job for job in jobs if job.n_bytes > 0]
    if not jobs:
        return 0.0
    wires = _Wires(problem, jobs)
    if not wires.all_known:
        return None
    left = np.array([job.n_bytes for job in jobs], dtype=float)
    if help_others:
        return float(left.sum() / wires.rates(left > 0).sum())
    now_s = 0.0
    while (left > 0).any():
        active = left > 0
        rate = wires.rates(active)
        step_s = float((left[active] / rate[active]).min())
        now_s += step_s
        left = np.where(active, left - rate * step_s, 0.0)
        left[left <= 1e-9 * max(job.n_bytes for job in jobs)] = 0.0
    return now_s


class _Wires:
    """The wires that jobs' hops cross: capacities, and what one connection got on each hop."""

    def __init__(self, problem: Problem, jobs: Sequence[Job]) -> None:
        index = problem.host_index
        hosts = [[index[name] for name in job.hosts] for job in jobs]
        self.n_jobs = len(jobs)
        self.job = np.repeat(np.arange(len(jobs)), [len(path) - 1 for path in hosts])
        self.count = np.array([job.connections for job in jobs], dtype=float)
        tail = np.array([a for path in hosts for a in path[:-1]])
        head = np.array([b for path in hosts for b in path[1:]])
        link = problem.link_indices(tail, head)
        self.alone = problem.bandwidth_bytes_per_s[0, link]
        own, shared = link_rates(problem).capacity_bytes_per_s, wire_rates(problem)
        n_links, n_hosts = problem.n_links, problem.n_hosts
        known = np.where(shared.grows, shared.capacity_bytes_per_s, shared.bandwidth_bytes_per_s)
        self.capacity = np.concatenate(
            [
                np.where(np.isnan(own), np.inf, own),
                problem.uplink_bytes_per_s,
                problem.downlink_bytes_per_s,
                known,
            ]
        )
        hop = np.arange(len(link))
        hops = [hop, hop, hop]
        crossed = [link, n_links + tail, n_links + n_hosts + head]
        for number, members in enumerate(problem.shared_links):
            over = hop[np.isin(link, members)]
            hops.append(over)
            crossed.append(np.full(len(over), n_links + 2 * n_hosts + number))
        self.hop, self.wire = np.concatenate(hops), np.concatenate(crossed)
        is_known = np.isfinite(self.capacity[self.wire])
        self.hop, self.wire = self.hop[is_known], self.wire[is_known]
        self.all_known = len(np.unique(self.hop)) == len(link) and bool((self.alone > 0).all())

    def rates(self, active: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> FloatArray:
        """Return the rates of active jobs, in bytes per second."""
        count = self.count * active
        ours = np.bincount(self.wire, count[self.job[self.hop]], len(self.capacity))
        crowd = np.maximum(ours[self.wire] - 1, 0) / self.capacity[self.wire]
        slowest = np.zeros(len(self.alone))
        np.maximum.at(slowest, self.hop, crowd)
        each = 1 / (1 / self.alone + slowest)
        rate = np.full(self.n_jobs, np.inf)
        np.minimum.at(rate, self.job, each * self.count[self.job])
        return np.asarray(rate * active)
