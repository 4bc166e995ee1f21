"""Growth of rates with connections, as far as known wires tell: for plans and predictions.

A single connection that got b on a wire of C shares it with m = C/b - 1 others. Of a link that is
its narrowest known wire; of a wire that links share what most of them got tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.problem.connection_rates import link_rates, wire_rates
from datacollect.problem.hosts import SharedBottleneck

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem


def known_capacities(problem: Problem) -> FloatArray:
    """Return what each link's narrowest known wire carries, infinite where none is known.

    Its own wire, where rates by connections say so, its hosts' limits, shared bottlenecks.

    Examples
    --------
    >>> import datacollect as dc
    >>> hosts = [dc.Host("S", 60, uplink_bytes_per_s=6.0), dc.Host("D")]
    >>> known_capacities(dc.Problem.from_hosts(hosts, [dc.Link("S", "D", 3.0)], "D"))
    array([6.])
    """
    own = link_rates(problem).capacity_bytes_per_s
    ends = (
        problem.uplink_bytes_per_s[0, problem.link_from],
        problem.downlink_bytes_per_s[0, problem.link_to],
    )
    known = np.minimum(np.where(np.isnan(own), np.inf, own), np.minimum(*ends))
    for members, capacity in zip(problem.shared_links, wire_capacities(problem), strict=True):
        known[members] = np.minimum(known[members], capacity)
    return np.asarray(known)


def wire_capacities(problem: Problem) -> FloatArray:
    """Return what shared bottlenecks carry, whoever sends."""
    wires = wire_rates(problem)
    return np.where(wires.grows, wires.capacity_bytes_per_s, wires.bandwidth_bytes_per_s)


def with_known_rates(problem: Problem) -> Problem:
    """Return the problem with rates by connections wherever a wire is known, and none was given.

    Parameters
    ----------
    problem : Problem
        Bandwidths are what one connection got, those of shared bottlenecks what wires carry.

    Examples
    --------
    Of 12 bytes/s one connection got 3, so there are three others; three of ours get a half:

    >>> import datacollect as dc
    >>> hosts, links = [dc.Host("S", 60), dc.Host("D")], [dc.Link("S", "D", 3.0)]
    >>> wire = dc.SharedBottleneck("w", 12.0, [("S", "D")])
    >>> found = with_known_rates(dc.Problem.from_hosts(hosts, links, "D", shared=[wire]))
    >>> found.competitors, found.shared[0].competitors
    (array([3.]), 3.0)
    """
    alone, known = problem.bandwidth_bytes_per_s[0], known_capacities(problem)
    rates = link_rates(problem)
    is_new = np.isfinite(known) & ~rates.grows & (alone > 0)
    if not is_new.any() and not problem.shared:
        return problem
    capacity = np.where(is_new, np.maximum(known, alone), rates.capacity_bytes_per_s)
    shared = [
        _growing(wire, alone[members], grows=bool(grows))
        for wire, members, grows in zip(
            problem.shared, problem.shared_links, wire_rates(problem).grows, strict=True
        )
    ]
    return problem.replace(
        shared=shared,
        capacity_bytes_per_s=capacity,
        competitors=np.where(is_new, np.nan, rates.competitors),
        per_connection_bytes_per_s=np.where(is_new, np.nan, rates.per_connection_bytes_per_s),
    )


def _growing(wire: SharedBottleneck, alone: FloatArray, *, grows: bool) -> SharedBottleneck:
    sent = alone[alone > 0]
    if grows or not len(sent) or wire.bandwidth_bytes_per_s <= 0:
        return wire
    one = min(float(np.median(sent)), wire.bandwidth_bytes_per_s)
    competitors = wire.bandwidth_bytes_per_s / one - 1
    return SharedBottleneck(wire.name, one, wire.links, wire.bandwidth_bytes_per_s, competitors)
