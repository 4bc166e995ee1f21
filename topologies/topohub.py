"""Topologies from the package ``topohub``: some 700 real and synthetic networks.

The package is optional, and imported by name when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from datacollect.errors import DatacollectError, ProblemError
from datacollect.installation import command_for_package, is_absent
from datacollect.topologies.maps import Line, MapOptions, Site, topology_of_map
from datacollect.topologies.rules import DEFAULT_QUEUE_PACKETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.topologies.topology import Topology

GROUPS = ("backbone", "caida", "gabriel", "sndlib", "topozoo")


def from_topohub(
    name: str,
    *,
    rate_bytes_per_s: float,
    default_delay_s: float = 0.005,
    queue_packets: int = DEFAULT_QUEUE_PACKETS,
    largest_component: bool = False,
) -> Topology:
    """Return a network of the package ``topohub`` (``pip install topohub``).

    Delays are those of light in fibre along the lengths that the package gives; it gives no rates.

    Parameters
    ----------
    name : str
        Group and name, such as ``"topozoo/Abilene"``, ``"sndlib/polska"``, ``"gabriel/25/0"``.
    rate_bytes_per_s : float
        Of all wires.
    default_delay_s : float
        Of wires without a length.
    queue_packets : int
    largest_component : bool
        Keep only the largest part of a network that is not connected.

    Raises
    ------
    DatacollectError
        The package is not installed.
    ProblemError
        It has no network of this name.

    References
    ----------
    P. Jurkiewicz, "TopoHub: A repository of reference Gabriel graph and real-world topologies for
    networking research", SoftwareX 24, 2023.
    """
    try:
        topohub = import_module("topohub")
    except ImportError as error:
        if not is_absent(error, "topohub"):
            raise
        raise DatacollectError(
            f"network {name!r}: the package topohub is not installed ({error}); "
            f"install it with: {command_for_package('topohub')}"
        ) from None
    try:
        tree = topohub.get(name)
    except KeyError:
        raise ProblemError(
            f"topohub has no network {name!r}; names are a group ({', '.join(GROUPS)}) and a name "
            "as in its repository, such as 'topozoo/Abilene'"
        ) from None
    flat = name.startswith("gabriel/")  # places in a plane, not on the globe
    sites = [_site(node, flat=flat) for node in tree["nodes"]]
    lines = [
        Line(str(edge["source"]), str(edge["target"]), length_km=edge.get("dist"))
        for edge in tree["edges"]
    ]
    options = MapOptions(rate_bytes_per_s, default_delay_s, queue_packets, True, largest_component)
    return topology_of_map(f"topohub {name}", sites, lines, options)


def _site(node: Mapping[str, Any], *, flat: bool) -> Site:
    place = node.get("pos")
    x, y = (None, None) if place is None or flat else place
    return Site(
        str(node["id"]),
        str(node.get("name") or ""),
        place=None if x is None or y is None else (float(x), float(y)),
    )
