"""Layout of a drawing's nodes: transit domains as rings with their stub domains around them.

Networks without transit domains lie where their map says, or else as a graph whose distances on
paper follow the numbers of wires in between. One unit is about the room that a node needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from datacollect.numbers.arrays import FloatArray
    from datacollect.topologies.wiring import Wiring

Complex: TypeAlias = "npt.NDArray[np.complex128]"

# Beyond this many nodes distances on paper take too long.
_MOST_BY_DISTANCE = 300
_GAP = 0.8  # between stub domains that lie side by side
_RING = 1.3  # least radius of a transit domain


def place_nodes(topology: Wiring) -> FloatArray:
    """Return the place of each node, shape (n_nodes, 2); the same for the same topology.

    Examples
    --------
    >>> from datacollect.topologies import two_domains
    >>> place_nodes(two_domains()).shape
    (7, 2)
    """
    if "transit" in topology.kinds:
        places = _rings(topology)
    elif _map_is_usable(topology):
        places = _map(topology)
    else:
        places = _by_distance(topology, range(topology.n_nodes))
    _place_others(topology, places)
    return np.column_stack([places.real, places.imag])


# Transit-stub networks ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Stub:
    """A stub domain: its nodes, their places around 0, and how far these reach."""

    nodes: list[int]
    spread: Complex
    radius: float

    @property
    def width(self) -> float:
        return 2 * self.radius + _GAP


def _rings(topology: Wiring) -> Complex:
    """Places of all nodes of transit and stub domains, as complex numbers; NaN for others."""
    places = np.full(topology.n_nodes, np.nan + 0j)
    transit = list(_members(topology, "transit").values())
    gates = _gates(topology)
    stubs: dict[int, list[_Stub]] = {i: [] for nodes in transit for i in nodes}
    for nodes in _members(topology, "stub").values():
        spread = _spread(topology, nodes)
        stub = _Stub(nodes, spread, float(np.abs(spread).max()))
        stubs[_gate_of(topology, nodes, gates)].append(stub)
    # A gap for the peering wires: several domains ask for more of it than two.
    span = 2 * math.pi - {1: 0.0, 2: 1.0}.get(len(transit), 2.0)
    reach = [
        _ring_radii([s for i in nodes for s in stubs[i]], len(nodes), span) for nodes in transit
    ]
    largest = max((stub.radius for some in stubs.values() for stub in some), default=0.0)
    most = max(outer for _, outer in reach) + 2 * largest
    for k, nodes in enumerate(transit):
        centre, facing = _centre(k, len(transit), most)
        # The second of two is a mirror image: peering wires do not cross.
        sweep = -span if len(transit) == 2 and k == 1 else span
        # The first two, which peer, on both sides of the gap.
        order = [*nodes[0::2], *reversed(nodes[1::2])] if len(transit) > 1 else nodes
        inner, outer = reach[k]
        weights = [1.0 + sum(stub.width for stub in stubs[node]) for node in order]
        unit = sweep / sum(weights)  # angle per width
        at = facing + math.copysign(2 * math.pi - span, sweep) / 2
        for node, weight in zip(order, weights, strict=True):
            places[node] = centre + inner * np.exp(1j * (at + unit * weight / 2))
            begin = at + unit / 2
            for stub in stubs[node]:
                direction = complex(np.exp(1j * (begin + unit * stub.width / 2)))
                inside = _turned(topology, stub, node, -direction)
                places[stub.nodes] = centre + (outer + stub.radius) * direction + inside
                begin += unit * stub.width
            at += unit * weight
    return places


def _members(topology: Wiring, kind: str) -> dict[str, list[int]]:
    members: dict[str, list[int]] = {}
    for i, (given, domain) in enumerate(zip(topology.kinds, topology.domains, strict=True)):
        if given == kind:
            members.setdefault(domain, []).append(i)
    return members


def _gates(topology: Wiring) -> dict[int, int]:
    """Map nodes of stub domains that have a wire to a transit node to that node."""
    gates: dict[int, int] = {}
    for a, b in zip(topology.wire_from.tolist(), topology.wire_to.tolist(), strict=True):
        for one, other in ((a, b), (b, a)):
            if topology.kinds[one] == "stub" and topology.kinds[other] == "transit":
                gates.setdefault(one, other)
    return gates


def _gate_of(topology: Wiring, nodes: Sequence[int], gates: dict[int, int]) -> int:
    """The transit node of a stub domain; any, where it hangs on another stub domain."""
    found = [gates[node] for node in nodes if node in gates]
    return found[0] if found else topology.kinds.index("transit")


def _ring_radii(stubs: Sequence[_Stub], n_nodes: int, span: float) -> tuple[float, float]:
    """Radii of the ring of transit nodes and of the inner rim of the stub domains."""
    around = sum(stub.width for stub in stubs) + n_nodes
    rim = around / span - max((stub.radius for stub in stubs), default=0.0)
    inner = max(_RING, 0.45 * rim, 1.5 * n_nodes / (2 * math.pi))
    return inner, max(rim, inner + 1.6)


def _centre(k: int, n: int, most: float) -> tuple[complex, float]:
    """Centre of the k-th of n transit domains, and the direction in which the others lie."""
    if n == 1:
        return 0j, math.pi / 2
    angle = math.pi + 2 * math.pi * k / n if n == 2 else math.pi / 2 - 2 * math.pi * k / n
    apart = (most + 0.4) / math.sin(math.pi / n)
    return complex(apart * np.exp(1j * angle)), angle + math.pi


def _spread(topology: Wiring, nodes: list[int]) -> Complex:
    """The nodes of one domain around 0, about one unit apart."""
    if len(nodes) == 1:
        return np.zeros(1, dtype=complex)
    inside = _by_distance(topology, nodes)
    spread: Complex = inside * (0.62 * math.sqrt(len(nodes)) / np.abs(inside).max())
    return spread


def _turned(topology: Wiring, stub: _Stub, transit: int, towards: complex) -> Complex:
    """Turn a stub domain so that what is wired to its transit node lies on that side."""
    wired = set(_neighbours(topology, transit))
    near = stub.spread[[i for i, node in enumerate(stub.nodes) if node in wired]]
    side = near.mean() if len(near) else 0j
    turned: Complex = stub.spread * (towards / (side / abs(side)) if abs(side) > 1e-9 else 1.0)
    return turned


# Maps and other graphs ----------------------------------------------------------------------


def _map_is_usable(topology: Wiring) -> bool:
    if topology.positions is None:
        return False
    known = np.isfinite(topology.positions).all(axis=1)
    routers = np.array([kind != "host" for kind in topology.kinds])
    spread = np.ptp(topology.positions[known], axis=0).max() if known.any() else 0.0
    return bool(known.sum() > routers.sum() / 2 and spread > 0)


def _map(topology: Wiring) -> Complex:
    positions = np.asarray(topology.positions)
    known = np.isfinite(positions).all(axis=1)
    # Degrees of longitude are shorter than those of latitude, away from the equator.
    latitude = float(np.abs(positions[known, 1]).mean())
    shrink = math.cos(math.radians(latitude)) if latitude < 85 else 1.0
    places = positions[:, 0] * shrink + 1j * positions[:, 1]
    size = max(np.ptp(places[known].real), np.ptp(places[known].imag))
    places = (places - places[known].mean()) * (2.2 * math.sqrt(topology.n_nodes) + 6) / size
    places[~known] = np.nan
    return np.asarray(places, dtype=complex)


def _by_distance(topology: Wiring, nodes: Iterable[int]) -> Complex:
    """Places such that distances on paper follow the numbers of wires in between."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    chosen = np.array(list(nodes))
    n = len(chosen)
    if n == 1:
        return np.zeros(1, dtype=complex)
    index = np.full(topology.n_nodes, -1)
    index[chosen] = np.arange(n)
    ends = index[np.column_stack([topology.wire_from, topology.wire_to])]
    ends = ends[(ends >= 0).all(axis=1)]
    wires = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n)).tocsr()
    if n > _MOST_BY_DISTANCE:
        import networkx as nx

        at = nx.spring_layout(nx.from_scipy_sparse_array(wires), seed=0)
        places = np.array([complex(*at[i]) for i in range(n)])
    else:
        hops = shortest_path(wires, directed=False, unweighted=True)
        # A domain may be connected through others only.
        places = _least_stress(np.minimum(hops, n))
    places = places - places.mean()
    # The long side lies flat, as pages do, and the first node is to the left.
    _, axes = np.linalg.eigh(np.cov(np.column_stack([places.real, places.imag]).T))
    flat: Complex = places * np.conj(complex(*axes[:, 1]))
    size = 1.2 * math.sqrt(n) / float(np.abs(places).max())
    flat *= size if flat[0].real <= 0 else -size
    return flat


def _least_stress(distance: FloatArray) -> Complex:
    """Places whose distances are near those asked for: stress majorization from a circle.

    E. R. Gansner, Y. Koren, S. North, "Graph drawing by stress majorization", GD 2004.
    """
    n = len(distance)
    weight = 1 / (distance + np.eye(n)) ** 2 * (1 - np.eye(n))
    inverse = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)
    places: Complex = distance.max() / 2 * np.exp(2j * math.pi * np.arange(n) / n)
    for _ in range(300):
        apart = np.abs(places[:, np.newaxis] - places)
        pull = weight * distance / np.maximum(apart, 1e-9)
        moved = inverse @ (pull.sum(axis=1) * places - pull @ places)
        shift = np.abs(moved - places).max()
        places = moved
        if shift < 1e-4:
            break
    return places


def _place_others(topology: Wiring, places: Complex) -> None:
    """Put nodes without a place near a neighbour, where most room is."""
    middle = {
        domain: places[nodes].mean()
        for kind in ("transit", "stub")
        for domain, nodes in _members(topology, kind).items()
    }
    pending = np.flatnonzero(np.isnan(places)).tolist()
    while pending:
        # Along chains of unknown places, from known ones outwards; the topology is connected.
        for node in list(pending):
            known = [n for n in _neighbours(topology, node) if not np.isnan(places[n])]
            if known:
                centre = middle.get(topology.domains[known[0]], places[known[0]])
                places[node] = _spot_beside(topology, places, known[0], centre)
                pending.remove(node)


def _neighbours(topology: Wiring, node: int) -> list[int]:
    return [topology.index[name] for name in topology.neighbours(topology.names[node])]


def _spot_beside(topology: Wiring, places: Complex, home: int, centre: complex) -> complex:
    """Choose a place near node `home`: free, off its wires, and rather away from `centre`."""
    angles = np.exp(2j * math.pi * np.arange(32) / 32)
    bonus = np.zeros(len(angles))
    outward = places[home] - centre
    if abs(outward) > 1e-9:
        bonus += 0.1 * (angles * np.conj(outward / abs(outward))).real
    around = places[_neighbours(topology, home)] - places[home]
    around = around[np.abs(around) > 1e-9]  # NaN is not
    if len(around):
        off = np.abs(np.angle(angles[:, np.newaxis] / around)).min(axis=1)
        bonus += 0.6 * off.clip(max=0.5)
    others = places[~np.isnan(places)]
    first = 1.6 if topology.kinds[home] == "transit" else 1.0  # its dot is large
    best, most = complex(places[home]), -math.inf
    for reach in (first, 1.6 * first, 2.4 * first, 3.4 * first):
        spots = places[home] + reach * angles
        room = np.abs(spots[:, np.newaxis] - others).min(axis=1).clip(max=1.0)
        rank = room + bonus
        if rank.max() > most + 0.05:
            best, most = complex(spots[np.argmax(rank)]), float(rank.max())
        if room[np.argmax(rank)] > 0.8:
            break
    return best
