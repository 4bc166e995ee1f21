"""Layout of a test bed: interfaces, addresses, routes and wires as lines; no kernel.

Every node of the network is a network namespace with one address, ``10.77.x.y``, by its number;
or another prefix, since private addresses are none of routers in common.
Every cable is a pair of interfaces, one in each node, named by the cable and its end: ``w3t`` and
``w3h`` for the tail and the head of cable 3. Cables with neither delay nor loss are one veth with a
token bucket at both ends (``tbf``); others are two, whose far ends lie in the bed's own namespace
under the same names, where the link program (`link.c`) carries frames from one to the other.
Neighbours are known beforehand, so no packet is spent on finding them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.simulation.network import NO_WIRE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.simulation.network import SimulatedNetwork

FRAME_BYTES = 1514
# The bucket holds two frames: a burst that is no longer than the queue would let it be anyway.
BUCKET_BYTES = 2 * FRAME_BYTES
OFF_PREFIX = "net/ipv6/conf"
SETTINGS = {
    f"{OFF_PREFIX}/all/disable_ipv6": "1",
    f"{OFF_PREFIX}/default/disable_ipv6": "1",
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv4/conf/all/send_redirects": "0",
    "net/ipv4/conf/default/send_redirects": "0",
    # A connection must not know what one before it has learned.
    "net/ipv4/tcp_no_metrics_save": "1",
}


@dataclass(frozen=True)
class Cable:
    """Two opposite wires of the network: ``wire`` from tail to head, and the next one back."""

    number: int
    tail: int
    head: int
    is_emulated: bool

    @property
    def ends(self) -> tuple[tuple[int, str], tuple[int, str]]:
        """Node and interface of either end."""
        return (self.tail, f"w{self.number}t"), (self.head, f"w{self.number}h")


@dataclass(frozen=True)
class Layout:
    """Layout of a network in the kernel.

    Attributes
    ----------
    network : SimulatedNetwork
    loss : mapping of int to float
        By wire: the probability that a frame is lost on it.
    seed : int
        Of the losses.
    prefix : str
        Of all addresses.
    """

    network: SimulatedNetwork
    loss: Mapping[int, float]
    seed: int = 1
    prefix: str = "10.77"

    @property
    def cables(self) -> list[Cable]:
        """All cables; wires 2·i and 2·i + 1 of the network are the directions of cable i."""
        network, cables = self.network, []
        for wire in range(0, network.n_wires, 2):
            tail, head = int(network.tail[wire]), int(network.head[wire])
            back = (int(network.head[wire + 1]), int(network.tail[wire + 1]))
            assert (tail, head) == back, f"wire {wire + 1} does not lead back"
            emulated = any(
                network.delay_s[one] > 0 or self.loss.get(one, 0) > 0 for one in (wire, wire + 1)
            )
            cables.append(Cable(wire // 2, tail, head, emulated))
        return cables

    def address(self, node: int) -> str:
        """The address of a node."""
        return f"{self.prefix}.{node // 250}.{node % 250 + 1}"

    def interfaces(self, node: int) -> list[str]:
        """Names of a node's interfaces."""
        return [name for cable in self.cables for at, name in cable.ends if at == node]

    def new_cables(self, path_of: Mapping[int, str]) -> str:
        """What ``ip -batch`` reads in the bed's own namespace."""
        lines = []
        for cable in self.cables:
            (tail, at_tail), (head, at_head) = cable.ends
            if cable.is_emulated:
                for node, name in cable.ends:
                    lines.append(
                        f"link add {name} type veth peer name {name} "
                        f"address {_mac(cable, name)} netns {path_of[node]}"
                    )
                    lines.append(f"link set {name} up txqueuelen 1000")
            else:
                # Made in the tail's namespace at once: both ends far from here.
                lines.append(
                    f"link add name {at_tail} netns {path_of[tail]} address "
                    f"{_mac(cable, at_tail)} type veth peer name {at_head} "
                    f"address {_mac(cable, at_head)} netns {path_of[head]}"
                )
        return _lines(lines)

    def node_set_up(self, node: int) -> str:
        """What ``ip -batch`` reads in a node's namespace."""
        network = self.network
        own = self.address(node)
        lines = ["link set lo up", f"addr add {own}/32 dev lo"]
        out: dict[int, str] = {}
        for cable in self.cables:
            for (at, name), (far, far_name) in (cable.ends, cable.ends[::-1]):
                if at == node:
                    out[2 * cable.number + (at != cable.tail)] = name
                    lines.append(f"link set {name} up")
                    lines.append(
                        f"neigh add {self.address(far)} lladdr {_mac(cable, far_name)} "
                        f"dev {name} nud permanent"
                    )
        for target in range(network.n_nodes):
            wire = int(network.next_wire[node, target])
            if wire != NO_WIRE:
                via = self.address(int(network.head[wire]))
                lines.append(
                    f"route add {self.address(target)}/32 via {via} dev {out[wire]} "
                    f"onlink src {own}"
                )
        return _lines(lines)

    def buckets(self, node: int) -> str:
        """What ``tc -batch`` reads in a node's namespace; nothing where all wires have delays."""
        lines = []
        for cable in self.cables:
            for at, name in cable.ends:
                if at == node and not cable.is_emulated:
                    wire = 2 * cable.number + (at != cable.tail)
                    rate = round(8 * float(self.network.rate_bytes_per_s[wire]))
                    limit = int(self.network.queue_packets[wire]) * FRAME_BYTES
                    lines.append(
                        f"qdisc add dev {name} root tbf rate {rate}bit burst {BUCKET_BYTES} "
                        f"limit {max(limit, FRAME_BYTES)}"
                    )
        return _lines(lines)

    def emulated_wires(self) -> str:
        """What the link program reads, in the order of `emulated_numbers`."""
        network, lines = self.network, []
        for wire, (enters, leaves) in self._emulated().items():
            lines.append(
                f"{enters} {leaves} {float(network.rate_bytes_per_s[wire])!r} "
                f"{float(network.delay_s[wire])!r} {int(network.queue_packets[wire])} "
                f"{self.loss.get(wire, 0.0)!r} {self.seed * 1_000_003 + wire}"
            )
        return _lines(lines)

    @property
    def emulated_numbers(self) -> list[int]:
        """Wires that the link program carries."""
        return list(self._emulated())

    def _emulated(self) -> dict[int, tuple[str, str]]:
        ways = {}
        for cable in self.cables:
            if cable.is_emulated:
                (_, at_tail), (_, at_head) = cable.ends
                ways[2 * cable.number] = (at_tail, at_head)
                ways[2 * cable.number + 1] = (at_head, at_tail)
        return ways


def _mac(cable: Cable, name: str) -> str:
    end = 1 if name.endswith("h") else 0
    return f"02:00:00:{end:02x}:{cable.number // 256:02x}:{cable.number % 256:02x}"


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
