"""Deadlines: the cheapest plan in time, or why there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from instances.hand_made import links
from instances.how_many import many
from instances.small_problems import MB, figure_1, relay
from instances.strategies import problems
from judges.oracle import least_cost
from judges.plan_values import arrived_bytes, cost_of

import datacollect as dc
from datacollect.flow.network.layered import with_room_for_returns
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem


def test_more_time_needs_fewer_relays(solver):
    """relay(): 1 MB/s directly. In 2, 3, 6 s: 4, 3, 0 of 6 MB over K."""
    for deadline_s, relayed in ((2.0, 4), (3.0, 3), (6.0, 0)):
        plan = dc.coordinated(relay(), deadline_s=deadline_s, chunk_s=0.0, solver=solver)
        plan.check(relay())
        assert plan.makespan_s == pytest.approx(deadline_s)
        assert plan.columns.n_bytes.sum() == pytest.approx((6 + relayed) * MB, rel=1e-6)


def test_a_plan_does_not_take_more_time_than_it_needs(solver):
    """All 6 MB on the direct link take 6 s, whatever the deadline."""
    plan = dc.coordinated(relay(), deadline_s=100.0, solver=solver)
    assert plan.makespan_s == pytest.approx(6.0)


def test_prices_decide_by_default_and_time_is_money(solver):
    """The 6 MB over K cost 6 units in 3 s; directly nothing in 6 s."""
    problem = relay().replace(price_per_gb=np.array([1e3, 0.0, 0.0]))
    cost = {
        deadline_s: cost_of(
            problem,
            dc.coordinated(problem, deadline_s=deadline_s, chunk_s=0.0, solver=solver),
            "money",
        )
        for deadline_s in (2.0, 4.0, 6.0)
    }
    assert cost == pytest.approx({2.0: 4.0, 4.0: 2.0, 6.0: 0.0}, abs=1e-5)


def test_a_deadline_too_early_says_by_how_much_and_why(solver):
    with pytest.raises(dc.InfeasibleError) as caught:
        dc.coordinated(relay(), deadline_s=1.5, solver=solver)
    text = str(caught.value)
    assert "deadline_s = 1.5 " in text
    assert "earliest possible makespan is 2 s, 0.5 s later" in text
    assert "Host 'S' binds" in text
    assert caught.value.hosts == ("S",)


def test_the_earliest_makespan_is_a_deadline_that_can_be_met(solver):
    """Nothing is left for chunks: cut-through."""
    plan = dc.coordinated(relay(), deadline_s=2.0, solver=solver)
    plan.check(relay())
    assert plan.makespan_s == pytest.approx(2.0, rel=1e-9)
    assert plan.chunk_s == 0.0


def test_the_chunk_is_shortened_where_little_time_is_left(solver):
    """1 ms after the optimum there is no room for a default chunk of 2 ms."""
    plan = dc.coordinated(relay(), deadline_s=2.001, solver=solver)
    plan.check(relay())
    assert 0 < plan.chunk_s < 0.001
    assert plan.makespan_s <= 2.001


def test_a_chunk_that_was_asked_for_is_not_shortened(solver):
    with pytest.raises(dc.InfeasibleError, match=r"chunk_s = 0\.05 .* deadline_s = 2\.04; "):
        dc.coordinated(relay(), deadline_s=2.04, chunk_s=0.05, solver=solver)
    plan = dc.coordinated(relay(), deadline_s=2.05, chunk_s=0.05, solver=solver)
    assert plan.makespan_s <= 2.05 * (1 + 1e-9)


def test_a_deadline_within_a_period_and_beyond_a_release(solver):
    """2 MB/s until 2 s, then 1: 6 MB take 4 s; B's MB is released at 3 s, too late for 3 s."""
    problem = Problem.from_hosts(
        [Host("A", 5 * MB), Host("B", 1 * MB, release_s=3.0), Host("D")],
        links("A -> D 2e6 1e6, B -> D 2e6 1e6"),
        "D",
        periods_s=[0.0, 2.0],
    )
    assert dc.lower_bound(problem)[0] == pytest.approx(4.0)
    plan = dc.coordinated(problem, deadline_s=4.5, solver=solver)
    plan.check(problem)
    assert plan.makespan_s <= 4.5
    with pytest.raises(dc.InfeasibleError, match="1 s later"):
        dc.coordinated(problem, deadline_s=3.0, solver=solver)


def test_earliest_arrival_ends_at_the_optimum_whatever_the_deadline(solver):
    problem = Problem.from_hosts(
        [Host("A", 2 * MB), Host("B", 4 * MB), Host("D")], links("A -> D 2e6, B -> D 1e6"), "D"
    )
    plan = dc.coordinated(problem, prefer="earliest-arrival", deadline_s=9.0, solver=solver)
    assert plan.source_completion_s() == pytest.approx({"A": 1.0, "B": 4.0})
    assert arrived_bytes(plan, 1.0) == pytest.approx(3 * MB)


def test_a_shared_bottleneck_leaves_relays_out_when_there_is_time(linear_solver):
    """figure_1(): 2 MB over N1 at 1 MB/s take 2 s without K."""
    plan = dc.coordinated(figure_1(), deadline_s=2.0, solver=linear_solver)
    plan.check(figure_1())
    assert plan.columns.n_bytes.sum() == pytest.approx(2 * MB, rel=1e-6)
    with pytest.raises(dc.InfeasibleError, match=r"0\.5 s later"):
        dc.coordinated(figure_1(), deadline_s=0.5, solver=linear_solver)


def test_nothing_to_move_meets_any_deadline():
    problem = Problem.from_hosts([Host("S"), Host("D")], links("S -> D 1"), "D")
    assert dc.coordinated(problem, deadline_s=1e-9).makespan_s == 0.0


@pytest.mark.parametrize("deadline_s", [0.0, -1.0, float("nan"), float("inf")])
def test_deadlines_are_positive_and_finite(deadline_s):
    with pytest.raises(dc.ProblemError, match="deadline_s must be > 0 and finite"):
        dc.coordinated(relay(), deadline_s=deadline_s)


def _judge(problem: Problem, wish: str, slack: float, seed: int) -> None:
    assume(problem.total_bytes and problem.n_links)
    assume(not (wish == "storage" and problem.held))  # see test_preferences
    prices = np.random.default_rng(seed).integers(0, 5, problem.n_links) / 7
    problem = problem.replace(price_per_gb=prices)
    try:
        deadline_s = dc.lower_bound(problem)[0] * slack
    except dc.InfeasibleError:
        return
    if with_room_for_returns(problem) is not None:
        return  # see test_preferences
    plan = dc.coordinated(problem, prefer=wish, deadline_s=deadline_s, chunk_s=0.0)
    plan.check(problem)
    assert plan.makespan_s <= deadline_s * (1 + 1e-6)
    least = least_cost(problem, wish, deadline_s * (1 + 1e-9))
    assert least is not None
    noise = 1e-6 * problem.total_bytes * {"money": 1e-9, "storage": deadline_s}.get(wish, 1.0)
    cost = cost_of(problem, plan, wish)
    assert cost <= least * (1 + 1e-6) + noise
    if wish != "storage":  # a plan that ends before its deadline may store for less time
        assert cost == pytest.approx(least, rel=1e-6, abs=noise)
    in_chunks = dc.coordinated(problem, prefer=wish, deadline_s=deadline_s)
    in_chunks.check(problem)
    assert in_chunks.makespan_s <= deadline_s * (1 + 1e-6)


SLACKS = st.sampled_from([1.0, 1.0 + 1e-7, 1.003, 1.05, 1.5, 4.0])


@pytest.mark.slow
@pytest.mark.parametrize("wish", ["relay-bytes", "storage", "money"])
@given(problem=problems(most_hosts=5, large=True), slack=SLACKS, seed=st.integers(0, 99))
@settings(max_examples=many(300), suppress_health_check=[HealthCheck.filter_too_much])
def test_no_plan_in_time_is_cheaper_on_many_problems(wish, problem, slack, seed):
    _judge(problem, wish, slack, seed)


def test_a_storage_that_is_full_to_the_byte_is_planned_as_cheaply(linear_solver):
    """At the earliest end, where a part in 10^9 of H4's room is a thousand bytes."""
    prices = np.random.default_rng(0).integers(0, 5, 12) / 7
    rates = {("H1", "D"): 1e12, ("H2", "H4"): 2e12}
    rates |= dict.fromkeys([("H3", "H2"), ("H4", "D"), ("H4", "H1")], 1e12)
    pairs = [
        ("H1", "D"),
        *[(a, b) for a in ("H2", "H3", "H4") for b in ("D", "H1", "H2", "H3", "H4") if a != b],
    ]
    hosts = [
        Host("D", downlink_bytes_per_s=1e12),
        Host("H1"),
        Host("H2", 2 * 10**12),
        Host("H3", 10**12, release_s=1.0),
        Host("H4", storage_bytes=1e12),
    ]
    pairs.remove(("H3", "H4"))
    links_ = [Link(*pair, rates.get(pair, 0.0)) for pair in pairs]
    wire = dc.SharedBottleneck("wire0", 1e12, [("H1", "D")])
    problem = Problem.from_hosts(hosts, links_, "D", shared=[wire]).replace(price_per_gb=prices)
    plan = dc.coordinated(
        problem, prefer="money", deadline_s=3.0, chunk_s=0.0, solver=linear_solver
    )
    plan.check(problem)
    least = least_cost(problem, "money", 3.0 * (1 + 1e-9))
    assert cost_of(problem, plan, "money") == pytest.approx(least, rel=1e-6)


def test_a_longer_deadline_never_costs_more():
    """Random meshes with prices: the cost falls with the deadline, from 1 to 3 times T*."""
    rng = np.random.default_rng(5)
    n = 12
    for _ in range(3):
        pairs = [(a, b) for a in range(1, n) for b in range(n) if a != b]
        problem = Problem.from_hosts(
            [Host(f"h{i}", int(rng.integers(1, 9) * 1e8) * (i % 3 == 1)) for i in range(n)],
            [
                Link(f"h{a}", f"h{b}", rng.lognormal(0, 1) * 1e6, price_per_gb=rng.uniform(0, 1))
                for a, b in pairs
            ],
            "h0",
        )
        earliest_s = dc.lower_bound(problem)[0]
        costs = []
        for slack in (1.0, 1.1, 1.5, 3.0):
            plan = dc.coordinated(problem, deadline_s=slack * earliest_s, chunk_s=0.0)
            plan.check(problem)
            costs.append(cost_of(problem, plan, "money"))
        assert costs == sorted(costs, reverse=True)
        assert costs[-1] < costs[0]
