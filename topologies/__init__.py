"""Topologies: routers, hosts and the wires between them, as simulators need them.

Generators and small networks of our own; public networks are read from files or through the
package ``topohub``.
"""

from datacollect.topologies.graphml import from_graphml
from datacollect.topologies.parts import Node, Wire
from datacollect.topologies.routing import Routes, shortest_routes
from datacollect.topologies.small import dumbbell, line, star, two_domains
from datacollect.topologies.topohub import from_topohub
from datacollect.topologies.topology import Topology
from datacollect.topologies.transit_stub import WireClass, paper_152, transit_stub

__all__ = [
    "Node",
    "Routes",
    "Topology",
    "Wire",
    "WireClass",
    "dumbbell",
    "from_graphml",
    "from_topohub",
    "line",
    "paper_152",
    "shortest_routes",
    "star",
    "transit_stub",
    "two_domains",
]
