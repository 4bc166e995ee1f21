"""Slots that carry few bytes of shared bottlenecks: plans in whole bytes that the judges accept."""

from __future__ import annotations

import random

import pytest
from instances.few_bytes import few_bytes
from instances.hand_made import links
from instances.how_many import many
from judges.contract_check import judge

import datacollect as dc
from datacollect.methods.slotted import whole_bytes
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem


def three_in_pairs(n_bytes: int) -> Problem:
    """Three hosts with a link each, and a wire for every two of them."""
    names = ["S", "T", "U"]
    pairs = [names[:2], names[1:], names[::2]]
    return Problem.from_hosts(
        [*(Host(name, n_bytes) for name in names), Host("D")],
        links("S -> D 1, T -> D 1, U -> D 1"),
        "D",
        shared=[dc.SharedBottleneck("".join(two), 1.0, [(a, "D") for a in two]) for two in pairs],
    )


def plan_and_judge(problem: Problem, slot_s: float, method=dc.coordinated, **options):
    plan = method(problem, slot_s=slot_s, **options)
    plan.check(problem)
    assert judge(problem.to_dict(), plan.to_dict()) is None
    return plan


def test_a_byte_a_slot_where_half_a_byte_of_each_would_fit():
    """Half a byte of each fits into a slot: 2 slots. Of whole bytes only one: 3 slots."""
    plan = plan_and_judge(three_in_pairs(1), 1.0)
    assert (plan.makespan_s, plan.status) == (3.0, "optimal")


@pytest.mark.parametrize("n_bytes", [1, 5])
def test_what_is_not_proved_is_a_heuristic(monkeypatch, n_bytes):
    """Without integer programming plans are valid, here as fast, but not proved."""
    monkeypatch.setattr(whole_bytes, "MOST_ARCS", 0)
    plan = plan_and_judge(three_in_pairs(n_bytes), 1.0)
    assert (plan.makespan_s, plan.status) == (3.0 * n_bytes, "heuristic")


def test_every_slot_respects_a_wire_that_carries_a_byte_and_a_fifth():
    """Wires carry 1 byte a slot. H3's 6 bytes go over H1 and H2: 17 + 6 bytes over wire1."""
    problem = Problem.from_hosts(
        [Host("H1", 8), Host("H2", 3), Host("H3", 6), Host("D")],
        links("H1 -> H2 4, H1 -> H3 5, H2 -> D 5, H2 -> H1 5, H2 -> H3 3, H3 -> H1 7, H3 -> H2 3"),
        "D",
        shared=[
            dc.SharedBottleneck("wire0", 4.0, [("H1", "H2"), ("H3", "H1")]),
            dc.SharedBottleneck("wire1", 6.0, [("H2", "D"), ("H3", "H1")]),
        ],
    )
    plan = plan_and_judge(problem, 0.3)
    assert plan.makespan_s == pytest.approx(23 * 0.3)


def random_plan(seed: int) -> None:
    rng = random.Random(f"few bytes {seed}")
    problem = few_bytes(rng)
    slot_s = rng.choice([0.1, 0.25, 0.3, 0.5, 1.0])
    try:
        if rng.random() < 0.25:
            plan_and_judge(problem, slot_s, dc.best_path)
        else:
            plan_and_judge(problem, slot_s, prefer=rng.choice(["relay-bytes", "storage"]))
    except dc.InfeasibleError:
        return


@pytest.mark.parametrize("seed", range(40))
def test_random_plans_of_few_bytes_are_valid(seed):
    random_plan(seed)


@pytest.mark.slow
def test_many_random_plans_of_few_bytes_are_valid():
    for seed in range(40, 40 + many(1500)):
        random_plan(seed)
