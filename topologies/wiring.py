"""Nodes, the wires between them, and what each wire carries: valid and connected.

Routing, drawing and graphs take a `Wiring`; a `Topology`, which leads to them, is one. A wire is a
physical line, not to be confused with a link, which is an ordered pair of hosts with a bandwidth
between them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.topologies.parts import Node, Wire
from datacollect.topologies.rules import (
    DEFAULT_QUEUE_PACKETS,
    checked_delays,
    checked_domains,
    checked_ends,
    checked_kinds,
    checked_names,
    checked_positions,
    checked_queues,
    checked_rates,
    reject_disconnected,
    reject_forwarding_hosts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.numbers.arrays import FloatArray, IndexArray, IntArray


@dataclass(frozen=True, eq=False)
class Wiring:
    """Nodes and wires, as arrays: what a topology says without routes and generators.

    Attributes are those of `datacollect.topologies.topology.Topology`.

    Examples
    --------
    >>> wiring = Wiring.from_wires(
    ...     [Wire("S", "R", 1e6, 0.01), Wire("R", "D", 2.5e5, 0.02, name="bottleneck")]
    ... )
    >>> wiring.names, wiring.n_wires, wiring.neighbours("R")
    (('S', 'R', 'D'), 2, ('S', 'D'))
    >>> wiring.rate_bytes_per_s[wiring.wire_index("bottleneck")].tolist()
    [250000.0, 250000.0]
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    domains: tuple[str, ...]
    wire_from: IndexArray
    wire_to: IndexArray
    rate_bytes_per_s: FloatArray
    delay_s: FloatArray
    queue_packets: IntArray
    wire_kinds: tuple[str, ...]
    wire_names: tuple[str, ...]
    positions: FloatArray | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = checked_names(self.names, "node")
        if not names:
            raise ProblemError("a topology needs at least one node, got none")
        tail, head = checked_ends(names, self.wire_from, self.wire_to)
        wire_names = checked_names(self.wire_names, "wire")
        if len(wire_names) != len(tail):
            raise ProblemError(
                f"wire_names: one per wire is needed ({len(tail)}), got {len(wire_names)}"
            )
        wire_kinds = checked_kinds(self.wire_kinds, wire_names, "wire")
        kinds = checked_kinds(self.kinds, names, "node")
        reject_disconnected(names, tail, head)
        reject_forwarding_hosts(names, kinds, tail, head)
        turned = tail > head
        order = np.lexsort((np.minimum(tail, head), np.maximum(tail, head)))
        both_ways = {
            "rate_bytes_per_s": checked_rates(self.rate_bytes_per_s, wire_names),
            "queue_packets": checked_queues(self.queue_packets, wire_names),
        }
        arrays: dict[str, Any] = {
            key: np.where(turned[:, np.newaxis], values[:, ::-1], values)[order]
            for key, values in both_ways.items()
        }
        arrays["wire_from"] = np.minimum(tail, head)[order]
        arrays["wire_to"] = np.maximum(tail, head)[order]
        arrays["delay_s"] = checked_delays(self.delay_s, wire_names)[order]
        arrays["positions"] = checked_positions(self.positions, len(names))
        for key, array in arrays.items():
            if array is not None:
                array.flags.writeable = False
            object.__setattr__(self, key, array)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "domains", checked_domains(self.domains, names))
        object.__setattr__(self, "wire_kinds", tuple(wire_kinds[i] for i in order))
        object.__setattr__(self, "wire_names", tuple(wire_names[i] for i in order))

    # Construction ---------------------------------------------------------------------------

    @classmethod
    def from_wires(
        cls,
        wires: Iterable[Wire],
        nodes: Iterable[Node] = (),
        positions: FloatArray | None = None,
    ) -> Self:
        """Build a topology from Python objects.

        Parameters
        ----------
        wires : iterable of Wire
        nodes : iterable of Node
            They come first, in this order; ends of wires that are not among them become routers
            without a domain.
        positions : ndarray of float, shape (n_nodes, 2), optional

        Raises
        ------
        ProblemError
            A rule is broken; the message names node or wire, rule, value and remedy.
        """
        wires, nodes = list(wires), list(nodes)
        index = {node.name: i for i, node in enumerate(nodes)}
        for name in (name for wire in wires for name in (wire.a, wire.b)):
            if name not in index:
                index[name] = len(nodes)
                nodes.append(Node(name))
        rates = [_pair(wire.rate_bytes_per_s) for wire in wires]
        queues = [_pair(wire.queue_packets) for wire in wires]
        return cls(
            names=tuple(node.name for node in nodes),
            kinds=tuple(node.kind for node in nodes),
            domains=tuple(node.domain for node in nodes),
            wire_from=np.array([index[wire.a] for wire in wires], dtype=np.int32),
            wire_to=np.array([index[wire.b] for wire in wires], dtype=np.int32),
            rate_bytes_per_s=np.array(rates, dtype=float).reshape(-1, 2),
            delay_s=np.array([wire.delay_s for wire in wires], dtype=float),
            queue_packets=np.array(queues).reshape(-1, 2),
            wire_kinds=tuple(wire.kind for wire in wires),
            wire_names=tuple(wire.name or f"{wire.a}-{wire.b}" for wire in wires),
            positions=positions,
        )

    def attach(
        self,
        host: str,
        node: str,
        rate_bytes_per_s: float | tuple[float, float],
        delay_s: float,
        queue_packets: int | tuple[int, int] = DEFAULT_QUEUE_PACKETS,
    ) -> Self:
        """Return a new topology with an end host behind a wire of its own.

        The host belongs to the domain of its node. Indices of nodes and wires stay what they are;
        the host and its wire, ``"host-node"``, come last.

        Parameters
        ----------
        host : str
            The new host's name.
        node : str
            Where it attaches; not a host.
        rate_bytes_per_s, delay_s, queue_packets
            As in `Wire`; of two values the first is the host's way out.

        Examples
        --------
        >>> line = Wiring.from_wires([Wire("A", "B", 1e6, 0.01)])
        >>> line.attach("S", "A", 312_500.0, 0.001).attach("D", "B", 1e6, 0.001).hosts
        ('S', 'D')
        """
        place = self.node_index(node)
        if self.kinds[place] == "host":
            raise ProblemError(
                f"host {host!r}: cannot attach to {node!r}, which is a host and forwards nothing; "
                "attach to a router"
            )
        if host in self.index:
            raise ProblemError(f"host {host!r}: the topology has a node of this name already")
        (out, back), (host_queue, node_queue) = _pair(rate_bytes_per_s), _pair(queue_packets)
        positions = self.positions
        if positions is not None:
            positions = np.vstack([positions, [[np.nan, np.nan]]])
        return replace(
            self,
            names=(*self.names, host),
            kinds=(*self.kinds, "host"),
            domains=(*self.domains, self.domains[place]),
            wire_from=np.append(self.wire_from, place),
            wire_to=np.append(self.wire_to, self.n_nodes),
            rate_bytes_per_s=np.vstack([self.rate_bytes_per_s, [[back, out]]]),
            delay_s=np.append(self.delay_s, delay_s),
            queue_packets=np.vstack([self.queue_packets, [[node_queue, host_queue]]]),
            wire_kinds=(*self.wire_kinds, "access"),
            wire_names=(*self.wire_names, f"{host}-{node}"),
            positions=positions,
        )

    # Questions ------------------------------------------------------------------------------

    @property
    def n_nodes(self) -> int:
        """Number of nodes, hosts included."""
        return len(self.names)

    @property
    def n_wires(self) -> int:
        """Number of wires; each counts once for both directions."""
        return len(self.wire_from)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Index of each node by name."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Names of the end hosts."""
        pairs = zip(self.names, self.kinds, strict=True)
        return tuple(name for name, kind in pairs if kind == "host")

    @cached_property
    def _wire_index(self) -> Mapping[str, int]:
        return {name: i for i, name in enumerate(self.wire_names)}

    @cached_property
    def _incident(self) -> tuple[tuple[int, ...], ...]:
        incident: list[list[int]] = [[] for _ in self.names]
        for i in range(self.n_wires):
            incident[self.wire_from[i]].append(i)
            incident[self.wire_to[i]].append(i)
        return tuple(tuple(wires) for wires in incident)

    def node_index(self, name: str) -> int:
        """Return a node's index, or raise `ProblemError`."""
        if name not in self.index:
            raise ProblemError(
                f"there is no node {name!r} in the topology" + nearest_hint(str(name), self.names)
            )
        return self.index[name]

    def wire_index(self, name: str) -> int:
        """Return a wire's index, or raise `ProblemError`."""
        if name not in self._wire_index:
            raise ProblemError(
                f"there is no wire {name!r} in the topology"
                + nearest_hint(str(name), self.wire_names)
            )
        return self._wire_index[name]

    def wires_of_kind(self, kind: str) -> IntArray:
        """Return the indices of the wires of one kind."""
        return np.flatnonzero(np.array([given == kind for given in self.wire_kinds], dtype=bool))

    def wires_at(self, node: str) -> tuple[int, ...]:
        """Return the indices of a node's wires."""
        return self._incident[self.node_index(node)]

    def neighbours(self, node: str) -> tuple[str, ...]:
        """Return the names of the nodes that share a wire with `node`, in the order of wires."""
        here = self.node_index(node)
        ends = ((int(self.wire_from[i]), int(self.wire_to[i])) for i in self._incident[here])
        return tuple(self.names[b if a == here else a] for a, b in ends)

    @cached_property
    def sha256(self) -> str:
        """Hash of nodes and wires, names included; where they are drawn does not count."""
        digest = hashlib.sha256()
        words = (self.names, self.kinds, self.domains, self.wire_kinds, self.wire_names)
        digest.update(repr(words).encode())
        # Byte order is fixed: the hash is the same on any machine.
        for array in (self.wire_from, self.wire_to, self.queue_packets):
            digest.update(array.astype("<i8").tobytes())
        for rates in (self.rate_bytes_per_s, self.delay_s):
            digest.update(rates.astype("<f8").tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        what = type(self).__name__
        return f"<{what}: {self.n_nodes} nodes, {self.n_wires} wires, {len(self.hosts)} hosts>"


def _pair(value: Any) -> tuple[Any, Any]:
    """One value for both directions, or two."""
    if isinstance(value, tuple | list | np.ndarray):
        if len(value) != 2:
            raise ProblemError(f"give one value for both directions of a wire or two, got {value}")
        return value[0], value[1]
    return value, value
