"""Preferences among equally fast plans: by hand, and against an independent linear program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from instances.hand_made import links
from instances.how_many import many
from instances.small_problems import MB, relay
from instances.strategies import FEATURES, problems
from judges.oracle import least_cost, most_arrived_bytes
from judges.plan_values import arrived_bytes, cost_of

import datacollect as dc
from datacollect.flow.arrival_curve import arrival_curve
from datacollect.flow.network.layered import with_room_for_returns
from datacollect.flow.network.preference import PREFERENCES, path_costs
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget

# The wishes that linear programs of their own can judge.
WISHES = ("relay-bytes", "storage", "money")

# Oracles solve at an end that much later: at the optimum itself rounding decides.
LATER = 1 + 1e-9


def priced(**prices):
    """S holds 6 MB; 2 MB/s over K and over L, 1 MB/s directly: 3 MB/s leave S at most, 2 s."""
    return Problem.from_hosts(
        [Host("S", 6 * MB), Host("K"), Host("L"), Host("D", downlink_bytes_per_s=3e6)],
        [
            Link("S", "D", 1e6, price_per_gb=9.0),
            Link("S", "K", 2e6, price_per_gb=prices.get("K", 1.0)),
            Link("K", "D", 2e6, price_per_gb=1.0),
            Link("S", "L", 2e6, price_per_gb=prices.get("L", 2.0)),
            Link("L", "D", 2e6),
        ],
        "D",
    )


def used(plan):
    """Bytes by route."""
    transfers = plan.transfers
    first = transfers[transfers["hop"] == 0]
    return {" ".join(route): int(rows["bytes"].sum()) for route, rows in first.groupby("route")}


def test_by_default_as_few_bytes_as_possible_take_relays(solver):
    """2 of 6 MB fit on the direct link in the 2 s that D's downlink allows."""
    plan = dc.coordinated(priced(), solver=solver)
    plan.check(priced())
    assert cost_of(priced(), plan, "relay-bytes") == pytest.approx(10 * MB)
    assert used(plan)["S D"] == pytest.approx(2 * MB)


def test_money_takes_the_cheapest_links_that_are_fast_enough(solver):
    """Per GB 9 directly, 2 over K, 2.5 over L: 4 MB over K and 2 MB over L in 2 s, 13 per 1000."""
    problem = priced(L=2.5)
    plan = dc.coordinated(problem, prefer="money", solver=solver)
    plan.check(problem)
    assert used(plan) == pytest.approx({"S K D": 4 * MB, "S L D": 2 * MB}, rel=1e-6)
    assert cost_of(problem, plan, "money") == pytest.approx(13e-3, rel=1e-6)


def test_equal_prices_are_settled_by_hops(solver):
    """Without any price the cheapest plan is the one with the fewest relayed bytes."""
    problem = priced().replace(price_per_gb=None)
    plan = dc.coordinated(problem, prefer="money", solver=solver)
    assert cost_of(problem, plan, "relay-bytes") == pytest.approx(10 * MB)


def waiting():
    """S -> K carries 4 MB/s in the first second and 2 after, K -> D 2 MB/s from the second on.

    S -> L -> M -> D carries 2 MB/s from the second on. 4 MB of S, all that K and L carry by 2 s.
    """
    return Problem.from_hosts(
        [Host("S", 4 * MB), Host("K"), Host("L"), Host("M"), Host("D")],
        links("S -> K 4e6 2e6, K -> D 0 2e6, S -> L 0 2e6, L -> M 0 2e6, M -> D 0 2e6"),
        "D",
        periods_s=[0.0, 1.0],
    )


def test_least_storage_sends_nothing_ahead_of_its_time(solver):
    """K gets 2 MB in the second second and passes them on at once: nothing rests anywhere."""
    problem = waiting()
    plan = dc.coordinated(problem, prefer="storage", chunk_s=0.0, solver=solver)
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(2.0)
    assert cost_of(problem, plan, "storage") == pytest.approx(0.0, abs=10)


def test_storage_counts_bytes_times_seconds(solver):
    """K must take all 4 MB in the first second and pass 2 MB/s on in the next two.

    From 0 to 4 MB within the first second, back to 0 within two more: 2 + 4 MB s.
    """
    problem = Problem.from_hosts(
        [Host("S", 4 * MB), Host("K"), Host("D")],
        links("S -> K 4e6 0, K -> D 0 2e6"),
        "D",
        periods_s=[0.0, 1.0],
    )
    plan = dc.coordinated(problem, prefer="storage", chunk_s=0.0, solver=solver)
    assert plan.makespan_s == pytest.approx(3.0)
    assert cost_of(problem, plan, "storage") == pytest.approx(6 * MB, rel=1e-6)


def test_earliest_arrival_hurries_where_the_end_leaves_time(solver):
    """A: 2 MB at 2 MB/s, B: 4 MB at 1 MB/s. At its bend at 1 s A is done, at 4 s B is."""
    problem = Problem.from_hosts(
        [Host("A", 2 * MB), Host("B", 4 * MB), Host("D")], links("A -> D 2e6, B -> D 1e6"), "D"
    )
    plan = dc.coordinated(problem, prefer="earliest-arrival", solver=solver)
    plan.check(problem)
    assert plan.source_completion_s() == pytest.approx({"A": 1.0, "B": 4.0})
    together = dc.coordinated(problem, finish="together", solver=solver)
    assert together.source_completion_s() == pytest.approx({"A": 4.0, "B": 4.0})


def test_earliest_arrival_may_relay_what_others_would_not(solver):
    """A's other way over K is needed to be done at 1 s, not for the end at 4 s."""
    problem = Problem.from_hosts(
        [Host("A", 4 * MB), Host("B", 8 * MB), Host("K"), Host("D")],
        links("A -> D 2e6, A -> K 2e6, K -> D 2e6, B -> D 2e6"),
        "D",
    )
    plan = dc.coordinated(problem, prefer="earliest-arrival", chunk_s=0.0, solver=solver)
    plan.check(problem)
    assert arrived_bytes(plan, 1.0) == pytest.approx(6 * MB, rel=1e-6)
    assert used(plan)["A K D"] == pytest.approx(2 * MB, rel=1e-6)
    assert used(dc.coordinated(problem, solver=solver)).keys() == {"A D", "B D"}


def test_the_destinations_downlink_does_not_hide_when_data_arrive(solver):
    """D takes 3 MB/s. A's 2 MB at 2 MB/s and 1 MB/s of B's 4: 3 MB by 1 s, the rest at 1 MB/s."""
    problem = Problem.from_hosts(
        [Host("A", 2 * MB), Host("B", 4 * MB), Host("D", downlink_bytes_per_s=3e6)],
        links("A -> D 2e6, B -> D 1e6"),
        "D",
    )
    plan = dc.coordinated(problem, prefer="earliest-arrival", chunk_s=0.0, solver=solver)
    assert arrived_bytes(plan, 1.0) == pytest.approx(3 * MB, rel=1e-6)


def test_an_unknown_preference_names_the_nearest():
    with pytest.raises(dc.ProblemError, match="did you mean 'storage'"):
        dc.coordinated(relay(), prefer="storrage")


@pytest.mark.parametrize("n_nodes", [2, 100, 10_000, 1_000_000])
@pytest.mark.parametrize("prefer", PREFERENCES)
def test_costs_stay_where_solvers_bear_them_and_keep_the_first_wish(prefer, n_nodes):
    """Prices of 1 and 0.003 stay a millionth apart at least, wherever there is room for that."""
    problem = priced(K=1.0, L=0.003)
    costs = path_costs(problem, prefer, [1.0, 0.25, 3.0], n_nodes)
    largest = max(int(column.max()) for column in (costs.link, costs.stored, costs.arrival))
    assert 0 < largest <= 2**62 // n_nodes**2
    if prefer == "money" and n_nodes <= 10_000:
        prices = costs.link / costs.link.max()
        assert prices == pytest.approx(problem.price_per_gb / 9.0, abs=1e-6)


def _judge(problem: Problem, wish: str, seed: int) -> None:
    assume(problem.total_bytes >= 10**6 and problem.n_links)
    # Held data that return to their owner are nobody else's: only the oracle can tell.
    assume(not (wish == "storage" and problem.held))
    prices = np.random.default_rng(seed).integers(0, 5, problem.n_links) / 7
    problem = problem.replace(price_per_gb=prices)
    try:
        plan = dc.coordinated(problem, prefer=wish, chunk_s=0.0)
    except dc.InfeasibleError:
        return
    plan.check(problem)
    if with_room_for_returns(problem) is not None:
        return  # what returns to an owner needs room there in plans, none in the oracle
    assert plan.makespan_s <= plan.lower_bound_s * (1 + 1e-6)
    least = least_cost(problem, wish, plan.lower_bound_s * LATER)
    assert least is not None
    unit = {"relay-bytes": 1.0, "money": 1e-9, "storage": plan.lower_bound_s}[wish]
    # Whole bytes and 1e-6 of what is moved at all.
    noise = 1e-6 * problem.total_bytes * unit
    assert cost_of(problem, plan, wish) == pytest.approx(least, rel=1e-6, abs=noise)


@pytest.mark.parametrize("wish", WISHES)
@given(problem=problems(), seed=st.integers(0, 99))
@settings(suppress_health_check=[HealthCheck.filter_too_much])
def test_no_plan_that_is_as_fast_is_better(wish, problem, seed):
    _judge(problem, wish, seed)


@pytest.mark.slow
@pytest.mark.parametrize("wish", WISHES)
@given(problem=problems(most_hosts=5), seed=st.integers(0, 99))
@settings(max_examples=many(300), suppress_health_check=[HealthCheck.filter_too_much])
def test_no_plan_is_better_on_many_problems(wish, problem, seed):
    _judge(problem, wish, seed)


def test_least_storage_sends_nothing_round_where_it_may_wait():
    """H1's data at H3 could go round by way of H1, where they need no room, for a period."""
    unit = 10**12
    shared = dc.SharedBottleneck(
        "w", 7 * unit, [("H1", "D"), ("H1", "H2"), ("H2", "H3"), ("H3", "H2")]
    )
    rates = {
        ("H1", "D"): (3, 0, 2),
        ("H1", "H2"): (3, 6, 6),
        ("H2", "H1"): (2, 1, 6),
        ("H2", "H3"): (2, 1, 3),
        ("H3", "D"): (2, 4, 0),
        ("H3", "H2"): (4, 1, 1),
    }
    problem = dc.Problem.from_hosts(
        [
            dc.Host("D", downlink_bytes_per_s=2 * unit),
            dc.Host("H1", 11 * unit),
            dc.Host("H2", 12 * unit, release_s=1.0),
            dc.Host("H3"),
        ],
        [dc.Link(*pair, [unit * rate for rate in steps]) for pair, steps in rates.items()],
        "D",
        shared=[shared],
        held=[dc.Held("H3", "H1", 0, 3 * unit)],
        periods_s=[0.0, 0.7, 2.0],
    )
    plan = dc.coordinated(problem, prefer="storage")
    plan.check(problem)
    assert plan.status == "heuristic"


def _judge_arrivals(problem: Problem, part: float) -> None:
    assume(problem.total_bytes >= 10**6)
    try:
        plan = dc.coordinated(problem, prefer="earliest-arrival", chunk_s=0.0)
    except dc.InfeasibleError:
        return
    plan.check(problem)
    if with_room_for_returns(problem) is not None:
        return  # as above
    assert plan.makespan_s <= plan.lower_bound_s * (1 + 1e-6)
    bends = arrival_curve(problem, Budget()).time_s[1:].tolist()
    for time_s in (*bends, part * plan.lower_bound_s):
        most = most_arrived_bytes(problem, time_s)
        assert arrived_bytes(plan, time_s) == pytest.approx(most, abs=1e-6 * problem.total_bytes)


@given(problem=problems(FEATURES - {"shared"}), part=st.floats(0.01, 1.0))
def test_as_much_as_possible_has_arrived_at_every_instant(problem, part):
    _judge_arrivals(problem, part)


@pytest.mark.slow
@given(problem=problems(FEATURES - {"shared"}, most_hosts=5), part=st.floats(0.01, 1.0))
@settings(max_examples=many(300))
def test_as_much_as_possible_has_arrived_on_many_problems(problem, part):
    _judge_arrivals(problem, part)


@pytest.mark.parametrize("prefer", PREFERENCES)
@given(problem=problems(FEATURES - {"shared"}))
@settings(max_examples=15)
def test_plans_with_chunks_are_valid_whatever_is_preferred(prefer, problem):
    try:
        plan = dc.coordinated(problem, prefer=prefer)
    except dc.InfeasibleError:
        return
    plan.check(problem)


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e-12, 1e-200, 1e200])
def test_prices_of_any_size_are_told_apart(unit, solver):
    """Directly 8, by K 4.5 in all, whatever the unit: all 10 bytes go by K."""
    problem = Problem.from_hosts(
        [Host("S", 10), Host("K"), Host("D")],
        [
            Link("S", "D", 1.0, price_per_gb=8 * unit),
            Link("S", "K", 1.0, price_per_gb=4.5 * unit),
            Link("K", "D", 1.0),
        ],
        "D",
    )
    plan = dc.coordinated(problem, deadline_s=20.0, prefer="money", solver=solver)
    assert plan.transfers.query("to == 'K'")["bytes"].sum() == 10
