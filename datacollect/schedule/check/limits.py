"""Limits: rates of links, hosts and shared bottlenecks, and room for other hosts' data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from datacollect.arrays import FloatArray, IntArray, ranges, running_totals
from datacollect.errors import ScheduleError
from datacollect.schedule.check.case import counted, first_true, seconds
from datacollect.schedule.tolerances import LIMIT_TOLERANCE, TIME_TOLERANCE
from datacollect.schedule.use import rounding_bytes, stored_over_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.problem.problem import Problem
    from datacollect.schedule.check.case import Case


# Capacity ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Use:
    """Transfers, or parts of them, and the capacity that each uses.

    Attributes
    ----------
    row : ndarray of int64
        The transfer.
    resource : ndarray of int64
        What is used: numbers from 0.
    capacity_bytes_per_s : ndarray of float
        The same for all uses of one resource.
    start_s, finish_s : ndarray of float
    """

    row: IntArray
    resource: IntArray
    capacity_bytes_per_s: FloatArray
    start_s: FloatArray
    finish_s: FloatArray


def within_capacity(case: Case) -> None:
    """Raise ScheduleError if transfers together exceed a link, host or shared bottleneck.

    One byte per transfer is tolerated: in any stretch of time in which the rates exceed the
    capacity by more than 1e-6, the excess must be at most one byte for each transfer that runs
    in it.
    """
    problem, where, (start_s, finish_s) = case.problem, case.legs, case.times_s
    link = problem.link_indices(where.tail, where.head)
    _respect_bandwidths(case, link)
    shared_row, shared = _shared_use(problem, link)
    bandwidth = np.array([s.bandwidth_bytes_per_s for s in problem.shared], dtype=float)
    every = np.arange(len(link))
    for what, names, limits, row, resource in (
        ("uplink of host", problem.names, problem.uplink_bytes_per_s, every, where.tail),
        ("downlink of host", problem.names, problem.downlink_bytes_per_s, every, where.head),
        ("shared bottleneck", [s.name for s in problem.shared], bandwidth, shared_row, shared),
    ):
        limited = np.isfinite(limits[resource])
        row, resource = row[limited], resource[limited]
        use = _Use(row, resource, limits[resource], start_s[row], finish_s[row])
        _respect(case, use, [f"{what} {name!r}" for name in names].__getitem__)


def _respect_bandwidths(case: Case, link: IntArray) -> None:
    """Cut transfers where a forecast changes; each link in each period is a resource."""
    problem, (start_s, finish_s) = case.problem, case.times_s
    used, column = np.unique(link, return_inverse=True)
    edges_s, bandwidth = _forecast(problem, case.schedule.slot_s, used)
    first = np.searchsorted(edges_s, start_s, side="right") - 1
    last = np.searchsorted(edges_s, finish_s, side="left") - 1
    pieces = last - first + 1
    row = np.repeat(np.arange(len(link)), pieces)
    piece = ranges(first, pieces)
    n_pieces = len(edges_s)
    use = _Use(
        row,
        column[row] * n_pieces + piece,
        bandwidth[piece, column[row]],
        np.maximum(start_s[row], edges_s[piece]),
        np.minimum(finish_s[row], np.append(edges_s[1:], np.inf)[piece]),
    )

    def name(resource: int) -> str:
        at, piece = used[resource // n_pieces], resource % n_pieces
        tail, head = problem.names[problem.link_from[at]], problem.names[problem.link_to[at]]
        forecast = f" (forecast from {seconds(edges_s[piece])})" if n_pieces > 1 else ""
        return f"link {tail!r} -> {head!r}{forecast}"

    _respect(case, use, name)


def _forecast(
    problem: Problem, slot_s: float | None, links: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return when bandwidths change, and the bandwidths from then on, shape (n_pieces, n_links).

    With slots, a slot that touches several periods has the lowest of their bandwidths.
    """
    bandwidth = problem.bandwidth_bytes_per_s
    if slot_s is None:
        return problem.periods_s, bandwidth[:, links]
    # A period that begins at a slot's end, but for rounding, does not touch that slot.
    begins = problem.periods_s / slot_s
    noise = TIME_TOLERANCE * np.maximum(begins, 1.0)
    low, high = np.floor(begins + noise), np.ceil(begins - noise)
    edges = np.unique(np.concatenate([low, high]))
    until = np.append(edges[1:], np.inf)
    ends = np.append(high[1:], np.inf)
    lowest = [
        bandwidth[np.flatnonzero((low < b) & (ends > a))][:, links].min(axis=0)
        for a, b in zip(edges, until, strict=True)
    ]
    return edges * slot_s, np.array(lowest)


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


def _respect(case: Case, use: _Use, name: Callable[[int], str]) -> None:
    """Raise ScheduleError if the uses of some resource exceed its capacity."""
    _reject_use_of_nothing(case, use, name)
    # Rates relative to the capacity: rounding at a fast link must not hide a slow one.
    unit = np.where(use.capacity_bytes_per_s > 0, use.capacity_bytes_per_s, 1.0)
    load = case.rate_bytes_per_s[use.row] / unit
    one, zero = np.ones(len(use.row), dtype=np.int64), np.zeros(len(use.row), dtype=np.int64)
    resource, time_s, (total, running, begun) = running_totals(
        np.tile(use.resource, 2),
        np.concatenate([use.start_s, use.finish_s]),
        np.concatenate([load, -load]),
        np.concatenate([one, -one]),
        np.concatenate([one, zero]),
    )
    order = np.argsort(use.resource, kind="stable")
    of = order[np.searchsorted(use.resource, resource, sorter=order)]
    capacity, unit = use.capacity_bytes_per_s[of], unit[of]
    over = (running > 0) & (total * unit > capacity * (1 + LIMIT_TOLERANCE))
    # Transfers that follow each other may overlap by the rounding of instants.
    length_s = np.diff(time_s, append=0.0) - 4 * np.spacing(time_s)
    excess = np.where(over, (total * unit - capacity) * np.maximum(length_s, 0.0), 0.0)
    # A stretch: neighbouring instants of one resource, all over its capacity.
    new = over.copy()
    new[1:] &= ~(over[:-1] & (resource[1:] == resource[:-1]))
    stretch = (np.cumsum(new) - 1)[over]
    started = np.diff(begun, prepend=0)
    excess_bytes = np.bincount(stretch, weights=excess[over])
    transfers = np.bincount(stretch, weights=np.where(new, running, started)[over])
    bad = np.flatnonzero(excess_bytes > transfers * (1 + LIMIT_TOLERANCE))
    if len(bad) == 0:
        return
    begins = np.flatnonzero(new)
    worst = bad[np.argmin(time_s[begins[bad]])]
    inside = np.flatnonzero(over)[stretch == worst]
    at = inside[0]
    raise ScheduleError(
        f"{name(int(resource[at]))}: {counted(transfers[worst], 'transfer')} at up to "
        f"{(total * unit)[inside].max():.10g} bytes/s together from {seconds(time_s[at])} to "
        f"{seconds(time_s[inside[-1] + 1])}, its capacity is {capacity[at]:.10g} bytes/s: "
        f"{excess_bytes[worst]:.10g} bytes too many"
    )


def _reject_use_of_nothing(case: Case, use: _Use, name: Callable[[int], str]) -> None:
    """Without capacity, not even one byte is tolerated, unless rounding put its end there."""
    whole = (use.finish_s - use.start_s) > 0.5 * np.subtract(*case.times_s[::-1])[use.row]
    at = first_true(whole & (use.capacity_bytes_per_s == 0))
    if at is not None:
        raise ScheduleError(
            f"{name(int(use.resource[at]))}: it has no capacity, but carries "
            f"{case.describe(int(use.row[at]))}, "
            f"at {case.rate_bytes_per_s[use.row[at]]:.10g} bytes/s"
        )


# Storage ----------------------------------------------------------------------------------------


def within_storage(case: Case) -> None:
    """Raise ScheduleError if a host stores more of others' data than it has room for.

    In a pipelined schedule one chunk per route in flight may be there besides: `chunk_s` times
    the rate at which the route arrives, from when data of the route begin to arrive at the host
    until all have left. In a slotted one amounts are whole at slots' boundaries, and between two
    boundaries they lie between those at the boundaries.

    Tolerated is one byte per transfer whose data lie there; none where the limit is 0 and data
    would rest, in a slotted schedule.
    """
    where, (start_s, finish_s) = case.legs, case.times_s
    limits = case.problem.storage_bytes
    if np.isinf(limits).all():
        return
    row = np.flatnonzero((where.head != where.source) & ~where.is_last)
    gone_s = np.zeros(len(start_s))
    np.maximum.at(gone_s, case.handovers.arrives, finish_s[case.handovers.leaves])
    one = np.ones(len(row), dtype=np.int64)
    present = (
        np.tile(where.head[row], 2),
        np.concatenate([start_s[row], gone_s[row]]),
        np.concatenate([one, -one]),
    )
    columns = replace(case.schedule.columns, start_s=start_s, finish_s=finish_s)
    host, time_s, stored, (transfers, chunks) = stored_over_time(
        columns, where, present, _chunks(case, row, gone_s[row])
    )
    limit = limits[host]
    allowed = limit + np.maximum(chunks, 0.0)
    slack = np.maximum(LIMIT_TOLERANCE * allowed, transfers)
    slack += rounding_bytes(columns, where)[host]
    if case.schedule.slot_s is not None:
        slack[limit == 0] = 0.5
    # What is allowed at an instant is so until the next one, when more may be stored.
    peak, peak_s = stored.copy(), time_s.copy()
    grows = np.flatnonzero((host[1:] == host[:-1]) & (stored[1:] > stored[:-1]))
    peak[grows], peak_s[grows] = stored[grows + 1], time_s[grows + 1]
    bad = np.flatnonzero(peak - allowed > slack)
    if len(bad) == 0:
        return
    at = bad[np.argmin(peak_s[bad])]
    besides = f" and {chunks[at]:.10g} bytes of chunks in flight" if chunks[at] > 0 else ""
    stored_text, excess_text = (
        counted(round(float(value), 3), "byte") for value in (peak[at], peak[at] - allowed[at])
    )
    raise ScheduleError(
        f"host {case.problem.names[host[at]]!r}: it stores {stored_text} of other hosts' data at "
        f"{seconds(peak_s[at])}, its storage_bytes allow {limit[at]:.15g}{besides}: "
        f"{excess_text} too many"
    )


def _chunks(
    case: Case, row: IntArray, gone_s: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return when one chunk more, or less, may lie at a host: host, instant, change in bytes.

    Transfers `row` that arrive on one route at one host, and whose stays there overlap, are one
    flight: it has one chunk, at the highest rate at which they arrive together.
    """
    where, chunk_s = case.legs, case.schedule.chunk_s
    if not chunk_s or len(row) == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
    order = np.lexsort((case.times_s[0][row], where.hop[row], where.route[row]))
    row, gone_s = row[order], gone_s[order]
    start_s = case.times_s[0][row]
    route, hop = where.route[row], where.hop[row]
    new_group = np.append(True, (route[1:] != route[:-1]) | (hop[1:] != hop[:-1]))
    # Ranks instead of instants: whole numbers, so that groups can be set apart exactly.
    _, rank = np.unique(np.concatenate([start_s, gone_s]), return_inverse=True)
    apart = np.cumsum(new_group) * len(rank)
    arrives, leaves = rank[: len(row)] + apart, rank[len(row) :] + apart
    new = np.append(True, arrives[1:] > np.maximum.accumulate(leaves)[:-1])
    first = np.flatnonzero(new)
    chunk = chunk_s * _highest_rates(case, row, np.cumsum(new) - 1)
    return (
        np.tile(where.head[row[first]], 2),
        np.concatenate([start_s[first], np.maximum.reduceat(gone_s, first)]),
        np.concatenate([chunk, -chunk]),
    )


def _highest_rates(case: Case, row: IntArray, flight: IntArray) -> FloatArray:
    """Return the most that each flight's transfers arrive at together; shape (n_flights,)."""
    start_s, finish_s = (times[row] for times in case.times_s)
    rate = case.rate_bytes_per_s[row]
    of, _, (together,) = running_totals(
        np.tile(flight, 2), np.concatenate([start_s, finish_s]), np.concatenate([rate, -rate])
    )
    highest = np.zeros(int(flight[-1]) + 1)
    np.maximum.at(highest, of, together)
    return np.maximum(
        highest, np.maximum.reduceat(rate, np.flatnonzero(np.diff(flight, prepend=-1)))
    )
