"""Preferences among plans that end equally soon: costs on links, in storage, at arrival.

A byte's path is judged by a list of wishes in strict order: one unit of an earlier wish outweighs
all later wishes on a path together (of up to `LONGEST_PATH` links). A plan minimises the sum over
all bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError, nearest_hint
from datacollect.flow.network.tolerances import SAME_COST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.files.choices import Preference
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem


# Wishes in their order. "hops": bytes times links, so fewest hops means fewest relay bytes;
# "storage": others' bytes times how long relays keep them; "arrival": bytes times when they
# arrive; "money": price of the links.
PREFERENCES: dict[Preference, tuple[str, ...]] = {
    "relay-bytes": ("hops", "storage", "arrival"),
    "storage": ("storage", "hops", "arrival"),
    "earliest-arrival": ("arrival", "hops", "storage"),
    "money": ("money", "arrival", "hops", "storage"),
}
DEFAULT: Final = "relay-bytes"

# Weights are strict for paths of up to this many links; longer ones are rare, and weights costly.
LONGEST_PATH = 15

# Prices and durations become whole steps of the largest. The first wish decides: a millionth at
# least, or later wishes are left out, and up to 10^9 where that fits. Later ones break ties.
STEPS = 1_000_000
MOST_STEPS = 1_000_000_000
LATER_STEPS = 1_000

# Solvers in 64 bits bear costs up to about 2**62 over the square of the number of nodes.
COST_RANGE = 2**62


@dataclass(frozen=True, eq=False)
class Costs:
    """Whole costs per byte, for the pieces of time (or slots) of one network.

    Attributes
    ----------
    link : ndarray of int64, shape (n_links,)
        For crossing a link.
    stored : ndarray of int64, shape (n_pieces,)
        For others' data kept at a relay from piece k to the next.
    arrival : ndarray of int64, shape (n_pieces,)
        For arriving at the destination in piece k.
    first_weight : int
        What one unit of the first wish costs, more than all later wishes on a path together.
    """

    link: IntArray
    stored: IntArray
    arrival: IntArray
    first_weight: int = 1


class Expansion(Protocol):
    """Properties of a network expanded over time that costs depend on."""

    @property
    def sink(self) -> int:
        """The destination's node."""

    @property
    def head(self) -> IntArray:
        """Return where each arc ends."""

    @property
    def link(self) -> IntArray:
        """The problem's link that each arc stands for, or a negative number."""

    @property
    def stored(self) -> npt.NDArray[np.bool_]:
        """Arcs on which others' data wait."""


def preference_or_default(
    prefer: Preference | None, problem: Problem, deadline_s: float | None
) -> Preference:
    """Return the preference that holds; with a deadline and prices the default is money.

    Raises
    ------
    ProblemError
        There is no such preference.
    """
    if prefer is None:
        priced = deadline_s is not None and problem.price_per_gb is not None
        return "money" if priced else DEFAULT
    if not isinstance(prefer, str) or prefer not in PREFERENCES:
        raise ProblemError(
            f"prefer must be one of {', '.join(PREFERENCES)}, got {prefer!r}"
            f"{nearest_hint(str(prefer), PREFERENCES)}"
        )
    return prefer


def path_costs(
    problem: Problem,
    prefer: Preference,
    lengths_s: Sequence[float] | FloatArray,
    n_nodes: int,
) -> Costs:
    """Weigh the wishes of a preference.

    Parameters
    ----------
    prefer : str
        A key of `PREFERENCES`.
    lengths_s : sequence of float
        Lengths of the pieces of time, or of slots; pieces follow each other without a gap.
    n_nodes : int
        Nodes of the network; where solvers could not bear the weights, later wishes are left out.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> path_costs(problem, "earliest-arrival", [1.0, 1.0], n_nodes=2).arrival.tolist()
    [0, 6]
    """
    lengths = np.asarray(lengths_s, dtype=float)
    most_hops = min(problem.n_hosts - 1, LONGEST_PATH)
    first, *later = PREFERENCES[prefer]
    limit = COST_RANGE // max(n_nodes, 1) ** 2

    def most(wish: str, steps: int) -> int:
        """Most units on a path."""
        units = _units(wish, problem, lengths, steps)
        total = int(units.sum()) if wish == "storage" else int(units.max(initial=0))
        return total * (most_hops if wish in ("hops", "money") else 1)

    while later and most(first, STEPS) * _product(most, later) > limit:
        later.pop()
    steps = STEPS
    while steps < MOST_STEPS and most(first, 10 * steps) * _product(most, later) <= limit:
        steps *= 10
    first_weight = _product(most, later)
    link, stored, arrival = (
        np.zeros(n, np.int64) for n in (problem.n_links, len(lengths), len(lengths))
    )
    costs = Costs(link, stored, arrival, first_weight)
    weight = 1
    for wish in reversed([first, *later]):
        column = {"storage": costs.stored, "arrival": costs.arrival}.get(wish, costs.link)
        column += weight * _units(wish, problem, lengths, steps if wish == first else LATER_STEPS)
        weight *= most(wish, LATER_STEPS) + 1
    return costs


def _product(most: Callable[[str, int], int], later: Sequence[str]) -> int:
    """Return how many units of the last wish one unit of the first outweighs."""
    return math.prod(most(wish, LATER_STEPS) + 1 for wish in later)


def _units(wish: str, problem: Problem, lengths_s: FloatArray, steps: int) -> IntArray:
    """Whole units of one wish: per link, or per piece of time."""
    if wish == "hops":
        return np.ones(problem.n_links, dtype=np.int64)
    if wish == "money":
        prices = problem.price_per_gb
        return _whole(np.zeros(problem.n_links) if prices is None else prices, steps)
    if wish == "storage":
        # Data flow evenly within a piece: on average from the middle of one to that of the next.
        return _whole((lengths_s + np.append(lengths_s[1:], lengths_s[-1:])) / 2, steps)
    return np.arange(len(lengths_s))  # earlier pieces are better, however long


def _whole(values: FloatArray, steps: int) -> IntArray:
    """Scale to whole numbers: equal values become 1, others up to `steps`."""
    largest = float(values.max(initial=0.0))
    if largest <= 0:
        return np.zeros(len(values), dtype=np.int64)
    alike = bool((np.isclose(values, largest, rtol=SAME_COST, atol=0.0) | (values == 0)).all())
    return np.rint(values / largest * (1 if alike else steps)).astype(np.int64)


def arc_costs(costs: Costs, network: Expansion, piece: IntArray) -> IntArray:
    """Return the cost per byte of each arc; `piece` is each arc's piece of time, or slot."""
    links = np.flatnonzero(network.link >= 0)
    cost = np.zeros(len(network.link), dtype=np.int64)
    cost[links] = costs.link[network.link[links]]
    last = len(costs.stored) - 1
    stored = np.flatnonzero(network.stored)
    cost[stored] += costs.stored[np.minimum(piece[stored], last)]
    # Where the destination's downlink is limited, what arrives crosses the limit's arc last.
    arriving = np.flatnonzero(network.head == network.sink)
    cost[arriving] += costs.arrival[np.minimum(piece[arriving], last)]
    return cost
