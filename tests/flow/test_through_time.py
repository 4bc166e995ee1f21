"""Paths through many pieces of time: every unit arrives, and nothing is walked over."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from instances.arc_flows import network_of

import datacollect as dc
from datacollect.flow.network.few_arcs import cheapest_flow
from datacollect.flow.network.layered import NO_LINK, breakpoints_s
from datacollect.flow.quickest.quickest import quickest
from datacollect.flow.routes import short_chains
from datacollect.flow.routes.short_chains import short_paths
from datacollect.flow.routes.through_time import paths_through_time
from datacollect.solvers.budget import Budget

SEEDS = range(12)


def many_pieces(seed):
    """A few hosts whose rates change some hundred times; some store little, some have limits."""
    rng = np.random.default_rng(seed)
    n_hosts, n_periods = int(rng.integers(3, 7)), 100
    shape = (n_periods, n_hosts, n_hosts)
    bandwidth = rng.integers(1, 9, shape) * (rng.random(shape) < 0.5)
    bandwidth[-1] = 1.0
    backlog = rng.integers(50, 900, n_hosts) * (np.arange(n_hosts) > 0)
    return dc.Problem.from_matrix(
        [f"h{i}" for i in range(n_hosts)],
        bandwidth.astype(float),
        backlog,
        "h0",
        periods_s=np.arange(n_periods),
        storage_bytes=rng.choice([5.0, 40.0, np.inf], n_hosts),
        uplink_bytes_per_s=rng.choice([6.0, np.inf], n_hosts),
        downlink_bytes_per_s=rng.choice([9.0, np.inf], n_hosts),
        release_s=rng.choice([0.0, 7.0], n_hosts),
    )


def network_and_flow(problem):
    found = quickest(problem, breakpoints_s(problem), 0.0, Budget().flow_solver())
    network = found.network
    hops, every = (network.link != NO_LINK).astype(np.int64), np.ones(network.n_arcs, dtype=bool)
    supplied = found.scaled.supplied(found.lengths_s)
    return network, cheapest_flow(supplied, hops, Budget().flow_solver(), every)


@pytest.mark.parametrize("seed", SEEDS)
def test_paths_carry_what_flows_over_every_link_in_every_piece(seed):
    problem = many_pieces(seed)
    network, flow = network_and_flow(problem)
    paths = paths_through_time(network, flow)
    over = Counter()
    for path in paths:
        pool = network.pools[path.pool]
        assert path.hosts[0] == pool.host
        assert path.hosts[-1] == network.sink
        assert network.starts_s[path.pieces[0]] >= pool.release_s
        assert list(path.pieces) == sorted(path.pieces)
        for (tail, head), piece in zip(pairwise(path.hosts), path.pieces, strict=True):
            over[problem.link_indices([tail], [head])[0], piece] += path.amount
    links = np.flatnonzero((network.link != NO_LINK) & (flow > 0))
    assert over == {(network.link[arc], network.piece[arc]): flow[arc] for arc in links.tolist()}
    assert [path.pool for path in paths] == sorted(path.pool for path in paths)


@pytest.mark.parametrize("seed", SEEDS)
def test_plans_of_either_kind_of_paths_are_valid_and_end_alike(seed, monkeypatch):
    """The end differs by what pipelines of other lengths drain, 0.2 % in all at most."""
    problem = many_pieces(seed)
    ends_s = []
    for most in (0, 10**9):
        monkeypatch.setattr(short_chains, "MOST_WALKED", most)
        plan = dc.coordinated(problem)
        plan.check(problem)
        ends_s.append(plan.makespan_s)
    assert ends_s[0] == pytest.approx(ends_s[1], rel=0.003)


def test_many_pieces_are_not_walked_over(monkeypatch):
    network, flow = network_and_flow(many_pieces(0))
    monkeypatch.setattr(short_chains, "decompose", pytest.fail)
    assert sum(path.amount for path in short_paths(network, flow)) > 0


def test_what_goes_round_in_one_piece_is_walked_over():
    """A cycle A -> K -> A of 2 besides 3 from A over K to D."""
    _, network = network_of("A -> K 1, K -> A 1, K -> D 1", backlogs="A")
    units = np.zeros(network.n_arcs, dtype=np.int64)
    ends = zip(network.tail.tolist(), network.head.tolist(), strict=True)
    hosts = {pool.host for pool in network.pools}
    for arc, (tail, head) in enumerate(ends):
        units[arc] = 3 if head == network.sink else 5 if tail in hosts else 2
    assert paths_through_time(network, units) is None
