"""Small networks that fit in the head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.files.units import bytes_per_s_from_mbit_per_s
from datacollect.topologies.parts import Node, Wire
from datacollect.topologies.rules import DEFAULT_QUEUE_PACKETS
from datacollect.topologies.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Sequence


def line(
    n_nodes: int,
    *,
    rate_bytes_per_s: float,
    delay_s: float,
    queue_packets: int = DEFAULT_QUEUE_PACKETS,
) -> Topology:
    """Return routers N0, N1, ... in a row.

    Examples
    --------
    >>> line(3, rate_bytes_per_s=1e6, delay_s=0.01).wire_names
    ('N0-N1', 'N1-N2')
    """
    _require_number_of("n_nodes", n_nodes, 1)
    return Topology.from_wires(
        [
            Wire(f"N{i}", f"N{i + 1}", rate_bytes_per_s, delay_s, queue_packets)
            for i in range(n_nodes - 1)
        ],
        [Node(f"N{i}") for i in range(n_nodes)],
    )


def star(
    n_hosts: int,
    *,
    rate_bytes_per_s: float,
    delay_s: float,
    queue_packets: int = DEFAULT_QUEUE_PACKETS,
) -> Topology:
    """Return hosts H0, H1, ... around one router, ``hub``.

    Examples
    --------
    >>> star(3, rate_bytes_per_s=1e6, delay_s=0.01).neighbours("hub")
    ('H0', 'H1', 'H2')
    """
    _require_number_of("n_hosts", n_hosts, 1)
    topology = Topology.from_wires([], [Node("hub")])
    return _with_hosts(
        topology,
        [(f"H{i}", "hub") for i in range(n_hosts)],
        (rate_bytes_per_s, delay_s, queue_packets),
    )


def dumbbell(
    n_left: int = 2,
    n_right: int = 2,
    *,
    rate_bytes_per_s: float,
    delay_s: float,
    queue_packets: int = DEFAULT_QUEUE_PACKETS,
    access_rate_bytes_per_s: float,
    access_delay_s: float,
    access_queue_packets: int = DEFAULT_QUEUE_PACKETS,
) -> Topology:
    """Return hosts L0, L1, ... and R0, R1, ... on two routers with one wire, ``bottleneck``.

    Examples
    --------
    >>> topology = dumbbell(
    ...     rate_bytes_per_s=1e6, delay_s=0.02, access_rate_bytes_per_s=1e7, access_delay_s=0.001
    ... )
    >>> topology.hosts, topology.wire_names[0]
    (('L0', 'L1', 'R0', 'R1'), 'bottleneck')
    """
    _require_number_of("n_left", n_left, 1)
    _require_number_of("n_right", n_right, 1)
    topology = Topology.from_wires(
        [Wire("left", "right", rate_bytes_per_s, delay_s, queue_packets, name="bottleneck")],
        [Node("left", domain="left"), Node("right", domain="right")],
    )
    hosts = [(f"L{i}", "left") for i in range(n_left)] + [
        (f"R{i}", "right") for i in range(n_right)
    ]
    access = (access_rate_bytes_per_s, access_delay_s, access_queue_packets)
    return _with_hosts(topology, hosts, access)


def two_domains(
    hosts_a: Sequence[str] = ("D",),
    hosts_b: Sequence[str] = ("S0", "S1"),
    *,
    peering_rate_bytes_per_s: float | Sequence[float] = bytes_per_s_from_mbit_per_s(5.0),
    peering_delay_s: float = 0.020,
    transit_rate_bytes_per_s: float = bytes_per_s_from_mbit_per_s(10.0),
    transit_delay_s: float = 0.010,
    access_rate_bytes_per_s: float = bytes_per_s_from_mbit_per_s(10.0),
    access_delay_s: float = 0.005,
    queue_packets: int = DEFAULT_QUEUE_PACKETS,
) -> Topology:
    """Return two domains, A and B, with two peering wires and hosts behind them.

    The smallest network in which a relay helps: the direct routes of hosts of B may crowd one
    peering wire while the other is idle. Domain A is the routers A0 and A1 with a wire between
    them, B likewise; the peering wires are ``B0-A0`` and ``B1-A1``. Hosts attach in turn to the
    first and the second router of their domain.

    Parameters
    ----------
    hosts_a, hosts_b : sequence of str
    peering_rate_bytes_per_s : float or (float, float)
        Of both peering wires, or of ``B0-A0`` and of ``B1-A1``.
    peering_delay_s, transit_rate_bytes_per_s, transit_delay_s : float
    access_rate_bytes_per_s, access_delay_s : float
    queue_packets : int
        Of all wires.

    Examples
    --------
    >>> topology = two_domains()
    >>> topology.neighbours("B0"), topology.neighbours("B1")
    (('A0', 'B1', 'S0'), ('A1', 'B0', 'S1'))
    """
    rates = peering_rate_bytes_per_s
    first, second = (rates, rates) if isinstance(rates, int | float) else rates
    domestic = (transit_rate_bytes_per_s, transit_delay_s, queue_packets, "transit")
    topology = Topology.from_wires(
        [
            Wire("B0", "A0", first, peering_delay_s, queue_packets, "peering"),
            Wire("B1", "A1", second, peering_delay_s, queue_packets, "peering"),
            Wire("A0", "A1", *domestic),
            Wire("B0", "B1", *domestic),
        ],
        [Node(name, "transit", name[0]) for name in ("A0", "A1", "B0", "B1")],
    )
    hosts = [(host, f"A{i % 2}") for i, host in enumerate(hosts_a)]
    hosts += [(host, f"B{i % 2}") for i, host in enumerate(hosts_b)]
    access = (access_rate_bytes_per_s, access_delay_s, queue_packets)
    return _with_hosts(topology, hosts, access)


def _with_hosts(
    topology: Topology, hosts: list[tuple[str, str]], access: tuple[float, float, int]
) -> Topology:
    for host, node in hosts:
        topology = topology.attach(host, node, *access)
    return topology


def _require_number_of(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ProblemError(f"{name} must be a whole number >= {least}, got {value!r}")
