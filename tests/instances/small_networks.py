"""Networks that fit in the head, built without generators or routing algorithms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from datacollect.simulation.network import BackgroundFlow, SimulatedNetwork, Transport

# Places on a line of three nodes.
PLACES = {"S": 0, "K": 1, "D": 2}


def line_network(
    rates: Iterable[float],
    hosts: Mapping[str, int],
    *,
    delay_s: float = 0.0,
    background: Iterable[BackgroundFlow] = (),
    transport: Transport | None = None,
) -> SimulatedNetwork:
    """Nodes 0, 1, 2 … in a row; cable i joins i and i + 1, with one rate for both directions.

    Wire 2i leads from i to i + 1, wire 2i + 1 back.
    """
    rates = list(rates)
    n = len(rates) + 1
    tail = [end for i in range(n - 1) for end in (i, i + 1)]
    head = [end for i in range(n - 1) for end in (i + 1, i)]
    next_wire = np.full((n, n), -1)
    for node in range(n):
        next_wire[node, node + 1 :] = 2 * node
        next_wire[node, :node] = 2 * node - 1
    return SimulatedNetwork(
        node_names=tuple(f"n{i}" for i in range(n)),
        host_node=dict(hosts),
        tail=np.array(tail),
        head=np.array(head),
        rate_bytes_per_s=np.repeat(np.array(rates, dtype=float), 2),
        delay_s=np.full(2 * (n - 1), delay_s),
        queue_packets=np.full(2 * (n - 1), 100),
        next_wire=next_wire,
        background=tuple(background),
        transport=transport or Transport(buffer_bytes=1 << 40),
    )
