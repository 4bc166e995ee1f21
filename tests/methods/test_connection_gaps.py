"""Plans with connections against an independent program that tries all numbers."""

import math

import numpy as np
import pytest
from instances.connection_problems import crowded
from instances.how_many import many
from judges.best_connections import SAME, Small, soonest_s
from judges.contract_check import judge

import datacollect as dc
from datacollect.methods.connections import whole_numbers


def planned(problem, connections, **options):
    """A plan that both judges accept, or None where there is none."""
    try:
        plan = dc.coordinated(problem, connections=connections, **options)
    except dc.InfeasibleError:
        return None
    plan.check(problem)
    assert judge(problem.to_dict(), plan.to_dict()) is None
    return plan


def compared(seed, most):
    """Compare a plan with the best, direct, and the plan with one connection less."""
    problem, connections = crowded(seed)
    tree = problem.to_dict()
    plan = planned(problem, connections, chunk_s=0.0)
    if plan is None:
        assert math.isinf(soonest_s(tree, connections))
        return
    best_s = soonest_s(tree, connections, known_s=plan.makespan_s)
    is_exact = plan.solver.startswith("all numbers tried")
    assert plan.makespan_s <= best_s * (1 + 1e-6 if is_exact else most)
    assert plan.lower_bound_s <= best_s * (1 + 1e-6)
    later = planned(problem, connections)
    assert later.makespan_s <= soonest_s(tree, connections, hops=1) * (1 + 1e-6)
    ends = problem.link_indices(
        [problem.host_index[s] for s in problem.sources],
        [problem.destination_index] * len(problem.sources),
    )
    if (ends >= 0).all() and problem.most_connections is None:
        assert later.makespan_s <= dc.direct(problem).makespan_s * (1 + 1e-6)
    fewer = planned(problem, connections - 1) if connections > 1 else None
    if fewer is not None:
        assert later.makespan_s <= fewer.makespan_s * (1 + 1e-6)


@pytest.mark.slow
def test_no_numbers_are_better_nor_direct_nor_fewer_connections():
    for seed in range(10_000, 10_000 + many(400)):
        compared(seed, most=1.10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + many(40)))
def test_what_is_searched_is_near_the_best(seed, monkeypatch):
    """As in problems with too many numbers to try."""
    monkeypatch.setattr(whole_numbers, "MOST_ALLOCATIONS", 0)
    compared(seed, most=1.10)


@pytest.mark.parametrize("seed", [0, 5, 9, 13, 18, 24, 33, 41])
def test_the_judge_misses_nothing(seed):
    """A linear program for each of all numbers, without its bounds; four connections."""
    problem, _ = crowded(seed)
    small = Small(problem.to_dict(), 4)
    rows = small.numbers()
    caps = small.caps(rows)
    reached = caps[np.isfinite(small.alone_s(caps))] if len(rows) else caps
    ends = [small.best_of(row) for row in reached]
    found = soonest_s(problem.to_dict(), 4)
    assert found == pytest.approx(min(ends, default=math.inf), rel=2 * SAME)


def test_constant_capacities_are_divided_as_is_best_while_numbers_are_sought():
    """By hand: D takes 3000 bytes/s in all, 11 000 bytes last 3.667 s.

    S1 needs six of seven connections of 500 bytes/s for its 10 000 bytes, S0 one.
    """
    links = [
        dc.Link("S0", "D", 2500.0, per_connection_bytes_per_s=2500.0),
        dc.Link("S1", "D", 500.0, per_connection_bytes_per_s=500.0),
        dc.Link("S0", "S1", 600.0),
    ]
    hosts = [dc.Host("S0", 1000), dc.Host("S1", 10_000), dc.Host("D", downlink_bytes_per_s=3000.0)]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    assert planned(problem, 7).makespan_s == pytest.approx(11 / 3, rel=1e-6)


def test_ways_are_found_wherever_there_are_any():
    """S0's only connection is for its own data; so S2's pass S1, though S0 is as near."""
    links = [
        dc.Link(*pair.split(), 1e3) for pair in ("S0 S2", "S0 D", "S1 S0", "S1 D", "S2 S0", "S2 S1")
    ]
    hosts = [
        dc.Host("S0", 10_000, most_connections=1),
        dc.Host("S1", 10_000),
        dc.Host("S2", 10_000),
        dc.Host("D"),
    ]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    plan = planned(problem, 4)
    assert ("S2", "S1", "D") in {route.hosts for route in plan.routes}
    with pytest.raises(dc.InfeasibleError, match=r"3 connections do not reach all.*allow 4"):
        dc.coordinated(problem, connections=3)


def test_what_follows_an_end_may_be_faster():
    """50 MB from 0 s and 50 MB from 50 s on through 1 MB/s: as direct does, 100 s.

    At constant rates both would pass together until 131 s.
    """
    links = [dc.Link(s, "D", 1e6) for s in "AB"]
    hosts = [
        dc.Host("A", 50_000_000),
        dc.Host("B", 50_000_000, release_s=50.0),
        dc.Host("D", downlink_bytes_per_s=1e6),
    ]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    assert planned(problem, 2).makespan_s == pytest.approx(100.0)
