"""Flows with side constraints: hand-derived prices, and SciPy's HiGHS on the full program."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog
from scipy.sparse import coo_array

from datacollect.errors import InfeasibleError
from datacollect.flow.shared.network import SharedNetwork
from datacollect.flow.shared.pricing import cheapest, largest_share
from datacollect.solvers.budget import Budget


def mesh(seed: int, n_nodes: int = 30, n_rows: int = 6) -> SharedNetwork:
    """A full mesh with sink 0, lognormal capacities and random shared constraints."""
    rng = np.random.default_rng(seed)
    tail, head = np.nonzero(~np.eye(n_nodes, dtype=bool))
    tail, head = tail[tail != 0], head[tail != 0]
    capacity = rng.lognormal(0.0, 1.0, len(tail))
    capacity[rng.random(len(tail)) < 0.2] = 0.0
    supply = np.where(rng.random(n_nodes) < 0.4, rng.uniform(1, 10, n_nodes), 0.0)
    supply[[0, 1]] = 0.0, 1.0
    member = rng.random((n_rows, len(tail))) < rng.uniform(0.02, 0.3, n_rows)[:, None]
    member |= (head == 0) & (rng.random((n_rows, len(tail))) < 0.5)
    rows, arcs = np.nonzero(member)
    room = (member @ capacity) * rng.uniform(0.05, 0.5, n_rows)
    return SharedNetwork(n_nodes, 0, tail, head, capacity, supply, rows, arcs, room)


def full_program(network: SharedNetwork, cost: np.ndarray | None) -> float:
    """The largest share, or with costs the least cost, by HiGHS with a column for every arc."""
    n, m = network.n_nodes, network.n_arcs
    arcs, total = np.arange(m), network.supply_bytes.sum()
    balance = coo_array(
        (
            np.concatenate([np.ones(m), -np.ones(m), -network.supply_bytes / total]),
            (
                np.concatenate([network.tail, network.head, np.arange(n)]),
                np.concatenate([arcs, arcs, np.full(n, m)]),
            ),
        ),
        shape=(n, m + 1),
    ).tocsr()
    kept = np.arange(n) != network.sink
    sides = coo_array(
        (np.ones(len(network.member_row)), (network.member_row, network.member_arc)),
        shape=(len(network.room_bytes), m + 1),
    )
    upper = np.minimum(network.capacity_bytes / total, 1.0)
    share = (0.0, 1.0) if cost is None else (1.0, 1.0)
    found = linprog(
        np.append(np.zeros(m), -1.0) if cost is None else np.append(cost, 0.0),
        A_ub=sides,
        b_ub=network.room_bytes / total,
        A_eq=balance[kept],
        b_eq=np.zeros(n - 1),
        bounds=[*zip(np.zeros(m), upper, strict=True), share],
        method="highs",
    )
    assert found.status == 0, found.message
    return -found.fun if cost is None else found.fun * total


def assert_flow(network: SharedNetwork, flow: np.ndarray, share: float, tolerance: float = 1e-7):
    """All constraints hold, and the share arrives."""
    room = tolerance * network.total_bytes
    assert (flow >= 0).all()
    assert (flow <= network.capacity_bytes + room).all()
    used = np.bincount(
        network.member_row, flow[network.member_arc], minlength=len(network.room_bytes)
    )
    assert (used <= network.room_bytes + room).all()
    net = np.bincount(network.tail, flow, network.n_nodes)
    net -= np.bincount(network.head, flow, network.n_nodes)
    net[network.sink] = 0.0
    assert net == pytest.approx(share * network.supply_bytes, abs=room)


def widened(network: SharedNetwork, factor: float) -> SharedNetwork:
    return SharedNetwork(
        network.n_nodes,
        network.sink,
        network.tail,
        network.head,
        network.capacity_bytes * factor,
        network.supply_bytes,
        network.member_row,
        network.member_arc,
        network.room_bytes * factor,
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_largest_share_agrees_with_all_arcs_at_once(seed, linear_solver):
    network = mesh(seed)
    found = largest_share(network, Budget(linear_solver))
    assert found.share == pytest.approx(full_program(network, None), rel=1e-6)
    assert found.gap <= 1e-6
    assert len(found.arcs) < network.n_arcs
    assert_flow(network, found.flow_bytes, found.share)


@pytest.mark.parametrize("seed", range(12))
def test_the_cheapest_flow_agrees_with_all_arcs_at_once(seed, linear_solver):
    network = mesh(seed)
    network = widened(network, 1.3 / full_program(network, None))
    cost = np.random.default_rng(seed).integers(1, 20, network.n_arcs).astype(float)
    found = cheapest(network, cost, Budget(linear_solver))
    assert cost @ found.flow_bytes == pytest.approx(full_program(network, cost), rel=1e-6)
    assert found.gap <= 1e-6
    assert_flow(network, found.flow_bytes, 1.0)


def test_prices_bound_every_flow_from_below():
    """Weak duality, written out: what prices promise holds for arcs that the program never saw."""
    network = mesh(3)
    network = widened(network, 1.5 / largest_share(network, Budget()).share)
    cost = np.random.default_rng(3).integers(1, 20, network.n_arcs).astype(float)
    found = cheapest(network, cost, Budget())
    paid = cost.copy()
    np.subtract.at(paid, network.member_arc, found.row_price[network.member_row])
    reduced = paid - found.node_price[network.tail] + found.node_price[network.head]
    assert reduced == pytest.approx(found.reduced_cost, abs=1e-9)
    assert (found.row_price <= 0).all()
    assert found.node_price[network.sink] == 0
    bound = network.supply_bytes @ found.node_price + network.room_bytes @ found.row_price
    bound += np.minimum(reduced, 0.0) @ network.capacity_bytes
    assert bound == pytest.approx(cost @ found.flow_bytes, rel=1e-8)


def test_a_relay_that_nothing_points_to_at_first_is_found():
    """The direct arc carries 1 of 4, ten dear relays 1 each, one cheap relay 3: 1 + 2 * 3 = 7.

    Every relay lies two arcs from the sink, and the start takes the widest only by capacity.
    """
    relays = np.arange(2, 13)
    tail = np.concatenate([[1], np.full(11, 1), relays])
    head = np.concatenate([[0], relays, np.zeros(11, dtype=int)])
    capacity = np.concatenate([[1.0], np.full(10, 9.0), [3.0], np.full(10, 9.0), [3.0]])
    cost = np.concatenate([[1.0], np.full(10, 5.0), [1.0], np.full(10, 5.0), [1.0]])
    supply = np.zeros(13)
    supply[1] = 4.0
    none = np.zeros(0, dtype=int)
    network = SharedNetwork(13, 0, tail, head, capacity, supply, none, none, np.zeros(0))
    found = cheapest(network, cost, Budget())
    assert cost @ found.flow_bytes == pytest.approx(7.0)


def test_small_costs_count_beside_very_dear_arcs():
    """Two of three paths cost 1e9; the third forks: by node 2 for 3, by node 3 for 2."""
    none = np.zeros(0, dtype=int)
    tail, head = np.array([1, 1, 1, 1, 2, 3]), np.array([0, 0, 2, 3, 0, 0])
    cost = np.array([1e9, 1e9, 1.5, 1.0, 1.5, 1.0])
    supply = np.array([0.0, 1.0, 0.0, 0.0])
    network = SharedNetwork(4, 0, tail, head, np.full(6, 1.0), supply, none, none, np.zeros(0))
    found = cheapest(network, cost, Budget())
    assert found.flow_bytes == pytest.approx([0, 0, 0, 1, 0, 1])
    assert found.gap <= 1e-9


def test_too_little_room_is_infeasible():
    network = widened(mesh(5), 1e-3)
    share = largest_share(network, Budget()).share
    assert share < 1
    with pytest.raises(InfeasibleError, match=f"at most {share:.9g} of"):
        cheapest(network, np.ones(network.n_arcs), Budget())


def test_what_leads_nowhere_is_left_alone():
    """1 -> 2 is wide, but nothing leaves 2."""
    none = np.zeros(0, dtype=int)
    network = SharedNetwork(
        3,
        0,
        np.array([1, 1]),
        np.array([0, 2]),
        np.array([1.0, 9.0]),
        np.array([0.0, 4.0, 0.0]),
        none,
        none,
        np.zeros(0),
    )
    found = largest_share(network, Budget())
    assert found.share == pytest.approx(0.25)
    assert found.flow_bytes == pytest.approx([1.0, 0.0])
    assert found.gap <= 1e-9


@pytest.mark.parametrize("ratio", [1e-3, 1e-6, 1e-9])
def test_a_small_source_counts_as_much_as_a_large_one(ratio):
    """1 sends 1, 2 sends `ratio` through relay 3, each with room for half: share 1/2.

    2's room is a side constraint of its own; and 3 could swallow what 2 sends, if the
    solver's tolerance were one for all.
    """
    network = SharedNetwork(
        4,
        0,
        np.array([1, 2, 3, 1]),
        np.array([0, 3, 0, 3]),
        np.array([9.0, 9.0, 9.0, 9.0 * ratio]),
        np.array([0.0, 1.0, ratio, 0.0]),
        np.array([0, 1]),
        np.array([0, 2]),
        np.array([0.7, 0.5 * ratio]),
    )
    assert largest_share(network, Budget()).share == pytest.approx(0.5, rel=1e-6)


@given(st.integers(0, 10**6), st.lists(st.booleans(), min_size=8, max_size=8))
def test_arcs_that_begin_full_change_the_way_not_the_answer(seed, full):
    """Two paths of two arcs each, and a direct one, of random cost; two of them share room."""
    rng = np.random.default_rng(seed)
    network = SharedNetwork(
        n_nodes=5,
        sink=4,
        tail=np.array([0, 1, 0, 2, 0, 3, 0, 0]),
        head=np.array([1, 4, 2, 4, 3, 4, 4, 4]),
        capacity_bytes=rng.uniform(2, 9, 8),
        supply_bytes=np.array([6.0, 0, 0, 0, 0]),
        member_row=np.array([0, 0]),
        member_arc=np.array([1, 3]),
        room_bytes=np.array([3.0]),
    )
    cost = rng.integers(1, 9, 8).astype(float)
    every = np.arange(8)
    plain = cheapest(network, cost, Budget(), every)
    begun = cheapest(network, cost, Budget(), every, np.flatnonzero(full))
    assert float(cost @ begun.flow_bytes) == pytest.approx(float(cost @ plain.flow_bytes))
    assert begun.gap <= 1e-8
    surplus = np.bincount(network.tail, begun.flow_bytes, 5)
    surplus -= np.bincount(network.head, begun.flow_bytes, 5)
    np.testing.assert_allclose(surplus, [6, 0, 0, 0, -6], atol=1e-6)
