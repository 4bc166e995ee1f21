"""Networks for the bed, made by what plans and engines are made from: scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.scenario.scenario import Scenario
from datacollect.scenario.setting import build, network_of
from datacollect.topologies import Node, Topology, Wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacollect.scenario.setting import Setting
    from datacollect.simulation.network import SimulatedNetwork

PEERING_BYTES_PER_S = 625_000.0


def two_domains(
    *,
    backlog_bytes: int = 2_000_000,
    flows: int = 0,
    split: Sequence[int] = (1, 1),
    seed: int = 1,
    method: str = "coordinated",
    **more: Any,
) -> Setting:
    """Two domains, two peering wires of 5 Mbit/s, seven sources, one destination, one relay.

    The destination ``D`` is at A0, the sources ``S1`` to ``S7`` at B0: all direct routes cross the
    peering wire B0-A0. From B1 packets go to A0 by B1-A1: through the relay ``K1`` at B1 half of
    the data get past the crowded wire. Seven sources share 5 Mbit/s, or twice that.
    The planner knows which wires bind. Others' flows go from routers of B to routers of A.
    """
    tree: dict[str, Any] = {
        "name": "two-domains",
        "topology": {"kind": "two-domains"},
        "hosts": {
            "access": {"rate_bytes_per_s": 1_250_000, "delay_s": 0.0},
            "destination": {"at": "A0", "access": {"rate_bytes_per_s": 12_500_000, "delay_s": 0.0}},
            "sources": [{"at": "B0", "count": 7, "backlog_bytes": backlog_bytes}],
            "relays": [{"at": "B1"}],
        },
        "estimates": {
            "know_access": True,
            "shared": [{"wire": name} for name in ("B0-A0", "B1-A1", "B0-B1", "A0-A1")],
        },
        "method": {"name": method},
        "run": {"seed": seed},
    }
    if flows:
        between = {"from": "B", "to": "A", "over": ["B0-A0", "B1-A1"]}
        tree["background"] = {"flows": flows, "split": list(split), **between}
    for place, values in more.items():
        tree[place] = tree.get(place, {}) | values
    return build(Scenario.from_dict(tree))


def one_wire(
    rate_bytes_per_s: float, *, delay_s: float = 0.0, queue_packets: int = 50
) -> SimulatedNetwork:
    """Hosts L and R with a wire between them."""
    wires = [Wire("L", "R", rate_bytes_per_s, delay_s, queue_packets)]
    topology = Topology.from_wires(wires, [Node("L"), Node("R")])
    routes = topology.shortest_routes()
    return network_of(topology, {"L": "L", "R": "R"}, routes.next_wire)


def star(
    rates_bytes_per_s: Mapping[str, float], *, delay_s: float = 0.0, queue_packets: int = 50
) -> SimulatedNetwork:
    """Hosts with a wire each, of their own rate, to the router X."""
    wires = [
        Wire(name, "X", rate, delay_s, queue_packets) for name, rate in rates_bytes_per_s.items()
    ]
    topology = Topology.from_wires(wires, [Node("X"), *map(Node, rates_bytes_per_s)])
    hosts = {name: name for name in rates_bytes_per_s}
    return network_of(topology, hosts, topology.shortest_routes().next_wire)
