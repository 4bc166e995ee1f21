"""The best rates of routes that have their connections, by hand and against SciPy."""

import math

import numpy as np
import pytest
from instances.connection_problems import crowded
from judges.best_connections import Small

import datacollect as dc
from datacollect.flow.network.pools import pools_by_owner
from datacollect.methods.connections.divided_rates import best_rates
from datacollect.methods.connections.whole_connections import Candidate, Hops
from datacollect.solvers.budget import Budget


def test_several_releases_divide_exactly():
    """By hand: 30 bytes from 0 s on, 10 from 10 s on, through 2 bytes/s at constant rates.

    30/T + 10/(T - 10) = 2 where T² - 30 T + 150 = 0.
    """
    links = [dc.Link(s, "D", 2.0) for s in "AB"]
    hosts = [
        dc.Host("A", 30),
        dc.Host("B", 10, release_s=10.0),
        dc.Host("D", downlink_bytes_per_s=2.0),
    ]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    hops = Hops(problem, pools_by_owner(problem), [Candidate(0, (0, 2)), Candidate(1, (1, 2))], 2)
    n = np.array([1, 1])
    until_s = 15 + math.sqrt(75)
    assert best_rates(hops, n, Budget()).makespan_s == pytest.approx(until_s, rel=1e-8)
    assert hops.brought(n).makespan_s == pytest.approx(until_s, rel=1e-6)


def cases(seed, n_rows=20):
    """Some of all numbers on all ways of a random problem: hops, numbers, the judge's caps."""
    problem, connections = crowded(seed)
    small = Small(problem.to_dict(), connections)
    rows = small.numbers()
    rows = rows[np.random.default_rng(seed).permutation(len(rows))[:n_rows]]
    pools, index = pools_by_owner(problem), problem.host_index
    of_host = {pool.host: number for number, pool in enumerate(pools)}
    ways = [tuple(index[name] for name in way) for _, way in small.ways]
    hops = Hops(problem, pools, [Candidate(of_host[w[0]], w) for w in ways], connections)
    return small, hops, rows.astype(np.int64)


@pytest.mark.parametrize("seed", [1, 5, 6, 8, 10, 13, 20, 36, 44, 52])
def test_rates_and_their_bounds_are_those_of_another_program(seed):
    small, hops, rows = cases(seed)
    assert len(rows) > 0
    caps = small.caps(rows)
    assert hops.carried(rows)[1] == pytest.approx(caps, rel=1e-9)
    best_s = [small.best_of(row) for row in caps if np.isfinite(small.alone_s(row[None])[0])]
    found = [best_rates(hops, n, Budget()) for n in rows]
    ends_s = [each.makespan_s for each in found]
    assert [end for end in ends_s if np.isfinite(end)] == pytest.approx(best_s, rel=1e-6)
    # What is divided in simple ways can be kept; what one program's prices say holds for all.
    assert (hops.brought(rows).end_s.max(axis=1) >= np.array(ends_s) * (1 - 1e-8)).all()
    now = hops.brought(rows)
    for each in found:
        if each.cut is not None:
            bound_s = each.cut.earliest_s(hops, now.route_bytes_per_s, now.start_s)
            assert (bound_s <= np.array(ends_s) * (1 + 1e-6)).all()
