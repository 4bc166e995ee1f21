"""Arguments that several methods take, and their rules."""

from __future__ import annotations

from numbers import Real

from datacollect.errors import ProblemError

# Default chunk: this part of the lower bound.
CHUNKS_PER_PLAN = 1000

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


def chunk_or_default_s(chunk_s: float | None, lower_bound_s: float) -> float:
    """Return the chunk, by default a thousandth of the lower bound."""
    return lower_bound_s / CHUNKS_PER_PLAN if chunk_s is None else chunk_s
