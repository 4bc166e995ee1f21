"""Buckets that fill with time: how often something may happen, how many bytes may pass."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Kept at once, for whoever may come from anywhere.
MOST_BUCKETS = 50_000


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

    def take(self, now_s: float, n: int = 1) -> bool:
        """Return whether it may happen now, `n` times together; if so, it does.

        More than `most` together may happen after a pause; the next one is as much longer.
        """
        level = self.most if self.level is None else self._level_at(now_s)
        self.filled_at_s = now_s
        may = level >= min(n, self.most)
        self.level = level - n if may else level
        return may

    def owe(self, now_s: float, n: float) -> float:
        """Take `n` together, whether they are there or not; return after how long they are.

        Who comes later waits until then, too: all get their turn in the order in which they ask.

        >>> bucket = Bucket(per_s=10.0, most=5.0)
        >>> [bucket.owe(0.0, 5), bucket.owe(0.0, 10), bucket.owe(0.0, 10), bucket.owe(3.0, 5)]
        [0.0, 1.0, 2.0, 0.0]
        """
        self.level = (self.most if self.level is None else self._level_at(now_s)) - n
        self.filled_at_s = now_s
        if self.level >= 0:
            return 0.0
        return -self.level / self.per_s if self.per_s else math.inf

    def fill(self, now_s: float, per_s: float, most: float) -> None:
        """Let it fill otherwise from now on; what is owed stays owed."""
        level = self.most if self.level is None else self._level_at(now_s)
        self.per_s, self.most, self.level, self.filled_at_s = per_s, most, min(level, most), now_s

    def give_back(self, n: float = 1.0) -> None:
        """Undo the last `take` that succeeded, or a part of what was owed."""
        self.level = min((self.level or 0.0) + n, self.most)

    def is_full(self, now_s: float) -> bool:
        """Return whether it is as if it had never been used."""
        return self.level is None or self._level_at(now_s) >= self.most

    def _level_at(self, now_s: float) -> float:
        passed_s = max(now_s - self.filled_at_s, 0.0)
        return min((self.level or 0.0) + passed_s * self.per_s, self.most)


def bucket_of(buckets: dict[str, Bucket], name: str, per_s: float, most: float) -> Bucket:
    """Return the bucket of somebody; of too many, those go that were not asked for longest.

    >>> buckets = {}
    >>> bucket_of(buckets, "a", 1.0, 2.0) is bucket_of(buckets, "a", 1.0, 2.0)
    True
    """
    found = buckets.pop(name, None)
    if found is None:
        if len(buckets) >= MOST_BUCKETS:
            del buckets[next(iter(buckets))]
        found = Bucket(per_s, most)
    buckets[name] = found
    return found
