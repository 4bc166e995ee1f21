"""The soonest of many numbers of connections, by few linear programs.

What each of them brings is bounded from below by its connections alone, and by the prices of every
program that was solved for another one. The least bound is looked at next, until none is below the
best end that was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.methods.connections.divided_rates import BestRates, best_rates
from datacollect.numbers.tolerances import SAME_INSTANT

if TYPE_CHECKING:
    from datacollect.methods.connections.whole_connections import Hops
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.solvers.budget import Budget

# How many numbers are looked at at a time: what their rates take fits into a processor's cache.
ROWS_AT_ONCE = 1000


@dataclass(frozen=True, eq=False)
class Found:
    """The best numbers, and what they bring.

    Attributes
    ----------
    n : ndarray of int, shape (n_hops,)
    best : BestRates
    programs : int
        Linear programs that were solved.
    proved : bool
        None of the others ends sooner.
    """

    n: IntArray
    best: BestRates
    programs: int
    proved: bool


def soonest(
    hops: Hops, numbers: IntArray, budget: Budget, most_programs: int, known_s: float = np.inf
) -> Found | None:
    """Return the numbers whose data have all arrived soonest; of equal ones the first.

    Parameters
    ----------
    hops : Hops
    numbers : ndarray of int, shape (n_rows, n_hops)
    budget : Budget
    most_programs : int
        After this many linear programs what is best so far counts.
    known_s : float
        Only what ends sooner is wanted.

    Returns
    -------
    Found or None
        None where nothing ends sooner than `known_s`.
    """
    if len(numbers) == 0:
        return None
    route, start_s, earliest_s, end_s = _looked_at(hops, numbers)
    first = int(end_s.argmin())
    if len(hops.limit) == 0:
        if not end_s[first] < known_s * (1 - SAME_INSTANT):
            return None
        rate = hops.brought(numbers[first]).rate_bytes_per_s
        return Found(numbers[first], BestRates(rate, float(end_s[first])), 0, True)
    best: tuple[IntArray, BestRates] | None = None
    programs, proved = 0, False
    next_row: int = first
    while programs < most_programs:
        found = best_rates(hops, numbers[next_row], budget)
        programs += 1
        if found.makespan_s < known_s * (1 - SAME_INSTANT):
            best, known_s = (numbers[next_row], found), found.makespan_s
        earliest_s[next_row] = np.inf
        if found.cut is not None:
            bound_s = found.cut.earliest_s(hops, route, start_s)
            np.maximum(earliest_s, bound_s, out=earliest_s)
        next_row = int(earliest_s.argmin())
        if earliest_s[next_row] >= known_s * (1 - SAME_INSTANT):
            proved = True
            break
    return None if best is None else Found(*best, programs, proved)


def _looked_at(
    hops: Hops, numbers: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return what routes carry, when data start to arrive, a lower and an upper bound of ends."""
    parts = []
    for begin in range(0, len(numbers), ROWS_AT_ONCE):
        now = hops.brought(numbers[begin : begin + ROWS_AT_ONCE])
        with np.errstate(divide="ignore"):
            alone_s = now.start_s + hops.size / hops.of_pools(now.route_bytes_per_s)
        ends = alone_s.max(axis=-1), now.end_s.max(axis=-1)
        parts.append((now.route_bytes_per_s, now.start_s, *ends))
    route, start_s, earliest_s, end_s = (np.concatenate(part) for part in zip(*parts, strict=True))
    return route, start_s, earliest_s, end_s
