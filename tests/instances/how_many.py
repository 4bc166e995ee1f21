"""Number of random cases of slow tests, by Hypothesis' profile in `conftest.py`."""

from __future__ import annotations

from hypothesis import settings

# What the usual profile takes of tests that say nothing.
USUAL_EXAMPLES = 100


def many(n: int) -> int:
    """Return `n`, or its part under a profile with fewer examples than usual.

    >>> many(800) <= 800
    True
    """
    return max(n * settings.default.max_examples // USUAL_EXAMPLES, 1)
