"""Slots: the grid of store-and-forward schedules, and transfers on it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError
from datacollect.pipeline import RouteBook, transfers_from_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from datacollect.pools import Pool
    from datacollect.problem import Problem
    from datacollect.schedule import Route, Transfers

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]

# Beyond this many slots a plan is of no use to anybody, and would fill the memory.
MOST_SLOTS = 1_000_000

# What a slot carries is rounded down to whole bytes, after this relative allowance for rounding.
SLOT_ROUNDING = 1e-9


@dataclass(frozen=True)
class Piece:
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
    return int(np.ceil(time_s / slot_s * (1 - 1e-12)))


def slot_bandwidth_row(problem: Problem, slot: int, slot_s: float) -> IntArray:
    """Indices of the forecast's periods that a slot touches."""
    start, end = slot * slot_s, (slot + 1) * slot_s
    first = int(np.searchsorted(problem.periods_s, start * (1 + 1e-12), side="right")) - 1
    last = int(np.searchsorted(problem.periods_s, end * (1 - 1e-12), side="left"))
    return np.arange(max(first, 0), max(last, first + 1, 1))


def slot_bandwidth_bytes_per_s(problem: Problem, slot: int, slot_s: float) -> FloatArray:
    """Bandwidth of all links in a slot: the lowest of the periods that it touches."""
    rows = slot_bandwidth_row(problem, slot, slot_s)
    return np.asarray(problem.bandwidth_bytes_per_s[rows].min(axis=0))


def whole_slot_bytes(rate_bytes_per_s: FloatArray, slot_s: float, most_bytes: int) -> IntArray:
    """Whole bytes that pass in one slot, at most `most_bytes`."""
    carried = np.floor(np.minimum(rate_bytes_per_s * slot_s * (1 + SLOT_ROUNDING), most_bytes))
    return carried.astype(np.int64)


def slotted_transfers(
    problem: Problem,
    jobs: Sequence[tuple[Pool, tuple[int, ...]]],
    pieces: Iterable[Piece],
    slot_s: float,
) -> tuple[tuple[Route, ...], Transfers]:
    """Lay pieces on the grid: first in, first out on every hop; equal neighbours become one.

    Parameters
    ----------
    jobs : sequence of (Pool, hosts)
        Jobs of the same pool follow one another in its data.
    pieces : iterable of Piece
        Per job every hop moves the same number of bytes.
    """
    moved: defaultdict[tuple[int, int], defaultdict[int, int]] = defaultdict(
        lambda: defaultdict(int)
    )
    for piece in pieces:
        moved[piece.job, piece.hop][piece.slot] += piece.n_bytes
    book = RouteBook(problem)
    rows: list[tuple[int, int, int, int, float, float]] = []
    first_byte = _first_bytes(jobs, moved)
    for job, (pool, hosts) in enumerate(jobs):
        for hop in range(len(hosts) - 1):
            slots = sorted(moved[job, hop].items())
            for source, offset, n_bytes, slot, count in _runs(pool, first_byte[job], slots):
                route = book.number(source, hosts)
                start, finish = slot * slot_s, (slot + count) * slot_s
                rows.append((route, hop, offset, n_bytes * count, start, finish))
    return book.routes(), transfers_from_rows(rows)


def _first_bytes(
    jobs: Sequence[tuple[Pool, tuple[int, ...]]],
    moved: dict[tuple[int, int], defaultdict[int, int]],
) -> list[int]:
    """Where each job's data begin within its pool's."""
    used: defaultdict[int, int] = defaultdict(int)
    first = []
    for job, (pool, _) in enumerate(jobs):
        first.append(used[id(pool)])
        used[id(pool)] += sum(moved[job, 0].values())
    return first


def _runs(
    pool: Pool, first_byte: int, slots: Sequence[tuple[int, int]]
) -> Iterable[tuple[int, int, int, int, int]]:
    """Yield (source, offset_bytes, bytes per slot, first slot, number of slots)."""
    run: tuple[int, int, int, int, int] | None = None
    for slot, source, offset, n_bytes in _in_parcels(pool, first_byte, slots):
        if run is not None:
            same = (run[0], run[2], run[3] + run[4]) == (source, n_bytes, slot)
            if same and run[1] + run[2] * run[4] == offset:
                run = (*run[:4], run[4] + 1)
                continue
            yield run
        run = (source, offset, n_bytes, slot, 1)
    if run is not None:
        yield run


def _in_parcels(
    pool: Pool, first_byte: int, slots: Sequence[tuple[int, int]]
) -> Iterable[tuple[int, int, int, int]]:
    """Yield (slot, source, offset_bytes, bytes) for a stream laid over the pool's parcels."""
    parcels = iter(pool.parcels)
    parcel = next(parcels)
    begin = 0  # of the parcel, within the pool's data
    position = first_byte
    for slot, n_bytes in slots:
        end = position + n_bytes
        while position < end:
            while position >= begin + parcel.n_bytes:
                begin += parcel.n_bytes
                parcel = next(parcels)
            part = min(end, begin + parcel.n_bytes) - position
            yield slot, parcel.source, parcel.offset_bytes + position - begin, part
            position += part
