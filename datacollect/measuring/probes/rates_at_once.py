"""Rates of several tests at once, over the time in which all of them moved data.

Each test alone has its own beginning and its own end. Were each rate that of its own time, links
that share a wire would seem to carry more together than it does: who begins late has the wire to
itself when the others have ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from datacollect.measuring.probes.tcp_rates import tcp_rates

if TYPE_CHECKING:
    from collections.abc import Sequence

# Of the longest of them the tests lasted so long beside each other; else they say nothing together.
AT_ONCE = 0.8
# So long are the steps of which the median is taken.
STEP_S = 0.5


@dataclass(frozen=True)
class RatesAtOnce:
    """Rates of tests at once.

    Attributes
    ----------
    rates_bytes_per_s : tuple of float
        Of each test, from when the data flow: of all tests together.
    together_bytes_per_s : float
        What all got for half of the time at least: the median of half seconds.
    duration_s : float
        Time in which all moved data.
    """

    rates_bytes_per_s: tuple[float, ...]
    together_bytes_per_s: float
    duration_s: float


def rates_at_once(curves: Sequence[Sequence[tuple[float, int]]]) -> RatesAtOnce | None:
    """Return the rates of tests that were asked for at the same instant.

    Parameters
    ----------
    curves : sequence of sequences of (float, int)
        Of each test seconds since then, increasing, and bytes that were acknowledged by then. The
        first row is that instant; from the second one on data flow.

    Returns
    -------
    RatesAtOnce or None
        None where the tests were beside each other for less than 0.8 of the longest, or nothing has
        come.

    Examples
    --------
    Both fill a wire of 10; the second begins a second later, and has it alone at the end:

    >>> one = [(0.0, 0), (0.0, 0), (1.0, 10), (6.0, 35)]
    >>> other = [(0.0, 0), (1.0, 0), (6.0, 25), (7.0, 35)]
    >>> found = rates_at_once([one, other])
    >>> found.rates_bytes_per_s, found.together_bytes_per_s, found.duration_s
    ((5.0, 5.0), 10.0, 5.0)
    """
    if any(len(curve) < 2 for curve in curves):
        return None
    begins_s = max(curve[1][0] for curve in curves)
    ends_s = min(curve[-1][0] for curve in curves)
    longest_s = max(curve[-1][0] - curve[1][0] for curve in curves)
    duration_s = ends_s - begins_s
    if duration_s <= 0 or duration_s < AT_ONCE * longest_s:
        return None

    def done(at_s: Sequence[float]) -> list[list[float]]:
        """Return the bytes of each test by some instants."""
        return [
            np.interp(at_s, [row[0] for row in curve], [row[1] for row in curve]).tolist()
            for curve in curves
        ]

    steps = max(1, round(duration_s / STEP_S))
    at_s = [begins_s + duration_s * i / steps for i in range(steps + 1)]
    totals = [sum(of_test) for of_test in zip(*done(at_s), strict=True)]
    whole = tcp_rates(
        [(at - begins_s, int(b - totals[0])) for at, b in zip(at_s, totals, strict=True)]
    )
    if whole is None:
        return None
    from_s = begins_s + whole.flowing_from_s
    rates = tuple((last - first) / (ends_s - from_s) for first, last in done([from_s, ends_s]))
    if min(rates) <= 0:
        return None
    each_s = duration_s / steps
    together = float(np.median([(after - before) / each_s for before, after in pairwise(totals)]))
    return RatesAtOnce(rates, together, duration_s)
