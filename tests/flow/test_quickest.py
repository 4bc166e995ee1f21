"""The earliest end over pieces of time: which pieces, who is to blame, what it takes at least."""

from __future__ import annotations

import numpy as np
import pytest
from instances.hand_made import links

import datacollect as dc
from datacollect.flow.network.layered import NO_LINK, breakpoints_s, layered_network
from datacollect.flow.optimum import fluid_optimum
from datacollect.flow.paths import fluid_paths
from datacollect.flow.quickest import quickest as module
from datacollect.methods.coordinated import draining as method
from datacollect.methods.timing.pipeline import longest_pipeline
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


def relayed(**hosts):
    """S -> K -> D with 2 bytes/s, S -> D with 1 byte/s; from 2 s on twice as much. 12 bytes.

    By 2 s 6 bytes can have arrived, of which K must pass on 4 as they come; 6 more take 1 s.
    """
    return Problem.from_hosts(
        [
            Host(name, **({"backlog_bytes": 12 * (name == "S")} | hosts.get(name, {})))
            for name in "SKD"
        ],
        links("S -> K 2 4, K -> D 2 4, S -> D 1 2"),
        "D",
        periods_s=[0.0, 2.0],
    )


def found_by_newton(problem):
    return fluid_optimum(problem, Budget()).quickest


def test_a_filled_link_of_a_host_without_data_takes_two_hops_at_once():
    found = found_by_newton(relayed())
    assert found.makespan_s == pytest.approx(3.0)
    assert found.passes_on_at_once


def test_nothing_is_said_where_the_relay_has_data_or_its_link_need_not_be_filled():
    """K's own 2 bytes may be what leaves it. Or S's links bind, by 1 byte/s to K: not K's."""
    assert not found_by_newton(relayed(K={"backlog_bytes": 2})).passes_on_at_once
    tight = Problem.from_hosts(
        [Host("S", 12), Host("K"), Host("D")],
        links("S -> K 1 2, K -> D 2 4, S -> D 1 2"),
        "D",
        periods_s=[0.0, 2.0],
    )
    assert not found_by_newton(tight).passes_on_at_once


def test_plans_begin_with_the_hops_that_they_cannot_do_without(monkeypatch):
    """One chunk is kept free in the first period, and nothing is planned without."""
    guards = []

    def watched(problem, optimum, guard_s, *rest):
        guards.append(guard_s)
        return fluid_paths(problem, optimum, guard_s, *rest)

    monkeypatch.setattr(method, "fluid_paths", watched)
    problem = relayed()
    plan = dc.coordinated(problem, chunk_s=0.1)
    plan.check(problem)
    assert guards == [0.1]
    # 5.7 bytes by 1.9 s, 6.3 more at 6 bytes/s from 2 s on, the last of them a chunk later.
    assert plan.makespan_s == pytest.approx(2.0 + 6.3 / 6 + 0.1)


def forecast(rng):
    """Up to 7 hosts, half of the links in each of 3 periods; some are never relays, or hold data.

    Periods are so short that most collections last for longer than two.
    """
    n = int(rng.integers(3, 8))
    bandwidth = rng.integers(1, 9, (3, n, n)) * (rng.random((3, n, n)) < 0.5) * 1e6
    bandwidth[2, :, 0] = 1e6  # all can arrive
    backlog = np.where(rng.random(n) < 0.4, 40_000_000, 0)
    backlog[:2] = 0, 40_000_000
    return Problem.from_matrix(
        [f"h{i}" for i in range(n)],
        bandwidth,
        backlog,
        "h0",
        periods_s=[0.0, 3.0, 6.0],
        storage_bytes=rng.choice([0.0, 1e7, np.inf], n),
    )


def test_no_fastest_plan_does_with_a_hop_where_two_are_said_to_be_needed():
    rng = np.random.default_rng(0)
    n_said = 0
    for _ in range(150):
        problem = forecast(rng)
        optimum = fluid_optimum(problem, Budget())
        if optimum.quickest.passes_on_at_once:
            n_said += 1
            for prefer in ("relay-bytes", "storage"):
                plan = fluid_paths(problem, optimum, 0.0, Budget(), prefer)
                assert longest_pipeline(plan) >= 2
    assert n_said >= 10


def test_what_is_known_of_a_problem_changes_no_end():
    """Neither with more pieces of time, nor with shorter ones."""
    rng = np.random.default_rng(1)
    solver = Budget().flow_solver()
    for _ in range(60):
        problem = forecast(rng)
        known = fluid_optimum(problem, Budget()).quickest.scaled
        for guard_s in (0.0, 0.25):
            starts = np.union1d(breakpoints_s(problem), rng.uniform(0.5, 12.0, 2))
            alone = module.quickest(problem, starts, guard_s, solver)
            informed = module.quickest(problem, starts, guard_s, solver, known)
            assert informed.makespan_s == pytest.approx(alone.makespan_s, rel=1e-12)


def test_a_cut_that_binds_where_pieces_are_longer_changes_no_end():
    """40 periods of 2 s, of which each loses up to 0.4 s: the end is in a later one, too."""
    rng = np.random.default_rng(0)
    n_later = 0
    for _ in range(40):
        problem = limited_forecast(rng)
        known = fluid_optimum(problem, Budget()).quickest
        for guard_s in (0.01, 0.4):
            starts, solver = breakpoints_s(problem), Budget().flow_solver()
            alone = module.quickest(problem, starts, guard_s, solver)
            hints = known.scaled, known.cut
            informed = module.quickest(problem, starts, guard_s, solver, *hints)
            assert informed.makespan_s == pytest.approx(alone.makespan_s, rel=1e-9)
            assert informed.network.n_pieces == alone.network.n_pieces
            n_later += alone.network.n_pieces > known.network.n_pieces
    assert n_later >= 20


def limited_forecast(rng):
    """6 hosts, 40 periods; some have limits, storage, or late data."""
    n, n_periods = 6, 40
    backlog = np.where(rng.random(n) < 0.5, 40_000_000, 0)
    backlog[:2] = 0, 60_000_000
    uplink, downlink = (np.where(rng.random(n) < 0.3, 3e6, np.inf) for _ in range(2))
    return Problem.from_matrix(
        [f"h{i}" for i in range(n)],
        rng.lognormal(0.0, 1.0, (n_periods, n, n)) * 1e6,
        backlog,
        "h0",
        periods_s=2.0 * np.arange(n_periods),
        storage_bytes=rng.choice([0.0, 1e7, np.inf], n),
        uplink_bytes_per_s=uplink,
        downlink_bytes_per_s=downlink,
        release_s=np.where((backlog > 0) & (rng.random(n) < 0.3), 3.5, 0.0),
    )


def test_who_is_in_time_is_not_to_blame_where_bandwidth_ends(solver):
    """A's 2 bytes arrive at 1 byte/s by 2 s, B's 10 do not, and nothing arrives later."""
    problem = Problem.from_hosts(
        [Host("A", 2), Host("B", 10), Host("D")],
        links("A -> D 1 0, B -> D 1 0, A -> B 0 1, B -> A 0 1"),
        "D",
        periods_s=[0.0, 2.0],
    )
    with pytest.raises(dc.InfeasibleError) as caught:
        dc.lower_bound(problem, solver=solver)
    assert caught.value.hosts == ("B",)


def test_relays_are_fed_from_the_first_flow_on():
    """60 hosts, 3 periods: each relay has links from hosts with data, the widest of all too."""
    rng = np.random.default_rng(0)
    n, n_sources = 60, 12
    problem = Problem.from_matrix(
        [f"h{i}" for i in range(n)],
        rng.lognormal(0, 1, (3, n, n)) * 1e6,
        np.where((np.arange(n) > 0) & (np.arange(n) <= n_sources), 10**9, 0),
        "h0",
        periods_s=[0.0, 10.0, 20.0],
    )
    network = layered_network(problem, breakpoints_s(problem))
    active = module.promising_arcs(network)
    assert active.sum() < network.n_arcs / 2
    from_source = (network.node_host[network.tail] <= n_sources) & (network.link != NO_LINK)
    relays = np.flatnonzero(network.node_host > n_sources)
    for node in relays:
        into = np.flatnonzero((network.head == node) & from_source)
        if len(into):
            assert active[into].sum() > 1
            assert active[into[np.argmax(network.rate_bytes_per_s[into])]]
