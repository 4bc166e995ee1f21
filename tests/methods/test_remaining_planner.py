"""The one planner of the rest: what it keeps of the plan before, and what it knows."""

from __future__ import annotations

import pytest

import datacollect as dc
from datacollect.methods.best_path_spec import BestPathOptions
from datacollect.methods.remaining_planner import RemainingPlanner


def problem_of(over_k=9.0, over_j=10.0):
    """S sends over K or over J; both ways are as wide as said."""
    rates = {("S", "K"): over_k, ("K", "D"): over_k, ("S", "J"): over_j, ("J", "D"): over_j}
    hosts = [dc.Host("S", 100), dc.Host("K"), dc.Host("J"), dc.Host("D", downlink_bytes_per_s=5.0)]
    links = [dc.Link(a, b, rate) for (a, b), rate in rates.items()]
    return dc.Problem.from_hosts(hosts, links, "D")


def over(schedule):
    return {route.hosts[1] for route in schedule.routes}


def at(n_bytes, at_s=10.0, **more):
    return dc.Progress(at_s, held=[dc.Held("D", "S", 0, n_bytes)], **more)


@pytest.mark.parametrize("relay", ["K", "J"])
def test_the_rest_keeps_to_the_links_of_the_plan_before(relay):
    """Either way alone fills the downlink: each plan stays where the one before is."""
    problem = problem_of()
    only = [i for i in range(problem.n_links) if relay in names_of(problem, i)]
    plan = dc.coordinated(problem.with_links(only))
    plan_remaining = RemainingPlanner(problem, plan)
    for n_bytes, at_s in ((40, 8.0), (60, 12.0)):
        rest = plan_remaining(at(n_bytes, at_s))
        assert over(rest) == {relay}
        assert rest.makespan_s == pytest.approx((100 - n_bytes) / 5.0, rel=0.01)


def names_of(problem, link):
    return problem.names[problem.link_from[link]], problem.names[problem.link_to[link]]


def test_a_lost_host_is_gone_round_and_stays_lost():
    problem = problem_of()
    only = [i for i in range(problem.n_links) if "K" in names_of(problem, i)]
    plan_remaining = RemainingPlanner(problem, dc.coordinated(problem.with_links(only)))
    assert over(plan_remaining(at(40, lost_hosts=["K"]))) == {"J"}
    assert over(plan_remaining(at(60, 12.0))) == {"J"}


def test_best_path_plans_the_rest_by_itself():
    """Its one route is the wider one, whatever another plan has used."""
    problem = problem_of(over_k=2.0, over_j=4.0)
    only = [i for i in range(problem.n_links) if "K" in names_of(problem, i)]
    plan = dc.best_path(problem.with_links(only))
    rest = RemainingPlanner(problem, plan, BestPathOptions())(at(40))
    assert (rest.method, over(rest)) == ("best-path", {"J"})


def test_where_nothing_was_known_nothing_is_kept_of_the_first_plan():
    """Its chunk was a thousandth of a time that meant nothing; the rest has its own."""
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 1.0], [0, 0]], [1000, 0], "D")
    links = [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 100.0}]
    tree = {"format": "datacollect-progress/1", "at_s": 1.0, "links": links}
    progress = dc.Progress.from_dict(tree, problem)
    first = dc.best_path(problem)
    learned = RemainingPlanner(problem, None)(progress)
    assert learned.chunk_s < first.chunk_s / 50
    assert learned.makespan_s == pytest.approx(10.0, rel=0.01)
    assert RemainingPlanner(problem, first)(progress).chunk_s == first.chunk_s
