"""Buckets that fill with time: how often something may happen."""

from __future__ import annotations

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
        """Whether it may happen now, `n` times together; if so, it does.

        More than `most` together may happen after a pause; the next one is as much longer.
        """
        level = self.most if self.level is None else self._level_at(now_s)
        self.filled_at_s = now_s
        may = level >= min(n, self.most)
        self.level = level - n if may else level
        return may

    def give_back(self) -> None:
        """Undo the last `take` that succeeded."""
        self.level = min((self.level or 0.0) + 1.0, self.most)

    def is_full(self, now_s: float) -> bool:
        """Whether it is as if it had never been used."""
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
