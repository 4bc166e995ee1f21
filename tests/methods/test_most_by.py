"""The most data by an instant; of equal prices as early as possible: by hand, by HiGHS.

A has 10 bytes and a link of 5 bytes a second to D, B has 10 and one of 1: after 3 s 10 + 3 bytes
have arrived, after 10 s all.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import datacollect as dc
from datacollect.errors import InfeasibleError, ProblemError
from datacollect.flow.arrival_curve import most_arrived_bytes
from datacollect.schedule.data.use import arrived_bytes, plan_money
from datacollect.solvers.budget import Budget

MB = 10**6
INSTANCES = Path(__file__).parents[1] / "instances"


def two(**more):
    links = [dc.Link("A", "D", 5.0 * MB), dc.Link("B", "D", 1.0 * MB)]
    hosts = [dc.Host("A", 10 * MB), dc.Host("B", 10 * MB), dc.Host("D")]
    return dc.Problem.from_hosts(hosts, links, "D", **more)


def test_the_most_by_an_instant():
    problem = two()
    found = [most_arrived_bytes(problem, at_s, Budget()) for at_s in (0.0, 1.0, 3.0, 10.0, 99.0)]
    assert found == [0.0, 6e6, 13e6, 20e6, 20e6]


def test_where_a_deadline_is_missed_it_is_said_how_much_can_be_there():
    with pytest.raises(InfeasibleError, match=r"By then 13 MB of 20 MB can be there: most_by_s"):
        dc.coordinated(two(), deadline_s=3.0)
    plan = dc.coordinated(two(), most_by_s=3.0)  # the remedy
    plan.check(two())
    assert arrived_bytes(plan, 3.0) == pytest.approx(13e6, abs=2)
    assert (plan.makespan_s, plan.most_by_s, plan.prefer) == (pytest.approx(10.0), 3.0, None)


def test_on_random_networks_no_more_can_arrive_and_a_plan_brings_that():
    rng = np.random.default_rng(3)
    for _ in range(25):
        n = int(rng.integers(3, 6))
        names = [f"H{i}" for i in range(n)]
        rates = rng.integers(0, 8, (n, n)) * MB * (rng.random((n, n)) < 0.7)
        np.fill_diagonal(rates, 0)
        rates[:, 0] = np.maximum(rates[:, 0], MB)
        rates[0] = 0
        backlog = np.append(0, rng.integers(1, 40, n - 1)) * MB
        problem = dc.Problem.from_matrix(names, rates.astype(float), backlog, "H0")
        end_s = dc.coordinated(problem).lower_bound_s
        by_s = float(end_s * rng.uniform(0.1, 0.95))
        most = most_by_highs(rates.astype(float), backlog, by_s)
        assert most_arrived_bytes(problem, by_s, Budget()) == pytest.approx(most, rel=1e-6)
        plan = dc.coordinated(problem, most_by_s=by_s)
        plan.check(problem)
        # Chunks arrive late: 0.2 % of the earliest end at most.
        assert 0.99 * most - n * MB * 8 * 0.002 * end_s <= arrived_bytes(plan, by_s) <= most + 1
        assert plan.makespan_s <= 1.005 * end_s


def most_by_highs(rates, backlog, by_s):
    """Maximise what enters host 0 in a time, as one linear program: bytes on each link."""
    n = len(backlog)
    pairs = [(i, j) for i in range(n) for j in range(n) if rates[i, j] > 0]
    balance = np.zeros((n - 1, len(pairs)))
    for k, (i, j) in enumerate(pairs):
        if i:
            balance[i - 1, k] += 1
        if j:
            balance[j - 1, k] -= 1
    cost = [-1.0 if j == 0 else 0.0 for _, j in pairs]
    bounds = [(0, rates[i, j] * by_s) for i, j in pairs]
    return -linprog(cost, A_ub=balance, b_ub=backlog[1:], bounds=bounds, method="highs").fun


def test_shared_bottlenecks_count_at_that_instant_alone():
    """A wire of 6 MB/s for both: 3 s let 13 MB pass without it, and 13 of at most 18 with it."""
    shared = [dc.SharedBottleneck("wire", 6.0 * MB, [("A", "D"), ("B", "D")])]
    problem = two(shared=shared)
    assert most_arrived_bytes(problem, 3.0, Budget()) == pytest.approx(13e6, rel=1e-6)
    plan = dc.coordinated(problem, most_by_s=3.0)
    plan.check(problem)
    assert arrived_bytes(plan, 3.0) == pytest.approx(13e6, rel=1e-5)


@pytest.mark.parametrize("other", ["deadline_s", "slot_s", "connections", "most_transfers"])
def test_other_goals_are_refused_beside_it(other):
    with pytest.raises(ProblemError, match=f"most_by_s cannot be combined with {other}"):
        dc.coordinated(two(), most_by_s=3.0, **{other: 5})


def test_later_than_the_earliest_end_it_asks_for_nothing():
    plan = dc.coordinated(two(), most_by_s=50.0)
    assert plan.makespan_s == pytest.approx(10.0)
    assert arrived_bytes(plan, 50.0) == 20 * MB


def test_schedules_keep_it(tmp_path):
    plan = dc.coordinated(two(), most_by_s=3.0)
    for name in ("plan.json", "plan.parquet"):
        plan.to_file(tmp_path / name)
        assert dc.Schedule.from_file(tmp_path / name).most_by_s == 3.0
    again = dc.explain(two(), plan)  # plans the same once more
    assert again.plan is not None


# Equal prices -------------------------------------------------------------------------------------


def mean_arrival_s(problem, plan):
    table = plan.transfers
    last = table[table["to"] == problem.destination]
    middles_s = (last["start_s"] + last["finish_s"]) / 2
    return float((middles_s * last["bytes"]).sum() / last["bytes"].sum())


def test_by_the_same_money_data_do_not_wait_for_the_night():
    """159, as a linear program finds; basel's 1.5 TB, at 800 Mbit/s, are there at 15 000 s."""
    problem = dc.Problem.from_file(INSTANCES / "priced_by_night.toml")
    plan = dc.coordinated(problem, deadline_s="2026-11-29T18:00")
    assert plan_money(problem, plan) == pytest.approx(159.0)
    table = plan.transfers
    assert table[table["source"] == "basel"]["finish_s"].max() == pytest.approx(15_000)
    assert mean_arrival_s(problem, plan) <= 8.2 * 3600


def test_equal_prices_are_no_reason_to_wait():
    """100 MB at 10 MB/s and one price, all day; periods begin at 20 s and 40 s: 10 s are enough.

    T is a relay that is open from 20 s on, through which B's data cost less.
    """
    hosts = [dc.Host("A", 100 * MB), dc.Host("B", 100 * MB), dc.Host("T"), dc.Host("D")]
    links = [
        dc.Link("A", "D", [10.0 * MB] * 3, price_per_gb=1.0),
        dc.Link("B", "D", [10.0 * MB] * 3, price_per_gb=3.0),
        dc.Link("B", "T", [0.0, 10.0 * MB, 10.0 * MB], price_per_gb=1.0),
        dc.Link("T", "D", [0.0, 10.0 * MB, 10.0 * MB], price_per_gb=1.0),
    ]
    problem = dc.Problem.from_hosts(hosts, links, "D", periods_s=[0.0, 20.0, 40.0])
    plan = dc.coordinated(problem, deadline_s=60.0)
    assert plan_money(problem, plan) == pytest.approx(0.3)  # 0.1 GB at 1, and at 1 + 1
    table = plan.transfers
    direct = table[(table["source"] == "A")]
    assert direct["finish_s"].max() == pytest.approx(10.0)
    relayed = table[(table["source"] == "B") & (table["to"] == "D")]
    assert relayed["finish_s"].max() <= 30.5
