"""All flow solvers: small networks with derived answers, random ones against independent oracles.

A flow is judged from its definition, in Python's integers of any size. A maximum flow must equal
the smallest of all cuts, found by trying every set of nodes (Ford and Fulkerson, 1956). A
minimum-cost flow must leave no cycle of negative cost in its residual network (Klein, 1967), and
must cost what HiGHS, which is none of the backends, says.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judges.flow_proofs import (
    balances,
    cheapest_cost,
    flow_value,
    has_negative_cycle,
    network_of,
    rows_of,
    total_cost,
)

from datacollect.errors import InfeasibleError, ProblemError, SolverError
from datacollect.solvers.auto import AutoFlow
from datacollect.solvers.choice import load_flow_solver
from datacollect.solvers.networks import FlowNetwork, source_side


def smallest_cut(network, source, sink):
    """The least capacity that leaves any set of nodes with the source and without the sink."""
    others = [node for node in range(network.n_nodes) if node not in (source, sink)]
    rows = rows_of(network, network.capacity)
    return min(
        sum(
            capacity
            for tail, head, capacity, _, _ in rows
            if tail in {source, *inside} and head not in {source, *inside}
        )
        for size in range(len(others) + 1)
        for inside in combinations(others, size)
    )


@st.composite
def networks(draw, largest_capacity=2**58, largest_cost=1000):
    """Up to 6 nodes and 12 arcs in any order: parallel, back to the source, without capacity."""
    n_nodes = draw(st.integers(2, 6))
    capacity = st.one_of(st.integers(0, 10), st.integers(0, largest_capacity))
    arc = st.tuples(
        st.integers(0, n_nodes - 1),
        st.integers(1, n_nodes - 1),
        capacity,
        st.integers(0, largest_cost),
    )
    arcs = draw(st.lists(arc, max_size=12))
    return network_of(n_nodes, [(u, (u + step) % n_nodes, c, k) for u, step, c, k in arcs])


# Two ways from 0 to 3 that share the arc 1 -> 2:
#   0 -> 1 (5), 0 -> 2 (4), 1 -> 2 (2), 1 -> 3 (1), 2 -> 3 (7)
# What enters 1 leaves over 1 -> 2 and 1 -> 3: 3 units; what enters 2: 4 + 2 = 6 <= 7. In all 7.
TWO_WAYS = [(0, 1, 5, 1), (0, 2, 4, 5), (1, 2, 2, 1), (1, 3, 1, 7), (2, 3, 7, 2)]


class TestMaxFlow:
    def test_two_ways_that_share_an_arc(self, flow_solver):
        """7 units: 3 by node 1, 4 straight to node 2; the only maximum flow."""
        flow = flow_solver.max_flow(network_of(4, TWO_WAYS), 0, 3)
        assert flow.tolist() == [3, 4, 2, 1, 6]

    def test_order_of_arcs_does_not_matter(self, flow_solver):
        """The same network with its arcs shuffled: the same flow on each arc."""
        order = [4, 2, 0, 3, 1]
        flow = flow_solver.max_flow(network_of(4, [TWO_WAYS[i] for i in order]), 0, 3)
        assert flow.tolist() == [[3, 4, 2, 1, 6][i] for i in order]

    def test_parallel_arcs_add_up(self, flow_solver):
        """Three arcs from 0 to 1 carry 2 + 3 + 4; one from 1 to 2 carries 8: 8 units."""
        network = network_of(3, [(0, 1, 2, 0), (1, 2, 8, 0), (0, 1, 3, 0), (0, 1, 4, 0)])
        assert flow_value(network, flow_solver.max_flow(network, 0, 2), 0, 2) == 8

    def test_arcs_into_the_source_and_out_of_the_sink(self, flow_solver):
        """Only 0 -> 1 -> 2 with 7 units counts; the arcs back must not make more of it."""
        big = 2**55
        network = network_of(
            3, [(0, 1, big, 0), (1, 0, big, 0), (1, 2, 7, 0), (2, 1, big, 0), (2, 0, 9, 0)]
        )
        assert flow_value(network, flow_solver.max_flow(network, 0, 2), 0, 2) == 7

    def test_capacities_beyond_what_doubles_hold(self, flow_solver):
        """2**57 + 1 by node 1 (its second arc), 2**57 - 2 by node 2 (its first): one by one."""
        a, b = 2**57 + 1, 2**57 - 2
        network = network_of(4, [(0, 1, a + 2, 0), (0, 2, b, 0), (1, 3, a, 0), (2, 3, b + 5, 0)])
        flow = flow_solver.max_flow(network, 0, 3)
        assert flow.tolist() == [a, b, a, b]

    def test_a_narrow_arc_behind_wide_ones(self, flow_solver):
        """1 unit passes where 2**58 are offered before and behind."""
        network = network_of(4, [(0, 1, 2**58, 0), (1, 2, 1, 0), (2, 3, 2**58, 0)])
        assert flow_solver.max_flow(network, 0, 3).tolist() == [1, 1, 1]

    def test_many_small_remainders_through_one_arc(self, flow_solver):
        """200 arcs of 2**50 - 1 side by side, then one that takes them all: all are full.

        A solver that first counts in units of 2**28 loses nearly one of them on each of the 200
        and has to make up for it on the one arc behind.
        """
        each = 2**50 - 1
        network = network_of(3, [*[(0, 1, each, 0)] * 200, (1, 2, 2**58, 0)])
        assert flow_solver.max_flow(network, 0, 2).tolist() == [each] * 200 + [200 * each]

    @pytest.mark.parametrize(
        "arcs",
        [
            [],
            [(0, 1, 0, 0), (1, 2, 5, 0)],
            [(0, 1, 5, 0)],
            [(1, 2, 5, 0)],
            [(2, 0, 5, 0), (2, 1, 4, 0)],
        ],
        ids=["no arcs", "no capacity", "sink apart", "source apart", "all backwards"],
    )
    def test_nothing_passes_without_a_way(self, flow_solver, arcs):
        """No path from 0 to 2 (nor to 4, a node without arcs) has capacity: the value is 0."""
        network = network_of(5, arcs)
        for sink in (2, 4):
            assert flow_value(network, flow_solver.max_flow(network, 0, sink), 0, sink) == 0

    @pytest.mark.parametrize(("source", "sink"), [(1, 1), (0, 4), (-1, 2)])
    def test_bad_terminals_are_a_problem_error(self, flow_solver, source, sink):
        with pytest.raises(ProblemError, match="max_flow: "):
            flow_solver.max_flow(network_of(4, TWO_WAYS), source, sink)

    def test_narrow_and_read_only_arrays_are_taken(self, flow_solver):
        """int32 ends and strided, read-only capacities, as slices of larger arrays are."""
        columns = np.array(TWO_WAYS, dtype=np.int64)
        columns.flags.writeable = False
        ends = columns.astype(np.int32)
        network = FlowNetwork(4, ends[:, 0], ends[:, 1], columns[:, 2], columns[:, 3])
        assert flow_solver.max_flow(network, 0, 3).tolist() == [3, 4, 2, 1, 6]
        supply = np.array([7, 0, 0, -7])
        supply.flags.writeable = False
        assert flow_solver.min_cost_flow(network, supply).tolist() == [3, 4, 2, 1, 6]

    @pytest.mark.slow
    @given(network=networks())
    def test_equals_the_smallest_cut(self, flow_solver, network):
        flow = flow_solver.max_flow(network, 0, 1)
        value = flow_value(network, flow, 0, 1)
        assert value == smallest_cut(network, 0, 1)
        inside = source_side(network, flow, 0)
        assert inside[0]
        assert not inside[1]
        leaving = inside[network.tail] & ~inside[network.head]
        assert sum(network.capacity[leaving].tolist()) == value


class TestMinCostFlow:
    def test_cheap_way_first(self, flow_solver):
        """Costs per unit: 0-1-2-3 4, 0-2-3 7, 0-1-3 8. 5 units: 2 on the first, 3 on the second."""
        network = network_of(4, TWO_WAYS)
        flow = flow_solver.min_cost_flow(network, np.array([5, 0, 0, -5]))
        assert flow.tolist() == [2, 3, 2, 0, 5]

    def test_two_sources(self, flow_solver):
        """1 -> 2 has room for 2 of the 3 units that want it.

        Both from node 1 by 1-2-3 (3 each) and that from node 0 by 0-2-3 (7): 13. Or that from
        node 0 by 0-1-2-3 (4), one from node 1 by 1-2-3 (3), the other by 1-3 (7): 14.
        """
        network = network_of(4, TWO_WAYS)
        flow = flow_solver.min_cost_flow(network, np.array([1, 2, 0, -3]))
        assert flow.tolist() == [0, 1, 2, 0, 3]

    def test_parallel_arcs_fill_by_cost(self, flow_solver):
        """11 of 15 units: the arcs of cost 1 and 2 are full, that of cost 3 takes the last."""
        network = network_of(2, [(0, 1, 5, 3), (0, 1, 5, 1), (0, 1, 5, 2)])
        flow = flow_solver.min_cost_flow(network, np.array([11, -11]))
        assert flow.tolist() == [1, 5, 5]

    def test_amounts_beyond_what_doubles_hold(self, flow_solver):
        """2**57 + 1 on the cheap arc, which is then full; the other 2**57 units on the dear one."""
        network = network_of(3, [(0, 1, 2**57 + 1, 1), (0, 2, 2**58, 3), (1, 2, 2**58, 1)])
        supply = np.array([2**58 + 1, 0, -(2**58) - 1])
        flow = flow_solver.min_cost_flow(network, supply)
        assert flow.tolist() == [2**57 + 1, 2**57, 2**57 + 1]

    def test_costs_that_differ_by_one_in_a_billion(self, flow_solver):
        """Lexicographic weights: 10**9 + 1 is dearer than 10**9, so arc 1 fills first."""
        network = network_of(2, [(0, 1, 10, 10**9 + 1), (0, 1, 10, 10**9)])
        assert flow_solver.min_cost_flow(network, np.array([12, -12])).tolist() == [2, 10]

    def test_no_supply_costs_nothing(self, flow_solver):
        network = network_of(4, TWO_WAYS)
        flow = flow_solver.min_cost_flow(network, np.zeros(4, dtype=np.int64))
        assert flow.tolist() == [0] * 5
        assert flow_solver.min_cost_flow(network_of(2, []), np.array([0, 0])).tolist() == []

    @pytest.mark.parametrize(
        ("arcs", "supply"),
        [
            ([], [1, 0, -1]),
            ([(0, 1, 5, 1), (1, 2, 4, 1)], [5, 0, -5]),
            ([(0, 1, 5, 1)], [1, 0, -1]),
            ([(2, 0, 5, 1)], [1, 0, -1]),
            ([(0, 1, 2**55, 1), (1, 2, 2**55 - 1, 1)], [2**55, 0, -(2**55)]),
        ],
        ids=["no arcs", "too narrow", "apart", "backwards", "one unit of 2**55 too much"],
    )
    def test_unmet_supplies_are_infeasible(self, flow_solver, arcs, supply):
        with pytest.raises(InfeasibleError, match="no flow meets the supplies"):
            flow_solver.min_cost_flow(network_of(3, arcs), np.array(supply))

    def test_an_infeasible_problem_does_no_harm_to_the_next(self, flow_solver):
        """OR-Tools 9.15 ends the process when flows are read after INFEASIBLE."""
        network = network_of(2, [(0, 1, 5, 3)])
        for _ in range(3):
            with pytest.raises(InfeasibleError):
                flow_solver.min_cost_flow(network, np.array([6, -6]))
        assert flow_solver.min_cost_flow(network, np.array([5, -5])).tolist() == [5]

    @pytest.mark.parametrize(
        ("supply", "message"),
        [
            (np.array([1, 0, 0, 0]), "must sum to 0, got 1"),
            (np.array([1, -1]), r"4 integers, one per node, got int64 of shape \(2,\)"),
            (np.array([1.0, 0, 0, -1.0]), "got float64"),
            (np.array([2**62, 0, 0, -(2**62)]), "limit 2\\*\\*62; count in larger units"),
        ],
    )
    def test_malformed_supplies_are_a_problem_error(self, flow_solver, supply, message):
        with pytest.raises(ProblemError, match=message):
            flow_solver.min_cost_flow(network_of(4, TWO_WAYS), supply)

    def test_costs_are_required(self, flow_solver):
        network = FlowNetwork(2, np.array([0]), np.array([1]), np.array([1]))
        with pytest.raises(ProblemError, match="has no costs; give zeros"):
            flow_solver.min_cost_flow(network, np.array([1, -1]))

    def test_enormous_costs_are_exact_or_refused(self, flow_solver):
        """2**61 and 2**61 + 1 per unit: only Python's integers hold what follows from them.

        So networkx steps in where no solver was named.
        """
        network = network_of(2, [(0, 1, 10, 2**61 + 1), (0, 1, 10, 2**61)])
        if flow_solver.name == "networkx" or isinstance(flow_solver, AutoFlow):
            assert flow_solver.min_cost_flow(network, np.array([12, -12])).tolist() == [2, 10]
            return
        with pytest.raises(SolverError, match="count costs in larger units"):
            flow_solver.min_cost_flow(network, np.array([12, -12]))

    @pytest.mark.slow
    @given(
        network=networks(largest_capacity=1000),
        supplies=st.lists(st.integers(-30, 30), min_size=5, max_size=5),
    )
    def test_costs_what_highs_says(self, flow_solver, network, supplies):
        supply = np.array(supplies[: network.n_nodes - 1])
        supply = np.append(supply, -supply.sum())
        expected = cheapest_cost(network, supply)
        if expected is None:
            with pytest.raises(InfeasibleError):
                flow_solver.min_cost_flow(network, supply)
            return
        flow = flow_solver.min_cost_flow(network, supply)
        assert balances(network, flow) == supply.tolist()
        assert total_cost(network, flow) == pytest.approx(expected, abs=1e-6)
        assert not has_negative_cycle(network, flow)

    @pytest.mark.slow
    @given(network=networks(largest_cost=10**8), share=st.fractions(0, 1, max_denominator=7))
    def test_large_amounts_leave_no_cycle_to_save_on(self, flow_solver, network, share):
        """From 0 to 1 a share of what the smallest cut lets pass."""
        amount = int(smallest_cut(network, 0, 1) * share)
        supply = np.zeros(network.n_nodes, dtype=np.int64)
        supply[:2] = amount, -amount
        flow = flow_solver.min_cost_flow(network, supply)
        assert balances(network, flow) == supply.tolist()
        assert not has_negative_cycle(network, flow)


@pytest.mark.slow
def test_threads_get_the_answers_that_one_thread_gets(flow_solver):
    """8 problems solved one after another, then by 4 threads at once."""
    random = np.random.default_rng(5)
    tail, step = random.integers(0, 20, 150), random.integers(1, 20, 150)
    problems = [
        FlowNetwork(
            20, tail, (tail + step) % 20, random.integers(1, 10**6, 150), random.integers(0, 9, 150)
        )
        for _ in range(8)
    ]

    def solve(network):
        flow = flow_solver.max_flow(network, 0, 19)
        value = flow_value(network, flow, 0, 19)
        assert value > 0
        supply = np.zeros(20, dtype=np.int64)
        supply[[0, 19]] = value // 2, -(value // 2)
        return value, total_cost(network, flow_solver.min_cost_flow(network, supply))

    expected = [solve(network) for network in problems]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(solve, problems)) == expected
    assert len(set(expected)) > 1


def test_cbc_hands_over_potentials_that_prove_its_flow_optimal():
    """No residual arc leads to a node that it would make cheaper to reach."""
    from datacollect.solvers import pulp

    network = network_of(4, TWO_WAYS)
    balanced = np.ones(4, dtype=bool)
    task = pulp._Task(network, network.capacity, network.cost, balanced)
    # Feasible but dear: 5 units, as much as possible by 0-1-3 and 0-2-3.
    flow, potential = pulp._improve(task, np.array([1, 4, 0, 1, 4]))
    assert total_cost(network, flow) == 2 * 4 + 3 * 7
    for tail, head, capacity, cost, units in rows_of(network, flow):
        assert units == capacity or potential[tail] + cost >= potential[head]
        assert units == 0 or potential[head] - cost >= potential[tail]


@pytest.mark.parametrize("arcs_per_node", [3, 20])
def test_sparse_and_dense_networks_cost_what_networkx_pays(arcs_per_node):
    """LEMON looks for entering arcs in another way in each of the two."""
    rng = np.random.default_rng(arcs_per_node)
    n, m = 30, 30 * arcs_per_node
    tail = np.append(np.arange(n), rng.integers(0, n, m - n))
    step = np.append(np.ones(n, dtype=np.int64), rng.integers(1, n, m - n))
    network = FlowNetwork(
        n,
        tail,
        (tail + step) % n,
        np.append(np.full(n, 10_000), rng.integers(0, 50, m - n)),
        rng.integers(0, 100, m),
    )
    supply = rng.integers(0, 100, n)
    supply[0] = -supply[1:].sum()
    flow = load_flow_solver("auto").min_cost_flow(network, supply)
    other = load_flow_solver("networkx").min_cost_flow(network, supply)
    assert network.cost @ flow == network.cost @ other
    balance = np.bincount(network.tail, flow, n) - np.bincount(network.head, flow, n)
    assert (balance == supply).all()
    assert ((flow >= 0) & (flow <= network.capacity)).all()
