"""The earliest end over all links, found on few of them."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from instances.replanned import (
    direct_links,
    into_d_from,
    plan_over_k,
    relay_problem,
    two_sources_on_a_wire,
)
from instances.small_problems import MB
from instances.strategies import problems
from judges import oracle

import datacollect as dc
from datacollect.errors import InfeasibleError
from datacollect.flow.network.layered import with_room_for_returns
from datacollect.flow.quickest.quickest import NeverArrives
from datacollect.methods.replanning import link_prices
from datacollect.methods.replanning.earliest_end import lower_bound_of, proved_optimum
from datacollect.methods.replanning.replan import old_use
from datacollect.solvers.budget import Budget

# Without shared bottlenecks ------------------------------------------------------------------


def test_few_links_do_not_hide_that_others_are_needed():
    """The old plan is direct; now only a chain of links leads on, none of which it used."""
    names = [f"h{i}" for i in range(6)]
    bandwidth = np.zeros((6, 6))
    bandwidth[5, 0] = 1e6
    chain = [(5, 4), (4, 3), (3, 2), (2, 1), (1, 0)]
    for a, b in chain:
        bandwidth[a, b] = 1e6
    problem = dc.Problem.from_matrix(names, bandwidth, [0] * 5 + [4 * MB], "h0")
    plan = dc.direct(problem)
    rest = dc.replan(problem, plan, dc.Progress(0.0), stability=0.0)
    assert rest.makespan_s == pytest.approx(2.0)
    old = old_use(problem, plan, 0.0).links
    found = proved_optimum(problem, old, 0.0, Budget())
    assert found.found.makespan_s == pytest.approx(2.0)
    assert len(found.links) == 6


def test_the_old_links_alone_are_one_answer_all_links_another():
    """S sends 8 MB: 4 s directly and over K, as the old plan does; 8/3 s with J as well."""
    problem = relay_problem()
    old = old_use(problem, plan_over_k(), 0.0).links
    found = proved_optimum(problem, old, 0.0, Budget())
    assert found.alone is not None
    assert found.alone.makespan_s == pytest.approx(4.0)
    assert found.found.makespan_s == pytest.approx(8 / 3)
    into_d = np.flatnonzero(problem.link_to == problem.destination_index)
    unused = proved_optimum(problem, into_d[1:], 0.0, Budget())
    assert unused.alone is None  # K -> D and J -> D alone take nothing away from S
    assert unused.found.makespan_s == pytest.approx(8 / 3)


def test_a_limit_of_a_host_proves_that_no_link_is_missing():
    """S may send 1 MB/s in all, which its direct link carries: other links need no look."""
    problem = relay_problem(uplink_bytes_per_s=np.array([1e6, np.inf, np.inf, np.inf]))
    direct = np.flatnonzero(into_d_from(problem, "S")[0])
    optimum = proved_optimum(problem, direct, 0.0, Budget())
    assert optimum.found.makespan_s == pytest.approx(8.0)
    into_d = np.flatnonzero(problem.link_to == problem.destination_index)
    assert optimum.links.tolist() == into_d.tolist()


@pytest.mark.parametrize(
    ("downlink", "expected_s", "words"),
    [
        (math.inf, 8 / 3, "links into"),
        (9e6, 8 / 3, "links into"),
        (1.5e6, 8 / 1.5, "downlink"),
        (3e6, 8 / 3, "downlink"),
    ],
)
def test_the_destination_binds_by_its_links_or_by_its_limit(downlink, expected_s, words):
    """S, K and J send 1 MB/s each into D; the old plan's link alone needs 8 s."""
    problem = relay_problem(downlink_bytes_per_s=np.array([math.inf] * 3 + [downlink]))
    direct = np.flatnonzero(into_d_from(problem, "S")[0])
    optimum = proved_optimum(problem, direct, 0.0, Budget())
    assert optimum.found.makespan_s == pytest.approx(expected_s)
    assert optimum.found.bottleneck.kind == "destination"
    assert words in optimum.found.bottleneck.text


# With shared bottlenecks ---------------------------------------------------------------------


def test_a_way_around_the_wire_is_found_by_its_price():
    """8 MB over the wire take 8 s; K carries as much beside it: 4 s. S and T have room for more."""
    problem = two_sources_on_a_wire()
    optimum = proved_optimum(problem, direct_links(problem, "S", "T"), 0.0, Budget())
    assert optimum.alone is not None
    assert optimum.alone.makespan_s == pytest.approx(8.0)
    assert optimum.found.makespan_s == pytest.approx(4.0)
    assert optimum.found.bottleneck.kind == "shared"


def test_a_chain_of_hosts_that_nothing_passed_yet_is_found():
    """The only way around the wire leads over K and J, of which the old links know nothing."""
    hosts = [dc.Host("S", 8 * MB), dc.Host("K"), dc.Host("J"), dc.Host("D")]
    pairs = [("S", "D"), ("S", "K"), ("K", "J"), ("J", "D")]
    wire = dc.SharedBottleneck("wire", 1e6, pairs[:1])
    links = [dc.Link(a, b, 2e6) for a, b in pairs]
    problem = dc.Problem.from_hosts(hosts, links, "D", shared=[wire])
    optimum = proved_optimum(problem, direct_links(problem, "S"), 0.0, Budget())
    assert optimum.found.makespan_s == pytest.approx(8 / 3)


def test_where_only_the_wire_binds_no_other_link_is_looked_at(monkeypatch):
    """K's link is on the wire, too: all hosts together send 1 MB/s, whatever lies between them."""
    problem = two_sources_on_a_wire()
    wire = dc.SharedBottleneck("wire", 1e6, [("S", "D"), ("T", "D"), ("K", "D")])
    problem = problem.replace(shared=(wire,))
    old = direct_links(problem, "S", "T", "K")
    monkeypatch.setattr(link_prices, "best_of_each", None)  # nothing to choose from
    optimum = proved_optimum(problem, old, 0.0, Budget())
    assert optimum.found.makespan_s == pytest.approx(8.0)
    assert optimum.links.tolist() == old.tolist()


@given(problems(), st.lists(st.booleans(), min_size=1, max_size=12))
@settings(suppress_health_check=[HealthCheck.filter_too_much])
def test_whichever_links_come_first_the_end_is_that_of_an_independent_program(problem, chosen):
    assume(problem.total_bytes > 0)
    old = np.flatnonzero(np.resize(chosen, problem.n_links))
    expected_s = oracle.fluid_makespan_s(problem)
    # A network gives data that return to their owner others' room there, and knows that it does.
    may_waste_room = with_room_for_returns(problem) is not None
    try:
        optimum = proved_optimum(problem, old, 0.0, Budget())
    except (NeverArrives, InfeasibleError):
        assert expected_s is None or may_waste_room
        return
    assert expected_s is not None
    assert optimum.found.makespan_s >= expected_s * (1 - 1e-6)
    bound = lower_bound_of(problem, optimum, Budget())
    if bound.exact:
        assert bound.makespan_s == pytest.approx(expected_s, rel=1e-6)
        assert optimum.found.makespan_s == pytest.approx(expected_s, rel=1e-6)
    else:
        assert may_waste_room
        assert bound.makespan_s <= expected_s * (1 + 1e-6)
