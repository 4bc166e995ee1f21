"""Capacity: rates of links, hosts and shared bottlenecks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import ScheduleError
from datacollect.numbers.arrays import FloatArray, IntArray, ranges
from datacollect.problem.connection_rates import link_rates, wire_rates
from datacollect.problem.host_limits import is_constant
from datacollect.schedule.check.case import FASTEST, counted, first_true, seconds
from datacollect.schedule.check.flows import CapacityKind, Pieces, Uses, cut, pieces
from datacollect.schedule.check.stretches import (
    ONE_BYTE,
    Stretch,
    activities,
    most_until,
    worst_stretch,
)
from datacollect.schedule.data.tolerances import LIMIT_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from datacollect.problem.connection_rates import ConnectionRates
    from datacollect.problem.problem import Problem
    from datacollect.schedule.check.case import Case


# Instants that were rounded once or twice differ by at most this many units in the last place.
OVERLAP = 4


# Room beyond the largest double is infinite.
@np.errstate(over="ignore")
def within_capacity(case: Case) -> None:
    """Raise ScheduleError if transfers exceed a link, a host or a shared bottleneck.

    At every instant rates may be above a capacity by 1e-6 of it. Where they are by more, all above
    the capacity itself counts in bytes: in any stretch of time, at most one byte for each route
    that is in use in it may be too many, whatever the number of its transfers, and in no transfer
    by itself more than one. A byte is measured to 1e-6, too. Without any capacity, no whole byte
    may move.

    Consecutive transfers may overlap by the rounding of instants: by a few of their last digits,
    as long as that is no more than the relative tolerance of what the later one carries.

    Where rates grow with connections, a capacity is at every instant what all streams that are
    under way there get together.
    """
    problem, where = case.problem, case.legs
    link = problem.link_indices(where.tail, where.head)
    every = np.arange(len(link))
    used, chain = np.unique(link, return_inverse=True)
    grows = link_rates(problem).grows[link]
    _respect(case, _bandwidths(case, used), every[~grows], chain[~grows])
    _respect_connections(case, _link_name, link_rates(problem), every[grows], link[grows])
    shared_row, shared = _shared_use(problem, link)
    crowded = wire_rates(problem).grows[shared]
    by_wire = shared_row[crowded], shared[crowded]
    _respect_connections(case, _wire_name, wire_rates(problem), *by_wire)
    shared_row, shared = shared_row[~crowded], shared[~crowded]
    bandwidth = np.array([s.bandwidth_bytes_per_s for s in problem.shared], dtype=float)
    for what, limits, chain in (
        ("uplink of host", problem.uplink_bytes_per_s, where.tail),
        ("downlink of host", problem.downlink_bytes_per_s, where.head),
    ):
        limited = np.isfinite(limits[0, chain])
        _respect(case, _limits_of_hosts(case, what, limits), every[limited], chain[limited])
    names = [s.name for s in problem.shared]
    limit = _constant(case, "shared bottleneck", names, bandwidth)
    _respect(case, limit, shared_row, shared)


# What limits ------------------------------------------------------------------------------------


def _constant(case: Case, what: str, names: Sequence[str], bytes_per_s: FloatArray) -> CapacityKind:
    def name(chain: int, _period: int) -> str:
        return f"{what} {names[chain]!r}"

    return _limit(case, name, np.zeros(1), bytes_per_s[np.newaxis])


def _limits_of_hosts(case: Case, what: str, by_period: FloatArray) -> CapacityKind:
    names = case.problem.names
    if is_constant(by_period):
        return _constant(case, what, names, by_period[0])
    edges, limits = _forecast(case, by_period)

    def name(chain: int, period: int) -> str:
        return f"{what} {names[chain]!r}{_since(case, edges, period)}"

    return _limit(case, name, edges, limits)


def _bandwidths(case: Case, links: IntArray) -> CapacityKind:
    problem = case.problem
    edges, bandwidth = _forecast(case, problem.bandwidth_bytes_per_s[:, links])

    def name(chain: int, period: int) -> str:
        return f"{_link_name(problem, int(links[chain]))}{_since(case, edges, period)}"

    return _limit(case, name, edges, bandwidth)


def _since(case: Case, edges: FloatArray, period: int) -> str:
    return f" (forecast from {seconds(edges[period] * case.step_s)})" if len(edges) > 1 else ""


def _link_name(problem: Problem, link: int) -> str:
    tail, head = problem.link_from[link], problem.link_to[link]
    return f"link {problem.names[tail]!r} -> {problem.names[head]!r}"


def _wire_name(problem: Problem, wire: int) -> str:
    return f"shared bottleneck {problem.shared[wire].name!r}"


def _respect_connections(
    case: Case,
    name: Callable[[Problem, int], str],
    rates: ConnectionRates,
    row: IntArray,
    chain: IntArray,
) -> None:
    """Raise ScheduleError if transfers exceed what their streams get on a link or a wire."""
    start_s, finish_s = case.times
    streams = case.schedule.columns.streams
    for one in np.unique(chain).tolist():
        rows = row[chain == one]
        edges = np.unique(np.concatenate([[0.0], start_s[rows], finish_s[rows]]))
        first, last = (np.searchsorted(edges, time[rows]) for time in (start_s, finish_s))
        change = np.bincount(first, streams[rows], len(edges))
        change -= np.bincount(last, streams[rows], len(edges))
        counts = np.rint(np.cumsum(change))
        capacity = rates.at(np.full(len(edges), one)).rate(np.maximum(counts, 1))
        described = _name_with_streams(name(case.problem, one), counts)
        limit = _limit(case, described, edges, capacity[:, np.newaxis])
        _respect(case, limit, rows, np.zeros(len(rows), dtype=np.int64))


def _name_with_streams(name: str, counts: FloatArray) -> Callable[[int, int], str]:
    return lambda _, period: f"{name} with {counted(int(counts[period]), 'stream')}"


def _limit(
    case: Case, name: Callable[[int, int], str], edges: FloatArray, bytes_per_s: FloatArray
) -> CapacityKind:
    bytes_per_step = np.minimum(bytes_per_s * case.step_s, FASTEST)
    # Behind a pause with room for a byte of each route and more, no stretch profits from what was
    # before it.
    return CapacityKind(name, edges, bytes_per_step, len(case.schedule.routes) + 2.0)


def _forecast(case: Case, by_period: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return when rates change, and the rates from then on, shape (n_edges, n_chains).

    With slots, a slot that touches several periods has the lowest of their rates.
    """
    problem = case.problem
    if case.schedule.slot_s is None:
        return problem.periods_s, by_period
    low, high = case.slots_around(problem.periods_s)
    edges = np.unique(np.concatenate([low, high]))
    until = np.append(edges[1:], np.inf)
    ends = np.append(high[1:], np.inf)
    lowest = [
        by_period[np.flatnonzero((low < b) & (ends > a))].min(axis=0)
        for a, b in zip(edges, until, strict=True)
    ]
    return edges, np.array(lowest)


def _shared_use(problem: Problem, link: IntArray) -> tuple[IntArray, IntArray]:
    """Return pairs: a transfer, and a shared bottleneck that its link is part of."""
    links = np.concatenate([np.zeros(0, dtype=np.int64), *problem.shared_links])
    sizes = [len(part) for part in problem.shared_links]
    shared = np.repeat(np.arange(len(sizes)), sizes)
    order = np.argsort(links, kind="stable")
    links, shared = links[order], shared[order]
    first = np.searchsorted(links, link, side="left")
    counts = np.searchsorted(links, link, side="right") - first
    row = np.repeat(np.arange(len(link)), counts)
    return row, shared[ranges(first, counts)]


# Whether it is respected ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Users:
    """Transfers and what they use, in steps; arrays of shape (n_uses,)."""

    chain: IntArray
    route: IntArray
    start: FloatArray
    finish: FloatArray
    rate: FloatArray

    def by_chain(self, chains: IntArray) -> Iterator[tuple[int, _Users]]:
        """Yield some chains, and those that use each."""
        order = np.argsort(self.chain, kind="stable")
        sorted_chain = self.chain[order]
        first = np.searchsorted(sorted_chain, chains, side="left")
        end = np.searchsorted(sorted_chain, chains, side="right")
        for chain, low, high in zip(chains.tolist(), first.tolist(), end.tolist(), strict=True):
            at = order[low:high]
            route, start, finish = self.route[at], self.start[at], self.finish[at]
            yield chain, _Users(self.chain[at], route, start, finish, self.rate[at])

    def after_each_other(self) -> _Users:
        """Those of one chain, where consecutive ones overlap by rounding of instants only.

        A transfer that begins a few last digits before another ends begins when that ends, at its
        own rate, unless what it loses is more than the relative tolerance of its bytes.
        """
        ends = np.sort(self.finish)
        latest = self.start + OVERLAP * np.spacing(self.start)
        # Where none ends by then, this is the very last, which ends too late.
        end = ends[np.searchsorted(ends, latest, side="right") - 1]
        by = end - self.start
        within = (end <= latest) & (by <= LIMIT_TOLERANCE * (self.finish - self.start))
        follows = within & (by > 0)
        return replace(self, start=np.where(follows, end, self.start))


def _respect(case: Case, limit: CapacityKind, row: IntArray, chain: IntArray) -> None:
    """Raise ScheduleError if transfers exceed what a chain of `limit` can carry.

    Parameters
    ----------
    case : Case
    limit : CapacityKind
    row, chain : ndarray of int64, shape (n_uses,)
        A transfer, and what it uses.
    """
    if len(row) == 0:
        return
    start, finish = (times[row] for times in case.times)
    rate = case.schedule.columns.n_bytes[row] / (finish - start)
    users = _Users(chain, case.legs.route[row], start, finish, rate)
    uses = cut(limit, chain, start, finish, rate)
    _reject_use_of_nothing(case, limit, uses, row)
    time = pieces(limit, uses)
    if not (time.excess_bytes > 0).any():
        return
    n_routes = np.minimum(np.bincount(chain), len(case.schedule.routes))
    most = most_until(time.excess_bytes, time.is_first, n_routes[time.chain])
    # Where something is too much, some route is in use: no more than one byte needs no count.
    suspects = np.unique(time.chain[most > ONE_BYTE])
    for suspect, its_users in users.by_chain(suspects):
        _respect_one(case, limit.only(suspect), its_users)
    _reject_alone(case, limit, uses, row)


def _respect_one(case: Case, limit: CapacityKind, users: _Users) -> None:
    """Count the routes that are in use on one chain, the only one of `limit`."""
    users = replace(users, chain=np.zeros_like(users.chain))
    if _worst(limit, users) is None:
        return
    users = users.after_each_other()
    found = _worst(limit, users)
    if found is None:
        return
    time, worst = found
    since, until = time.start[worst.first], time.finish[worst.last]
    running = int(((users.start < until) & (users.finish > since)).sum())
    period = int(time.period[worst.first])
    fastest = time.rate[worst.first : worst.last + 1].max()
    capacity = limit.bytes_per_step[period, 0]
    raise ScheduleError(
        f"{limit.name(0, period)}: {counted(running, 'transfer')} at up to "
        f"{fastest / case.step_s:.10g} bytes/s together from {seconds(since * case.step_s)} to "
        f"{seconds(until * case.step_s)}, its capacity is {capacity / case.step_s:.10g} bytes/s: "
        f"{worst.n_bytes:.10g} bytes too many"
    )


def _worst(limit: CapacityKind, users: _Users) -> tuple[Pieces, Stretch] | None:
    """Return the stretch of one chain with the most bytes above one per route, if any is."""
    uses = cut(limit, users.chain, users.start, users.finish, users.rate)
    time = pieces(limit, uses)
    first, last = (np.searchsorted(time.start, at) for at in (users.start, users.finish))
    used = activities(users.route, first, last)
    worst = worst_stretch(time.excess_bytes, used)
    return None if worst is None else (time, worst)


def _reject_alone(case: Case, limit: CapacityKind, uses: Uses, row: IntArray) -> None:
    """A transfer by itself is above what it uses by one byte at most."""
    excess = uses.excess_bytes
    if not (excess > 0).any():
        return
    is_first = np.ones(len(uses.of), dtype=bool)
    is_first[1:] = uses.of[1:] != uses.of[:-1]
    most = most_until(excess, is_first, np.ones_like(uses.of))
    at = first_true(most > ONE_BYTE)
    if at is None:
        return
    name = limit.name(int(uses.chain[at]), int(uses.period[at]))
    raise ScheduleError(
        f"{name}: {case.describe(int(row[uses.of[at]]))}, by itself has "
        f"{uses.rate[at] / case.step_s:.10g} bytes/s, the capacity is "
        f"{uses.capacity[at] / case.step_s:.10g} bytes/s: {most[at]:.10g} bytes too many"
    )


def _reject_use_of_nothing(case: Case, limit: CapacityKind, uses: Uses, row: IntArray) -> None:
    """Without capacity, not even one byte is tolerated, unless rounding put its end there."""
    at = np.flatnonzero(uses.capacity == 0)
    if len(at) == 0:
        return
    n_bytes = np.bincount(uses.chain[at], weights=uses.n_bytes[at])
    too_many = at[n_bytes[uses.chain[at]] >= 1 - LIMIT_TOLERANCE]
    if len(too_many) == 0:
        return
    first = too_many[0]
    name = limit.name(int(uses.chain[first]), int(uses.period[first]))
    raise ScheduleError(
        f"{name}: it has no capacity, but carries {case.describe(int(row[uses.of[first]]))}, "
        f"at {uses.rate[first] / case.step_s:.10g} bytes/s"
    )
