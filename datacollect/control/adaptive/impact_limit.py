"""Limit on the impact on other traffic: how many connections others can bear, by their losses.

On a wire with m connections of others, n of ours leave them m/(n + m) of it; n₀ of ours would
leave m/(n₀ + m). The loss is at most h where n ≤ n₀ + (n₀ + m) h/(1 − h). A single connection, as
a probe, gets C/(1 + m), one of n gets C/(n + m): the ratio x of the two tells
m = (n x − 1)/(1 − x). Nothing else has to be known of the wire.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Self

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.control.connection_counts import Link, LinkRates

# So many connections more at a time, as a part of those there are: rates have to show what they
# cost before there are more.
GROWTH = 1 / 8
# Of the harm allowed this part is used: what is judged by rates that swing is exceeded at times.
PRUDENT_PART = 0.85


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


def busy_on_average(data_bytes: Iterable[float], rates: Iterable[float]) -> float:
    """Return how many direct transfers, one connection per source, are under way on average.

    Until the last one is done; those with less to do, or faster links, are done before.

    Examples
    --------
    The first takes 10 s, the second 5 s:

    >>> busy_on_average([100, 100], [10.0, 20.0])
    1.5
    """
    times_s = [n / rate for n, rate in zip(data_bytes, rates, strict=True) if n > 0 and rate > 0]
    return sum(times_s) / max(times_s) if times_s else 1.0


def most_bearable(first: float, others: float, harm: float) -> float:
    """Return the most connections that cost others no more than a part of what `first` leave them.

    Examples
    --------
    With 7 others have 45/52 of the wire, with 12 still 45/57: 0.91 of it.

    >>> round(most_bearable(7, 45, 0.1), 2)
    12.78
    """
    return first + (first + others) * harm / (1 - harm)


class ImpactLimit:
    """Bounds connections by what others lose.

    Parameters
    ----------
    harm : float
        The part of others' rate that they may lose, between 0 and 1.
    first : float
        How many connections direct transfers would have, on average over their time.
    least, connections : int
        The bounds in any case.

    Attributes
    ----------
    most : int
        Connections that there may be now.

    Raises
    ------
    ProblemError
        `harm` is not between 0 and 1.
    """

    def __init__(self, harm: float, first: float, least: int, connections: int) -> None:
        if not 0 <= harm < 1:
            raise ProblemError(f"harm must be >= 0 and < 1, got {harm}; 0.1 is a tenth")
        self._harm, self._first = harm, first
        self._least, self._limit = min(least, connections), connections
        self.most = max(self._least, min(int(first), connections))

    @classmethod
    def of_direct(
        cls, harm: float, data_bytes: Mapping[Link, int], rates: LinkRates, connections: int
    ) -> Self:
        """Return the bound by what direct transfers would cost others, as far as probes tell.

        Parameters
        ----------
        harm : float
        data_bytes : mapping of Link to int
            By the link or chain over which it goes to the destination.
        rates : LinkRates
        connections : int
        """
        probed = [rates.probed(link) for link in data_bytes]
        least = max((len(link) - 1 for link in data_bytes), default=1)
        return cls(harm, busy_on_average(data_bytes.values(), probed), least, connections)

    def too_many(self, active: Mapping[Link, int], rates: LinkRates) -> list[Link]:
        """Look at what connections get now; return the links on which to have one less each."""
        n = sum(count * (len(link) - 1) for link, count in active.items())
        ratios = [
            ratio
            for link, count in active.items()
            if count > 0 and (ratio := rates.observed_ratio(link)) is not None
        ]
        if not ratios:
            return []
        harm = PRUDENT_PART * self._harm
        bearable = most_bearable(self._first, others_connections(n, median(ratios)), harm)
        grown = self.most + max(1.0, GROWTH * self.most)
        self.most = int(max(self._least, min(bearable, grown, self._limit)))
        spare = [link for link, count in active.items() if count > 1 or (len(link) > 2 and count)]
        spare.sort(key=lambda link: rates.marginal(link) / (len(link) - 1))
        return spare[: max(0, n - self.most)]
