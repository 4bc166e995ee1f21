"""Slots: the grid of store-and-forward schedules, and transfers on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.errors import ProblemError
from datacollect.flow.routes.routes import cut_at
from datacollect.methods.timing.pipeline import RouteNumbers, transfers_from_rows
from datacollect.methods.timing.tolerances import SAME_BOUNDARY, SLOT_ROUNDING
from datacollect.numbers.tolerances import SAME_INSTANT
from datacollect.schedule.data.transfers import Transfers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.flow.network.pools import Pool
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.transfers import Route


# Beyond this many slots a plan is of no use to anybody, and would fill the memory.
MOST_SLOTS = 1_000_000


class SlotPiece(NamedTuple):
    """Bytes of one job (a pool's data on one route) that cross one hop in one slot."""

    job: int
    hop: int
    slot: int
    n_bytes: int


def require_slots(n_slots: float, name: str = "slot_s") -> None:
    """Refuse a grid so fine that a plan would need too many slots; `name` is the argument's."""
    if n_slots >= MOST_SLOTS:
        raise ProblemError(
            f"{name} is too short: the plan would need {n_slots:.3g} slots, at most "
            f"{MOST_SLOTS} are allowed; use a longer slot, or a plan without slots"
        )


def slots_until(time_s: float, slot_s: float) -> int:
    """Return how many slots have begun before `time_s`: the first slot boundary at or after it."""
    return int(np.ceil(time_s / slot_s * (1 - SAME_BOUNDARY)))


def fewest_slots(end_s: float, slot_s: float) -> int:
    """Return how many slots it takes at least to end at `end_s`; one at least."""
    return max(1, slots_until(end_s * (1 - SAME_INSTANT), slot_s))


def slots_within(time_s: float, slot_s: float) -> int:
    """Return how many whole slots end by `time_s`.

    >>> slots_within(0.3, 0.1), slots_within(2.9, 1.0)
    (3, 2)
    """
    return int(np.floor(time_s / slot_s * (1 + SAME_BOUNDARY)))


def slot_bandwidth_row(problem: Problem, slot: int, slot_s: float) -> IntArray:
    """Indices of the forecast's periods that a slot touches."""
    start, end = slot * slot_s, (slot + 1) * slot_s
    first = int(np.searchsorted(problem.periods_s, start * (1 + SAME_BOUNDARY), side="right")) - 1
    last = int(np.searchsorted(problem.periods_s, end * (1 - SAME_BOUNDARY), side="left"))
    return np.arange(max(first, 0), max(last, first + 1, 1))


def slot_bandwidth_bytes_per_s(problem: Problem, slot: int, slot_s: float) -> FloatArray:
    """Bandwidth of all links in a slot: the lowest of the periods that it touches."""
    rows = slot_bandwidth_row(problem, slot, slot_s)
    return np.asarray(problem.bandwidth_bytes_per_s[rows].min(axis=0))


def slot_limits_bytes_per_s(
    problem: Problem, slot: int, slot_s: float
) -> tuple[FloatArray, FloatArray]:
    """Uplinks and downlinks of all hosts in a slot: the lowest of the periods that it touches."""
    rows = slot_bandwidth_row(problem, slot, slot_s)
    uplinks, downlinks = problem.uplink_bytes_per_s[rows], problem.downlink_bytes_per_s[rows]
    return uplinks.min(axis=0), downlinks.min(axis=0)


def whole_slot_bytes(rate_bytes_per_s: FloatArray, slot_s: float, most_bytes: int) -> IntArray:
    """Whole bytes that pass in one slot, at most `most_bytes`."""
    with np.errstate(over="ignore"):  # beyond all floats is more than `most_bytes`
        carried = np.floor(np.minimum(rate_bytes_per_s * slot_s * (1 + SLOT_ROUNDING), most_bytes))
    return carried.astype(np.int64)


def slotted_transfers(
    problem: Problem,
    jobs: Sequence[tuple[Pool, tuple[int, ...]]],
    pieces: Sequence[SlotPiece] | IntArray,
    slot_s: float,
) -> tuple[tuple[Route, ...], Transfers]:
    """Lay pieces on the grid: first in, first out on every hop; equal neighbours become one.

    Parameters
    ----------
    jobs : sequence of (Pool, hosts)
        Jobs of the same pool follow one another in its data.
    pieces : sequence of SlotPiece, or ndarray of int64, shape (n_pieces, 4)
        Per job every hop moves the same number of bytes.
    """
    table = np.asarray(pieces, dtype=np.int64).reshape(-1, 4)
    if len(table) == 0:
        return (), transfers_from_rows([])
    job, hop, slot, n_bytes = _one_per_slot(table)
    pools = list({id(pool): pool for pool, _ in jobs}.values())
    first_byte = _first_bytes(jobs, pools, job[hop == 0], n_bytes[hop == 0])
    moved = np.cumsum(n_bytes)  # of all pools together may exceed 64 bits: differences stay right
    stream = _begins(job, hop)
    begin = first_byte[job] + moved - n_bytes - (moved - n_bytes)[stream][np.cumsum(stream) - 1]
    row, parcel, offset, part = _cut_at_parcels(pools, begin, n_bytes)
    job, hop, slot = job[row], hop[row], slot[row]
    new = _begins(job, hop, parcel, part, slot - np.arange(len(slot)))
    new[1:] |= offset[1:] != offset[:-1] + part[:-1]
    runs = np.flatnonzero(new)
    count = np.diff(np.append(runs, len(new)))
    source = np.array([parcel.source for pool in pools for parcel in pool.parcels])
    route_numbers = RouteNumbers(problem)
    pairs, pair_of_run = np.unique(
        np.stack([job[runs], source[parcel[runs]]]), axis=1, return_inverse=True
    )
    route = np.array([route_numbers.number(origin, jobs[i][1]) for i, origin in pairs.T.tolist()])
    return route_numbers.routes(), Transfers.build(
        route=route[pair_of_run.ravel()],
        hop=hop[runs],
        offset_bytes=offset[runs],
        n_bytes=part[runs] * count,
        start_s=slot[runs] * slot_s,
        finish_s=(slot[runs] + count) * slot_s,
    )


def _one_per_slot(table: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Sort pieces by job, hop and slot; those of the same slot become one."""
    table = table[np.lexsort((table[:, 2], table[:, 1], table[:, 0]))]
    first = np.flatnonzero(_begins(*table[:, :3].T))
    job, hop, slot = table[first, :3].T
    return job, hop, slot, np.add.reduceat(table[:, 3], first)


def _begins(*columns: IntArray) -> BoolArray:
    """Mark rows that differ from the row before in some column."""
    new = np.ones(len(columns[0]), dtype=bool)
    new[1:] = False
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def _first_bytes(
    jobs: Sequence[tuple[Pool, tuple[int, ...]]],
    pools: Sequence[Pool],
    job: IntArray,
    n_bytes: IntArray,
) -> IntArray:
    """Return where each job's data begin, counted through the data of all pools."""
    total = np.zeros(len(jobs), dtype=np.int64)
    np.add.at(total, job, n_bytes)
    begins = np.cumsum([0, *(pool.n_bytes for pool in pools[:-1])])
    used = dict(zip(map(id, pools), begins.tolist(), strict=True))
    first = []
    for (pool, _), size in zip(jobs, total.tolist(), strict=True):
        first.append(used[id(pool)])
        used[id(pool)] += size
    return np.array(first, dtype=np.int64)


def _cut_at_parcels(
    pools: Sequence[Pool], begin: IntArray, n_bytes: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Cut rows where parcels end.

    Returns row, number of the parcel, offset within its source's backlog, and bytes, per part.
    """
    parcels = [parcel for pool in pools for parcel in pool.parcels]
    bounds = np.cumsum([0, *(parcel.n_bytes for parcel in parcels)])
    row, parcel, start, end = cut_at(bounds, begin, begin + n_bytes)
    offset = np.array([parcel.offset_bytes for parcel in parcels], dtype=np.int64)
    return row, parcel, offset[parcel] + start - bounds[parcel], end - start
