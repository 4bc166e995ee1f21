"""A ring of numbers: which have come, within a window before the newest; what is missing for good.

Numbers count from 0. The newest pushes the window forward; what is missing behind it is a hole, for
ever. So packets of any order take a fixed memory, a byte for each number of the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Run(NamedTuple):
    """Numbers in a row."""

    first: int
    n: int


class Ring:
    """Ring of the numbers that have come.

    Parameters
    ----------
    size : int
        Of the window, in numbers.
    hole : callable
        Is told each run of numbers that is missing for good, in order; one hole may come in
        several runs.
    begin : int
        The first number; those before it count as decided.

    Attributes
    ----------
    base : int
        What became of all numbers below this one is decided.
    next : int
        One above the newest.
    n_come : int
        Different numbers that have come in time.
    n_twice : int
        Numbers that came though they had come before.
    n_late : int
        Numbers that came from behind the window: holes by then, or twice, which is not known any
        more.
    n_missing, n_gaps : int
        From `begin` on below `next`: numbers that have not come, and runs of these.

    Examples
    --------
    >>> holes = []
    >>> ring = Ring(4, holes.append)
    >>> ring.take(0, 2), ring.take(4, 1), ring.take(3, 1)
    ([Run(first=0, n=2)], [Run(first=4, n=1)], [Run(first=3, n=1)])
    >>> ring.n_missing, ring.n_gaps, ring.take(7, 1), holes
    (1, 1, [Run(first=7, n=1)], [Run(first=2, n=1)])
    """

    def __init__(self, size: int, hole: Callable[[Run], object], begin: int = 0) -> None:
        assert size > 0
        self._size, self._hole = size, hole
        # Of each number of the window, at its remainder by `size`: whether it has come.
        self._come = bytearray(size)
        self.begin = self.base = self.next = begin
        self.n_come = self.n_twice = self.n_late = 0
        self.n_missing = self.n_gaps = 0
        # Where the last hole ended.
        self._hole_stop = -1
        self._ended = False

    def take(self, first: int, n: int) -> list[Run]:
        """Take `n` numbers from `first` on; return the runs of them that are new."""
        if self._ended:
            self.n_late += n
            return []
        if first == self.next == self.base:
            # Nothing is missing: what nearly always happens.
            self.base = self.next = first + n
            self.n_come += n
            return [Run(first, n)]
        if first >= self.next:
            if first > self.next:
                self._skip(first - self.next)
            self._add(n)
            return [Run(first, n)]
        inside = min(n, self.next - first)
        new = [run for number in range(first, first + inside) if (run := self._fill(number))]
        if inside < n:
            new.append(Run(self.next, n - inside))
            self._add(n - inside)
        return _joined(new)

    def end(self, stop: int) -> None:
        """Decide all below `stop`: what has not come is missing. Nothing more is taken.

        Where the newest lies above, all below that.
        """
        if stop > self.next:
            self._skip(stop - self.next)
        self._decide(self.next)
        self._ended = True

    def _skip(self, n: int) -> None:
        """Let `n` numbers be missing above the newest, which has come."""
        self.n_missing += n
        self.n_gaps += 1
        self._advance(n, 0)

    def _add(self, n: int) -> None:
        self.n_come += n
        self._advance(n, 1)

    def _advance(self, n: int, come: int) -> None:
        """Move the newest on by `n` numbers, of which all have come, or none."""
        first, stop = self.next, self.next + n
        if stop - self._size > self.base:
            self._decide(min(stop - self._size, first))
        inside = max(first, stop - self._size)
        if inside > first:
            # More than the window holds at once; all before is decided.
            if not come:
                self._tell(Run(first, inside - first))
            self.base = inside
        self._set(inside, stop - inside, come)
        self.next = stop
        if come and self.base == inside:
            # Nothing is missing before it.
            self.base = stop

    def _decide(self, stop: int) -> None:
        """Move the base on to `stop`, and over what has come from there; tell what is missing."""
        while self.base < stop:
            self.base += self._length(self.base, stop, 1)
            n_missing = self._length(self.base, stop, 0)
            if n_missing:
                self._tell(Run(self.base, n_missing))
                self.base += n_missing
        self.base += self._length(self.base, self.next, 1)

    def _tell(self, hole: Run) -> None:
        self._hole_stop = hole.first + hole.n
        self._hole(hole)

    def _length(self, first: int, stop: int, come: int) -> int:
        """Return how many numbers from `first` on, below `stop`, have come, or have not."""
        at = first
        while at < stop:
            slot = at % self._size
            end = min(slot + stop - at, self._size)
            found = self._come.find(1 - come, slot, end)
            if found >= 0:
                return at + found - slot - first
            at += end - slot
        return stop - first

    def _set(self, first: int, n: int, come: int) -> None:
        slot = first % self._size
        to_end = min(n, self._size - slot)
        self._come[slot : slot + to_end] = bytes([come]) * to_end
        if n > to_end:
            self._come[: n - to_end] = bytes([come]) * (n - to_end)

    def _is_missing(self, number: int) -> bool:
        """Say whether a number from the one before the base on, below the newest, has not come."""
        if number < self.base:
            return number + 1 == self._hole_stop
        return not self._come[number % self._size]

    def _fill(self, number: int) -> Run | None:
        """Take a number below the newest; None where it is not new."""
        if number < self.base:
            # What is missing is a hole as soon as it leaves the window, and not before.
            if number >= self.next - self._size:
                self.n_twice += 1
            else:
                self.n_late += 1
            return None
        if not self._is_missing(number):
            self.n_twice += 1
            return None
        self._come[number % self._size] = 1
        self.n_come += 1
        self.n_missing -= 1
        before = number > self.begin and self._is_missing(number - 1)
        after = self._is_missing(number + 1)  # The newest has come, and lies above.
        self.n_gaps += before + after - 1
        if number == self.base:
            self.base += self._length(number, self.next, 1)
        return Run(number, 1)


def _joined(runs: list[Run]) -> list[Run]:
    """Return runs, those that follow each other as one."""
    found: list[Run] = []
    for run in runs:
        if found and found[-1].first + found[-1].n == run.first:
            found[-1] = Run(found[-1].first, found[-1].n + run.n)
        else:
            found.append(run)
    return found
