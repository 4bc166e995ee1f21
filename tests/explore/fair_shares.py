"""Max-min fair rates against progressive filling in exact fractions."""

from __future__ import annotations

import random
from fractions import Fraction

from leaves.test_fairshare import INF, filled_in_fractions, share


def case(seed: int) -> str | None:
    """Share out resources of few or many sizes among flows that cross some of them."""
    rng = random.Random(f"fair shares {seed}")
    n_resources, n_flows = rng.randint(1, 8), rng.randint(1, 12)
    spread = rng.choice([0.0, 1.0, 9.0])

    def size() -> float:
        return rng.choice([1.0, float(rng.randint(1, 4)), 10 ** rng.uniform(-spread, spread)])

    capacity = [rng.choice([INF, size(), size(), size()]) for _ in range(n_resources)]
    uses = [rng.sample(range(n_resources), rng.randint(0, n_resources)) for _ in range(n_flows)]
    weight = [rng.choice([1.0, 1.0, 2.0, 100.0]) for _ in range(n_flows)]
    limit = [rng.choice([INF, INF, size()]) for _ in range(n_flows)]
    sharing = share(capacity, uses, weight, limit)
    for found, expected in zip(sharing.rates().tolist(), filled_in_fractions(sharing), strict=True):
        if expected == INF or found == INF:
            if found != expected:
                return f"{found}, expected {expected}"
        elif abs(Fraction(found) - Fraction(expected)) > Fraction(expected) / 10**9:
            return f"{found}, expected {float(expected)}"
    return None
