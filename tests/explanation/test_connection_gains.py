"""Time that more connections would save, by hand."""

import pytest

import datacollect as dc


def congested():
    """40 MB at A beside 30 others, 1 MB/s for one of ours of 31; 10 MB at B, 1 MB/s whatever n."""
    links = [dc.Link("A", "D", 1e6, competitors=30), dc.Link("B", "D", 1e6)]
    hosts = [dc.Host("A", 40_000_000), dc.Host("B", 10_000_000), dc.Host("D")]
    return dc.Problem.from_hosts(hosts, links, "D")


def test_two_more_on_the_link_that_ends_last_save_what_its_wire_gives():
    """A has four, 31 · 4/34 MB/s; with six 31 · 6/36 it would end before B, which takes 10 s."""
    problem = congested()
    plan = dc.coordinated(problem, connections=5)
    found = dc.explain(problem, plan)
    best = found.plan.more[0]
    assert best.names == ("link 'A' -> 'D'",)
    assert best.connections == 2
    # B ends after 10 s: no plan is sooner.
    assert best.saves_s == pytest.approx(40 * 34 / (31 * 4) - 10.0)
    assert "Two more connections on link 'A' -> 'D' save" in found.text
    assert found.lower_bound_s == plan.lower_bound_s
    assert found.to_dict()["plan"]["connections"] == 5


def test_where_nothing_is_gained_it_says_so():
    hosts = [dc.Host("B", 10_000_000), dc.Host("D")]
    problem = dc.Problem.from_hosts(hosts, [dc.Link("B", "D", 1e6)], "D")
    found = dc.explain(problem, dc.coordinated(problem, connections=1))
    assert [gain.saves_s for gain in found.plan.more] == [0.0]
    assert "Two more connections save nothing if all are shared out again." in found.text


def test_a_plan_for_another_problem_is_not_explained():
    plan = dc.coordinated(congested(), connections=5)
    other = congested().replace(backlog_bytes=[50_000_000, 10_000_000, 0])
    found = dc.explain(other, plan)
    assert found.plan.more == ()
    assert "made for another problem" in found.text
