"""Ways through a network with shared capacities, that a linear program begins with."""

from __future__ import annotations

import math
import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from datacollect.flow.shared.network import SharedNetwork, arcs_to_sink, widest_arcs


def network_of(arcs, supply):
    """Arcs (tail, head, capacity) to the sink 0, and what enters at which nodes."""
    tail, head, capacity = (np.array(column) for column in zip(*arcs, strict=True))
    none, n_nodes = np.zeros(0, dtype=int), len(supply)
    return SharedNetwork(
        n_nodes, 0, tail, head, capacity.astype(float), np.array(supply, float), none, none, none
    )


def test_every_node_has_a_way_by_fewest_arcs_and_of_these_the_widest():
    """1 and 2 reach 0 in one arc; 3 in two, by 1 with 4 or by 2 with 5; 4 by 3; 5 does not."""
    network = network_of(
        [(1, 0, 4), (2, 0, 5), (3, 1, 9), (3, 2, 8), (4, 3, 2), (1, 2, 9), (4, 5, 9), (5, 0, 0)],
        [0] * 6,
    )
    arcs, width = arcs_to_sink(network)
    assert sorted(arcs.tolist()) == [0, 1, 3, 4]
    assert width.tolist() == [np.inf, 4, 5, 5, 2, 0]


def test_sources_begin_with_the_ways_by_which_most_arrives_behind_their_own_limits():
    """S = 1 sends through its limit's node 2 to relays 3 to 14, relay r passes on r bytes/s.

    One arc leaves the source, eight of the twelve behind the limit are taken: the widest.
    """
    relays = range(3, 15)
    arcs = [(1, 2, 99), *((2, r, 50) for r in relays), *((r, 0, r) for r in relays)]
    network = network_of(arcs, [0, 10] + [0] * 13)
    _, width = arcs_to_sink(network)
    chosen = widest_arcs(network, width)
    assert sorted(network.head[chosen].tolist()) == [2, *range(7, 15)]


@given(st.integers(0, 2**32 - 1))
def test_each_node_takes_the_widest_of_its_shortest_ways(seed):
    """A search in rounds over all arcs, one by one, finds the same arcs and widths."""
    draws = random.Random(seed)
    n_nodes, n_arcs = draws.randint(2, 9), draws.randint(1, 30)
    ends = [draws.sample(range(n_nodes), 2) for _ in range(n_arcs)]
    room = [float(draws.choice([0, 1, 1, 2, 5, math.inf])) for _ in range(n_arcs)]
    width, chosen_arcs = {0: math.inf}, {}
    while True:
        found: dict[int, tuple[float, int]] = {}
        for arc, (tail, head) in enumerate(ends):
            if room[arc] and head in width and tail not in width:
                here = (min(room[arc], width[head]), arc)
                found[tail] = max(found.get(tail, here), here)
        if not found:
            break
        width |= {node: least for node, (least, _) in found.items()}
        chosen_arcs |= {node: arc for node, (_, arc) in found.items()}
    network = network_of(
        [(*pair, most) for pair, most in zip(ends, room, strict=True)], [0] * n_nodes
    )
    arcs, widths = arcs_to_sink(network)
    assert arcs.tolist() == [chosen_arcs[node] for node in sorted(chosen_arcs)]
    assert widths.tolist() == [width.get(node, 0.0) for node in range(n_nodes)]
