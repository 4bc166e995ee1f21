"""Topologies from and to undirected graphs (networkx)."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.topologies.parts import Node, Wire
from datacollect.topologies.rules import DEFAULT_QUEUE_PACKETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import networkx as nx

    from datacollect.numbers.arrays import FloatArray
    from datacollect.topologies.wiring import Wiring


def parts_of_graph(graph: nx.Graph[Any]) -> tuple[list[Wire], list[Node], FloatArray | None]:
    """Return what `Topology.from_wires` takes, from an undirected graph.

    Parameters
    ----------
    graph : networkx.Graph
        Nodes are names, with optional attributes ``kind`` (default ``"router"``), ``domain``, and
        ``x``, ``y`` for drawing. Edges are wires, with ``rate_bytes_per_s`` and ``delay_s``, and
        optionally ``queue_packets`` (default 50), ``kind`` (default ``"backbone"``) and ``name``.
        Rate and queue are a number, or a pair: from the end that comes first among the graph's
        nodes to the other, and back. Other attributes are ignored.

    Raises
    ------
    ProblemError
        Not a simple undirected graph, an attribute that is missing or no number, or a broken rule
        of `Topology`.

    Examples
    --------
    >>> import networkx as nx
    >>> graph = nx.Graph()
    >>> graph.add_edge("A", "B", rate_bytes_per_s=1e6, delay_s=0.01)
    >>> wires, nodes, positions = parts_of_graph(graph)
    >>> [node.name for node in nodes], wires[0].rate_bytes_per_s, positions
    (['A', 'B'], 1000000.0, None)
    """
    if graph.is_directed() or graph.is_multigraph():
        raise ProblemError(
            f"the graph must be a networkx.Graph, got {type(graph).__name__}; networkx.Graph(graph)"
            " makes one edge of two directions, and keeps one of parallel edges"
        )
    order = {node: i for i, node in enumerate(graph)}
    wires = []
    for a, b, data in graph.edges(data=True):
        first, second = (a, b) if order[a] <= order[b] else (b, a)
        wires.append(_wire_of_edge(first, second, data))
    nodes = [_node(name, data) for name, data in graph.nodes(data=True)]
    positions = np.array(
        [[data.get("x", np.nan), data.get("y", np.nan)] for _, data in graph.nodes(data=True)],
        dtype=float,
    ).reshape(-1, 2)
    return wires, nodes, None if np.isnan(positions).all() else positions


def topology_to_networkx(topology: Wiring) -> nx.Graph[str]:
    """Return an undirected graph from which `Topology.from_networkx` makes the same topology.

    Examples
    --------
    >>> from datacollect.topologies import Topology
    >>> topology = Topology.from_wires([Wire("A", "B", 1e6, 0.01)])
    >>> graph = topology_to_networkx(topology)
    >>> graph.edges["A", "B"]["rate_bytes_per_s"], graph.edges["A", "B"]["queue_packets"]
    (1000000.0, 50)
    >>> Topology.from_networkx(graph).sha256 == topology.sha256
    True
    """
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph()
    for i, name in enumerate(topology.names):
        graph.add_node(name, kind=topology.kinds[i], domain=topology.domains[i])
        if topology.positions is not None and np.isfinite(topology.positions[i]).all():
            x, y = topology.positions[i].tolist()
            graph.nodes[name].update(x=x, y=y)
    rates, queues = topology.rate_bytes_per_s.tolist(), topology.queue_packets.tolist()
    ends = zip(topology.wire_from.tolist(), topology.wire_to.tolist(), strict=True)
    for i, (a, b) in enumerate(ends):
        graph.add_edge(
            topology.names[a],
            topology.names[b],
            name=topology.wire_names[i],
            kind=topology.wire_kinds[i],
            rate_bytes_per_s=_one_or_pair(rates[i]),
            delay_s=float(topology.delay_s[i]),
            queue_packets=_one_or_pair(queues[i]),
        )
    return graph


def _one_or_pair(values: list[Any]) -> Any:
    return values[0] if values[0] == values[1] else tuple(values)


def _node(name: Any, data: Mapping[str, Any]) -> Node:
    if not isinstance(name, str):
        raise ProblemError(
            f"node {name!r}: a node's name must be text; networkx.relabel_nodes(graph, str) turns "
            "all names into text"
        )
    for key in ("x", "y"):
        _require_number(data.get(key, 0.0), f"node {name!r}: {key}")
    return Node(name, data.get("kind", "router"), data.get("domain", ""))


def _wire_of_edge(first: Any, second: Any, data: Mapping[str, Any]) -> Wire:
    where = f"edge {first!r} - {second!r}"
    for key in ("rate_bytes_per_s", "delay_s"):
        if key not in data:
            raise ProblemError(f"{where}: {key} is missing, got attributes {list(data)}")
    queue = data.get("queue_packets", DEFAULT_QUEUE_PACKETS)
    values = {"rate_bytes_per_s": data["rate_bytes_per_s"], "queue_packets": queue}
    for key, value in values.items():
        several = isinstance(value, tuple | list | np.ndarray)
        for number in value if several else (value,):
            _require_number(number, f"{where}: {key}")
    _require_number(data["delay_s"], f"{where}: delay_s")
    return Wire(
        first,
        second,
        data["rate_bytes_per_s"],
        data["delay_s"],
        queue,
        data.get("kind", "backbone"),
        data.get("name", ""),
    )


def _require_number(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ProblemError(f"{where} must be a number, got {value!r}")
