"""Judges whether two links share a wire: what they get together, against what each gets alone."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence

# With four connections on each link, m of others: what a shared wire gives both is (4 + m) / (8 +
# m) of the sum of what it gives each, half without others and 0.71 beside six; wires apart give
# all of it. Measured beside six, shared wires gave 0.71 to 0.75, others 0.90 to 1.08.
CONNECTIONS = 4
SHARED_BELOW = 0.825


@dataclass(frozen=True)
class SharedWire:
    """Finding of tests of two links together.

    Attributes
    ----------
    is_shared : bool
        By the median of the tests.
    held : int
        In so many of the tests.
    n_tests : int
    bandwidth_bytes_per_s : float
        What both got together, the median: what a shared wire of a problem has.
    """

    is_shared: bool
    held: int
    n_tests: int
    bandwidth_bytes_per_s: float


def decide_shared(
    alone_bytes_per_s: Sequence[tuple[float, float]],
    together_bytes_per_s: Sequence[tuple[float, float]],
) -> SharedWire:
    """Decide whether two links share a wire, from tests with four connections on each.

    Parameters
    ----------
    alone_bytes_per_s : sequence of (float, float)
        Of each test what the first and the second link got, one after the other.
    together_bytes_per_s : sequence of (float, float)
        What they got at the same time, in the same order.

    Raises
    ------
    ProblemError
        There are no tests, or not as many of both kinds, or one got nothing.

    Examples
    --------
    >>> decide_shared([(5.0, 5.0)] * 3, [(2.5, 2.4), (2.7, 2.5), (4.8, 4.6)]).held
    2
    """
    n = len(alone_bytes_per_s)
    if n == 0 or n != len(together_bytes_per_s):
        raise ProblemError(
            f"as many tests together as alone are needed, at least one, got "
            f"{len(together_bytes_per_s)} and {n}"
        )
    if any(not rate > 0 for pair in alone_bytes_per_s for rate in pair):
        raise ProblemError(
            "each of the two links must get some bandwidth alone, got "
            f"{list(alone_bytes_per_s)!r}; test again"
        )
    sums = [sum(pair) for pair in together_bytes_per_s]
    parts = [together / sum(alone) for together, alone in zip(sums, alone_bytes_per_s, strict=True)]
    held = sum(part < SHARED_BELOW for part in parts)
    return SharedWire(median(parts) < SHARED_BELOW, held, n, float(median(sums)))
