"""Rounds of a cycle: tests that run at the same time share no host and no known wire.

A test keeps both of its hosts and every wire on its way busy. Tests are put, one after the other,
into the first round in which all of that is free: the greedy colouring of the line graph, largest
degree first (Welsh and Powell, "An upper bound for the chromatic number of a graph and its
application to timetabling problems", The Computer Journal 10, 1967). Among tests with as many
rivals the order is that of the circle method (Kirkman, 1850), which has every two of n hosts meet
in n - 1 rounds, n where n is odd. Since its rounds are full, none of its tests fits an earlier
one: of a full mesh without wires the colouring is the circle method itself, in as few rounds as
there can be.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

Pair: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Cycle:
    """The tests of a cycle in their order.

    Attributes
    ----------
    rounds : tuple of tuple of pairs
        Pairs (from, to) that are tested at the same time. The concurrency of a test is the length
        of its round less one.
    beside_pull : frozenset of pairs
        Tests with a host that moves other data meanwhile: their rows must say so.
    left_out : tuple of pairs
        Pairs that are not tested for that reason.
    """

    rounds: tuple[tuple[Pair, ...], ...]
    beside_pull: frozenset[Pair] = frozenset()
    left_out: tuple[Pair, ...] = ()


def plan_cycle(
    pairs: Iterable[Pair],
    wires: Iterable[Set[Pair]] = (),
    *,
    cycle: int = 0,
    seed: int = 0,
    in_pull: Set[str] = frozenset(),
    test_beside_pull: bool = False,
) -> Cycle:
    """Put the tests of a cycle into rounds.

    Parameters
    ----------
    pairs : iterable of (str, str)
        Ordered pairs of hosts, each once.
    wires : iterable of sets of pairs
        Pairs that share a wire; of each set at most one is tested at a time. Pairs that are not
        tested do not matter.
    cycle, seed : int
        Number of the cycle, from 0, and seed of all: they decide which pairs meet in a round, so
        that partners change from cycle to cycle.
    in_pull : set of str
        Hosts that move other data now.
    test_beside_pull : bool
        True: their pairs are tested all the same, and marked; False: they are left out.

    Raises
    ------
    ProblemError
        A pair is given twice, or a host to itself.

    Examples
    --------
    >>> plan_cycle([("a", "b"), ("c", "d")]).rounds
    ((('a', 'b'), ('c', 'd')),)
    >>> len(plan_cycle([("a", "b"), ("c", "d")], [{("a", "b"), ("c", "d")}]).rounds)
    2
    """
    all_pairs = _checked(pairs)
    disturbed = tuple(pair for pair in all_pairs if not in_pull.isdisjoint(pair))
    left_out = () if test_beside_pull else disturbed
    tested = sorted({*all_pairs} - {*left_out})
    order = _circle_order(tested, np.random.default_rng((seed, cycle)))
    rounds = _first_fit(tested, order, list(wires))
    return Cycle(rounds, frozenset(disturbed) - {*left_out}, left_out)


def full_mesh(hosts: Sequence[str]) -> list[Pair]:
    """Return all ordered pairs of hosts.

    >>> full_mesh(["a", "b"])
    [('a', 'b'), ('b', 'a')]
    """
    return [(tail, head) for tail in hosts for head in hosts if tail != head]


def _checked(pairs: Iterable[Pair]) -> list[Pair]:
    found = list(pairs)
    for pair, times in Counter(found).items():
        if pair[0] == pair[1]:
            raise ProblemError(f"a test needs two hosts, got {pair[0]!r} twice; remove the pair")
        if times > 1:
            raise ProblemError(f"pair {pair[0]!r} -> {pair[1]!r} is given twice; keep one")
    return found


def _circle_order(
    pairs: Sequence[Pair], random: np.random.Generator
) -> dict[Pair, tuple[int, int]]:
    """Return in which half and in which round of the circle method each pair meets.

    All but one of an even number of places lie on a circle. In round r the places i and j meet
    whose sum is r modulo their number, and the one left over meets the place beside the circle.
    The halves are the two directions. Who has which place, which direction is first and which
    round is first are random.
    """
    hosts = sorted({host for pair in pairs for host in pair})
    on_circle = max(len(hosts) - 1 + len(hosts) % 2, 1)
    place = dict(zip(hosts, random.permutation(len(hosts)).tolist(), strict=True))
    number = random.permutation(on_circle).tolist()

    def of(pair: Pair) -> tuple[int, int]:
        low, high = sorted((place[pair[0]], place[pair[1]]))
        meets = (2 * low if high == on_circle else low + high) % on_circle
        return (low + high + (place[pair[0]] == low)) % 2, number[meets]

    return {pair: of(pair) for pair in pairs}


def _first_fit(
    pairs: Sequence[Pair], order: Mapping[Pair, tuple[int, int]], wires: Sequence[Set[Pair]]
) -> tuple[tuple[Pair, ...], ...]:
    """Put each pair, those with most rivals first, into the first round that is free for it."""
    needs: dict[Pair, list[str | int]] = {pair: [*pair] for pair in pairs}
    for number, wire in enumerate(wires):
        for pair in wire & needs.keys():
            needs[pair].append(number)
    users = Counter(need for of_pair in needs.values() for need in of_pair)
    rivals = {pair: sum(users[need] for need in of_pair) for pair, of_pair in needs.items()}
    taken = dict.fromkeys(users, 0)  # a bit for each round
    rounds: list[list[Pair]] = []
    for pair in sorted(pairs, key=lambda pair: (-rivals[pair], order[pair], pair)):
        busy = 0
        for need in needs[pair]:
            busy |= taken[need]
        first_free = ~busy & (busy + 1)
        for need in needs[pair]:
            taken[need] |= first_free
        number = first_free.bit_length() - 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(pair)
    return tuple(tuple(one) for one in rounds)
