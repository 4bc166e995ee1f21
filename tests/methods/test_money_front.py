"""The front between makespan and money against hand-derived answers and an independent program."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from instances.small_problems import GB, with_a_priced_relay
from instances.strategies import problems
from judges.oracle import fluid_makespan_s, least_cost

import datacollect as dc
from datacollect.problem.hosts import Host, Link, SharedBottleneck
from datacollect.problem.problem import Problem
from datacollect.schedule.data.use import plan_money


def test_each_second_more_moves_a_megabyte_to_the_free_link(solver):
    """T* = 2000 s with 2 GB through K: 0.2. By 3000 s 1 GB: 0.1; by 4000 s nothing."""
    table = dc.front(with_a_priced_relay(), slack=[0, 0.5, 1, 2], solver=solver)
    assert table.index.tolist() == [0, 0.5, 1, 2, math.inf]
    assert table["makespan_s"].tolist() == pytest.approx([2000, 3000, 4000, 4000, 4000])
    assert table["money"].tolist() == pytest.approx([0.2, 0.1, 0, 0, 0], abs=1e-8)
    assert table["slower"].tolist() == pytest.approx([0, 0.5, 1, 1, 1])
    assert table["cheaper"].tolist() == pytest.approx([0, 0.5, 1, 1, 1])


def test_what_is_compared_with_is_the_fastest_plan_though_it_is_not_asked_for():
    table = dc.front(with_a_priced_relay(), slack=[0.5])
    assert table.index.tolist() == [0.5, math.inf]
    assert table["cheaper"].tolist() == pytest.approx([0.5, 1])


def test_with_a_shared_bottleneck(linear_solver):
    """Both ways out of S together carry 1.5 MB/s: T* = 8/3 * 1000 s, 4/3 GB through K."""
    wire = SharedBottleneck("wire", 1.5e6, [("S", "D"), ("S", "K")])
    table = dc.front(with_a_priced_relay(shared=[wire]), slack=[0], solver=linear_solver)
    assert table["makespan_s"].tolist() == pytest.approx([8000 / 3, 4000])
    assert table["money"].tolist() == pytest.approx([0.4 / 3, 0], abs=1e-7)


def test_the_cheapest_takes_as_long_as_it_must():
    """A free link of 10 B/s beside one of 1 MB/s at 0.1: 4 GB take 4e8 s for nothing."""
    hosts = [Host("S", 4 * GB), Host("K"), Host("D")]
    way = [Link("S", "D", 10.0), Link("S", "K", 1e6, 0.1), Link("K", "D", 1e6)]
    last = dc.front(Problem.from_hosts(hosts, way, "D"), slack=[0]).iloc[-1]
    assert last["makespan_s"] == pytest.approx(4e8)
    assert last["money"] == 0


def test_no_row_ends_later_than_the_cheapest_of_all():
    """3 GB at 1 MB/s directly and 2 MB/s over K, all for nothing: 1000 s, whatever the deadline.

    Of plans in time the one with the fewest hops would use the direct link until the deadline.
    """
    hosts = [Host("S", 3 * GB), Host("K"), Host("D")]
    way = [Link("S", "D", 1e6), Link("S", "K", 2e6), Link("K", "D", 2e6, 0.0), Link("D", "K", 1, 1)]
    table = dc.front(Problem.from_hosts(hosts, way, "D"), slack=[0, 0.5, 4])
    assert table["makespan_s"].tolist() == pytest.approx([1000.0] * 4)


def test_a_cheap_link_that_is_there_for_a_while_only():
    """The free link carries 1 GB in its first 1000 s, the other 0.3 at 0.1 per GB."""
    hosts = [Host("S", 4 * GB), Host("K"), Host("D")]
    way = [
        Link("S", "D", [1e6, 0.0]),
        Link("S", "K", [1e6, 1e6], 0.1),
        Link("K", "D", [1e6, 1e6]),
    ]
    table = dc.front(Problem.from_hosts(hosts, way, "D", periods_s=[0, 1000]), slack=[0])
    assert table["money"].tolist() == pytest.approx([0.3, 0.3])
    assert table["makespan_s"].iloc[0] == pytest.approx(3000)


def test_free_plans_have_nothing_to_save():
    """The only priced link leads nowhere."""
    problem = Problem.from_hosts(
        [Host("S", 10), Host("K"), Host("D")], [Link("S", "D", 5), Link("S", "K", 5, 1)], "D"
    )
    table = dc.front(problem, slack=[0, 1])
    assert table["money"].tolist() == [0, 0, 0]
    assert table["cheaper"].tolist() == [0, 0, 0]


def test_nothing_to_move_costs_nothing():
    problem = with_a_priced_relay().replace(backlog_bytes=np.zeros(3, dtype=int))
    table = dc.front(problem, slack=[0, 1])
    assert (table.to_numpy() == 0).all()


def test_bad_input_is_refused():
    free = with_a_priced_relay().replace(price_per_gb=None)
    with pytest.raises(dc.ProblemError, match=r"needs prices.*price_per_gb"):
        dc.front(free)
    for slack in (-0.1, math.inf, math.nan):
        with pytest.raises(dc.ProblemError, match="slack must be >= 0 and finite"):
            dc.front(with_a_priced_relay(), slack=[slack])
    cut_off = with_a_priced_relay().replace(bandwidth_bytes_per_s=np.zeros((1, 3)))
    with pytest.raises(dc.InfeasibleError, match="'S' cannot reach"):
        dc.front(cut_off)


@given(problem=problems(most_hosts=3, large=True), data=st.data())
def test_money_is_the_least_that_an_independent_program_finds(problem, data):
    count = problem.n_links
    prices = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    assume(any(prices) and problem.total_bytes)
    earliest_s = fluid_makespan_s(problem)
    assume(earliest_s)
    problem = problem.replace(price_per_gb=np.array(prices, dtype=float))
    slack = [0.0, data.draw(st.floats(0.01, 3.0))]
    table = dc.front(problem, slack=slack)
    scale = 3 * 2 * problem.total_bytes / GB
    for value, (makespan_s, money, *_) in zip(slack, table.to_numpy(), strict=False):
        deadline_s = (1 + value) * earliest_s
        assert makespan_s <= deadline_s * (1 + 1e-6)
        # At the very end the independent program may find no plan for rounding alone.
        least = least_cost(problem, "money", deadline_s * (1 + 1e-9))
        assert money == pytest.approx(least, abs=1e-5 * scale)
    assert (np.diff(table["money"]) <= 1e-6 * scale).all()
    least = least_cost(problem, "money", 1e4 * earliest_s)
    assert table["money"].iloc[-1] == pytest.approx(least, abs=1e-5 * scale)


def test_real_prices_between_clouds(cloud_grids):
    """Every 6th of 71 regions, 100 GB each, to one on Azure; bandwidth and price as measured.

    Prices are per pair, so a relay in the destination's cloud, or in the source's, can be cheaper
    than the direct link: the cheapest plan costs what shortest paths by price add up to.
    """

    def read(name, column):
        with (cloud_grids / name).open(newline="") as file:
            rows = csv.DictReader(file)
            to = "dst" if "dst" in rows.fieldnames else "dest"
            return {(row["src"], row[to]): float(row[column]) for row in rows}

    rate = read("grid_2022-11.csv", "received_bps")
    price = read("cost.csv", "cost")
    regions = sorted({source for source, _ in rate})[::6]
    destination = next(region for region in regions if region.startswith("azure"))
    hosts = [Host(region, 0 if region == destination else 100 * GB) for region in regions]
    pairs = [(a, b) for a in regions for b in regions if a != b and (a, b) in price]
    way = [Link(a, b, rate[a, b] / 8, price[a, b]) for a, b in pairs if (a, b) in rate]
    problem = Problem.from_hosts(hosts, way, destination)
    table = dc.front(problem)
    least = dict.fromkeys(regions, math.inf) | {destination: 0.0}
    for _ in regions:  # Bellman and Ford
        for a, b in pairs:
            least[a] = min(least[a], price[a, b] + least[b])
    assert table["money"].iloc[-1] == pytest.approx(100 * sum(least.values()))
    assert (np.diff(table["money"]) <= 1e-6 * table["money"].iloc[0]).all()
    assert (
        table["makespan_s"].iloc[:-1]
        <= (1 + table.index[:-1]) * table["makespan_s"].iloc[0] * (1 + 1e-9)
    ).all()
    assert table["cheaper"].iloc[-1] > 0


def test_the_price_of_a_plan():
    """2 GB through K at 0.1 per GB."""
    problem = with_a_priced_relay()
    assert plan_money(problem, dc.coordinated(problem)) == pytest.approx(0.2, abs=1e-8)
    assert plan_money(problem.replace(price_per_gb=None), dc.coordinated(problem)) is None
