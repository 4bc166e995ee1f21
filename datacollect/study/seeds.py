"""Number of seeds of each setting, and how narrow intervals must become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Seeds:
    """Number of seeds of each setting; seeds are added in whole batches."""

    first: int
    batch: int
    least: int
    most: int
    chosen: tuple[int, ...] | None = None

    def numbers(self) -> list[int]:
        """Return after how many seeds precision is judged, increasing, the last `most`.

        >>> Seeds(first=1, batch=5, least=7, most=18).numbers()
        [10, 15, 18]
        """
        begin = -(-self.least // self.batch) * self.batch
        return [*(n for n in range(begin, self.most, self.batch)), self.most]

    def seeds(self, n: int) -> list[int]:
        """Return the first `n` seeds.

        >>> Seeds(1, 5, 5, 5).seeds(3), Seeds(1, 5, 5, 5, chosen=(2, 9, 4, 7, 8)).seeds(3)
        ([1, 2, 3], [2, 9, 4])
        """
        if self.chosen is not None:
            return list(self.chosen[:n])
        return list(range(self.first, self.first + n))

    def to_dict(self) -> dict[str, Any]:
        """Return what an experiment file says of them."""
        chosen = {} if self.chosen is None else {"chosen": list(self.chosen)}
        numbers = {"first": self.first, "batch": self.batch}
        return {**numbers, "least": self.least, "most": self.most, **chosen}


@dataclass(frozen=True)
class Precision:
    """Half-width over the mean, confidence, and the columns that must have it."""

    half_width: float
    confidence: float
    of: tuple[str, ...]
