"""Cost of a cycle in bytes and time, and how many of its tests a budget pays for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.measuring.plan.rounds import Cycle, plan_cycle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from datacollect.measuring.plan.rounds import Pair


@dataclass(frozen=True)
class Cost:
    """Cost of a test, or several.

    Attributes
    ----------
    n_bytes : float
        Payload that is sent, headers left out.
    seconds : float
    """

    n_bytes: float
    seconds: float

    def __add__(self, other: Cost) -> Cost:
        """Return the cost of two tests, one after the other."""
        return Cost(self.n_bytes + other.n_bytes, self.seconds + other.seconds)

    def times(self, n: float) -> Cost:
        """Return the cost of so many of them, one after the other, or of a part.

        >>> Cost(5, 2.0).times(3)
        Cost(n_bytes=15, seconds=6.0)
        """
        return Cost(n * self.n_bytes, n * self.seconds)


def cost_of_cycle(cycle: Cycle, costs: Mapping[Pair, Cost], between_s: float = 0.0) -> Cost:
    """Return what a cycle costs: all bytes, and of each round the longest test.

    Parameters
    ----------
    cycle : Cycle
    costs : mapping from pairs to Cost
    between_s : float
        What it takes to set up a round.

    Examples
    --------
    >>> cycle = plan_cycle([("a", "b"), ("c", "d")])
    >>> cost_of_cycle(cycle, {("a", "b"): Cost(5, 2.0), ("c", "d"): Cost(1, 3.0)}, between_s=1.0)
    Cost(n_bytes=6, seconds=4.0)
    """
    seconds = sum(max(costs[pair].seconds for pair in one) + between_s for one in cycle.rounds)
    return Cost(sum(costs[pair].n_bytes for one in cycle.rounds for pair in one), seconds)


def cycle_within(
    pairs: Sequence[Pair],
    costs: Mapping[Pair, Cost],
    budget: Cost,
    wires: Sequence[Set[Pair]] = (),
    *,
    between_s: float = 0.0,
    cycle: int = 0,
    seed: int = 0,
    in_pull: Set[str] = frozenset(),
    test_beside_pull: bool = False,
) -> Cycle:
    """Return the cycle of as many pairs, from the first on, as a budget pays for.

    Parameters
    ----------
    pairs : sequence of (str, str)
        The weightiest first.
    costs : mapping from pairs to Cost
    budget : Cost
        What all may cost together.
    wires, between_s, cycle, seed, in_pull, test_beside_pull
        As in `plan_cycle` and `cost_of_cycle`.

    Examples
    --------
    >>> costs = {("a", "b"): Cost(5, 2.0), ("c", "d"): Cost(5, 2.0)}
    >>> cycle_within(list(costs), costs, Cost(7, 60.0)).rounds
    ((('a', 'b'),),)
    """

    def of_first(n: int) -> Cycle:
        return plan_cycle(
            pairs[:n],
            wires,
            cycle=cycle,
            seed=seed,
            in_pull=in_pull,
            test_beside_pull=test_beside_pull,
        )

    def is_paid(n: int) -> bool:
        cost = cost_of_cycle(of_first(n), costs, between_s)
        return cost.n_bytes <= budget.n_bytes and cost.seconds <= budget.seconds

    # No cycle of fewer pairs takes much longer: bisection finds a number that is paid for, and
    # for whose next one it is not.
    paid, unpaid = 0, len(pairs) + 1
    while unpaid - paid > 1:
        middle = (paid + unpaid) // 2
        paid, unpaid = (middle, unpaid) if is_paid(middle) else (paid, middle)
    return of_first(paid)
