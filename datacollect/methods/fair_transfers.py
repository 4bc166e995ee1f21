"""Transfers that share what they share: max-min fair rates, from event to event.

Each job sends its host's data over one fixed route. Between events (a job ends, data are
released, a period begins, a time slot ends) all rates are constant and max-min fair over links,
host limits and shared bottlenecks: what long-lived TCP transfers roughly get (Bertsekas and
Gallager, Data Networks, 2nd ed. 1992, section 6.5.2). Dividing bytes by bandwidth would promise
too much wherever transfers meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.fairshare import FairShare
from datacollect.flow.layered import breakpoints_s
from datacollect.flow.routes import cut_parcels
from datacollect.methods.pipeline import RouteBook, transfers_from_rows
from datacollect.methods.tolerances import NOTHING_LEFT, SAME_RATE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.arrays import BoolArray, FloatArray, IntArray
    from datacollect.flow.pools import Pool
    from datacollect.problem.problem import Problem
    from datacollect.schedule.transfers import Route, Transfers


# What schedules say for a solver where rates are computed so.
MAX_MIN_FAIR = "max-min fair"


@dataclass(frozen=True)
class RouteJob:
    """All data of one pool over one route.

    ``hosts`` are indices, the last is the destination.
    """

    pool: Pool
    hosts: tuple[int, ...]

    @property
    def n_hops(self) -> int:
        """Number of links of its route."""
        return len(self.hosts) - 1


class Turn(Protocol):
    """Decides which jobs may run: all, some at a time, or in time slots."""

    def active(self, ready: BoolArray, time_s: float) -> tuple[BoolArray, float]:
        """Return which of the `ready` jobs run from `time_s`, and until when at most."""
        ...


class AllAtOnce:
    """Every job runs as soon as it can."""

    def active(self, ready: BoolArray, time_s: float) -> tuple[BoolArray, float]:
        """Return all ready jobs, for ever."""
        return ready, np.inf


@dataclass(frozen=True, eq=False)
class Capacities:
    """What jobs share, as resources: links, finite host limits and shared bottlenecks.

    Attributes
    ----------
    by_period : ndarray of float, shape (n_periods, n_resources)
        Bytes per second.
    job, hop, resource : ndarray of int, shape (n_entries,)
        Hop `hop` of job `job` uses `resource`.
    """

    by_period: FloatArray
    job: IntArray
    hop: IntArray
    resource: IntArray


def capacities(problem: Problem, jobs: Sequence[RouteJob]) -> Capacities:
    """List the resources that the jobs' hops use."""
    job = np.repeat(np.arange(len(jobs)), [j.n_hops for j in jobs])
    hop = np.array([hop for j in jobs for hop in range(j.n_hops)], dtype=np.int64)
    tail = np.array([host for j in jobs for host in j.hosts[:-1]], dtype=np.int64)
    head = np.array([host for j in jobs for host in j.hosts[1:]], dtype=np.int64)
    link = problem.link_indices(tail, head)
    rows = [problem.bandwidth_bytes_per_s[:, link]]
    entries = [(np.arange(len(link)), np.arange(len(link)))]
    count = len(link)
    for limit, ends in (
        (problem.uplink_bytes_per_s, tail),
        (problem.downlink_bytes_per_s, head),
    ):
        users = np.flatnonzero(np.isfinite(limit[ends]))
        hosts, which = np.unique(ends[users], return_inverse=True)
        entries.append((users, count + which))
        rows.append(np.broadcast_to(limit[hosts], (problem.n_periods, len(hosts))))
        count += len(hosts)
    for bottleneck, members in zip(problem.shared, problem.shared_links, strict=True):
        users = np.flatnonzero(np.isin(link, members))
        entries.append((users, np.full(len(users), count)))
        rows.append(np.full((problem.n_periods, 1), bottleneck.bandwidth_bytes_per_s))
        count += 1
    # Jobs over the same link share it: its first user stands for the link.
    _, first, same = np.unique(link, return_index=True, return_inverse=True)
    entries[0] = (entries[0][0], first[same])
    user = np.concatenate([part for part, _ in entries])
    resource = np.concatenate([part for _, part in entries])
    return Capacities(np.concatenate(rows, axis=1), job[user], hop[user], resource)


def _closed(shared: Capacities, period: int, n_jobs: int) -> BoolArray:
    """Mark the jobs whose route has no capacity in a period; shape (n_jobs,)."""
    closed = np.zeros(n_jobs, dtype=bool)
    closed[shared.job[shared.by_period[period][shared.resource] == 0]] = True
    return closed


def _reject_stuck(problem: Problem, jobs: Sequence[RouteJob], stuck: BoolArray) -> None:
    if stuck.any():
        names = sorted({problem.names[jobs[j].pool.host] for j in np.flatnonzero(stuck).tolist()})
        raise InfeasibleError(
            f"what lies at {', '.join(map(repr, names))} has no bandwidth left on its route "
            f"to {problem.destination!r}; add bandwidth in the last period, or another route",
            names,
        )


@dataclass(frozen=True)
class _Segment:
    """A stretch of constant rate of one job: bytes `first` to `last` of its data."""

    job: int
    start_s: float
    finish_s: float
    first: float
    last: float


def fair_transfers(
    problem: Problem,
    jobs: Sequence[RouteJob],
    chunk_s: float,
    turn: Turn,
    *,
    drain: bool = False,
) -> tuple[tuple[Route, ...], Transfers]:
    """Run the jobs and return routes and transfers.

    Pipelines drain wherever a job ends if `drain`: no two hops overlap that do not run together.

    Raises
    ------
    InfeasibleError
        A job's rate stays 0 for ever; names its host.
    """
    most_hops = max((job.n_hops for job in jobs), default=1)
    shared = capacities(problem, jobs)
    delay = (most_hops - 1) * chunk_s
    guard = delay if delay and (drain or _needs_guard(problem, jobs, shared, most_hops)) else 0.0
    segments = _run(problem, jobs, shared, guard, turn)
    return _transfers(problem, jobs, segments, chunk_s, most_hops)


def _needs_guard(
    problem: Problem, jobs: Sequence[RouteJob], shared: Capacities, most_hops: int
) -> bool:
    """Say whether pipelines must drain before rates change.

    Last hops all run together, earlier hops one chunk earlier. A resource that only last hops
    use, or only earlier ones, sees all changes at the same instant: no guard is needed.
    """
    if problem.n_periods > 1:
        return True
    n_hops = np.array([job.n_hops for job in jobs])
    lag = shared.hop + most_hops - n_hops[shared.job]
    finite = np.isfinite(shared.by_period[0][shared.resource])
    pairs = np.unique(np.stack([shared.resource[finite], lag[finite]]), axis=1)
    return bool((np.bincount(pairs[0]) > 1).any())


def _run(
    problem: Problem, jobs: Sequence[RouteJob], shared: Capacities, guard_s: float, turn: Turn
) -> list[_Segment]:
    size = np.array([job.pool.n_bytes for job in jobs], dtype=float)
    release = np.array([job.pool.release_s for job in jobs])
    changes = breakpoints_s(problem)
    shares = FairShare(shared.job, shared.resource, len(jobs), shared.by_period.shape[1])
    sent = np.zeros(len(jobs))
    open_start, open_first = np.zeros(len(jobs)), np.zeros(len(jobs))
    open_rate = np.zeros(len(jobs))
    segments: list[_Segment] = []
    now = 0.0

    def close(which: BoolArray, time_s: float) -> None:
        segments.extend(
            _Segment(j, float(open_start[j]), time_s, float(open_first[j]), float(sent[j]))
            for j in np.flatnonzero(which & (open_rate > 0)).tolist()
        )
        open_rate[which] = 0.0

    while (sent < size).any():
        following = changes[changes > now]
        next_change = float(following[0]) if len(following) else np.inf
        if guard_s and next_change - now <= guard_s:
            now = next_change  # too short a piece for a pipeline to drain
            continue
        ready = (sent < size) & (release <= now)
        active, until = turn.active(ready, now)
        period = int(np.searchsorted(problem.periods_s, now, side="right")) - 1
        rates = shares.rates(shared.by_period[period], active=active)
        moving = rates > 0
        if np.isinf(next_change):
            _reject_stuck(problem, jobs, (sent < size) & _closed(shared, period, len(jobs)))
        left = np.full(len(jobs), np.inf)
        left[moving] = (size - sent)[moving] / rates[moving]
        end = min(now + float(left.min()), next_change - guard_s, until)
        changed = np.abs(rates - open_rate) > SAME_RATE * np.maximum(rates, open_rate)
        close(changed, now)
        begins = changed & moving
        open_start[begins], open_first[begins], open_rate[begins] = now, sent[begins], rates[begins]
        sent = sent + rates * (end - now)
        # A job that shares its last instant with others ends with them, not an epsilon later. Nor
        # may rounding leave it a crumb: that takes too little time for the clock to move on.
        done = moving & ((size - sent <= NOTHING_LEFT * size) | (now + left <= end))
        sent = np.where(done, size, sent)
        close(done, end)
        now = end
        if guard_s:
            close(np.ones(len(jobs), dtype=bool), now)
            now += guard_s
    return segments


def _transfers(
    problem: Problem,
    jobs: Sequence[RouteJob],
    segments: Sequence[_Segment],
    chunk_s: float,
    most_hops: int,
) -> tuple[tuple[Route, ...], Transfers]:
    """Turn stretches of constant rate into transfers of whole bytes.

    A last hop runs `most_hops - 1` chunks after its rate's time, each hop before one chunk earlier.
    """
    by_job: list[list[_Segment]] = [[] for _ in jobs]
    for segment in segments:
        by_job[segment.job].append(segment)
    book = RouteBook(problem)
    rows = []
    for job, pieces in zip(jobs, by_job, strict=True):
        # A byte counts when all of it is sent, so the last stretch keeps at least one. The
        # allowance is for sums that should be whole.
        ends = (math.floor(piece.last * (1 + NOTHING_LEFT)) for piece in pieces[:-1])
        edges = [0, *ends, job.pool.n_bytes]
        sizes = [after - before for before, after in pairwise(edges)]
        lags = [(hop + most_hops - job.n_hops) * chunk_s for hop in range(job.n_hops)]
        sent_of_piece = [0] * len(pieces)
        for i, parcel, offset, n_bytes in cut_parcels(job.pool, sizes):
            piece = pieces[i]
            per_byte = (piece.finish_s - piece.start_s) / sizes[i]
            start = piece.start_s + sent_of_piece[i] * per_byte
            sent_of_piece[i] += n_bytes
            finish = piece.start_s + sent_of_piece[i] * per_byte
            if sent_of_piece[i] == sizes[i]:
                finish = piece.finish_s  # exactly
            route = book.number(parcel.source, job.hosts)
            rows += [
                (route, hop, offset, n_bytes, start + lag, finish + lag)
                for hop, lag in enumerate(lags)
            ]
    return book.routes(), transfers_from_rows(rows)
