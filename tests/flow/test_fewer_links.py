"""Fewer links at the same cost: as early, by the first wish as good, with fewer routes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from instances.small_problems import MB
from instances.strategies import FEATURES, problems
from judges.oracle import least_cost
from judges.plan_values import arrived_bytes, cost_of

import datacollect as dc
from datacollect.flow.network import fewer_links
from datacollect.flow.network.few_arcs import SupplyNetwork
from datacollect.flow.network.fewer_links import ArcCosts, on_fewer_links
from datacollect.flow.network.layered import with_room_for_returns
from datacollect.flow.quickest import cheapest
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


def two_pieces_of_parallel_links(n_links: int) -> tuple[SupplyNetwork, np.ndarray]:
    """A node in each of two pieces, as many links of 4 units to the sink in each, no storage."""
    tail = np.repeat([0, 1], n_links)
    network = SupplyNetwork(
        n_nodes=3,
        sink=2,
        tail=tail,
        head=np.full(2 * n_links, 2),
        capacity=np.full(2 * n_links, 4),
        supply=np.array([4 * n_links // 2, 4 * n_links // 2, 0]),
    )
    return network, np.tile(np.arange(n_links), 2)


def test_links_of_one_piece_serve_the_other(solver):
    """40 links, of which each piece fills 20: other ones, though the same would do.

    Those 40 carry alike; 30 suffice, then 25, 22, since at least 20 must.
    """
    network, link = two_pieces_of_parallel_links(40)
    flow = np.repeat([4, 0, 0, 4], 20)
    same = np.ones(80, dtype=np.int64)
    found = on_fewer_links(network, link, ArcCosts(same, 1), Budget(solver), flow)
    assert found[:40].sum() == found[40:].sum() == 80
    assert len(np.unique(link[found > 0])) <= 22


def test_what_costs_more_is_not_taken(solver):
    """The last half of the links is dearer in the second piece, and the first half in the first."""
    network, link = two_pieces_of_parallel_links(40)
    flow = np.repeat([4, 0, 0, 4], 20)
    cost = np.repeat([1, 2, 2, 1], 20)
    found = on_fewer_links(network, link, ArcCosts(cost, 1), Budget(solver), flow)
    assert found.tolist() == flow.tolist()


def changing(seed: int) -> Problem:
    """Thirty hosts, half of which send, and bandwidths unlike those before."""
    rng = np.random.default_rng(seed)
    bandwidth = rng.lognormal(0.0, 1.0, (12, 30, 30)) * MB
    backlog = np.where(np.arange(30) % 2, 3e10, 0.0)
    names = [f"h{i}" for i in range(30)]
    periods_s = np.arange(12) * 600.0
    return Problem.from_matrix(names, bandwidth, backlog, "h0", periods_s=periods_s)


@pytest.mark.parametrize("prefer", ["relay-bytes", "earliest-arrival"])
def test_many_periods_need_fewer_routes(prefer, monkeypatch):
    problem = changing(0)
    with monkeypatch.context() as patch:
        patch.setattr(cheapest, "on_fewer_links", lambda *arguments: arguments[-1])
        before = dc.coordinated(problem, prefer=prefer, chunk_s=0.0)
    plan = dc.coordinated(problem, prefer=prefer, chunk_s=0.0)
    plan.check(problem)
    assert plan.n_routes < 0.8 * before.n_routes
    assert plan.makespan_s == pytest.approx(plan.lower_bound_s, rel=1e-9)
    if prefer == "relay-bytes":
        cost = cost_of(problem, before, prefer)
        assert cost_of(problem, plan, prefer) == pytest.approx(cost, rel=1e-6)
        return
    for time_s in np.arange(0.1, 1.0, 0.1) * plan.makespan_s:
        arrived = arrived_bytes(before, time_s)
        assert arrived_bytes(plan, time_s) == pytest.approx(arrived, rel=1e-6)


@given(problem=problems(features=FEATURES - {"shared"}, large=True))
@settings(suppress_health_check=list(HealthCheck))
def test_nothing_is_lost_on_small_problems_either(problem):
    """Where links are never too few to try: ends and relayed bytes are least all the same."""
    assume(problem.total_bytes and with_room_for_returns(problem) is None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fewer_links, "FEW", 0)
        try:
            plan = dc.coordinated(problem, chunk_s=0.0)
        except dc.InfeasibleError:
            assume(False)
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(plan.lower_bound_s, rel=1e-6)
    least = least_cost(problem, "relay-bytes", plan.lower_bound_s * (1 + 1e-9))
    cost = cost_of(problem, plan, "relay-bytes")
    assert cost <= least * (1 + 1e-6) + 1e-6 * problem.total_bytes
