"""Transfers that share what they share: max-min fair rates, from event to event.

Each job sends its host's data over one fixed route. Between events (a job ends, data are
released, a period begins, a time slot ends) all rates are constant and max-min fair over links,
host limits and shared bottlenecks: what long-lived TCP transfers roughly get (Bertsekas and
Gallager, Data Networks, 2nd ed. 1992, section 6.5.2). Dividing bytes by bandwidth would promise
too much wherever transfers meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.flow.network.layered import breakpoints_s
from datacollect.flow.routes.routes import cut_parcels, whole_bytes
from datacollect.methods.timing.hop_uses import capacity_bytes_per_s, hop_uses
from datacollect.methods.timing.instants import finish_s
from datacollect.methods.timing.pipeline import RouteNumbers, transfers_from_rows
from datacollect.methods.timing.tolerances import LEAST_ULPS, NOTHING_LEFT
from datacollect.numbers.fairshare import FairShare
from datacollect.numbers.tolerances import SAME_RATE
from datacollect.problem.listing import not_moving

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.flow.network.pools import Pool
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.hosts import Parcel
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.transfers import Route, Transfers


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
    """Resources that jobs share: links, finite host limits and shared bottlenecks.

    The last ones are of jobs whose source makes data: what it makes, once it has sent all before.

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

    def with_made(self, makes: FloatArray) -> Capacities:
        """Return the same with a resource for each job whose rate of making is finite.

        Without limit until `FairShare` is asked otherwise.
        """
        jobs = np.flatnonzero(np.isfinite(makes))
        n_before, n_periods = self.by_period.shape[1], len(self.by_period)
        return Capacities(
            np.hstack([self.by_period, np.full((n_periods, len(jobs)), np.inf)]),
            np.append(self.job, jobs),
            np.append(self.hop, np.zeros_like(jobs)),
            np.append(self.resource, n_before + np.arange(len(jobs))),
        )


@dataclass(frozen=True)
class Made:
    """Bytes that jobs' sources make while they send; arrays of shape (n_jobs,).

    Attributes
    ----------
    rate_bytes_per_s : ndarray of float
        Infinite where all is there at the release.
    at_release_bytes : ndarray of float
        What is there at the release.
    release_s : ndarray of float
    """

    rate_bytes_per_s: FloatArray
    at_release_bytes: FloatArray
    release_s: FloatArray

    @classmethod
    def of(cls, problem: Problem, jobs: Sequence[RouteJob]) -> Made:
        """Return it for some jobs, each with the data of one pool."""
        makers = set(problem.makers.tolist())
        rates, there = np.full(len(jobs), np.inf), np.zeros(len(jobs))
        for number, job in enumerate(jobs):
            if job.pool.host not in makers or not job.pool.is_own:
                continue
            assert problem.produces_bytes_per_s is not None
            assert problem.made_bytes is not None
            made = int(problem.made_bytes[job.pool.host])
            rates[number] = problem.produces_bytes_per_s[job.pool.host]
            there[number] = sum(
                min(max(made - parcel.offset_bytes, 0), parcel.n_bytes)
                for parcel in job.pool.parcels
            )
        return cls(rates, there, np.array([job.pool.release_s for job in jobs], dtype=float))

    def end_s(self, size: FloatArray) -> float:
        """Return when all is made."""
        makes = np.isfinite(self.rate_bytes_per_s)
        left = np.maximum(size - self.at_release_bytes, 0.0)[makes]
        ends = self.release_s[makes] + left / self.rate_bytes_per_s[makes]
        return float(ends.max(initial=0.0))

    def by(self, at_s: float, size: FloatArray) -> FloatArray:
        """Return how much of each job is there at an instant."""
        made = size.copy()
        makes = np.isfinite(self.rate_bytes_per_s)
        # The instant may be infinite, where floats cannot tell it.
        since_s = np.maximum(at_s - self.release_s[makes], 0.0)
        made[makes] = self.at_release_bytes[makes] + self.rate_bytes_per_s[makes] * since_s
        return np.minimum(made, size)


def capacities(problem: Problem, jobs: Sequence[RouteJob]) -> Capacities:
    """List the resources that the jobs' hops use."""
    job = np.repeat(np.arange(len(jobs)), [j.n_hops for j in jobs])
    hop = np.array([hop for j in jobs for hop in range(j.n_hops)], dtype=np.int64)
    tail = np.array([host for j in jobs for host in j.hosts[:-1]], dtype=np.int64)
    head = np.array([host for j in jobs for host in j.hosts[1:]], dtype=np.int64)
    user, number = hop_uses(problem, tail, head)
    numbers, resource = np.unique(number, return_inverse=True)
    periods = np.arange(problem.n_periods)[:, np.newaxis]
    by_period = capacity_bytes_per_s(problem, numbers, periods)
    return Capacities(by_period, job[user], hop[user], resource.ravel())


def _closed(shared: Capacities, period: int, n_jobs: int) -> BoolArray:
    """Mark the jobs whose route has no capacity in a period; shape (n_jobs,)."""
    closed = np.zeros(n_jobs, dtype=bool)
    closed[shared.job[shared.by_period[period][shared.resource] == 0]] = True
    return closed


def _reject_stuck(
    problem: Problem, jobs: Sequence[RouteJob], stuck: BoolArray, still_s: float
) -> None:
    """Raise where routes of jobs are closed for good, and nothing has moved for some time."""
    if stuck.any():
        names = sorted({problem.names[jobs[j].pool.host] for j in np.flatnonzero(stuck).tolist()})
        never = InfeasibleError(
            f"the data at {', '.join(map(repr, names))} have no bandwidth left on their route "
            f"to {problem.destination!r}; add bandwidth in the last period, or another route",
            names,
        )
        raise not_moving(problem, names, still_s, never)


@dataclass(frozen=True)
class _Segment:
    """A stretch of constant rate of one job."""

    job: int
    start_s: float
    finish_s: float
    n_bytes: float


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
    if delay and not guard and not _keep_their_rates(segments, delay):
        guard = delay
        segments = _run(problem, jobs, shared, guard, turn)
    return _transfers(problem, jobs, segments, chunk_s, most_hops, drained=guard > 0)


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


def _keep_their_rates(segments: Sequence[_Segment], delay_s: float) -> bool:
    """Say whether stretches are as long as planned, but for rounding, when they run later."""
    return all(
        segment.finish_s - segment.start_s > LEAST_ULPS * np.spacing(segment.finish_s + delay_s)
        for segment in segments
    )


def _run(
    problem: Problem, jobs: Sequence[RouteJob], shared: Capacities, guard_s: float, turn: Turn
) -> list[_Segment]:
    size = np.array([job.pool.n_bytes for job in jobs], dtype=float)
    release = np.array([job.pool.release_s for job in jobs])
    made = Made.of(problem, jobs)
    makers = np.flatnonzero(np.isfinite(made.rate_bytes_per_s))
    shared = shared.with_made(made.rate_bytes_per_s)
    changes = breakpoints_s(problem)
    shares = FairShare(shared.job, shared.resource, len(jobs), shared.by_period.shape[1])
    sent = np.zeros(len(jobs))
    # What a stretch moves is no difference of sums: these may be too large to tell it.
    open_start, moved = np.zeros(len(jobs)), np.zeros(len(jobs))
    open_rate = np.zeros(len(jobs))
    segments: list[_Segment] = []
    now, moved_s = 0.0, 0.0
    if guard_s:
        # Hops begin and end when floats can say it: a little later.
        guard_s += 4 * float(np.spacing(max(changes[-1], guard_s)))

    def close(which: BoolArray, time_s: float) -> None:
        segments.extend(
            _Segment(j, float(open_start[j]), time_s, float(moved[j]))
            for j in np.flatnonzero(which & (open_rate > 0)).tolist()
        )
        open_rate[which] = 0.0

    while (sent < size).any():
        following = changes[changes > now]
        next_change = float(following[0]) if len(following) else np.inf
        if guard_s and next_change - guard_s <= now:
            now = next_change  # too short a piece for a pipeline to drain
            continue
        ready = (sent < size) & (release <= now)
        active, until = turn.active(ready, now)
        period = int(np.searchsorted(problem.periods_s, now, side="right")) - 1
        capacity = shared.by_period[period]
        ahead = (made.by(now, size) - sent)[makers]
        # Who has sent all that is there sends what comes.
        caught_up = (ahead <= NOTHING_LEFT * size[makers]) & (made.by(now, size) < size)[makers]
        if len(makers):
            capacity = capacity.copy()
            capacity[len(capacity) - len(makers) :][caught_up] = made.rate_bytes_per_s[makers][
                caught_up
            ]
        rates = shares.rates(capacity, active=active)
        moving = rates > 0
        if np.isinf(next_change):
            closed = (sent < size) & _closed(shared, period, len(jobs))
            _reject_stuck(problem, jobs, closed, now - max(moved_s, float(release.max())))
        left = np.full(len(jobs), np.inf)
        left[moving] = (size - sent)[moving] / rates[moving]
        catches_up = np.full(len(makers), np.inf)
        gains = rates[makers] - made.rate_bytes_per_s[makers]
        gaining = ~caught_up & (gains > SAME_RATE * rates[makers])
        catches_up[gaining] = ahead[gaining] / gains[gaining]
        soonest_s = min(float(left.min()), float(catches_up.min(initial=np.inf)))
        end = min(float(finish_s(now, soonest_s)), next_change - guard_s, until)
        changed = np.abs(rates - open_rate) > SAME_RATE * np.maximum(rates, open_rate)
        close(changed, now)
        begins = changed & moving
        open_start[begins], moved[begins], open_rate[begins] = now, 0.0, rates[begins]
        moved += rates * (end - now)
        sent = np.minimum(sent + rates * (end - now), size)
        met = makers[now + catches_up <= end]
        sent[met] = made.by(end, size)[met]
        moved_s = end if moving.any() else moved_s
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
    *,
    drained: bool,
) -> tuple[tuple[Route, ...], Transfers]:
    """Turn stretches of constant rate into transfers of whole bytes.

    A last hop runs `most_hops - 1` chunks after its rate's time, each hop before one chunk earlier.
    Where pipelines drain, a stretch that runs later may end an instant later than that: as long as
    it would have lasted. Else it ends where the next begins.
    """
    by_job: list[list[_Segment]] = [[] for _ in jobs]
    for segment in segments:
        by_job[segment.job].append(segment)
    route_numbers = RouteNumbers(problem)
    rows = []
    for job, pieces in zip(jobs, by_job, strict=True):
        sizes = whole_bytes(job.pool.n_bytes, [piece.n_bytes for piece in pieces])
        lags = [(hop + most_hops - job.n_hops) * chunk_s for hop in range(job.n_hops)]
        parts: list[list[tuple[Parcel, int, int]]] = [[] for _ in pieces]
        for i, parcel, offset, n_bytes in cut_parcels(job.pool, sizes):
            parts[i].append((parcel, offset, n_bytes))
        for piece, of_piece in zip(pieces, parts, strict=True):
            times = _times_of_parts(piece, [n_bytes for _, _, n_bytes in of_piece])
            for (parcel, offset, n_bytes), (start, finish) in zip(of_piece, times, strict=True):
                route = route_numbers.number(parcel.source, job.hosts)
                rows += [
                    (route, hop, offset, n_bytes, *_later(start, finish, lag, drained))
                    for hop, lag in enumerate(lags)
                ]
    return route_numbers.routes(), transfers_from_rows(rows)


def _times_of_parts(piece: _Segment, sizes: Sequence[int]) -> list[tuple[float, float]]:
    """Return when parts of a stretch run.

    One after another, or at once where floats are too coarse.
    """
    total, length_s = sum(sizes), piece.finish_s - piece.start_s
    least_s = LEAST_ULPS * float(np.spacing(piece.finish_s))
    if len(sizes) <= 1 or any(length_s * (size / total) < least_s for size in sizes):
        return [(piece.start_s, piece.finish_s)] * len(sizes)
    edges = [piece.start_s + length_s * (sent / total) for sent in accumulate(sizes)]
    edges[-1] = piece.finish_s  # exactly
    return list(pairwise([piece.start_s, *edges]))


def _later(begin_s: float, end_s: float, lag_s: float, drained: bool) -> tuple[float, float]:
    if lag_s == 0 or not drained:
        return begin_s + lag_s, end_s + lag_s
    return begin_s + lag_s, float(finish_s(begin_s + lag_s, end_s - begin_s))
