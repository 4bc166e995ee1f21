"""The best numbers of direct routes, against all numbers."""

import math

import pytest
from instances.connection_problems import crowded
from judges.best_connections import soonest_s

import datacollect as dc
from datacollect.flow.network.pools import pools_by_owner
from datacollect.methods.connections.direct_split import best_direct
from datacollect.methods.connections.divided_rates import best_rates
from datacollect.methods.connections.fewest import usable_links
from datacollect.methods.connections.routes import direct_routes
from datacollect.methods.connections.whole_connections import Hops
from datacollect.solvers.budget import Budget


@pytest.mark.parametrize("seed", range(24))
def test_no_straight_numbers_end_sooner(seed):
    problem, connections = crowded(seed, most_sources=7, most_hosts=8)
    connections = max(connections, 9)
    pools = pools_by_owner(problem)
    routes = direct_routes(problem, pools, usable_links(problem))
    best_s = soonest_s(problem.to_dict(), connections, hops=1)
    n = None
    if len(routes) == len(pools):
        hops = Hops(problem, pools, routes, connections)
        n = best_direct(hops)
    if n is None:
        assert math.isinf(best_s)
        return
    assert hops.fits(n)
    assert best_rates(hops, n, Budget()).makespan_s == pytest.approx(best_s, rel=1e-6)


def test_a_link_by_which_no_number_tells_the_end_is_no_straight_way():
    """A terabyte at 1e-302 bytes a second: the search for straight numbers never ended."""
    relays = [f"K{i}" for i in range(5)]
    fast = {"competitors": 30}
    links = [
        dc.Link("S", "D", 1e-302),
        *(dc.Link("S", name, 1e6, **fast) for name in relays),
        *(dc.Link(name, "D", 1e6, **fast) for name in relays),
    ]
    hosts = [dc.Host("S", 10**12), *map(dc.Host, relays), dc.Host("D")]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    plan = dc.coordinated(problem, connections=60)
    plan.check(problem)
    assert plan.makespan_s < 1e6
