"""What tests cost, and how many a budget pays for."""

from __future__ import annotations

import pytest

from datacollect.errors import ProblemError
from datacollect.measurement.cycle.budget import (
    Cost,
    cost_of_cycle,
    cost_of_tools,
    cycle_within,
    pairs_cost,
)
from datacollect.measurement.cycle.rounds import full_mesh, plan_cycle


def test_a_round_takes_as_long_as_its_longest_test_and_all_bytes_count():
    """a->b and c->d at once take 3 s, a->c and b->d 4 s, and 1 s before each: 9 s."""
    costs = {
        ("a", "b"): Cost(1, 3.0),
        ("c", "d"): Cost(2, 1.0),
        ("a", "c"): Cost(3, 4.0),
        ("b", "d"): Cost(4, 4.0),
    }
    assert cost_of_cycle(plan_cycle(costs), costs, between_s=1.0) == Cost(10, 9.0)


def test_tools_follow_one_another():
    """10 s of TCP at 1 MB/s; 5 s each with 1, 2, 4 connections, after 20 pairs of 2944 bytes."""
    assert cost_of_tools(["tcp"], 1e6) == Cost(1e7, 10.0)
    both = cost_of_tools(["tcp", "curve"], 1e6)
    assert both.n_bytes == 1e7 + 1.5e7 + 20 * 2 * 1472
    assert both.seconds == pytest.approx(10 + 15 + 20 * 0.02)
    # The available bandwidth within 7 % takes some 800 pairs, 2.4 MB.
    assert pairs_cost(800).n_bytes == pytest.approx(2.4e6, rel=0.02)


def test_an_unknown_tool_is_named_with_what_is_near():
    with pytest.raises(ProblemError, match="unknown tool 'pair'; tools of a cycle are ping, trace"):
        cost_of_tools(["pair"], 1e6)


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
