"""Flows in whole bytes: as cheap as the fluid one, on its arcs, within storage that is full."""

from __future__ import annotations

import numpy as np
import pytest

import datacollect as dc
from datacollect.flow.network.layered import breakpoints_s, layered_network
from datacollect.flow.quickest.cheapest import CheapestFlow
from datacollect.flow.whole_flow import in_whole_bytes
from datacollect.solvers.budget import Budget


def stored_flow(room_bytes, noise=0.0):
    """A and B hold 3 bytes each; half of both waits at K, half at L, for a second.

    K and L receive 1.5 bytes of each, and send what they have from 1 s on; L's way is dearer.
    """
    hosts = [dc.Host(name, 3) for name in "AB"]
    hosts += [dc.Host(name, storage_bytes=room_bytes) for name in "KL"]
    links = [dc.Link(a, b, [1.5, 0.0]) for a in "AB" for b in "KL"]
    links += [dc.Link("K", "D", [0.0, 3.0], price_per_gb=1.0)]
    links += [dc.Link("L", "D", [0.0, 3.0], price_per_gb=2.0)]
    problem = dc.Problem.from_hosts([*hosts, dc.Host("D")], links, "D", periods_s=[0.0, 1.0])
    network = layered_network(problem, breakpoints_s(problem))
    relays = [problem.host_index[name] for name in "KL"]
    at_relay = np.isin(network.node_host[network.head], relays)
    flow = np.where(network.stored & at_relay, 3.0 * (1 + noise), 0.0)
    first, links = network.piece == 0, network.link >= 0
    flow[links & first] = 1.5
    flow[links & ~first & (network.head == network.sink)] = 3.0
    flow[(network.tail >= network.n_hosts * network.n_pieces) & first] = 3.0
    return problem, CheapestFlow(network, np.array([1.0, 1.0]), flow, "by hand")


def balance_of(network, units):
    balance = np.zeros(network.n_nodes, dtype=np.int64)
    np.add.at(balance, network.tail, units)
    np.subtract.at(balance, network.head, units)
    return balance


@pytest.mark.parametrize("noise", [0.0, 1e-10, -1e-10])
def test_what_is_full_holds_whole_bytes_and_no_more(noise):
    """3 bytes in each store; each of the four first hops carries 1 or 2 bytes."""
    problem, fluid = stored_flow(3.0, noise)
    whole = in_whole_bytes(problem, fluid, "money", Budget())
    assert whole is not None
    assert whole.unit_bytes == 1.0
    network = whole.network
    balance = balance_of(network, whole.units)
    assert balance[network.sink] == -6
    assert sorted(balance[balance > 0].tolist()) == [3, 3]
    assert whole.units[network.stored & (fluid.flow_bytes > 0)].tolist() == [3, 3]
    first = whole.units[(network.link >= 0) & (network.piece == 0)]
    assert sorted(first.tolist()) == [1, 1, 2, 2]


@pytest.mark.parametrize("room_bytes", [1000.0, np.inf])
def test_where_there_is_room_for_rounding_none_is_needed(room_bytes):
    problem, fluid = stored_flow(room_bytes)
    assert in_whole_bytes(problem, fluid, "money", Budget()) is None
