"""Number of cases of slow tests, random or of a grid, by the profile in `conftest.py`."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, TypeVar

from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

# What the usual profile takes of tests that say nothing; and the profile of CI, of slow tests.
USUAL_EXAMPLES, FEW = 100, 15
SLOW_FEW = 8


def many(n: int, at_least: int = 1) -> int:
    """Return `n`, or its part under a profile with fewer examples than usual: in CI 8 of 100.

    >>> many(800) <= 800
    True
    >>> many(800, at_least=300) >= 300
    True
    """
    examples = settings.default.max_examples
    part = SLOW_FEW if examples <= FEW else examples
    return max(n * part // USUAL_EXAMPLES, at_least)


def some(cases: Iterable[T]) -> list[T]:
    """Return all cases of a grid, or the same few each time under a profile with fewer examples.

    >>> len(some(range(800))) == min(many(800), 800)
    True
    """
    every = list(cases)
    n = min(many(len(every)), len(every))
    return [every[i] for i in sorted(random.Random(len(every)).sample(range(len(every)), n))]
