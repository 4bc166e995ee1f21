"""Chunks that are too long to lie at relays without taking up room there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.schedule.data.tolerances import SHORT_CHUNKS

if TYPE_CHECKING:
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


def short_chunk_s(chunk_s: float, makespan_s: float) -> float:
    """Return the chunk, shortened where it would count as stored."""
    return min(chunk_s, makespan_s / SHORT_CHUNKS)


def _crowded_host(problem: Problem, schedule: Schedule) -> str | None:
    """Return a host without room for the chunks that count as stored, or None.

    Chunks of more than a hundredth of the makespan do.
    """
    chunk_s, longest_s = schedule.chunk_s, schedule.makespan_s / SHORT_CHUNKS
    if not chunk_s or chunk_s <= longest_s or np.isinf(problem.storage_bytes).all():
        return None
    for name, n_bytes in schedule.peak_storage_bytes.items():
        if n_bytes > problem.storage_bytes[problem.host_index[name]]:
            return name
    return None


def require_room_for_chunks(problem: Problem, schedule: Schedule) -> Schedule:
    """Return the schedule, unless a host has no room for chunks that count as stored.

    Raises
    ------
    InfeasibleError
        Its chunk is too long for some host's storage.
    """
    name = _crowded_host(problem, schedule)
    if name is None:
        return schedule
    stored = schedule.peak_storage_bytes[name]
    raise InfeasibleError(
        f"chunk_s = {schedule.chunk_s:.10g} is more than a hundredth of the makespan, "
        f"{schedule.makespan_s:.10g} s, so chunks count as stored data: {stored} bytes at host "
        f"{name!r}, whose storage_bytes allow "
        f"{problem.storage_bytes[problem.host_index[name]]:.15g}; use a shorter chunk, "
        f"at most {schedule.makespan_s / (SHORT_CHUNKS + 10):.3g} s, or leave it out",
        problem.sources,
    )
