"""Earliest arrival with shared bottlenecks: the most by one instant after the other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from instances.hand_made import links
from instances.shared_problems import shared_problems
from instances.small_problems import MB
from judges.oracle import least_cost, most_arrived_bytes
from judges.plan_values import arrived_bytes

import datacollect as dc
from datacollect.flow.network.layered import breakpoints_s, with_room_for_returns
from datacollect.flow.shared.arrivals import GRID, grid_s
from datacollect.problem.hosts import Host, SharedBottleneck
from datacollect.problem.problem import Problem


def early_or_soon() -> Problem:
    """A's 8 MB at 1 MB/s, or over K; B's 4 MB at 2 MB/s, by a wire of 2 MB/s.

    A -> K and K -> D are both on the wire, which B -> D shares: a byte over K takes room of two.
    """
    return Problem.from_hosts(
        [Host("A", 8 * MB), Host("B", 4 * MB), Host("K"), Host("D")],
        links("A -> D 1e6, A -> K 2e6, K -> D 2e6, B -> D 2e6"),
        "D",
        shared=[SharedBottleneck("wire", 2e6, [("A", "K"), ("K", "D"), ("B", "D")])],
    )


def test_what_comes_first_does_not_delay_the_end(linear_solver):
    """A's own link and half of the wire carry 2 MB/s, or B's beside A's 3 MB/s: B first.

    By T: 8 = T + x and x over K take 2 x of the wire, 4 of it B: 2 T = 2 (8 - T) + 4 gives T = 5.
    While B fills the wire, 3 MB/s arrive; that lasts for 2 s. Then A's 2 MB/s.
    """
    problem = early_or_soon()
    plan = dc.coordinated(problem, prefer="earliest-arrival", chunk_s=0.0, solver=linear_solver)
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(5.0, rel=1e-6)
    for k in range(1, GRID + 1):
        time_s = 5.0 * k / GRID
        arrived = min(3 * time_s, 6 + 2 * (time_s - 2)) * MB
        on_grid = min(3 * 1.875, 3 * time_s) * MB  # the bend lies between two instants
        assert min(arrived, on_grid) * (1 - 1e-6) <= arrived_bytes(plan, time_s)
        assert arrived_bytes(plan, time_s) <= arrived * (1 + 1e-6)
    by_default = dc.coordinated(problem, chunk_s=0.0, solver=linear_solver)
    assert arrived_bytes(plan, 1.875) == pytest.approx(3 * 1.875 * MB, rel=1e-6)
    assert arrived_bytes(by_default, 1.875) < 0.9 * 3 * 1.875 * MB


def test_default_chunks_cost_next_to_nothing():
    """There are fifteen changes more, at which pipelines drain."""
    problem = early_or_soon()
    plan = dc.coordinated(problem, prefer="earliest-arrival")
    plan.check(problem)
    assert 0 < plan.chunk_s < 0.005 / 15
    assert plan.makespan_s <= 1.003 * 5.0


def test_the_grid_has_each_instant_once():
    starts = np.array([0.0, 2.0 + 1e-12, 2.5])
    assert len(grid_s(starts, 16.0)) == GRID + 1


def released_over_a_wire_crossed_twice() -> Problem:
    """S's megabyte passes a wire to K and on to D; both links are there from second 2 on."""
    late = [0.0, 0.0, MB + 3.0]
    wire = SharedBottleneck("wire", (MB + 3) / 24, [("S", "K"), ("K", "D")])
    flows = [dc.Link("S", "K", late), dc.Link("K", "D", late)]
    hosts = [Host("S", MB + 3), Host("K"), Host("D")]
    return Problem.from_hosts(hosts, flows, "D", shared=[wire], periods_s=[0.0, 1.0, 2.0])


def slack_of(problem: Problem, plan: dc.Schedule) -> float:
    """Return what whole bytes may cost: more where a route takes the room of two on some wire."""
    hops = [set(pairwise(route.hosts)) for route in plan.routes]
    is_twice = any(len(mine & set(wire.links)) > 1 for mine in hops for wire in problem.shared)
    return 1.1e-5 if is_twice else 1e-6


@pytest.mark.slow
@example(problem=released_over_a_wire_crossed_twice())
@given(problem=shared_problems(most_hosts=3))
@settings(suppress_health_check=list(HealthCheck))
def test_the_first_instants_are_best_in_their_order(problem):
    assume(problem.total_bytes >= 10**6 and with_room_for_returns(problem) is None)
    try:
        plan = dc.coordinated(problem, prefer="earliest-arrival", chunk_s=0.0)
    except dc.InfeasibleError:
        assume(False)
    plan.check(problem)
    end_s, slack = plan.lower_bound_s, slack_of(problem, plan)
    assert plan.makespan_s <= end_s * (1 + slack)
    late_bytes = {}
    for time_s in grid_s(breakpoints_s(problem), end_s)[1:3].tolist():
        if time_s >= end_s:
            break
        least = least_cost(problem, f"arrived by {time_s!r}", end_s * (1 + 1e-9), late_bytes)
        late = problem.total_bytes - arrived_bytes(plan, time_s)
        assert late == pytest.approx(least, abs=2 * slack * problem.total_bytes)
        assert late >= problem.total_bytes * (1 - 2 * slack) - most_arrived_bytes(problem, time_s)
        late_bytes[time_s] = least * (1 + 1e-9)


def twice_over_the_wire(n_bytes: int, bandwidth_bytes_per_s: float) -> Problem:
    """S's data pass a wire on the way to K, and once more on the way to D."""
    hosts = [Host("S", n_bytes, release_s=1.0), Host("K"), Host("D")]
    flows = links(f"S -> K {3 * bandwidth_bytes_per_s}, K -> D {bandwidth_bytes_per_s}")
    wire = SharedBottleneck("wire", bandwidth_bytes_per_s, [("S", "K"), ("K", "D")])
    return Problem.from_hosts(hosts, flows, "D", shared=[wire])


@pytest.mark.parametrize("n_bytes", [1, 2, 3, 10, 1000, 10**6 + 1])
def test_what_rounding_forbids_ends_no_later_for_it(n_bytes):
    """Half of the wire's 2 bytes/s are S's: behind second 1 it takes a second for each byte."""
    problem = twice_over_the_wire(n_bytes, 2.0)
    plan = dc.coordinated(problem, prefer="earliest-arrival", chunk_s=0.0)
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(1 + n_bytes, rel=1.1e-5)
    assert plan.prefer == "earliest-arrival"
