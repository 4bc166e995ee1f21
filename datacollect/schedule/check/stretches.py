"""Stretches of time: how much more was carried than fits, and by how many routes.

A limit's uses form a chain of pieces of time in which nothing changes. Any row of pieces is a
stretch. Over each stretch, at most one byte for each route that is in use in it may be above what
fits: so routes, not transfers, may round, and neither pauses nor short transfers hide any speed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.schedule.data.tolerances import LIMIT_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray

# A byte is measured to the relative tolerance, too.
ONE_BYTE = 1 + LIMIT_TOLERANCE


@dataclass(frozen=True)
class Stretch:
    """Pieces ``first`` to ``last`` of a chain, and how many bytes are too many in them."""

    first: int
    last: int
    n_bytes: float


@dataclass(frozen=True, eq=False)
class Activity:
    """Activity of routes: from before piece ``first`` until before piece ``end``.

    Arrays of shape (n_activities,), sorted by route, then piece. Those of one route neither
    overlap nor touch.
    """

    route: IntArray
    first: IntArray
    end: IntArray


def most_until(excess_bytes: FloatArray, is_first: BoolArray, n_routes: IntArray) -> FloatArray:
    """Return the most excess of any stretch that ends with each piece.

    Kadane's algorithm (J. Bentley, Programming Pearls, 1984), for many chains at once. Right up to
    the first piece at which the most exceeds the number of routes by a millionth, and meaningless
    behind it.

    Parameters
    ----------
    excess_bytes : ndarray of float, shape (n_pieces,)
        Bytes above what fits, below 0 where more would fit; one chain after another.
    is_first : ndarray of bool, shape (n_pieces,)
        Where chains begin.
    n_routes : ndarray of int64, shape (n_pieces,)
        Number of routes of the piece's chain.

    Examples
    --------
    >>> excess_bytes = np.array([0.5, -3.0, 0.75, 0.25, -0.5])
    >>> is_first = np.array([True, False, False, False, True])
    >>> most_until(excess_bytes, is_first, np.ones(5, dtype=np.int64)).tolist()
    [0.5, -2.5, 0.75, 1.0, -0.5]
    """
    # What may be above the limit is at most a byte per route: behind a piece in which as many and
    # another would fit, no stretch profits from what was before. Lest large gaps cost precision.
    gap = n_routes + 2.0
    amount = np.maximum(excess_bytes, -gap)
    total = np.cumsum(amount - np.where(is_first, gap, 0.0))
    before = total - amount
    most: FloatArray = total - np.minimum.accumulate(before)
    return most


def activities(route: IntArray, first: IntArray, end: IntArray) -> Activity:
    """Join the pieces in which the transfers of a route run.

    Parameters
    ----------
    route, first, end : ndarray of int64, shape (n_transfers,)
    """
    order = np.lexsort((first, route))
    route, first, end = route[order], first[order], end[order]
    new = np.ones(len(route), dtype=bool)
    # Set apart by route, so that one maximum does for all.
    apart = route * (int(end.max(initial=0)) + 1)
    until = np.maximum.accumulate(end + apart)
    new[1:] = first[1:] + apart[1:] > until[:-1]
    at = np.flatnonzero(new)
    return Activity(route[at], first[at], np.maximum.reduceat(end, at) if len(at) else end)


def worst_stretch(excess_bytes: FloatArray, used: Activity) -> Stretch | None:
    """Return the stretch of one chain with the most bytes above one per route, or None.

    Parameters
    ----------
    excess_bytes : ndarray of float, shape (n_pieces,)
    used : Activity

    Examples
    --------
    >>> both = activities(np.array([7, 8]), np.array([0, 1]), np.array([3, 2]))
    >>> worst_stretch(np.array([0.75, 0.75, 0.75]), both)
    Stretch(first=0, last=2, n_bytes=2.25)
    >>> worst_stretch(np.array([0.75, 0.5, 0.75]), both) is None
    True
    """
    is_first = np.arange(len(excess_bytes)) == 0
    n_active = np.cumsum(
        np.bincount(used.first, minlength=len(is_first))
        - np.bincount(used.end, minlength=len(is_first))[: len(is_first)]
    )
    most = most_until(excess_bytes, is_first, np.full(len(is_first), len(used.route)))
    if not (most > np.maximum(n_active, 1) * ONE_BYTE).any():
        return None
    last_used = np.full(len(used.route), -1, dtype=np.int64)
    same = used.route[1:] == used.route[:-1]
    last_used[1:][same] = used.end[:-1][same]
    order = np.argsort(used.first, kind="stable")
    begins, last_used = used.first[order], last_used[order]
    for low, high in _profitable(most):
        here = slice(*np.searchsorted(begins, [low, high]))
        worst = _worst_between(
            low,
            excess_bytes[low:high].tolist(),
            n_active[low:high].tolist(),
            begins[here].tolist(),
            last_used[here].tolist(),
        )
        if worst is not None:
            return worst
    return None


def _profitable(most: FloatArray) -> Iterator[tuple[int, int]]:
    """Yield rows of pieces, half-open, in which some stretch exceeds one byte.

    They begin behind a piece with which it does not pay to begin.
    """
    edges = np.flatnonzero(np.diff((most > 0).astype(np.int8), prepend=0, append=0))
    for low, high in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if most[low:high].max() > ONE_BYTE:
            yield low, high


def _worst_between(
    low: int,
    excess_bytes: list[float],
    n_active: list[int],
    begins: list[int],
    last_used: list[int],
) -> Stretch | None:
    """Go through time with the best first piece of all stretches that end now.

    Parameters
    ----------
    low : int
        Number of the first piece.
    excess_bytes, n_active : list, one entry per piece
    begins, last_used : list, one entry per activity
        The piece with which a route comes into use, and before which it last ended, in order.
    """
    starts = _Starts(len(excess_bytes))
    most_above, worst, total, use = 0.0, None, 0.0, 0
    for at, excess in enumerate(excess_bytes):
        # A route that begins now counts in all stretches that begin after its last use.
        while use < len(begins) and begins[use] == low + at:
            starts.fall_from(max(last_used[use] - low, 0))
            use += 1
        # Before this piece, `total` was carried: it is no part of stretches that begin here.
        starts.append(-total - n_active[at] * ONE_BYTE)
        total += excess
        if total + starts.highest > most_above:
            most_above = total + starts.highest
            worst = starts.best(), at
    if worst is None:
        return None
    first, last = worst
    return Stretch(low + first, low + last, math.fsum(excess_bytes[first : last + 1]))


class _Starts:
    """Candidates for starts of stretches, with a value each; which is highest, as late ones fall.

    A start whose value is no higher than an earlier one's never will be, since what falls are all
    from some start on. So only those count that are higher than all before, and how much by. Each
    comes and goes once; who comes next is found by union-find with path halving (R. E. Tarjan and
    J. van Leeuwen, Worst-case analysis of set union algorithms, Journal of the ACM 1984).
    """

    def __init__(self, n_starts: int) -> None:
        self.highest = -math.inf
        self._n = 0
        self._above = [0.0] * n_starts  # the counting one before
        # From a start to one that is no later than the first that counts and does not lie before.
        self._next = list(range(n_starts + 1))
        self._counting: list[int] = []

    def append(self, value: float) -> None:
        """Add the next start."""
        if value > self.highest:
            self._above[self._n] = value - self.highest
            self._counting.append(self._n)
            self.highest = value
        else:
            self._next[self._n] = self._n + 1
        self._n += 1

    def fall_from(self, first: int) -> None:
        """Let all starts from `first` on fall by one byte."""
        at = self._find(first)
        if at == self._n:
            return
        self.highest -= ONE_BYTE
        self._above[at] -= ONE_BYTE
        while self._above[at] <= 0:
            above = self._above[at]
            self._next[at] = at + 1
            at = self._find(at)
            if at == self._n:
                self.highest -= above
                return
            self._above[at] += above

    def best(self) -> int:
        """Return the start whose value is highest."""
        while self._next[self._counting[-1]] != self._counting[-1]:
            self._counting.pop()
        return self._counting[-1]

    def _find(self, at: int) -> int:
        following = self._next
        while following[at] != at:
            following[at] = at = following[following[at]]
        return at
