"""All numbers of connections, counted and listed, against another list."""

from itertools import pairwise

import numpy as np
import pytest
from instances.connection_problems import crowded
from judges.best_connections import Small

import datacollect as dc
from datacollect.flow.network.pools import pools_by_owner
from datacollect.methods.connections.every_allocation import (
    all_routes,
    every_allocation,
    n_allocations,
)
from datacollect.methods.connections.fewest import usable_links
from datacollect.methods.connections.whole_connections import Hops


@pytest.mark.parametrize("seed", [1, 5, 6, 8, 10, 13, 20, 52])
def test_nothing_is_left_out_but_what_gains_nothing(seed):
    problem, connections = crowded(seed)
    pools = pools_by_owner(problem)
    routes, _ = all_routes(problem, pools, usable_links(problem), connections)
    hops = Hops(problem, pools, sorted(routes), connections)
    rows = every_allocation(hops, connections)
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert (np.diff(rows.sum(axis=1)) >= 0).all()
    counts = n_allocations(hops)
    without = Hops(problem.replace(most_connections=None), pools, sorted(routes), connections)
    assert len(every_allocation(without, connections)) == counts[connections]
    # A constant link on no crowded wire needs one connection: all others are there.
    small = Small(problem.to_dict(), connections)
    order = [small.ways.index(_named(problem, route)) for route in hops.candidates]
    starts = np.searchsorted(small.way_of, np.arange(len(small.ways)))
    columns = [starts[i] + k for i in order for k in range(len(small.ways[i][1]) - 1)]
    every = small.numbers()[:, columns]
    crossed = [
        (problem.names[a], problem.names[b])
        for route in hops.candidates
        for a, b in pairwise(route.hosts)
    ]
    growing = _growing(problem.to_dict())
    needs_one = np.array([link not in growing for link in crossed])
    useful = every[(every[:, needs_one] <= 1).all(axis=1)]
    assert sorted(map(tuple, useful.tolist())) == sorted(map(tuple, rows.tolist()))


def _growing(tree):
    """Links that say what connections bring, or on a wire that says it."""
    says = ("competitors", "capacity_bytes_per_s", "per_connection_bytes_per_s")
    links = {(link["from"], link["to"]) for link in tree["links"] if any(map(link.get, says))}
    wires = [wire for wire in tree.get("shared", ()) if wire.get("competitors") is not None]
    return links | {tuple(link) for wire in wires for link in wire["links"]}


def _named(problem, route):
    names = tuple(problem.names[host] for host in route.hosts)
    return names[0], names


def test_long_routes_are_left_out_where_there_are_too_many():
    """Of 40 hosts in a full mesh only direct routes, since 39 relays for each are too many."""
    names = [f"h{i}" for i in range(40)]
    hosts = [dc.Host(name, 9 if name != "h0" else 0) for name in names]
    links = [dc.Link(a, b, 1.0) for a in names[1:] for b in names if a != b]
    problem = dc.Problem.from_hosts(hosts, links, "h0")
    routes, longest = all_routes(
        problem, pools_by_owner(problem), usable_links(problem), connections=60
    )
    assert longest == 1
    assert len(routes) == 39
