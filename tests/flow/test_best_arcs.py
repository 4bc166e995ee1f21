"""The best arcs of each node, beside plain sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollect.flow.network.best_arcs import best_per_tail

SCORES = {
    "float": st.sampled_from([-np.inf, -3.0, 0.0, 1.0, 2.5, 7.0, np.inf]),
    "int": st.sampled_from([-(2**61), -1, 0, 1, 2**61, 2**61 + 1]),
}


@pytest.mark.parametrize("kind", SCORES)
@given(data=st.data(), n_nodes=st.integers(1, 6), most=st.integers(1, 5))
def test_the_best_are_those_that_sorting_puts_first(kind, data, n_nodes, most):
    """Each node's arcs sorted by score, ties in their order: the first `most` of each."""
    drawn = data.draw(st.lists(st.tuples(st.integers(0, n_nodes - 1), SCORES[kind]), max_size=60))
    tail = np.array([node for node, _ in drawn], dtype=np.int64)
    score = np.array([value for _, value in drawn], dtype=kind)
    expected = []
    for node in range(n_nodes):
        arcs = [arc for arc, (tail_of_arc, _) in enumerate(drawn) if tail_of_arc == node]
        expected += sorted(arcs, key=lambda arc: -drawn[arc][1])[:most]
    expected.sort()
    assert best_per_tail(tail, score, most, n_nodes).tolist() == expected
    assert best_per_tail(tail.astype(np.int32), score, most, n_nodes).tolist() == expected
