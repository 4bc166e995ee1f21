"""A simulated network as the text that the C++ program reads, and what its results mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import ProblemError, SimulationError, nearest_hint
from datacollect.simulation.network import NO_WIRE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacollect.numbers.arrays import IntArray
    from datacollect.simulation.network import SimulatedNetwork, Transport

VARIANTS = (
    "Bbr",
    "Bic",
    "Cubic",
    "Dctcp",
    "HighSpeed",
    "Htcp",
    "Hybla",
    "Illinois",
    "Ledbat",
    "LinuxReno",
    "Lp",
    "NewReno",
    "Scalable",
    "Vegas",
    "Veno",
    "WestwoodPlus",
    "Yeah",
)

# Bytes per second of a wire: slower ones outlast ns-3's clock of 64 bits, faster ones outrun it.
LEAST_RATE, MOST_RATE = 1.0, 1e12

# Packets that have passed this many nodes are thrown away.
MOST_HOPS = 64

# The first addresses after 10.0.0.0 are given to nodes.
MOST_NODES = 1 << 20

# Entries of the routing tables, one per node and target. The process of ns-3 needs 200 MB, 17
# bytes per entry and 30 kB per node: 0.5 GB for 3000 nodes that are all hosts, 1.5 GB at most.
MOST_ROUTES = 64_000_000


def ns3_defaults(transport: Transport) -> dict[str, str]:
    """Return every attribute that a run sets, by ns-3's name: none is left to a default.

    Examples
    --------
    >>> from datacollect.simulation.network import Transport
    >>> ns3_defaults(Transport(variant="Cubic"))["ns3::TcpL4Protocol::SocketType"]
    'ns3::TcpCubic'
    >>> ns3_defaults(Transport(sack=False))["ns3::TcpSocketBase::Sack"]
    'false'
    """
    if transport.variant not in VARIANTS:
        raise ProblemError(
            f"transport: variant must be one of {', '.join(VARIANTS)}; got "
            f"{transport.variant!r}{nearest_hint(transport.variant, VARIANTS)}"
        )
    if transport.buffer_bytes < 2 * transport.segment_bytes:
        raise ProblemError(
            f"transport: buffer_bytes must hold two segments of {transport.segment_bytes} bytes, "
            f"got {transport.buffer_bytes}"
        )
    return {
        "ns3::TcpL4Protocol::SocketType": f"ns3::Tcp{transport.variant}",
        "ns3::TcpL4Protocol::RecoveryType": "ns3::TcpPrrRecovery",
        "ns3::TcpSocket::SegmentSize": str(transport.segment_bytes),
        "ns3::TcpSocket::SndBufSize": str(transport.buffer_bytes),
        "ns3::TcpSocket::RcvBufSize": str(transport.buffer_bytes),
        "ns3::TcpSocket::InitialCwnd": str(transport.initial_window_segments),
        "ns3::TcpSocket::InitialSlowStartThreshold": "4294967295",
        "ns3::TcpSocket::DelAckCount": str(transport.delayed_ack_segments),
        "ns3::TcpSocket::DelAckTimeout": "200ms",
        "ns3::TcpSocket::TcpNoDelay": "true",
        "ns3::TcpSocket::PersistTimeout": "6s",
        "ns3::TcpSocket::ConnTimeout": f"{round(transport.syn_timeout_s * 1e9)}ns",
        # ns-3 counts the first attempt too.
        "ns3::TcpSocket::ConnCount": str(transport.syn_retries + 1),
        "ns3::TcpSocket::DataRetries": str(transport.data_retries),
        "ns3::TcpSocketBase::MinRto": "1s",
        "ns3::TcpSocketBase::ClockGranularity": "1ms",
        "ns3::TcpSocketBase::Timestamp": "true",
        "ns3::TcpSocketBase::WindowScaling": "true",
        "ns3::TcpSocketBase::Sack": str(transport.sack).lower(),
        "ns3::TcpSocketBase::UseEcn": "Off",
        "ns3::TcpSocketBase::LimitedTransmit": "true",
        "ns3::UdpSocket::RcvBufSize": "131072",
    }


def hosts_of(network: SimulatedNetwork) -> list[str]:
    """Return the hosts in the order in which a run numbers them."""
    return list(network.host_node)


def scenario_text(
    network: SimulatedNetwork,
    backlog_bytes: Mapping[str, int],
    destination: str | None,
    *,
    seed: int,
    warm_up_s: float,
    time_limit_s: float,
    stall_s: float,
    relay_buffer_bytes: int | None,
) -> str:
    """Return the scenario: a line per thing, its first word says what it is.

    Parameters
    ----------
    destination : str or None
        None: nothing is ever complete, the controller ends the run.
    """
    _require_possible_rates(network)
    hosts = hosts_of(network)
    total = sum(backlog_bytes.values())
    segment = network.transport.segment_bytes
    lines = [f"default {name} {value}" for name, value in ns3_defaults(network.transport).items()]
    lines += [f"seed {seed}", f"nodes {network.n_nodes}"]
    back = opposite_wires(network)
    lines += [
        f"wire {network.tail[w]} {network.head[w]} {float(network.rate_bytes_per_s[w])!r} "
        f"{float(network.delay_s[w])!r} {network.queue_packets[w]} {back[w]}"
        for w in range(network.n_wires)
    ]
    lines += [
        f"change {change.wire} {change.at_s!r} {change.rate_bytes_per_s!r}"
        for change in network.changes
    ]
    for target in targets_of(network):
        wires = " ".join(map(str, network.next_wire[:, target].tolist()))
        lines.append(f"target {target} {wires}")
    lines += [f"host {network.host_node[h]} {backlog_bytes.get(h, 0)}" for h in hosts]
    lines += [
        f"background {int(f.kind == 'udp')} {f.from_node} {f.to_node} {f.start_s!r} "
        f"{f.rate_bytes_per_s!r} {f.mean_on_s!r} {f.mean_off_s!r}"
        for f in network.background
    ]
    number = -1 if destination is None else hosts.index(destination)
    # A curve of storage needs no point per packet.
    move_bytes = max(total // 2000, 8 * segment)
    lines.append(
        f"run {number} {warm_up_s!r} {time_limit_s!r} {stall_s!r} 1 {relay_buffer_bytes or 0} "
        f"{segment} {move_bytes}"
    )
    return "\n".join(lines) + "\n"


def opposite_wires(network: SimulatedNetwork) -> list[int]:
    """Return for each wire the one that makes a cable with it, or -1.

    Opposite wires of equal delay become one channel; ns-3 hands packets on faster where nodes have
    fewer devices.
    """
    back = [-1] * network.n_wires
    waiting: dict[tuple[int, int, float], list[int]] = {}
    for w in range(network.n_wires):
        tail, head, delay_s = int(network.tail[w]), int(network.head[w]), float(network.delay_s[w])
        others = waiting.get((head, tail, delay_s))
        if others:
            back[w] = others.pop(0)
            back[back[w]] = w
        else:
            waiting.setdefault((tail, head, delay_s), []).append(w)
    return back


def targets_of(network: SimulatedNetwork) -> list[int]:
    """Return the nodes that anything is sent to; acknowledgements travel too."""
    ends = set(network.host_node.values())
    for flow in network.background:
        ends |= {flow.from_node, flow.to_node}
    return sorted(ends)


def hops_to_targets(network: SimulatedNetwork, targets: Sequence[int]) -> IntArray:
    """Return the wires from every node to each target, -1 where there is no route.

    Raises
    ------
    SimulationError
        Routes go round in a circle, or further than packets live.
    """
    to = np.asarray(targets, dtype=np.int64)
    at = np.repeat(np.arange(network.n_nodes)[:, None], len(to), axis=1)
    hops = np.zeros(at.shape, dtype=np.int64)
    stuck = np.zeros(at.shape, dtype=bool)
    for _ in range(MOST_HOPS):
        wire = network.next_wire[at, to]
        stuck |= (wire == NO_WIRE) & (at != to)
        moves = (at != to) & ~stuck
        if not moves.any():
            break
        at = np.where(moves, network.head[np.where(moves, wire, 0)], at)
        hops += moves
    lost = np.argwhere((at != to) & ~stuck)
    if len(lost):
        node, target = int(lost[0, 0]), int(to[lost[0, 1]])
        raise SimulationError(
            f"routes from {network.node_names[node]!r} to {network.node_names[target]!r} take more "
            f"than {MOST_HOPS} wires or form a loop; ns-3 drops such packets"
        )
    return np.where(stuck, -1, hops)


def check_network(network: SimulatedNetwork) -> set[tuple[str, str]]:
    """Return the pairs of hosts that cannot reach each other in either direction.

    Raises
    ------
    ProblemError, SimulationError
        Something that ns-3 would abort on, or simulate as something else.
    """
    if network.n_nodes > MOST_NODES:
        raise SimulationError(f"{network.n_nodes} nodes; ns-3 runs take at most {MOST_NODES}")
    targets = targets_of(network)
    n_routes = network.n_nodes * len(targets)
    if n_routes > MOST_ROUTES:
        raise SimulationError(
            f"{network.n_nodes} nodes with {len(targets)} hosts and ends of background flows need "
            f"{n_routes} routes; ns-3 runs take at most {MOST_ROUTES}: take fewer hosts or nodes"
        )
    short = np.flatnonzero(network.queue_packets < 1)
    if len(short):
        raise ProblemError(
            f"wire {network.wire_name(int(short[0]))}: queue must hold >= 1 packet, got "
            f"{network.queue_packets[short[0]]}"
        )
    hops = hops_to_targets(network, targets)
    column = {node: i for i, node in enumerate(targets)}
    for number, flow in enumerate(network.background):
        name = f"background flow {number}"
        there, back = hops[flow.from_node, column[flow.to_node]], hops[flow.to_node]
        if flow.from_node == flow.to_node or there < 0 or back[column[flow.from_node]] < 0:
            raise ProblemError(
                f"{name}: no way from {network.node_names[flow.from_node]!r} to "
                f"{network.node_names[flow.to_node]!r} and back; choose another pair"
            )
        if not flow.start_s >= 0:
            raise ProblemError(f"{name}: start_s must be >= 0, got {flow.start_s}")
        if flow.kind == "udp" and not (flow.rate_bytes_per_s > 0 and flow.mean_off_s >= 0):
            raise ProblemError(
                f"{name}: rate_bytes_per_s must be > 0 and mean_off_s >= 0, got "
                f"{flow.rate_bytes_per_s} and {flow.mean_off_s}"
            )
        if flow.kind == "udp" and flow.mean_off_s > 0 and not flow.mean_on_s > 0:
            raise ProblemError(f"{name}: mean_on_s must be > 0, got {flow.mean_on_s}")
    hosts = list(network.host_node.items())
    nodes = np.array([node for _, node in hosts], dtype=np.int64)
    columns = [column[node] for _, node in hosts]
    one_way = hops[nodes][:, columns] < 0
    same = nodes[:, None] == nodes[None, :]
    apart = np.argwhere(one_way | one_way.T | same)
    return {(hosts[a][0], hosts[b][0]) for a, b in apart.tolist() if a != b}


def _require_possible_rates(network: SimulatedNetwork) -> None:
    """Refuse wires at whose rates ns-3's clock of whole nanoseconds fails."""
    changed = [change.rate_bytes_per_s for change in network.changes]
    wires = [*range(network.n_wires), *(change.wire for change in network.changes)]
    rates = np.append(network.rate_bytes_per_s, changed)
    bad = np.flatnonzero((rates < LEAST_RATE) | (rates > MOST_RATE))
    if len(bad):
        wire = wires[int(bad[0])]
        ends = [network.node_names[int(end[wire])] for end in (network.tail, network.head)]
        raise ProblemError(
            f"wire {ends[0]!r} -> {ends[1]!r}: rate_bytes_per_s must lie between {LEAST_RATE:g} "
            f"and {MOST_RATE:g} for ns-3, got {rates[bad[0]]:g}; change it, or use the fluid engine"
        )
