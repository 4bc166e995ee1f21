"""Maps, GraphML and GML: read as they were written; damaged, refused in words or read."""

from __future__ import annotations

import io
import random
import warnings

import networkx as nx
from instances.dressed_texts import damaged, encoded
from instances.files_in_memory import file_with

from datacollect.errors import DatacollectError, DatacollectWarning
from datacollect.topologies import from_graphml

DEFAULT_BYTES_PER_S = 1e6
BIT_PER_S = (1e6, 34e6, 155e6, 1e9, 2.5e9, 1e10, 1e11)


def case(seed: int) -> str | None:
    """Read a random map as it is, or damaged."""
    rng = random.Random(f"maps {seed}")
    graph, rates = _map(rng)
    text, name = _written(rng, graph)
    if rng.random() < 0.5:
        # Packed GML and other encodings of it are not what networkx writes.
        data = encoded(rng, text) if name.endswith("graphml") else text.encode()
        found = _rates(data, name)
        return None if found == rates else f"{name}: {found}, expected {rates}"
    found = _rates(damaged(rng, text.encode()), name)
    return "refused without a word" if isinstance(found, str) and not found.strip() else None


def _map(rng: random.Random) -> tuple[nx.Graph, dict[tuple[str, str], float]]:
    """Return a connected map, and bytes per second of each of its wires by its ends' names."""
    n = rng.randint(2, 9)
    graph = nx.Graph()
    graph.add_nodes_from((i, {"label": f"town {i}", "Longitude": 1.5 * i}) for i in range(n))
    rates = {}
    for a, b in {(rng.randrange(i), i) for i in range(1, n)}:
        bit_per_s = rng.choice(BIT_PER_S)
        stated = rng.choice(
            [
                {},
                {"LinkSpeedRaw": bit_per_s},
                {"LinkSpeed": f"{bit_per_s / 1e6:g}", "LinkSpeedUnits": "M"},
                {"LinkLabel": f"{bit_per_s / 1e9:g} Gbit/s"},
            ]
        )
        graph.add_edge(a, b, **stated)
        rates[f"town {a}", f"town {b}"] = bit_per_s / 8 if stated else DEFAULT_BYTES_PER_S
    return graph, rates


def _written(rng: random.Random, graph: nx.Graph) -> tuple[str, str]:
    if rng.random() < 0.3:
        # networkx writes nodes' own names as labels.
        named = nx.relabel_nodes(graph, dict(graph.nodes(data="label")))
        return "\n".join(nx.generate_gml(named)) + "\n", "map.gml"
    buffer = io.BytesIO()
    nx.write_graphml(graph, buffer, encoding="utf-8")
    # The declaration would contradict other encodings.
    return buffer.getvalue().decode().partition("?>\n")[2], "map.graphml"


def _rates(data: bytes, name: str) -> dict[tuple[str, str], float] | str:
    with file_with(data, name) as path, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DatacollectWarning)
        try:
            found = from_graphml(path, default_rate_bytes_per_s=DEFAULT_BYTES_PER_S)
        except DatacollectError as error:
            return str(error)
    return {
        tuple(sorted((found.names[a], found.names[b]))): float(rate)
        for a, b, rate in zip(
            found.wire_from, found.wire_to, found.rate_bytes_per_s[:, 0], strict=True
        )
    }
