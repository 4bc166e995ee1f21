"""Random topologies for Hypothesis: a tree and some more wires, both directions unalike."""

from __future__ import annotations

import hypothesis.strategies as st

from datacollect.topologies import Node, Topology, Wire


@st.composite
def topologies(draw, most_nodes: int = 9, *, peering: bool = False) -> Topology:
    """A connected topology of routers; delays are whole milliseconds, some of them 0."""
    n = draw(st.integers(2 if peering else 1, most_nodes))
    names = [f"N{i}" for i in range(n)]
    pairs = {(draw(st.integers(0, i - 1)), i) for i in range(1, n)}
    others = sorted({(a, b) for b in range(n) for a in range(b)} - pairs)
    if others:
        pairs |= set(draw(st.lists(st.sampled_from(others), max_size=6)))
    rate, queue = st.integers(1, 9).map(float), st.integers(1, 99)
    wires = []
    for a, b in draw(st.permutations(sorted(pairs))):
        a, b = draw(st.sampled_from([(a, b), (b, a)]))
        delay_s = draw(st.integers(0, 4)) / 1000
        ends = (names[a], names[b])
        wires.append(Wire(*ends, (draw(rate), draw(rate)), delay_s, (draw(queue), draw(queue))))
    if peering:
        wires = _with_peering(draw, names, wires)
    return Topology.from_wires(wires, [Node(name) for name in names])


def _with_peering(draw, names: list[str], wires: list[Wire]) -> list[Wire]:
    """Nodes get labels; wires between different labels peer, so no way leads around them."""
    label = {name: draw(st.integers(0, 2)) for name in names}
    crossing = [label[wire.a] != label[wire.b] for wire in wires]
    return [
        Wire(w.a, w.b, w.rate_bytes_per_s, w.delay_s, w.queue_packets, "peering") if apart else w
        for w, apart in zip(wires, crossing, strict=True)
    ]
