"""What tests cost in bytes and time, and how many of them a budget pays for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, nearest_hint
from datacollect.measurement.cycle.rounds import Cycle, plan_cycle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Set

    from datacollect.measurement.cycle.rounds import Pair


@dataclass(frozen=True)
class Cost:
    """What a test, or several, take.

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

    def times(self, n: int) -> Cost:
        """Return the cost of so many of them, one after the other.

        >>> Cost(5, 2.0).times(3)
        Cost(n_bytes=15, seconds=6.0)
        """
        return Cost(n * self.n_bytes, n * self.seconds)


# Of a packet in a train of pairs, and between two pairs in seconds: no queue remembers the last.
PACKET_BYTES = 1472
PAIRS_APART_S = 0.02
CAPACITY_PAIRS = 20


def ping_cost(n: int = 10, every_s: float = 1.0) -> Cost:
    """Return the cost of `n` echo requests of 56 bytes.

    >>> ping_cost()
    Cost(n_bytes=560, seconds=10.0)
    """
    return Cost(56 * n, n * every_s)


def trace_cost(hops: int = 30, seconds: float = 30.0) -> Cost:
    """Return the most that a trace costs: two tries of 60 bytes for each hop, until its time.

    >>> trace_cost()
    Cost(n_bytes=3600, seconds=30.0)
    """
    return Cost(2 * 60 * hops, seconds)


def pairs_cost(n: int = 400) -> Cost:
    """Return the cost of 20 packet pairs for the capacity and `n` for the available bandwidth.

    >>> round(pairs_cost(400).seconds, 1)
    8.4
    """
    n_pairs = n + CAPACITY_PAIRS
    return Cost(2 * PACKET_BYTES * n_pairs, PAIRS_APART_S * n_pairs)


def tcp_cost(rate_bytes_per_s: float, seconds: float = 10.0) -> Cost:
    """Return the cost of connections that run for some time, of a rate that is expected.

    >>> tcp_cost(2.5e6)
    Cost(n_bytes=25000000.0, seconds=10.0)
    """
    return Cost(rate_bytes_per_s * seconds, seconds)


def curve_cost(rate_bytes_per_s: float, numbers: int = 3, seconds: float = 5.0) -> Cost:
    """Return the cost of 20 pairs, and of as many tests as there are numbers of connections.

    >>> curve_cost(2.5e6).n_bytes
    37558880.0
    """
    return pairs_cost(0) + tcp_cost(rate_bytes_per_s, numbers * seconds)


# From a rate that is expected of a pair, in bytes per second, to what a test of it costs.
TOOL_COSTS: Mapping[str, Callable[[float], Cost]] = {
    "ping": lambda _: ping_cost(),
    "trace": lambda _: trace_cost(),
    "pairs": lambda _: pairs_cost(),
    "tcp": tcp_cost,
    "curve": curve_cost,
}


def cost_of_tools(tools: Iterable[str], rate_bytes_per_s: float) -> Cost:
    """Return what all tools together cost one pair.

    Parameters
    ----------
    tools : iterable of str
        Keys of ``TOOL_COSTS``.
    rate_bytes_per_s : float
        What is expected of the pair: the last estimate, or the most that the agents allow.

    Raises
    ------
    ProblemError
        There is no such tool.

    Examples
    --------
    >>> cost_of_tools(["ping", "tcp"], 1e6)
    Cost(n_bytes=10000560.0, seconds=20.0)
    """
    total = Cost(0, 0)
    for tool in tools:
        if tool not in TOOL_COSTS:
            raise ProblemError(
                f"unknown tool {tool!r}; tools of a cycle are {', '.join(TOOL_COSTS)}"
                + nearest_hint(tool, TOOL_COSTS)
            )
        total += TOOL_COSTS[tool](rate_bytes_per_s)
    return total


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
