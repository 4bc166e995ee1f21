"""Topologies from GraphML files, in particular those of the Internet Topology Zoo."""

from __future__ import annotations

import bz2
import gzip
import math
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import XML, ParseError

from datacollect.errors import ProblemError
from datacollect.topologies.maps import Line, MapOptions, Site, topology_of_map
from datacollect.topologies.rules import DEFAULT_QUEUE_PACKETS
from datacollect.units import bytes_per_s_from_bit_per_s

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    import networkx as nx

    from datacollect.topologies.topology import Topology

_OPENERS: dict[str, Callable[[Path, str], Any]] = {".gz": gzip.open, ".bz2": bz2.open}


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
    """Read a network from a GraphML file, as the Internet Topology Zoo has them.

    A node is called by its ``label``, with its id in brackets where labels repeat, and ``node ID``
    where it has none. A wire has the rate ``LinkSpeedRaw`` (bit/s) where the file gives it, and
    the delay of light in fibre (2/3 of its speed in vacuum) along the great circle where both
    ends have ``Longitude`` and ``Latitude``, at least 10 µs. Parallel edges become one wire: the
    sum of their rates, the shortest of their delays. Loops are left out.

    Parameters
    ----------
    path : path
        The file, also compressed as ``.gz`` or ``.bz2``.
    default_rate_bytes_per_s : float
        Of edges without ``LinkSpeedRaw``: most have none.
    rate_factor : float
        Factor on ``LinkSpeedRaw``, not on the default: packet by packet, 10 Gbit/s take a thousand
        times as long to simulate as 10 Mbit/s.
    default_delay_s : float
        Where a place is unknown.
    queue_packets : int
    keep_external : bool
        Whether to keep the nodes of other networks (``Internal`` = 0), which get the kind
        ``"external"``.
    largest_component : bool
        Keep only the largest part of a network that is not connected.

    Raises
    ------
    ProblemError
        The file cannot be read, is no GraphML, has a speed or place that is none, or its network
        is not connected; the message names the file, the place and the remedy.

    References
    ----------
    S. Knight, H. X. Nguyen, N. Falkner, R. Bowden, M. Roughan, "The Internet Topology Zoo", IEEE
    Journal on Selected Areas in Communications 29(9), 2011.
    """
    if not 0 < rate_factor < math.inf:
        raise ProblemError(f"rate_factor must be > 0 and finite, got {rate_factor}")
    where = str(path)
    graph = _read(Path(path))
    sites = [_site(where, key, data) for key, data in graph.nodes(data=True)]
    one_way = graph.is_directed()
    lines = [
        Line(a, b, _rate_bytes_per_s(where, a, b, data, rate_factor), one_way=one_way)
        for a, b, data in graph.edges(data=True)
    ]
    options = MapOptions(
        default_rate_bytes_per_s, default_delay_s, queue_packets, keep_external, largest_component
    )
    return topology_of_map(where, sites, lines, options)


def _read(path: Path) -> nx.Graph[str]:
    import networkx as nx

    try:
        with _OPENERS.get(path.suffix, open)(path, "rb") as file:
            data = file.read()
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProblemError(f"{path}: cannot be read: {reason}") from None
    try:
        declared = {
            element.get("id") for element in XML(data).iter() if element.tag.endswith("node")
        }
        graph: nx.Graph[str] = nx.read_graphml(BytesIO(data))
    except ParseError as error:
        line, column = error.position
        raise ProblemError(
            f"{path}: line {line}, column {column}: not well-formed XML "
            f"({str(error).partition(':')[0]}); repair the file, or fetch it anew"
        ) from None
    except nx.NetworkXError as error:
        raise ProblemError(
            f"{path}: not a graph in GraphML: {error}; is the root element <graphml>, with a "
            "<graph> inside, and is every key of <data> declared?"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        # What networkx lets through, in particular a value that is not of its key's type.
        raise ProblemError(
            f"{path}: not a graph in GraphML: {type(error).__name__}: {error}; each value must be "
            "of the attr.type of its key"
        ) from None
    # networkx takes edges for their word, and makes the nodes that they name.
    for node in graph:
        if node not in declared:
            neighbours = ", ".join(repr(other) for other in graph[node])
            raise ProblemError(
                f"{path}: an edge joins {neighbours} to node {node!r}, which the file does not "
                "declare; add the node, or correct source or target of the edge"
            )
    return graph


def _site(where: str, key: str, data: Mapping[str, Any]) -> Site:
    label = data.get("label")
    label = "" if label is None else str(label)
    where = f"{where}: node {key!r}" + (f" ({label})" if label else "")
    kind = "external" if data.get("Internal", 1) == 0 else "router"
    if data.get("Longitude") is None or data.get("Latitude") is None:
        return Site(key, label, kind)
    place = (
        _number(f"{where}: Longitude", data["Longitude"], 180.0),
        _number(f"{where}: Latitude", data["Latitude"], 90.0),
    )
    return Site(key, label, kind, place)


def _number(where: str, value: Any, most: float) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not abs(number) <= most:
        raise ProblemError(
            f"{where} must be degrees from -{most:g} to {most:g}, got {value!r}; correct it, or "
            "remove it for an unknown place"
        )
    return number


def _rate_bytes_per_s(
    where: str, a: str, b: str, data: Mapping[str, Any], factor: float
) -> float | None:
    speed = data.get("LinkSpeedRaw")
    if speed is None:
        return None
    try:
        number = float(speed)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ProblemError(
            f"{where}: edge {a!r} - {b!r}: LinkSpeedRaw must be bit/s, > 0 and finite, got "
            f"{speed!r}; correct it, or remove it for the default rate"
        )
    return bytes_per_s_from_bit_per_s(number) * factor
