"""At most so many transfers at once at each host."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from instances.hand_made import links
from instances.small_problems import MB, relay
from instances.strategies import problems

import datacollect as dc
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem


def at_once(plan: dc.Schedule) -> int:
    """Most transfers that overlap at any host, counted pair by pair; touching ends do not."""
    most, rows = 0, plan.transfers
    margin_s = 1e-9 * plan.makespan_s
    for host in {*rows["from"], *rows["to"]}:
        own = rows[(rows["from"] == host) | (rows["to"] == host)]
        starts, ends = own["start_s"].to_numpy(), own["finish_s"].to_numpy()
        for start_s in starts:
            running = (starts <= start_s + margin_s) & (ends > start_s + 2 * margin_s)
            most = max(most, int(running.sum()))
    return most


def star(n_sources: int, **destination) -> Problem:
    """Sources with 1 MB each, at 1 MB/s each."""
    names = [f"S{i}" for i in range(n_sources)]
    return Problem.from_hosts(
        [*(Host(name, MB) for name in names), Host("D", **destination)],
        links(", ".join(f"{name} -> D 1e6" for name in names)),
        "D",
    )


def test_sources_take_turns():
    """Six times 1 s, two at a time: 3 s, where all at once take 1."""
    plan = dc.coordinated(star(6), most_transfers=2)
    plan.check(star(6))
    assert at_once(plan) == 2
    assert plan.makespan_s == pytest.approx(3.0)
    assert plan.lower_bound_s == pytest.approx(1.0)
    assert plan.gap == pytest.approx(2.0)
    assert (plan.status, plan.most_transfers) == ("heuristic", 2)


def test_turns_cost_nothing_where_the_destination_binds():
    """Two at a time fill D's 2 MB/s as six do."""
    problem = star(6, downlink_bytes_per_s=2e6)
    plan = dc.coordinated(problem, most_transfers=2)
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(plan.lower_bound_s) == pytest.approx(3.0)


def test_a_plan_that_keeps_to_the_limit_stays_as_it_is():
    """S and D have two transfers at once, K has two."""
    plan = dc.coordinated(relay(), most_transfers=2)
    assert plan.transfers.equals(dc.coordinated(relay()).transfers)
    assert plan.status == "optimal"


def test_one_at_a_time_leaves_relays_out():
    """relay(): 6 MB directly at 1 MB/s, since a relay sends while it receives."""
    plan = dc.coordinated(relay(), most_transfers=1)
    plan.check(relay())
    assert at_once(plan) == 1
    assert plan.makespan_s == pytest.approx(6.0)


def test_few_wide_ways_into_the_destination_are_better_than_turns_on_narrow_ones():
    """Four sources with 2 MB and 0.1 MB/s of their own, and K with 4 MB/s.

    D takes one transfer besides K's: all but next to nothing goes over K, one source at a time
    (K has two transfers at once, then), 2 s.
    """
    names = [f"S{i}" for i in range(4)]
    problem = Problem.from_hosts(
        [*(Host(name, 2 * MB) for name in names), Host("K"), Host("D")],
        links(", ".join([f"{s} -> D 1e5, {s} -> K 4e6" for s in names] + ["K -> D 4e6"])),
        "D",
    )
    plan = dc.coordinated(problem, most_transfers=2)
    plan.check(problem)
    assert at_once(plan) <= 2
    assert plan.makespan_s <= 2.02


def test_where_data_need_relays_one_at_a_time_is_not_possible():
    problem = Problem.from_hosts(
        [Host("S", MB), Host("K"), Host("D")], links("S -> K 1e6, K -> D 1e6"), "D"
    )
    with pytest.raises(dc.InfeasibleError, match="most_transfers = 1 was found: relays need two"):
        dc.coordinated(problem, most_transfers=1)


def test_a_deadline_that_turns_miss_is_said():
    with pytest.raises(dc.InfeasibleError, match="the best ends at 3 s"):
        dc.coordinated(star(6), most_transfers=2, deadline_s=2.0)
    assert dc.coordinated(star(6), most_transfers=2, deadline_s=3.5).deadline_s == 3.5


@pytest.mark.parametrize("value", [0, -1, 1.5, np.int64(0), "2"])
def test_limits_are_whole_numbers(value):
    with pytest.raises(dc.ProblemError, match="most_transfers must be a whole number >= 1, got"):
        dc.coordinated(relay(), most_transfers=value)


def test_a_truth_value_is_no_limit():
    with pytest.raises(dc.ProblemError, match="most_transfers must be a number, got True"):
        dc.coordinated(relay(), most_transfers=True)


def test_slots_know_no_limit_of_transfers():
    with pytest.raises(dc.ProblemError, match="most_transfers is for pipelined plans"):
        dc.coordinated(relay(), most_transfers=2, slot_s=1.0)


@given(problem=problems(large=True), most=st.integers(1, 4), chunk_s=st.sampled_from([None, 0.0]))
@settings(suppress_health_check=list(HealthCheck))
def test_plans_are_valid_and_keep_to_the_limit(problem, most, chunk_s):
    try:
        free = dc.coordinated(problem, chunk_s=chunk_s)
    except dc.InfeasibleError:
        assume(False)
    try:
        plan = dc.coordinated(problem, chunk_s=chunk_s, most_transfers=most)
    except dc.InfeasibleError as error:
        assert f"no plan with most_transfers = {most}" in str(error)  # noqa: PT017 - either is right
        return
    plan.check(problem)
    assert at_once(plan) <= most
    assert plan.lower_bound_s == free.lower_bound_s
    assert plan.makespan_s >= plan.lower_bound_s * (1 - 1e-6)


def test_a_byte_that_a_fast_plan_sends_elsewhere_is_no_transfer_of_its_own():
    """Without the limit one of H1's bytes goes over H2; over one link all of them are one range."""
    hosts = [dc.Host("D"), dc.Host("H1", 10**12), dc.Host("H2", 10**12, release_s=1.0)]
    links = [
        dc.Link("H1", "D", (0.0, 1e12)),
        dc.Link("H1", "H2", (2e12, 0.0)),
        dc.Link("H2", "D", (2e12, 1e12)),
        dc.Link("H2", "H1", (0.0, 1e12)),
    ]
    problem = dc.Problem.from_hosts(hosts, links, "D", periods_s=[0.0, 1.0])
    plan = dc.coordinated(problem, most_transfers=1)
    plan.check(problem)
    assert at_once(plan) == 1
    assert plan.makespan_s == pytest.approx(3.0)


def test_bytes_that_rounding_moves_keep_to_the_limit_too():
    """Whole bytes cut H1's direct range in two, a thousand bytes beside the rest."""
    hosts = [dc.Host("D"), dc.Host("H1", 3 * 10**12), dc.Host("H2", 10**12), dc.Host("H3")]
    links = [
        dc.Link("H1", "D", (1e12, 2e12)),
        dc.Link("H1", "H2", (1e12, 1e12)),
        dc.Link("H2", "D", (0.0, 3e12)),
        dc.Link("H2", "H3", (0.0, 0.0)),
    ]
    wire = dc.SharedBottleneck("wire", 1e12, [("H2", "H3")])
    problem = dc.Problem.from_hosts(hosts, links, "D", periods_s=[0.0, 1.0], shared=[wire])
    plan = dc.coordinated(problem, chunk_s=0.0, most_transfers=3)
    plan.check(problem)
    assert at_once(plan) <= 3


def test_larger_meshes_have_small_gaps():
    """A dozen sources in a mesh of 30 hosts whose destination binds, eight at once."""
    rng = np.random.default_rng(1)
    backlog = np.where((np.arange(30) % 2 == 1) & (np.arange(30) < 24), 10**9, 0)
    problem = Problem.from_matrix(
        [f"h{i}" for i in range(30)], rng.lognormal(1.0, 0.5, (30, 30)) * MB, backlog, "h0"
    )
    limit = np.full(30, np.inf)
    limit[0] = 16 * MB
    problem = problem.replace(downlink_bytes_per_s=limit)
    plan = dc.coordinated(problem, most_transfers=8)
    plan.check(problem)
    assert at_once(plan) <= 8
    assert plan.gap < 0.25
