"""Prediction of a collection's end before it starts: with a range, from what is known of wires.

A probe's connection, one of ours, got b. On a wire of capacity C, N of ours share with what left it
b: each gets r with 1/r = 1/b + (N - 1)/C, which is C/(N + m) with m = C/b - 1. Wires are a link's
own, where its capacity is known, hosts' limits, and shared bottlenecks. What has ended leaves room.
Adaptive moves its connections to where they bring most: the bound of plans with as many, on the
same wires, tells when it would end at best (`datacollect.methods.known_rates`).

What is left out of account (slow starts, losses, others that come and go, probes that were wrong,
unknown wires) was learned from simulated runs: by what factor these take longer, and
within which factors nine of ten do. Where others leave most of the wires free, those that nobody
told of bind at times; so runs were looked at apart whose probes got most of the known wires.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.control.learned import learned
from datacollect.methods.connections.connected import earliest_s
from datacollect.methods.known_rates import known_capacities, wire_capacities, with_known_rates
from datacollect.methods.options.names import ADAPTIVE
from datacollect.problem.connection_rates import link_rates, wire_rates
from datacollect.schedule.data.use import connections_by_link, streams_by_hop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.numbers.arrays import BoolArray, FloatArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


class RouteLoad(NamedTuple):
    """Data that take one route: hosts' names, bytes, connections: on each hop, or hop by hop."""

    hosts: tuple[str, ...]
    n_bytes: int
    connections: int | tuple[int, ...]


class Prediction(NamedTuple):
    """Predicted end of a collection, before the start.

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
    """Factors of simulated runs over what wires say: 5 %, 50 % and 95 % of them."""

    low: float
    middle: float
    high: float


# Where a probe got more than this part of its narrowest known wire, in the middle of all.
MOSTLY_FREE = 0.5


def _factors(part: str) -> dict[str, tuple[Factors, Factors]]:
    """Factors of each method, beside others and on wires that are mostly free, as learned."""
    return {
        method: (Factors(*beside_others), Factors(*mostly_free))
        for method, (beside_others, mostly_free) in learned(part).items()
    }


# Of `datacollect/control/learned.json`. A method that is not there is not predicted.
AT_FAIR_RATES = _factors("predictions_at_fair_rates")
IN_PACKETS = _factors("predictions_in_packets")


def predicted(
    problem: Problem, jobs: Sequence[RouteLoad], method: str, *, in_packets: bool = True
) -> Prediction | None:
    """Predict when jobs end that are carried out side by side; None where wires are not known.

    Parameters
    ----------
    problem : Problem
        Bandwidths are what one connection got.
    jobs : sequence of RouteLoad
    method : str
    in_packets : bool
        As in networks; else at the fluid engine's max-min fair rates.

    Examples
    --------
    Two of ours behind an uplink of 6 bytes/s, where each alone got 3: 1/r = 1/3 + 1/6, 4 together.

    >>> import datacollect as dc
    >>> host = dc.Host("S", 60, uplink_bytes_per_s=6.0)
    >>> problem = dc.Problem.from_hosts([host, dc.Host("D")], [dc.Link("S", "D", 3.0)], "D")
    >>> bare_makespan_s(problem, [RouteLoad(("S", "D"), 60, 2)])
    15.0
    """
    bare_s = bare_makespan_s(problem, jobs)
    factors = (IN_PACKETS if in_packets else AT_FAIR_RATES).get(method)
    if bare_s is None or factors is None:
        return None
    return _with_range(bare_s, factors, free_part(problem, [job.hosts for job in jobs]))


def predicted_adaptive(
    problem: Problem, connections: int, *, in_packets: bool = True
) -> Prediction | None:
    """Predict when connections that move to where they bring most have brought all.

    None where no wire is known between some source and the destination, or rates are forecast.
    `in_packets` is as for `predicted`.

    Examples
    --------
    >>> import datacollect as dc
    >>> host = dc.Host("S", 60, uplink_bytes_per_s=6.0)
    >>> problem = dc.Problem.from_hosts([host, dc.Host("D")], [dc.Link("S", "D", 3.0)], "D")
    >>> predicted_adaptive(problem, 2).makespan_s > 15
    True
    """
    end = problem.destination
    direct = [(problem.names[parcel.host], end) for parcel in problem.parcels]
    bare_s = bare_adaptive_s(problem, connections)
    factors = (IN_PACKETS if in_packets else AT_FAIR_RATES)[ADAPTIVE]
    return None if bare_s is None else _with_range(bare_s, factors, free_part(problem, direct))


def predicted_plan(problem: Problem, schedule: Schedule) -> Prediction | None:
    """Predict when a plan ends that is carried out as soon as data are there.

    None where the problem does not say, of every link that is used or of a wire that it crosses,
    how rates grow with connections; for slots and turns, late releases, forecasts and data that
    lie elsewhere, for which simulated runs have shown nothing.

    Examples
    --------
    60 bytes by one of four connections on 12 bytes/s:

    >>> import datacollect as dc
    >>> link = dc.Link("S", "D", 3.0, capacity_bytes_per_s=12.0)
    >>> problem = dc.Problem.from_hosts([dc.Host("S", 60), dc.Host("D")], [link], "D")
    >>> found = predicted_plan(problem, dc.direct(problem))
    >>> found.low_s <= found.makespan_s <= found.high_s
    True
    """
    if schedule.slot_s is not None or schedule.turns is not None or not _is_plain(problem):
        return None
    jobs = jobs_of(schedule)
    index = problem.host_index
    hops = [(index[a], index[b]) for job in jobs for a, b in pairwise(job.hosts)]
    links = problem.link_indices([a for a, _ in hops], [b for _, b in hops])
    if not jobs or not _grows(problem)[links].all():
        return None
    return predicted(problem, jobs, schedule.method)


def jobs_of(schedule: Schedule, lanes: int | None = None) -> list[RouteLoad]:
    """Return what a schedule's routes carry, with their streams or `n` connections per hop."""
    columns = schedule.columns
    first = columns.hop == 0
    moved = np.bincount(columns.route[first], columns.n_bytes[first], schedule.n_routes)
    streams = streams_by_hop(schedule) if lanes is None else {}
    found = []
    for number, (route, n_bytes) in enumerate(zip(schedule.routes, moved.tolist(), strict=True)):
        each = tuple(streams.get((number, hop), 1) for hop in range(route.n_hops))
        found.append(RouteLoad(route.hosts, int(n_bytes), each if lanes is None else lanes))
    return found


def predictions(problem: Problem, schedule: Schedule) -> dict[str, Prediction]:
    """Return what can be predicted of a plan, and of adaptive with as many connections, by method.

    Examples
    --------
    >>> import datacollect as dc
    >>> link = dc.Link("S", "D", 3.0, capacity_bytes_per_s=12.0)
    >>> problem = dc.Problem.from_hosts([dc.Host("S", 60), dc.Host("D")], [link], "D")
    >>> sorted(predictions(problem, dc.coordinated(problem, connections=3)))
    ['adaptive', 'coordinated']
    """
    connections = schedule.connections or sum(connections_by_link(schedule).values())
    found = {schedule.method: predicted_plan(problem, schedule)}
    if knows_rates(problem) and connections:
        found[ADAPTIVE] = predicted_adaptive(problem, connections)
    return {name: one for name, one in found.items() if one is not None}


def knows_rates(problem: Problem) -> bool:
    """Return whether adaptive is predicted.

    The rates of all direct links to the destination are known.
    """
    end = problem.destination_index
    tails = [parcel.host for parcel in problem.parcels]
    links = problem.link_indices(tails, [end] * len(tails))
    is_known = bool(tails) and bool((links >= 0).all()) and bool(_grows(problem)[links].all())
    return is_known and _is_plain(problem)


def _is_plain(problem: Problem) -> bool:
    late = any(parcel.release_s > 0 for parcel in problem.parcels)
    return problem.n_periods == 1 and not late and not problem.held


def _grows(problem: Problem) -> BoolArray:
    """Return which links have rates by connections, or cross a shared wire that has."""
    found = link_rates(problem).grows
    for members, grows in zip(problem.shared_links, wire_rates(problem).grows, strict=True):
        found[members] |= grows
    return found


def bare_adaptive_s(problem: Problem, connections: int) -> float | None:
    """Return the bound of plans with connections on known wires; None where that is not known."""
    end = problem.destination_index
    tails = np.array([parcel.host for parcel in problem.parcels], dtype=np.int64)
    if problem.n_periods > 1 or not len(tails):
        return None
    direct = problem.link_indices(tails, np.full(len(tails), end))
    if (direct < 0).any() or np.isinf(known_capacities(problem)[direct]).any():
        return None
    if (problem.bandwidth_bytes_per_s[0, direct] <= 0).any():
        return None
    return earliest_s(with_known_rates(problem), connections)


def free_part(problem: Problem, routes: Sequence[tuple[str, ...]]) -> float:
    """Return which part of its narrowest known wire a probe got, in the middle of some routes.

    Of a route the hop counts on which that is least.

    Examples
    --------
    >>> import datacollect as dc
    >>> host = dc.Host("S", 60, uplink_bytes_per_s=6.0)
    >>> problem = dc.Problem.from_hosts([host, dc.Host("D")], [dc.Link("S", "D", 3.0)], "D")
    >>> free_part(problem, [("S", "D")])
    0.5
    """
    index, known = problem.host_index, known_capacities(problem)
    parts = []
    for hosts in routes:
        tails, heads = ([index[name] for name in part] for part in (hosts[:-1], hosts[1:]))
        links = problem.link_indices(tails, heads)
        parts.append(float((problem.bandwidth_bytes_per_s[0, links] / known[links]).min()))
    return median(parts) if parts else 1.0


def _with_range(bare_s: float, learned: tuple[Factors, Factors], free: float) -> Prediction:
    factors = learned[free > MOSTLY_FREE]
    return Prediction(bare_s * factors.middle, bare_s * factors.low, bare_s * factors.high)


def bare_makespan_s(problem: Problem, jobs: Sequence[RouteLoad]) -> float | None:
    """Return when jobs end by 1/r = 1/b + (N - 1)/C; None where some hop's wires are not known."""
    jobs = [job for job in jobs if job.n_bytes > 0]
    if not jobs:
        return 0.0
    wires = _Wires(problem, jobs)
    if not wires.all_known:
        return None
    left = np.array([job.n_bytes for job in jobs], dtype=float)
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

    def __init__(self, problem: Problem, jobs: Sequence[RouteLoad]) -> None:
        index = problem.host_index
        hosts = [[index[name] for name in job.hosts] for job in jobs]
        self.n_jobs = len(jobs)
        self.job = np.repeat(np.arange(len(jobs)), [len(path) - 1 for path in hosts])
        hop_counts = [
            [job.connections] * (len(job.hosts) - 1)
            if isinstance(job.connections, int)
            else job.connections
            for job in jobs
        ]
        self.count = np.array([n for counts in hop_counts for n in counts], dtype=float)
        tail = np.array([a for path in hosts for a in path[:-1]])
        head = np.array([b for path in hosts for b in path[1:]])
        link = problem.link_indices(tail, head)
        self.alone = problem.bandwidth_bytes_per_s[0, link]
        own = link_rates(problem).capacity_bytes_per_s
        n_links, n_hosts = problem.n_links, problem.n_hosts
        self.capacity = np.concatenate(
            [
                np.where(np.isnan(own), np.inf, own),
                problem.uplink_bytes_per_s[0],
                problem.downlink_bytes_per_s[0],
                wire_capacities(problem),
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
        count = self.count * active[self.job]
        ours = np.bincount(self.wire, count[self.hop], len(self.capacity))
        crowd = np.maximum(ours[self.wire] - 1, 0) / self.capacity[self.wire]
        slowest = np.zeros(len(self.alone))
        np.maximum.at(slowest, self.hop, crowd)
        each = 1 / (1 / self.alone + slowest)
        rate = np.full(self.n_jobs, np.inf)
        np.minimum.at(rate, self.job, each * self.count)
        return np.asarray(rate * active)
