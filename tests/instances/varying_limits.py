"""Problems whose hosts' limits change by time, from problems in which they do not."""

from __future__ import annotations

import random

import numpy as np

from datacollect.problem.problem import Problem

FACTORS = (0.0, 0.5, 1.0, 1.0, 2.0)


def with_varying_limits(problem: Problem) -> Problem:
    """The same, or, where there are limits and periods, now and then with limits that change.

    What is drawn depends on the problem alone. In the last period all have some capacity.
    """
    rng = random.Random(problem.sha256)
    if problem.n_periods == 1 or rng.random() < 0.4:
        return problem

    def drawn(limit: np.ndarray) -> np.ndarray:
        factors = np.array([[rng.choice(FACTORS) for _ in row] for row in limit])
        factors[-1] = np.maximum(factors[-1], 0.5)
        finite = np.isfinite(limit)
        return np.where(finite, np.where(finite, limit, 0.0) * factors, np.inf)

    return problem.replace(
        uplink_bytes_per_s=drawn(problem.uplink_bytes_per_s),
        downlink_bytes_per_s=drawn(problem.downlink_bytes_per_s),
    )
