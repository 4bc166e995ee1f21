"""Arguments that several methods take, and their rules."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

from datacollect.errors import InfeasibleError, ProblemError, nearest_hint
from datacollect.methods.names import FINISHES

if TYPE_CHECKING:
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# Default chunk: this part of the lower bound.
CHUNKS_PER_PLAN = 1000

# A chunk in flight may lie at a relay beside what that may store, if it is at most this part of the
# makespan: a longer one is storage.
CHUNK_OR_STORAGE = 100

# Best-path: a candidate replaces the current best if it has more than this times its bandwidth.
HYSTERESIS = 1.05


def require_positive(**seconds: float | None) -> None:
    """Refuse times that are not positive and finite."""
    for name, value in seconds.items():
        if value is None:
            continue
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not 0 < value < float("inf"):
            raise ProblemError(f"{name} must be > 0 and finite, got {value}")


def require_shape(slot_s: float | None, chunk_s: float | None) -> None:
    """Refuse slots and chunks that are out of range, or both at once."""
    require_positive(slot_s=slot_s)
    if chunk_s is not None and not 0 <= chunk_s < float("inf"):
        raise ProblemError(f"chunk_s must be >= 0 and finite, got {chunk_s}")
    if slot_s is not None and chunk_s is not None:
        raise ProblemError("slot_s and chunk_s exclude each other; give one of them")


def require_finish(finish: str) -> None:
    """Refuse a way to finish that there is not."""
    if finish not in FINISHES:
        ways = " or ".join(map(repr, FINISHES))
        raise ProblemError(f"finish must be {ways}, got {finish!r}{nearest_hint(finish, FINISHES)}")


def chunk_or_default_s(chunk_s: float | None, lower_bound_s: float) -> float:
    """Return the chunk, by default a thousandth of the lower bound."""
    return lower_bound_s / CHUNKS_PER_PLAN if chunk_s is None else chunk_s


def require_room_for_chunks(problem: Problem, plan: Schedule) -> None:
    """Refuse a plan whose chunks are so long that they count as storage, and fill it."""
    chunk_s = plan.chunk_s or 0.0
    room = {
        name: limit
        for name, limit in zip(problem.names, problem.storage_bytes.tolist(), strict=True)
        if limit < float("inf") and name != problem.destination
    }
    if chunk_s * CHUNK_OR_STORAGE <= plan.makespan_s or not room:
        return
    for name, stored in plan.peak_storage_bytes.items():
        if stored > room.get(name, float("inf")):
            raise InfeasibleError(
                f"chunk_s = {chunk_s:g} is more than a hundredth of the makespan of "
                f"{plan.makespan_s:g} s, so chunks count as stored: host {name!r} would store "
                f"{stored} bytes of others' data, its storage_bytes allow {room[name]:.15g}; use a "
                "shorter chunk, 0 for cut-through",
                problem.sources,
            )
