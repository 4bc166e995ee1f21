"""What a cycle costs, and how many of its tests a budget pays for."""

from __future__ import annotations

import pytest

from datacollect.measuring.plan.budget import Cost, cost_of_cycle, cycle_within
from datacollect.measuring.plan.rounds import full_mesh, plan_cycle


def test_a_round_takes_as_long_as_its_longest_test_and_all_bytes_count():
    """a->b and c->d at once take 3 s, a->c and b->d 4 s, and 1 s before each: 9 s."""
    costs = {
        ("a", "b"): Cost(1, 3.0),
        ("c", "d"): Cost(2, 1.0),
        ("a", "c"): Cost(3, 4.0),
        ("b", "d"): Cost(4, 4.0),
    }
    assert cost_of_cycle(plan_cycle(costs), costs, between_s=1.0) == Cost(10, 9.0)


@pytest.mark.parametrize(
    ("budget", "n_pairs"),
    [
        (Cost(1e9, 1e9), 12),
        (Cost(70, 1e9), 7),  # 10 bytes each
        (Cost(9, 1e9), 0),
        (Cost(1e9, 4.0), 0),  # 5 s a round
    ],
)
def test_a_budget_pays_for_the_first_pairs(budget, n_pairs):
    pairs = full_mesh(["a", "b", "c", "d"])
    costs = dict.fromkeys(pairs, Cost(10, 5.0))
    found = cycle_within(pairs, costs, budget, seed=1)
    assert sorted(pair for one in found.rounds for pair in one) == sorted(pairs[:n_pairs])


def test_time_counts_rounds():
    """Four hosts meet in six rounds of 5 s: 29 s do not pay for all twelve pairs, 30 s do."""
    pairs = full_mesh(["a", "b", "c", "d"])
    costs = dict.fromkeys(pairs, Cost(10, 5.0))
    assert len(cycle_within(pairs, costs, Cost(1e9, 30.0)).rounds) == 6
    shorter = cycle_within(pairs, costs, Cost(1e9, 29.0))
    assert cost_of_cycle(shorter, costs).seconds <= 29
    assert 0 < sum(map(len, shorter.rounds)) < 12


def test_pairs_left_out_for_a_pull_cost_nothing():
    pairs = [("a", "b"), ("c", "d")]
    costs = dict.fromkeys(pairs, Cost(10, 5.0))
    found = cycle_within(pairs, costs, Cost(10, 5.0), in_pull={"a"})
    assert found.rounds == ((("c", "d"),),)
