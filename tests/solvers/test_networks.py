"""Flow networks, and what is reached in them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollect.errors import ProblemError
from datacollect.solvers.networks import ROUNDS, FlowNetwork, reachable, source_side


def arc(**changes):
    """Columns of a network of one arc, 0 -> 1, some of them replaced."""
    columns = {
        "n_nodes": 2,
        "tail": np.array([0]),
        "head": np.array([1]),
        "capacity": np.array([5]),
        "cost": np.array([1]),
    }
    return columns | changes


class TestFlowNetwork:
    def test_counts_its_arcs(self):
        assert FlowNetwork(**arc()).n_arcs == 1
        nothing = np.zeros(0, dtype=np.int64)
        assert FlowNetwork(2, nothing, nothing, nothing).n_arcs == 0

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"capacity": np.array([2.7])}, "capacity must hold integers, got float64"),
            ({"cost": np.array([1.0])}, "cost must hold integers, got float64; scale and round"),
            ({"tail": np.array([True])}, "tail must hold integers, got bool"),
            ({"capacity": np.array([5, 6])}, r"capacity must have shape \(1,\), got \(2,\)"),
            ({"cost": np.array([[1]])}, r"cost must have shape \(1,\), got \(1, 1\)"),
            ({"capacity": np.array([-1])}, "capacity must be >= 0, got -1"),
            ({"cost": np.array([-2])}, "cost must be >= 0, got -2"),
            ({"head": np.array([2])}, "head must lie in 0 ... n_nodes - 1 = 1, got 2 ... 2"),
            ({"tail": np.array([-1])}, "tail must lie in 0 ... n_nodes - 1 = 1, got -1 ... -1"),
            ({"head": np.array([0])}, "arc 0 must join two nodes, got a loop at node 0"),
            ({"capacity": np.array([2**62])}, r"limit 2\*\*62; count in larger units"),
        ],
    )
    def test_malformed_columns_are_refused(self, changes, message):
        """Solvers would truncate, wrap around or read out of bounds, all without a word."""
        with pytest.raises(ProblemError, match=message):
            FlowNetwork(**arc(**changes))

    @pytest.mark.parametrize("end", ["tail", "head"])
    def test_capacities_at_one_node_must_sum_below_the_limit(self, end):
        """Two arcs of 2**61 in one direction at node 0 sum to 2**62; at different nodes not."""
        ends = {"tail": np.array([0, 0]), "head": np.array([1, 2])}
        if end == "head":
            ends = {"tail": ends["head"], "head": ends["tail"]}
        with pytest.raises(ProblemError, match="sum to"):
            FlowNetwork(3, **ends, capacity=np.array([2**61, 2**61]))
        FlowNetwork(3, **ends, capacity=np.array([2**61, 2**60]))
        FlowNetwork(3, np.array([0, 1]), np.array([1, 2]), np.array([2**61, 2**61]))


class TestSourceSide:
    def test_stops_at_full_arcs(self):
        """0 -> 1 -> 2 with capacities 5 and 3 and a flow of 3: only 0 -> 1 has room left."""
        network = FlowNetwork(3, np.array([0, 1]), np.array([1, 2]), np.array([5, 3]))
        assert source_side(network, np.array([3, 3]), 0).tolist() == [True, True, False]

    def test_goes_back_along_used_arcs(self):
        """0 -> 2 has room; from 2 back to 1 over the used arc 1 -> 2, though 0 -> 1 is full."""
        network = FlowNetwork(4, np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([2, 9, 4]))
        assert source_side(network, np.array([2, 2, 1]), 0).tolist() == [True, True, True, False]

    def test_without_arcs_only_the_source(self):
        nothing = np.zeros(0, dtype=np.int64)
        side = source_side(FlowNetwork(3, nothing, nothing, nothing), nothing, 2)
        assert side.tolist() == [False, False, True]


class TestReachable:
    @pytest.mark.parametrize("length", [1, ROUNDS - 1, ROUNDS, ROUNDS + 1, 20])
    def test_a_way_of_any_length_is_followed_to_its_end(self, length):
        """0 -> 1 -> ... -> length, each arc 300 times; a node beside it, that leads to 0, is not.

        Nor is any node before the one that it begins with.
        """
        way = np.arange(length).repeat(300)
        tail, head = np.append(way, length + 1), np.append(way + 1, 0)
        reached = reachable(length + 2, tail, head, 0)
        assert reached.tolist() == [True] * (length + 1) + [False]
        assert reachable(length + 2, tail, head, 1).tolist() == [False, *reached[1:]]

    @given(
        st.integers(1, 12).flatmap(
            lambda n: st.tuples(
                st.lists(st.tuples(*[st.integers(0, n - 1)] * 2), max_size=20),
                st.lists(st.booleans(), min_size=n, max_size=n),
            )
        )
    )
    def test_what_is_marked_stays_and_arcs_lead_nowhere_else(self, drawn):
        """Checked from first principles: the least set that holds the marked and is closed."""
        arcs, marked = drawn
        expected = {node for node, is_marked in enumerate(marked) if is_marked}
        while more := {head for tail, head in arcs if tail in expected} - expected:
            expected |= more
        ends = np.array(arcs, dtype=np.int64).reshape(-1, 2)
        reached = reachable(len(marked), ends[:, 0], ends[:, 1], np.array(marked))
        assert set(np.flatnonzero(reached).tolist()) == expected
