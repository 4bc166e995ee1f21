"""Problems that fit in the head, with what is known about them."""

from __future__ import annotations

from instances.hand_made import links

from datacollect.problem.hosts import Held, Host, Link, SharedBottleneck
from datacollect.problem.problem import Problem

MB, GB = 10**6, 10**9


def figure_1(unit_bytes: int = MB) -> Problem:
    """Figure 1 of Chou et al. (2002); a unit of data takes a second at unit capacity.

    S1 and S2 hold a unit each. What both send to D passes one wire of unit capacity, what both
    send to K another. K sends to D at two units per second.
    """
    rate = float(unit_bytes)
    return Problem.from_hosts(
        [Host("S1", unit_bytes), Host("S2", unit_bytes), Host("K"), Host("D")],
        links(f"S1 -> D {rate}, S2 -> D {rate}, S1 -> K {rate}, S2 -> K {rate}, K -> D {2 * rate}"),
        "D",
        shared=[
            SharedBottleneck("N1-D", rate, [("S1", "D"), ("S2", "D")]),
            SharedBottleneck("hosts-K", rate, [("S1", "K"), ("S2", "K")]),
        ],
    )


def relay(**hosts: dict[str, float]) -> Problem:
    """S holds 6 MB; S -> D 1 MB/s, S -> K 2 MB/s, K -> D 3 MB/s: 3 MB/s together, 2 s at best."""
    known = {"S": {"backlog_bytes": 6 * MB}, "K": {}, "D": {}}
    return Problem.from_hosts(
        [Host(name, **(known[name] | hosts.get(name, {}))) for name in known],
        links("S -> D 1e6, S -> K 2e6, K -> D 3e6"),
        "D",
    )


def shared_relay() -> Problem:
    """A and B hold 4 MB each and reach D only through K, whose link to D carries 2 MB/s."""
    return Problem.from_hosts(
        [Host("A", 4 * MB), Host("B", 4 * MB), Host("K"), Host("D")],
        links("A -> K 2e6, B -> K 2e6, K -> D 2e6"),
        "D",
    )


def returning(**owner):
    """All of S lies at K. In the first second K -> S carries 8, later S -> D: 7 and 1 arrive."""
    return Problem.from_hosts(
        [Host("S", 8, **owner), Host("K"), Host("D")],
        links("K -> S 8 0, S -> D 0 8, K -> D 1 1"),
        "D",
        held=[Held("K", "S", 0, 8)],
        periods_s=[0.0, 1.0],
    )


def two_sources(a, b, downlink=float("inf")):
    """A and B hold MB and have MB/s to D, as pairs say; D receives at most `downlink`."""
    hosts = [Host("A", a[0] * MB), Host("B", b[0] * MB), Host("D", downlink_bytes_per_s=downlink)]
    return Problem.from_hosts(hosts, links(f"A -> D {a[1]}e6, B -> D {b[1]}e6"), "D")


def with_a_priced_relay(**changes):
    """4 GB at 1 MB/s for nothing; through K another 1 MB/s at 0.1 per GB."""
    hosts = [Host("S", 4 * GB), Host("K"), Host("D")]
    way = [Link("S", "D", 1e6), Link("S", "K", 1e6, 0.1), Link("K", "D", 1e6)]
    return Problem.from_hosts(hosts, way, "D", **changes)
