"""Networks for the bed, made by what plans and engines are made from: scenarios."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any

from datacollect.problem.host_limits import LIMITS
from datacollect.scenario.scenario import Scenario
from datacollect.scenario.setting import build, network_of
from datacollect.topologies import Node, Topology, Wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacollect.scenario.setting import Setting
    from datacollect.simulation.network import SimulatedNetwork

PEERING_BYTES_PER_S = 625_000.0
MBIT_PER_S = 125_000.0
# Of a frame of 1514 bytes TCP carries 1448.
PAYLOAD = 1448 / 1514


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


@dataclass(frozen=True)
class DrawnNetwork:
    """A network that was drawn, and what a plan is told where all its wires are known.

    Attributes
    ----------
    network : SimulatedNetwork
    sources : tuple of str
    hosts : tuple of str
        The destination, ``D``, is the last.
    has : tuple of str
        Which of ``shared wire``, ``two-homed host`` and ``slow relay`` it has.
    known : dict
        Hosts, links and ``[[shared]]`` of a problem: of each link what TCP carries over its
        narrowest wire, of each wire that several links cross what it carries in all; hosts have no
        other limits.
    """

    network: SimulatedNetwork
    sources: tuple[str, ...]
    hosts: tuple[str, ...]
    has: tuple[str, ...]
    known: dict[str, Any]


def drawn(seed: int) -> DrawnNetwork:
    """Draw a network: sources S1 to S3, the relay K and the destination D around the router X.

    Each has one line to X, but that two sources may lie behind one wire, whose rate is some part of
    the sum of theirs (`shared wire`), that a source may have a second wire, to the relay or to
    another source (`two-homed host`), and that the line of the relay may be slower than all others
    (`slow relay`): each in half of all networks.
    """
    draws = random.Random(seed)

    def rate(least: float, most: float) -> float:
        """Draw so that each doubling is as likely as any other."""
        return least * (most / least) ** draws.random() * MBIT_PER_S

    sources = ("S1", "S2", "S3")
    line = {name: rate(1.5, 6.0) for name in sources}
    has = {name: draws.random() < 0.5 for name in ("shared wire", "two-homed host", "slow relay")}
    line["K"] = rate(0.5, 1.0) if has["slow relay"] else rate(3.0, 12.0)
    line["D"] = 30 * MBIT_PER_S
    behind = set(draws.sample(sources, 2)) if has["shared wire"] else set()
    ends = [(name, "Y" if name in behind else "X", rate) for name, rate in line.items()]
    if behind:
        of_sum = draws.uniform(0.4, 0.9)
        ends.append(("Y", "X", of_sum * sum(line[name] for name in behind)))
    if has["two-homed host"]:
        home = draws.choice(sorted({*sources} - behind))
        other = draws.choice(sorted({*sources, "K"} - {home}))
        ends.append((home, other, rate(1.5, 6.0)))
    wires = [Wire(one, other, rate, 0.004, 50) for one, other, rate in ends]
    hosts = (*sources, "K", "D")
    topology = Topology.from_wires(
        wires, [Node(name) for name in (*hosts, "X", "Y")[: 6 + bool(behind)]]
    )
    routes = topology.shortest_routes()
    links, crossing = [], {}
    for tail, head in permutations(hosts, 2):
        way = routes.directed_wires(tail, head)
        carries = min(float(topology.rate_bytes_per_s[wire]) for wire in way)
        links.append({"from": tail, "to": head, "bandwidth_bytes_per_s": PAYLOAD * carries})
        for wire in way:
            crossing.setdefault(wire, []).append([tail, head])
    shared = [
        {
            "name": f"{topology.wire_names[wire]}, {'there' if way == 0 else 'back'}",
            "bandwidth_bytes_per_s": PAYLOAD * float(topology.rate_bytes_per_s[wire, way]),
            "links": members,
        }
        for (wire, way), members in sorted(crossing.items())
        if len(members) > 1
    ]
    return DrawnNetwork(
        network_of(topology, {name: name for name in hosts}, routes.next_wire),
        sources,
        hosts,
        tuple(name for name, there in has.items() if there),
        {
            "hosts": {name: dict.fromkeys(LIMITS, "none") for name in hosts},
            "links": links,
            "shared": shared,
        },
    )
