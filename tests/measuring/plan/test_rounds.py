"""Rounds of a cycle: no host and no wire in two tests at once, each pair once, few rounds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from datacollect.errors import ProblemError
from datacollect.measuring.plan.rounds import full_mesh, plan_cycle


def names(n):
    return [f"h{i}" for i in range(n)]


def overlaps(rounds, wires):
    """Return what is busy twice in a round, looked for from scratch."""
    for one in rounds:
        hosts = Counter(host for pair in one for host in pair)
        yield from (host for host, times in hosts.items() if times > 1)
        yield from (wire for wire in wires if len(wire & {*one}) > 1)


def random_cycle(seed):
    """Hosts, pairs and wires at random: meshes, stars and sparse graphs, wires of any length."""
    random = np.random.default_rng(seed)
    mesh = full_mesh(names(int(random.integers(2, 12))))
    chosen = random.random(len(mesh)) < random.choice([0.1, 0.5, 1.0])
    wires = [
        {mesh[i] for i in random.integers(0, len(mesh), random.integers(1, 9))}
        for _ in range(random.integers(0, 5))
    ]
    return [pair for pair, one in zip(mesh, chosen, strict=True) if one], wires


def test_a_thousand_random_cycles_have_no_overlap_and_test_each_pair_once():
    for seed in range(1000):
        pairs, wires = random_cycle(seed)
        found = plan_cycle(pairs, wires, cycle=seed % 7, seed=seed)
        assert list(overlaps(found.rounds, wires)) == []
        tested = [pair for one in found.rounds for pair in one]
        assert sorted(tested) == sorted(pairs)
        busiest = Counter(host for pair in pairs for host in pair)
        busiest.update(number for number, wire in enumerate(wires) for _ in wire & {*pairs})
        # No fewer rounds than the busiest host or wire has tests; and never a round without one.
        assert max(busiest.values(), default=0) <= len(found.rounds) <= len(pairs)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 13, 30, 99, 100])
def test_full_meshes_take_the_fewest_rounds_there_can_be(n):
    """Of n hosts at most n // 2 pairs meet at a time: n (n - 1) tests in 2 (n - 1), or 2 n."""
    for cycle in range(3):
        rounds = plan_cycle(full_mesh(names(n)), cycle=cycle).rounds
        assert len(rounds) == n * (n - 1) // (n // 2)
        assert {len(one) for one in rounds} == {n // 2}


def test_sparse_cycles_take_hardly_more_rounds_than_their_busiest_host_has_tests():
    """60 hosts, a seventh of the pairs."""
    random = np.random.default_rng(5)
    pairs = [pair for pair in full_mesh(names(60)) if random.random() < 1 / 7]
    busiest = max(Counter(host for pair in pairs for host in pair).values())
    assert len(plan_cycle(pairs).rounds) <= busiest + 2


def test_a_star_is_tested_one_after_the_other():
    pairs = [(host, "h0") for host in names(6)[1:]]
    assert [len(one) for one in plan_cycle(pairs).rounds] == [1] * 5


def test_pairs_over_one_wire_wait_for_each_other_and_others_do_not():
    pairs = [("a", "b"), ("c", "d"), ("e", "f")]
    rounds = plan_cycle(pairs, [{("a", "b"), ("c", "d")}]).rounds
    assert sorted(map(len, rounds)) == [1, 2]
    assert not any({("a", "b"), ("c", "d")} <= {*one} for one in rounds)


def partners(rounds):
    return {frozenset((one, other)) for each in rounds for one in each for other in each} - {
        frozenset((one,)) for each in rounds for one in each
    }


def test_partners_change_from_cycle_to_cycle_by_the_seed():
    mesh = full_mesh(names(12))
    first, second = (plan_cycle(mesh, cycle=cycle, seed=3).rounds for cycle in (0, 1))
    assert plan_cycle(mesh, cycle=0, seed=3).rounds == first
    assert plan_cycle(mesh, cycle=0, seed=4).rounds != first
    # By chance 5 of the 110 - 2 * 10 - 1 others: most partners are new.
    assert len(partners(first) & partners(second)) < 0.2 * len(partners(first))


def test_the_order_in_which_pairs_are_given_does_not_matter():
    mesh = full_mesh(names(7))
    assert plan_cycle(mesh[::-1]) == plan_cycle(mesh)


def test_hosts_in_a_pull_are_left_out_or_their_tests_marked():
    pairs = [("a", "b"), ("b", "c"), ("c", "d")]
    found = plan_cycle(pairs, in_pull={"a", "x"})
    assert found.left_out == (("a", "b"),)
    assert sorted(pair for one in found.rounds for pair in one) == pairs[1:]
    assert found.beside_pull == frozenset()
    marked = plan_cycle(pairs, in_pull={"a"}, test_beside_pull=True)
    assert marked.left_out == ()
    assert marked.beside_pull == {("a", "b")}
    assert sorted(pair for one in marked.rounds for pair in one) == pairs


def test_nothing_to_test_is_no_round():
    assert plan_cycle([]).rounds == ()


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a", "a")], "a test needs two hosts, got 'a' twice; remove the pair"),
        ([("a", "b"), ("a", "b")], "pair 'a' -> 'b' is given twice; keep one"),
    ],
)
def test_wrong_pairs_are_refused(pairs, message):
    with pytest.raises(ProblemError) as raised:
        plan_cycle(pairs)
    assert str(raised.value) == message
