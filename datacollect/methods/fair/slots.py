"""Fixed routes run by store and forward, slot by slot, sharing max-min fairly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.flow.network.layered import breakpoints_s
from datacollect.methods.fair.transfers import Made, capacities
from datacollect.methods.timing.slots import (
    SlotPiece,
    require_slots,
    slot_bandwidth_row,
    slotted_transfers,
)
from datacollect.methods.timing.tolerances import SAME_BOUNDARY, SLOT_ROUNDING
from datacollect.numbers.fairshare import max_min_fair_rates
from datacollect.problem.listing import no_whole_slot, not_moving

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.methods.fair.transfers import Capacities, RouteJob
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.transfers import Route, Transfers


@dataclass(eq=False)
class _Waiting:
    """Bytes that wait before each hop; a row per (job, hop)."""

    job: IntArray
    hop: IntArray
    n_bytes: IntArray


def fair_slots(
    problem: Problem, jobs: Sequence[RouteJob], slot_s: float
) -> tuple[tuple[Route, ...], Transfers]:
    """Run the jobs in slots; a byte crosses at most one hop per slot.

    Raises
    ------
    InfeasibleError
        Nothing moves any more although data are left.
    """
    shared = capacities(problem, jobs)
    waiting = _Waiting(
        np.repeat(np.arange(len(jobs)), [job.n_hops for job in jobs]),
        np.array([hop for job in jobs for hop in range(job.n_hops)], dtype=np.int64),
        np.array(
            [job.pool.n_bytes if hop == 0 else 0 for job in jobs for hop in range(job.n_hops)],
            dtype=np.int64,
        ),
    )
    row_of = {(j, h): i for i, (j, h) in enumerate(zip(waiting.job, waiting.hop, strict=True))}
    entry_row = np.array(
        [row_of[j, h] for j, h in zip(shared.job, shared.hop, strict=True)], dtype=np.int64
    )
    release = np.array([jobs[j].pool.release_s for j in waiting.job])
    release[waiting.hop > 0] = 0.0
    made, size = Made.of(problem, jobs), np.array([job.pool.n_bytes for job in jobs], dtype=float)
    first = waiting.hop == 0
    stores = _Stores(problem, jobs, waiting)
    last_change = float(breakpoints_s(problem)[-1]) if jobs else 0.0
    pieces: list[SlotPiece] = []
    slot, moved_s = 0, max((job.pool.release_s for job in jobs), default=0.0)
    while waiting.n_bytes.any():
        require_slots(slot)
        start = slot * slot_s
        # A hair before its release counts as released: both are multiples of the slot.
        ready = np.where(release <= start * (1 + SAME_BOUNDARY), waiting.n_bytes, 0)
        # What is yet to be made does not wait.
        there = np.floor(made.by(start, size) * (1 + SLOT_ROUNDING))
        to_come = np.maximum(size - there, 0.0).astype(np.int64)[waiting.job[first]]
        ready[first] = np.maximum(ready[first] - to_come, 0)
        period = slot_bandwidth_row(problem, slot, slot_s)
        room = stores.room_bytes(waiting)
        capacity = np.concatenate([shared.by_period[period].min(axis=0), room / slot_s])
        moved = stores.fitting(_move(shared, entry_row, stores, capacity, ready, slot_s), room)
        if not moved.any() and start > max(last_change, made.end_s(size)):
            stuck = sorted({problem.names[jobs[j].pool.host] for j in _unfinished(waiting)})
            never = no_whole_slot(problem, slot_s) or InfeasibleError(
                f"best-path: the data at {', '.join(map(repr, stuck))} move less than a byte "
                f"per slot of {slot_s:g} s; use longer slots or more storage",
                stuck,
            )
            raise not_moving(problem, stuck, start - moved_s, never)
        pieces += [
            SlotPiece(int(waiting.job[i]), int(waiting.hop[i]), slot, int(moved[i]))
            for i in np.flatnonzero(moved).tolist()
        ]
        moved_s = start + slot_s if moved.any() else moved_s
        waiting.n_bytes = waiting.n_bytes - moved
        onward = np.flatnonzero(moved)
        onward = onward[(onward + 1 < len(moved))]
        onward = onward[waiting.job[onward + 1] == waiting.job[onward]]
        waiting.n_bytes[onward + 1] += moved[onward]
        slot += 1
    return slotted_transfers(problem, [(job.pool, job.hosts) for job in jobs], pieces, slot_s)


def _unfinished(waiting: _Waiting) -> list[int]:
    return sorted({int(job) for job in waiting.job[waiting.n_bytes > 0]})


def _move(
    shared: Capacities,
    entry_row: IntArray,
    stores: _Stores,
    capacity: FloatArray,
    ready: IntArray,
    slot_s: float,
) -> IntArray:
    """Whole bytes that each (job, hop) moves in one slot."""
    rows = np.concatenate([entry_row, stores.row])
    resources = np.concatenate([shared.resource, len(capacity) - stores.count + stores.store])
    active = np.flatnonzero(ready)
    number = np.full(len(ready), -1)
    number[active] = np.arange(len(active))
    used = number[rows] >= 0
    rates = max_min_fair_rates(
        capacity,
        number[rows[used]],
        resources[used],
        len(active),
        rate_limit=ready[active] / slot_s,
    )
    moved = np.zeros(len(ready), dtype=np.int64)
    # A rate times a slot that should be whole may fall a hair short.
    moved[active] = np.minimum(np.floor(rates * slot_s * (1 + SLOT_ROUNDING)), ready[active])
    return moved


class _Stores:
    """Relays with limited storage: what arrives in a slot must fit beside what is there."""

    def __init__(self, problem: Problem, jobs: Sequence[RouteJob], waiting: _Waiting) -> None:
        self.limit = problem.storage_bytes
        arrives = [
            (i, jobs[j].hosts[h + 1])
            for i, (j, h) in enumerate(zip(waiting.job.tolist(), waiting.hop.tolist(), strict=True))
            if h + 1 < jobs[j].n_hops and np.isfinite(self.limit[jobs[j].hosts[h + 1]])
        ]
        self.hosts = sorted({host for _, host in arrives})
        self.count = len(self.hosts)
        place = {host: i for i, host in enumerate(self.hosts)}
        self.row = np.array([i for i, _ in arrives], dtype=np.int64)
        self.store = np.array([place[host] for _, host in arrives], dtype=np.int64)
        self.at = [
            np.array(
                [
                    i
                    for i, (j, h) in enumerate(zip(waiting.job, waiting.hop, strict=True))
                    if jobs[j].hosts[h] == host
                    # What lies at one host may be of several; with others' data all of it counts.
                    and any(parcel.source != host for parcel in jobs[j].pool.parcels)
                ],
                dtype=np.int64,
            )
            for host in self.hosts
        ]

    def room_bytes(self, waiting: _Waiting) -> FloatArray:
        """Room at each limited relay, were nothing to leave it in this slot."""
        stored = [float(waiting.n_bytes[rows].sum()) for rows in self.at]
        return np.asarray(np.maximum(self.limit[self.hosts] - np.array(stored), 0.0))

    def fitting(self, moved: IntArray, room_bytes: FloatArray) -> IntArray:
        """Take back what rounding moved beyond the room of a relay: it has no tolerance."""
        for store, room in enumerate(room_bytes.tolist()):
            rows = self.row[self.store == store]
            room = int(room)
            for row in rows.tolist():
                moved[row] = min(int(moved[row]), room)
                room -= int(moved[row])
        return moved
