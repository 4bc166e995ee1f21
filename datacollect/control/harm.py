"""How many connections others can bear: what they lose, judged by what a connection gets.

On a wire with m connections of others, n of ours leave them m/(n + m) of it; n₀ of ours would
leave m/(n₀ + m). The loss is at most h where n ≤ n₀ + (n₀ + m) h/(1 − h). A single connection, as
a probe, gets C/(1 + m), one of n gets C/(n + m): the ratio x of the two tells
m = (n x − 1)/(1 − x). Nothing else has to be known of the wire.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections import Counter

    from datacollect.control.connection_counts import Link, LinkRates
    from datacollect.problem.problem import Problem

# So many connections more at a time, as a part of those there are: rates have to show what they
# cost before there are more.
GROWTH = 1 / 8


def others_connections(n: float, ratio: float) -> float:
    """Return how many connections others have, from what one of n gets over what one alone got.

    Infinite where n get as much each as one alone: nobody notices them. 0 where they only share
    what one alone had.

    Examples
    --------
    >>> others_connections(4, 11 / 14)
    10.0
    """
    if ratio >= 1:
        return math.inf
    return max(0.0, round((n * ratio - 1) / (1 - ratio), 9))


def most_bearable(first: int, others: float, harm: float) -> float:
    """Return the most connections that cost others no more than a part of what `first` leave them.

    Examples
    --------
    With 7 others have 45/52 of the wire, with 12 still 45/57: 0.91 of it.

    >>> round(most_bearable(7, 45, 0.1), 2)
    12.78
    """
    return first + (first + others) * harm / (1 - harm)


class Caution:
    """Bounds connections by what others lose.

    Parameters
    ----------
    harm : float
        The part of others' rate that they may lose, between 0 and 1.
    problem : Problem
        Direct transfers would have one connection for each host with data.
    connections : int
        The bound in any case.

    Attributes
    ----------
    most : int
        Connections that there may be now.

    Raises
    ------
    ProblemError
        `harm` is not between 0 and 1.
    """

    def __init__(self, harm: float, problem: Problem, connections: int) -> None:
        if not 0 <= harm < 1:
            raise ProblemError(f"harm must be >= 0 and < 1, got {harm}; 0.1 is a tenth")
        self._harm, self._limit = harm, connections
        self._first = len({parcel.host for parcel in problem.parcels})
        self.most = min(self._first, connections)

    def too_many(self, active: Counter[Link], rates: LinkRates) -> list[Link]:
        """Look at what connections get now; return the links on which to have one less each."""
        n = sum(count * (len(link) - 1) for link, count in active.items())
        ratios = [
            ratio
            for link, count in active.items()
            if count > 0 and (ratio := rates.observed_ratio(link)) is not None
        ]
        if not ratios:
            return []
        bearable = most_bearable(self._first, others_connections(n, median(ratios)), self._harm)
        grown = self.most + max(1.0, GROWTH * self.most)
        self.most = int(max(min(self._first, self._limit), min(bearable, grown, self._limit)))
        spare = [link for link, count in active.items() if count > 1 or (len(link) > 2 and count)]
        spare.sort(key=lambda link: rates.marginal(link) / (len(link) - 1))
        return spare[: max(0, n - self.most)]
