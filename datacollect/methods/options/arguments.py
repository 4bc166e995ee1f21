"""Arguments that several methods take, and their rules."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.clock_times import is_clock_time
from datacollect.files.with_units import DURATION, INSTANT, in_units
from datacollect.methods.options.names import FINISHES
from datacollect.problem.calendar import seconds

if TYPE_CHECKING:
    from datacollect.files.clock import Clock
    from datacollect.files.quantities import Seconds
    from datacollect.problem.problem import Problem

# Default chunk: this part of the lower bound.
CHUNKS_PER_PLAN = 1000


def shape_in_seconds(
    slot_s: Seconds | None, chunk_s: Seconds | None
) -> tuple[float | None, float | None]:
    """Return a slot and a chunk, of which one may be given, as numbers.

    >>> shape_in_seconds("1 min", None)
    (60.0, None)
    """
    return in_units(slot_s, DURATION, "slot_s"), in_units(chunk_s, INSTANT, "chunk_s")


def deadline_in_seconds(
    deadline: Seconds | None, problem: Problem, place: str = "deadline_s"
) -> float | None:
    """Return a deadline as a number: seconds, a text with units, or a clock time.

    >>> import datacollect as dc
    >>> hosts = [dc.Host("S"), dc.Host("D")]
    >>> problem = dc.Problem.from_hosts(hosts, [], "D", start="2026-11-22T20:00+01:00")
    >>> deadline_in_seconds("1 h 30 min", problem), deadline_in_seconds("21:00", problem)
    (5400.0, 3600.0)
    """
    if not isinstance(deadline, str) or not is_clock_time(deadline):
        return in_units(deadline, DURATION, place, (), problem.clock)
    return clock_deadline_s(deadline, problem.clock, place)


def clock_deadline_s(deadline: str, clock: Clock | None, place: str) -> float:
    """Return a deadline that is a clock time as seconds after the start."""
    found = seconds(deadline, clock, place)
    if found <= 0:
        raise ProblemError(f"{place} must lie after the start, got {deadline!r}")
    return found


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
        raise ProblemError("slot_s and chunk_s cannot be combined; give one of them")


def require_finish(finish: str) -> None:
    """Reject unknown values of `finish`."""
    if finish not in FINISHES:
        any_of, hint = " or ".join(map(repr, FINISHES)), nearest_hint(finish, FINISHES)
        raise ProblemError(f"finish must be {any_of}, got {finish!r}{hint}")


def require_only(name: str, **others: object) -> None:
    """Refuse what means nothing beside an option."""
    given = [other for other, value in others.items() if value is not None]
    if given:
        raise ProblemError(
            f"{name} cannot be combined with {', '.join(given)}, since it leaves no choice for "
            "them; give one"
        )


def default_chunk_s(lower_bound_s: float, n_changes: int = 0) -> float:
    """Return a thousandth of the lower bound, shared by all instants at which pipelines drain.

    These are the end, and the `n_changes` instants before it at which bandwidths change or data are
    released.

    >>> default_chunk_s(1000.0), default_chunk_s(1000.0, n_changes=9)
    (1.0, 0.1)
    """
    return lower_bound_s / CHUNKS_PER_PLAN / (n_changes + 1)
