"""The smallest number that suffices, where all larger ones do, too: doubling, then bisection."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


class NoneSuffices(Exception):
    """Not even the largest number that may be tried suffices."""


def smallest(
    attempt: Callable[[int], Result | None], fewest: int, most: int = sys.maxsize
) -> Result:
    """Return what `attempt` returns for the smallest number that suffices.

    The answer is likely to be near `fewest`: strides double until they reach it, then bisection
    (Bentley and Yao, Information Processing Letters 5, 1976). So it takes about twice as many
    attempts as the distance has binary digits.

    Parameters
    ----------
    attempt : function of int
        What comes of a number; None if it does not suffice.
    fewest : int
        Tried first.
    most : int, optional
        No larger number is tried.

    Raises
    ------
    NoneSuffices
        `most` does not suffice.

    Examples
    --------
    >>> tried = []
    >>> def squared_if_large(number):
    ...     tried.append(number)
    ...     return number**2 if number >= 5 else None
    >>> smallest(squared_if_large, fewest=1), tried
    (25, [1, 2, 4, 8, 6, 5])
    """
    failed, number, stride = fewest - 1, fewest, 1
    while (found := attempt(number)) is None:
        if number >= most:
            raise NoneSuffices
        failed, number, stride = number, min(number + stride, most), 2 * stride
    return bisected(attempt, failed, number, found)


def bisected(
    attempt: Callable[[int], Result | None], failed: int, number: int, found: Result
) -> Result:
    """Return what `attempt` returns for the smallest number that suffices, above one that does not.

    Parameters
    ----------
    attempt : function of int
        What comes of a number; None if it does not suffice.
    failed, number : int
        One that does not suffice, and a larger one that does.
    found : object
        What comes of `number`.
    """
    while number - failed > 1:
        middle = (failed + 1 + number) // 2
        better = attempt(middle)
        if better is None:
            failed = middle
        else:
            number, found = middle, better
    return found
