"""The topology: what generators make, files are read as, and simulators need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.topologies.drawing import save_figure, topology_figure
from datacollect.topologies.graphs import parts_of_graph, topology_to_networkx
from datacollect.topologies.routing import shortest_routes
from datacollect.topologies.wiring import Wiring

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    import networkx as nx
    from matplotlib.figure import Figure

    from datacollect.topologies.routing import Routes


@dataclass(frozen=True, eq=False, repr=False)
class Topology(Wiring):
    """Nodes and wires, as arrays. Build one with `from_wires`, or with a generator.

    Wires are turned so that `wire_from` < `wire_to`, and sorted by (`wire_to`, `wire_from`):
    topologies of the same nodes and wires are equal however they were built, and what `attach`
    adds comes last. Columns of shape ``(n_wires, 2)`` hold the direction from `wire_from` to
    `wire_to` first; they may be given as shape ``(n_wires,)``, or as one number, where both
    directions, or all wires, are alike.

    Attributes
    ----------
    names : tuple of str, length n_nodes
        Nodes' names; everywhere else a node is its index here.
    kinds, domains : tuple of str, length n_nodes
        As in `Node`.
    wire_from, wire_to : ndarray of int32, shape (n_wires,)
        Ends of the wires; no pair twice.
    rate_bytes_per_s : ndarray of float, shape (n_wires, 2)
    delay_s : ndarray of float, shape (n_wires,)
    queue_packets : ndarray of int64, shape (n_wires, 2)
        As in `Wire`.
    wire_kinds, wire_names : tuple of str, length n_wires
    positions : ndarray of float, shape (n_nodes, 2), or None
        Places on a map, for drawing only: x, y, or longitude, latitude; NaN where unknown.
    notes : tuple of str
        What was left out, or assumed, when it was read from a file.

    Examples
    --------
    >>> from datacollect.topologies import Wire
    >>> topology = Topology.from_wires(
    ...     [Wire("S", "R", 1e6, 0.01), Wire("R", "D", 2.5e5, 0.02, name="bottleneck")]
    ... )
    >>> topology.names, topology.n_wires, topology.neighbours("R")
    (('S', 'R', 'D'), 2, ('S', 'D'))
    >>> topology.rate_bytes_per_s[topology.wire_index("bottleneck")].tolist()
    [250000.0, 250000.0]
    """

    @classmethod
    def from_networkx(cls, graph: nx.Graph[Any]) -> Topology:
        """Build from an undirected graph; see `datacollect.topologies.graphs`."""
        return cls.from_wires(*parts_of_graph(graph))

    def to_networkx(self) -> nx.Graph[str]:
        """Return an undirected graph with the attributes that `from_networkx` reads."""
        return topology_to_networkx(self)

    def shortest_routes(
        self,
        destinations: Iterable[str] | None = None,
        *,
        weight: str = "hops",
        hot_potato: bool = False,
    ) -> Routes:
        """Return how packets travel; see `datacollect.topologies.routing.shortest_routes`."""
        return shortest_routes(self, destinations, weight=weight, hot_potato=hot_potato)

    def figure(self, title: str = "") -> Figure:
        """Draw the topology; see `datacollect.topologies.drawing.topology_figure`."""
        return topology_figure(self, title)

    def draw(self, path: str | PathLike[str], title: str = "") -> None:
        """Draw the topology into a file: PNG, SVG or PDF by its suffix."""
        save_figure(self, path, title)
