"""Buckets that fill with time: how often something may happen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Bucket:
    """Something that may happen `per_s` times a second, and after a pause `most` times at once.

    Examples
    --------
    >>> bucket = Bucket(per_s=1.0, most=2.0)
    >>> [bucket.take(0.0), bucket.take(0.0), bucket.take(0.0), bucket.take(1.0)]
    [True, True, False, True]
    """

    per_s: float
    most: float
    level: float | None = None
    filled_at_s: float = 0.0

    def take(self, now_s: float) -> bool:
        """Whether it may happen now; if so, it does."""
        level = self.most if self.level is None else self._level_at(now_s)
        self.filled_at_s = now_s
        self.level = level - 1.0 if level >= 1.0 else level
        return level >= 1.0

    def give_back(self) -> None:
        """Undo the last `take` that succeeded."""
        self.level = min((self.level or 0.0) + 1.0, self.most)

    def is_full(self, now_s: float) -> bool:
        """Whether it is as if it had never been used."""
        return self.level is None or self._level_at(now_s) >= self.most

    def _level_at(self, now_s: float) -> float:
        passed_s = max(now_s - self.filled_at_s, 0.0)
        return min((self.level or 0.0) + passed_s * self.per_s, self.most)
