"""When collections end, predicted from capacities and what one connection got; by hand."""

import pytest

import datacollect as dc
from datacollect.methods.prediction import LEARNED, Job, bare_makespan_s, predicted


def two(wire=None, **host):
    """A and B with 60 bytes each, 3 bytes/s to D for one connection."""
    hosts = [dc.Host("A", 60, **host), dc.Host("B", 60, **host), dc.Host("D")]
    links = [dc.Link("A", "D", 3.0), dc.Link("B", "D", 3.0)]
    shared = [dc.SharedBottleneck("w", wire, [("A", "D"), ("B", "D")])] if wire else []
    return dc.Problem.from_hosts(hosts, links, "D", shared=shared)


def test_ours_share_with_what_left_one_its_rate():
    """Of 12 bytes/s beside 3 others one got 3; 2 of ours get 12/5 each: 1/r = 1/3 + 1/12."""
    jobs = [Job(("A", "D"), 60, 1), Job(("B", "D"), 60, 1)]
    assert bare_makespan_s(two(12.0), jobs) == pytest.approx(60 / 2.4)


def test_what_has_ended_leaves_room():
    """A's 24 bytes end after 10 s at 2.4; B has 36 left, alone at 3: 12 s more."""
    jobs = [Job(("A", "D"), 24, 1), Job(("B", "D"), 60, 1)]
    assert bare_makespan_s(two(12.0), jobs) == pytest.approx(22.0)


def test_connections_that_have_ended_help_others_where_they_may_move():
    """The same 84 bytes at 4.8 bytes/s all the time."""
    jobs = [Job(("A", "D"), 24, 1), Job(("B", "D"), 60, 1)]
    assert bare_makespan_s(two(12.0), jobs, help_others=True) == pytest.approx(17.5)


def test_the_narrowest_of_several_wires_counts():
    """Uplinks of 6 allow two of A's 1/r = 1/3 + 1/6; the wire allows three 1/r = 1/3 + 2/12."""
    jobs = [Job(("A", "D"), 40, 2), Job(("B", "D"), 10, 1)]
    problem = two(12.0, uplink_bytes_per_s=6.0)
    # B ends after 5 s at 2; A's two go on at 2 each, by the uplink.
    assert bare_makespan_s(problem, jobs) == pytest.approx(10.0)


def test_a_link_may_know_its_own_wire():
    hosts, link = [dc.Host("S", 60), dc.Host("D")], dc.Link("S", "D", 3.0, competitors=3)
    problem = dc.Problem.from_hosts(hosts, [link], "D")
    assert bare_makespan_s(problem, [Job(("S", "D"), 60, 4)]) == pytest.approx(60 / 4 / 12 * 7)


def test_without_capacities_nothing_is_predicted():
    assert bare_makespan_s(two(), [Job(("A", "D"), 60, 1)]) is None
    assert predicted(two(), [Job(("A", "D"), 60, 1)], "direct") is None


@pytest.mark.parametrize("method", sorted(LEARNED))
def test_the_range_is_what_nine_runs_of_ten_took(method):
    problem, jobs = two(12.0), [Job(("A", "D"), 60, 1)]
    found = predicted(problem, jobs, method)
    assert found.low_s < found.makespan_s < found.high_s
    bare_s = bare_makespan_s(problem, jobs, help_others=method == "adaptive")
    assert found.makespan_s == pytest.approx(bare_s * LEARNED[method].middle)
