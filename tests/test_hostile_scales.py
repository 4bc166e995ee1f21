"""Plans at hostile scales: whatever the numbers, the plan is one that the judges accept."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from instances.hand_made import links
from instances.hostile_problems import (
    hostile_plan,
    hostile_problem,
    money_plan,
    with_many_periods,
    with_prices,
)
from instances.how_many import many
from judges.contract_check import judge

import datacollect as dc
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem

METHODS = (dc.direct, dc.best_path, dc.coordinated)


# Of so many random problems one has up to a thousand periods; every fifth has prices, a deadline.
EVERY = 20

# The judge in exact fractions takes minutes for more transfers times periods.
MOST_EXACT = 20_000


def plan_and_judge(seed: int) -> None:
    """The plan moves all bytes, passes both judges, and ends no sooner than its lower bound."""
    rng = random.Random(seed)
    problem = hostile_problem(rng)
    try:
        if seed % EVERY == 1 and problem.n_links:
            problem = with_many_periods(rng, problem)
        if seed % 5 == 2 and problem.n_links:
            problem = with_prices(rng, problem)
            pay_least(rng, problem)
            return
        judged(problem, hostile_plan(rng, problem))
    except dc.InfeasibleError:
        return
    except dc.SolverError as error:
        # Linear programs, which shared bottlenecks need, say so where doubles cannot hold them.
        if problem.shared and re.search("orders of magnitude|nearer to 1", str(error)):
            return
        raise


def judged(problem: Problem, plan: dc.Schedule) -> None:
    plan.check(problem)
    if len(plan.columns.n_bytes) * problem.n_periods <= MOST_EXACT:
        assert judge(problem.to_dict(), plan.to_dict()) is None
    assert plan.makespan_s >= plan.lower_bound_s * (1 - 1e-6)


def pay_least(rng: random.Random, problem: Problem) -> None:
    """Who has time pays no more than the fastest plan, but for a byte of each route.

    Only without chunks: longer ones may cost money, since pipelines drain before a link is lost.
    """
    fastest = dc.coordinated(problem, chunk_s=0.0)
    judged(problem, fastest)
    if not problem.total_bytes or problem.price_per_gb is None:
        return
    deadline_s = fastest.makespan_s * rng.choice([1.0 + 1e-6, 1.5, 3.0])
    cheapest = money_plan(rng, problem, deadline_s)
    judged(problem, cheapest)
    assert cheapest.makespan_s <= deadline_s * (1 + 1e-9)
    if cheapest.chunk_s:
        return
    rounding = len(cheapest.routes) * problem.price_per_gb.max() * problem.n_hosts
    assert paid(problem, cheapest) <= paid(problem, fastest) * (1 + 1e-6) + rounding


def paid(problem: Problem, plan: dc.Schedule) -> float:
    """The price of all transfers, times 1e9."""
    price = {
        (problem.names[tail], problem.names[head]): each
        for tail, head, each in zip(
            problem.link_from, problem.link_to, problem.price_per_gb, strict=True
        )
    }
    columns = plan.columns
    routes = [plan.routes[number].hosts for number in columns.route]
    return sum(
        int(n_bytes) * price[hosts[hop], hosts[hop + 1]]
        for hosts, hop, n_bytes in zip(routes, columns.hop, columns.n_bytes, strict=True)
    )


@pytest.mark.parametrize("seed", range(40))
def test_plans_are_valid_at_any_scale(seed):
    plan_and_judge(seed)


@pytest.mark.slow
def test_plans_are_valid_at_any_scale_in_many_cases():
    for seed in range(40, 40 + many(4000)):
        plan_and_judge(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [821, 2937, 3001, 6141, 9297])
def test_plans_that_were_not_valid_once(seed):
    """Parts of a byte in each of many periods; routes that cross a shared bottleneck twice."""
    plan_and_judge(seed)


# By hand ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_what_is_released_today_in_unix_time_takes_time(method):
    """10 bytes at 1e9 B/s take 1e-8 s; floats near 1.7e9 lie 2.4e-7 s apart."""
    hosts = [Host("S", 10, release_s=1.7e9), Host("D")]
    problem = Problem.from_hosts(hosts, links("S -> D 1e9"), "D")
    plan = method(problem)
    (start_s,), (finish_s,) = plan.columns.start_s, plan.columns.finish_s
    assert start_s == 1.7e9
    assert finish_s == np.nextafter(1.7e9, np.inf)
    plan.check(problem)
    assert judge(problem.to_dict(), plan.to_dict()) is None


def test_pipelines_of_today_keep_their_order():
    """S -> K -> D in a period of a second from 1.7e9 s on: K sends only what it has."""
    hosts = [Host("S", 10**6, release_s=1.7e9), Host("K"), Host("D")]
    problem = Problem.from_hosts(
        hosts,
        links("S -> K 1e6 1e6, K -> D 9e5 1e6"),
        "D",
        periods_s=[0.0, 1.7e9 + 1],
    )
    plan = dc.coordinated(problem, chunk_s=1e-3)
    plan.check(problem)
    assert judge(problem.to_dict(), plan.to_dict()) is None


def test_the_last_piece_of_time_keeps_a_byte():
    """2 bytes at 1 B/s until 1.9 s, then at 1e-3 B/s: the last tenth of a byte takes 100 s."""
    hosts = [Host("S", 2), Host("D")]
    problem = Problem.from_hosts(hosts, links("S -> D 1 1e-3"), "D", periods_s=[0.0, 1.9])
    plan = dc.coordinated(problem)
    assert plan.columns.n_bytes.tolist() == [1, 1]
    assert plan.makespan_s == plan.lower_bound_s == pytest.approx(101.9)


def test_a_byte_beside_very_many_is_not_lost():
    """S sends 9.3e15 bytes through K, which adds one of its own."""
    hosts = [Host("S", 9_300_000_000_000_000), Host("K", 1, uplink_bytes_per_s=2e9), Host("D")]
    problem = Problem.from_hosts(hosts, links("S -> K 1e9, K -> D 1e9, S -> D 1e6"), "D")
    plan = dc.coordinated(problem)
    assert plan.columns.n_bytes[plan.columns.hop == 0].sum() == problem.total_bytes
    plan.check(problem)


def test_what_a_slow_link_cannot_carry_in_a_short_period_goes_later():
    """Of 2**62 bytes a unit of flow is 16: too much for 3600 s at 1e-3 B/s."""
    hosts = [Host("S", 2**62 - 1), Host("D")]
    problem = Problem.from_hosts(hosts, links("S -> D 1e-3 0.03"), "D", periods_s=[0.0, 3600.0])
    plan = dc.coordinated(problem)
    first, rest = sorted(plan.columns.n_bytes.tolist())
    assert first in (3, 4)  # 3.6
    assert first + rest == 2**62 - 1
    plan.check(problem)


def test_a_byte_of_each_route_is_rounding_not_one_in_each_period():
    """20 periods of a second at 1.5 B/s: never two bytes ahead."""
    rates = " ".join(["1.5"] * 20)
    problem = Problem.from_hosts(
        [Host("S", 25), Host("D")],
        links(f"S -> D {rates}"),
        "D",
        periods_s=[float(second) for second in range(20)],
    )
    plan = dc.coordinated(problem)
    sent = np.cumsum(plan.columns.n_bytes)
    assert (sent - 1.5 * np.minimum(plan.columns.finish_s, 20) < 1).all()


def test_instants_that_floats_cannot_tell_apart_are_refused():
    with pytest.raises(dc.ProblemError, match=r"host 'S': release_s must be at most 1e\+15, got"):
        Problem.from_hosts([Host("S", 1, release_s=1e308), Host("D")], links("S -> D 1"), "D")
    with pytest.raises(dc.ProblemError, match=r"periods_s must be at most 1e\+15, got 1e\+308"):
        Problem.from_hosts(
            [Host("S", 1), Host("D")], links("S -> D 1 1"), "D", periods_s=[0.0, 1e308]
        )


def test_direct_without_any_link_names_the_host():
    problem = Problem.from_hosts([Host("S", 1), Host("D")], [], "D")
    with pytest.raises(dc.InfeasibleError, match="no usable link from 'S'"):
        dc.direct(problem)


@pytest.mark.parametrize("method", [dc.best_path, dc.coordinated])
def test_long_chunks_count_as_storage(method):
    """K has room for 5 bytes; with a chunk of 1 s all 10 lie there before it passes any on."""
    hosts = [Host("S", 10), Host("K", storage_bytes=5), Host("D")]
    problem = Problem.from_hosts(hosts, links("S -> K 100, K -> D 100"), "D")
    with pytest.raises(dc.InfeasibleError, match=r"10 bytes at host 'K', .* allow 5; use a"):
        method(problem, chunk_s=1.0)
    method(problem, chunk_s=0.0).check(problem)
