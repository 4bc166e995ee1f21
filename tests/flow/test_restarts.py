"""Cheapest flows that begin where others ended: the same plans, proved by their potentials."""

from __future__ import annotations

import numpy as np
import pytest
from instances.small_problems import MB

import datacollect as dc
from datacollect.flow.network import restarts as restarts_module
from datacollect.flow.network.layered import breakpoints_s, layered_network
from datacollect.flow.network.restarts import Restarted, Restarts
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget
from datacollect.solvers.networks import FlowNetwork

pylmcf = pytest.importorskip("pylmcf")

from datacollect.solvers.lemon import LemonFlow, LemonRestarts  # noqa: E402


def random_flow(rng, n_nodes: int, tail, head):
    """Capacities and costs, and as much to send from node 0 to the last as surely fits."""
    capacity, cost = rng.integers(0, 20, len(tail)), rng.integers(0, 9, len(tail))
    network = FlowNetwork(n_nodes, tail, head, capacity, cost)
    most = int(LemonFlow().max_flow(network, 0, n_nodes - 1)[tail == 0].sum())
    supply = np.zeros(n_nodes, dtype=np.int64)
    supply[0], supply[-1] = most, -most
    return network, supply


def test_a_restarted_flow_is_cheapest_and_proved():
    """Random networks, ten times other capacities and costs each."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        n = int(rng.integers(3, 9))
        pairs = [(a, b) for a in range(n - 1) for b in range(1, n) if a != b]
        kept = rng.random(len(pairs)) < 0.6
        tail, head = np.array([p for p, k in zip(pairs, kept, strict=True) if k] or [(0, n - 1)]).T
        flows = LemonRestarts(n, tail, head)
        for _ in range(10):
            network, supply = random_flow(rng, n, tail, head)
            flow, potential = flows.min_cost_flow(network.capacity, network.cost, supply)
            leaving = np.bincount(tail, flow, n) - np.bincount(head, flow, n)
            assert leaving.tolist() == supply.tolist()
            assert (flow >= 0).all()
            assert (flow <= network.capacity).all()
            reduced = network.cost + potential[tail] - potential[head]
            assert (reduced[flow < network.capacity] >= 0).all()
            assert (reduced[flow > 0] <= 0).all()


def test_after_a_flow_that_is_not_there_the_next_one_is_found():
    tail, head, cost = np.array([0, 1]), np.array([1, 2]), np.array([1, 1])
    flows = LemonRestarts(3, tail, head)
    supply = np.array([4, 0, -4])
    with pytest.raises(dc.InfeasibleError):
        flows.min_cost_flow(np.array([5, 3]), cost, supply)
    assert flows.min_cost_flow(np.array([5, 4]), cost, supply)[0].tolist() == [4, 4]


def changing(seed: int, n_hosts: int = 6, n_periods: int = 40) -> Problem:
    """Bandwidths unlike those before, limits and little storage at some hosts, late releases."""
    rng = np.random.default_rng(seed)
    backlog = np.where(rng.random(n_hosts) < 0.6, rng.integers(50, 200, n_hosts) * MB, 0)
    backlog[0], backlog[-1] = 100 * MB, 0
    storage = rng.choice([0.0, 5.0 * MB, np.inf], n_hosts)
    uplink = np.where(rng.random(n_hosts) < 0.3, 6.0 * MB, np.inf)
    release = np.where(rng.random(n_hosts) < 0.2, 2.5, 0.0)
    return Problem.from_matrix(
        [*(f"H{i}" for i in range(n_hosts - 1)), "D"],
        rng.lognormal(0.0, 1.0, (n_periods, n_hosts, n_hosts)) * MB,
        backlog,
        "D",
        periods_s=2.0 * np.arange(n_periods),
        storage_bytes=storage,
        uplink_bytes_per_s=uplink,
        release_s=np.where(backlog > 0, release, 0.0),
    )


@pytest.mark.parametrize("seed", range(6))
def test_plans_are_the_same_as_without_restarts(monkeypatch, seed):
    monkeypatch.setattr(restarts_module, "FEWEST_ARCS", 1)
    problem = changing(seed)
    restarted, n_flows = dc.coordinated(problem), []
    cheapest = Restarted.cheapest
    monkeypatch.setattr(Restarted, "cheapest", lambda *args: n_flows.append(1) or cheapest(*args))
    dc.coordinated(problem.replace())
    assert n_flows
    monkeypatch.setattr(Restarts, "on", lambda *_: None)
    anew = dc.coordinated(problem.replace())
    assert restarted.to_dict() | {"plan_time_s": 0} == anew.to_dict() | {"plan_time_s": 0}


@pytest.mark.parametrize("seed", range(6))
def test_each_network_is_a_part_of_the_longer_one(monkeypatch, seed):
    """Node for node the same host, arc for arc the same link, rate, room and piece."""
    monkeypatch.setattr(restarts_module, "FEWEST_ARCS", 1)
    problem = changing(seed)
    starts = breakpoints_s(problem)
    restarts = Restarts(problem, starts, Budget())
    for n_pieces in (30, 28, 31):
        network = layered_network(problem, starts[:n_pieces])
        place = restarts.on(network).place
        wide = restarts.wide.network
        assert wide.n_pieces >= n_pieces
        assert len(np.unique(place.nodes)) == network.n_nodes
        assert len(np.unique(place.arcs)) == network.n_arcs
        assert np.array_equal(wide.node_host[place.nodes], network.node_host)
        assert np.array_equal(wide.tail[place.arcs], place.nodes[network.tail])
        for column in ("link", "piece", "rate_bytes_per_s", "room_bytes", "stored"):
            assert np.array_equal(getattr(wide, column)[place.arcs], getattr(network, column))
        assert np.array_equal(place.nodes[network.pool_nodes], wide.pool_nodes)


def test_own_data_wait_at_one_node_for_all_time():
    """Networks grow by a node for each host and piece, and stay shallow: no chain of own data."""
    problem = changing(0)
    starts = breakpoints_s(problem)
    network = layered_network(problem, starts)
    for pool in network.pools:
        leaving = np.flatnonzero(network.tail == pool.node)
        assert network.is_apart(pool.node)
        assert not (network.head == pool.node).any()
        assert np.isinf(network.rate_bytes_per_s[leaving]).all()
        assert not network.stored[leaving].any()
        first = int(np.searchsorted(starts, pool.release_s))
        assert network.piece[leaving].tolist() == list(range(first, len(starts)))
        hosts = pool.host + network.piece[leaving] * problem.n_hosts
        assert network.head[leaving].tolist() == hosts.tolist()
