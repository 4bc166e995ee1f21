"""The simulated network: wires, where hosts are, how packets are routed, and who else sends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.numbers.arrays import FloatArray, IntArray


NO_WIRE = -1

# Of each segment in ns-3: 2 bytes of PPP, 20 of IP, 32 of TCP with time stamps.
HEADER_BYTES = 54


@dataclass(frozen=True)
class BackgroundFlow:
    """Traffic of others, for as long as the simulation lasts.

    Attributes
    ----------
    kind : {"tcp", "udp"}
        An endless TCP transfer, or UDP datagrams in exponential on and off times.
    from_node, to_node : int
    start_s : float
    rate_bytes_per_s : float
        UDP's rate while on.
    mean_on_s, mean_off_s : float
        UDP's mean on and off times.
    """

    kind: Literal["tcp", "udp"]
    from_node: int
    to_node: int
    start_s: float = 0.0
    rate_bytes_per_s: float = 0.0
    mean_on_s: float = 0.0
    mean_off_s: float = 0.0


@dataclass(frozen=True)
class RateChange:
    """Another rate of a wire from an instant on, until its next change.

    Attributes
    ----------
    at_s : float
        From the beginning of the collection.
    wire : int
    rate_bytes_per_s : float
    """

    at_s: float
    wire: int
    rate_bytes_per_s: float


@dataclass(frozen=True)
class Transport:
    """Parameters of TCP; every value is recorded with the result.

    Attributes
    ----------
    variant : str
        Congestion control by ns-3's name: ``"NewReno"``, ``"Cubic"``, ``"Htcp"``, ``"Scalable"``,
        ``"Bic"``, ``"HighSpeed"``, ``"Bbr"`` …
    segment_bytes : int
    buffer_bytes : int
        Send and receive buffer of each socket.
    initial_window_segments : int
    delayed_ack_segments : int
    syn_timeout_s : float
        First retry of an unanswered SYN; doubles with each further one.
    syn_retries, data_retries : int
    sack : bool
        Selective acknowledgements (Mathis et al., RFC 2018, 1996).
    """

    variant: str = "NewReno"
    segment_bytes: int = 1448
    buffer_bytes: int = 1 << 20
    initial_window_segments: int = 10
    delayed_ack_segments: int = 2
    syn_timeout_s: float = 1.0
    syn_retries: int = 20
    data_retries: int = 20
    # Not in repr, by which measurements are hashed: `network_sha256` adds it where it is off.
    sack: bool = field(default=True, repr=False)


# How TCP is set up by default elsewhere, by name, where that differs.
PRESETS: dict[str, dict[str, int | bool]] = {
    # Packets of 1000 bytes, at most 20 of them under way, 2 to begin with, an acknowledgement for
    # each, none of them selective ("The ns Manual", 2011, chapter 35: packetSize_, window_,
    # windowInit_ of RFC 2581's time, Agent/TCPSink).
    "ns-2": {
        "segment_bytes": 1000,
        "buffer_bytes": 20_000,
        "initial_window_segments": 2,
        "delayed_ack_segments": 1,
        "sack": False,
    },
}


@dataclass(frozen=True, eq=False)
class SimulatedNetwork:
    """Nodes joined by one-way wires; two opposite wires make a cable.

    Attributes
    ----------
    node_names : tuple of str
    host_node : mapping of str to int
        The node of every host that takes part in the collection.
    tail, head : ndarray of int, shape (n_wires,)
    rate_bytes_per_s, delay_s : ndarray of float, shape (n_wires,)
    queue_packets : ndarray of int, shape (n_wires,)
        Length of the drop-tail queue before the wire.
    next_wire : ndarray of int, shape (n_nodes, n_nodes)
        ``next_wire[node, target]``: the wire on which `node` sends what is for `target`;
        `NO_WIRE` where there is no route, and on the diagonal.
    background : tuple of BackgroundFlow
    transport : Transport
    changes : tuple of RateChange
        Of wires' rates while the collection lasts, in the order of time.
    """

    node_names: tuple[str, ...]
    host_node: Mapping[str, int]
    tail: IntArray
    head: IntArray
    rate_bytes_per_s: FloatArray
    delay_s: FloatArray
    queue_packets: IntArray
    next_wire: IntArray
    background: tuple[BackgroundFlow, ...] = ()
    transport: Transport = field(default_factory=Transport)
    changes: tuple[RateChange, ...] = ()

    def __post_init__(self) -> None:
        slow = np.flatnonzero(~(self.rate_bytes_per_s > 0))
        if len(slow):
            raise ProblemError(
                f"wire {self.wire_name(int(slow[0]))}: rate must be > 0, got "
                f"{self.rate_bytes_per_s[slow[0]]:g}; leave the wire out"
            )
        late = np.flatnonzero(~(self.delay_s >= 0))
        if len(late):
            raise ProblemError(
                f"wire {self.wire_name(int(late[0]))}: delay must be >= 0, got "
                f"{self.delay_s[late[0]]:g}"
            )
        before_s = 0.0
        for change in self.changes:
            name = self.wire_name(change.wire)
            if not change.rate_bytes_per_s > 0:
                raise ProblemError(
                    f"wire {name}: rate from {change.at_s:g} s on must be > 0, got "
                    f"{change.rate_bytes_per_s:g}"
                )
            if not change.at_s >= before_s:
                raise ProblemError(
                    f"wire {name}: changes must be listed in the order of time, got one at "
                    f"{change.at_s:g} s after {before_s:g} s"
                )
            before_s = change.at_s

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.node_names)

    @property
    def n_wires(self) -> int:
        """Number of one-way wires."""
        return len(self.tail)

    def wire_name(self, wire: int) -> str:
        """Return ``"from -> to"`` of a wire."""
        return f"{self.node_names[self.tail[wire]]} -> {self.node_names[self.head[wire]]}"

    def path(self, from_node: int, to_node: int) -> list[int]:
        """Return the wires from one node to another.

        Raises
        ------
        ProblemError
            There is no route, or routes go round in a circle.
        """
        wires: list[int] = []
        node = from_node
        while node != to_node:
            wire = int(self.next_wire[node, to_node])
            if wire == NO_WIRE or len(wires) > self.n_nodes:
                raise ProblemError(
                    f"no route from {self.node_names[from_node]!r} to "
                    f"{self.node_names[to_node]!r}; join their parts of the topology"
                )
            wires.append(wire)
            node = int(self.head[wire])
        return wires

    def one_way_s(self, from_node: int, to_node: int) -> float:
        """Return the delay of the wires, without queues and transmission."""
        return float(self.delay_s[self.path(from_node, to_node)].sum())

    def base_round_trip_s(self, from_node: int, to_node: int) -> float:
        """Return the delays of the wires there and back, without queues and transmission."""
        return self.one_way_s(from_node, to_node) + self.one_way_s(to_node, from_node)
