"""What fixed plans take where links carry other than planned: by hand, and as simulated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import datacollect as dc
from datacollect.control.planned.scheduled import AsapController
from datacollect.examples import example_files
from datacollect.methods.finishing.recurring import planned_to_the_end
from datacollect.simulation.fluid.engine import simulate_problem
from datacollect.uncertainty.fixed_plan import FixedPlan, bytes_of

NAMES = ["S", "K", "D"]
MB = 1_000_000


@pytest.fixture
def relayed() -> dc.Problem:
    """S has 4 MB, 1 MB/s straight to D and 1 MB/s over K: 2 MB each way, 2 s."""
    return dc.Problem.from_matrix(NAMES, [[0, MB, MB], [0, 0, MB], [0, 0, 0]], [4 * MB, 0, 0], "D")


def taken(problem: dc.Problem, plan: dc.Schedule, **changed: float) -> float:
    """Return what a plan takes where links such as S_D carry so many times as much."""
    index = problem.host_index
    links = [
        int(problem.link_indices(*(index[end] for end in name.split("_")))) for name in changed
    ]
    factors = np.array([list(changed.values())])
    (found,) = FixedPlan(problem, plan).makespans_s(np.array(links, dtype=np.int64), factors)
    return float(found)


def test_bytes_of_a_plan_over_what_it_uses(relayed):
    """Links in order: S->D 2 MB, S->K 2 MB, K->D 2 MB as the problem numbers them."""
    found = bytes_of(relayed, dc.coordinated(relayed, chunk_s=0.0))
    assert found.link_bytes.tolist() == [2 * MB] * 3
    assert found.out_bytes.tolist() == [4 * MB, 2 * MB, 0]
    assert found.in_bytes.tolist() == [0, 2 * MB, 4 * MB]


def test_the_fullest_link_decides(relayed):
    """2 MB over K at half of 1 MB/s: 4 s. A faster link helps nobody."""
    plan = dc.coordinated(relayed, chunk_s=0.0)
    assert taken(relayed, plan) == pytest.approx(2.0)
    assert taken(relayed, plan, K_D=0.5) == pytest.approx(4.0)
    assert taken(relayed, plan, S_D=2.0) == pytest.approx(2.0)
    assert taken(relayed, plan, S_D=2.0, S_K=2.0, K_D=4.0) == pytest.approx(1.0)


def test_a_pipeline_has_to_fill(relayed):
    """A chunk of 0.1 s more, over one relay."""
    plan = dc.coordinated(relayed, chunk_s=0.1)
    assert taken(relayed, plan) == pytest.approx(plan.makespan_s)
    half = taken(relayed, plan, S_D=0.5, S_K=0.5, K_D=0.5)
    assert half == pytest.approx(2 * (plan.makespan_s - 0.1) + 0.1)


def test_limits_of_hosts_and_shared_wires_bind_as_well(relayed):
    """Links are twice as fast: S's uplink of 2 MB/s still takes 2 s for 4 MB, a wire likewise."""
    fast = {"S_D": 2.0, "S_K": 2.0, "K_D": 2.0}
    limited = relayed.replace(uplink_bytes_per_s=[2 * MB, math.inf, math.inf])
    assert taken(limited, dc.coordinated(limited, chunk_s=0.0), **fast) == pytest.approx(2.0)
    wire = dc.SharedBottleneck("out", 2 * MB, [("S", "D"), ("S", "K")])
    shared = relayed.replace(shared=(wire,))
    assert taken(shared, dc.coordinated(shared, chunk_s=0.0), **fast) == pytest.approx(2.0)


def test_further_limits_of_hosts_bind_where_they_are_given(relayed):
    """S has one line of 1 MB/s: 4 MB take 4 s."""
    fixed = FixedPlan(relayed, dc.coordinated(relayed, chunk_s=0.0))
    limits = {"uplink_bytes_per_s": np.array([[MB, np.inf, np.inf]])}
    found = fixed.makespans_s(fixed.links, np.ones((1, 3)), limits)
    assert found.tolist() == pytest.approx([4.0])


@pytest.mark.parametrize("method", [dc.direct, dc.best_path, dc.coordinated])
def test_without_a_link_that_it_uses_nothing_ends(relayed, method):
    plan = method(relayed)
    assert taken(relayed, plan, S_D=0.0, S_K=0.0) == math.inf


def test_direct_is_carried_out_at_max_min_fair_rates():
    """D takes 10 in all. S has 60 over a link of 6, T 40 over one of 10: both get 5 for 8 s,
    then S sends its last 20 at 6: 11 1/3 s. With T's link at 2: S takes 10 s, T 20 s."""
    problem = dc.Problem.from_matrix(
        ["S", "T", "D"],
        [[0, 0, 6.0], [0, 0, 10.0], [0, 0, 0]],
        [60, 40, 0],
        "D",
        downlink_bytes_per_s=[1.0, 1.0, 10.0],
    )
    plan = dc.direct(problem)
    assert taken(problem, plan) == pytest.approx(8 + 20 / 6)
    assert taken(problem, plan, T_D=0.2) == pytest.approx(20.0)


def test_where_time_matters_the_plan_is_simulated_at_its_times():
    """4 s of data that come after 10 s: 14 s, at half the bandwidth 18 s."""
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 20, release_s=10.0), dc.Host("D")], [dc.Link("S", "D", 5.0)], "D"
    )
    plan = dc.coordinated(problem)
    assert taken(problem, plan) == pytest.approx(14.0)
    assert taken(problem, plan, S_D=0.5) == pytest.approx(18.0)
    assert taken(problem, plan, S_D=0.0) == math.inf


def test_bandwidths_by_the_hour_keep_their_hours():
    """5 bytes/s for 2 s, then 1 byte/s: 20 bytes take 12 s; at twice the rates 10 + 10: 2 s."""
    problem = dc.Problem.from_matrix(
        ["S", "D"], [[[0, 5.0], [0, 0]], [[0, 1.0], [0, 0]]], [20, 0], "D", periods_s=[0, 2]
    )
    plan = dc.direct(problem)
    assert taken(problem, plan) == pytest.approx(12.0)
    assert taken(problem, plan, S_D=2.0) == pytest.approx(2.0)


def test_connections_get_what_they_get_together():
    """Three of ours beside two of others on 10 bytes/s get 6: 60 bytes in 10 s, at half in 20."""
    link = dc.Link("S", "D", 10 / 3, capacity_bytes_per_s=10.0)
    problem = dc.Problem.from_hosts([dc.Host("S", 60), dc.Host("D")], [link], "D")
    plan = dc.coordinated(problem, connections=3, chunk_s=0.0)
    assert taken(problem, plan) == pytest.approx(10.0)
    assert taken(problem, plan, S_D=0.5) == pytest.approx(20.0)


rate = st.integers(1, 9)


@given(st.lists(rate, min_size=12, max_size=12), st.lists(rate, min_size=12, max_size=12))
def test_a_coordinated_plan_takes_what_it_takes_when_simulated(planned, found):
    """Four hosts, all links: bytes of each route fixed, relays hold what comes; never sooner."""

    def matrix(rates: list[int]) -> np.ndarray:
        every = iter(rates)
        return np.array(
            [[float(next(every)) if a != b else 0.0 for b in range(4)] for a in range(4)]
        )

    names, backlog = ["A", "B", "C", "D"], [90, 70, 50, 0]
    problem = dc.Problem.from_matrix(names, matrix(planned), backlog, "D")
    truth = dc.Problem.from_matrix(names, matrix(found), backlog, "D")
    plan = dc.coordinated(problem, chunk_s=0.0)
    links = np.arange(problem.n_links)
    factors = (truth.bandwidth_bytes_per_s / problem.bandwidth_bytes_per_s)[:1]
    (taken_s,) = FixedPlan(problem, plan).makespans_s(links, factors)
    simulated_s = simulate_problem(problem, AsapController(plan), truth=truth).makespan_s
    # Fair shares are not those that end soonest, but each byte crosses the fullest link in both.
    assert taken_s <= simulated_s * (1 + 1e-6)
    assert simulated_s <= 1.6 * taken_s


@pytest.mark.parametrize("n", [5, 12])
@pytest.mark.parametrize("method", [dc.direct, dc.best_path, dc.coordinated])
def test_a_plan_takes_what_it_promises_where_links_are_as_planned(method, n):
    random = np.random.default_rng(n)
    rates = np.exp(random.normal(0, 1, (n, n))) * MB
    np.fill_diagonal(rates, 0)
    backlog = [*random.integers(MB, 9 * MB, n - 1).tolist(), 0]
    names = [f"h{i}" for i in range(n)]
    problem = dc.Problem.from_matrix(names, rates, backlog, names[-1], uplink_bytes_per_s=2.0 * MB)
    plan = method(problem)
    assert taken(problem, plan) == pytest.approx(plan.makespan_s, rel=1e-6)


@pytest.fixture
def unequal() -> dc.Problem:
    """D receives 6 of 10 MB/s; T has its data after 10 s: the plan divides D's line unequally."""
    tree = {
        "destination": "D",
        "hosts": {
            "S": {"backlog_bytes": 100 * MB},
            "T": {"backlog_bytes": 100 * MB, "release_s": 10},
            "D": {"downlink_bytes_per_s": 6 * MB},
        },
        "links": [
            {"from": a, "to": b, "bandwidth_bytes_per_s": 5 * MB} for a, b in ("SD", "TD", "ST")
        ],
    }
    return dc.Problem.from_dict(tree)


def test_a_plan_that_divides_a_line_unequally_takes_what_it_promises(unequal):
    """200 MB at 6 MB/s: 33.3 s. A line of 10 s at 5 MB/s would leave 150 MB for 6 MB/s: 35 s."""
    plan = dc.coordinated(unequal, chunk_s=0.0)
    assert taken(unequal, plan) == pytest.approx(plan.makespan_s, rel=1e-6)


def test_a_little_noise_costs_little_where_a_line_is_divided_unequally(unequal):
    """Links with 1 % less: at the most 1 % longer, and no sooner than planned."""
    plan = dc.coordinated(unequal, chunk_s=0.0)
    found = taken(unequal, plan, S_D=0.99, T_D=0.99, S_T=0.99)
    assert plan.makespan_s * (1 - 1e-6) <= found <= plan.makespan_s / 0.99 * (1 + 1e-6)
    # The line of D is what binds in the end, and is no faster with faster links.
    assert taken(unequal, plan, S_D=2.0, T_D=2.0, S_T=2.0) >= 200 / 6 * (1 - 1e-6)


def test_in_step_the_next_opening_is_waited_for():
    """5 bytes/s open for 2 s in 10: at half of it 10 bytes take a second opening, of 2 s."""
    links = [[[0, rate], [0, 0]] for rate in (5.0, 0.0, 5.0)]
    problem = dc.Problem.from_matrix(["S", "D"], links, [10, 0], "D", periods_s=[0, 2, 10])
    plan = dc.coordinated(problem)
    assert taken(problem, plan) == pytest.approx(2.0)
    assert taken(problem, plan, S_D=0.5) == pytest.approx(12.0)
    assert taken(problem, plan, S_D=0.0) == math.inf


@pytest.mark.slow
def test_the_sites_take_what_is_promised_where_links_are_as_planned(tmp_path):
    """Hours, windows, releases, uplinks and files of the example: 1 % less costs about 1 %."""
    for name, text in example_files("sites").items():
        (tmp_path / name).write_text(text)
    listed = dc.Problem.from_file(tmp_path / "sites.toml")
    problem, plan = planned_to_the_end(listed, dc.coordinated, lambda found: found.makespan_s)
    fixed = FixedPlan(problem, plan)
    factors = np.array([[1.0], [0.99]]).repeat(len(fixed.links), axis=1)
    as_planned_s, slower_s = fixed.makespans_s(fixed.links, factors)
    assert as_planned_s == pytest.approx(plan.makespan_s, rel=1e-6)
    assert plan.makespan_s < slower_s < 1.02 * plan.makespan_s
