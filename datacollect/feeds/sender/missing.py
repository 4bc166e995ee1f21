"""Messages that do not come: runs of numbers, in order."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """Messages from `first` on, `n` of them, and their bytes."""

    first: int
    n: int
    n_bytes: int

    @property
    def stop(self) -> int:
        """The first one behind it."""
        return self.first + self.n

    def behind(self, number: int, message_bytes: int) -> Run:
        """Return what of it is not before a message; only the last may be shorter.

        >>> Run(3, 4, 35).behind(5, 10)
        Run(first=5, n=2, n_bytes=15)
        """
        n = max(number - self.first, 0)
        return Run(self.first + n, self.n - n, self.n_bytes - n * message_bytes)


class MissingRuns:
    """Runs of messages that are missing; those that touch are one.

    Examples
    --------
    >>> missing = MissingRuns()
    >>> for first in (5, 3, 4, 9):
    ...     missing.add(Run(first, 1, 10))
    >>> missing.at(2), missing.at(4), missing.after(6)
    (None, Run(first=3, n=3, n_bytes=30), 9)
    """

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def add(self, run: Run) -> None:
        """Add messages that none of the runs has."""
        at = len(self._runs)
        while at and self._runs[at - 1].first > run.first:
            at -= 1
        if at < len(self._runs) and self._runs[at].first == run.stop:
            other = self._runs.pop(at)
            run = Run(run.first, run.n + other.n, run.n_bytes + other.n_bytes)
        if at and self._runs[at - 1].stop == run.first:
            other = self._runs.pop(at - 1)
            at, run = at - 1, Run(other.first, other.n + run.n, other.n_bytes + run.n_bytes)
        self._runs.insert(at, run)

    def at(self, number: int) -> Run | None:
        """Return the run that a message is in."""
        at = self._place(number)
        return self._runs[at] if at < len(self._runs) and self._runs[at].first <= number else None

    def after(self, number: int) -> int | None:
        """Return the first message from this one on that is missing."""
        at = self._place(number)
        return max(self._runs[at].first, number) if at < len(self._runs) else None

    def move(self, first: int, n: int, message_bytes: int) -> None:
        """Have messages from one on numbered higher by `n`; those before it are told already."""
        self.forget(first)
        self._runs = [
            Run(run.first + n, run.n, run.n_bytes)
            for run in (each.behind(first, message_bytes) for each in self._runs)
        ]

    def forget(self, number: int) -> None:
        """Keep only those that have messages from this one on."""
        del self._runs[: self._place(number)]

    def _place(self, number: int) -> int:
        """Return the place of the first run that has messages from this one on."""
        return bisect_right(self._runs, number, key=lambda run: run.stop)
