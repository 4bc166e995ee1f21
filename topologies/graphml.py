"""Topologies from maps as files: GraphML and GML, such as those of the Internet Topology Zoo."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from datacollect.errors import DatacollectWarning, ProblemError
from datacollect.files.documents import document_name, read_bytes, unpacked
from datacollect.files.quantities import plain_number
from datacollect.topologies.map_files import MapFile, read_map_file
from datacollect.topologies.maps import Line, MapOptions, Site, topology_of_map
from datacollect.topologies.rules import DEFAULT_QUEUE_PACKETS
from datacollect.topologies.speeds import speed_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from datacollect.topologies.topology import Topology


def from_graphml(
    path: str | PathLike[str],
    *,
    default_rate_bytes_per_s: float,
    rate_factor: float = 1.0,
    default_delay_s: float = 0.005,
    queue_packets: int = DEFAULT_QUEUE_PACKETS,
    keep_external: bool = True,
    largest_component: bool = False,
) -> Topology:
    """Read a network from a GraphML or GML file, as the Internet Topology Zoo has them.

    A node is called by its ``label``, with its id in brackets where labels repeat, and ``node ID``
    where it has none. A wire has the rate that the file states: ``LinkSpeedRaw`` (bit/s),
    ``LinkSpeed`` in ``LinkSpeedUnits``, or a speed with its unit as ``LinkLabel`` or ``label``, be
    it a default that the file declares. It has the delay of light in fibre (2/3 of its speed in
    vacuum) along the great circle where both ends have ``Longitude`` and ``Latitude``, at least
    10 µs. Parallel edges become one wire: the sum of their rates, the shortest of their delays.
    Loops are left out.

    Parameters
    ----------
    path : path
        The file, also packed by gzip or bzip2; what it is, its content says.
    default_rate_bytes_per_s : float
        Of edges without a speed that is understood: most have none.
    rate_factor : float
        Factor on the speeds of the file, not on the default: packet by packet, 10 Gbit/s take a
        thousand times as long to simulate as 10 Mbit/s.
    default_delay_s : float
        Where a place is unknown.
    queue_packets : int
    keep_external : bool
        Whether to keep the nodes of other networks (``Internal`` = 0), which get the kind
        ``"external"``.
    largest_component : bool
        Keep only the largest part of a network that is not connected.

    Returns
    -------
    Topology
        Its ``notes`` say how many edges took the default, and what they state that is not
        understood.

    Raises
    ------
    ProblemError
        The file cannot be read, is no map, has a speed or place that is none, or two of them, or
        its network is not connected; the message names the file, the place and the remedy.

    Warns
    -----
    DatacollectWarning
        Each of the notes.

    References
    ----------
    S. Knight, H. X. Nguyen, N. Falkner, R. Bowden, M. Roughan, "The Internet Topology Zoo", IEEE
    Journal on Selected Areas in Communications 29(9), 2011.
    """
    options = MapOptions(
        default_rate_bytes_per_s,
        default_delay_s,
        queue_packets,
        keep_external,
        largest_component,
        notes_defaults=True,
    )
    topology = read_map(path, options, rate_factor)
    for text in topology.notes:
        warnings.warn(text, DatacollectWarning, stacklevel=2)
    return topology


def read_map(path: str | PathLike[str], options: MapOptions, rate_factor: float = 1.0) -> Topology:
    """Read a map as `from_graphml` does, which warns of what its notes say."""
    if not 0 < rate_factor < math.inf:
        raise ProblemError(f"rate_factor must be > 0 and finite, got {rate_factor}")
    where = document_name(path)
    graph = read_map_file(unpacked(read_bytes(path), where), where)
    sites = [_site(where, key, data) for key, data in graph.nodes.items()]
    return topology_of_map(where, sites, _lines(where, graph, rate_factor), options)


def _lines(where: str, graph: MapFile, rate_factor: float) -> list[Line]:
    lines = []
    for edge in graph.edges:
        speed = speed_of(edge.data, f"{where}: edge {edge.source!r} - {edge.target!r}")
        rate = None if speed.bytes_per_s is None else speed.bytes_per_s * rate_factor
        lines.append(
            Line(
                edge.source,
                edge.target,
                rate,
                one_way=edge.one_way,
                not_understood=speed.not_understood,
            )
        )
    return lines


def _site(where: str, key: str, data: Mapping[str, Any]) -> Site:
    label = data.get("label")
    label = "" if label is None else str(label)
    where = f"{where}: node {key!r}" + (f" ({label})" if label else "")
    kind = "router" if _is_internal(where, data.get("Internal")) else "external"
    if data.get("Longitude") is None or data.get("Latitude") is None:
        return Site(key, label, kind)
    place = (
        _number(f"{where}: Longitude", data["Longitude"], 180.0),
        _number(f"{where}: Latitude", data["Latitude"], 90.0),
    )
    return Site(key, label, kind, place)


def _is_internal(where: str, said: Any) -> bool:
    """Return what a file says by a number, a truth value, or the text of one."""
    if said is None:
        return True
    text = str(said).strip().lower()
    if text in ("1", "1.0", "true"):
        return True
    if text in ("0", "0.0", "false"):
        return False
    raise ProblemError(
        f"{where}: Internal must be 1, or 0 for a node of another network, got {said!r}; correct "
        "it, or remove it for 1"
    )


def _number(where: str, value: Any, most: float) -> float:
    number = plain_number(str(value))
    if not abs(number) <= most:
        raise ProblemError(
            f"{where} must be degrees from -{most:g} to {most:g}, got {value!r}; correct it, or "
            "remove it for an unknown place"
        )
    return number
