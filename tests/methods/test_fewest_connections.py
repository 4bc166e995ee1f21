"""The fewest connections that reach all data, against all ways."""

from itertools import pairwise, product

import pytest
from instances.connection_problems import crowded
from judges.all_allocations import _paths

import datacollect as dc
from datacollect.flow.network.pools import pools_by_owner
from datacollect.methods.connections.fewest import fewest_connections, usable_links
from datacollect.solvers.budget import Budget


def fewest(problem):
    """Hops of the shortest ways that hosts' limits allow together, one for each source."""
    end = problem.destination
    names, limits = problem.names, problem.most_connections
    pairs = {
        (names[a], names[b])
        for a, b in zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
    }
    ways = [list(_paths(pairs, source, end, 9)) for source in problem.sources]
    best = None
    for chosen in product(*ways):
        ends = [name for way in chosen for pair in pairwise(way) for name in pair]
        hops = sum(len(way) - 1 for way in chosen)
        if all(ends.count(n) <= most for n, most in zip(names, limits.tolist(), strict=True)):
            best = hops if best is None else min(best, hops)
    return best


@pytest.mark.parametrize("seed", range(24))
def test_no_ways_take_fewer(seed):
    problem, _ = crowded(seed, most_hosts=5)
    if problem.most_connections is None:
        problem = problem.replace(
            most_connections=[1 + (seed + i) % 4 for i in range(problem.n_hosts)]
        )
    least = fewest(problem)
    found = None
    try:
        ways = fewest_connections(problem, pools_by_owner(problem), usable_links(problem), Budget())
        found = sum(len(way.hosts) - 1 for way in ways)
    except dc.InfeasibleError:
        pass
    assert found == least


def test_what_carries_nothing_is_no_way():
    """K's uplink, a wire without capacity, a link without: only S -> L -> D is left."""
    hosts = [dc.Host("S", 9), dc.Host("K", uplink_bytes_per_s=0.0), dc.Host("L"), dc.Host("D")]
    links = [dc.Link(*pair, 1.0) for pair in ("SK", "KD", "SL", "LD", "SD")]
    wire = dc.SharedBottleneck("w", 0.0, [("S", "D")])
    problem = dc.Problem.from_hosts(hosts, links, "D", shared=[wire])
    [way] = fewest_connections(problem, pools_by_owner(problem), usable_links(problem), Budget())
    assert way.hosts == (0, 2, 3)
