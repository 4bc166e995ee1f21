"""Number of cases of slow tests, random or of a grid, by the profile in `conftest.py`."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, TypeVar

from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

# What the usual profile takes of tests that say nothing.
USUAL_EXAMPLES = 100


def many(n: int) -> int:
    """Return `n`, or its part under a profile with fewer examples than usual.

    >>> many(800) <= 800
    True
    """
    return max(n * settings.default.max_examples // USUAL_EXAMPLES, 1)


def some(cases: Iterable[T]) -> list[T]:
    """Return all cases of a grid, or the same few each time under a profile with fewer examples.

    >>> len(some(range(800))) == min(many(800), 800)
    True
    """
    every = list(cases)
    n = min(many(len(every)), len(every))
    return [every[i] for i in sorted(random.Random(len(every)).sample(range(len(every)), n))]
