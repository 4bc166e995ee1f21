"""Among flows that cost the same, one: the same by every solver, with short pipelines."""

from __future__ import annotations

import numpy as np
import pytest
from explore import ties
from instances.how_many import many

import datacollect as dc
from datacollect.flow.network.ties import settled
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem
from datacollect.solvers.choice import load_flow_solver
from datacollect.solvers.networks import FlowNetwork

# Seeds at which solvers planned ends a chunk or two apart.
ONCE_DIFFERED = (9, 37, 83, 101, 146, 164, 184)


def two_ends():
    """Five sources of which each overflows; ties in hops, of which one has a longer pipeline."""
    backlogs = {
        "a": 207191167,
        "b": 608154465,
        "c": 630090199,
        "d": 298163090,
        "e": 487309215,
    }
    ways = (
        "a d 237, a e 332, a f 433, b c 734, b e 517, b f 173, c b 738, c f 938, d b 2, d c 44, "
        "d e 891, d f 191, e a 773, e c 254, e f 91"
    )
    links = [Link(a, b, float(rate)) for a, b, rate in (way.split() for way in ways.split(", "))]
    hosts = [Host(name, n_bytes) for name, n_bytes in backlogs.items()]
    return Problem.from_hosts([*hosts, Host("f")], links, "f")


def test_every_solver_plans_pipelines_of_two_hops(solver):
    """The lower bound and one chunk of a thousandth; some flows' paths had three hops."""
    plan = dc.coordinated(two_ends(), solver=solver)
    assert max(route.n_hops for route in plan.routes) == 2
    assert plan.makespan_s == pytest.approx(plan.lower_bound_s * 1.001)


@pytest.mark.slow
@pytest.mark.parametrize("seed", ONCE_DIFFERED)
def test_every_solver_plans_the_same_end(seed):
    assert ties.case(seed) is None


@pytest.mark.slow
def test_every_solver_plans_the_same_end_of_many():
    faults = {seed: ties.case(seed) for seed in range(1000, 1000 + many(300))}
    assert {seed: fault for seed, fault in faults.items() if fault} == {}


def test_what_solvers_find_first_stays_to_be_had():
    """Simulated runs plan so: the same solver ends when it did."""
    first = dc.coordinated(two_ends(), solver="networkx", settle_ties=False)
    assert first.makespan_s == pytest.approx(first.lower_bound_s * 1.001)
    others = {
        dc.coordinated(two_ends(), solver=name, settle_ties=False).makespan_s
        for name in ties.installed()
    }
    assert len(others) > 1


def random_network(seed):
    """Arcs of few distinct costs, and what a flow of them supplies."""
    draws = np.random.default_rng(seed)
    n = int(draws.integers(3, 8))
    tail, head = np.nonzero(~np.eye(n, dtype=bool))
    kept = draws.random(len(tail)) < 0.7
    tail, head = tail[kept], head[kept]
    capacity = draws.integers(0, 9, len(tail))
    moved = draws.integers(0, capacity + 1)
    supply = np.zeros(n, dtype=np.int64)
    np.add.at(supply, tail, moved)
    np.subtract.at(supply, head, moved)
    return FlowNetwork(n, tail, head, capacity, draws.integers(0, 3, len(tail))), supply


@pytest.mark.parametrize("seed", range(30))
def test_the_settled_flow_costs_as_much_and_is_the_same_for_all(seed):
    """By networkx, OR-Tools and what else is installed."""
    network, supply = random_network(seed)
    found = []
    for name in ties.installed():
        solver = load_flow_solver(name)
        first = solver.min_cost_flow(network, supply)
        flow = settled(network, first, solver)
        assert (network.cost * flow).sum() == (network.cost * first).sum()
        assert (flow >= 0).all()
        assert (flow <= network.capacity).all()
        out = np.bincount(network.tail, flow, network.n_nodes)
        into = np.bincount(network.head, flow, network.n_nodes)
        assert (out - into == supply).all()
        found.append(flow.tolist())
    assert all(flow == found[0] for flow in found)


def test_who_has_come_far_takes_the_short_way():
    """A's data pass K, whose own fill what they do not need of the link to D, and L's.

    K's 2 MB/s to D carry 1 MB/s of A's; K's own go by L for the rest: two hops each, not three.
    """
    hosts = [Host("A", 2_000_000), Host("K", 4_000_000), Host("L"), Host("D")]
    links = [Link("A", "K", 1e6), Link("K", "D", 2e6), Link("K", "L", 1e6), Link("L", "D", 1e6)]
    plan = dc.coordinated(Problem.from_hosts(hosts, links, "D"), chunk_s=0.01)
    assert {route.hosts for route in plan.routes} == {
        ("A", "K", "D"),
        ("K", "D"),
        ("K", "L", "D"),
    }
    assert plan.makespan_s == pytest.approx(2.01)
