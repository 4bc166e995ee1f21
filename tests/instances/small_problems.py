"""Problems that fit in the head, with what is known about them."""

from __future__ import annotations

from hand_made import links

from datacollect.problem import Host, Problem, SharedBottleneck

MB = 1_000_000


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
