"""Ways through a network with shared capacities, that a linear program begins with."""

from __future__ import annotations

import numpy as np

from datacollect.flow.shared.network import SharedNetwork, ways_to_sink, widest_ways


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
    arcs, width = ways_to_sink(network)
    assert sorted(arcs.tolist()) == [0, 1, 3, 4]
    assert width.tolist() == [np.inf, 4, 5, 5, 2, 0]


def test_sources_begin_with_the_ways_by_which_most_arrives_behind_their_own_limits():
    """S = 1 sends through its limit's node 2 to relays 3 to 14, relay r passes on r bytes/s.

    One arc leaves the source, eight of the twelve behind the limit are taken: the widest.
    """
    relays = range(3, 15)
    arcs = [(1, 2, 99), *((2, r, 50) for r in relays), *((r, 0, r) for r in relays)]
    network = network_of(arcs, [0, 10] + [0] * 13)
    _, width = ways_to_sink(network)
    chosen = widest_ways(network, width)
    assert sorted(network.head[chosen].tolist()) == [2, *range(7, 15)]
