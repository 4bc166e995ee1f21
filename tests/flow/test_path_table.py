"""Paths as columns: the same paths, flows followed at once, and whole bytes."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given
from instances.arc_flows import flow_on, network_of
from instances.strategies import FEATURES, problems

from datacollect.flow.network.few_arcs import cheapest_flow
from datacollect.flow.network.layered import NO_LINK, breakpoints_s
from datacollect.flow.quickest.quickest import NeverArrives, quickest
from datacollect.flow.routes import path_table as path_tables
from datacollect.flow.routes.path_table import PathTable, path_table, whole_bytes_of_paths
from datacollect.flow.routes.routes import PathFlow, decompose, whole_bytes
from datacollect.solvers.budget import Budget

PATHS = [
    PathFlow(0, (3, 0), (0,), 5),
    PathFlow(0, (3, 2, 0), (0, 1), 7),
    PathFlow(2, (1, 2, 3, 0), (0, 0, 2), 1),
]


def test_a_table_is_its_paths():
    table = PathTable.of(PATHS)
    assert list(table) == PATHS
    assert (len(table), table[1], table[-1], table[:2]) == (3, PATHS[1], PATHS[2], PATHS[:2])
    assert PathTable.of(table) is table
    assert list(table.at(np.array([2, 0]))) == [PATHS[2], PATHS[0]]
    assert list(PathTable.of([])) == []


@pytest.mark.parametrize("n_hosts", [4, 10**6])
def test_routes_are_sequences_of_hosts_each_once(n_hosts):
    """Of many hosts a route is no longer one number of 64 bits."""
    table = PathTable.of([*PATHS, PathFlow(1, (3, 2, 0), (1, 1), 2)])
    routes, taken = table.routes(n_hosts)
    assert [tuple(routes[i]) for i in taken.tolist()] == [path.hosts for path in table]
    assert len(routes) == 3


# From a flow to paths -------------------------------------------------------------------------


@given(problems(FEATURES - {"shared"}))
def test_paths_carry_what_flows_over_every_arc_and_leaves_every_pool(problem):
    assume(problem.total_bytes > 0)
    solver = Budget().flow_solver()
    try:
        found = quickest(problem, breakpoints_s(problem), 0.0, solver)
    except NeverArrives:
        assume(False)
        raise
    network = found.network
    hops, every = (network.link != NO_LINK).astype(np.int64), np.ones(network.n_arcs, dtype=bool)
    flow = cheapest_flow(found.scaled.supplied(found.lengths_s), hops, solver, every)
    paths = path_table(network, network.piece, flow)
    over: Counter = Counter()
    for path in paths:
        assert path.hosts[0] == network.pools[path.pool].host
        assert path.hosts[-1] == network.sink
        assert list(path.pieces) == sorted(path.pieces)
        for (tail, head), piece in zip(pairwise(path.hosts), path.pieces, strict=True):
            over[problem.link_indices([tail], [head])[0], piece] += path.amount
    links = np.flatnonzero((network.link != NO_LINK) & (flow > 0))
    assert over == {(network.link[arc], network.piece[arc]): flow[arc] for arc in links.tolist()}
    one_by_one = decompose(network, network.piece, flow)
    assert sorted(path.pool for path in paths) == [path.pool for path in paths]
    for pool in range(len(network.pools)):
        sizes = [sum(p.amount for p in ps if p.pool == pool) for ps in (paths, one_by_one)]
        assert sizes[0] == sizes[1]


def test_sources_that_meet_at_a_relay_leave_it_in_the_order_in_which_they_came():
    """A and B send 3 and 4 through K, which adds 5 of its own: those are first, for D over J."""
    text = "A -> K 1, B -> K 1, K -> D 1, K -> J 1, J -> D 1"
    problem, network = network_of(text, backlogs="ABK")
    flow = flow_on(problem, network, {"A K": 3, "B K": 4, "K D": 7, "K J": 5, "J D": 5})
    found = {
        "".join(problem.names[host] for host in path.hosts): path.amount
        for path in path_table(network, network.piece, flow)
    }
    assert found == {"KD": 5, "AKD": 2, "AKJD": 1, "BKJD": 4}


def test_what_goes_round_is_left_to_walks():
    """A cycle A -> K -> A of 2 besides 3 from A over K to D."""
    problem, network = network_of("A -> K 1, K -> A 1, K -> D 1", backlogs="A")
    flow = flow_on(problem, network, {"A K": 5, "K A": 2, "K D": 3})
    (path,) = path_table(network, network.piece, flow)
    assert ["".join(problem.names[host] for host in path.hosts), path.amount] == ["AKD", 3]


def test_flows_that_lose_something_on_the_way_are_left_to_walks(monkeypatch):
    problem, network = network_of("S -> K 1, K -> D 1, S -> D 1")
    lossy = flow_on(problem, network, {"S K": 5, "K D": 3, "S D": 1})
    whole = flow_on(problem, network, {"S K": 3, "K D": 3, "S D": 1})
    walked = []
    monkeypatch.setattr(
        path_tables, "decompose", lambda *args: walked.append(args) or decompose(*args)
    )
    assert sum(path.amount for path in path_table(network, network.piece, lossy)) == 4
    assert len(walked) == 1
    assert sum(path.amount for path in path_table(network, network.piece, whole)) == 4
    assert len(walked) == 1
    assert sum(p.amount for p in path_table(network, network.piece, whole * 2**60)) == 2**62
    assert len(walked) == 2  # too many to count through all arcs


# Whole bytes --------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.integers(1, 2**61),
            st.lists(st.integers(1, 2**40), min_size=1, max_size=5),
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_bytes_are_shared_as_pool_by_pool(pools, as_floats):
    kind = float if as_floats else int
    paths = [
        PathFlow(pool, (1, 0), (0,), kind(amount))
        for pool, (_, amounts) in enumerate(pools)
        for amount in amounts
    ]
    shares = whole_bytes_of_paths([n for n, _ in pools], PathTable.of(paths))
    expected = [share for n, amounts in pools for share in whole_bytes(n, list(map(kind, amounts)))]
    assert shares.tolist() == expected


@given(st.integers(1, 10**12), st.lists(st.integers(1, 2**61), min_size=1, max_size=3))
def test_quotients_are_exact_whatever_the_weights(n_bytes, amounts):
    assume(sum(amounts) < 2**62)
    table = PathTable.of([PathFlow(0, (1, 0), (0,), amount) for amount in amounts])
    assert whole_bytes_of_paths([n_bytes], table).tolist() == whole_bytes(n_bytes, amounts)
