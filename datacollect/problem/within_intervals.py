"""Bandwidths within their intervals: the bandwidth in the middle, nine of ten between the ends."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from datacollect.problem.bandwidth_intervals import HIGH, LOW
from datacollect.problem.other_rates import with_link_rates

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem

# Intervals hold a bandwidth with this certainty, and so many standard deviations to either side.
CERTAINTY = 0.9
WITHIN = NormalDist().inv_cdf((1 + CERTAINTY) / 2)

# One of ten normal deviates lies beyond.
NINTH = NormalDist().inv_cdf(0.9)


def ends_of_intervals(problem: Problem, links: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the ends of links' intervals, over their bandwidths; 1 where nothing is known."""
    low, high = np.ones((2, len(links)))
    rates, names = problem.bandwidth_bytes_per_s, problem.names
    intervals = problem.bandwidth_intervals or {}
    for i, link in enumerate(links.tolist()):
        pair = names[problem.link_from[link]], names[problem.link_to[link]]
        said, least, most = intervals.get(pair, {}), rates[:, link].min(), rates[:, link].max()
        if LOW in said and least > 0:
            low[i] = said[LOW] / least
        if HIGH in said and most > 0:
            high[i] = said[HIGH] / most
    return low, high


def within_intervals(problem: Problem, z: float) -> Problem:
    """Return the problem with all links as fast as a normal deviate says, within their intervals.

    Examples
    --------
    >>> import datacollect as dc
    >>> tree = dc.Problem.from_matrix(["S", "D"], [[0, 6.0], [0, 0]], [60, 0], "D").to_dict()
    >>> tree["links"][0] |= {LOW: 3.0, HIGH: 12.0}
    >>> problem = dc.Problem.from_dict(tree)
    >>> within_intervals(problem, -9.0).bandwidth_bytes_per_s.tolist()
    [[3.0]]
    """
    low, high = ends_of_intervals(problem, np.arange(problem.n_links))
    part = min(1.0, abs(z) / WITHIN)
    factors = 1.0 + part * ((high if z > 0 else low) - 1.0)
    return with_link_rates(problem, lambda rates: rates * factors)
