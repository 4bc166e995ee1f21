"""Positions of hosts in a drawing: on a map, or in rings around the destination."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem

# So many hosts stand on one circle; where a ring has more, it has several, the first circle of all
# with so few, the second with twice as many.
MOST_ON_CIRCLE, ON_FIRST_CIRCLE = 32, 8


class Drawing(NamedTuple):
    """Places of hosts.

    Attributes
    ----------
    at : ndarray, shape (n_hosts, 2)
        From 0 to 1, to the right and down.
    is_map : bool
    aspect : float or None
        Width over height at which degrees are true; None where any will do.
    off_map : tuple of int
        Hosts on a map's lower edge, as nobody says where they are.
    """

    at: FloatArray
    is_map: bool
    aspect: float | None = None
    off_map: tuple[int, ...] = ()


def place_hosts(
    problem: Problem, hosts: Sequence[int], flows: Sequence[tuple[int, int]]
) -> Drawing:
    """Place hosts for a drawing of who sends to whom.

    Parameters
    ----------
    problem : Problem
    hosts : sequence of int
        Those to be placed.
    flows : sequence of (int, int)
        Hosts that send to each other, as indices into `hosts`.

    Returns
    -------
    Drawing
        A map, where two hosts at least say where they stand: equirectangular, true to scale in the
        middle of the hosts, and cut where the widest gap between them is. Else rings around the
        destination, which is first among `hosts` if not elsewhere: by the hops that data need.

    Examples
    --------
    >>> import datacollect as dc
    >>> hosts = [dc.Host("S", latitude=0, longitude=170), dc.Host("D", latitude=10, longitude=-170)]
    >>> problem = dc.Problem.from_hosts(hosts, [], "D")
    >>> place_hosts(problem, [0, 1], [(0, 1)]).at.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    if problem.latitude is not None and problem.longitude is not None:
        chosen = list(hosts)
        latitude, longitude = problem.latitude[chosen], problem.longitude[chosen]
        places = set(zip(latitude.tolist(), longitude.tolist(), strict=True))
        if len({place for place in places if not math.isnan(place[0])}) > 1:
            return _on_map(latitude, longitude)
    destination = list(hosts).index(problem.destination_index)
    return Drawing(_rings(len(hosts), destination, flows), is_map=False)


def _on_map(latitude: FloatArray, longitude: FloatArray) -> Drawing:
    known = ~np.isnan(latitude)
    # East of the widest gap: hosts on both sides of the date line are neighbours.
    around = np.unique(longitude[known] % 360)
    gaps = np.diff(around, append=around[0] + 360)
    west = around[(int(np.argmax(gaps)) + 1) % len(around)]
    x = (longitude - west) % 360
    middle = (np.nanmax(latitude) + np.nanmin(latitude)) / 2
    # Degrees of longitude are shorter than those of latitude, away from the equator.
    x *= max(math.cos(math.radians(middle)), 0.05)
    width, height = float(np.nanmax(x)), float(np.nanmax(latitude) - np.nanmin(latitude))
    at = np.full((len(latitude), 2), 0.5)
    at[known, 0] = x[known] / width if width else 0.5
    at[known, 1] = (np.nanmax(latitude) - latitude[known]) / height if height else 0.5
    aspect = width / height if width and height else None
    off_map = np.flatnonzero(~known)
    if len(off_map):
        at[:, 1] *= 0.85
        at[off_map] = np.column_stack(
            [(np.arange(len(off_map)) + 0.5) / len(off_map), np.full(len(off_map), 1.0)]
        )
    return Drawing(at, is_map=True, aspect=aspect, off_map=tuple(off_map.tolist()))


def _rings(n: int, destination: int, flows: Sequence[tuple[int, int]]) -> FloatArray:
    """Place hosts around the destination, by the fewest hops that their data need to it."""
    import networkx as nx

    graph = nx.DiGraph([(head, tail) for tail, head in flows])
    graph.add_nodes_from(range(n))
    hops = nx.single_source_shortest_path_length(graph, destination)
    outermost = max(hops.values()) + 1
    rings: dict[int, list[int]] = {}
    angle = dict.fromkeys(range(n), 0.0)
    for host in range(n):
        rings.setdefault(hops.get(host, outermost), []).append(host)
    radius, circle = np.zeros(n), 0
    for hop in sorted(rings.keys() - {0}):
        # Next to those to whom they send, as far as these have been placed.
        ring = sorted(rings[hop], key=lambda host: (_towards(graph, hops, angle, host), host))
        circles, parts = _circles(len(ring), circle + 1)
        shift = 0.5 / len(ring) if hop % 2 and len(ring) > 2 else 0.0
        for host, at, part in zip(ring, circles, parts, strict=True):
            radius[host], angle[host] = at, 2 * math.pi * (part + shift)
        circle = max(circles)
    turned = np.array([angle[host] for host in range(n)])
    away = 0.5 * radius / max(circle, 1)
    return 0.5 - np.column_stack([away * np.cos(turned), away * np.sin(turned)])


def _circles(n: int, first: int) -> tuple[list[int], list[float]]:
    """Spread hosts over circles from the `first` on: each one's circle and place on it.

    >>> _circles(4, 1)
    ([1, 1, 1, 1], [0.0, 0.25, 0.5, 0.75])
    """
    if n <= MOST_ON_CIRCLE:
        return [first] * n, [i / n for i in range(n)]
    # As many on each as its length has room for.
    numbers = [first]
    while sum(numbers) * ON_FIRST_CIRCLE < n:
        numbers.append(numbers[-1] + 1)
    room = [round(n * number / sum(numbers)) for number in numbers[:-1]]
    room.append(n - sum(room))
    spread = sorted(
        (i / count, number)
        for number, count in zip(numbers, room, strict=True)
        for i in range(count)
    )
    return [number for _, number in spread], [part for part, _ in spread]


def _towards(graph: object, hops: dict[int, int], angle: dict[int, float], host: int) -> float:
    """Return the mean direction of hosts nearer to the destination that this one sends to."""
    before = [
        other
        for other in graph.predecessors(host)  # type: ignore[attr-defined]
        if hops.get(other, 0) < hops.get(host, math.inf) and hops.get(other, 0) > 0
    ]
    x, y = (sum(f(angle[other]) for other in before) for f in (math.cos, math.sin))
    return math.atan2(y, x) % (2 * math.pi) if before else 0.0
