"""Transit-stub networks after Zegura, Calvert and Bhattacharjee.

Transit domains are joined by peering wires; stub domains hang on transit nodes. Each domain is a
random graph, each pair of its nodes wired with the same probability, drawn again and again until
it is connected: sparse domains therefore have more wires than the probability alone says.

References
----------
E. W. Zegura, K. L. Calvert, S. Bhattacharjee, "How to Model an Internetwork", IEEE INFOCOM 1996.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.units import bytes_per_s_from_mbit_per_s
from datacollect.topologies.parts import Node, Wire
from datacollect.topologies.rules import DEFAULT_QUEUE_PACKETS, component_labels
from datacollect.topologies.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.numbers.arrays import FloatArray

Number: TypeAlias = "int | tuple[int, int]"

# Random numbers that one connected domain may cost.
_MAX_DRAWN = 10_000_000


@dataclass(frozen=True)
class WireClass:
    """Common parameters of all wires of one kind: rate of each direction, delay, queue."""

    rate_bytes_per_s: float
    delay_s: float
    queue_packets: int = DEFAULT_QUEUE_PACKETS


# Rates are the core paper's; it names no delays. These put about 0.1 s between hosts of different
# domains there and back, as between continents; the differences between classes are usual ones.
PEERING = WireClass(bytes_per_s_from_mbit_per_s(5.0), delay_s=0.020)
TRANSIT = WireClass(bytes_per_s_from_mbit_per_s(10.0), delay_s=0.010)
TRANSIT_STUB = WireClass(bytes_per_s_from_mbit_per_s(2.5), delay_s=0.005)
STUB = WireClass(bytes_per_s_from_mbit_per_s(2.5), delay_s=0.001)


def paper_152(
    *,
    seed: int = 0,
    peering: WireClass = PEERING,
    transit: WireClass = TRANSIT,
    transit_stub_wires: WireClass = TRANSIT_STUB,
    stub: WireClass = STUB,
) -> Topology:
    """Return the 152-node network on which coordinated data collection was first evaluated.

    Two transit domains of 4 nodes, edge probability 0.6; 3 stub domains per transit node, 6 nodes
    each, edge probability 0.2: 2·4 + 8·3·6 = 152 nodes. Two peering wires, ``B0-A0`` and
    ``B1-A1``, carry 5 Mbit/s, other wires of transit domains 10 Mbit/s, transit-stub wires and
    those of stub domains 2.5 Mbit/s. The source gives the numbers of nodes as means; here every
    domain has the mean. It names neither delays nor queues; here they are 20 ms for peering
    wires, 10 ms within transit domains, 5 ms between transit and stub, 1 ms within stub domains,
    and 50 packets, unless other classes are given.

    Parameters
    ----------
    seed : int
        Same seed, same network, on any machine.
    peering, transit, transit_stub_wires, stub : WireClass
        Rate, delay and queue by class of wire.

    References
    ----------
    C.-F. Chou, Y.-C. Wan, W. C. Cheng, L. Golubchik, S. Khuller, "A Performance Study of a
    Large-scale Data Collection Problem", UMIACS-TR-2002-62, University of Maryland 2002, section 4.

    Examples
    --------
    >>> topology = paper_152(seed=1)
    >>> topology.n_nodes, [topology.wire_names[i] for i in topology.wires_of_kind("peering")]
    (152, ['B0-A0', 'B1-A1'])
    """
    return transit_stub(
        seed=seed,
        n_transit_domains=2,
        nodes_per_transit_domain=4,
        transit_edge_probability=0.6,
        stubs_per_transit_node=3,
        nodes_per_stub=6,
        stub_edge_probability=0.2,
        peering_wires=2,
        peering=peering,
        transit=transit,
        transit_stub_wires=transit_stub_wires,
        stub=stub,
    )


def transit_stub(
    *,
    seed: int,
    n_transit_domains: int = 2,
    nodes_per_transit_domain: Number = 4,
    transit_edge_probability: float = 0.6,
    stubs_per_transit_node: Number = 3,
    nodes_per_stub: Number = 6,
    stub_edge_probability: float = 0.2,
    extra_transit_stub: int = 0,
    extra_stub_stub: int = 0,
    peering_wires: int = 2,
    peering: WireClass = PEERING,
    transit: WireClass = TRANSIT,
    transit_stub_wires: WireClass = TRANSIT_STUB,
    stub: WireClass = STUB,
) -> Topology:
    """Draw a transit-stub network.

    Transit domains are called A, B, ...; their nodes A0, A1, ...; the stub domains of A0 are A0.0,
    A0.1, ... and the nodes of the last one A0.1.0, A0.1.1, ... Every two transit domains peer:
    their i-th peering wire joins the i-th nodes of both. One wire joins each stub domain, from a
    node of it that is drawn, to its transit node.

    Parameters
    ----------
    seed : int
        At least 0. Same seed and parameters, same network, on any machine and with any version of
        numpy: only the raw numbers of its PCG64 generator are used.
    n_transit_domains : int
    nodes_per_transit_domain, stubs_per_transit_node, nodes_per_stub : int or (int, int)
        The same number everywhere, or the least and the most of numbers drawn uniformly, whose
        mean lies halfway.
    transit_edge_probability, stub_edge_probability : float
        Of a wire between two nodes of one domain; in (0, 1].
    extra_transit_stub : int
        Wires to add in all between nodes of transit and stub domains, drawn among all pairs.
    extra_stub_stub : int
        Wires to add in all between nodes of two different stub domains, drawn among all pairs.
        Extra wires may lead around the peering wires.
    peering_wires : int
        Between each two transit domains; at most the nodes that both have.
    peering, transit, transit_stub_wires, stub : WireClass
        Rate, delay and queue by class of wire; extra wires between stub domains are of class
        `stub`.

    Raises
    ------
    ProblemError
        A parameter out of its range, or a domain so sparse that it is never connected.

    Examples
    --------
    >>> topology = transit_stub(seed=1, stubs_per_transit_node=(0, 2), nodes_per_stub=1)
    >>> [name for name in topology.names if name.startswith("B")]
    ['B0', 'B1', 'B2', 'B3', 'B1.0.0', 'B1.1.0', 'B2.0.0', 'B2.1.0', 'B3.0.0']
    """
    _require_whole("seed", seed, 0)
    for name, number, least in (
        ("n_transit_domains", n_transit_domains, 1),
        ("extra_transit_stub", extra_transit_stub, 0),
        ("extra_stub_stub", extra_stub_stub, 0),
        ("peering_wires", peering_wires, 1 if n_transit_domains > 1 else 0),
    ):
        _require_whole(name, number, least)
    for name, probability in (
        ("transit_edge_probability", transit_edge_probability),
        ("stub_edge_probability", stub_edge_probability),
    ):
        if isinstance(probability, bool) or not 0 < probability <= 1:
            raise ProblemError(f"{name} must be > 0 and <= 1, got {probability!r}")
    transit_sizes = _range("nodes_per_transit_domain", nodes_per_transit_domain, 1)
    stub_numbers = _range("stubs_per_transit_node", stubs_per_transit_node, 0)
    stub_sizes = _range("nodes_per_stub", nodes_per_stub, 1)

    draws = _Draws(seed)
    net = _Net()
    domains = []
    for i in range(n_transit_domains):
        domain = _letters(i)
        domains.append(
            net.add_domain(
                "transit",
                domain,
                [f"{domain}{k}" for k in range(draws.between(*transit_sizes))],
                transit_edge_probability,
                draws,
                transit,
            )
        )
    for one, other in combinations(domains, 2):
        net.add_peering(one, other, peering_wires, peering)
    for gate in [node for domain in domains for node in domain]:
        for k in range(draws.between(*stub_numbers)):
            domain = f"{gate}.{k}"
            nodes = [f"{domain}.{j}" for j in range(draws.between(*stub_sizes))]
            net.add_domain("stub", domain, nodes, stub_edge_probability, draws, stub)
            net.add("transit-stub", gate, nodes[draws.below(len(nodes))], transit_stub_wires)
    net.add_extra("extra_transit_stub", extra_transit_stub, draws, transit_stub_wires)
    net.add_extra("extra_stub_stub", extra_stub_stub, draws, stub)
    return Topology.from_wires(net.wires, net.nodes)


class _Draws:
    """Random numbers from the raw output of PCG64, which numpy keeps the same for ever.

    What numpy makes of the raw numbers may change between versions (NEP 19).
    """

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def uniform(self, n: int) -> FloatArray:
        """Numbers in [0, 1)."""
        raw = np.asarray(self._bits.random_raw(n), dtype=np.uint64)
        return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, n: int) -> int:
        """Return one of 0 ... n - 1."""
        return int(self.uniform(1)[0] * n)

    def between(self, least: int, most: int) -> int:
        """Return one of least ... most; where they agree, nothing is drawn."""
        return least if least == most else least + self.below(most - least + 1)


class _Net:
    """A network that grows."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.wires: list[Wire] = []

    def add(self, kind: str, a: str, b: str, what: WireClass) -> None:
        self.wires.append(Wire(a, b, what.rate_bytes_per_s, what.delay_s, what.queue_packets, kind))

    def add_domain(
        self,
        kind: str,
        domain: str,
        names: list[str],
        probability: float,
        draws: _Draws,
        what: WireClass,
    ) -> list[str]:
        self.nodes += [Node(name, kind, domain) for name in names]
        for a, b in _connected_pairs(draws, len(names), probability, f"{kind} domain {domain!r}"):
            self.add(kind, names[a], names[b], what)
        return names

    def add_peering(
        self, one: Sequence[str], other: Sequence[str], n_wires: int, what: WireClass
    ) -> None:
        if n_wires > min(len(one), len(other)):
            raise ProblemError(
                f"peering_wires must be at most the nodes of each transit domain, got {n_wires} "
                f"for domains of {len(one)} and {len(other)} nodes"
            )
        for a, b in zip(one[:n_wires], other[:n_wires], strict=True):
            self.add("peering", b, a, what)

    def add_extra(self, name: str, number: int, draws: _Draws, what: WireClass) -> None:
        if number == 0:
            return
        kinds = {"transit", "stub"} if name == "extra_transit_stub" else {"stub"}
        wired = {frozenset((wire.a, wire.b)) for wire in self.wires}
        pairs = [
            (a.name, b.name)
            for a, b in combinations(self.nodes, 2)
            if {a.kind, b.kind} == kinds
            and a.domain != b.domain
            and frozenset((a.name, b.name)) not in wired
        ]
        if number > len(pairs):
            raise ProblemError(f"{name} must be at most {len(pairs)} here, got {number}")
        for _ in range(number):
            a, b = pairs.pop(draws.below(len(pairs)))
            self.add("transit-stub" if len(kinds) == 2 else "stub", a, b, what)


def _connected_pairs(
    draws: _Draws, n_nodes: int, probability: float, where: str
) -> list[tuple[int, int]]:
    """Draw each pair of nodes with one probability, all again until they connect all nodes."""
    tail, head = np.triu_indices(n_nodes, k=1)
    for _ in range(max(100, _MAX_DRAWN // max(len(tail), 1) ** 2)):
        chosen = draws.uniform(len(tail)) < probability
        if chosen.sum() < n_nodes - 1:
            continue
        if not component_labels(n_nodes, tail[chosen], head[chosen]).any():
            return list(zip(tail[chosen].tolist(), head[chosen].tolist(), strict=True))
    raise ProblemError(
        f"{where}: {n_nodes} nodes wired with probability {probability:g} are hardly ever "
        f"connected; give a higher edge probability, {np.log(n_nodes) / n_nodes:.2g} or more"
    )


def _letters(i: int) -> str:
    """Return A ... Z, AA, AB, ..."""
    name = ""
    while i >= 0:
        name = chr(ord("A") + i % 26) + name
        i = i // 26 - 1
    return name


def _range(name: str, value: Any, least: int) -> tuple[int, int]:
    pair = tuple(value) if isinstance(value, tuple | list) else (value, value)
    if len(pair) != 2:
        raise ProblemError(f"{name} must be a number or two, the least and the most, got {value!r}")
    for number in pair:
        _require_whole(name, number, least)
    if pair[0] > pair[1]:
        raise ProblemError(f"{name}: the least must not be above the most, got {value!r}")
    return pair[0], pair[1]


def _require_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ProblemError(f"{name} must be a whole number >= {least}, got {value!r}")
