"""Storage: room for other hosts' data, and the chunks that may be there besides."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.errors import ScheduleError
from datacollect.numbers.arrays import running_totals
from datacollect.schedule.check.case import counted, seconds
from datacollect.schedule.data.tolerances import (
    LIMIT_TOLERANCE,
    LOST_IN_COMPARING,
    SHORT_CHUNKS,
    WRITTEN,
)

if TYPE_CHECKING:
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.schedule.check.case import Case

# Amounts are sums over all transfers: they need more digits than amounts have.
Wide: TypeAlias = npt.NDArray[np.longdouble]
ROUNDING = 64.0 * float(np.finfo(np.longdouble).eps)


def within_storage(case: Case) -> None:
    """Raise ScheduleError if a host stores more of others' data than it has room for.

    By a whole byte: part of one is no byte yet. The destination stores what it likes. In a
    pipelined schedule one chunk of each route that a host passes on may lie there besides, of the
    route's own bytes: `chunk_s` times the rate of the route there, which is the highest with which
    it came within the last `chunk_s`, or leaves within the next. Where `chunk_s` is more than a
    hundredth of the makespan, both as written in decimals, all of it counts as stored. In a slotted
    schedule amounts are whole at slots' boundaries, and between two boundaries they lie between
    those at the boundaries.
    """
    stays = _stays(case)
    if len(stays.row) == 0:
        return
    chunk = _short_chunk(case)
    host, time, stored = _over_time(_lines(stays, chunk))
    room = case.problem.storage_bytes[host]
    too_many = stored - room
    passes = np.bincount(stays.host, weights=stays.n_bytes, minlength=case.problem.n_hosts)
    # A whole byte too many; to a millionth of it, lest the rounding of instants decides.
    bad = np.flatnonzero(too_many >= 1 - LIMIT_TOLERANCE + ROUNDING * passes[host])
    if len(bad) == 0:
        return
    at = bad[np.argmin(time[bad])]
    there = _there(stays, int(host[at]), float(time[at]))
    chunks = there - float(too_many[at]) - room[at]
    besides = f" and {chunks:.10g} bytes of chunks in flight" if round(chunks, 3) > 0 else ""
    stored_text, excess_text = (
        counted(round(float(value), 3), "byte") for value in (there, too_many[at])
    )
    raise ScheduleError(
        f"host {case.problem.names[host[at]]!r}: it stores {stored_text} of other hosts' data at "
        f"{seconds(time[at] * case.step_s)}, its storage_bytes allow {room[at]:.15g}{besides}: "
        f"{excess_text} too many"
    )


def _short_chunk(case: Case) -> float | None:
    """`chunk_s`, 0 where it counts as storage; None in slots."""
    if case.schedule.slot_s is not None:
        return None
    chunk_s = case.schedule.chunk_s
    last_s = float(case.schedule.columns.finish_s[case.legs.is_last].max(initial=0.0))
    longest = Fraction(last_s) / SHORT_CHUNKS * (1 + Fraction(WRITTEN))
    return chunk_s if chunk_s is not None and Fraction(chunk_s) <= longest else 0.0


# What comes and goes ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Stays:
    """Transfers of others' data into and out of hosts that might run out of room.

    A stay is what one route does at one host. Arrays of shape (n_transfers,).

    Attributes
    ----------
    row, host, stay : ndarray of int64
    start, finish : ndarray of float
    n_bytes : ndarray of int64
    comes, lay : ndarray of bool
        Into the host, else out of it; what leaves and lay there from the start.
    is_relayed : ndarray of bool, shape (n_stays,)
        The route passes the host; else it starts there.
    host_of : ndarray of int64, shape (n_stays,)
    """

    row: IntArray
    host: IntArray
    stay: IntArray
    start: FloatArray
    finish: FloatArray
    n_bytes: IntArray
    comes: BoolArray
    lay: BoolArray
    is_relayed: BoolArray
    host_of: IntArray

    @property
    def rate(self) -> Wide:
        """Bytes per step."""
        return np.asarray(self.n_bytes / (np.asarray(self.finish, np.longdouble) - self.start))


def _stays(case: Case) -> _Stays:
    where, n_bytes, room = case.legs, case.schedule.columns.n_bytes, case.problem.storage_bytes
    arrives = (where.head != where.source) & ~where.is_last
    leaves = where.tail != where.source
    row = np.concatenate([np.flatnonzero(arrives), np.flatnonzero(leaves)])
    host = np.concatenate([where.head[arrives], where.tail[leaves]])
    comes = np.arange(len(row)) < int(arrives.sum())
    lay = ~comes & (where.hop[row] == 0)
    start, finish = case.times
    crowded = _might_run_out(
        host, np.where(comes, start[row], finish[row]), n_bytes[row], comes, lay, room
    )[host]
    row, host, comes, lay = (part[crowded] for part in (row, host, comes, lay))
    n_routes = max(len(case.schedule.routes), 1)
    key, stay = np.unique(host * n_routes + where.route[row], return_inverse=True)
    is_relayed = np.zeros(len(key), dtype=bool)
    is_relayed[stay[comes]] = True
    times, sizes = (start[row], finish[row]), n_bytes[row]
    return _Stays(row, host, stay, *times, sizes, comes, lay, is_relayed, key // n_routes)


def _might_run_out(
    host: IntArray,
    time: FloatArray,
    n_bytes: IntArray,
    comes: BoolArray,
    lay: BoolArray,
    room: FloatArray,
) -> BoolArray:
    """Say whether hosts run out of room if transfers bring all at once, and take all last.

    No more is ever there, as what leaves a host has come before: another rule sees to that.
    """
    most = np.bincount(host, weights=np.where(lay, n_bytes, 0), minlength=len(room))
    at, _, (there,) = running_totals(host, time, np.where(comes, n_bytes, -n_bytes))
    highest = np.zeros(len(room))
    np.maximum.at(highest, at, there)
    return np.asarray(most + highest > room)


def _there(stays: _Stays, host: int, at: float) -> float:
    """Bytes at a host, chunks included."""
    mine = stays.host == host
    start, finish = stays.start[mine], stays.finish[mine]
    share = np.clip((at - start) / (finish - start), 0.0, 1.0)
    sign = np.where(stays.comes[mine], 1.0, -1.0)
    moved = stays.n_bytes[mine] * (sign * share + stays.lay[mine])
    return float(moved.sum())


# How much is there ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Lines:
    """Straight lines over time: bytes of one route that count at a host; shape (n_lines,)."""

    host: IntArray
    start: FloatArray
    finish: FloatArray
    at_start: Wide
    at_finish: Wide


def _lines(stays: _Stays, chunk: float | None) -> _Lines:
    """Follow the bytes of each route at each host, without its chunk."""
    n, rate, sign = len(stays.row), stays.rate, np.where(stays.comes, 1, -1)
    one, none = np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    no_rate = np.zeros_like(rate)
    cuts = [stays.start, stays.finish, np.zeros(n)]
    if chunk:
        cuts += [cut + by for cut in cuts[:2] for by in (-chunk, chunk)]
    stay, time, (comes, goes, active, done) = running_totals(
        np.tile(stays.stay, len(cuts)),
        np.maximum(np.concatenate(cuts), 0.0),
        *(
            np.concatenate([*deltas, *[np.zeros_like(deltas[0])] * (len(cuts) - 3)])
            for deltas in (
                (np.where(stays.comes, rate, 0), np.where(stays.comes, -rate, 0), no_rate),
                (np.where(stays.comes, 0, rate), np.where(stays.comes, 0, -rate), no_rate),
                (one, -one, none),
                (none, sign * stays.n_bytes, np.where(stays.lay, stays.n_bytes, 0)),
            )
        ),
    )
    comes, goes = (np.where(active > 0, total, 0) for total in (comes, goes))
    goes_on = stay[1:] == stay[:-1]
    following = np.flatnonzero(goes_on)
    moved = np.zeros(len(time), np.longdouble)
    lasts = np.diff(np.asarray(time, np.longdouble))
    moved[1:] = np.where(goes_on, (comes - goes)[:-1] * lasts, 0)
    running = np.cumsum(moved)
    # Whole bytes where nothing moves: the rounding of past rates must not stay behind.
    idle = np.where(active == 0, np.arange(len(time)), 0)
    anchor = np.maximum(np.maximum.accumulate(idle), np.searchsorted(stay, stay))
    there = done[anchor] + (running - running[anchor])
    at_start, at_finish = there[following], there[following + 1]
    is_relayed = stays.is_relayed[stay[following]]
    begins, ends = time[following], time[following + 1]
    if chunk is not None:
        highest = _highest(stay, time, comes, goes, following, chunk)
        # A lag of one chunk, or of none, its two instants rounded.
        in_flight = (chunk + ends * (WRITTEN + LOST_IN_COMPARING)) * highest
        at_start, at_finish = (
            np.where(is_relayed, at - in_flight, at) for at in (at_start, at_finish)
        )
    host = stays.host_of[stay[following]]
    return _above_zero(_Lines(host, begins, ends, at_start, at_finish), is_relayed)


def _highest(
    stay: IntArray,
    time: FloatArray,
    comes: Wide,
    goes: Wide,
    following: IntArray,
    chunk: float,
) -> Wide:
    """Highest rate with which a route came within the last chunk, or leaves within the next.

    Between two instants, it is the same at all: look from the middle. Chunks may be shorter than
    the step from one double to the next.
    """
    wide = time.astype(np.longdouble)
    middle = np.asarray((wide[following] + wide[following + 1]) / 2, np.longdouble)
    instants, rank = np.unique(time, return_inverse=True)
    mine = stay[following] * len(instants)
    key = stay * len(instants) + rank

    def since_instant(at: Wide) -> IntArray:
        """Index of the last instant of the same stay, not after a time."""
        place = np.searchsorted(instants.astype(np.longdouble), at, side="right") - 1
        return np.asarray(np.searchsorted(key, mine + place, side="right") - 1)

    def most(rate: Wide, first: IntArray, last: IntArray) -> Wide:
        both = np.column_stack([first, last + 1]).ravel()
        padded = np.append(rate, np.longdouble(0))
        return np.asarray(np.maximum.reduceat(padded, both)[::2])

    # Every stay has time 0 among its instants: none is looked for before.
    first = since_instant(np.maximum(middle - chunk, np.longdouble(0)))
    last = since_instant(np.asarray(middle + chunk, np.longdouble))
    return np.maximum(most(comes, first, following), most(goes, following, last))


def _above_zero(lines: _Lines, is_relayed: BoolArray) -> _Lines:
    """Cut lines of relayed routes where they fall below 0: a route leaves no room to another."""
    a, b = lines.at_start, lines.at_finish
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(a == b, 0, a / (a - b))
    cross = is_relayed & ((a < 0) != (b < 0))
    middle = lines.start + np.asarray(
        np.where(cross, share, 0) * (lines.finish - lines.start), np.float64
    )
    start = np.where(cross & (a < 0), middle, lines.start)
    finish = np.where(cross & (b < 0), middle, lines.finish)
    low, high = (np.where(is_relayed, np.maximum(x, 0), x) for x in (a, b))
    keep = (low != 0) | (high != 0)
    return _Lines(lines.host[keep], start[keep], finish[keep], low[keep], high[keep])


def _over_time(lines: _Lines) -> tuple[IntArray, FloatArray, Wide]:
    """Add up lines: host, instant, bytes just before it and just after it, whichever is more."""
    lasts = np.asarray(lines.finish, np.longdouble) - lines.start
    slope = np.where(
        lasts > 0, (lines.at_finish - lines.at_start) / np.where(lasts > 0, lasts, 1), 0
    )
    at_finish = lines.at_start + slope * lasts
    one = np.ones(len(lasts), dtype=np.int64)
    host, time, (steps, slopes, running) = running_totals(
        np.tile(lines.host, 2),
        np.concatenate([lines.start, lines.finish]),
        np.concatenate([lines.at_start, -at_finish]),
        np.concatenate([slope, -slope]),
        np.concatenate([one, -one]),
    )
    same = np.zeros(len(host), dtype=bool)
    same[1:] = host[1:] == host[:-1]
    grown = np.zeros(len(host), np.longdouble)
    grown[1:] = np.where(same[1:], slopes[:-1] * np.diff(np.asarray(time, np.longdouble)), 0)
    total = np.cumsum(grown)
    total -= total[np.searchsorted(host, host)]
    after = np.where(running > 0, steps + total, 0)
    before = after.copy()
    before[1:] = np.where(same[1:], np.where(running > 0, steps + total, 0)[:-1] + grown[1:], 0)
    return host, time, np.maximum(before, after)
