"""Layered networks of hosts named by one letter, and flows through them, written as text."""

from __future__ import annotations

import numpy as np
from instances.hand_made import links

from datacollect.flow.network.layered import layered_network
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem


def network_of(text, backlogs="S", n_pieces=1, **options):
    """The layered network of hosts named by one letter; D collects."""
    given_links = links(text)
    names = sorted({end for link in given_links for end in (link.from_host, link.to_host)})
    problem = Problem.from_hosts(
        [Host(name, 100 if name in backlogs else 0) for name in names], given_links, "D", **options
    )
    return problem, layered_network(problem, np.arange(float(n_pieces)))


def flow_on(problem, network, amounts, dtype=np.int64):
    """Flow by "S K" (ends of a link), in the first piece."""
    flow = np.zeros(network.n_arcs, dtype=dtype)
    for ends, amount in amounts.items():
        tail, head = (problem.host_index[name] for name in ends.split())
        link = problem.link_indices(tail, head).item()
        flow[np.flatnonzero(network.link == link)[0]] += amount
    return flow
