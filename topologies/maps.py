"""Topologies from maps of real networks: names, delays from distances, parallel lines, parts.

A `Site` and a `Line` are what readers of formats find; `topology_of_map` makes the topology.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.units import counted, format_rate
from datacollect.topologies.parts import Node, Wire
from datacollect.topologies.rules import component_labels, describe_parts
from datacollect.topologies.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Sequence

EARTH_RADIUS_KM = 6371.0088  # mean radius, IUGG
LIGHT_KM_PER_S = 299_792.458
# Light in glass fibre is about a third slower than in vacuum.
FIBRE_KM_PER_S = LIGHT_KM_PER_S * 2 / 3
# Between places in one town, for which a map shows the same coordinates: 2 km of fibre.
LEAST_DELAY_S = 1e-5
# So many statements that are not understood are named.
MOST_NAMED = 8


@dataclass(frozen=True)
class Site:
    """A place on a map.

    Parameters
    ----------
    key : str
        Unique; how lines name it.
    label : str
        Its name for people; may be missing, or that of another place too.
    kind : str
        ``"router"`` or ``"external"``.
    place : (float, float), optional
        Longitude and latitude in degrees.
    """

    key: str
    label: str = ""
    kind: str = "router"
    place: tuple[float, float] | None = None


@dataclass(frozen=True)
class Line:
    """A line on a map, perhaps one of several between the same places.

    Parameters
    ----------
    a, b : str
        Keys of its ends.
    rate_bytes_per_s : float, optional
    length_km : float, optional
        Where missing, it is the distance of the places, if these are known.
    one_way : bool
        Whether it leads from `a` to `b` only.
    not_understood : str
        What the map states of its rate that is no rate; ``""``: nothing.
    """

    a: str
    b: str
    rate_bytes_per_s: float | None = None
    length_km: float | None = None
    one_way: bool = False
    not_understood: str = ""


@dataclass(frozen=True)
class MapOptions:
    """Options of a map: what it leaves open, and what to take from it.

    Parameters
    ----------
    default_rate_bytes_per_s, default_delay_s : float
        Of lines for which the map shows neither speed nor length.
    queue_packets : int
        Of all wires.
    keep_external : bool
        Whether to keep the neighbours' places.
    largest_component : bool
        Whether to keep only the largest part of a network that is not connected.
    notes_defaults : bool
        Whether to say how many lines took the default rate.
    """

    default_rate_bytes_per_s: float
    default_delay_s: float
    queue_packets: int
    keep_external: bool
    largest_component: bool
    notes_defaults: bool = False


def topology_of_map(
    where: str, sites: Sequence[Site], lines: Sequence[Line], options: MapOptions
) -> Topology:
    """Return the topology that a map shows.

    Lines between the same places become one wire with the sum of their rates and the shortest of
    their delays; a line from a place to itself is left out. A line that leads one way only has
    the same rate back unless another line leads back.

    Parameters
    ----------
    where : str
        What errors begin with: the file.
    """
    if not options.default_rate_bytes_per_s > 0:
        raise ProblemError(
            f"default_rate_bytes_per_s must be > 0, got {options.default_rate_bytes_per_s}"
        )
    kept = [site for site in sites if options.keep_external or site.kind != "external"]
    if not sites:
        raise ProblemError(f"{where}: the map has no nodes; is it the file that was meant?")
    if not kept:
        raise ProblemError(f"{where}: no nodes are left, of {len(sites)}; keep_external keeps all")
    index = {site.key: i for i, site in enumerate(kept)}
    inside = [line for line in lines if line.a in index and line.b in index and line.a != line.b]
    names = _names(kept)
    ends = np.array([(index[line.a], index[line.b]) for line in inside]).reshape(-1, 2)
    label = component_labels(len(kept), ends[:, 0].astype(int), ends[:, 1].astype(int))
    if label.any() and not options.largest_component:
        raise ProblemError(
            f"{where}: the network is not connected, it falls into {describe_parts(names, label)}; "
            "largest_component=True keeps the largest part"
            + ("" if options.keep_external else ", keep_external=True what joins parts outside")
        )
    main = int(np.bincount(label).argmax())
    stays = {kept[i].key: names[i] for i in np.flatnonzero(label == main).tolist()}
    sites = [site for site in kept if site.key in stays]
    places = {site.key: site.place for site in sites}
    kept_lines = [line for line in inside if line.a in stays]
    wires = _wires(stays, places, kept_lines, options)
    nodes = [Node(stays[site.key], site.kind) for site in sites]
    positions = None
    if any(places.values()):
        unknown = (math.nan, math.nan)
        positions = np.array([site.place or unknown for site in sites])
    topology = Topology.from_wires(wires, nodes, positions)
    return replace(topology, notes=_notes(where, kept_lines, options))


def _notes(where: str, lines: Sequence[Line], options: MapOptions) -> tuple[str, ...]:
    """Say how many lines took the default rate, and what they state that is no rate."""
    without = [line for line in lines if line.rate_bytes_per_s is None]
    if not without or not options.notes_defaults:
        return ()
    text = (
        f"{where}: {len(without)} of {counted(len(lines), 'edge')} took default_rate_bytes_per_s, "
        f"{format_rate(options.default_rate_bytes_per_s)}"
    )
    stated = Counter(line.not_understood for line in without if line.not_understood)
    if stated:
        text += "; not understood as a speed: " + ", ".join(
            f"{what} ({times})" for what, times in stated.most_common(MOST_NAMED)
        )
        more = len(stated) - MOST_NAMED
        text += f" and {more} more" if more > 0 else ""
    return (text,)


def great_circle_km(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the distance of two places, given as longitude and latitude in degrees.

    >>> round(great_circle_km((0.0, 0.0), (90.0, 0.0)))  # a quarter of the equator
    10008
    """
    lon1, lat1, lon2, lat2 = (math.radians(x) for x in (*one, *other))
    half = (
        math.sin((lat2 - lat1) / 2) ** 2
        + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_KM * math.asin(min(1.0, math.sqrt(half)))


def _names(sites: Sequence[Site]) -> list[str]:
    """Names for people where they are unique; otherwise with the key, which is."""
    labels = [" ".join(site.label.split()) for site in sites]
    times = Counter(labels)
    names = []
    for site, label in zip(sites, labels, strict=True):
        if label in ("", "None"):
            names.append(f"node {site.key}")
        else:
            names.append(label if times[label] == 1 else f"{label} ({site.key})")
    return names


def _wires(
    names: dict[str, str],
    places: dict[str, tuple[float, float] | None],
    lines: Sequence[Line],
    options: MapOptions,
) -> list[Wire]:
    bundles: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        bundles.setdefault((min(line.a, line.b), max(line.a, line.b)), []).append(line)
    wires = []
    for (a, b), bundle in bundles.items():
        out = back = 0.0
        for line in bundle:
            rate = line.rate_bytes_per_s
            rate = options.default_rate_bytes_per_s if rate is None else rate
            out += rate if line.a == a or not line.one_way else 0.0
            back += rate if line.a == b or not line.one_way else 0.0
        delay_s = min(
            _delay_s(line, places[a], places[b], options.default_delay_s) for line in bundle
        )
        rates = (out or back, back or out)
        wires.append(Wire(names[a], names[b], rates, delay_s, options.queue_packets))
    return wires


def _delay_s(
    line: Line,
    one: tuple[float, float] | None,
    other: tuple[float, float] | None,
    default_s: float,
) -> float:
    length_km = line.length_km
    if length_km is None:
        if one is None or other is None:
            return default_s
        length_km = great_circle_km(one, other)
    return max(length_km / FIBRE_KM_PER_S, LEAST_DELAY_S)
