"""A limit of transfers at once at each host: routes of a fast plan, one batch after the other.

Which routes run together is a scheduling problem that is NP-hard (file transfers with a limit of
ports at each computer: Coffman, Garey, Johnson and LaPaugh, SIAM J. Computing 14, 1985). So here is
a heuristic: each route of a plan without the limit is a job that starts as soon as its hosts have
room for it, the longest first (list scheduling: Graham, SIAM J. Applied Mathematics 17, 1969), and
takes its max-min fair rate. Several sets of routes are tried; the plan that ends first is taken.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, ProblemError
from datacollect.files.clock import deadline_text, instant_text
from datacollect.files.with_units import in_whole
from datacollect.flow.network.layered import breakpoints_s, n_changes
from datacollect.flow.network.pools import Pool
from datacollect.methods.fair.transfers import RouteJob, fair_transfers
from datacollect.methods.options.arguments import default_chunk_s
from datacollect.numbers.tolerances import SAME_INSTANT
from datacollect.problem.hosts import Parcel
from datacollect.problem.other_rates import with_link_rates
from datacollect.schedule.data.contents import HEURISTIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


def require_transfers(most_transfers: int | None, slot_s: float | None) -> None:
    """Refuse limits that are no count, or that slots know nothing of."""
    if most_transfers is None:
        return
    in_whole(most_transfers, "most_transfers", 1)
    if slot_s is not None:
        raise ProblemError(
            "most_transfers is for pipelined plans; leave slot_s or most_transfers out"
        )


def with_few_transfers(
    problem: Problem,
    schedule: Schedule,
    most_transfers: int,
    chunk_s: float | None,
    plan_again: Callable[[Problem], Schedule],
) -> Schedule:
    """Return a schedule in which no host sends and receives more transfers at once.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Pipelined, without the limit. It is returned where it keeps to it.
    most_transfers : int
    chunk_s : float, optional
        What was asked for; None: by the number of routes.
    plan_again : function of Problem
        Plans a problem with fewer links without the limit.

    Raises
    ------
    InfeasibleError
        No plan was found: the heuristic's fault, maybe.
    """
    if most_at_once(problem, schedule) <= most_transfers:
        return schedule.replace(most_transfers=most_transfers)
    found: list[Schedule] = []
    reasons: list[str] = []
    for jobs in _sets_of_routes(problem, schedule, most_transfers, plan_again):
        try:
            plan = _in_batches(problem, schedule, jobs, most_transfers, chunk_s)
        except InfeasibleError as error:
            reasons.append(str(error))
            continue
        # Ranges that were cut into whole bytes may share the instants of a transfer.
        if most_at_once(problem, plan) <= most_transfers:
            found.append(plan)
        else:
            reasons.append("whole bytes need one transfer more")
    if not found:
        raise InfeasibleError(
            f"no plan with most_transfers = {most_transfers} was found: "
            f"{reasons[0] if reasons else 'relays need two at once, and some data need relays'}; "
            "allow more transfers at once",
            problem.sources,
        )
    best = min(found, key=lambda plan: plan.makespan_s)
    deadline_s = schedule.deadline_s
    if deadline_s is not None and best.makespan_s > deadline_s * (1 + SAME_INSTANT):
        raise InfeasibleError(
            f"no plan with most_transfers = {most_transfers} meets "
            f"{deadline_text(deadline_s, problem.clock)}: the best ends at "
            f"{instant_text(best.makespan_s, problem.clock)}; allow more time or more transfers",
            problem.sources,
        )
    return best


def most_at_once(problem: Problem, schedule: Schedule) -> int:
    """Return the most transfers that any host sends and receives at once.

    A transfer that starts where another ends, but for rounding, follows it.
    """
    columns = schedule.columns
    index = problem.host_index
    hosts = [[index[name] for name in route.hosts] for route in schedule.routes]
    pairs = zip(columns.route.tolist(), columns.hop.tolist(), strict=True)
    ends = np.array([(hosts[r][hop], hosts[r][hop + 1]) for r, hop in pairs], dtype=np.int64)
    # A route's ranges follow one another: at each instant a hop of a route is one transfer.
    margin_s = SAME_INSTANT * schedule.makespan_s
    starts, finishes = columns.start_s + margin_s, columns.finish_s - margin_s
    lasts = finishes > starts
    ends = ends.reshape(-1, 2)[lasts]
    times = np.concatenate([starts[lasts], finishes[lasts]])
    change = np.repeat([1, -1], int(lasts.sum()))
    order = np.lexsort((change, times))
    most = 0
    for side in np.unique(ends):
        at_host = np.tile((ends == side).any(axis=1), 2)[order]
        most = max(most, int(np.cumsum(change[order][at_host]).max(initial=0)))
    return most


# Routes ---------------------------------------------------------------------------------------


def _sets_of_routes(
    problem: Problem,
    schedule: Schedule,
    most_transfers: int,
    plan_again: Callable[[Problem], Schedule],
) -> Iterator[list[RouteJob]]:
    """Yield sets of routes, with what each carries: all data of the problem."""
    jobs = _jobs_of(problem, schedule)
    few = _on_widest_into_destination(problem, jobs, most_transfers)
    every = [jobs]
    if few is not None:
        with suppress(InfeasibleError):  # some data have no other route
            every.append(_jobs_of(problem, plan_again(few)))
    every += [_largest_alone(some, most_transfers) for some in tuple(every)]
    widest = _on_widest_routes(problem, jobs)
    if widest is not None:
        every.append(widest)
    for some in every:
        if most_transfers > 1 or all(job.n_hops == 1 for job in some):
            yield some
    direct = _direct(problem, jobs)
    if direct is not None:
        yield direct


def _jobs_of(problem: Problem, schedule: Schedule) -> list[RouteJob]:
    """Return a job per route: the ranges that take it."""
    columns, index = schedule.columns, problem.host_index
    first = np.flatnonzero(columns.hop == 0)
    first = first[np.lexsort((columns.offset_bytes[first], columns.route[first]))]
    ranges: dict[int, list[Parcel]] = {}
    rows = zip(*(getattr(columns, name)[first].tolist() for name in _RANGE), strict=True)
    for number, offset, n_bytes in rows:
        route = schedule.routes[number]
        host, source = index[route.hosts[0]], index[route.source]
        release_s = float(problem.release_s[source]) if host == source else 0.0
        parcel = Parcel(host, source, offset, n_bytes, release_s)
        ranges.setdefault(number, []).append(parcel)
    return [
        RouteJob(
            Pool(parcels[0].host, parcels[0].host, _joined(parcels)),
            tuple(index[name] for name in schedule.routes[number].hosts),
        )
        for number, parcels in ranges.items()
    ]


def _joined(parcels: Iterable[Parcel]) -> tuple[Parcel, ...]:
    """Make one of ranges that follow one another: a range of a byte would share its instants."""
    joined: list[Parcel] = []
    for parcel in sorted(parcels, key=lambda p: (p.host, p.source, p.offset_bytes)):
        before = joined[-1] if joined else parcel
        whole = before._replace(n_bytes=before.n_bytes + parcel.n_bytes)
        end = parcel._replace(
            offset_bytes=before.offset_bytes,
            n_bytes=parcel.offset_bytes + parcel.n_bytes - before.offset_bytes,
        )
        if joined and whole == end:
            joined[-1] = whole
        else:
            joined.append(parcel)
    return tuple(joined)


_RANGE = ("route", "offset_bytes", "n_bytes")


def _largest_alone(jobs: Sequence[RouteJob], most_transfers: int) -> list[RouteJob]:
    """Send all that lies at a host for the same owners by the route that carries the most of it."""
    groups: dict[tuple[int, bool], list[RouteJob]] = {}
    for job in jobs:
        groups.setdefault((job.pool.host, job.pool.is_own), []).append(job)
    alone = []
    for group in groups.values():
        fit = [job for job in group if most_transfers > 1 or job.n_hops == 1] or group
        largest = max(fit, key=lambda job: job.pool.n_bytes)
        parcels = _joined(parcel for job in group for parcel in job.pool.parcels)
        alone.append(replace(largest, pool=replace(largest.pool, parcels=parcels)))
    return alone


def _on_widest_routes(problem: Problem, jobs: Sequence[RouteJob]) -> list[RouteJob] | None:
    """Give each, those with the most data first, the widest route of at most two hops.

    A link that others use counts for its share. None where there is no such route.
    """
    n, destination = problem.n_hosts, problem.destination_index
    every, mean = np.arange(n), problem.bandwidth_bytes_per_s.mean(axis=0)
    sharing = np.ones(problem.n_links)
    last = problem.link_indices(every, np.full(n, destination))
    found = []
    for job in sorted(_largest_alone(jobs, 2), key=lambda job: -job.pool.n_bytes):
        host = job.pool.host
        first = problem.link_indices(np.full(n, host), every)
        rates = np.minimum(_shares(mean, sharing, first), _shares(mean, sharing, last))
        rates[host] = _shares(mean, sharing, last)[host]  # directly
        relay = int(rates.argmax())
        if rates[relay] <= 0:
            return None
        sharing[last[relay]] += 1
        if relay == host:
            found.append(replace(job, hosts=(host, destination)))
        else:
            sharing[first[relay]] += 1
            found.append(replace(job, hosts=(host, relay, destination)))
    return found


def _shares(mean_bytes_per_s: FloatArray, sharing: FloatArray, links: IntArray) -> FloatArray:
    """Return what one more route gets of each link; 0 where there is none."""
    shares = mean_bytes_per_s[links] / sharing[links]
    shares[links < 0] = 0.0
    return shares


def _direct(problem: Problem, jobs: Sequence[RouteJob]) -> list[RouteJob] | None:
    """Send all directly; None where a host has no link."""
    destination = problem.destination_index
    alone = [replace(job, hosts=(job.pool.host, destination)) for job in _largest_alone(jobs, 2)]
    hosts = np.array([job.pool.host for job in alone], dtype=np.int64)
    has_link = problem.link_indices(hosts, np.full(len(hosts), destination)) >= 0
    return alone if has_link.all() else None


def _on_widest_into_destination(
    problem: Problem, jobs: Sequence[RouteJob], most_transfers: int
) -> Problem | None:
    """Close all but the links that carry the most into the destination; None if those are few."""
    into = np.flatnonzero(problem.link_to == problem.destination_index)
    used = {job.hosts[-2] for job in jobs}
    if len(used) <= most_transfers:
        return None
    width = problem.bandwidth_bytes_per_s[:, into].mean(axis=0)
    closed = into[np.argsort(-width, kind="stable")[most_transfers:]]
    is_kept = np.ones(problem.n_links)
    is_kept[closed] = 0.0
    return with_link_rates(problem, lambda rates: rates * is_kept)


# Batches --------------------------------------------------------------------------------------


def _in_batches(
    problem: Problem,
    schedule: Schedule,
    jobs: list[RouteJob],
    most_transfers: int,
    chunk_s: float | None,
) -> Schedule:
    if chunk_s is None:
        # Pipelines drain wherever a route ends.
        changes = n_changes(breakpoints_s(problem), schedule.makespan_s) + len(jobs)
        chunk_s = default_chunk_s(schedule.lower_bound_s, changes)
    turn = _Room(problem, jobs, most_transfers)
    routes, columns = fair_transfers(problem, jobs, chunk_s, turn, drain=True)
    return schedule.replace(
        makespan_s=float(columns.finish_s.max(initial=0.0)),
        chunk_s=chunk_s,
        routes=routes,
        columns=columns,
        status=HEURISTIC,
        most_transfers=most_transfers,
    )


class _Room:
    """Lets jobs run while their hosts have room; what runs goes on, then the longest come first."""

    def __init__(self, problem: Problem, jobs: Sequence[RouteJob], most_transfers: int) -> None:
        self._most, self._periods_s = most_transfers, problem.periods_s
        self._running: set[int] = set()
        tails = [np.array(job.hosts[:-1], dtype=np.int64) for job in jobs]
        heads = [np.array(job.hosts[1:], dtype=np.int64) for job in jobs]
        self._ends: list[IntArray] = [np.append(a, b) for a, b in zip(tails, heads, strict=True)]
        rates = [
            problem.bandwidth_bytes_per_s[:, problem.link_indices(a, b)].min(axis=1)
            for a, b in zip(tails, heads, strict=True)
        ]
        self._open = np.array(rates).T > 0
        for k, (a, b) in enumerate(zip(tails, heads, strict=True)):
            self._open[:, k] &= (problem.uplink_bytes_per_s[:, a] > 0).all(axis=1)
            self._open[:, k] &= (problem.downlink_bytes_per_s[:, b] > 0).all(axis=1)
        self._longest_first = np.argsort(-self._alone_s(jobs, np.array(rates)), kind="stable")
        self._n_hosts = problem.n_hosts

    @staticmethod
    def _alone_s(jobs: Sequence[RouteJob], rates: FloatArray) -> FloatArray:
        """Return how long each would take alone, at its mean rate over the periods."""
        n_bytes = np.array([job.pool.n_bytes for job in jobs], dtype=float)
        mean = rates.mean(axis=1)
        alone_s = np.full(len(jobs), np.inf)
        alone_s[mean > 0] = n_bytes[mean > 0] / mean[mean > 0]
        return alone_s

    def active(self, ready: BoolArray, time_s: float) -> tuple[BoolArray, float]:
        """Return which of the `ready` jobs run from `time_s`; until one ends, or rates change."""
        period = int(np.searchsorted(self._periods_s, time_s, side="right")) - 1
        able = ready & self._open[period]
        free = np.full(self._n_hosts, self._most)
        chosen = np.zeros(len(ready), dtype=bool)
        order = self._longest_first.tolist()
        for job in [*(j for j in order if j in self._running), *order]:
            if not able[job] or chosen[job]:
                continue
            hosts, counts = np.unique(self._ends[job], return_counts=True)
            if (free[hosts] >= counts).all():
                free[hosts] -= counts
                chosen[job] = True
        self._running = set(np.flatnonzero(chosen).tolist())
        return chosen, np.inf
